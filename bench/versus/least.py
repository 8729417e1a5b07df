"""The least that a provider of Pods can do, as a process of a sandbox: what no provider on our client can undercut.

It writes one status to each Pod on a virtual node, confirms each deletion, and renews the nodes' Leases. It stores no
claims, decides nothing, and emits no Events. `python least.py KUBECONFIG` runs it.
"""

import asyncio
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import uvloop

from vkprovider.lablet.names import NODE_PREFIX
from vkprovider.platform.kube.api import Api
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.kube.queue import DONE, KeyedQueue, Result
from vkprovider.platform.kube.watch import key_of
from vkprovider.platform.leases import renew_time
from vkprovider.platform.objects import Pod
from vkprovider.platform.settings import KubeSettings
from vkprovider.platform.times import iso
from vkpsandbox import Sandbox
from vkpsandbox.processes.process import ProcessSpec, Restart
from vkpsandbox.start import add_process

NAME: Final = "least"
_AT_ONCE: Final = 128
_RENEW_S: Final = 10.0
_ADDRESS: Final = "192.0.2.1"
_TRUE: Final = ("Initialized", "Ready", "ContainersReady", "PodReadyToStartContainers")


def add(sandbox: Sandbox) -> None:
    """Start it in a sandbox whose provider has made its nodes and has stopped."""
    argv = [sys.executable, str(Path(__file__)), str(sandbox.layout.provider_kubeconfig)]
    add_process(sandbox.layout, ProcessSpec(name=NAME, argv=argv, restart=Restart.UNLESS_KILLED, grace_s=1.0))


async def serve(kubeconfig: str) -> None:
    """Serve the virtual nodes until cancelled."""
    kube = await KubeClient.connect(KubeSettings(KUBECONFIG=kubeconfig))
    api = Api(kube, "")
    pods = Informer(kube, api.pods.path, Pod, name="pods")
    queue = KeyedQueue[str](name="pods", workers=_AT_ONCE)
    confirmed: set[str] = set()

    async def reconcile(key: str) -> Result:
        pod = pods.items.get(key)
        if pod is None or not pod.spec.node_name.startswith(NODE_PREFIX):
            return DONE
        meta, resource = pod.metadata, api.pods.within(pod.metadata.namespace).metadata_only
        if meta.uid in confirmed:
            return DONE
        if meta.deletion_timestamp is not None:
            confirmed.add(meta.uid)
            await resource.delete(meta.name, uid=meta.uid, grace_s=0, lane=Lane.RESULT)
        elif pod.status.phase == "Pending":
            await resource.patch_status(meta.name, _running(pod), strategic=True, uid=meta.uid, lane=Lane.RESULT)
        return DONE

    pods.add_handler(lambda _, pod: queue.add(key_of(pod.metadata)) if pod is not None else None)
    await asyncio.gather(pods.run(), queue.run(reconcile), _renew(api))


def _running(pod: Pod) -> dict[str, Any]:
    """Return a status that says of everything that it runs, in the words of KWOK's stage `pod-ready`."""
    now = iso(int(time.time()))
    address = [{"ip": _ADDRESS}]
    status = {
        "phase": "Running",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in _TRUE],
        "containerStatuses": [
            {
                "name": container.name,
                "image": container.image,
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            }
            for container in pod.spec.containers
        ],
        "startTime": now,
        "podIP": _ADDRESS,
        "podIPs": address,
        "hostIP": _ADDRESS,
        "hostIPs": address,
    }
    return {"status": status}


async def _renew(api: Api) -> None:
    leases = api.node_leases.unstructured
    while True:
        for lease in await leases.list():
            if lease["metadata"]["name"].startswith(NODE_PREFIX):
                lease["spec"]["renewTime"] = renew_time(lease["spec"].get("renewTime"), datetime.now(UTC))
                await leases.replace(lease, lane=Lane.AT_ONCE)
        await asyncio.sleep(_RENEW_S)


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))

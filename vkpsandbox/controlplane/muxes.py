"""A mux of the sandbox: its Service, the program that serves muxes, and a relay that carries its ports on loopback."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from vkprovider.mux.pure import muxnames
from vkpsandbox.controlplane.content import NAMESPACE, apply_components, write_account_kubeconfig
from vkpsandbox.controlplane.kubectl import Kubectl
from vkpsandbox.controlplane.programs import PROVIDER_GRACE_S, VKPROVIDER
from vkpsandbox.controlplane.relay import relay_processes
from vkpsandbox.paths import Layout
from vkpsandbox.processes.ports import free_ports, free_range
from vkpsandbox.processes.process import ProcessSpec, Restart
from vkpsandbox.processes.record import Worker

NAME: Final = "labs"
"""The Service of the mux."""
PROCESS: Final = "mux"
_STORE_ROLE: Final = "vkprovider-mux-store"
"""The ClusterRole by which the program keeps the ports of muxes in their namespace."""
_ADDRESS: Final = "127.0.0.1"
"""Where HAProxy listens."""
_PORTS: Final = 200
_RELAY: Final = "vkprovider-relay"
"""The ServiceAccount of the relay, and its namespace."""
MANIFESTS: Final = ("mux/rbac.yaml", "mux/confine.yaml", "relay/namespace.yaml", "relay/rbac.yaml")
"""What is applied of the components of mux and relay."""


def mux_processes(layout: Layout, kubectl: Kubectl, manifests: Path, workers: Iterable[Worker]) -> list[ProcessSpec]:
    """Apply the rights of both programs and the Service of the mux; return the command lines of what serves it.

    Raises:
        SandboxError: There is no HAProxy, or the cluster refuses.
    """
    layout.mux.mkdir(mode=0o700)
    ports = free_range(_PORTS)
    [page, health] = free_ports(2)
    relays = relay_processes(
        layout.mux,
        layout.mux / "relay.kubeconfig",
        mux=f"{NAMESPACE}/{NAME}",
        ports=ports,
        health=f"127.0.0.1:{health}",
        settings={"VKPROVIDER_RELAY_REWRITE": _rewrites(workers)},
        run_in=layout.directory,
    )
    apply_components(kubectl, manifests, MANIFESTS)
    kubectl("apply", "-f", "-", stdin=json.dumps(_store_binding()))
    kubectl("apply", "-f", "-", stdin=json.dumps(_service(ports)))
    # As a load balancer's controller does; without an address the mux lends no number.
    address = json.dumps({"status": {"loadBalancer": {"ingress": [{"ip": _ADDRESS}]}}})
    kubectl(
        "patch", f"service/{NAME}", f"--namespace={NAMESPACE}", "--subresource=status", "--type=merge", "-p", address
    )
    account = muxnames.MUX_SERVICE_ACCOUNT
    write_account_kubeconfig(kubectl, layout, layout.mux / "mux.kubeconfig", account, account)
    write_account_kubeconfig(kubectl, layout, layout.mux / "relay.kubeconfig", _RELAY, _RELAY, _RELAY)
    env: dict[str, str | None] = {
        "KUBECONFIG": str(layout.mux / "mux.kubeconfig"),
        "VKPROVIDER_NAMESPACE": NAMESPACE,
        "VKPROVIDER_HTTP_HOST": "127.0.0.1",
        "VKPROVIDER_HTTP_PORT": str(page),
        "LABLET_CONTROLLER_INSTANCE_ID": None,
    }
    served = ProcessSpec(
        name=PROCESS,
        argv=[*VKPROVIDER, "mux"],
        env=env,
        url=f"http://127.0.0.1:{page}",
        restart=Restart.UNLESS_KILLED,
        grace_s=PROVIDER_GRACE_S,
    )
    return [served, *relays]


def _store_binding() -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": _STORE_ROLE, "namespace": NAMESPACE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _STORE_ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": muxnames.MUX_SERVICE_ACCOUNT, "namespace": NAMESPACE}],
    }


def _service(ports: tuple[int, int]) -> dict[str, Any]:
    prefix = muxnames.MUX_PREFIX
    annotations = {
        f"{prefix}/{muxnames.MUX_MULTIPLEXER}": "true",
        f"{prefix}/{muxnames.MUX_PORT_RANGE}": f"{ports[0]}-{ports[1]}",
    }
    spec = {
        "type": "LoadBalancer",
        "allocateLoadBalancerNodePorts": False,
        "loadBalancerSourceRanges": ["127.0.0.0/8"],
        "ports": [{"name": "placeholder", "port": 1}],  # Kubernetes wants one until the mux has some
    }
    metadata = {"name": NAME, "namespace": NAMESPACE, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _rewrites(workers: Iterable[Worker]) -> str:
    """Return where the relay dials workers: learners' addresses are of documentation, simulators listen on loopback."""
    pairs = ((worker.address, urlsplit(worker.url).hostname) for worker in workers if worker.port)
    return " ".join(f"{address}/32={host}/32" for address, host in pairs)

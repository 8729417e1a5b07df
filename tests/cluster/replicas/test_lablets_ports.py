"""Outside ports: the scheduler and a quota's controller charge them, CML has them, kubectl forwards, they are open.

R000-045 to R000-067; C18 to C27, C60.
"""

import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from virl2_client import ClientLibrary

from tests.cluster.replicas import FIRST, LAST
from tests.support import topologies
from tests.support.cluster import Cluster, condition, is_ready
from tests.support.desks import Desk, echoing
from tests.support.simulator import Simulator
from tests.support.topologies import definition, deployment, topology
from tests.support.waiting import until
from vkpsandbox.controlplane.content import NAMESPACE
from vkpsandbox.controlplane.tunnels import Tunnel

pytestmark = pytest.mark.tunnelled

SIX = topology(
    {"r1": "iosv", "pc": "desktop"},
    {
        "r1": ["serial:4001", "serial:4002:1", "pat:4003:22", "pat:udp:4004:53"],
        "pc": ["vnc:4005", "serial:4006", "own"],
    },
)
TWO = topology({"r1": "iosv"}, {"r1": ["serial:4001", "pat:4003:22"]})


def claims_of(cluster: Cluster, worker: Simulator) -> dict[str, Any]:
    """Read the claims of a worker."""
    found = cluster.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{worker.name}-port-allocations")
    assert found
    document: dict[str, Any] = json.loads(found["data"]["allocations.json"])
    return document


def mappings(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Read the port mappings that a Pod reports."""
    found: dict[str, dict[str, Any]] = json.loads(pod["metadata"]["annotations"]["vkprovider.io/port-mappings"])
    return found


def tags_by_pod(worker: Simulator) -> dict[str, list[str]]:
    """Ask CML, with its own client, for the tags of every lab's devices, by Pod UID."""
    client = ClientLibrary(worker.worker.url, worker.worker.username, worker.password, ssl_verify=False)
    try:
        return {
            lab.title[-36:]: sorted(tag for node in lab.nodes() for tag in node.tags())
            for lab in client.all_labs(show_all=True)
        }
    finally:
        client._session.close()


def opens(host: str, port: int) -> bool:
    """Tell whether somebody listens."""
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError:
        return False
    return True


def expected_tags(ports: dict[str, dict[str, Any]]) -> list[str]:
    """Write the tags that CML should show for the mappings of a lablet of six ports."""
    given = {name: info["allocated_port"] for name, info in ports.items()}
    return sorted(
        [
            f"serial:{given['r1_serial']}",
            f"serial:{given['r1_serial1']}:1",
            f"pat:{given['r1_pat22']}:22",
            f"pat:udp:{given['r1_patudp53']}:53",
            f"vnc:{given['pc_vnc']}",
            f"serial:{given['pc_serial']}",
            "own",
        ]
    )


def test_a_worker_takes_as_many_lablets_as_its_ports_allow(cluster: Cluster, namespace: str, tunnel: Tunnel) -> None:
    """Fifty lablets of six ports on three workers of sixty: thirty run, twenty wait; then two versions side by side."""
    cluster.define(definition("ported", SIX, version="1.0"))
    cluster.apply(deployment("ported", "ported", 50), namespace=namespace)
    until(lambda: sum(map(is_ready, cluster.pods(namespace))) == 30, 180, "thirty lablets run")

    def others_wait() -> bool:
        waiting = [pod for pod in cluster.pods(namespace) if not pod["spec"].get("nodeName")]
        assert len(waiting) == 20
        why = [condition(pod, "PodScheduled").get("message", "") for pod in waiting]
        return all("Insufficient vkprovider.io/ports" in message for message in why)

    until(others_wait, 30, "the scheduler says why they wait")

    running = [pod for pod in cluster.pods(namespace) if is_ready(pod)]
    for worker in cluster.workers:
        tags = tags_by_pod(worker)
        document = claims_of(cluster, worker)
        mine = {pod["metadata"]["uid"]: pod for pod in running if pod["spec"]["nodeName"] == worker.node}
        assert set(tags) == set(mine)
        assert len(mine) == 10
        used = Counter[tuple[str, int]]()
        for uid, pod in mine.items():
            ports = mappings(pod)
            assert tags[uid] == expected_tags(ports), "what CML shows is what the Pod tells"
            claimed = sorted(row["port"] for row in document["portClaims"] if uid.startswith(row["podUID"]))
            assert claimed == sorted(info["allocated_port"] for info in ports.values())
            for name, info in ports.items():
                used["udp" if "udp" in name else "tcp", info["allocated_port"]] += 1
        assert set(used.values()) == {1}, "no port twice"
        assert all(FIRST <= port <= LAST for _, port in used)
        host = worker.worker.url.removeprefix("https://").rpartition(":")[0]
        for transport, port in used:
            if transport == "tcp":
                until(lambda host=host, port=port: opens(host, port), 30, f"{host}:{port} opens")  # type: ignore[misc]
    told = {"True"} if tunnel == "direct" else {""}  # a replica cannot dial ports behind NAT, and says nothing of them
    until(lambda: {ports_open(pod) for pod in running_now(cluster, namespace)} == told, 45)

    first = running[0]["metadata"]["name"]
    cluster.kubectl("delete", "pod", first, f"--namespace={namespace}", "--wait=false")
    until(lambda: cluster.pod(namespace, first) is None, 60, "it is gone")
    until(lambda: sum(map(is_ready, cluster.pods(namespace))) == 30, 60, "another one is let in")

    cluster.kubectl("scale", "deployment/ported", "--replicas=3", f"--namespace={namespace}")
    until(lambda: len(cluster.pods(namespace)) == 3, 180, "three are left")
    cluster.define(definition("ported", TWO, version="1.1"))
    cluster.apply(deployment("newer", "ported", 3, version="1.1"), namespace=namespace)
    cluster.wait_ready(namespace, 6)
    counts = {pod["metadata"]["labels"]["app"]: len(mappings(pod)) for pod in cluster.pods(namespace)}
    assert counts == {"ported": 6, "newer": 2}


def running_now(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    """List the Pods that are Ready."""
    return [pod for pod in cluster.pods(namespace) if is_ready(pod)]


def test_ports_come_back_when_the_lablets_have_gone(cluster: Cluster, namespace: str) -> None:
    """R000-066: no claim is left when no lab is."""
    cluster.define(definition("brief", SIX))
    cluster.apply(deployment("brief", "brief", 4), namespace=namespace)
    cluster.wait_ready(namespace, 4)
    cluster.kubectl("delete", "deployment", "brief", f"--namespace={namespace}")
    cluster.wait_gone(namespace)
    for worker in cluster.workers:
        until(lambda worker=worker: claims_of(cluster, worker)["portClaims"] == [], 45)  # type: ignore[misc]
        assert claims_of(cluster, worker)["lablets"] == []


def test_kubectl_forwards_a_port_of_a_device(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """By its number inside, as far as the host of CML: from there PATty leads into the device."""
    cluster.define(definition("echo", topology({"h0": "alpine"}, {"h0": ["pat:4001:7"]})))
    cluster.apply(topologies.pod("used", "echo", devices=["h0"]), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    with Desk(cluster, tmp_path, namespace).forwarding("used", 7) as (_, port), echoing(port):
        pass


def test_a_quota_limits_the_ports_of_a_namespace(cluster: Cluster, namespace: str) -> None:
    """A ResourceQuota on requests.vkprovider.io/ports counts what the RuntimeClass charges."""
    cluster.define(definition("quoted", SIX))
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "ports"},
        "spec": {"hard": {"requests.vkprovider.io/ports": "13", "requests.vkprovider.io/lab-nodes": "100"}},
    }
    cluster.apply(quota, namespace=namespace)
    until(lambda: cluster.get(f"/api/v1/namespaces/{namespace}/resourcequotas/ports")["status"].get("hard"), 30)  # type: ignore[index]
    cluster.apply(deployment("quoted", "quoted", 3), namespace=namespace)
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/quoted"
    until(lambda: "exceeded quota" in condition(cluster.get(path), "ReplicaFailure").get("message", ""), 60)
    assert len(cluster.wait_ready(namespace, 2)) == 2


def ports_open(pod: dict[str, Any]) -> str:
    """Return the status of a Pod's condition PortsOpen; empty without one."""
    return str(condition(pod, "vkprovider.io/PortsOpen").get("status", ""))


def test_ports_that_do_not_open_are_told_and_change_nothing_else(
    cluster: Cluster, namespace: str, tunnel: Tunnel
) -> None:
    """C60: PATty has another range; Ready stays."""
    if tunnel != "direct":
        pytest.skip("a replica cannot dial ports behind NAT")
    worker = cluster.workers[2]
    path = f"/apis/vkprovider.io/v1alpha1/cmlworkers/{worker.name}"
    cluster.patch(path, {"spec": {"portRange": {"start": 12000, "end": 12059}}})
    try:
        cluster.define(definition("shut", TWO))
        on = {"kubernetes.io/hostname": worker.node}
        cluster.apply(deployment("shut", "shut", 1, nodeSelector=on), namespace=namespace)
        [pod] = cluster.wait_ready(namespace, 1)
        name = pod["metadata"]["name"]
        until(lambda: condition(cluster.pod(namespace, name), "vkprovider.io/PortsOpen").get("status") == "False", 90)
        told = condition(cluster.pod(namespace, name), "vkprovider.io/PortsOpen")
        assert "PATty is off or its range is not 12000-12059" in told["message"]
        assert "spec.portRange" in told["message"]
        assert is_ready(cluster.pod(namespace, name))
        until(lambda: condition(cluster.cmlworker(worker), "PortsOpen").get("status") == "False", 45)
        assert is_ready(cluster.cmlworker(worker))
    finally:
        cluster.patch(path, {"spec": {"portRange": {"start": FIRST, "end": LAST}}})

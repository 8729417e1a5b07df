"""A Pod that is not a lablet is ended, and the scheduler has its room back."""

from tests.support.cluster import Cluster, is_ready
from tests.support.topologies import definition, pod
from tests.support.waiting import until


def test_stray_pod_is_told_why_and_gives_its_room_back(cluster: Cluster, namespace: str) -> None:
    """As a kubelet ends a Pod that it does not admit: what it requests is free for lablets."""
    room = cluster.workers[0]
    squatter = pod("squatter", "nginx", tolerations=[{"operator": "Exists"}], nodeName=room.node)
    del squatter["spec"]["runtimeClassName"]
    squatter["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10000"}}
    cluster.apply(squatter, namespace=namespace)
    until(lambda: (cluster.pod(namespace, "squatter") or {})["status"]["phase"] == "Failed", 30)
    said = (cluster.pod(namespace, "squatter") or {})["status"]
    assert said["reason"] == "NotALablet"
    events = until(lambda: [e for e in cluster.events(namespace, "squatter") if e["type"] == "Warning"], 15)
    assert [e["reason"] for e in events] == ["NotALablet"]
    assert "this node runs lablets only, and the pod has no runtimeClassName" in events[0]["message"]
    cluster.define(definition("roomy"))
    cluster.apply(pod("lablet", "roomy", nodeSelector={"kubernetes.io/hostname": room.node}), namespace=namespace)
    until(lambda: is_ready(cluster.pod(namespace, "lablet")), 60, "the lablet finds no room")

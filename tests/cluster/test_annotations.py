"""Annotations are reports: whatever kubectl writes there reaches nobody else's lab, and is repaired (C08, C40)."""

from collections.abc import Mapping
from typing import Any

from tests.support.cluster import Cluster, is_ready
from tests.support.history import History
from tests.support.simulator import Simulator
from tests.support.topologies import definition, pod
from tests.support.waiting import until

MADE = ["import", "start"]
TAKEN_DOWN = ["stop", "wipe", "DELETE"]
LAB_ID = "vkprovider.io/lab-id"
OTHERS = {"vkprovider.io/port-mappings": '{"h0": 2000}', "vkprovider.io/lds-session-id": "s-1"}
"""Reports that these lablets do not have; somebody may write them all the same."""


def reports(found: Mapping[str, Any] | None) -> dict[str, str]:
    """The annotations in which the provider reports."""
    assert found
    annotations = found["metadata"].get("annotations", {})
    return {key: value for key, value in annotations.items() if key.startswith("vkprovider.io/") and key not in OTHERS}


def annotate(cluster: Cluster, namespace: str, name: str, values: Mapping[str, str]) -> None:
    pairs = [f"{key}={value}" for key, value in values.items()]
    cluster.kubectl("annotate", "pod", name, "--overwrite", *pairs, f"--namespace={namespace}")


def put(cluster: Cluster, namespace: str, **where: Simulator) -> dict[str, dict[str, Any]]:
    """Make a Ready lablet on each of these workers, of two definitions, so that all of their reports differ."""
    for name, worker in where.items():
        what = f"{name}-{namespace[-5:]}"
        cluster.define(definition(what, version=f"1.0.{len(name)}"))
        selector = {"kubernetes.io/hostname": worker.node}
        cluster.apply(pod(name, what, nodeSelector=selector), namespace=namespace)
    pods = {p["metadata"]["name"]: p for p in cluster.wait_ready(namespace, len(where))}
    for found in pods.values():
        lab = cluster.lab_of(found)
        assert lab
        assert reports(found)[LAB_ID] == lab["id"]
    return pods


def swap(cluster: Cluster, namespace: str, pods: Mapping[str, dict[str, Any]]) -> None:
    """Give each of two lablets what the other reports."""
    (one, first), (two, second) = pods.items()
    assert set(reports(first)) == set(reports(second)) >= {LAB_ID, "vkprovider.io/content", "vkprovider.io/state"}
    annotate(cluster, namespace, one, {**reports(second), **OTHERS})
    annotate(cluster, namespace, two, {**reports(first), **OTHERS})


def wait_repaired(cluster: Cluster, namespace: str, before: dict[str, Any]) -> dict[str, Any]:
    """Wait until a lablet reports again what it did, and make sure that nothing else of it has changed."""
    name = before["metadata"]["name"]

    def repaired() -> dict[str, Any]:
        now = cluster.pod(namespace, name)
        assert now
        assert reports(now) == reports(before)
        return now

    now = until(repaired, 45)
    assert is_ready(now)
    assert now["metadata"]["uid"] == before["metadata"]["uid"]
    assert now["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    return now


def test_swapped_reports_reach_nobody_elses_lab(cluster: Cluster, namespace: str) -> None:
    """One of two, on two workers, is deleted at once: its own lab goes, the other lives and is repaired."""
    one, two = cluster.workers[:2]
    history = History(one, two)
    pods = put(cluster, namespace, goes=one, stays=two)
    gone, kept = (pods[name]["metadata"]["uid"] for name in ("goes", "stays"))
    swap(cluster, namespace, pods)
    cluster.kubectl("delete", "pod", "goes", "--timeout=60s", f"--namespace={namespace}")
    until(lambda: one.lab_of(gone) is None, 45, "the deleted lablet's own lab stays")
    wait_repaired(cluster, namespace, pods["stays"])
    assert history.of(gone) == [*MADE, *TAKEN_DOWN]
    assert history.of(kept) == MADE
    assert (two.lab_of(kept) or {})["id"] == reports(pods["stays"])[LAB_ID]


def test_somebody_elses_lab_id_reaches_nobody(cluster: Cluster, namespace: str) -> None:
    """A lablet names a hand-made lab as its own, from its creation and later; with it goes its own lab only."""
    worker = cluster.workers[0]
    foreign = worker.cml("POST", "/labs", {"title": "homework"})["id"]
    history = History(worker)
    try:
        what = f"greedy-{namespace[-5:]}"
        cluster.define(definition(what))
        greedy = pod("greedy", what, nodeSelector={"kubernetes.io/hostname": worker.node})
        greedy["metadata"]["annotations"] = {LAB_ID: foreign, "vkprovider.io/state": "READY"}
        cluster.apply(greedy, namespace=namespace)
        [ready] = cluster.wait_ready(namespace, 1)
        lab = worker.lab_of(ready["metadata"]["uid"])
        assert lab
        assert lab["id"] != foreign
        assert reports(ready)[LAB_ID] == lab["id"]
        annotate(cluster, namespace, "greedy", {LAB_ID: foreign})
        wait_repaired(cluster, namespace, ready)
        annotate(cluster, namespace, "greedy", {LAB_ID: foreign})
        cluster.kubectl("delete", "pod", "greedy", "--timeout=60s", f"--namespace={namespace}")
        assert [lab["id"] for lab in worker.labs()] == [foreign]
        assert history.of(ready["metadata"]["uid"]) == [*MADE, *TAKEN_DOWN]
        assert [entry for entry in history.entries() if entry["lab"] == foreign] == []
    finally:
        worker.cml("DELETE", f"/labs/{foreign}")

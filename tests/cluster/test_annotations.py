"""Annotations are reports: whoever edits them reaches nobody else's lab, and they are repaired (C08, C40)."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.cluster import Cluster, container, is_ready
from tests.support.history import History
from tests.support.simulator import Simulator
from tests.support.topologies import definition, pod
from tests.support.waiting import throughout, until

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


def wait_saved(cluster: Cluster, worker: Simulator, pods: Mapping[str, dict[str, Any]]) -> None:
    """Wait until the rows of lablets say all that the provider knows: a little later than their Pods do."""
    path = f"/api/v1/namespaces/vkprovider-system/configmaps/{worker.name}-port-allocations"

    def saved() -> bool:
        [text] = (cluster.get(path) or {})["data"].values()
        rows = {row["podUID"]: row for row in json.loads(text)["lablets"]}
        return all(rows.get(found["metadata"]["uid"], {}).get("readyAt") for found in pods.values())

    until(saved, 45)


@pytest.mark.parametrize("apart", [False, True], ids=["same worker", "two workers"])
@pytest.mark.parametrize("how", [(), ("--force", "--grace-period=0")], ids=["graceful", "forced"])
def test_swapped_reports_reach_nobody_elses_lab(
    cluster: Cluster, namespace: str, how: tuple[str, ...], *, apart: bool
) -> None:
    """One of the two is deleted at once: its own lab goes, the other lives, and its values are repaired."""
    one, two = cluster.workers[0], cluster.workers[1 if apart else 0]
    history = History(*dict.fromkeys((one, two)))
    pods = put(cluster, namespace, goes=one, stays=two)
    gone, kept = (pods[name]["metadata"]["uid"] for name in ("goes", "stays"))
    swap(cluster, namespace, pods)
    cluster.kubectl("delete", "pod", "goes", *how, "--timeout=15s", f"--namespace={namespace}")
    until(lambda: one.lab_of(gone) is None, 45, "the deleted lablet's own lab stays")
    wait_repaired(cluster, namespace, pods["stays"])
    assert history.of(gone) == [*MADE, *TAKEN_DOWN]
    throughout(lambda: history.of(kept) == MADE, 2)
    assert (two.lab_of(kept) or {})["id"] == reports(pods["stays"])[LAB_ID]


def test_reports_swapped_while_the_provider_is_away_are_not_believed(cluster: Cluster, namespace: str) -> None:
    """It comes back knowing nothing but the claims: what the Pods say of labs is not among what it reads."""
    worker = cluster.workers[2]
    history = History(worker)
    pods = put(cluster, namespace, goes=worker, stays=worker)
    uids = {name: found["metadata"]["uid"] for name, found in pods.items()}
    labs = {name: reports(found)[LAB_ID] for name, found in pods.items()}
    wait_saved(cluster, worker, pods)
    cluster.sandbox.kill("provider-1")
    swap(cluster, namespace, pods)
    cluster.kubectl("delete", "pod", "goes", "--wait=false", f"--namespace={namespace}")
    swapped = cluster.pod(namespace, "stays")
    assert reports(swapped)[LAB_ID] == labs["goes"]
    cluster.sandbox.start("provider-1")
    until(lambda: cluster.pod(namespace, "goes") is None, 135, "the deleted lablet stays")
    assert worker.lab_of(uids["goes"]) is None
    wait_repaired(cluster, namespace, pods["stays"])
    assert history.of(uids["goes"]) == [*MADE, *TAKEN_DOWN]
    assert history.of(uids["stays"]) == MADE


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
        cluster.kubectl("delete", "pod", "greedy", "--timeout=15s", f"--namespace={namespace}")
        assert [lab["id"] for lab in worker.labs()] == [foreign]
        assert history.of(ready["metadata"]["uid"]) == [*MADE, *TAKEN_DOWN]
        assert [entry for entry in history.entries() if entry["lab"] == foreign] == []
    finally:
        worker.cml("DELETE", f"/labs/{foreign}")


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_cleared_reports_are_written_again(cluster: Cluster, namespace: str, *, restarted: bool) -> None:
    """Nothing is imported or started for want of a lab id, by the same provider or by its successor."""
    worker = cluster.workers[1]
    history = History(worker)
    pods = put(cluster, namespace, cleared=worker)
    uid = pods["cleared"]["metadata"]["uid"]
    if restarted:
        wait_saved(cluster, worker, pods)
        cluster.sandbox.kill("provider-1")
    keys = [f"{key}-" for key in reports(pods["cleared"])]
    cluster.kubectl("annotate", "pod", "cleared", *keys, f"--namespace={namespace}")
    if restarted:
        assert reports(cluster.pod(namespace, "cleared")) == {}
        cluster.sandbox.start("provider-1")
    now = wait_repaired(cluster, namespace, pods["cleared"])
    assert container(now)["restartCount"] == 0
    assert history.of(uid) == MADE

"""Labs that no claim names: foreign ones are never touched, marked ones are reported, duplicates go (C10, C31)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cluster import Cluster
from tests.support.extra import Extra, extra_worker
from tests.support.simulator import Simulator
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import throughout, until


@pytest.fixture
def extra(cluster: Cluster) -> Iterator[Extra]:
    """A worker of its own: what is left on it harms nobody."""
    with extra_worker(cluster, "leftover", "--boot-seconds=0.2") as extra:
        extra.wait_ready()
        yield extra


def import_lab(worker: Simulator, title: str, notes: str, *, start: bool = False) -> str:
    """Import a lab as somebody else would; give its id."""
    text = topology({"h0": "alpine"}, title=title).replace("notes: ''", f"notes: {json.dumps(notes)}")
    worker.cml("GET", "/labs")  # logs in
    lab = str(worker.request("POST", "/api/v0/import", text.encode(), worker._token)[1]["id"])
    if start:
        worker.cml("PUT", f"/labs/{lab}/start")
    return lab


def ids(worker: Simulator) -> set[str]:
    return {lab["id"] for lab in worker.labs()}


def mark(cluster: Cluster) -> str:
    found = cluster.get("/api/v1/namespaces/kube-system")
    assert found
    return f"vkprovider installation={found['metadata']['uid']}"


def counts(cluster: Cluster, extra: Extra) -> dict[str, Any]:
    labs: dict[str, Any] = (cluster.get(extra.path) or {})["status"]["labs"]
    return labs


def written(worker: Simulator, since: int) -> list[str]:
    entries = [e for e in worker.access_log(since) if e["method"] != "GET" and "authenticate" not in e["path"]]
    return [f"{e['method']} {e['path']}" for e in entries]


def test_foreign_labs_are_counted_and_never_touched(cluster: Cluster, extra: Extra, namespace: str) -> None:
    """Whatever its title: without exactly our mark in the first line of its notes a lab is somebody else's."""
    cluster.define(definition("leftover", environment="leftover"))
    cluster.apply(pod("ours", "leftover"), namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    [lab] = extra.simulator.labs()
    ours, title = lab["id"], lab["lab_title"]
    foreign = {
        import_lab(extra.simulator, "homework", "", start=True),
        import_lab(extra.simulator, title, "vkprovider installation=another-cluster"),
        import_lab(extra.simulator, "quoted", f"see {mark(cluster)}"),
        import_lab(extra.simulator, "below", f"notes\n{mark(cluster)}"),
        import_lab(extra.simulator, "longer", f"{mark(cluster)}0"),
    }
    until(lambda: counts(cluster, extra) == {"ours": 1, "foreign": 5}, 60)
    since = extra.simulator.last_request()
    cluster.kubectl("delete", "pod", "ours", f"--namespace={namespace}")
    assert ready["metadata"]["uid"] in title
    assert ids(extra.simulator) == foreign
    assert all(ours in what for what in written(extra.simulator, since))
    cluster.kubectl("delete", "cmlworker", extra.name, "--timeout=15s")
    assert ids(extra.simulator) == foreign


def test_marked_lab_without_a_claim_is_reported_and_left_alone(cluster: Cluster, extra: Extra) -> None:
    """A saved copy, or what a restored etcd has forgotten."""
    saved = import_lab(extra.simulator, "netlab-0a1b2c3d-a-saved-copy", mark(cluster), start=True)
    since = extra.simulator.last_request()

    def told() -> str:
        events = {e["reason"]: e["message"] for e in cluster.events("default", extra.name)}
        return str(events.get("UnclaimedLab", ""))

    message = until(told, 60)
    assert "netlab-0a1b2c3d-a-saved-copy" in message
    assert saved in message
    assert "left alone" in message
    throughout(lambda: ids(extra.simulator) == {saved}, 3)
    assert written(extra.simulator, since) == []


@pytest.mark.parametrize("started", [False, True], ids=["never started", "started"])
def test_duplicate_of_a_lost_answer_goes_unless_it_was_started(
    cluster: Cluster, extra: Extra, namespace: str, *, started: bool
) -> None:
    cluster.define(definition("leftover", environment="leftover"))
    cluster.apply(pod("ours", "leftover"), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    [lab] = extra.simulator.labs()
    duplicate = import_lab(extra.simulator, lab["lab_title"], lab["lab_notes"], start=started)
    if started:
        throughout(lambda: ids(extra.simulator) == {lab["id"], duplicate}, 4)
    else:
        until(lambda: ids(extra.simulator) == {lab["id"]}, 30, "the duplicate stays")
    assert len(cluster.wait_ready(namespace, 1)) == 1
    cluster.kubectl("delete", "pod", "ours", f"--namespace={namespace}")
    if started:
        assert ids(extra.simulator) == {duplicate}


def test_claims_that_somebody_deleted_are_written_again(cluster: Cluster, extra: Extra, namespace: str) -> None:
    """R000-067: the rows are what we know; a deleted object does not make labs ours no more."""
    cluster.define(definition("leftover", environment="leftover"))
    cluster.apply(pod("first", "leftover"), namespace=namespace)
    [first] = cluster.wait_ready(namespace, 1)
    uid = first["metadata"]["uid"]
    until(lambda: uid in extra.claims(), 15)
    cluster.kubectl("delete", "configmap", f"{extra.name}-port-allocations", "--namespace=vkprovider-system")
    cluster.apply(pod("second", "leftover"), namespace=namespace)
    cluster.wait_ready(namespace, 2)
    until(lambda: uid in extra.claims(), 30, "the first one's row is lost")
    cluster.kubectl("delete", "pod", "first", "second", f"--namespace={namespace}")
    assert extra.simulator.labs() == []


def test_claims_that_were_lost_with_the_provider_are_found_again(
    cluster: Cluster, extra: Extra, namespace: str
) -> None:
    """C31: without a row, the lab of a Pod is found by mark and title; it is not imported a second time."""
    cluster.define(definition("leftover", environment="leftover"))
    cluster.apply(pod("kept", "leftover"), namespace=namespace)
    [before] = cluster.wait_ready(namespace, 1)
    [lab] = extra.simulator.labs()
    until(lambda: before["metadata"]["uid"] in extra.claims(), 15)
    since = extra.simulator.last_request()
    cluster.sandbox.kill("provider-1")
    cluster.kubectl("delete", "configmap", f"{extra.name}-port-allocations", "--namespace=vkprovider-system")
    cluster.sandbox.start("provider-1")
    until(lambda: lab["id"] in extra.claims(), 120, "the lab is not claimed again")
    assert ids(extra.simulator) == {lab["id"]}
    [after] = cluster.wait_ready(namespace, 1)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    assert written(extra.simulator, since) == []
    cluster.kubectl("delete", "pod", "kept", f"--namespace={namespace}")
    assert extra.simulator.labs() == []

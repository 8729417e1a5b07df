"""Foreign labs are counted, and what kubectl deletes of ours touches none of them (C10, C31)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cluster import Cluster
from tests.support.extra import Extra, extra_worker
from tests.support.simulator import Simulator
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until

pytestmark = pytest.mark.tunnelled


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
    cluster.kubectl("delete", "cmlworker", extra.name, "--timeout=60s")
    assert ids(extra.simulator) == foreign

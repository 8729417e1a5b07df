"""One lablet's life as kubectl and the scheduler show it: containers, Events, the end (R000-012…022, R004-045…048)."""

import itertools
from typing import Any

import pytest
from virl2_client import ClientLibrary

from tests.support.cluster import Cluster, condition, container, is_ready, waiting_reason
from tests.support.simulator import Simulator
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until

pytestmark = pytest.mark.tunnelled


def on(worker: Simulator) -> dict[str, str]:
    return {"kubernetes.io/hostname": worker.node}


def done(worker: Simulator, since: int) -> list[str]:
    """What was done to labs on a worker, in order: `import`, `start`, `extract`, `stop`, `wipe`, `DELETE`.

    PATCH, which only describes a lab, is left out.
    """
    log = [e for e in worker.access_log(since) if "authenticate" not in e["path"]]
    entries = [e for e in log if e["method"] not in {"GET", "PATCH"}]
    words = [e["method"] if e["method"] == "DELETE" else e["path"].rsplit("/", 1)[1] for e in entries]
    words = ["extract" if word == "extract_configuration" else word for word in words]
    return [word for word, _ in itertools.groupby(words)]  # one request for each device


def made(cluster: Cluster, namespace: str, name: str) -> dict[str, Any]:
    found = cluster.pod(namespace, name)
    assert found
    return found


@pytest.fixture
def two(namespace: str, cluster: Cluster) -> str:
    """A definition of two hosts."""
    name = f"two-{namespace[-5:]}"
    cluster.define(definition(name, topology({"h0": "alpine", "R 1": "alpine"})))
    return name


def test_cisco_client_finds_the_lab_by_the_pods_uid(cluster: Cluster, namespace: str, two: str) -> None:
    """R000-058: title and mark; the lab is complete and booted when the Pod is Ready."""
    worker = cluster.workers[0]
    cluster.apply(pod("seen", two, nodeSelector=on(worker)), namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    account = worker.worker
    client = ClientLibrary(account.url, account.username, worker.password, ssl_verify=False)
    try:
        [lab] = [lab for lab in client.all_labs(show_all=True) if lab.title.endswith(ready["metadata"]["uid"])]
        assert len(lab.title) <= 64
        assert lab.title.startswith("two-")
        assert lab.notes.startswith("vkprovider installation=")
        assert {node.label: node.state for node in lab.nodes()} == {"h0": "BOOTED", "R 1": "BOOTED"}
        assert lab.id == ready["metadata"]["annotations"]["vkprovider.io/lab-id"]
    finally:
        client._session.close()


def test_configuration_that_cannot_be_read_is_told_and_ends_all_the_same(
    cluster: Cluster, namespace: str, two: str
) -> None:
    worker = cluster.workers[0]
    cluster.apply(pod("lost", two, nodeSelector=on(worker)), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    worker.fault("status", "extract_configuration$", status=500, count=1)
    cluster.kubectl("delete", "pod", "lost", f"--namespace={namespace}")

    def told() -> str:
        return "".join(e["message"] for e in cluster.events(namespace, "lost") if e["reason"] == "NotKept")

    message = until(told, 30)
    assert message.startswith(("no configuration of h0: ", "no configuration of R 1: "))
    assert worker.admin("GET", "/faults") == [], "the fault was met"


def test_each_device_has_a_container_of_its_own(cluster: Cluster, namespace: str) -> None:
    """A host that has booted runs while the router still boots; the lab runs when both do."""
    worker = cluster.workers[0]
    name = f"mixed-{namespace[-5:]}"
    cluster.define(definition(name, topology({"h0": "alpine", "R 1": "csr1000v"})))
    cluster.apply(pod("mixed", name, devices=("h0", "r-1"), nodeSelector=on(worker)), namespace=namespace)

    def half() -> dict[str, Any]:
        now = made(cluster, namespace, "mixed")
        assert container(now, "h0").get("ready")
        assert waiting_reason(now, "r-1") == waiting_reason(now) == "StartingNodes"
        assert "R 1" in container(now)["state"]["waiting"]["message"]
        return now

    now = until(half, 45)
    assert (now["status"]["phase"], is_ready(now)) == ("Pending", False)
    assert condition(now, "vkprovider.io/LabImported")["status"] == "True"
    assert condition(now, "vkprovider.io/LabConverged")["status"] == "False"
    [now] = cluster.wait_ready(namespace, 1)
    assert [entry["name"] for entry in now["status"]["containerStatuses"]] == ["lab", "h0", "r-1"]
    lab = cluster.lab_of(now)
    assert lab
    for entry in now["status"]["containerStatuses"]:
        assert entry["ready"]
        assert entry["containerID"] == f"cml://{lab['id']}"
        assert entry["image"] == f"{name}:1.0.0"
        assert "running" in entry["state"]
    assert condition(now, "vkprovider.io/LabConverged")["status"] == "True"


def test_describe_tells_the_story(cluster: Cluster, namespace: str, two: str) -> None:
    worker = cluster.workers[1]
    cluster.apply(pod("story", two, nodeSelector=on(worker)), namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    order = ["Scheduled", "Created", "Started", "Ready"]
    until(lambda: {e["reason"] for e in cluster.events(namespace, "story")} == set(order), 30)
    told = cluster.kubectl("describe", "pod", "story", f"--namespace={namespace}").stdout
    events = told[told.index("Events:") :]
    reasons = [line.split()[1] for line in events.splitlines()[3:] if line.strip()]
    assert sorted(reasons) == sorted(order)
    assert reasons[-1] == "Ready"
    assert f"on worker {worker.name}" in events
    assert "all 2 devices booted" in events
    assert "Warning" not in events
    title = next(word for word in events.split() if word.endswith(ready["metadata"]["uid"]))
    assert title == (cluster.lab_of(ready) or {})["lab_title"]
    assert "Status:" in told
    assert f"{worker.node}/{worker.worker.address}" in told
    assert "0001" not in told, "a time is missing"
    cluster.kubectl("delete", "pod", "story", f"--namespace={namespace}")
    until(lambda: "Killing" in {e["reason"] for e in cluster.events(namespace, "story")}, 15)


def test_deletion_ends_as_soon_as_the_lab_is_gone(cluster: Cluster, namespace: str, two: str) -> None:
    """C13, C30, R000-112: extract, stop, wipe, delete, and well below the grace of 30 s."""
    worker = cluster.workers[0]
    cluster.apply(pod("short", two, nodeSelector=on(worker)), namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    since = worker.last_request()
    cluster.kubectl("delete", "pod", "short", "--timeout=20s", f"--namespace={namespace}")
    assert worker.lab_of(ready["metadata"]["uid"]) is None
    assert done(worker, since) == ["extract", "stop", "wipe", "DELETE"]


def test_six_status_writes_at_most_and_no_poll_per_pod(cluster: Cluster, namespace: str, two: str) -> None:
    """R004-026, R004-051: what one lablet's life costs the API server and the worker, by their own logs."""
    worker, audit = cluster.workers[0], cluster.sandbox.audit_log
    assert audit
    offset, since = audit.stat().st_size, worker.last_request()
    cluster.apply(pod("cheap", two, nodeSelector=on(worker)), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    cluster.kubectl("delete", "pod", "cheap", f"--namespace={namespace}")
    with audit.open(encoding="utf-8") as lines:
        lines.seek(offset)
        ours = [line for line in lines if f"/{namespace}/pods/cheap" in line and "vkprovider-system" in line]
    writes = [line for line in ours if '"verb":"patch"' in line and '"stage":"ResponseComplete"' in line]
    assert 1 <= len(writes) <= 6
    looks = [e["path"] for e in worker.access_log(since) if e["method"] == "GET" and "/labs/" in e["path"]]
    assert len(looks) == len(set(looks)) <= 2, "more than the devices' configurations, once, before the end"

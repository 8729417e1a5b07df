"""One lablet's life as its user sees it: containers, Events, the end at any moment (R000-012…022, R004-045…048)."""

import itertools
from typing import Any

import pytest
from virl2_client import ClientLibrary

from tests.support.cluster import Cluster, condition, container, is_ready, waiting_reason
from tests.support.simulator import Simulator
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import throughout, until


def on(worker: Simulator) -> dict[str, str]:
    return {"kubernetes.io/hostname": worker.node}


def done(worker: Simulator, since: int) -> list[str]:
    """What was done to labs on a worker, in order: `import`, `start`, `extract`, `stop`, `wipe`, `DELETE`."""
    entries = [e for e in worker.access_log(since) if e["method"] != "GET" and "authenticate" not in e["path"]]
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
    cluster.define(definition(name, topology({"h0": "alpine", "R 1": "iosv"})))
    cluster.apply(pod("mixed", name, devices=("h0", "r-1"), nodeSelector=on(worker)), namespace=namespace)

    def half() -> bool:
        now = made(cluster, namespace, "mixed")
        assert container(now, "h0").get("ready")
        assert waiting_reason(now, "r-1") == waiting_reason(now) == "StartingNodes"
        assert "R 1" in container(now)["state"]["waiting"]["message"]
        return True

    until(half, 45)
    now = made(cluster, namespace, "mixed")
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
    cluster.kubectl("delete", "pod", "short", "--timeout=10s", f"--namespace={namespace}")
    assert worker.lab_of(ready["metadata"]["uid"]) is None
    assert done(worker, since) == ["extract", "stop", "wipe", "DELETE"]


def test_forced_deletion_still_removes_the_lab(cluster: Cluster, namespace: str, two: str) -> None:
    """C10: the Pod is gone at once, without asking anybody."""
    worker = cluster.workers[0]
    cluster.apply(pod("forced", two, nodeSelector=on(worker)), namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    since = worker.last_request()
    cluster.kubectl("delete", "pod", "forced", "--force", "--grace-period=0", f"--namespace={namespace}")
    assert cluster.pod(namespace, "forced") is None
    until(lambda: worker.lab_of(ready["metadata"]["uid"]) is None, 30, "the lab stays")
    assert done(worker, since) == ["extract", "stop", "wipe", "DELETE"]


@pytest.mark.parametrize("how", [(), ("--force", "--grace-period=0")], ids=["graceful", "forced"])
def test_deletion_while_importing(cluster: Cluster, namespace: str, two: str, how: tuple[str, ...]) -> None:
    worker = cluster.workers[0]
    since = worker.last_request()
    worker.fault("delay", "/import$", delay_s=3)
    cluster.apply(pod("early", two, nodeSelector=on(worker)), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "early")) == "ImportingLab", 30)
    uid = made(cluster, namespace, "early")["metadata"]["uid"]
    cluster.kubectl("delete", "pod", "early", *how, "--timeout=10s", f"--namespace={namespace}")
    cluster.wait_gone(namespace, within_s=3)
    until(lambda: done(worker, since) == ["import", "DELETE"], 30, "the lab is started, or stays")
    throughout(lambda: worker.lab_of(uid) is None, 1)


def test_deletion_while_booting(cluster: Cluster, namespace: str) -> None:
    worker = cluster.workers[0]
    name = f"boots-{namespace[-5:]}"
    cluster.define(definition(name, topology({"r1": "csr1000v"})))
    cluster.apply(pod("boots", name, nodeSelector=on(worker)), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "boots")) == "StartingNodes", 30)
    uid, since = made(cluster, namespace, "boots")["metadata"]["uid"], worker.last_request()
    cluster.kubectl("delete", "pod", "boots", "--timeout=10s", f"--namespace={namespace}")
    assert worker.lab_of(uid) is None
    assert done(worker, since) == ["stop", "wipe", "DELETE"]


def test_deletion_while_the_worker_is_away(cluster: Cluster, namespace: str, two: str) -> None:
    """The Pod stays, says why, and goes with its lab when the worker is back; a forced one leaves no lab either."""
    worker = cluster.workers[2]
    cluster.apply(
        pod("graceful", two, nodeSelector=on(worker)), pod("forced", two, nodeSelector=on(worker)), namespace=namespace
    )
    uids = {p["metadata"]["name"]: p["metadata"]["uid"] for p in cluster.wait_ready(namespace, 2)}
    worker.silence(120)
    until(lambda: condition(cluster.node(worker), "Ready")["status"] == "False", 90)
    cluster.kubectl("delete", "pod", "graceful", "--wait=false", f"--namespace={namespace}")
    cluster.kubectl("delete", "pod", "forced", "--force", "--grace-period=0", f"--namespace={namespace}")
    until(lambda: waiting_reason(cluster.pod(namespace, "graceful")) == "CleaningUp", 30)
    now = made(cluster, namespace, "graceful")
    assert now["metadata"]["deletionTimestamp"]
    assert not is_ready(now)
    assert "as soon as the worker answers" in container(now)["state"]["waiting"]["message"]
    told = cluster.kubectl("describe", "pod", "graceful", f"--namespace={namespace}").stdout
    assert "the lab is removed as soon as the worker answers" in told
    throughout(lambda: cluster.pod(namespace, "graceful"), 2)
    worker.clear_faults()
    cluster.wait_gone(namespace, within_s=60)
    for uid in uids.values():
        until(lambda uid=uid: worker.lab_of(uid) is None, 45, "a lab stays")  # type: ignore[misc]


def test_successor_of_the_same_name_waits_for_the_lab_of_its_predecessor(
    cluster: Cluster, namespace: str, two: str
) -> None:
    worker = cluster.workers[0]
    cluster.apply(pod("same", two, nodeSelector=on(worker)), namespace=namespace)
    [first] = cluster.wait_ready(namespace, 1)
    cluster.kubectl("delete", "pod", "same", "--force", "--grace-period=0", f"--namespace={namespace}")
    cluster.apply(pod("same", two, nodeSelector=on(worker)), namespace=namespace)
    [second] = cluster.wait_ready(namespace, 1)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    until(lambda: worker.lab_of(first["metadata"]["uid"]) is None, 30, "the first one's lab stays")
    assert worker.lab_of(second["metadata"]["uid"])


def test_changed_image_of_a_bound_pod_is_ignored_and_told(cluster: Cluster, namespace: str, two: str) -> None:
    worker = cluster.workers[0]
    cluster.apply(pod("fixed", two, nodeSelector=on(worker)), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    since = worker.last_request()
    cluster.kubectl("set", "image", "pod/fixed", f"lab={two}:9.9.9", f"--namespace={namespace}")

    def told() -> str:
        events = {e["reason"]: e["message"] for e in cluster.events(namespace, "fixed")}
        return str(events.get("ImageChangeIgnored", ""))

    assert f"{two}:9.9.9" in until(told, 15)
    now = until(lambda: (p := made(cluster, namespace, "fixed"))["status"]["observedGeneration"] == 2 and p, 15)
    assert now
    assert is_ready(now)
    assert container(now)["image"] == f"{two}:1.0.0"
    assert done(worker, since) == []


def test_pod_that_was_bound_by_hand_runs_if_there_is_room(cluster: Cluster, namespace: str) -> None:
    """What the scheduler would have refused waits, without a call to CML, and goes on when there is room."""
    worker = cluster.workers[0]
    name = f"large-{namespace[-5:]}"
    cluster.define(definition(name, resources={"cpu": 40}))
    cluster.apply(pod("first", name, nodeName=worker.node), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    since = worker.last_request()
    cluster.apply(pod("second", name, nodeName=worker.node), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "second")) == "OutOfcpu", 30)
    second = made(cluster, namespace, "second")
    assert second["status"]["phase"] == "Pending"
    assert "cpu 80 > 64" in container(second)["state"]["waiting"]["message"]
    until(lambda: "OutOfcpu" in {e["reason"] for e in cluster.events(namespace, "second")}, 15)
    assert done(worker, since) == []
    cluster.kubectl("delete", "pod", "first", f"--namespace={namespace}")
    [ready] = cluster.wait_ready(namespace, 1)
    assert ready["metadata"]["name"] == "second"


def test_definition_in_use_waits_for_its_last_lablet(cluster: Cluster, namespace: str, two: str) -> None:
    path = f"/apis/vkprovider.io/v1alpha1/labletdefinitions/{two}"
    cluster.apply(pod("last", two), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    cluster.kubectl("delete", "ldef", two, "--wait=false")

    def reason() -> str:
        return str(condition(cluster.get(path), "Ready").get("reason"))

    until(lambda: reason() == "InUse", 30)
    assert condition(cluster.get(path), "Ready")["message"].startswith("1 lablets; ")
    cluster.apply(pod("new", two), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "new")) == "DefinitionNotReady", 30)
    assert is_ready(cluster.pod(namespace, "last"))
    cluster.kubectl("delete", "pod", "last", "new", f"--namespace={namespace}")
    until(lambda: cluster.get(path) is None, 45, "the definition stays")
    until(lambda: cluster.get(f"/apis/node.k8s.io/v1/runtimeclasses/{two}") is None, 180, "its RuntimeClass stays")


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

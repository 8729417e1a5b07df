"""Recovery never destroys work: what stops is started again without a wipe, and what cannot be is kept (C07, C48).

What was done to a lab is read from the worker's own access log.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cluster import Cluster, condition, container, is_ready, waiting_reason
from tests.support.extra import Extra, extra_worker
from tests.support.history import History
from tests.support.simulator import Simulator
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import throughout, until

MADE = ["import", "start"]
TAKEN_DOWN = ["stop", "wipe", "DELETE"]
POLICIES = ("Always", "OnFailure", "Never")


def on(worker: Simulator) -> dict[str, str]:
    return {"kubernetes.io/hostname": worker.node}


def made(cluster: Cluster, namespace: str, name: str) -> dict[str, Any]:
    found = cluster.pod(namespace, name)
    assert found
    return found


def lab_id(cluster: Cluster, found: dict[str, Any]) -> str:
    lab = cluster.lab_of(found)
    assert lab
    return str(lab["id"])


def message(found: dict[str, Any], name: str = "lab") -> str:
    return str(container(found, name).get("state", {}).get("waiting", {}).get("message", ""))


def last_end(found: dict[str, Any], name: str = "lab") -> dict[str, Any]:
    """The `lastState.terminated` of a container; empty if it never ended."""
    ended: dict[str, Any] = container(found, name).get("lastState", {}).get("terminated", {})
    return ended


def wait_restarted(cluster: Cluster, namespace: str, name: str, times: int, within_s: float = 90) -> dict[str, Any]:
    """Wait until a lablet is Ready and its lab was started again so many times."""

    def again() -> dict[str, Any]:
        now = made(cluster, namespace, name)
        assert (container(now)["restartCount"], is_ready(now)) == (times, True), now["status"]
        return now

    return until(again, within_s)


def wait_failed(cluster: Cluster, namespace: str, name: str, reason: str, within_s: float = 90) -> dict[str, Any]:
    """Wait until a lablet has failed for a reason, and make sure that its lab was gone by then."""

    def failed() -> dict[str, Any]:
        now = made(cluster, namespace, name)
        assert (now["status"]["phase"], now["status"].get("reason")) == ("Failed", reason), now["status"]
        return now

    now = until(failed, within_s)
    assert cluster.lab_of(now) is None, "Failed is told when the lab is gone"
    ended = container(now)["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (1, reason)
    return now


@pytest.fixture
def name(namespace: str) -> str:
    """The name of the definition of a test."""
    return f"kept-{namespace[-5:]}"


@pytest.fixture
def limited(cluster: Cluster) -> Iterator[Extra]:
    """A worker of its own, licensed for two devices; routers take 14 s to boot, of 20 s that they have."""
    with extra_worker(cluster, "limited", "--boot-seconds=0.3", "--boot=iosv=14", "--licence-nodes=2") as extra:
        extra.wait_ready()
        yield extra


@pytest.mark.timeout(240)
def test_crashing_device_is_started_three_times_then_somebody_must_look(
    cluster: Cluster, namespace: str, name: str
) -> None:
    """The fourth time the lab is kept as it is; whoever starts the device on the worker has the lablet Ready again."""
    worker = cluster.workers[0]
    history = History(worker)
    cluster.define(definition(name, topology({"h0": "alpine", "h1": "alpine"})))
    cluster.apply(pod("shaky", name, devices=("h0", "h1"), nodeSelector=on(worker)), namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    uid, lab = ready["metadata"]["uid"], lab_id(cluster, ready)
    for times in (1, 2, 3):
        worker.crash(lab, "h1")
        now = wait_restarted(cluster, namespace, "shaky", times, within_s=90)
        assert history.of(uid) == MADE + ["start"] * times
        assert [container(now, n)["restartCount"] for n in ("h0", "h1")] == [0, times]
        assert (last_end(now)["reason"], last_end(now, "h1")["reason"]) == ("DeviceStopped", "DeviceStopped")
        assert "h1 stopped on the worker" in last_end(now)["message"]
        assert last_end(now)["startedAt"] <= last_end(now)["finishedAt"]
        assert last_end(now, "h0") == {}

    worker.crash(lab, "h1")
    until(lambda: waiting_reason(made(cluster, namespace, "shaky")) == "NeedsAttention", 45)
    now = made(cluster, namespace, "shaky")
    assert (now["status"]["phase"], is_ready(now)) == ("Running", False)
    assert waiting_reason(now, "h1") == "DeviceStopped"
    assert container(now, "h0")["ready"]
    for words in ("h1 stopped", "did not come back after 3 starts", "is kept as it is", "or delete the pod"):
        assert words in message(now)
    until(lambda: "NeedsAttention" in {e["reason"] for e in cluster.events(namespace, "shaky")}, 15)
    throughout(lambda: history.of(uid) == MADE + ["start"] * 3, 3)

    worker.cml("PUT", f"/labs/{lab}/start")  # somebody looks
    wait_restarted(cluster, namespace, "shaky", 3)
    assert history.of(uid) == MADE + ["start"] * 4
    cluster.kubectl("delete", "pod", "shaky", "--timeout=10s", f"--namespace={namespace}")
    assert history.of(uid) == [*MADE, *["start"] * 4, *TAKEN_DOWN]


@pytest.mark.timeout(240)
def test_lab_that_crashes_while_it_boots_follows_the_restart_policy(
    cluster: Cluster, namespace: str, name: str
) -> None:
    """Nobody can have worked in it: after three starts without a wipe it is made afresh, or ends."""
    worker = cluster.workers[1]
    history = History(worker)
    cluster.define(definition(name, topology({"r1": "iosv"})))
    policies = ("Always", "Never")
    put = [pod(policy.lower(), name, restartPolicy=policy, nodeSelector=on(worker)) for policy in policies]
    cluster.apply(*put, namespace=namespace)
    uids = {policy: made(cluster, namespace, policy.lower())["metadata"]["uid"] for policy in policies}
    for starts in (1, 2, 3, 4):
        for uid in uids.values():
            until(lambda uid=uid, n=starts: history.of(uid) == MADE + ["start"] * (n - 1), 90)  # type: ignore[misc]
            worker.crash((worker.lab_of(uid) or {})["id"], "r1")
    ended = wait_failed(cluster, namespace, "never", "LabCrashed")
    assert "r1 stopped on the worker while it booted" in container(ended)["state"]["terminated"]["message"]
    assert history.of(uids["Never"]) == [*MADE, *["start"] * 3, "wipe", "DELETE"]

    now = wait_restarted(cluster, namespace, "always", 4)
    assert history.of(uids["Always"]) == [*MADE, *["start"] * 3, "wipe", "start"]
    assert last_end(now)["reason"] == "LabCrashed"


def test_rebooted_worker_brings_all_labs_back(cluster: Cluster, namespace: str, name: str) -> None:
    """All labs stop at once, also one that boots and one of somebody else: ours come back as they were."""
    worker = cluster.workers[2]
    history = History(worker)
    slow = f"slow-{namespace[-5:]}"
    cluster.define(
        definition(name, topology({"h0": "alpine", "h1": "alpine"})), definition(slow, topology({"r": "iosv"}))
    )
    cluster.apply(*(pod(f"ready-{n}", name, nodeSelector=on(worker)) for n in range(3)), namespace=namespace)
    before = {p["metadata"]["uid"]: lab_id(cluster, p) for p in cluster.wait_ready(namespace, 3)}
    foreign = worker.cml("POST", "/labs", {"title": "homework"})["id"]
    cluster.apply(pod("boots", slow, nodeSelector=on(worker)), namespace=namespace)
    boots = made(cluster, namespace, "boots")["metadata"]["uid"]
    until(lambda: history.of(boots) == MADE, 30)
    try:
        worker.reboot()
        until(lambda: not any(is_ready(p) for p in cluster.pods(namespace)), 45)
        after = {p["metadata"]["uid"]: p for p in cluster.wait_ready(namespace, 4)}
        assert set(after) == {*before, boots}
        for uid, lab in before.items():
            assert lab_id(cluster, after[uid]) == lab
            assert container(after[uid])["restartCount"] == 1
            assert last_end(after[uid])["reason"] == "DeviceStopped"
            assert "h0, h1 stopped on the worker" in last_end(after[uid])["message"]
        for uid in after:
            assert history.of(uid) == [*MADE, "start"], uid
        assert [entry for entry in history.entries() if entry["lab"] == foreign and "title" not in entry] == []
    finally:
        worker.cml("DELETE", f"/labs/{foreign}")


def test_lab_that_somebody_deleted_follows_the_restart_policy(cluster: Cluster, namespace: str, name: str) -> None:
    """There is no work left to save: it is imported again, under Never the lablet has failed."""
    worker = cluster.workers[0]
    history = History(worker)
    cluster.define(definition(name))
    put = [pod(policy.lower(), name, restartPolicy=policy, nodeSelector=on(worker)) for policy in POLICIES]
    cluster.apply(*put, namespace=namespace)
    pods = {p["metadata"]["name"]: p for p in cluster.wait_ready(namespace, 3)}
    labs = {policy: lab_id(cluster, found) for policy, found in pods.items()}
    for lab in labs.values():
        worker.cml("PUT", f"/labs/{lab}/stop")
        worker.cml("PUT", f"/labs/{lab}/wipe")
        worker.cml("DELETE", f"/labs/{lab}")
    wait_failed(cluster, namespace, "never", "LabLost")
    for policy in ("always", "onfailure"):
        now = wait_restarted(cluster, namespace, policy, 1)
        assert lab_id(cluster, now) not in labs.values()
        assert now["metadata"]["annotations"]["vkprovider.io/lab-id"] == lab_id(cluster, now)
        assert last_end(now)["reason"] == "LabLost"
        assert "deleted on the worker by another client" in last_end(now)["message"]
        assert history.of(now["metadata"]["uid"]).count("import") == 2
        until(lambda policy=policy: "LabLost" in {e["reason"] for e in cluster.events(namespace, policy)}, 15)  # type: ignore[misc]
    assert history.of(pods["never"]["metadata"]["uid"]).count("import") == 1


def test_lab_that_somebody_stopped_is_started_as_it_was(cluster: Cluster, namespace: str, name: str) -> None:
    """Under every policy: what was worked on is still on its disks. One that was wiped too is not imported again."""
    worker = cluster.workers[1]
    history = History(worker)
    cluster.define(definition(name))
    put = [pod(policy.lower(), name, restartPolicy=policy, nodeSelector=on(worker)) for policy in POLICIES]
    cluster.apply(*put, pod("wiped", name, nodeSelector=on(worker)), namespace=namespace)
    pods = {p["metadata"]["name"]: p for p in cluster.wait_ready(namespace, 4)}
    labs = {which: lab_id(cluster, found) for which, found in pods.items()}
    worker.cml("PUT", f"/labs/{labs['wiped']}/stop")
    worker.cml("PUT", f"/labs/{labs['wiped']}/wipe")
    for which in POLICIES:
        worker.cml("PUT", f"/labs/{labs[which.lower()]}/stop")
    for which, lab in labs.items():
        now = wait_restarted(cluster, namespace, which, 1)
        assert lab_id(cluster, now) == lab
        theirs = ["stop", "wipe"] if which == "wiped" else ["stop"]
        assert history.of(now["metadata"]["uid"]) == [*MADE, *theirs, "start"]


@pytest.mark.timeout(240)
def test_lab_that_never_boots_follows_the_restart_policy(cluster: Cluster, namespace: str, name: str) -> None:
    """It is stopped, wiped and started afresh with a back-off, or ends; it never was Ready, so nothing can be lost."""
    worker = cluster.workers[0]
    history = History(worker)
    cluster.define(definition(name, topology({"h0": "alpine", "r1": "csr1000v"})))
    put = [pod(policy.lower(), name, restartPolicy=policy, nodeSelector=on(worker)) for policy in POLICIES]
    cluster.apply(*put, namespace=namespace)
    uids = {p["metadata"]["name"]: p["metadata"]["uid"] for p in cluster.pods(namespace)}
    until(lambda: all(history.of(uid) == MADE for uid in uids.values()), 45)
    labs = {policy: (worker.lab_of(uid) or {})["id"] for policy, uid in uids.items()}
    now = until(lambda: waiting_reason(p := made(cluster, namespace, "always")) == "CrashLoopBackOff" and p, 90)
    assert now
    assert (now["status"]["phase"], is_ready(now)) == ("Pending", False)
    wait_failed(cluster, namespace, "never", "LabStartTimeout")
    assert history.of(uids["never"]) == [*MADE, *TAKEN_DOWN]
    for policy in ("always", "onfailure"):
        until(lambda uid=uids[policy]: history.of(uid)[:5] == [*MADE, "stop", "wipe", "start"], 90)  # type: ignore[misc]
        now = made(cluster, namespace, policy)
        assert lab_id(cluster, now) == labs[policy]
        assert (now["status"]["phase"], is_ready(now)) == ("Pending", False)
        assert (container(now)["restartCount"], last_end(now)["reason"]) == (1, "LabStartTimeout")
        assert "not booted 20 s after the start: r1" in last_end(now)["message"]
    cluster.kubectl("delete", "pod", *uids, "--timeout=20s", f"--namespace={namespace}")
    assert {uid for uid in uids.values() if worker.lab_of(uid)} == set()


@pytest.mark.timeout(240)
def test_device_that_boots_late_is_waited_for(cluster: Cluster, limited: Extra, namespace: str) -> None:
    """Each start has its own time; a recovered lab that needs too long is kept, and Ready when it boots after all."""
    worker = limited.simulator
    history = History(worker)
    cluster.define(definition("late", topology({"r1": "iosv", "r2": "iosv"}), environment=limited.name))
    cluster.apply(pod("late", "late"), namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1, within_s=90)
    uid = ready["metadata"]["uid"]
    assert history.of(uid) == MADE
    [lab] = [lab["id"] for lab in worker.labs()]
    worker.crash(lab, "r2")
    wait_restarted(cluster, namespace, "late", 1)
    assert history.of(uid) == [*MADE, "start"]

    worker.admin("POST", "/licence", {"quota": 1})
    worker.crash(lab, "r1")
    until(lambda: waiting_reason(made(cluster, namespace, "late")) == "LabQueued", 90)
    until(lambda: waiting_reason(made(cluster, namespace, "late")) == "NeedsAttention", 90)
    told = message(made(cluster, namespace, "late"))
    for words in ("not booted 20 s after the start: r1", "node licences", "is kept as it is"):
        assert words in told
    worker.admin("POST", "/licence", {"quota": 2})
    wait_restarted(cluster, namespace, "late", 2)
    assert history.of(uid) == [*MADE, "start", "start"]


def test_deadline_passes_while_the_lab_boots(cluster: Cluster, namespace: str, name: str) -> None:
    worker = cluster.workers[1]
    history = History(worker)
    cluster.define(definition(name, topology({"r1": "csr1000v"})))
    cluster.apply(pod("brief", name, activeDeadlineSeconds=6, nodeSelector=on(worker)), namespace=namespace)
    uid = made(cluster, namespace, "brief")["metadata"]["uid"]
    until(lambda: waiting_reason(cluster.pod(namespace, "brief")) == "StartingNodes", 30)
    ended = wait_failed(cluster, namespace, "brief", "DeadlineExceeded")
    assert "activeDeadlineSeconds of 6" in container(ended)["state"]["terminated"]["message"]
    assert history.of(uid) == [*MADE, *TAKEN_DOWN]


def test_deadline_may_be_lowered(cluster: Cluster, namespace: str, name: str) -> None:
    """Kubernetes lets nobody raise it."""
    cluster.define(definition(name))
    cluster.apply(pod("cut-short", name, activeDeadlineSeconds=3600), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    lower = '{"spec": {"activeDeadlineSeconds": 1}}'
    cluster.kubectl("patch", "pod", "cut-short", f"--namespace={namespace}", "-p", lower)
    ended = wait_failed(cluster, namespace, "cut-short", "DeadlineExceeded")
    assert "activeDeadlineSeconds of 1" in container(ended)["state"]["terminated"]["message"]


@pytest.mark.parametrize("outcome", ["Succeeded", "Failed"])
def test_cleaning_up_comes_before_a_terminal_phase(cluster: Cluster, namespace: str, name: str, outcome: str) -> None:
    """A terminal phase frees the worker at once: it is not written while CML still refuses to take the lab down."""
    worker = cluster.workers[2]
    history = History(worker)
    cluster.define(definition(name))
    deadline_s = 5 if outcome == "Failed" else None
    cluster.apply(pod("ending", name, nodeSelector=on(worker), activeDeadlineSeconds=deadline_s), namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    uid = ready["metadata"]["uid"]
    worker.fault("status", "^PUT .*/stop$", status=500)
    if outcome == "Succeeded":
        cluster.kubectl(
            "annotate", "pod", "ending", "vkprovider.io/desired-state=TERMINATED", f"--namespace={namespace}"
        )

    def cleaning() -> bool:
        now = made(cluster, namespace, "ending")
        assert (now["status"]["phase"], is_ready(now), waiting_reason(now)) == ("Running", False, "CleaningUp")
        return True

    until(cleaning, 60)
    until(lambda: len(history.refused()) >= 2, 60, "the refused stop is not tried again")
    cleaning()
    assert worker.lab_of(uid)
    worker.clear_faults()
    if outcome == "Failed":
        wait_failed(cluster, namespace, "ending", "DeadlineExceeded")
    else:
        until(lambda: made(cluster, namespace, "ending")["status"]["phase"] == "Succeeded", 90)
        assert worker.lab_of(uid) is None
    assert history.of(uid) == [*MADE, *TAKEN_DOWN]


def test_lab_that_cml_queues_boots_when_a_licence_is_free(cluster: Cluster, limited: Extra, namespace: str) -> None:
    """Somebody else uses the licences that the worker's capacity promised: the lablet says so and waits."""
    worker = limited.simulator
    history = History(worker)
    cluster.define(definition("queued", topology({"h0": "alpine", "h1": "alpine"}), environment=limited.name))
    cluster.apply(pod("first", "queued"), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    cluster.apply(pod("second", "queued"), namespace=namespace)
    uid = made(cluster, namespace, "second")["metadata"]["uid"]
    until(lambda: waiting_reason(cluster.pod(namespace, "second")) == "LabQueued", 45)
    told = message(made(cluster, namespace, "second"))
    assert "h0, h1" in told
    assert "node licences" in told
    cluster.kubectl("delete", "pod", "first", f"--namespace={namespace}")
    [ready] = cluster.wait_ready(namespace, 1)
    assert ready["metadata"]["uid"] == uid
    assert history.of(uid) == MADE


def test_compute_host_that_is_away_starts_nothing_again(cluster: Cluster, limited: Extra, namespace: str) -> None:
    """CML brings the devices back by itself; nothing had stopped."""
    worker = limited.simulator
    history = History(worker)
    cluster.define(definition("away", environment=limited.name))
    cluster.apply(pod("away", "away"), namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    worker.admin("POST", "/compute", {"connected": False})
    until(lambda: waiting_reason(cluster.pod(namespace, "away")) == "ComputeDisconnected", 30)
    assert "the compute host of h0 is away" in message(made(cluster, namespace, "away"))
    worker.admin("POST", "/compute", {"connected": True})
    wait_restarted(cluster, namespace, "away", 0)
    assert history.of(ready["metadata"]["uid"]) == MADE


def test_refusals_of_cml_are_outlasted(cluster: Cluster, namespace: str, name: str) -> None:
    """R004-033: 500 to start, stop, wipe and delete is said and tried again, not in vain; each is done once."""
    worker = cluster.workers[0]
    history = History(worker)
    cluster.define(definition(name))
    worker.fault("status", "^PUT .*/start$", status=500, count=2)
    cluster.apply(pod("patient", name, nodeSelector=on(worker)), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "patient")) == "WorkerError", 30)
    assert "/start: 500" in message(made(cluster, namespace, "patient"))
    [ready] = cluster.wait_ready(namespace, 1)
    uid = ready["metadata"]["uid"]
    assert container(ready)["restartCount"] == 0
    for route in ("^PUT .*/stop$", "^PUT .*/wipe$", "^DELETE "):
        worker.fault("status", route, status=500, count=3 if "stop" in route else 2)
    cluster.kubectl("delete", "pod", "patient", "--wait=false", f"--namespace={namespace}")
    until(lambda: "/stop: 500" in message(made(cluster, namespace, "patient")), 30)
    assert waiting_reason(made(cluster, namespace, "patient")) == "CleaningUp"
    cluster.wait_gone(namespace, within_s=120)
    assert history.of(uid) == [*MADE, *TAKEN_DOWN]
    assert history.refused() == ["start"] * 2 + ["stop"] * 3 + ["wipe"] * 2 + ["DELETE"] * 2


def test_forced_deletion_while_starting_leaves_no_lab(cluster: Cluster, namespace: str, name: str) -> None:
    """One lab boots; of another the start is still being carried out."""
    first, second = cluster.workers[1], cluster.workers[2]
    history = History(first, second)
    cluster.define(definition(name, topology({"r1": "iosv"})))
    second.fault("delay", "/start$", delay_s=3)
    cluster.apply(
        pod("boots", name, nodeSelector=on(first)), pod("starts", name, nodeSelector=on(second)), namespace=namespace
    )
    uids = [made(cluster, namespace, which)["metadata"]["uid"] for which in ("boots", "starts")]
    until(lambda: history.of(uids[0]) == MADE, 30)
    until(lambda: history.of(uids[1]) == ["import"], 30)
    cluster.kubectl("delete", "pod", "boots", "starts", "--force", "--grace-period=0", f"--namespace={namespace}")
    assert cluster.pods(namespace) == []
    for uid in uids:
        until(lambda uid=uid: history.of(uid) == [*MADE, *TAKEN_DOWN], 60, "the lab stays")  # type: ignore[misc]
    for worker in (first, second):
        path = f"/api/v1/namespaces/vkprovider-system/configmaps/{worker.name}-port-allocations"
        until(lambda path=path: not any(uid in str((cluster.get(path) or {})["data"]) for uid in uids), 45)  # type: ignore[misc]


def test_deletion_of_lablets_in_the_making_while_the_worker_is_down(
    cluster: Cluster, namespace: str, name: str
) -> None:
    """The whole controller goes down: the Pods stay Terminating and say why; their labs go when it is back."""
    worker = cluster.workers[2]
    history = History(worker)
    slow = f"slow-{namespace[-5:]}"
    cluster.define(definition(name), definition(slow, topology({"r1": "iosv"})))
    cluster.apply(pod("boots", slow, nodeSelector=on(worker)), namespace=namespace)
    boots = made(cluster, namespace, "boots")["metadata"]["uid"]
    until(lambda: history.of(boots) == MADE, 30)
    worker.fault("lost_answer", "/import$", count=1)
    cluster.apply(pod("lost", name, nodeSelector=on(worker)), namespace=namespace)
    lost = made(cluster, namespace, "lost")["metadata"]["uid"]
    until(lambda: worker.lab_of(lost), 30)
    cluster.sandbox.kill(worker.process)
    until(lambda: condition(cluster.node(worker), "Ready")["status"] == "False", 90)
    cluster.kubectl("delete", "pod", "boots", "lost", "--wait=false", f"--namespace={namespace}")
    for which in ("boots", "lost"):
        until(lambda which=which: waiting_reason(made(cluster, namespace, which)) == "CleaningUp", 45)  # type: ignore[misc]
        now = made(cluster, namespace, which)
        assert now["metadata"]["deletionTimestamp"]
        assert "as soon as the worker answers" in message(now)
    throughout(lambda: len(cluster.pods(namespace)) == 2, 2)
    cluster.sandbox.start(worker.process)
    cluster.wait_gone(namespace, within_s=90)
    assert {uid for uid in (boots, lost) if worker.lab_of(uid)} == set()

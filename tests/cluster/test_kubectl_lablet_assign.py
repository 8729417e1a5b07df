"""`kubectl lablet assign`: a warm lablet becomes one learner's, out of reach of its pool's controllers, and returns."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from tests.cluster.test_lablets_life import done, made, on
from tests.support.cluster import Cluster, container, is_ready
from tests.support.plugin import lablet, succeeded
from tests.support.topologies import definition, deployment, pod
from tests.support.waiting import throughout, until
from vkpsandbox.controlplane.content import NAMESPACE

POOL = "vkprovider.io/pool"
USER = "vkprovider.io/username"
LENT_BY = "vkprovider.io/lent-by"


def pool(cluster: Cluster, namespace: str, replicas: int, *, labelled: bool = True) -> str:
    """Have a Deployment of warm lablets, which selects by the pool's label."""
    name = f"warm-{namespace[-5:]}"
    cluster.define(definition(name))
    item = deployment(name, name, replicas)
    if labelled:
        item["spec"]["selector"]["matchLabels"][POOL] = name
        item["spec"]["template"]["metadata"]["labels"][POOL] = name
    cluster.apply(item, namespace=namespace)
    cluster.wait_ready(namespace, replicas)
    return name


def at_once(cluster: Cluster, calls: Sequence[tuple[str, ...]]) -> list[CompletedProcess[str]]:
    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(lambda call: lablet(cluster, *call), calls))


def users(cluster: Cluster, namespace: str) -> dict[str, str]:
    """Name the learners' Pods."""
    pods = [p for p in cluster.pods(namespace) if "deletionTimestamp" not in p["metadata"]]
    notes = {p["metadata"]["name"]: p["metadata"].get("annotations", {}) for p in pods}
    return {name: found[USER] for name, found in notes.items() if USER in found}


def test_two_who_want_one_pod(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition(f"one-{namespace[-5:]}"))
    cluster.apply(pod("only", f"one-{namespace[-5:]}"), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    results = at_once(cluster, [("assign", "only", user, "-n", namespace) for user in ("alice", "bob")])
    assert sorted(result.returncode for result in results) == [0, 1], results
    [winner] = [result.stdout.split()[3] for result in results if not result.returncode]
    [loser] = [result.stderr for result in results if result.returncode]
    assert f"pod/only is assigned to {winner}" in loser
    assert users(cluster, namespace) == {"only": winner}


def test_three_who_want_one_of_a_pool_each(cluster: Cluster, namespace: str) -> None:
    """Three different Pods; the pool has three warm ones again."""
    name = pool(cluster, namespace, 3)
    learners = ("alice", "bob", "carol")
    calls = [("assign", f"deployment/{name}", user, "--until=1h", "-n", namespace) for user in learners]
    results = at_once(cluster, calls)
    assert [result.returncode for result in results] == [0, 0, 0], results
    assert [result.stderr for result in results] == ["", "", ""]
    given = {
        result.stdout.split()[0].removeprefix("pod/"): user for result, user in zip(results, learners, strict=True)
    }
    assert len(given) == 3
    assert users(cluster, namespace) == given
    cluster.wait_ready(namespace, 6)
    cluster.wait_ready(namespace, 3, f"{POOL}={name}")
    for pod_name in given:
        now = made(cluster, namespace, pod_name)
        assert POOL not in now["metadata"]["labels"]
        assert now["metadata"]["annotations"][LENT_BY] == name
        assert not now["metadata"].get("ownerReferences"), "its ReplicaSet has let it go"


def test_scale_down_and_rollout_spare_a_learner(cluster: Cluster, namespace: str) -> None:
    name = pool(cluster, namespace, 2)
    taken = succeeded(cluster, "assign", f"deploy/{name}", "alice", "-n", namespace).split()[0].removeprefix("pod/")
    before = made(cluster, namespace, taken)
    worker = cluster.simulator_of(before)
    cluster.wait_ready(namespace, 3)
    cluster.kubectl("rollout", "restart", f"deployment/{name}", f"--namespace={namespace}")
    cluster.kubectl("rollout", "status", f"deployment/{name}", f"--namespace={namespace}", "--timeout=60s")
    until(lambda: len(cluster.pods(namespace)) == 3, 60, "the old replicas stay")
    cluster.kubectl("scale", f"deployment/{name}", "--replicas=0", f"--namespace={namespace}")
    until(lambda: [p["metadata"]["name"] for p in cluster.pods(namespace)] == [taken], 60, "the warm ones stay")
    throughout(lambda: is_ready(cluster.pod(namespace, taken)), 1)
    after = made(cluster, namespace, taken)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert worker.lab_of(after["metadata"]["uid"])
    none = lablet(cluster, "assign", f"deployment/{name}", "bob", "-n", namespace)
    assert none.returncode == 1
    assert none.stderr.startswith(f"Error: deployment/{name} has no lablets: its replicas are 0; ")


def test_pool_without_the_label_gives_up_others_first(cluster: Cluster, namespace: str) -> None:
    """The second best: `pod-deletion-cost`, and a warning that says what it does not do."""
    name = pool(cluster, namespace, 3, labelled=False)
    result = lablet(cluster, "assign", f"deployment/{name}", "alice", "-n", namespace)
    assert result.returncode == 0
    assert f"does not select by the label {POOL}: a rollout can end this lablet" in result.stderr
    taken = result.stdout.split()[0].removeprefix("pod/")
    cluster.kubectl("scale", f"deployment/{name}", "--replicas=1", f"--namespace={namespace}")
    until(lambda: [p["metadata"]["name"] for p in cluster.pods(namespace)] == [taken], 60)
    none = lablet(cluster, "assign", f"deployment/{name}", "bob", "-n", namespace)
    assert f"{name} has no free lablet: {taken} is assigned to alice" in none.stderr


def test_lent_lablet_comes_back_warm(cluster: Cluster, namespace: str) -> None:
    """The end of the slot clears the learner; the lab is another one before the pool has it again."""
    worker, name = cluster.workers[0], f"lent-{namespace[-5:]}"
    cluster.define(definition(name))
    item: dict[str, Any] = pod("lent", name, nodeSelector=on(worker))
    item["metadata"]["labels"] = {POOL: "evening"}
    cluster.apply(item, namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    since, lab = worker.last_request(), cluster.lab_of(ready)
    said = succeeded(cluster, "assign", "lent", "alice", "--until=4s", "-n", namespace)
    assert said.startswith("pod/lent assigned to alice until 20")
    assert POOL not in made(cluster, namespace, "lent")["metadata"].get("labels", {})  # 1.36 and later add some

    def back() -> dict[str, Any]:
        now = made(cluster, namespace, "lent")
        assert now["metadata"]["labels"].get(POOL) == "evening"
        return now

    now = until(back, 90)
    assert now["metadata"]["uid"] == ready["metadata"]["uid"]
    notes = now["metadata"]["annotations"]
    assert [key for key in notes if key in {USER, LENT_BY} or "timeslot" in key or "desired" in key] == []
    until(lambda: is_ready(cluster.pod(namespace, "lent")), 30)
    assert done(worker, since) == ["extract", "stop", "wipe", "DELETE", "import", "start"]
    assert (cluster.lab_of(now) or {})["id"] != (lab or {})["id"]
    reasons = {event["reason"] for event in cluster.events(namespace, "lent")}
    assert {"TimeslotEnded", "Collected", "BackToPool"} <= reasons
    assert not reasons & {"Recovering", "BackOff"}, "nothing has failed"
    assert container(cluster.pod(namespace, "lent"))["restartCount"] == 0
    succeeded(cluster, "assign", "lent", "bob", "-n", namespace)
    assert users(cluster, namespace) == {"lent": "bob"}
    said = succeeded(cluster, "collect", "lent", "--yes", "-n", namespace, "--wait")
    assert "goes back to its pool" in said
    kept = cluster.items(f"/api/v1/namespaces/{NAMESPACE}/configmaps?labelSelector=vkprovider.io/component=configs")
    mine = [item for item in kept if item["metadata"]["annotations"]["vkprovider.io/pod"] == f"{namespace}/lent"]
    names = sorted(item["metadata"]["name"].removeprefix("left-") for item in mine)
    shown = [succeeded(cluster, "configs", name, "-n", namespace, "-o", "json") for name in names]
    learners = [json.loads(left)["username"] for left in shown]
    assert learners == ["bob", "alice"], "what the earlier one left is there as well"


def test_a_class_from_a_list(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """Two instructors at once, whose lists overlap: each learner gets one that was warm, and the pool gets smaller."""
    name, learners = pool(cluster, namespace, 7), [f"learner{number}" for number in range(6)]
    before = {p["metadata"]["uid"] for p in cluster.pods(namespace)}
    calls = []
    for number, part in enumerate((learners[:4], learners[2:])):
        path = tmp_path / f"{number}.txt"
        path.write_text("\n".join(part))
        calls.append(("assign", f"deployment/{name}", "--from-file", str(path), "--until=2h", "-n", namespace))
    results = at_once(cluster, calls)
    assert [result.returncode for result in results] == [0, 0], results
    given = users(cluster, namespace)
    assert sorted(given.values()) == learners
    for result, part in zip(results, (learners[:4], learners[2:]), strict=True):
        rows = [line.split() for line in result.stdout.splitlines()[1:]]
        assert {row[-1]: row[0] for row in rows} == {pod: user for pod, user in given.items() if user in part}

    def one_is_left() -> bool:
        found = json.loads(cluster.kubectl("get", "deployment", name, f"--namespace={namespace}", "-o", "json").stdout)
        return bool(found["spec"]["replicas"] == found["status"].get("replicas") == 1)

    until(one_is_left, 60, "the pool has not one free lablet")
    until(lambda: len(cluster.pods(namespace)) == 7, 60, "those that were made meanwhile are not gone")
    assert {made(cluster, namespace, pod_name)["metadata"]["uid"] for pod_name in given} <= before, "warm ones"
    succeeded(cluster, *calls[0])
    assert users(cluster, namespace) == given, "who has one keeps it"

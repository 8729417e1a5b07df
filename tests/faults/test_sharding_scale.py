"""A hundred nodes and five replicas: joining, leaving, and a Lease that is stolen again and again (R004-035…039)."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.replicas import LEASES, Replicas, since_ready
from tests.support.topologies import definition, deployment
from tests.support.waiting import until
from vkpsandbox import Sandbox

WORKERS, REPLICAS, THEFTS = 100, 5, 100
SPARE_MOVES = 2
LABLETS = 200
BALANCED_S = 30.0


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Five replicas, a hundred workers of the null backend."""
    made = Sandbox.up(
        "scale",
        directory=tmp_path_factory.mktemp("scale"),
        workers=WORKERS,
        replicas=REPLICAS,
        backend="null",
        worker_spec={"capacity": {"cpu": "8", "memory": "16Gi", "labs": 10, "labNodes": 20}},
        tied=True,
    )
    with made:
        yield made


def epochs(replicas: Replicas) -> int:
    """Sum up the epochs of all nodes: it grows by one with every node that is taken."""
    return sum(spec["leaseTransitions"] or 0 for spec in replicas.leases().values())


def balanced_after_s(replicas: Replicas) -> float:
    """Wait until every replica has its share; give the seconds that it took."""
    began = time.monotonic()
    until(replicas.is_balanced, BALANCED_S, "there is no balance")
    return time.monotonic() - began


def test_leaving_and_joining_move_no_more_than_they_must(cluster: Cluster, replicas: Replicas) -> None:
    cluster.define(definition("scale"))
    cluster.apply(deployment("scale", "scale", LABLETS))
    cluster.delete_later("deployment", "scale")
    ready = since_ready(cluster.wait_ready("default", LABLETS, within_s=180))
    share, took = WORKERS // REPLICAS, []
    for process in replicas.processes:
        before = epochs(replicas)
        leaver = replicas.identity(process)
        assert len(replicas.nodes_of(leaver)) == share
        replicas.sandbox.stop(process, grace_s=20)
        took.append(balanced_after_s(replicas))
        assert leaver not in replicas.members()
        assert share <= epochs(replicas) - before <= share + SPARE_MOVES
        before = epochs(replicas)
        replicas.sandbox.start(process)
        took.append(balanced_after_s(replicas))
        assert share <= epochs(replicas) - before <= share + SPARE_MOVES
        replicas.all_nodes_ready()
    sys.stdout.write(f"balanced after {max(took):.1f} s at most\n")
    assert max(took) <= BALANCED_S
    assert since_ready(cluster.wait_ready("default", LABLETS)) == ready, "a lablet was not Ready for a while"


def test_lease_stolen_again_and_again_leaks_nothing(cluster: Cluster, replicas: Replicas) -> None:
    cluster.wait_gone("default")  # the lablets of the test before are tasks, too
    path = f"{LEASES}/vnode.worker-1"
    kept: list[tuple[int, int, int]] = []
    for number in range(THEFTS):
        spec = (cluster.get(path) or {})["spec"]
        theft = {"holderIdentity": f"thief-{number}", "leaseTransitions": spec["leaseTransitions"] + 1}
        cluster.patch(path, {"spec": theft})
        until(lambda: "thief" not in replicas.owners()["vnode.worker-1"], 45, "it is not regained")
        if number in {THEFTS // 5, THEFTS - 1}:
            kept.append((memory_kb(replicas), descriptors(replicas), tasks(replicas)))
    until(replicas.is_balanced, 90)
    replicas.all_nodes_ready()
    assert {status.restarts for status in replicas.sandbox.processes() if status.name.startswith("provider-")} == {0}
    (memory_then, files_then, tasks_then), (memory_now, files_now, tasks_now) = kept
    sys.stdout.write(
        f"{THEFTS} thefts, of which the last {THEFTS * 4 // 5} left {memory_now - memory_then} kB, "
        f"{files_now - files_then} descriptors, {tasks_now - tasks_then} tasks in {REPLICAS} replicas\n"
    )
    assert memory_now - memory_then < 2048 * REPLICAS
    assert files_now - files_then <= REPLICAS
    assert abs(tasks_now - tasks_then) <= 2 * REPLICAS, "turns that are just in hand, no more"


def pids(replicas: Replicas) -> list[int]:
    """Give the process ids of all replicas."""
    return [pid for name in replicas.processes if (pid := replicas.sandbox.process(name).pid)]


def memory_kb(replicas: Replicas) -> int:
    """Add up what the replicas have resident."""
    lines = [line for pid in pids(replicas) for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def tasks(replicas: Replicas) -> int:
    """Count the tasks in the event loops of the replicas."""
    return sum(int(replicas.metric(process, "vkprovider_tasks")) for process in replicas.processes)


def descriptors(replicas: Replicas) -> int:
    """Count the open files and sockets of the replicas."""
    return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids(replicas))

"""A thousand nodes and three replicas: one is killed, its nodes are taken, and none turns NotReady (R004-024…039)."""

import sys
import time
from collections.abc import Iterator

import pytest

from tests.support.cluster import Cluster, condition
from tests.support.replicas import Replicas
from tests.support.waiting import until
from vkpsandbox import Sandbox

WORKERS, REPLICAS, KILLS = 1000, 3, 3
TAKEN_S = 15.0


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Three replicas, a thousand workers of the null backend."""
    with Sandbox.up(
        "thousand",
        directory=tmp_path_factory.mktemp("thousand"),
        workers=WORKERS,
        replicas=REPLICAS,
        backend="null",
        worker_spec={"capacity": {"cpu": "8", "memory": "16Gi", "labs": 10, "labNodes": 20}},
        tied=True,
    ) as made:
        yield made


def turned(cluster: Cluster) -> dict[str, str]:
    """Tell since when every node has been Ready, or not."""
    return {n["metadata"]["name"]: condition(n, "Ready")["lastTransitionTime"] for n in cluster.items("/api/v1/nodes")}


def test_a_third_of_a_thousand_nodes_is_taken_over_in_time(cluster: Cluster, replicas: Replicas) -> None:
    before, took = turned(cluster), []
    for process in replicas.processes[:KILLS]:
        victim = replicas.identity(process)
        assert len(replicas.nodes_of(victim)) >= WORKERS // REPLICAS - 1
        began = time.monotonic()
        cluster.sandbox.kill(process)
        until(lambda victim=victim: not replicas.nodes_of(victim), 60, f"nodes of {victim} are not taken")  # type: ignore[misc]
        took.append(round(time.monotonic() - began, 1))
        cluster.sandbox.start(process)
        until(replicas.is_balanced, 90, "there is no balance")
        replicas.all_nodes_ready()
    sys.stdout.write(f"{WORKERS} nodes: taken over after {took} s\n")
    assert turned(cluster) == before, "a node was not Ready for a while"
    assert max(took) <= TAKEN_S

"""A thousand nodes and three replicas: one is killed, its nodes are taken, and none turns NotReady (R004-024…039)."""

from collections.abc import Iterator

import pytest

from tests.support.replicas import Replicas
from tests.support.waiting import until
from vkpsandbox import Sandbox

WORKERS, REPLICAS = 1000, 3
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


def test_a_third_of_a_thousand_nodes_is_taken_over_in_time(replicas: Replicas) -> None:
    before = replicas.nodes_turned()
    for process in replicas.processes:
        assert len(replicas.nodes_of(replicas.identity(process))) >= WORKERS // REPLICAS - 1
        assert replicas.kill(process, TAKEN_S) <= TAKEN_S
        until(replicas.is_balanced, 90, "the shares stay uneven")
        replicas.all_nodes_ready()
    assert replicas.nodes_turned() == before, "a node was not Ready for a while"

"""Three replicas whose wall clocks are ten minutes apart: all write the API server's time (R004-030, C04)."""

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from tests.support.clocks import wrong_by
from tests.support.cluster import Cluster
from tests.support.replicas import MEMBERS, SKEW, Replicas, since_ready
from tests.support.topologies import definition, deployment
from tests.support.waiting import until
from vkpsandbox import Sandbox

WORKERS, LABLETS = 6, 24
WRONG_S, CLEARLY_S = 300, 240
TOLD_S = 10
"""How far the time on a Lease may be behind."""
WATCHED_S = 75
"""Longer than the 50 s after which the stock controller thinks a node dead."""
RIGHT, AHEAD, BEHIND = "provider-1", "provider-2", "provider-3"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Six simulated workers; three replicas, one with the right time, one five minutes ahead, one behind."""
    settings = [wrong_by(WRONG_S), wrong_by(-WRONG_S)]
    with Sandbox.up("clocks", directory=tmp_path_factory.mktemp("clocks"), workers=WORKERS, tied=True) as made:
        for number, env in enumerate(settings, 2):
            Replicas(Cluster(made)).add(number, env)
        yield made


def off_s(replicas: Replicas, process: str) -> float:
    """Tell how far a replica's wall clock is off, by what it writes about itself."""
    identity = replicas.identity(process)
    [spec] = [m["spec"] for m in replicas.cluster.items(MEMBERS) if m["spec"]["holderIdentity"] == identity]
    return datetime.fromisoformat(spec["renewTime"]).timestamp() - time.time()


def stays(replicas: Replicas, epochs: dict[str, tuple[str, int]]) -> None:
    """Assert for longer than any patience that nobody takes a node and none turns NotReady."""
    deadline = time.monotonic() + WATCHED_S
    while time.monotonic() < deadline:
        replicas.all_nodes_ready()
        assert replicas.epochs() == epochs
        time.sleep(1)


def test_wrong_clocks_make_nobody_steal_and_no_node_not_ready(cluster: Cluster, replicas: Replicas) -> None:
    cluster.define(definition("clocks"))
    cluster.apply(deployment("clocks", "clocks", LABLETS))
    cluster.delete_later("deployment", "clocks")
    ready = since_ready(cluster.wait_ready("default", LABLETS, within_s=180))
    until(lambda: replicas.all_ready_in_claims(set(ready)), 45)
    assert replicas.metric(AHEAD, SKEW) > CLEARLY_S
    assert replicas.metric(BEHIND, SKEW) < -CLEARLY_S
    assert all(abs(off_s(replicas, process)) < TOLD_S for process in (RIGHT, AHEAD, BEHIND))
    stays(replicas, replicas.epochs())

    replicas.sandbox.stop(RIGHT, grace_s=20)
    until(replicas.is_balanced, 90)
    ahead, behind = replicas.identity(AHEAD), replicas.identity(BEHIND)
    taken = replicas.nodes_of(ahead)
    replicas.sandbox.kill(AHEAD)
    until(lambda: replicas.nodes_of(behind) == set(replicas.owners()), 45, "its nodes are not taken")
    assert all(abs(off_of_lease_s(replicas, node)) < TOLD_S for node in taken), "its time is on no Lease"
    stays(replicas, replicas.epochs())
    assert since_ready(cluster.wait_ready("default", LABLETS)) == ready, "a lablet was not Ready for a while"
    replicas.once_each()


def off_of_lease_s(replicas: Replicas, node: str) -> float:
    """Tell how far the time on a node's Lease is off."""
    return datetime.fromisoformat(replicas.leases()[node]["renewTime"]).timestamp() - time.time()

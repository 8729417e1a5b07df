"""Hundreds of edits of what says whose lablet it is, by users who may patch Pods, while replicas are killed.

`HOSTILE_SEED` repeats a run; the seed is printed.
"""

import os
import random
import time
from collections.abc import Iterator

import pytest

from tests.support.cluster import Cluster
from tests.support.lds import LdsSide
from tests.support.learners import Observer, Tenant
from tests.support.topologies import definition, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox

EDITS = 600
LABLETS = 5
KILL_EVERY = 120
CHECK_EVERY = 15


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Two workers whose hosts boot at once, two replicas, and an LDS."""
    directory = tmp_path_factory.mktemp("hostile")
    worker = ("--boot-seconds=0.2-0.5",)
    with Sandbox.up(
        "hostile", directory=directory, workers=2, replicas=2, lds=True, worker_args=[worker, worker], tied=True
    ) as made:
        yield made


@pytest.mark.timeout(600)
def test_no_learner_sees_anothers_session_or_lab(cluster: Cluster, lds: LdsSide, namespace: str) -> None:
    seed = int(os.environ.get("HOSTILE_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
    print(f"HOSTILE_SEED={seed} make faults ONLY=hostile plays the same edits")  # noqa: T201 (to repeat it)
    cluster.define(definition("hostile", topology({"h0": "alpine"}, {"h0": ["serial:5001"]})))
    began = time.monotonic()
    tenant, observer = Tenant(cluster, namespace, "hostile", LABLETS, random.Random(seed)), Observer(cluster, lds)
    cluster.wait_ready(namespace, LABLETS, within_s=180)
    for number in range(1, EDITS + 1):
        tenant.step()
        time.sleep(tenant.dice.choice([0.0, 0.0, 0.05, 0.3]))
        if number % CHECK_EVERY == 0:
            observer.check_now()
        if number % KILL_EVERY == 0:
            replica = tenant.dice.choice(["provider-1", "provider-2"])
            cluster.sandbox.kill(replica)
            cluster.sandbox.start(replica)
    until(lambda: observer.is_settled(namespace), 120)
    observer.check_now()
    pairs, sessions = observer.check_history(), lds.sessions()
    restored = [
        event["count"]
        for event in cluster.items(f"/api/v1/namespaces/{namespace}/events")
        if event["reason"] == "UsernameRestored"
    ]
    assert sessions, "a run without sessions shows nothing"
    assert restored, "no edit was put back"
    print(  # noqa: T201 (the scenario's figures)
        f"{len(tenant.edits)} edits in {time.monotonic() - began:.0f} s: {len(sessions)} sessions, {pairs} handed on "
        f"in a pool, {sum(restored)} names put back"
    )

"""An API server that is full or overloaded for longer than a Lease lasts: the replica is fenced, then works again."""

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import when


@pytest.mark.parametrize(
    ("pattern", "status", "message"),
    [
        ("^(POST|PUT|PATCH|DELETE)", 500, "etcdserver: mvcc: database space exceeded"),
        ("", 429, "too many requests, please try again later"),
    ],
    ids=["etcd-is-full", "storm-of-429"],
)
async def test_ownership_and_informers_recover(world: World, pattern: str, status: int, message: str) -> None:
    running = await world.replica(LEADER_LEASE_TTL="3")
    worker, definition = await world.worker(), await world.define()
    before = await world.lease(worker, lambda spec: spec.get("holderIdentity") == running.name)
    fault = running.api.fault(pattern, status=status, message=message, count=None, headers={"Retry-After": "0"})
    running.api.end_watches()
    await when(lambda: running.replica.ownership.is_fenced, "fenced")
    lablet = await world.pod(definition, worker)
    await when(lambda: fault.met >= 3, "requests are refused, and asked again")
    running.api.heal()
    await lablet.ready()
    after = await world.lease(worker, lambda spec: spec.get("holderIdentity") == running.name)
    assert after.get("leaseTransitions", 0) == before.get("leaseTransitions", 0), "no other replica was there"

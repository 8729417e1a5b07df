"""What a mux remembers survives GitOps, kills and other hands (R003-019, 020, 029, 033-045, 060)."""

import asyncio
import json
from collections.abc import Awaitable

import pytest

from tests.component.controllers.looking import eventually, when
from tests.component.mux.harness import PREFIX, Json, MuxWorld
from tests.support.faultyapi import Asked
from vkprovider.mux.pure.facts import Owner


def store_path(world: MuxWorld, name: str = "mux-port-allocations") -> str:
    return f"/api/v1/namespaces/{world.edge}/configmaps/{name}"


def document(world: MuxWorld, **fields: object) -> str:
    return json.dumps({"schemaVersion": 1, "mux": {"namespace": world.edge, "name": "mux"}, **fields})


def row(world: MuxWorld, service: str, port: int) -> Json:
    return {
        "namespace": world.team,
        "service": service,
        "portName": "http",
        "protocol": "TCP",
        "channelPort": 80,
        "muxPort": port,
        "port": port,
        "source": "auto",
    }


def config_map(world: MuxWorld, text: str, owner: str = "") -> Json:
    return {
        "metadata": {
            "name": "mux-port-allocations",
            "annotations": {f"{PREFIX}/mux": owner or f"{world.edge}/mux"},
            "labels": {"app.kubernetes.io/name": "svc-lb-mux", "app.kubernetes.io/component": "mux-state"},
        },
        "data": {"allocations.json": text},
    }


async def test_a_mux_that_gitops_applies_again_without_ports_keeps_every_number(world: MuxWorld) -> None:
    await world.replica()
    made = await world.mux()
    for name in ("b", "a", "c"):  # not in the order of names
        await world.channel(name, "http:auto")
        await eventually(lambda name=name: world.told(name), f"{name} has a port")  # type: ignore[misc]
    before = await world.ports()
    assert len(before) == 3
    found = await world.admin.get(world.path("mux"))
    assert found is not None
    found["spec"]["ports"] = made["spec"]["ports"]
    found["metadata"]["annotations"] = made["metadata"]["annotations"]
    await world.admin.replace(world.path("mux"), found)
    await world.until_ports(20000, 20001, 20002)
    assert await world.ports() == before


async def test_a_store_without_claims_is_migrated_and_its_numbers_kept(world: MuxWorld) -> None:
    text = document(world, allocations=[{k: v for k, v in row(world, "api", 20042).items() if k != "source"}])
    await world.admin.create(store_path(world, ""), config_map(world, text))
    await world.mux()
    await world.channel("api", "http:auto")
    await world.channel("aaa", "http:auto")
    await world.replica()
    await world.until_ports(20000, 20042)
    await world.until_told("api", "http:80->20042")
    store = await world.store()
    assert store is not None
    written = json.loads(store["data"]["allocations.json"])
    assert [each["port"] for each in written["portClaims"]] == [20000, 20042]
    assert store["metadata"]["labels"] == {
        "app.kubernetes.io/name": "svc-lb-mux",
        "app.kubernetes.io/component": "mux-state",
    }


@pytest.mark.parametrize("fault", ["damaged", "stolen", "another in its annotation"])
async def test_a_store_that_cannot_be_used_stops_the_pass_and_changes_nothing(world: MuxWorld, fault: str) -> None:
    await world.replica(DAEMON_QUEUE_TIMEOUT="0.5")
    await world.mux()
    await world.channel("api", "http:auto")
    await world.until_told("api", "http:80->20000")
    good = await world.store()
    assert good is not None
    changes: dict[str, Json] = {
        "damaged": {"data": {"allocations.json": "{"}},
        "stolen": {"data": {"allocations.json": document(world).replace('"mux"}', '"other"}')}},
        "another in its annotation": {"metadata": {"annotations": {f"{PREFIX}/mux": "else/where"}}},
    }
    await world.admin.patch(store_path(world), changes[fault])
    await world.until_event("PortAllocationStoreInvalid", "mux")
    await world.channel("late", "http:auto")
    await world.admin.patch(world.path("mux"), {"metadata": {"labels": {"touched": "yes"}}})
    await world.until_event("PortAllocationStoreInvalid", "mux")
    assert set(await world.ports()) == {(20000, "TCP")}
    assert (await world.forwards())[20000, "TCP"] == {"10.1.0.10:8080"}
    restored = {"data": good["data"], "metadata": {"annotations": good["metadata"]["annotations"]}}
    await world.admin.patch(store_path(world), restored)
    await world.until_ports(20000, 20001)


async def test_two_muxes_cannot_share_a_store(world: MuxWorld) -> None:
    await world.replica()
    await world.mux("mux-a", allocation_configmap="shared")
    await world.channel("api", "http:auto", mux=f"{PREFIX}/mux-a.{world.edge}")
    await world.until_told("api", "http:80->20000")
    await world.mux("mux-b", allocation_configmap="shared")
    await world.until_event("PortAllocationStoreInvalid", "mux-b")
    assert await world.rows("shared") == {f"{world.team}/api/http": 20000}


async def test_a_lost_store_is_made_again_from_what_the_cluster_shows(world: MuxWorld) -> None:
    first = await world.replica()
    await world.mux()
    await world.channel("b", "http:auto")
    await world.until_told("b", "http:80->20000")
    await first.stop()
    await world.admin.delete(store_path(world))
    await world.channel("a", "http:auto")
    await world.replica()
    await world.until_ports(20000, 20001)
    assert await world.rows() == {f"{world.team}/a/http": 20001, f"{world.team}/b/http": 20000}


async def test_a_forged_report_takes_no_port(world: MuxWorld) -> None:
    await world.replica()
    await world.mux()
    await world.channel("api", "http:auto")
    await world.until_told("api", "http:80->20000")
    await world.channel("thief", "http:auto", annotations={f"{PREFIX}/ports": "http:80->20000"})
    await world.until_told("thief", "http:80->20001")
    await world.until_told("api", "http:80->20000")
    await world.annotate(world.path("thief"), ports="http:80->20000")
    await world.annotate(world.path("thief"), external_ports="http:auto,")
    await world.until_event("InvalidPortMapping", "thief")
    assert await world.rows() == {f"{world.team}/api/http": 20000, f"{world.team}/thief/http": 20001}


@pytest.mark.timeout(240)  # fourteen replicas, one after the other, each of which takes over from a dead one
async def test_killed_after_any_write_it_goes_on_and_no_port_has_two_owners(world: MuxWorld) -> None:
    """After each kill another replica goes on; what was given stays, and whatever forwards is its owner's."""
    await world.mux()
    await world.address("203.0.113.10")
    for name in ("a", "b", "c"):
        await world.channel(name, "http:auto", backends=(f"10.1.0.{ord(name)}",))
    given: dict[str, int] = {}
    for writes in range(14):
        running = await world.replica(LEADER_LEASE_TTL="3")
        budget = Budget(writes)
        running.api.fault("^(POST|PATCH|DELETE) (?!.*(leases|events))", count=None, first=budget)
        await when(lambda: budget.held or running.replica.memory.seen, "it is stuck, or done")  # noqa: B023 (awaited here)
        rows = await world.rows()
        assert rows.items() >= given.items(), f"after {writes} writes"
        assert len(set(rows.values())) == len(rows)
        given |= rows
        for (number, _), name in (await world.ports()).items():
            if number != 101:
                [owner] = [key for key, port in rows.items() if port == number]
                assert name == Owner(world.team, owner.split("/")[1]).mux_port_name("http")
        await running.crash()
    await world.replica(LEADER_LEASE_TTL="3")
    await world.until_ports(*given.values())
    await world.until_forwards({port: {f"10.1.0.{ord(key.split('/')[1])}:8080"} for key, port in given.items()})


class Budget:
    """Lets so many requests pass, and holds the others for ever."""

    def __init__(self, writes: int) -> None:
        self._left = writes
        self.held = 0

    def __call__(self, _: Asked) -> Awaitable[object] | None:
        self._left -= 1
        if self._left >= 0:
            return None
        self.held += 1
        return asyncio.Event().wait()

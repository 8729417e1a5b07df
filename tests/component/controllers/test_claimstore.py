"""The claim store against an API server: what it holds, what it writes, and what it does when others write too."""

import asyncio
import base64
from random import Random
from typing import Any, Literal

import msgspec
import pytest

from tests.component.controllers.claimdocument import ClaimDocument
from tests.component.controllers.parts import claim_store, context
from tests.support.apiserver import CONFIG_MAPS, Admin
from tests.unit.labs import builders
from vkprovider.labs.pure.claims import document
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.claims.document import StoredClaims
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError, OutsideError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.objects import ConfigMap
from vkprovider.platform.ports import store as portstore
from vkprovider.platform.ports.allocator import TCP, UDP, PortBounds, RequestedPort
from vkprovider.platform.runtime.context import Context

HERE = PortBounds(100, 109)


@pytest.fixture
def server(claims: ClaimDocument) -> ClaimDocument:
    """The document that the stores of these tests share."""
    return claims


@pytest.fixture
def ctx(real_kube: KubeClient) -> Context:
    return context(real_kube)


class Writer:
    """A store, and what it told."""

    def __init__(self, ctx: Context, turns: asyncio.Semaphore | None = None) -> None:
        self.told: list[set[str]] = []
        self.held: list[set[str]] = []
        self.store = claim_store(ctx, saved=lambda u: self.told.append(set(u)), turns=turns, hold=self.hold)

    async def hold(self) -> None:
        self.held.append(set(self.store.claims))

    async def load(self) -> "Writer":
        await self.store.load()
        if not self.store.complete:
            self.store.recover(())  # the worker has no labs
        return self

    def begin(self, uid: str, *names: str, lazy: bool = False) -> dict[str, int]:
        wanted = [RequestedPort(name, UDP if name.startswith("udp") else TCP) for name in names]
        ports = self.store.allocate(wanted, HERE, per_instance_max=5, rest_s=60, pod_uid=uid)
        udp = tuple(slot.name for slot in wanted if slot.protocol == UDP)
        self.store.put(Claim(uid, "team", f"pod-{uid}", "netlab", "d", "1", "x", ports=ports, udp=udp), lazy=lazy)
        return ports

    async def flush(self) -> None:
        while await self.store.flush(hurry=True) is not None:
            pass

    @property
    def fault(self) -> str:
        return "" if self.store.fault is None else self.store.fault.reason


@pytest.fixture
async def one(ctx: Context) -> Writer:
    return await Writer(ctx).load()


@pytest.fixture
async def two(ctx: Context, one: Writer) -> Writer:
    """Another one that knows what the first one has begun."""
    one.begin("0", "old")
    await one.flush()
    one.told.clear()
    return await Writer(ctx).load()


async def rows(server: ClaimDocument) -> set[tuple[str, str, int]]:
    return {(row["service"], row["protocol"], row["port"]) for row in (await server.read())["portClaims"]}


async def test_ports_are_held_at_once_and_freed_with_the_row(one: Writer) -> None:
    """R000-053, R000-054, R000-066."""
    assert one.begin("1", "a", "b") == {"a": 100, "b": 101}
    assert one.begin("2", "a", "udp") == {"a": 102, "udp": 100}
    one.store.drop("1")
    one.store.drop("1")
    assert one.begin("3", "a") == {"a": 100}
    assert {key: holder.owner for key, holder in one.store.ports.holders.items()} == {
        (TCP, 102): "2",
        (UDP, 100): "2",
        (TCP, 100): "3",
    }


async def test_ports_survive_a_restart(ctx: Context, one: Writer, server: ClaimDocument) -> None:
    """R000-067."""
    one.begin("1", "a", "udp")
    one.begin("2", "a")
    await one.flush()
    assert server.writes == 1
    again = await Writer(ctx).load()
    assert again.store.claims == one.store.claims
    assert again.store.ports == one.store.ports
    assert await rows(server) == {("pod-1", TCP, 100), ("pod-1", UDP, 100), ("pod-2", TCP, 101)}


class Turns(asyncio.Semaphore):
    """A single turn; tells when one is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def acquire(self) -> Literal[True]:
        self.asked.set()
        return await super().acquire()


async def test_rows_join_the_write_that_waits_for_its_turn(ctx: Context, server: ClaimDocument) -> None:
    """The slower the API server, the more lablets share a write."""
    turns = Turns()
    one = await Writer(ctx, turns).load()
    async with turns:
        turns.asked.clear()
        one.begin("1", "a")
        writing = asyncio.create_task(one.flush())
        await turns.asked.wait()
        one.begin("2", "a")
        assert server.writes == 0
    await writing
    assert server.writes == 1
    assert one.told == [{"1", "2"}]
    assert await rows(server) == {("pod-1", TCP, 100), ("pod-2", TCP, 101)}


async def test_a_lablet_that_does_not_fit_holds_nothing(one: Writer) -> None:
    """R000-061."""
    one.begin("1", *"abcde")
    one.begin("2", *"abcd")
    with pytest.raises(InputError, match="worker w1: needs 2 TCP ports; free in 100-109: 1") as caught:
        one.begin("3", "a", "b")
    assert caught.value.reason == "PortRangeFull"
    with pytest.raises(InputError, match="worker w1: needs 6 external ports") as caught:
        one.begin("3", *"abcdef")
    assert caught.value.reason == "TooManyPorts"
    assert len(one.store.ports) == 9
    assert "3" not in one.store.claims


async def test_a_row_with_somebody_elses_port_is_refused(one: Writer) -> None:
    one.begin("1", "a", "b")
    one.begin("2", "a")
    before, held = dict(one.store.claims), dict(one.store.ports.holders)
    for wrong in (
        msgspec.structs.replace(one.store.claims["2"], ports={"x": 109, "a": 100}),
        msgspec.structs.replace(one.store.claims["2"], pod_uid="3", ports={"a": 101}),
    ):
        with pytest.raises(InputError, match="is held by 1") as caught:
            one.store.put(wrong)
        assert caught.value.reason == "PortConflict"
        assert (one.store.claims, one.store.ports.holders) == (before, held)


async def test_a_lablet_keeps_the_ports_that_it_has(one: Writer) -> None:
    """R003-029."""
    one.begin("1", "a", "b")
    one.begin("2", "a")
    assert one.begin("1", "new", "b", "a") == {"new": 103, "b": 101, "a": 100}
    assert one.begin("1", "b") == {"b": 101}
    assert len(one.store.ports) == 2


async def test_rows_of_others_hold_their_ports_and_stay(ctx: Context, one: Writer, server: ClaimDocument) -> None:
    """R003-030."""
    one.begin("1", "a")
    await one.flush()
    row = {"namespace": "app", "service": "api", "portName": "p", "protocol": "TCP", "port": 101, "why": "by hand"}
    document = await server.read()
    await server.write({**document, "portClaims": [*document["portClaims"], row]})
    again = await Writer(ctx).load()
    assert again.begin("2", "a") == {"a": 102}
    await again.flush()
    assert row in (await server.read())["portClaims"]
    assert await rows(server) == {("pod-1", TCP, 100), ("pod-2", TCP, 102)} | {("api", TCP, 101)}


async def test_ports_whose_row_was_lost_are_the_lablets_when_it_has_one_again(
    ctx: Context, one: Writer, server: ClaimDocument
) -> None:
    one.begin("1", "a", "b")
    await one.flush()
    await server.write({**await server.read(), "lablets": []})
    again = await Writer(ctx).load()
    assert again.begin("2", "a") == {"a": 102}, "nobody knows whether the lab is there"
    assert again.begin("1", "c", "b") == {"c": 100, "b": 101}
    await again.flush()
    assert await rows(server) == {("pod-1", TCP, 100), ("pod-1", TCP, 101), ("pod-2", TCP, 102)}
    assert (await Writer(ctx).load()).store.ports == again.store.ports


# ------------------------------------------------------------------------------------------------ two writers


async def test_rows_of_two_writers_come_together(one: Writer, two: Writer, server: ClaimDocument) -> None:
    one.begin("1", "a")
    await one.flush()
    two.begin("2", "udp")
    await two.flush()
    assert await rows(server) == {("pod-0", TCP, 100), ("pod-1", TCP, 101), ("pod-2", UDP, 100)}
    assert set(two.store.claims) == {"0", "1", "2"}
    assert two.begin("3", "a") == {"a": 102}


async def test_an_unsaved_port_gives_way_and_is_allocated_anew(one: Writer, two: Writer, server: ClaimDocument) -> None:
    """R003-020: the row that gave way is told, so that the lablet is claimed again."""
    assert one.begin("1", "a") == two.begin("2", "a") == {"a": 101}
    two.begin("3", "udp")
    await one.flush()
    await two.flush()
    assert two.told == [{"2"}, {"3"}]
    assert "2" not in two.store.claims
    assert two.store.saved("2")
    assert two.begin("2", "a") == {"a": 102}
    await two.flush()
    assert two.told[-1] == {"2"}
    assert await rows(server) == {
        ("pod-0", TCP, 100),
        ("pod-1", TCP, 101),
        ("pod-2", TCP, 102),
        ("pod-3", UDP, 100),
    }


async def test_a_lablet_that_both_begin_is_his_who_saved_it(one: Writer, two: Writer, server: ClaimDocument) -> None:
    one.begin("1", "a", "b")
    one.store.put(msgspec.structs.replace(one.store.claims["1"], lab_id="lab-1"))
    two.begin("1", "b")
    await one.flush()
    await two.flush()
    assert two.told == [{"1"}]
    assert two.store.claims == one.store.claims
    assert two.store.ports == one.store.ports
    assert server.writes == 2, "there was nothing left to write"


async def test_a_saved_port_that_somebody_else_has_is_a_fault(
    ctx: Context, one: Writer, two: Writer, server: ClaimDocument
) -> None:
    """C26: nothing is written and nothing is lost until somebody has repaired it."""
    one.store.drop("0")
    one.begin("1", "a")
    await one.flush()
    text = await server.text()
    two.begin("2", "a")
    for _ in range(2):
        with pytest.raises(InputError, match="remove the row of the one that has no lab"):
            await two.flush()
        assert two.fault == "ClaimStoreInvalid"
        assert set(two.store.claims) == {"0", "2"}
        assert await server.text() == text
    again = await Writer(ctx).load()
    again.store.drop("1")
    await again.flush()
    await two.flush()
    assert two.fault == ""
    assert await rows(server) == {("pod-0", TCP, 100), ("pod-2", TCP, 101)}


@pytest.mark.usefixtures("server")
async def test_first_row_that_joins_a_waiting_write_waits_until_its_worker_is_held(ctx: Context) -> None:
    turns = asyncio.Semaphore(1)
    one = await Writer(ctx, turns).load()
    one.begin("1", "a")
    await one.flush()
    one.store.drop("1")
    async with turns:
        writing = asyncio.create_task(one.flush())
        await asyncio.sleep(0.05)
        one.begin("2", "a")
    await writing
    assert one.held == [{"1"}, {"2"}]


async def test_an_answer_that_was_lost_costs_nothing(one: Writer, server: ClaimDocument) -> None:
    server.lose_an_answer()
    one.begin("1", "a")
    with pytest.raises(OutsideError):
        await one.flush()
    assert not one.store.saved("1")
    one.begin("2", "a")
    await one.flush()
    assert one.told == [{"1", "2"}]
    assert await rows(server) == {("pod-1", TCP, 100), ("pod-2", TCP, 101)}


async def test_a_dropped_row_gives_its_port_to_the_next(one: Writer, two: Writer, server: ClaimDocument) -> None:
    one.begin("1", "a")
    await one.flush()
    two.store.drop("0")
    assert two.begin("2", "a") == {"a": 100}
    await two.flush()
    assert await rows(server) == {("pod-1", TCP, 101), ("pod-2", TCP, 100)}


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found["data"].update({"allocations.json": "{"}),
        lambda found: found["metadata"]["annotations"].clear(),
        lambda found: found["data"].clear(),
    ],
)
async def test_a_damaged_object_is_never_written_over(one: Writer, server: ClaimDocument, change: Any) -> None:
    """R003-039, R003-040."""
    one.begin("1", "a")
    await one.flush()
    good, found = await server.found(), await server.found()
    assert good is not None
    change(found)
    await server.change(found or {})
    damaged = await server.found()
    one.begin("2", "a")
    for _ in range(2):
        with pytest.raises(InputError) as caught:
            await one.flush()
        assert caught.value.reason == "ClaimStoreInvalid"
        assert one.store.fault is caught.value
        assert await server.found() == damaged
    await server.change(good)
    await one.flush()
    assert one.store.fault is None
    assert await rows(server) == {("pod-1", TCP, 100), ("pod-2", TCP, 101)}


async def test_an_object_that_was_deleted_is_written_anew(one: Writer, server: ClaimDocument) -> None:
    one.begin("1", "a")
    await one.flush()
    await server.remove()
    one.begin("2", "a")
    await one.flush()
    assert await rows(server) == {("pod-1", TCP, 100), ("pod-2", TCP, 101)}


async def test_the_index_of_sessions_follows_the_rows(ctx: Context, one: Writer) -> None:
    def name(uid: str, session: str | None) -> None:
        claim = one.store.claims[uid]
        named = Session("lds", "key", "alice", id=session) if session is not None else None
        one.store.put(msgspec.structs.replace(claim, session=named))

    one.begin("1", "a")
    one.begin("2", "a")
    name("1", "")  # asked for, not made yet
    assert one.store.sessions == {}
    name("1", "s-1")
    name("2", "s-2")
    assert one.store.sessions == {"s-1": "1", "s-2": "2"}
    name("1", "s-3")
    assert one.store.sessions == {"s-3": "1", "s-2": "2"}
    name("2", None)
    assert one.store.sessions == {"s-3": "1"}
    await one.flush()
    assert (await Writer(ctx).load()).store.sessions == {"s-3": "1"}
    one.store.drop("1")
    assert one.store.sessions == {}


# ------------------------------------------------------------------------------------------ lost, and too many


async def test_without_a_config_map_the_claims_are_not_complete_and_nothing_is_written(
    ctx: Context, server: ClaimDocument
) -> None:
    if await server.found() is not None:
        await server.remove()
    writer = Writer(ctx)
    await writer.store.load()
    assert not writer.store.complete
    writer.begin("1", "a")
    await writer.flush()
    assert server.writes == 0
    writer.store.recover([Claim("2", "team", "pod-2", "netlab", "d", "1", "x", lab_id="lab-2", ports={"a": 105})])
    await writer.flush()
    assert await rows(server) == {("pod-1", TCP, 100), ("pod-2", TCP, 105)}
    again = Writer(ctx)
    await again.store.load()
    assert again.store.complete


async def test_rows_that_do_not_fit_are_refused_alone(ctx: Context, one: Writer, server: ClaimDocument) -> None:
    """One tenant's rows fill the store; those of another, new or changed, are written all the same."""
    one.begin("1", "a")
    await one.flush()
    dice = Random(15)
    greedy = {str(number) for number in range(10, 17)}
    for uid in sorted(greedy):
        noise = base64.b64encode(dice.randbytes(190_000)).decode()
        one.store.put(Claim(uid, "greedy", f"pod-{uid}", "netlab", "d", "1", "x", outcome_message=noise))
    one.begin("2", "a")
    one.store.put(msgspec.structs.replace(one.store.claims["1"], closing_reason="SessionEnded"))
    one.told.clear()
    writes = server.writes
    await one.flush()
    assert server.writes == writes + 1
    again = (await Writer(ctx).load()).store
    assert again.claims["1"].closing_reason == "SessionEnded"
    assert "2" in again.claims
    assert one.fault == ""
    assert 0 < len(one.store.refused) < len(greedy)
    assert all(refused.reason == "ClaimStoreFull" for refused in one.store.refused.values())
    assert again.claims.keys() == one.store.claims.keys()
    assert one.store.refused.keys().isdisjoint(one.store.claims)
    assert set().union(*one.told) == greedy | {"1", "2"}
    one.store.drop("2")
    assert not one.store.refused, "there is room again"


# ------------------------------------------------------------------------------------------ how much fits


async def stored(admin: Admin, name: str, content: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Have the API server store a ConfigMap, and return what it stored."""
    metadata = {"name": name, "annotations": {wellknown.ANNOTATION_INSTALLATION: "inst"}}
    await admin.create(CONFIG_MAPS, {"metadata": metadata, **content})
    return await admin.get(f"{CONFIG_MAPS}/{name}") or {}


async def test_ten_thousand_lablets_with_a_port_fit(admin: Admin) -> None:
    """C25."""
    many = StoredClaims(builders.many_claims(10_001))
    data, binary = document.write(many, worker="w1", installation="inst")
    found = await stored(admin, "w1-port-allocations", {"data": data, "binaryData": binary})
    assert document.read(msgspec.convert(found, ConfigMap), worker="w1", installation="inst") == many


async def test_the_largest_object_that_we_write_fits(admin: Admin) -> None:
    noise = base64.b64encode(Random(1).randbytes(portstore.OBJECT_BYTES_MAX)).decode()
    found = await stored(admin, "largest", {"binaryData": {portstore.GZIP_KEY: noise}})
    assert found["binaryData"] == {portstore.GZIP_KEY: noise}

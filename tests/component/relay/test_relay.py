"""R003, the relay: a real HAProxy whose ports follow a mux of a real API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.apiserver import until
from tests.support.relay import Dialled, MuxObjects, RelaySide, device, dial, who


async def leads(port: int, wanted: str, source: str = "127.0.0.1") -> None:
    """Wait until a port answers with a device's name, or with nothing."""

    async def look() -> bool:
        return await who(port, source) == wanted

    await until(look)


@asynccontextmanager
async def alice_led(side: RelaySide, mux: MuxObjects) -> AsyncIterator[int]:
    """Start both programs, and lead the first port to a device of alice until the end of the block; yield the port."""
    first, _ = side.ports
    side.start("haproxy", "relay")
    async with device("r1") as r1:
        await mux.create({"a": first})
        await mux.lead("alice", {"a": r1})
        await leads(first, "r1")
        yield first


@asynccontextmanager
async def two_at_work(side: RelaySide, mux: MuxObjects) -> AsyncIterator[tuple[Dialled, Dialled, int]]:
    """Start both programs, lead the ports `a` of alice to r1 and `b` of bob to r2, and dial both.

    A third port `c` leads nowhere. Yield alice's session, bob's, and the port of r1.
    """
    first, _ = side.ports
    side.start("haproxy", "relay")
    async with device("r1") as r1, device("r2") as r2:
        await mux.create({"a": first, "b": first + 1, "c": first + 2})
        await mux.lead("alice", {"a": r1})
        await mux.lead("bob", {"b": r2})
        await leads(first, "r1")
        await leads(first + 1, "r2")
        yield await dial(first), await dial(first + 1), r1


async def sweep(side: RelaySide) -> dict[int, str]:
    """Dial every port of the range; return those that answer, with the names."""
    first, last = side.ports
    found = {}
    for port in range(first, last + 1):
        if name := await who(port):
            found[port] = name
    return found


async def test_a_port_answers_with_its_device_and_every_other_is_reset(side: RelaySide, mux: MuxObjects) -> None:
    first, last = side.ports
    side.start("haproxy", "relay")
    async with device("r1") as r1, device("r2") as r2:
        await mux.create({"a": first, "b": first + 1, "none": first + 2, "z": last})
        await mux.lead("alice", {"a": r1, "z": r2})
        await mux.lead("bob", {"b": r2})
        await leads(first + 1, "r2")
        assert await sweep(side) == {first: "r1", first + 1: "r2", last: "r2"}
        await mux.lead("alice", {"a": r1})
        await leads(last, "")
        assert await sweep(side) == {first: "r1", first + 1: "r2"}


async def test_only_sources_of_the_mux_may_connect(side: RelaySide, mux: MuxObjects) -> None:
    first, _ = side.ports
    side.start("haproxy", "relay")
    async with device("r1") as r1:
        await mux.create({"a": first}, ranges=("127.0.0.1/32",))
        await mux.lead("alice", {"a": r1})
        await leads(first, "r1", "127.0.0.1")
        assert await who(first, "127.0.0.2") == ""
        session = await dial(first, "127.0.0.1")
        await mux.allow("127.0.0.2/32")
        await leads(first, "r1", "127.0.0.2")
        assert await who(first, "127.0.0.1") == ""
        assert await session.alive(), "who was admitted stays"
        await mux.allow()
        await leads(first, "r1", "127.0.0.1")
        assert await who(first, "127.0.0.2") == "r1"
        session.close()


async def test_sessions_end_with_their_lablet_and_no_others(side: RelaySide, mux: MuxObjects) -> None:
    first, _ = side.ports
    async with device("r3") as r3, two_at_work(side, mux) as (alice, bob, _):
        await asyncio.sleep(3)  # the looks of the start are over
        await mux.withdraw("alice")
        await alice.ended()
        assert await who(first) == ""
        assert await bob.alive()
        await mux.lead("bob", {"b": r3})
        await bob.ended()
        await leads(first + 1, "r3")


async def test_a_device_that_is_not_ready_keeps_its_sessions(side: RelaySide, mux: MuxObjects) -> None:
    first, _ = side.ports
    async with two_at_work(side, mux) as (alice, bob, r1):
        await mux.lead("alice", {"a": r1}, ready=False)
        await leads(first, "")
        await mux.withdraw("bob")
        await bob.ended()  # so sessions were looked at
        assert await alice.alive()
        await mux.lead("alice", {"a": r1})
        await leads(first, "r1")
        assert await alice.alive()
        alice.close()


async def test_a_killed_relay_touches_no_session_and_the_next_one_ends_what_ended(
    side: RelaySide, mux: MuxObjects
) -> None:
    first, _ = side.ports
    async with two_at_work(side, mux) as (alice, bob, r1):
        side.kill("relay")
        await mux.withdraw("alice")
        await mux.lead("carol", {"c": r1})
        assert await alice.alive()
        assert await bob.alive()
        assert await who(first + 1) == "r2", "HAProxy accepts as before"
        side.start("relay")
        await alice.ended(within_s=60)  # a process starts first
        await leads(first + 2, "r1")
        assert await bob.alive()
        assert await sweep(side) == {first + 1: "r2", first + 2: "r1"}
        bob.close()


async def test_haproxy_accepts_nothing_before_it_is_filled(side: RelaySide, mux: MuxObjects) -> None:
    first, _ = side.ports
    async with device("r1") as r1:
        await mux.create({"a": first})
        await mux.lead("alice", {"a": r1})
        side.start("haproxy")
        await until(side.status)
        assert await side.status() == 503
        assert await sweep(side) == {}
        side.start("relay")
        await side.ready()
        assert await who(first) == "r1", "filled before it says so"
        for _ in range(3):
            side.kill("haproxy")
            side.start("haproxy")
            await side.ready(within_s=20)  # seen at once, not by the look every 30 s
            assert await who(first) == "r1"


async def test_a_port_that_is_filled_before_the_others_waits_for_them(side: RelaySide) -> None:
    first, _ = side.ports
    side.start("haproxy")
    await until(side.status)
    async with device("r1") as r1:
        await side.tell(f"add map ports.map {first} {r1}@127.0.0.1", "add acl sources.acl 0.0.0.0/0")
        assert await who(first) == ""
        await side.tell("add map gate.map filled 1")
        assert await who(first) == "r1"


async def test_without_its_service_a_mux_is_closed(side: RelaySide, mux: MuxObjects) -> None:
    async with alice_led(side, mux) as first:
        alice = await dial(first)
        await mux.delete()
        await alice.ended()
        assert await sweep(side) == {}


async def test_what_cannot_be_read_is_not_empty(side: RelaySide, mux: MuxObjects, tmp_path: Path) -> None:
    async with alice_led(side, mux) as first:
        alice = await dial(first)
        side.kill("relay")
        blind = tmp_path / "blind"
        blind.write_text(side.kubeconfig.read_text().replace("token: ", "token: x"))
        blind.chmod(0o600)
        side.kubeconfig = blind
        side.start("relay")

        async def refused() -> bool:
            return side.log("relay").count("cannot follow") >= 4

        await until(refused)
        assert await alice.alive()
        assert await who(first) == "r1"
        alice.close()


async def test_a_port_that_haproxy_does_not_listen_on_is_named(side: RelaySide, mux: MuxObjects) -> None:
    first, last = side.ports
    side.start("haproxy", "relay")
    async with device("r1") as r1:
        await mux.create({"a": first, "far": last + 7})
        await mux.lead("alice", {"a": r1, "far": r1})
        await leads(first, "r1")

    async def named() -> bool:
        return f"[{last + 7}]" in side.log("relay")

    await until(named)


async def test_hundreds_of_ports_fill_in_several_lines(side: RelaySide, mux: MuxObjects) -> None:
    first, last = side.ports
    side.start("haproxy", "relay")
    async with device("r1") as r1:
        ports = {f"p{number}": number for number in range(last, last - 1500, -1)}
        await mux.create(ports)
        names = list(ports)
        for start in range(0, len(names), 100):
            await mux.lead(f"lablet-{start}", dict.fromkeys(names[start : start + 100], r1))
        await leads(last, "r1")
        await until_swept(side, dict.fromkeys(range(first, last + 1), "r1"))


async def until_swept(side: RelaySide, wanted: dict[int, str]) -> None:
    async def look() -> bool:
        return await sweep(side) == wanted

    await until(look)

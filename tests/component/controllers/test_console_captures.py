"""`kubectl exec POD -c lab -- capture r1:…`: packets of a link, by real CML calls, as a file that tcpdump reads."""

import asyncio
import shutil
import subprocess
import time

import pytest

from tests.component.controllers.consolesite import Site
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.support.terminals import Terminal
from vkprovider.labs.controllers.console import captures
from vkprovider.labs.kubelet.spi import Exit
from vkprovider.platform.errors import InputError, Unavailable
from vkpsim.cml.world.model import Link
from vkpsim.http.faults import Fault

LAB = """\
lab: {version: 0.3.0, title: t}
nodes:
- id: n0
  label: r1
  node_definition: iosv
  x: 0
  y: 0
  interfaces:
  - {id: i0, label: GigabitEthernet0/0, slot: 0, type: physical}
  - {id: i1, label: GigabitEthernet0/1, slot: 1, type: physical}
- id: n1
  label: r2
  node_definition: iosv
  x: 0
  y: 0
  interfaces: [{id: i0, label: GigabitEthernet0/0, slot: 0, type: physical}]
- id: n2
  label: r3
  node_definition: iosv
  x: 0
  y: 0
  interfaces: [{id: i0, label: GigabitEthernet0/0, slot: 0, type: physical}]
links:
- {id: l0, n1: n0, i1: i0, n2: n1, i2: i0}
- {id: l1, n1: n0, i1: i1, n2: n2, i2: i0}
"""
LINK = "r1:GigabitEthernet0/0 - r2:GigabitEthernet0/0"


class Reader(Terminal):
    """A session of `kubectl exec` whose output is bytes."""

    def __init__(self) -> None:
        super().__init__(tty=False, stdin=False)
        self.got = bytearray()

    async def write(self, data: bytes) -> None:
        self.got += data


class StuckReader(Reader):
    """One that reads nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def write(self, data: bytes) -> None:  # noqa: ARG002 (nobody reads it)
        self.asked.set()
        await asyncio.Event().wait()


async def site_of(world: World, *, boot_s: float = 0.0) -> Site:
    simulator, running = await world.simulator(boot_seconds=(boot_s, boot_s)), await world.replica()
    worker = await world.worker(simulator.url)
    lablet = await world.pod(await world.define(LAB), worker, devices=["r1", "r2", "r3"], typed=True)
    if not boot_s:
        await lablet.ready()
    await lablet.claim(lambda row: row.get("started" if boot_s else "readyAt"))
    return Site(world, running, simulator, worker, lablet)


def begin(site: Site, *words: str, reader: Reader | None = None) -> tuple[Reader, "asyncio.Task[Exit]"]:
    reader = Reader() if reader is None else reader
    return reader, asyncio.create_task(site.devices.execute(site.target("lab"), ["capture", *words], reader))


async def refused(site: Site, *words: str) -> str:
    with pytest.raises(InputError) as refusal:
        await site.run("lab", "capture", *words)
    return f"{refusal.value.reason}: {refusal.value.message}"


async def printed(site: Site, *words: str) -> str:
    status, person = await site.run("lab", "capture", *words)
    assert status == Exit(0), person.out
    return person.out


def links(site: Site) -> list[Link]:
    [lab] = site.simulator.simulation.world.labs.values()
    return list(lab.links.values())


def tcpdump(data: bytes) -> list[str]:
    """Return the lines of tcpdump for a file; it refuses one that is damaged or cut."""
    program = shutil.which("tcpdump", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin:/sbin")
    if program is None:
        pytest.skip("tcpdump is not installed")
    done = subprocess.run([program, "-n", "-r", "-"], input=data, capture_output=True, check=True, timeout=60)  # noqa: S603 (a program of the system)
    assert b"truncated" not in done.stderr, done.stderr
    return done.stdout.decode().splitlines()


async def test_packets_come_while_they_are_captured_each_once_up_to_the_limit(world: World) -> None:
    site = await site_of(world)
    reader, session = begin(site, "r1:gi0/0", "--packets=6", "--filter=icmp or arp")

    async def some() -> bool:
        return len(reader.got) > 24

    await eventually(some, "the first packet")
    assert not session.done()
    assert f"{LINK}: " in await printed(site, "list")
    busy = await refused(site, "r1-r3")
    assert busy.startswith(f"CaptureRuns: packets of {LINK} are captured in the lab of {site.lablet.name} already")
    assert await session == Exit(0)
    assert f"capturing {LINK}, until there are 6 packets or 60 s\n" in reader.err
    assert "6 packets captured: it has reached its limit" in reader.err
    lines = tcpdump(bytes(reader.got))
    assert ["ARP" in line for line in lines] == [True, True, False, False, True, True]
    assert len(set(lines)) == 6, "each once"
    assert await printed(site) == f"{LINK}\nr1:GigabitEthernet0/1 - r3:GigabitEthernet0/0\n"


async def test_who_stops_it_and_who_leaves_end_it_at_cml(world: World) -> None:
    site = await site_of(world)
    reader, session = begin(site, "r1-r3")
    await reader.shows("until there are 1000 packets or 60 s")
    assert await printed(site, "stop") == "The capture is stopped.\n"
    assert await session == Exit(0)
    assert "captured: it was stopped" in reader.err
    tcpdump(bytes(reader.got))
    reader, session = begin(site, "r2:g0/0")
    await reader.shows("capturing")
    reader.leave()
    await session
    assert [link.capture.stopped_at is not None for link in links(site) if link.capture] == [True, True]
    assert (await refused(site, "stop")).startswith("NothingToDo: no packets are captured in the lab")


async def test_what_a_killed_replica_left_is_stopped_before_the_next_capture(world: World) -> None:
    site = await site_of(world)
    reader, session = begin(site, "r1-r3", "--seconds=3600")
    await reader.shows("capturing")
    await site.running.crash()
    again = await world.replica()
    late = Site(world, again, site.simulator, site.worker, site.lablet)

    async def taken_over() -> bool:
        try:
            return await late.devices._finder.is_whole(late.target("lab"))
        except Exception:  # noqa: BLE001 (whatever keeps it from acting, it is asked again)
            return False

    await eventually(taken_over, "the other replica acts for the worker")
    session.cancel()
    await asyncio.gather(session, return_exceptions=True)
    left = [link.capture for link in links(site) if link.capture]
    left[0].stopped_at = None
    other, next_one = begin(late, "r1-r2", "--packets=1")
    assert await next_one == Exit(0)
    assert "a capture of this lab that nobody read was stopped" in other.err
    assert all(capture.stopped_at is not None for capture in left)
    assert len(tcpdump(bytes(other.got))) == 1


async def test_a_capture_ends_with_the_lab(world: World) -> None:
    site = await site_of(world)
    reader, session = begin(site, "r1-r2")
    await reader.shows("capturing")
    await site.lablet.annotate(desired_state="stopped")
    assert await session == Exit(0)
    assert "captured: it was stopped, or is being reset" in reader.err
    assert (await refused(site, "r1-r2")).startswith(f"NoLab: the lab of {site.lablet.name} does not run: it was")


async def test_what_cannot_be_captured_is_said(world: World) -> None:
    site = await site_of(world)
    assert (await refused(site, "r1-r9")).startswith("NotALink: there is no link 'r1-r9': write one of its ends")
    assert (await refused(site, "r1-r2", "--packets=0")).startswith("CommandInvalid: '--packets=0' is not understood")
    with pytest.raises(InputError, match="leave out -t"):
        await site.run("lab", "capture", "r1-r2", tty=True)
    began = time.time()
    reader, session = begin(site, "r1-r2", "--seconds=2", "--filter=tcp port 80")
    assert await session == Exit(0)
    assert time.time() - began >= 2
    assert tcpdump(bytes(reader.got)) == []


async def test_a_lab_that_boots_is_not_captured_yet(world: World) -> None:
    site = await site_of(world, boot_s=600.0)
    assert (
        await refused(site, "r1-r2")
    ) == f"NoLab: the lab of {site.lablet.name} does not run: wait until it is Ready"


async def test_a_reader_that_reads_nothing_is_left_and_holds_up_no_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, stuck = await site_of(world), StuckReader()
    _, session = begin(site, "r1-r2", "--seconds=3600", reader=stuck)
    async with asyncio.timeout(60):
        await stuck.asked.wait()
        assert await printed(site, "stop") == "The capture is stopped.\n"
        assert await session == Exit(1, "it was stopped, and its reader is too slow")
    monkeypatch.setattr(captures, "_READER_S", 0.5)
    _, session = begin(site, "r1-r3", "--seconds=3600", reader=StuckReader())
    async with asyncio.timeout(60):
        assert await session == Exit(1, "its reader is too slow")
    assert [link.capture.stopped_at is not None for link in links(site) if link.capture] == [True, True]


async def test_a_large_file_comes_in_parts_and_ends_at_its_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_BYTES_MAX": 24 + 3 * 76, "_HELD_BYTES": 50, "_PIECE_BYTES": 10}.items():
        monkeypatch.setattr(captures, name, value)
    site = await site_of(world)
    reader, session = begin(site, "r1-r2")
    async with asyncio.timeout(60):
        assert await session == Exit(0)
    assert "3 packets captured: it has reached 0 MiB" in reader.err
    assert len(tcpdump(bytes(reader.got))) == 3


@pytest.mark.parametrize("stopped", [False, True], ids=["at its limit", "stopped"])
async def test_the_last_packets_come_although_cml_fails_for_a_moment(world: World, *, stopped: bool) -> None:
    """The read that brings them is the one that fails."""
    site = await site_of(world)
    site.simulator.faults.add(Fault(kind="status", status=503, route="^GET .*/pcap/", count=2), site.simulator.now())
    reader, session = begin(site, "r1-r2", "--packets=1000" if stopped else "--packets=1")
    await reader.shows("capturing")
    if stopped:
        assert await printed(site, "stop") == "The capture is stopped.\n"
    async with asyncio.timeout(60):
        assert await session == Exit(0), reader.err
    assert len(tcpdump(bytes(reader.got))) >= 1, reader.err


async def test_a_capture_whose_last_packets_cml_never_gives_does_not_end_as_if_it_was_whole(world: World) -> None:
    site = await site_of(world)
    site.simulator.faults.add(Fault(kind="status", status=503, route="^GET .*/pcap/"), site.simulator.now())
    _, session = begin(site, "r1-r2", "--packets=1")
    async with asyncio.timeout(60):
        with pytest.raises(Unavailable):
            await session

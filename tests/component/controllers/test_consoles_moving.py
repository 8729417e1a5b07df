"""Sessions when their worker moves to another replica, and ports that really open."""

import asyncio
import time
from typing import Any

import pytest

from tests.component.controllers.consolesite import (
    Site,
    collect,
    open_site,
    read_all,
    until_open,
)
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.component.controllers.running import SHORT
from tests.support.terminals import Terminal
from vkprovider.labs.kubelet.spi import LogOptions
from vkprovider.platform.errors import InputError, NotFound, OutsideError, Unavailable
from vkprovider.platform.times import iso


async def test_the_end_of_the_time_is_announced_at_open_consoles_and_to_no_program(world: World) -> None:
    """Once for each end, as a Warning Event and a line for those who type or watch."""
    site = await open_site(world)
    one, watcher, elsewhere = Terminal(), Terminal(stdin=False), Terminal()
    sessions = [site.attach(one), site.attach(watcher), site.attach(elsewhere, "h0")]
    for person in (one, elsewhere):
        await person.shows("Escape character")
    await watcher.shows("You watch.")
    await site.lablet.annotate(username="alice", timeslot_end=iso(int(time.time()) + 100_000))
    await site.lablet.until(lambda pod: pod["metadata"]["annotations"].get("vkprovider.io/learner") == "alice")
    [console] = [found for found in site.devices._opened._consoles.values() if found.label == "h0"]
    async with console.watching() as program:
        await site.lablet.annotate(timeslot_end=iso(int(time.time()) + 230))
        for person in (one, watcher, elsewhere):
            await person.shows("[the time of alice ends in 4 minutes, at ")
        elsewhere.type("\r")
        assert b"the time of" not in await program.read()
    await world.until_event("TimeslotEnding", site.lablet.name)
    await site.lablet.annotate(timeslot_end=iso(int(time.time()) + 290))
    await one.shows("[the time of alice ends in 5 minutes, at ")
    for person in (one, elsewhere):
        person.type("\x1d")
    watcher.leave()
    await asyncio.wait_for(asyncio.gather(*sessions), 60)

    async def both() -> list[dict[str, Any]]:
        found = await world.events("TimeslotEnding", site.lablet.name)
        return found if len(found) > 1 else []

    found = await eventually(both, "the second event")  # it is sent beside the line on the consoles
    assert [event["type"] for event in found] == ["Warning"] * 2


async def test_sessions_end_when_another_replica_takes_the_worker_and_the_next_command_works_there(
    world: World,
) -> None:
    site = await open_site(world)
    person = Terminal()
    session = site.attach(person)
    await person.shows("Escape character")
    channel = asyncio.create_task(read_all(await until_open(site, 23)))
    log = asyncio.create_task(collect(site.devices.log(site.target("h0"), LogOptions(follow=True))))
    other = await site.world.replica({**SHORT, "consoles": {"exec_timeout_s": 3.0}})
    await site.running.stop()
    exit_ = await asyncio.wait_for(session, 60)
    assert (exit_.code, exit_.message) == (1, "this worker moved to another replica: run the command again")
    assert exit_.message in person.out
    assert (await asyncio.wait_for(log, 60))[-1].text == f"[{exit_.message}]"
    await asyncio.wait_for(channel, 60)
    with pytest.raises(Unavailable, match="run the command again"):
        await site.devices.attach(site.target("r1"), Terminal())
    there = Site(site.world, other, site.simulator, site.worker, site.lablet)

    async def works() -> bool:
        try:
            return (await there.run("r1", "show version"))[0].code == 0
        except OutsideError:
            return False

    await eventually(works, "the command on the new owner")


async def test_ports_lead_into_the_device(world: World) -> None:
    site = await open_site(world, patty=True)
    channel = await until_open(site, 22)
    assert (await channel.read()).startswith(b"SSH-2.0-")
    await channel.close()
    channel = await until_open(site, await site.port("h0_pat80"))
    await channel.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await read_all(channel)).endswith(b"h0:80\n")
    await channel.close()
    with pytest.raises(InputError, match=r"AmbiguousPort: port 80 .* \d+ \(r1_pat80, 80 inside\), \d+ \(h0_pat80"):
        await until_open(site, 80)
    with pytest.raises(InputError, match=r"UnknownPort: .* has no port 8080; it has .*r1_serial, 23 inside"):
        await until_open(site, 8080)
    with pytest.raises(InputError, match=r"h0_patudp53.* is a UDP port"):
        await until_open(site, 53)
    with pytest.raises(InputError, match=r"h0_http.* CML does not open"):
        await until_open(site, await site.port("h0_http"))
    screen = await until_open(site, 5900)
    assert await screen.read() == b"RFB 003.008\n"
    await screen.close()
    with pytest.raises(NotFound):
        await site.devices.dial(site.lablet.namespace, "nobody", 22)

"""`kubectl lablet capture` through a stock API server: a file that tcpdump reads."""

import asyncio

from tests.component.cli.desk import Desk
from tests.component.controllers.harness import World
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.test_console_captures import LAB, LINK, tcpdump


async def lablet_of(world: World) -> Lablet:
    simulator = await world.simulator()
    await world.replica()
    worker = await world.worker(simulator.url)
    lablet = await world.pod(await world.define(LAB), worker, devices=["r1", "r2", "r3"], typed=True)
    await lablet.ready()
    await lablet.claim(lambda row: row.get("readyAt"))
    return lablet


async def test_a_pipe_gets_the_packets_and_a_person_the_links(world: World, desk: Desk) -> None:
    lablet = await lablet_of(world)
    assert await desk.completes("capture", lablet.name, "r1") == (["r1-r2", "r1-r3"], 4)
    shown = await desk.lablet("capture", lablet.name)
    assert (shown.code, shown.out.splitlines()[0]) == (0, LINK), shown
    process = await desk.start("lablet", "capture", lablet.name, "r1:gi0/0", "--packets=4", "--filter=icmp")
    async with asyncio.timeout(120):
        out, err = await process.communicate()
    assert process.returncode == 0, err
    lines = tcpdump(out)
    assert len(lines) == 4
    assert all("ICMP echo" in line for line in lines)
    assert b"4 packets captured" in err
    refused = await desk.lablet("capture", lablet.name, "--stop")
    assert (refused.code, "no packets are captured" in refused.err) == (1, True), refused

"""`kubectl exec POD -c lab -- config DEVICE`: the present configuration of a device, as CML extracts it."""

import pytest

from tests.component.controllers.consolesite import Site
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.support.terminals import Terminal
from tests.support.topologies import topology
from vkprovider.labs.kubelet.spi import Exit
from vkprovider.platform.errors import InputError

LAB = {"r1": "iosv", "R 2": "iosv", "db": "iosv", "wan": "wan_emulator", "sw": "unmanaged_switch", "config": "iosv"}


@pytest.fixture
async def site(world: World) -> Site:
    simulator = await world.simulator()
    running = await world.replica()
    worker = await world.worker(simulator.url)
    lablet = await world.pod(await world.define(topology(LAB, {"db": ["hidden"]})), worker, devices=["r1"], typed=True)
    await lablet.ready()
    return Site(world, running, simulator, worker, lablet)


async def refused(site: Site, *words: str, container: str = "lab") -> str:
    with pytest.raises(InputError) as refusal:
        await site.run(container, *words)
    return f"{refusal.value.reason}: {refusal.value.message}"


async def test_what_was_configured_a_moment_ago_is_printed(site: Site) -> None:
    for line in ("enable", "configure terminal", "hostname edge-7", "end"):
        person = Terminal()
        session = site.attach(person)
        await person.shows("Escape character")
        person.type(f"{line}\r")
        await person.shows(line)
        person.type("\x1d")
        await session
    status, terminal = await site.run("lab", "config", "r1")
    assert status == Exit(0)
    assert "hostname edge-7\n" in terminal.out
    assert "\r" not in terminal.out, "a file, not a screen"
    _, shown = await site.run("lab", "config", "r1", tty=True)
    assert "hostname edge-7\r\n" in shown.out


async def test_a_device_is_named_by_its_label_or_by_its_container(site: Site) -> None:
    for name in ("R 2", "r-2"):
        status, terminal = await site.run("lab", "config", name)
        assert (status, "R 2" in terminal.out or "R-2" in terminal.out) == (Exit(0), True), (name, terminal.out)


async def test_in_the_container_of_a_device_the_word_is_typed_there(site: Site) -> None:
    _, terminal = await site.run("r1", "config", "x")
    assert "Invalid input" in terminal.out


async def test_others_are_refused_with_a_reason(site: Site) -> None:
    assert await refused(site, "config", "db") == "NoConfiguration: db is hidden: its definition tags it `hidden`"
    assert (await refused(site, "config", "sw")).startswith("NoConfiguration: a device of the kind unmanaged_switch")
    wan = await refused(site, "config", "wan")
    assert wan == "NoConfiguration: CML extracts no configuration of wan, a device of the kind wan_emulator"
    assert (await refused(site, "config", "r9")).startswith("NotADevice: device 'r9' of pod ")
    assert await refused(site, "config") == "CommandInvalid: write `config DEVICE`"
    assert await refused(site, "config", "r1", "r2") == "CommandInvalid: write `config DEVICE`"


async def test_a_device_that_does_not_run_is_refused(site: Site) -> None:
    [lab] = site.simulator.simulation.world.labs.values()
    site.simulator.simulation.world.stop_node(site.simulator.now(), lab, site.node("r1"))

    async def off() -> bool:
        try:
            status, _ = await site.run("lab", "config", "r1")
        except InputError as refusal:
            return str(refusal).startswith("DeviceOff: the configuration of r1 cannot be extracted while")
        return status != Exit(0)

    await eventually(off, "the stop is observed")

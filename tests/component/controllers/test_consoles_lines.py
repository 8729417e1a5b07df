"""Devices whose shell is at another serial line than what their program prints, as in some containers of Cisco's."""

from tests.component.controllers.consolesite import Site
from tests.component.controllers.harness import World
from tests.support.terminals import Terminal
from tests.support.topologies import topology
from vkprovider.labs.kubelet.spi import Exit

LINES = {"r1": ("iosv", 0), "f1": ("frr", 0), "top": ("chrome", 1), "web": ("nginx", 1), "te": ("thousandeyes-ea", 1)}


async def test_a_command_goes_to_the_line_of_the_shell_and_the_log_is_of_the_program(world: World) -> None:
    simulator = await world.simulator()
    running = await world.replica()
    worker = await world.worker(simulator.url)
    lab = await world.define(topology({label: definition for label, (definition, _) in LINES.items()}))
    lablet = await world.pod(lab, worker, devices=list(LINES), typed=True)
    await lablet.ready()
    site = Site(world, running, simulator, worker, lablet)
    for label, (_, line) in LINES.items():
        exit_, terminal = await site.run(label, "echo hello")
        assert (exit_, terminal.out, terminal.err) == (Exit(0), "hello\n", "")
        assert {typed.line for typed in site.node(label).typed} == {line}, label
    session = site.attach(person := Terminal(), "web")
    person.type("echo by hand\r")
    await person.shows("\r\nby hand\r\n")
    person.leave()
    await session
    said = [line.text for line in await site.log("web")]
    assert "web: power on" in said
    assert "hello" not in said, "that was at the other line"

"""Consoles and ports of lablets, as the kubelet API asks for them, on a simulator in the same loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import pytest_asyncio

from tests.component.controllers.consolesite import (
    Site,
    eventually_no_sockets,
    open_site,
    until_line,
)
from tests.component.controllers.harness import open_world
from tests.component.controllers.looking import eventually
from tests.support.apiserver import ApiServer
from tests.support.terminals import Terminal
from vkprovider.labs.kubelet.spi import DeviceUsage, Exit, LogOptions, Target
from vkprovider.platform.errors import InputError, NotFound, Unavailable

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(apiserver: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with open_world(apiserver, tmp_path_factory.mktemp("consoles")) as world:
        yield await open_site(world)


@pytest_asyncio.fixture(loop_scope="module")
async def site(shared: Site) -> AsyncIterator[Site]:
    """The lablet that most tests share; each leaves its devices on, and nobody connected."""
    yield shared
    await eventually_no_sockets(shared)


async def test_several_watch_and_one_types(site: Site) -> None:
    one, other, watcher = Terminal(), Terminal(), Terminal(stdin=False)
    first = site.attach(one)
    await one.shows("Connected to the console of r1 (iosv)")
    watching = site.attach(watcher)
    await watcher.shows("You watch.")
    one.type("\r")
    await one.shows("r1>")
    one.type("echo hello\r")
    for each in (one, watcher):
        await each.shows("echo hello")
        await each.shows("\r\nhello\r\nr1>")
    assert site.sockets() == 1, "one connection for all"
    with pytest.raises(InputError, match=r"ConsoleInUse: another session types .* --take-over"):
        await site.attach(other)
    third = site.attach(other, take_over=True)
    await other.shows("you have taken over from a session that typed since")
    await other.shows("hello\r\nr1>")  # what was printed last is shown to whoever comes later
    await one.shows("[another session has taken over: you watch until it leaves")
    one.type("nothing")
    await one.shows("[another session has taken over")
    other.type("echo mine\r")
    for each in (other, one, watcher):
        await each.shows("\r\nmine\r\nr1>")
    other.leave()
    assert await asyncio.wait_for(third, 60) == Exit(0)
    await one.shows("[the session that had taken over has left: you type again]")
    one.type("echo back\r")
    for each in (one, watcher):
        await each.shows("\r\nback\r\nr1>")
    assert "taken over" not in watcher.out, "it concerns the two alone"
    assert not any("nothing" in typed.text for typed in site.node("r1").typed), "who watches does not type"
    one.type("\x1d")
    assert await asyncio.wait_for(first, 60) == Exit(0)
    watcher.leave()
    assert await asyncio.wait_for(watching, 60) == Exit(0)
    await eventually_no_sockets(site)
    again = site.attach(one2 := Terminal())
    await one2.shows("Escape character")
    one2.leave()
    await asyncio.wait_for(again, 60)


async def test_who_leaves_before_the_one_who_took_over_does_not_type_again(site: Site) -> None:
    one, other = Terminal(tty=False), Terminal()
    first = site.attach(one)
    one.type("\r")
    await one.shows("r1>")
    second = site.attach(other, take_over=True)
    await one.shows("[another session has taken over")
    one.leave()
    assert await asyncio.wait_for(first, 60) == Exit(0)
    other.type("echo still\r")
    await other.shows("\r\nstill\r\nr1>")
    with pytest.raises(InputError, match=r"ConsoleInUse: .*`kubectl exec -it \S+ -- console r1 --take-over`"):
        await site.run("r1", "show version")
    other.leave()
    assert await asyncio.wait_for(second, 60) == Exit(0)
    assert (await site.run("r1", "show version"))[0] == Exit(0)


async def test_a_command_prints_its_output_and_ends_at_the_prompt(site: Site) -> None:
    exit_, terminal = await site.run("r1", "show version")
    assert (exit_, terminal.err) == (Exit(0), "")
    assert terminal.out.startswith("Cisco IOS Software, IOSv Software (simulated)")
    exits = await asyncio.gather(*(site.run("r1", "show", "tech-support") for _ in range(3)))
    for exit_, terminal in exits:
        assert (exit_.code, len(terminal.out.splitlines())) == (0, 120)
    exit_, terminal = await site.run("h0", "uname -a", tty=True)
    assert (exit_.code, terminal.out[:8], terminal.out[-2:]) == (0, "Linux h0", "\r\n")
    exit_, terminal = await site.run("h0", "nonsense")
    assert (exit_.code, terminal.out) == (0, "-sh: nonsense: not found\n"), "a console has no exit codes"
    await eventually_no_sockets(site)


async def test_where_a_command_cannot_be_typed_the_user_reads_why(site: Site) -> None:
    with pytest.raises(InputError, match=r"NotADevice: container lab is not a device .* r1, h0, h1, fw, sw"):
        await site.run("lab", "show version")
    with pytest.raises(InputError, match=r"UnsupportedDevice: the prompt of fw \(acme-fw\) is not known"):
        await site.run("fw", "show version")
    with pytest.raises(InputError, match="CommandInvalid"):
        await site.run("r1", "show version\nreload")
    with pytest.raises(InputError, match="NoConsole: CML has no console for sw"):
        await site.devices.attach(site.target("sw"), Terminal())
    for words in ("show version", "console", "sh"):
        with pytest.raises(
            InputError, match=r"NoConsole: CML has no console for sw: .* unmanaged_switch never has one"
        ):
            await site.run("sw", words, tty=True, stdin=True)
    with pytest.raises(InputError, match=r"NoConsole: .* never has one"):
        await site.log("sw")
    with pytest.raises(NotFound):
        await site.devices.attach(Target("nowhere", "p", "no-uid", "r1"), Terminal())
    person = Terminal()
    session = site.attach(person)
    await person.shows("Escape character")
    with pytest.raises(InputError, match="ConsoleInUse"):
        await site.run("r1", "show version")
    for text in ("\r", "enable\r", "conf t\r"):
        person.type(text)
    await person.shows("(config)#")
    person.type("\x1d")
    await session
    exit_, terminal = await site.run("r1", "show version")
    assert exit_.code == 1
    assert "r1 is in a configuration mode (r1(config)#)" in terminal.err
    session = site.attach(person := Terminal())
    await person.shows("Escape character")
    person.type("end\r\x1d")
    await session


async def test_words_reach_a_device_as_they_are_or_not_at_all(site: Site) -> None:
    exit_, terminal = await site.run("h0", "echo", "a   b")
    assert (exit_, terminal.out) == (Exit(0), "'a   b'\n"), "the simulated echo prints the line as it was typed"
    assert (await site.run("h0", "sh", "-c", "echo one; echo two"))[0] == Exit(0)
    assert site.node("h0").typed[-2].text.endswith("sh -c 'echo one; echo two'")
    with pytest.raises(InputError, match="CommandInvalid: the device would take the word 'foo bar' apart"):
        await site.run("r1", "show", "run", "|", "include", "foo bar")
    exit_, terminal = await site.run("r1", "echo 'foo  bar'")
    assert (exit_, terminal.out) == (Exit(0), "'foo  bar'\n")


async def test_input_that_no_device_gets_ends_a_command(site: Site) -> None:
    def typed() -> list[str]:
        return [typed.text for typed in site.node("h0").typed]

    before = typed()
    terminal = Terminal(tty=False)
    terminal.type("payload")
    with pytest.raises(InputError, match=r"NoInput: .* was not typed: .*`kubectl exec -i POD -c h0 -- console`"):
        await site.devices.execute(site.target("h0"), ["tee", "/root/x"], terminal)
    assert typed() == before
    terminal = Terminal(tty=False)
    terminal.half_close()
    assert await site.devices.execute(site.target("h0"), ["echo", "no", "input"], terminal) == Exit(0)
    shell = site.simulator.consoles._line(site.node("h0"), 0)._shell
    pressed, press = [], shell.press

    def sleeps(now: float, keys: str) -> str:
        pressed.append(keys)
        return keys + "\n" if keys == "sleep 9\r" else press(now, keys)

    async def is_typed() -> bool:
        return "sleep 9\r" in pressed

    shell.press = sleeps  # type: ignore[method-assign]
    terminal = Terminal()
    running = asyncio.create_task(site.devices.execute(site.target("h0"), ["sleep", "9"], terminal))
    await eventually(is_typed, "the command is typed")
    terminal.type("\x03")
    with pytest.raises(InputError, match=r"NoInput: .* was interrupted"):
        await asyncio.wait_for(running, 60)
    pressed.clear()
    running = asyncio.create_task(site.devices.execute(site.target("h0"), ["sleep", "9"], Terminal()))
    await eventually(is_typed, "it is typed again")
    running.cancel()  # as the handler of a request is whose connection broke off
    with pytest.raises(asyncio.CancelledError):
        await running
    del shell.press
    assert pressed[-1] == "\x03"


async def test_a_shell_is_the_console_and_files_have_another_way(site: Site) -> None:
    for words in (["/bin/bash"], ["sh", "-c", "exec zsh || exec sh"]):
        person = Terminal()
        session = asyncio.create_task(site.devices.execute(site.target("h1"), words, person))
        await person.shows("Connected to the console of h1 (alpine)")
        person.type("\r")
        await person.shows("h1:~# ")
        person.type("\x1d")
        assert await asyncio.wait_for(session, 60) == Exit(0)
    for how in ({"tty": True}, {"stdin": True}, {}):
        with pytest.raises(InputError, match=r"NoTerminal: .*`kubectl exec -it .* -c h1 -- console`"):
            await site.run("h1", "sh", **how)
    for words in (["test", "-d", "/x"], ["tar", "-xmf", "-"], ["tar", "cf", "-", "/etc/motd"]):
        with pytest.raises(InputError, match=r"NoFiles: .* `kubectl port-forward .* 2222:22`, then `scp -P 2222"):
            await site.run("h1", *words, stdin=True)


async def test_a_console_by_name_through_exec(site: Site) -> None:
    person = Terminal()
    session = asyncio.create_task(site.devices.execute(site.target("lab"), ["console", "h1"], person))
    await person.shows("h1:~# ")
    person.type("\x1d")
    assert await asyncio.wait_for(session, 60) == Exit(0)
    with pytest.raises(InputError, match="device 'h9' of pod"):
        await site.devices.execute(site.target("lab"), ["console", "h9"], person)


async def test_a_silent_device_times_out_with_what_came(site: Site) -> None:
    line = site.simulator.consoles._line(site.node("r1"), 0)
    line._shell.press = lambda *_: "Loading..."  # type: ignore[method-assign]
    exit_, terminal = await site.run("r1", "show version")
    del line._shell.press  # it listens again
    assert exit_.code == 124
    assert "shows no prompt within 3 s; its last line is" in terminal.err
    assert "Loading..." in terminal.err


async def test_input_without_a_terminal_is_typed(site: Site) -> None:
    piped = Terminal(tty=False)
    session = site.attach(piped, "h0")
    await piped.shows("h0:~# ")
    piped.type("echo from a pipe\n")
    piped.half_close()
    await piped.shows("\r\nfrom a pipe\r\nh0:~# ")
    piped.leave()
    assert await asyncio.wait_for(session, 60) == Exit(0)


async def test_logs_are_those_of_cml_and_followers_share_one_connection(site: Site) -> None:
    lines = await site.log("h1")
    assert lines[0].text == "h1: power on"
    assert lines[-1].text == "Press RETURN to get started"
    claims = site.running.replica.fleet.items[site.worker].claims.claims
    started_at = claims[site.lablet.uid].started_at
    assert abs(lines[0].at - started_at) <= 2
    assert [line.text for line in await site.log("h1", tail_lines=1)] == ["Press RETURN to get started"]
    assert await site.log("h1", since_at=lines[-1].at + 60) == []
    async with aclosing(site.devices.log(site.target("h1"), LogOptions(follow=True, tail_lines=1))) as one:  # type: ignore[type-var]
        assert (await anext(one)).text == "Press RETURN to get started"
        async with aclosing(site.devices.log(site.target("h1"), LogOptions(follow=True))) as other:  # type: ignore[type-var]
            assert (await anext(other)).text == "h1: power on"
            assert site.sockets() == 1
            await site.run("h1", "echo followed")
            for log in (one, other):
                await until_line(log, "followed")
            looks = site.simulator.log.since(0)
            assert site.sockets() == 1
    await eventually_no_sockets(site)
    reads = [entry for entry in looks if entry.path.endswith("/log")]
    assert len(reads) < 12, "read once for all followers, and only when something was printed"


async def test_the_log_of_the_run_before_and_a_follower_that_outlives_a_restart(site: Site) -> None:
    with pytest.raises(InputError, match="NoPreviousLog"):
        await site.log("h0", previous=True)
    await site.run("h0", "echo before")
    async with aclosing(site.devices.log(site.target("h0"), LogOptions(follow=True))) as log:  # type: ignore[type-var]
        await until_line(log, "before")
        site.simulator.simulation.world.crash(site.simulator.now(), site.node("h0"))
        assert (await until_line(log, "h0: power on")).at > 0
        await until_line(log, "Press RETURN to get started")
        async with aclosing(site.devices.log(site.target("h0"), LogOptions(follow=True))) as late:  # type: ignore[type-var]
            assert (await anext(late)).text == "h0: power on", "nothing of the run before"
    previous = [line.text for line in await site.log("h0", previous=True)]
    assert previous[-1] == "h0: power off"
    assert "before" in previous
    assert "before" not in [line.text for line in await site.log("h0")]


async def test_a_session_ends_with_its_device(site: Site) -> None:
    person = Terminal()
    session = site.attach(person)
    await person.shows("Escape character")
    site.simulator.simulation.world.crash(site.simulator.now(), site.node("r1"))
    exit_ = await asyncio.wait_for(session, 60)
    assert (exit_.code, "the device was stopped" in exit_.message) == (1, True)
    await site.until_on("r1")
    assert "the device was stopped" in person.out


async def test_consoles_and_screens_need_no_port_of_the_worker(site: Site) -> None:
    """Without PATty their ports do not open; CML's own interface leads there all the same."""
    serial = await site.devices.dial(site.lablet.namespace, site.lablet.name, 23)
    await serial.write(b"\r")
    said = b""
    while not said.endswith(b"r1>"):
        said += await serial.read()
    await serial.close()
    with pytest.raises(Unavailable, match="refused"):
        await site.devices.dial(site.lablet.namespace, site.lablet.name, 22)


async def test_what_devices_use_is_asked_for_when_somebody_looks(site: Site) -> None:
    node = f"vnode.{site.worker}"
    assert not [entry for entry in site.simulator.log.since(0) if "simulation_stats" in entry.path]
    assert list(site.devices.usage(node)) == []

    async def look() -> list[DeviceUsage]:
        return list(site.devices.usage(node))

    found = {usage.target.container: usage for usage in await eventually(look, "figures")}
    assert found["r1"].cpu_nanocores == 15_000_000
    assert (found["r1"].memory_bytes, found["h0"].memory_bytes) == (512 * 2**20, 512 * 2**20)
    assert found["r1"].target == site.target("r1")
    assert list(site.devices.usage("vnode.another")) == []

"""What is seen while a command waits: at a terminal, in a pipe, with and without colours."""

import asyncio
import os
from collections.abc import Mapping

import pytest

from tests.component.cli.desk import Desk
from tests.component.controllers.harness import World
from tests.component.controllers.looking import condition
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import Running
from tests.support.ptys import Pty

GREEN = "\x1b[32m"


@pytest.fixture
async def running(world: World) -> Running:
    return await world.replica()


@pytest.fixture
async def lablet(world: World, running: Running) -> Lablet:
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, tls={"insecureSkipVerify": True})
    made = await world.pod(await world.define(), worker)
    await made.ready()
    running.api.fault(r"^PATCH .*/pods/[^/]*/status", delay_s=3.0, count=None)  # a command sees each state
    return made


def raw(desk: Desk, *words: str, columns: int = 80, environ: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run `kubectl lablet` at a terminal; return its exit code, and every byte that it showed."""
    command, env = ["kubectl", "lablet", *words], {**desk.environ, "TERM": "xterm", **(environ or {})}
    with Pty(command, env, columns=columns, keeps_escapes=True) as pty:
        code = pty.ends(90)
        return code, pty.shown


async def test_a_terminal_has_one_line_that_is_updated(desk: Desk, lablet: Lablet) -> None:
    code, shown = await asyncio.to_thread(raw, desk, "stop", lablet.name, "--wait")
    assert code == 0
    *progress, result, end = shown.replace("\r\n", "\n").split("\n")
    assert end == ""
    assert result.endswith(f"pod/{lablet.name} stopped; go on with: kubectl lablet start {lablet.name}")
    assert not progress, "no other line is left"
    updates = shown.split("\r\x1b[K")
    assert any(update.startswith(f"pod/{lablet.name} ") and update.endswith(" s)") for update in updates)
    assert all(len(update) < 80 for update in updates[:-1])


async def test_a_pipe_has_a_line_for_each_change(desk: Desk, lablet: Lablet) -> None:
    result = await desk.lablet("stop", lablet.name, "--wait")
    assert result.code == 0
    lines = result.err.splitlines()
    assert lines, "at least the first state is told"
    assert all(line.startswith(f"pod/{lablet.name} ") for line in lines)
    assert len(set(lines)) == len(lines)
    assert "\x1b" not in result.err + result.out
    assert "\r" not in result.err


@pytest.mark.parametrize(("environ", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
async def test_colours(desk: Desk, lablet: Lablet, environ: dict[str, str], *, coloured: bool) -> None:
    assert "NO_COLOR" not in os.environ
    code, shown = await asyncio.to_thread(raw, desk, "list", environ=environ)
    assert code == 0
    assert lablet.name in shown
    assert (f"{GREEN}free" in shown) is coloured
    assert ("\x1b" in shown) is coloured


async def test_a_narrow_terminal_keeps_the_columns(desk: Desk, lablet: Lablet) -> None:
    """Names of up to 200 characters: shortened in the middle at a terminal, whole in a pipe and with -o wide."""
    user = "a-user-with-a-name-that-is-much-too-long-" + "x" * 150 + "-for-a-table"
    await lablet.annotate(username=user)
    await lablet.until(lambda pod: pod["metadata"]["annotations"].get("vkprovider.io/learner") == user)
    _, shown = await asyncio.to_thread(raw, desk, "list", columns=110, environ={"NO_COLOR": "1"})
    lines = shown.replace("\r\n", "\n").splitlines()
    assert max(map(len, lines)) <= 110
    assert "…" in lines[1]
    assert lines[1].startswith("a-user")
    assert lines[1].endswith(lablet.name)
    assert user in (await desk.lablet("list")).out
    _, wide = await asyncio.to_thread(raw, desk, "list", "-o", "wide", columns=110, environ={"NO_COLOR": "1"})
    assert user in wide


async def test_a_command_waits_for_the_lab_and_not_for_a_load_balancer(desk: Desk, world: World) -> None:
    """The readiness gate of this Pod stays closed: no command could ever say that it has done its work."""
    await world.replica()
    gates = [{"conditionType": "example.com/load-balancer"}]
    made = await world.pod(await world.define(), await world.worker(), readinessGates=gates)
    await made.until(lambda pod: condition(pod, "ContainersReady")["status"] == "True")
    for words in (("reset", "--yes"), ("stop",), ("start",)):
        await desk.succeeds(*words, made.name, "--wait", "--timeout=20s")

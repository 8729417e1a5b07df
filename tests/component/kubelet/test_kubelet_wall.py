"""Consoles of several learners in one terminal or pipe: through kubectl, the real API server and our kubelet API."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.component.controllers.consolesite import Site, open_site
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.support.apiserver import ApiServer
from tests.support.ptys import Pty
from tests.support.topologies import topology
from vkprovider.cli.lablet.wall import FIRST_LINES
from vkprovider.platform.shipped import find_manifests
from vkpsandbox.controlplane.build import find_kubectl

PATIENCE_S = 90.0
LATER = "2999-01-31T12:00:00Z"
WATCH = ("lablet", "console", "--watch")


@dataclass(frozen=True)
class Desk:
    """Where an instructor sits: a class of alice and bob, carol, whose lab has no r1, and a warm lablet.

    Attributes:
        bobs: The Pod's name.
    """

    site: Site
    bobs: str
    environ: Mapping[str, str]

    def terminal(self, *words: str, columns: int = 80, keeps_escapes: bool = False) -> Pty:
        """Run kubectl at a terminal."""
        return Pty(["kubectl", *words], self.environ, columns=columns, keeps_escapes=keeps_escapes)

    @contextmanager
    def typing(self, pod: str) -> Iterator[Pty]:
        """Sit at the console of r1."""
        with self.terminal("attach", "-it", pod, "-c", "r1") as mine:
            mine.shows("Escape character is '^]'.")
            mine.type("\r")
            mine.until(r"(r1>|# )")
            yield mine


@pytest.fixture
async def desk(world: World, apiserver: ApiServer, tmp_path: Path) -> Desk:
    site = await open_site(world)
    labels = {"class": "friday"}

    def notes(user: str) -> dict[str, str]:
        return {"vkprovider.io/username": user, "vkprovider.io/timeslot-end": LATER}

    await world.admin.patch(site.lablet.path, {"metadata": {"annotations": notes("alice"), "labels": labels}})
    small = await world.define(topology({"r1": "alpine"}))
    other = await world.define(topology({"h0": "alpine"}))
    bob = await world.pod(small, site.worker, annotations=notes("bob"), labels=labels, devices=["r1"], typed=True)
    carol = await world.pod(other, site.worker, annotations=notes("carol"), labels=labels, devices=["h0"])
    free = await world.pod(small, site.worker, labels={**labels, "vkprovider.io/pool": "warm"}, devices=["r1"])
    for made in (bob, carol, free):
        await made.ready()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(apiserver.kubeconfig.read_text())
    path = [str(Path(sys.executable).parent), str(find_kubectl().parent), os.environ["PATH"]]
    environ = {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": str(find_manifests().parent),
        "KUBECONFIG": str(kubeconfig),
        "KUBECACHEDIR": str(tmp_path),
        "TERM": "xterm",
    }
    context = ["kubectl", "config", "set-context", "--current", f"--namespace={world.namespace}"]
    done = await asyncio.create_subprocess_exec(*context, env=environ, stdout=asyncio.subprocess.DEVNULL)
    assert await done.wait() == 0
    return Desk(site, bob.name, environ)


def look_over_shoulders(desk: Desk) -> None:
    with (
        desk.typing(desk.site.lablet.name) as alice,
        desk.typing(desk.bobs) as bob,
        desk.terminal(*WATCH, "-u", "bob", "-u", "alice", "r1") as wall,
    ):
        wall.shows("2 consoles of r1")
        wall.shows("alice | r1>")
        alice.type("echo by hand\r")
        for line in ("r1>echo by hand", "by hand", "r1>"):
            wall.shows(f"alice | {line}\r\n")
        bob.type("echo meanwhile")
        wall.until("(bob   [|] .*# echo meanwhile)\r\n")
        wall.type("echo typed by the instructor\r")
        bob.type("\r")
        wall.shows("bob   | meanwhile\r\n")
        alice.type("echo after that\r")
        wall.shows("alice | after that\r\n")
        alice.shows("after that\r\n")
        assert "instructor" not in alice.shown
        assert "alice | r1>echo typed" not in wall.shown
        os.killpg(wall.process.pid, signal.SIGINT)  # as a terminal does at Ctrl-C
        assert wall.ends() == 128 + signal.SIGINT
        assert "ended" not in wall.shown
        assert "Traceback" not in wall.shown


async def test_an_instructor_looks_over_several_shoulders(desk: Desk) -> None:
    await asyncio.to_thread(look_over_shoulders, desk)

    async def nobody_watches() -> bool:
        return not desk.site.sockets()

    await eventually(nobody_watches, "each console is left")


def watch_a_class(desk: Desk, ends: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
    words = [*WATCH, "-l", "class=friday", "r1"]
    with (
        desk.typing(desk.site.lablet.name) as alice,
        desk.terminal(*words, columns=20, keeps_escapes=True) as narrow,
        subprocess.Popen(["kubectl", *words], stdout=-1, stderr=-1, env=desk.environ, text=True) as piped,  # noqa: S603, S607 (kubectl)
    ):
        assert piped.stdout is not None
        assert piped.stderr is not None
        assert piped.stderr.readline() == "1 lablet that nobody has is left alone.\n"
        assert piped.stderr.readline() == "3 consoles of r1; Ctrl-C ends it.\n"
        narrow.until("(\x1b\\[36malice | \x1b\\[0mr1>)")
        alice.type("echo by hand\r")
        seen: list[str] = []
        while "alice | by hand\n" not in seen or not any(line.startswith("carol | ") for line in seen):
            seen.append(piped.stdout.readline())
            assert seen[-1], seen
        [missing] = [line for line in seen if line.startswith("carol | ")]
        assert missing.startswith("carol | [")
        assert "'r1'" in missing
        assert "\x1b" not in "".join(seen)
        loop.call_soon_threadsafe(ends.set)
        rest = piped.stdout.read()
        for learner in ("alice", "bob  "):
            assert f"{learner} | [this worker moved to another replica: run the command again]\n" in rest
        of_bob = [line for line in [*seen, *rest.splitlines()] if line.startswith("bob   | ")]
        assert len(of_bob) <= FIRST_LINES + len(("the prompt", "the end")), "not all that its console ever showed"
        assert piped.wait(PATIENCE_S) == 1
        assert narrow.ends() == 1


async def test_a_console_that_ends_is_said_in_its_lane(desk: Desk) -> None:
    ends = asyncio.Event()
    watching = asyncio.create_task(asyncio.to_thread(watch_a_class, desk, ends, asyncio.get_running_loop()))
    ended = asyncio.create_task(ends.wait())
    await asyncio.wait([watching, ended], return_when=asyncio.FIRST_COMPLETED)
    if ended.done():
        desk.site.devices._opened.end()
    ended.cancel()
    await watching


async def test_wrong_calls_are_explained(desk: Desk) -> None:
    pipe = asyncio.subprocess.PIPE
    for words, says in (
        (("-u", "alice", "-u", "bob", "r1"), "add --watch"),
        (("-l", "class=friday", "r1"), "add --watch"),
        (("--watch", "-u", "alice", "-u", "bob", "p", "r1"), "then the DEVICE alone"),
        (("--watch", "-u", "alice", "-l", "class=friday", "r1"), "not both"),
        (("--watch", "--take-over", "-l", "class=friday", "r1"), "--watch or --take-over, not both"),
        (("--watch", "-u", "alice", "-u", "bob"), "name a DEVICE as the last word: pod/"),
        (("--watch", "-u", "alice", "-u", "dave", "r1"), "dave has no lablet in namespace"),
    ):
        process = await asyncio.create_subprocess_exec(
            "kubectl", "lablet", "console", *words, stdin=-3, stdout=pipe, stderr=pipe, env=desk.environ
        )
        async with asyncio.timeout(PATIENCE_S):
            out, err = await process.communicate()
        assert process.returncode in {1, 2}
        assert out == b""
        assert says in " ".join(err.decode().split())
    pressed = ("console", "--watch", "-l", "class=friday", "-u", "")
    for asked, offered in (
        (pressed, "alice"),
        ((*pressed[:4], ""), "r1"),
        (("console", "-u", "bob", "-u", "c"), "carol"),
    ):
        process = await asyncio.create_subprocess_exec(
            "kubectl", "__complete", "lablet", *asked, stdout=pipe, stderr=pipe, env=desk.environ
        )
        out, _ = await process.communicate()
        assert offered in out.decode().split(), asked

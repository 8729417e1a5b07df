"""Files that run between a cause and its effect, and the lines of their functions: `python -m tools.walk [WALK …]`.

`WALKS` has the four walks of the product, by letter and name; without a word it takes all of them. `--list` also prints
the files, `--at REV` takes the walks of a revision, with the tool and the worlds of that revision.

The replicas run in this process, in the worlds of the component tests, under a profiler. Each walk is taken several
times; a function counts if it runs in most of them, so that what happens to run beside one of them does not count, nor
what only an empty cache needs. A task that also runs while nothing happens is a periodic loop, and does not count
either. The lines read are those of these functions, docstrings included.
"""

import argparse
import asyncio
import itertools
import logging
import string
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

import structlog

from tests.component.controllers import harness as labs
from tests.component.controllers.running import SHORT
from tests.component.mux import harness as muxes
from tests.component.portal import harness as users
from tests.component.portal.asking import setting
from tests.component.portal.people import USER_ROLE
from tests.component.portal.site.consolebench import console_bench
from tests.support.apiserver import ApiServer, running
from tools.sources import ROOT, archive

TIMES: Final = 12
"""How often each walk is taken."""
SETTLE_S: Final = 2.0
REST_S: Final = 5.0
"""How long nothing happens."""
_SELDOM_S: Final = 300.0
_LEASES: Final[dict[str, Any]] = {"LEADER_LEASE_TTL": f"{_SELDOM_S:g}"}
_INTERVALS: Final = {
    **SHORT,
    "workers": {**SHORT["workers"], "probe_s": _SELDOM_S},
    "replica": {"lease_ttl_s": _SELDOM_S},
}
"""Replicas whose periodic work does not run beside each walk, also on a busy machine."""
_PRODUCT: Final = tuple(f"{ROOT / name}/" for name in ("vkprovider", "tunnels"))


class Recorder:
    """A profile function that collects the functions of the product that run, but those of periodic loops."""

    def __init__(self) -> None:
        """Record nothing yet."""
        self._codes: set[CodeType] = set()
        self._is_over: Callable[[], bool] = lambda: True
        self._loops: set[asyncio.Task[Any]] = set()
        self._rests = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Record a call, or the resumption of a coroutine."""
        code = frame.f_code
        if event != "call" or code in self._codes or not code.co_filename.startswith(_PRODUCT):
            return
        task = _task()
        if self._rests and task is not None:
            self._loops.add(task)
        elif task not in self._loops and not self._is_over():
            self._codes.add(code)

    async def rest(self) -> None:
        """Learn which tasks are periodic loops: those that run while nothing happens."""
        await asyncio.sleep(SETTLE_S)
        self._codes, self._rests = set(), True
        await asyncio.sleep(REST_S)
        self._rests = False

    def begin(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Record from now on.

        Args:
            is_over: Ends it once it is true; called at each function that runs for the first time.
        """
        self._codes, self._is_over = set(), is_over

    def end(self) -> set[CodeType]:
        """Record nothing more; return the functions that ran."""
        self._is_over = lambda: True
        return self._codes


def _task() -> asyncio.Task[Any] | None:
    """Return the task that runs in this thread; None if no task does."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in it
        return None


Step = Callable[[Recorder], Awaitable[None]]
"""Takes a walk once, and begins and may end the recording; called several times in one world."""


@asynccontextmanager
async def lablet(server: ApiServer, folder: Path) -> AsyncIterator[Step]:
    """Make a world in which Pods become labs."""
    async with labs.open_world(server, folder) as world:
        simulator = await world.simulator()
        await world.replica(_INTERVALS)
        worker, definition = await world.worker(simulator.url), await world.define()

        async def once(recorder: Recorder) -> None:
            there = simulator.simulation.world.labs
            before = len(there)
            recorder.begin(lambda: len(there) > before)
            pod = await world.pod(definition, worker)
            await pod.ready()

        yield once


@asynccontextmanager
async def portal(server: ApiServer, folder: Path) -> AsyncIterator[Step]:
    """Make a world in which learners ask for labs."""
    numbers = itertools.count(1)
    async with users.open_world(server, folder) as world:
        world.times = dict.fromkeys(world.times, _SELDOM_S)
        async with setting(world, **_LEASES) as site:

            async def once(recorder: Recorder) -> None:
                name = f"learner-{next(numbers)}"
                header = await site.people.person(name, USER_ROLE)
                recorder.begin()
                await site.client.ask("POST", f"/labs/{name}/create", header, site.body())
                await site.client.follow(name, header)

            yield once


@asynccontextmanager
async def mux(server: ApiServer, folder: Path) -> AsyncIterator[Step]:
    """Make a world in which channels get outside ports."""
    ports = itertools.count(20_000)
    forwards: dict[int, set[str]] = {}
    async with muxes.open_world(server, folder) as world:
        await world.replica(**_LEASES)
        await world.mux()
        await world.address("203.0.113.10")

        async def once(recorder: Recorder) -> None:
            port = next(ports)
            name, backend = f"channel-{port}", f"10.1.0.{len(forwards) + 1}"
            forwards[port] = {f"{backend}:8080"}
            await world.slice(name, (backend,))
            recorder.begin()
            await world.channel(name, "http:auto", backends=())
            await world.until_forwards(forwards)
            await world.until_told(name, f"http:80->{port}")

        yield once


@asynccontextmanager
async def console(server: ApiServer, folder: Path) -> AsyncIterator[Step]:
    """Make a world with a portal and a device."""
    keys = iter(string.ascii_uppercase)  # of which none is on the screen yet
    async with console_bench(server, folder, _INTERVALS, **_LEASES) as bench:
        cookie = await bench.cookie(await bench.teacher("ann"))

        async def once(recorder: Recorder) -> None:
            key = next(keys)
            recorder.begin()
            async with await bench.screen(cookie, "h0") as screen:
                await screen.shows("h0:~# ")
                await screen.type(key)
                await screen.shows(key)
                recorder.end()
                await screen.type("\x03")
                await screen.shows("h0:~# ")
                await screen.type("\x1d")
                await screen.ends()

        yield once


class Walk(NamedTuple):
    """One of the walks.

    Attributes:
        what: Where it begins and ends.
        world: Makes the world in which it is taken; called with the API server and a folder for files.
    """

    letter: str
    name: str
    what: str
    world: Callable[[ApiServer, Path], AbstractAsyncContextManager[Step]]


WALKS: Final = (
    Walk("a", "lablet", "a Pod is created → its lab is in CML", lablet),
    Walk("b", "portal", "a learner's POST → the last of its server-sent events", portal),
    Walk("c", "mux", "a channel is created → its outside port leads to its backend, and the channel says so", mux),
    Walk("d", "console", "a console is opened in the page → a key that was typed is on the screen", console),
)


async def take(walk: Walk, server: ApiServer, folder: Path) -> dict[str, int]:
    """Return the files of a walk, and how many lines the functions have that run in each."""
    recorder = Recorder()
    async with walk.world(server, folder) as once:
        await once(recorder)
        threading.setprofile(recorder)
        sys.setprofile(recorder)
        try:
            await recorder.rest()
            taken: Counter[CodeType] = Counter()
            for _ in range(TIMES):
                await once(recorder)
                taken.update(recorder.end())
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return _lines(code for code, times in taken.items() if times > TIMES / 2)


def _lines(codes: Iterable[CodeType]) -> dict[str, int]:
    """Return how many lines functions have, by file."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for code in codes:
        last = max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)
        path = str(Path(code.co_filename).relative_to(ROOT))
        found[path] |= set(range(code.co_firstlineno, last + 1))
    return {path: len(lines) for path, lines in sorted(found.items())}


def measure(walks: list[Walk]) -> Iterator[tuple[Walk, dict[str, int]]]:
    """Yield the files of each walk, on one API server."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder, "server")) as server:
        muxes.install(server)
        users.install(server)
        for walk in walks:
            Path(folder, walk.name).mkdir()
            yield walk, asyncio.run(take(walk, server, Path(folder, walk.name)))


def at(revision: str, arguments: list[str]) -> int:
    """Take the walks of a revision; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        with archive(revision) as files:
            files.extractall(folder, filter="data")
        return subprocess.run([sys.executable, "-m", "tools.walk", *arguments], cwd=folder, check=False).returncode  # noqa: S603 (this program)


def main(arguments: list[str]) -> int:
    """Print the walks; return the exit code."""
    by_word = {word: walk for walk in WALKS for word in (walk.letter, walk.name)}
    known = "\n".join(f"  {walk.letter}, {walk.name:8} {walk.what}" for walk in WALKS)
    parser = argparse.ArgumentParser(
        prog="python -m tools.walk",
        description="Files that run between a cause and its effect, and the lines of their functions.",
        epilog=f"walks:\n{known}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("walks", nargs="*", metavar="WALK", help="letter or name of a walk; all of them if omitted")
    parser.add_argument("--list", action="store_true", help="also print the files, with the lines read in each")
    parser.add_argument("--at", metavar="REV", help="revision of git; the working tree if omitted")
    options = parser.parse_args(arguments)
    if unknown := [word for word in options.walks if word not in by_word]:
        parser.error(f"{unknown[0]} is not the name of a walk")
    if options.at:
        return at(options.at, [*options.walks, *(["--list"] if options.list else [])])
    logging.disable()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    chosen = list(dict.fromkeys(by_word[word] for word in options.walks)) or list(WALKS)
    for walk, files in measure(chosen):
        read = sum(files.values())
        print(f"{len(files):>7,}  files, {read:,} lines read, of {walk.letter}, {walk.name}: {walk.what}", flush=True)
        for path, lines in files.items() if options.list else ():
            print(f"           {path}: {lines}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

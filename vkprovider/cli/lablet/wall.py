"""`kubectl lablet console --watch` of several learners: what their consoles send, as lines."""

import asyncio
import contextlib
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import click
import msgspec

from vkprovider.classroom.pods import LabletPod
from vkprovider.cli.lablet.console import console_command, kubectl_command
from vkprovider.cli.shared import output
from vkprovider.cli.shared.batch import select
from vkprovider.cli.shared.output import shorten
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import find_all, named
from vkprovider.lablet.shownname import by_last_name, with_name
from vkprovider.platform.concurrency import end_tasks
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.messages import count

FIRST_LINES: Final = 5
"""The most lines of the screen, the first piece of a console that others use already."""
LINE_BYTES_MAX: Final = 4096
"""A line that is longer is shown in parts."""
_NAME_LEAST: Final = 4
_TAB: Final = 8
_DIGITS: Final = 4
"""The most digits of a move that are read: no line has more cells."""
_PIECES: Final = re.compile(
    r"\x1b\[(?P<given>[0-?]*)[ -/]*(?P<does>[@-~])"  # of ECMA-48, with parameters
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # of xterm: a title
    r"|\x1b[()*+][0-9A-Za-z]|\x1b[ -~]?"
    r"|(?P<char>.)",
    re.DOTALL,
)


class Pending(msgspec.Struct, frozen=True):
    """What a console has sent after its last whole line.

    Attributes:
        rest: The bytes.
        shown: As what they were shown, while nothing followed.
        unseen: Whether there are bytes that were not shown yet.
        begun: Whether anything has come.
    """

    rest: bytes = b""
    shown: str = ""
    unseen: bool = False
    begun: bool = False


def fed(pending: Pending, data: bytes) -> tuple[Pending, list[str]]:
    """Add further bytes; return the rest that is pending then, and the lines that the bytes end.

    Blank lines are left out, and a line that was shown as it is.
    """
    *whole, rest = (pending.rest + data).split(b"\n")
    if len(rest) > LINE_BYTES_MAX:
        whole, rest = [*whole, rest], b""
    lines, shown = list[str](), pending.shown
    for each in whole:
        text = rendered(each)
        if text and text != shown:
            lines.append(text)
        shown = ""
    if not pending.begun:
        lines = lines[-FIRST_LINES:]
    return Pending(rest, shown, unseen=bool(rest), begun=True), lines


def still(pending: Pending) -> tuple[Pending, list[str]]:
    """Mark a rest that nothing has followed for a moment as shown.

    Return it, and its line if that is new, such as a prompt.
    """
    text = rendered(pending.rest)
    lines = [text] if text and text != pending.shown else []
    return msgspec.structs.replace(pending, shown=text, unseen=False), lines


def rendered(line: bytes) -> str:
    """Return a line as a terminal shows it, printable characters alone: what a learner has erased is gone.

    It knows the cursor's moves within a line, which line editors send; `labs.pure.console.screen` needs none of them. A
    program of the whole screen, such as vi, leaves the row that it wrote last.

    >>> rendered(b"shoq" + bytes([8, 27]) + b"[Kw version" + bytes([13]))
    'show version'
    """
    cells: list[str] = []
    at = 0
    for piece in _PIECES.finditer(line.decode(errors="replace")):
        char = piece["char"]
        if char is None:
            at = _moved(cells, at, piece["does"], piece["given"] or "")
        elif char == "\b":
            at = max(0, at - 1)
        elif char == "\r":
            at = 0
        elif char == "\t":
            width = _TAB - at % _TAB
            cells.extend(" " * (at + width - len(cells)))
            at += width
        elif char.isprintable():
            cells[at : at + 1] = [char]
            at += 1
    return "".join(cells).rstrip()


def _moved(cells: list[str], at: int, does: str | None, given: str) -> int:
    """Erase what a control sequence erases, and return where the cursor is after it."""
    by = int(given[:_DIGITS]) if given.isdecimal() else 0
    match does:
        case "D":
            return max(0, at - (by or 1))
        case "C":
            return min(len(cells), at + (by or 1))
        case "G":
            return min(len(cells), max(0, by - 1))
        case "K" | "J" if by == 0:
            del cells[at:]
        case "K":
            cells[:] = " " * at
        case "J" | "H" | "f":
            cells.clear()
            return 0
        case "P":
            del cells[at : at + (by or 1)]
        case "@":
            cells[at:at] = " " * (by or 1)
        case _:
            pass
    return at


def prefixes(names: Sequence[str], columns: int | None) -> list[str]:
    """Return the beginning of the lines of each learner: as wide as the others, and at most a quarter of a terminal.

    Args:
        names: Of learners.
        columns: How wide the terminal is; None without one.
    """
    width = max(map(len, names), default=0)
    if columns is not None:
        width = min(width, max(_NAME_LEAST, columns // 4))
    return [f"{shorten(name, width):{width}} | " for name in names]


_STILL_S: Final = 1.0
"""How long a line that is not whole stands still before it is shown."""
_SCREEN_S: Final = 0.5
"""How long the pieces of the screen come."""
_PIPES_S: Final = 1.0
"""How long the pipes of a kubectl that was ended may stay open."""
_READ_BYTES: Final = 65536
_COLOURS: Final = (
    *("cyan", "yellow", "green", "magenta", "blue", "red"),
    *("bright_cyan", "bright_yellow", "bright_green", "bright_magenta", "bright_blue", "bright_red"),
)
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SIGNAL_BASE: Final = 128
"""What a shell adds to the number of the signal that ended a program."""


class ConsoleLane(NamedTuple):
    """One console of the wall.

    Attributes:
        command: What prints the console, and reads nothing.
        say: Called with each line to print.
    """

    command: Sequence[str]
    say: Callable[[str], None]


def watch_several(learners: Sequence[str], selector: str, device: str | None, place: Place) -> None:
    """Print the consoles of a device of several learners, each line with the learner before it, until Ctrl-C.

    Raises:
        ClickException: A lablet is named wrong, or has not just one device and none is named.
    """

    async def work(kube: KubeClient, namespace: str) -> list[LabletPod]:
        if selector:
            return await select(kube, namespace, selector, lambda pod: not pod.is_free)
        return await find_all(kube, namespace, [named(None, learner) for learner in learners])

    if not (pods := named_lanes(place.run(work))):
        return
    devices = [_device(pod, device) for _, pod in pods]
    says = _says([name for name, _ in pods])
    lanes = [
        ConsoleLane(kubectl_command(place, console_command(pod, label, take_over=False, watch=True, tty=False)), say)
        for (_, pod), label, say in zip(pods, devices, says, strict=True)
    ]
    click.echo(f"{count(len(lanes), 'console')} of {', '.join(sorted(set(devices)))}; Ctrl-C ends it.", err=True)
    sys.exit(asyncio.run(_watch(lanes)))


def named_lanes(pods: Iterable[LabletPod]) -> list[tuple[str, LabletPod]]:
    """Return lablets with their names on the wall, by last name: the learner, with the Pod if they have several."""
    pods = sorted(pods, key=lambda pod: (by_last_name(pod.user or pod.metadata.name, pod.shown), pod.metadata.name))
    times = Counter(pod.user for pod in pods)

    def lane(pod: LabletPod) -> str:
        if not pod.user:
            return pod.metadata.name
        learner = with_name(pod.user, pod.shown)
        return f"{learner} {pod.metadata.name}" if times[pod.user] > 1 else learner

    return [(lane(pod), pod) for pod in pods]


def device_of(pod: LabletPod, device: str | None) -> str | None:
    """Return the device that is named, else the only one with a container in the Pod; None if there is none such."""
    there = [container.name for container in pod.spec.containers[1:]]
    return device or (there[0] if len(there) == 1 else None)


def _device(pod: LabletPod, device: str | None) -> str:
    """Return the device to watch.

    Raises:
        UsageError: None is named, and the Pod does not have just one.
    """
    if (found := device_of(pod, device)) is None:
        there = ", ".join(container.name for container in pod.spec.containers[1:])
        hint = f"pod/{pod.metadata.name} has {there}" if there else "such as r1"
        raise click.UsageError(f"name a DEVICE as the last word: {hint}")
    return found


def _says(lanes: Sequence[str]) -> list[Callable[[str], None]]:
    """Return for each lane what prints its lines."""
    colours = output.has_colours(sys.stdout)

    def say_in(prefix: str, colour: str) -> Callable[[str], None]:
        shown = click.style(prefix, fg=colour) if colours else prefix
        return lambda line: click.echo(f"{shown}{line}")

    beginnings = prefixes(lanes, output.columns(sys.stdout))
    return [say_in(prefix, _COLOURS[at % len(_COLOURS)]) for at, prefix in enumerate(beginnings)]


async def _watch(lanes: Sequence[ConsoleLane]) -> int:
    """Print the lanes until all have ended, or a signal comes; return the exit code."""
    loop = asyncio.get_running_loop()
    asked: asyncio.Future[int] = loop.create_future()

    def ask(number: int) -> None:
        if not asked.done():
            asked.set_result(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, ask, number)
    watching: asyncio.Future[list[int]] = asyncio.gather(*(_follow(lane) for lane in lanes))
    either: list[asyncio.Future[Any]] = [watching, asked]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if asked.done():
            return _SIGNAL_BASE + asked.result()
        codes = watching.result()
        return _SIGNAL_BASE + signal.SIGINT if -signal.SIGINT in codes else int(any(codes))
    finally:
        await end_tasks((watching,))


async def _follow(lane: ConsoleLane) -> int:
    """Print one console until it ends, and then why; return the exit code of its kubectl."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *lane.command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
    except OSError as error:
        lane.say(f"[kubectl cannot be started: {error.strerror or error}]")
        return 1
    assert process.stdout is not None  # noqa: S101 (a pipe, see above)
    assert process.stderr is not None  # noqa: S101 (same)
    told = asyncio.create_task(_tail(process.stderr))
    try:
        await _print(process.stdout, lane.say)
        code = await process.wait()
        if code != -signal.SIGINT:  # Ctrl-C reaches each program of the terminal
            lane.say(f"[{_why(await told) or 'the console has ended'}]")
        return code
    finally:
        await end_tasks((told,))
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with contextlib.suppress(TimeoutError):  # a login plugin of kubectl may hold its pipes
            async with asyncio.timeout(_PIPES_S):
                await process.communicate()  # pipes that are open when the loop ends would print a traceback


async def _print(stream: asyncio.StreamReader, say: Callable[[str], None]) -> None:
    pending, lines = fed(Pending(), await _screen(stream))
    ended = False
    while True:
        for line in lines:
            say(line)
        if ended:
            return
        try:
            async with asyncio.timeout(_STILL_S if pending.unseen else None):
                data = await stream.read(_READ_BYTES)
        except TimeoutError:
            pending, lines = still(pending)
        else:
            pending, lines = fed(pending, data) if data else still(pending)
            ended = not data


async def _screen(stream: asyncio.StreamReader) -> bytes:
    """Read the screen, which comes at once when a session joins others; or nothing at the end."""
    screen = await stream.read(_READ_BYTES)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_SCREEN_S):
            while data := await stream.read(_READ_BYTES):
                screen += data
    return screen


async def _tail(stream: asyncio.StreamReader) -> bytes:
    """Read to the end; return the last of it."""
    kept = b""
    while data := await stream.read(_READ_BYTES):
        kept = (kept + data)[-_READ_BYTES:]
    return kept


def _why(told: bytes) -> str:
    """Return why a console ended, by what its kubectl says, without the exit code if there is more."""
    lines = [text for line in told.splitlines() if (text := rendered(line))]
    return "; ".join([line for line in lines if not line.startswith("command terminated with")] or lines)

"""`kubectl lablet console --watch` of several learners: a kubectl without input for each console, until Ctrl-C."""

import asyncio
import contextlib
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import click

from vkprovider.classroom.pods import LabletPod
from vkprovider.cli.lablet.console import console_command, kubectl_command
from vkprovider.cli.lablet.wall.lines import Pending, fed, prefixes, rendered, still
from vkprovider.cli.shared.batch import select
from vkprovider.cli.shared.output import terminal
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import find_all, named
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.wording import count

_STILL_S: Final = 1.0
"""How long a line that is not whole stands still before it is shown."""
_SCREEN_S: Final = 0.5
"""How long the pieces of the screen come."""
_READ_BYTES: Final = 65536
_COLOURS: Final = (
    *("cyan", "yellow", "green", "magenta", "blue", "red"),
    *("bright_cyan", "bright_yellow", "bright_green", "bright_magenta", "bright_blue", "bright_red"),
)
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SIGNAL_BASE: Final = 128
"""What a shell adds to the number of the signal that ended a program."""


class Lane(NamedTuple):
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
        Lane(kubectl_command(place, console_command(pod, label, take_over=False, watch=True, tty=False)), say)
        for (_, pod), label, say in zip(pods, devices, says, strict=True)
    ]
    click.echo(f"{count(len(lanes), 'console')} of {', '.join(sorted(set(devices)))}; Ctrl-C ends it.", err=True)
    sys.exit(asyncio.run(_watch(lanes)))


def named_lanes(pods: Iterable[LabletPod]) -> list[tuple[str, LabletPod]]:
    """Return lablets in the order of their names on the wall: the learner, with the Pod if the learner has several."""
    pods = list(pods)
    times = Counter(pod.user for pod in pods)
    found = [
        (f"{pod.user} {pod.metadata.name}" if times[pod.user] > 1 and pod.user else pod.user or pod.metadata.name, pod)
        for pod in pods
    ]
    return sorted(found, key=lambda lane: lane[0].casefold())


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
    colours = terminal.has_colours(sys.stdout)

    def say_in(prefix: str, colour: str) -> Callable[[str], None]:
        shown = click.style(prefix, fg=colour) if colours else prefix
        return lambda line: click.echo(f"{shown}{line}")

    beginnings = prefixes(lanes, terminal.columns(sys.stdout))
    return [say_in(prefix, _COLOURS[at % len(_COLOURS)]) for at, prefix in enumerate(beginnings)]


async def _watch(lanes: Sequence[Lane]) -> int:
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
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _follow(lane: Lane) -> int:
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
        told.cancel()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


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

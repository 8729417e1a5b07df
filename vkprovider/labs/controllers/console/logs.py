"""`kubectl logs`: what a console has printed, and what it goes on printing.

The log is CML's. A follower watches the shared console only to notice that there is something new, and then reads the
end of the log: once for all who follow the device, and never while the device is silent.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Final

from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.labs.controllers.console.finding import MOVED, FoundDevice
from vkprovider.labs.controllers.console.shared import Console
from vkprovider.labs.kubelet.spi import LogLine
from vkprovider.labs.pure.console.history import RunLine, TimedLine, dated, dated_until, news, parse
from vkprovider.platform.errors import InputError, OutsideError

KEPT_LINES: Final = 2000
"""The lines that are kept of a followed log; a viewer who is further behind misses lines."""
LOOK_LINES: Final = 200
"""Asked for when there is something new; the whole log if they do not join on to what is known."""
GATHER_S: Final = 0.5
"""The pause between two looks at a log whose device prints."""
REST_S: Final = 2.0
"""The pause between two looks, in memory only, whether a device that was off runs again."""


async def read(device: FoundDevice, *, now: float, tail: int | None = None) -> list[TimedLine]:
    """Read the log of the present run.

    Args:
        device: The device.
        now: The wall clock.
        tail: Only the last so many lines.

    Raises:
        OutsideError: CML did not answer.
    """
    run = (await _runs(device, lines=tail))[-1]
    return dated(run, started_at=device.place.claim.started_at, now=now)


async def read_previous(device: FoundDevice, *, now: float) -> list[TimedLine]:
    """Read the log of the run before the last restart.

    Raises:
        InputError: `NoPreviousLog`.
        OutsideError: CML did not answer.
    """
    runs = await _runs(device)
    if len(runs) == 1:
        text = f"{device.label} was not restarted since its disks were last wiped, as far as CML's log shows"
        raise InputError(ConsoleReason.NO_PREVIOUS_LOG, text)
    return dated_until(runs[-2], device.place.claim.last_at or now)


async def _runs(device: FoundDevice, *, lines: int | None = None) -> list[list[RunLine]]:
    consoles = device.worker.labs.consoles
    return parse(await consoles.read_log(device.lab_id, device.fact.id, lines=lines))


class Followed:
    """The log of one device while anybody follows it.

    Args:
        device: Returns the device as it is known now; raises `OutsideError` if its log does not go on here. Called
            before each look.
        console: Returns its console.
        wall: The wall clock.
    """

    def __init__(
        self,
        device: Callable[[], FoundDevice],
        console: Callable[[FoundDevice], Console],
        wall: Callable[[], float],
    ) -> None:
        self._device = device
        self._console = console
        self._wall = wall
        self._entries: list[RunLine] = []
        self._lines: deque[TimedLine] = deque(maxlen=KEPT_LINES)
        self._count = 0
        self._over = ""
        self._fault: InputError | OutsideError | None = None
        self._changed = asyncio.Condition()
        self._viewers = 0
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    @property
    def is_followed(self) -> bool:
        """Whether anybody follows it."""
        return self._viewers > 0

    async def follow(self) -> AsyncGenerator[list[TimedLine]]:
        """Yield the log as it is, and what comes; the last line says why there is no more.

        The first list is the whole log of the present run, as far as it is kept.

        Raises:
            InputError: The log could not be read at the first look.
            OutsideError: The same.
        """
        self._viewers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="followed log")
        try:
            await self._ready.wait()
            if self._fault is not None:
                raise self._fault
            seen = self._count
            yield list(self._lines)
            while True:
                await self._past(seen)
                fresh = min(self._count - seen, len(self._lines))
                seen = self._count
                if fresh:
                    yield list(self._lines)[-fresh:]
                if self._over:
                    yield [TimedLine(self._wall(), f"[{self._over}]")]
                    return
        finally:
            self._viewers -= 1
            if not self._viewers:
                self._task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._task

    async def _past(self, count: int) -> None:
        """Wait until there are more than `count` lines, or no more come."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._count > count or bool(self._over))

    async def _run(self) -> None:
        why = MOVED
        try:
            while True:
                await self._go_on(self._device())
                self._ready.set()
                await asyncio.sleep(REST_S)
        except (OutsideError, InputError) as error:
            if self._ready.is_set():
                why = error.message
            else:
                self._fault = error
        finally:
            self._over = why
            self._ready.set()
            async with self._changed:
                self._changed.notify_all()

    async def _go_on(self, device: FoundDevice) -> None:
        """Watch a device, or look at its log once if it is off; what fails is tried again, unless it is the first look.

        Raises:
            InputError: The first look failed.
            OutsideError: The same.
        """
        try:
            try:
                await (self._watch(device) if device.is_on else self._look(device))
            except InputError:  # there is no console at the moment, or too many watch it; its log may be there
                await self._look(device)
        except (InputError, OutsideError):
            if not self._ready.is_set():
                raise

    async def _watch(self, device: FoundDevice) -> None:
        """Look at the log whenever the device prints something, until the connection ends."""
        async with self._console(device).watching() as watcher:
            await self._look(device)
            self._ready.set()
            while await watcher.read():
                await asyncio.sleep(GATHER_S)
                await self._look(self._device())

    async def _look(self, device: FoundDevice) -> None:
        """Read the end of the log, and note what is new."""
        runs = await _runs(device, lines=LOOK_LINES if self._entries else None)
        fresh = news(self._entries, runs[-1])
        if fresh is None:
            runs = await _runs(device)
            fresh = news(self._entries, runs[-1])
        if fresh is None:  # another run has begun: who follows from now on reads nothing of the one before
            self._lines.clear()
            fresh = runs[-1]
        await self._note(device, list(fresh))

    async def _note(self, device: FoundDevice, fresh: Iterable[RunLine]) -> None:
        lines = dated(list(fresh), started_at=device.place.claim.started_at, now=self._wall())
        if lines:
            self._entries = [*self._entries, *fresh][-LOOK_LINES:]
            self._lines.extend(lines)
            self._count += len(lines)
            async with self._changed:
                self._changed.notify_all()


def chosen(lines: Iterable[TimedLine], *, since_at: float | None, tail: int | None) -> list[LogLine]:
    """Return the lines that a user wants."""
    wanted = [LogLine(line.at, line.text) for line in lines if since_at is None or line.at >= since_at]
    return wanted if tail is None else wanted[len(wanted) - min(tail, len(wanted)) :]

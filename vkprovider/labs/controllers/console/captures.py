"""`exec -c lab -- capture r1:eth0`: packets of a link, as a pcap file that grows on stdout until the capture ends.

CML gives the whole file each time, so that it is asked how many packets there are, and the file is read when they are
more. While a reader is slow a part of it at most is kept, and one that reads nothing is left. A lab has one capture at
a time. Each has a limit of seconds at CML, by which one that a killed replica has left ends by itself; before that, the
next capture of the lab stops it.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from vkprovider.cml.spi import Captures
from vkprovider.lablet import captures
from vkprovider.lablet.captures import CaptureRequest
from vkprovider.lablet.observations import LinkFact
from vkprovider.lablet.ports import HIDDEN_TAG, INFRASTRUCTURE_NODE_TYPES
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.labs.controllers.console.commands import say
from vkprovider.labs.controllers.console.finding import (
    ENDED,
    MOVED,
    TIME_OVER,
    Finder,
    FoundLablet,
    check,
    facts_of,
    topology_of,
)
from vkprovider.labs.kubelet.spi import Exit, RemoteCommand
from vkprovider.labs.pure.console.links import EMPTY, GrowingPcap, NamedLink, find, named
from vkprovider.platform.concurrency import end_tasks
from vkprovider.platform.errors import Fenced, InputError, Invalid, NotFound, OutsideError, Unavailable
from vkprovider.platform.messages import count

_POLL_S: Final = 1.0
_BYTES_PER_S: Final = 2 * 2**20
"""By which polls of a large file are further apart."""
_LATE_S: Final = 5.0
"""How much longer than its limit CML may take to end a capture."""
_FAULTS_MAX: Final = 5
_STOP_S: Final = 5.0
_BYTES_MAX: Final = 16 * 2**20
"""Of a file: the capture ends there."""
_HELD_BYTES: Final = 4 * 2**20
"""How much of a file waits for a slow reader; for what follows it is read again."""
_PIECE_BYTES: Final = 64 * 1024
_READER_S: Final = 30.0
"""In which a reader takes a piece, and in the end all that is left."""
_SLOW: Final = "its reader is too slow"


@dataclass(eq=False, slots=True)
class RunningCapture:
    """A capture that somebody reads.

    Attributes:
        link: As it was asked for, until it is found.
        stopped: Is set when somebody asks for its end.
        over: Is set at its end.
    """

    link: str
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)


class OpenCaptures:
    """The captures that this replica serves."""

    def __init__(self, finder: Finder) -> None:
        """Create it without any; `finder` knows the workers that this replica acts for."""
        self._finder = finder
        self._running: dict[tuple[str, str], RunningCapture] = {}

    async def serve(self, place: FoundLablet, words: Sequence[str], command: RemoteCommand) -> Exit:
        """Do what a command asks for, whose first word is `capture`.

        Args:
            place: The lablet.
            words: The command; see `lablet.captures`.
            command: The session; a capture ends with it.

        Raises:
            InputError: `CommandInvalid`, `NotALink`, `CaptureRuns`, `NothingToDo`, `NoLab`.
            OutsideError: CML did not answer.
            ConnectionLost: The client left.
        """
        match list(words[1:]):
            case [] | [captures.LIST]:
                return await self._list(place, command)
            case [captures.STOP]:
                return await self._stop(place, command)
            case _:
                return await self._capture(place, captures.read(words), command)

    async def _list(self, place: FoundLablet, command: RemoteCommand) -> Exit:
        lines = []
        for link in await self._links(place):
            key = link.fact.capture_key
            found = await place.worker.labs.captures.status(place.claim.lab_id, link.fact.id) if key else None
            lines.append(f"{link}" if found is None else f"{link}: {count(found.packets, 'packet')} until now")
        end = "\r\n" if command.tty else "\n"
        await command.write("".join(f"{line}{end}" for line in lines or ["The lab has no links."]).encode())
        return Exit(0)

    async def _stop(self, place: FoundLablet, command: RemoteCommand) -> Exit:
        running = self._running.get(_key(place))
        if running is not None:
            running.stopped.set()
            with suppress(TimeoutError):  # CML captures nothing any more, and only the reader has not noticed
                async with asyncio.timeout(_READER_S + 2 * _STOP_S):
                    await running.over.wait()
        elif not await self._end_left(place, await place.worker.labs.captures.list_links(place.claim.lab_id)):
            raise InputError(ConsoleReason.NOTHING_TO_DO, f"no packets are captured in the lab of {place.claim.pod}")
        await command.write(b"The capture is stopped.\r\n" if command.tty else b"The capture is stopped.\n")
        return Exit(0)

    async def _capture(self, place: FoundLablet, wanted: CaptureRequest, command: RemoteCommand) -> Exit:
        pod, key = place.claim.pod, _key(place)
        if command.tty:
            raise InputError(ConsoleReason.COMMAND_INVALID, "packets are no text for a terminal: leave out -t")
        why = self._over(place)
        if why or not place.claim.ready_at:
            raise InputError(ConsoleReason.NO_LAB, f"the lab of {pod} does not run: {why or 'wait until it is Ready'}")
        if (other := self._running.get(key)) is not None:
            raise InputError(
                ConsoleReason.CAPTURE_RUNS,
                f"packets of {other.link} are captured in the lab of {pod} already, and one capture runs at a time: "
                f"wait, or end it with `kubectl exec {pod} -c lab -- capture stop`",
            )
        running = self._running[key] = RunningCapture(wanted.link)
        try:
            links = await self._links(place)
            link = find(links, wanted.link)
            running.link = str(link)
            if await self._end_left(place, [each.fact for each in links]):
                await say(command, "a capture of this lab that nobody read was stopped")
            capture_key = await place.worker.labs.captures.start(place.claim.lab_id, link.fact.id, wanted)
            return await _Stream(place, link, wanted, capture_key, running, command).run(lambda: self._over(place))
        finally:
            del self._running[key]
            running.over.set()

    async def _links(self, place: FoundLablet) -> list[NamedLink]:
        worker, lab_id = place.worker, place.claim.lab_id
        check(worker)
        facts, topology = await facts_of(place), topology_of(place)
        hidden = frozenset(each.label for each in topology.devices if HIDDEN_TAG in each.tags)
        wiring = frozenset(each.label for each in facts if each.definition in INFRASTRUCTURE_NODE_TYPES)
        links = await worker.labs.captures.list_links(lab_id)
        return named(links, {fact.id: fact.label for fact in facts}, hidden, wiring)

    async def _end_left(self, place: FoundLablet, links: Sequence[LinkFact]) -> bool:
        """Stop what CML captures in a lab though nobody reads it here; return whether there was anything.

        A replica that was killed has left it, or a person in CML's own user interface.
        """
        labs, lab_id, found = place.worker.labs.captures, place.claim.lab_id, False
        for link in links:
            if link.capture_key and await labs.status(lab_id, link.id) is not None:
                await labs.stop(lab_id, link.id)
                found = True
        return found

    def _over(self, place: FoundLablet) -> str:
        """Return why no packets may be captured any more; "" as long as they may.

        Raises:
            Unavailable: Another replica acts for the worker now.
        """
        worker, before = place.worker, place.claim
        if self._finder.workers.get(worker.name) is not worker:
            raise Unavailable(MOVED)
        claim = worker.claims.claims.get(place.lablet.uid)
        if claim is None or claim.lab_id != before.lab_id:
            return ENDED
        if claim.learner != before.learner or claim.closing_reason:
            return TIME_OVER
        return "it was stopped, or is being reset" if claim.stopped_at or claim.resetting else ""


def _key(place: FoundLablet) -> tuple[str, str]:
    return place.worker.name, place.claim.lab_id


class _Stream:
    """One capture on its way to its reader.

    Args:
        place: The lablet.
        link: The link.
        wanted: What is captured.
        capture_key: By which CML knows the capture, which has begun.
        running: Says when somebody asks for its end.
        command: The session.
    """

    def __init__(
        self,
        place: FoundLablet,
        link: NamedLink,
        wanted: CaptureRequest,
        capture_key: str,
        running: RunningCapture,
        command: RemoteCommand,
    ) -> None:
        self._captures: Captures = place.worker.labs.captures
        self._lab_id, self._link_id = place.claim.lab_id, link.fact.id
        self._link = link
        self._wanted = wanted
        self._capture_key = capture_key
        self._running = running
        self._command = command
        self._file = GrowingPcap()
        self._read_bytes = 0

    async def run(self, over: Callable[[], str]) -> Exit:
        """Pass packets on until the end.

        Args:
            over: Called each second: why nothing may be captured any more, or "".

        Raises:
            OutsideError: CML refused, or does not answer; as of `over`.
            ConnectionLost: The client left.
        """
        ending = asyncio.create_task(self._until_end(over), name="capture: end")
        following = asyncio.create_task(self._follow(ending), name="capture: packets")
        try:
            await asyncio.wait((ending, following), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((following,), timeout=_STOP_S)  # which ends, unless nobody reads
            reads, has_more = following.done(), ending.done()
            why = following.result() if reads else f"{ending.result()}, and {_SLOW}"
        except TimeoutError:
            reads, has_more, why = False, False, _SLOW
        finally:
            await end_tasks((ending, following))
            await self._end()
        if not reads:
            return Exit(1, why)
        try:
            async with asyncio.timeout(_READER_S):
                await self._finish(why, has_more=has_more)
        except TimeoutError:
            return Exit(1, f"{why}, and {_SLOW}")
        return Exit(0)

    async def _until_end(self, over: Callable[[], str]) -> str:
        """Return why the capture ends, by whatever but CML and the packets."""
        now_s = asyncio.get_running_loop().time
        end_s = now_s() + self._wanted.seconds + _LATE_S
        waiting = [
            asyncio.create_task(self._command.gone(), name="capture: client"),
            asyncio.create_task(self._running.stopped.wait(), name="capture: stop"),
        ]
        try:
            while now_s() < end_s:
                await asyncio.wait(waiting, timeout=_POLL_S, return_when=asyncio.FIRST_COMPLETED)
                if any(task.done() for task in waiting):
                    return "it was stopped"
                if why := over():
                    return why
            return "it has reached its limit"
        finally:
            await end_tasks(waiting)

    async def _follow(self, ending: asyncio.Task[str]) -> str:
        """Pass packets on until there are enough, or until a task ends; return why.

        Raises:
            TimeoutError: The reader does not read.
        """
        faults, wanted = 0, self._wanted
        limits = f"{count(wanted.packets, 'packet')} or {wanted.seconds} s"
        await say(self._command, f"capturing {self._link}, until there are {limits}")
        while True:
            await asyncio.wait((ending,), timeout=_POLL_S + self._read_bytes / _BYTES_PER_S)
            if ending.done():
                return ending.result()
            try:
                found = await self._captures.status(self._lab_id, self._link_id)
                if found is not None and found.key != self._capture_key:
                    found = None  # this one has ended, and another has begun
                if found is not None and (not self._file.has_begun or found.packets > self._file.packets):
                    await self._pass_on()
            except Unavailable:
                faults += 1
                if faults >= _FAULTS_MAX:
                    raise
                continue
            faults = 0
            if found is None:
                await self._pass_last_on()
                return "it has reached its limit, or was ended in CML"
            if self._read_bytes > _BYTES_MAX:
                return f"it has reached {_BYTES_MAX // 2**20} MiB"
            if found.packets >= wanted.packets:
                return "it has reached its limit"

    async def _pass_on(self) -> None:
        """Write what is new, part by part.

        Raises:
            TimeoutError: The reader does not read.
        """
        while True:
            data = await self._captures.read(self._capture_key)
            self._read_bytes = len(data)
            new = self._file.new(data[:_BYTES_MAX], _HELD_BYTES)
            del data  # which is not kept while the reader is slow
            for at in range(0, len(new), _PIECE_BYTES):
                async with asyncio.timeout(_READER_S):
                    await self._command.write(new[at : at + _PIECE_BYTES])
            if len(new) < _HELD_BYTES:
                return

    async def _pass_last_on(self) -> None:
        """Write what is new at the end, unless CML has forgotten what it captured.

        Raises:
            OutsideError: It fails again and again, so that the last packets would be missing.
            Fenced: Likewise: this replica may not ask for them.
            TimeoutError: The reader does not read.
        """
        for left in reversed(range(_FAULTS_MAX)):
            try:
                with suppress(NotFound, Invalid):
                    await self._pass_on()
            except Unavailable:
                if not left:
                    raise
                await asyncio.sleep(_POLL_S)
            else:
                return

    async def _finish(self, why: str, *, has_more: bool) -> None:
        if has_more:
            await self._pass_last_on()
        if not self._file.has_begun:
            await self._command.write(EMPTY)
        await say(self._command, f"{count(self._file.packets, 'packet')} captured: {why}")

    async def _end(self) -> None:
        """Stop the capture, unless it has ended, or this replica may not: by its limit of seconds it ends then."""
        with suppress(OutsideError, Fenced, TimeoutError):
            async with asyncio.timeout(_STOP_S):
                found = await self._captures.status(self._lab_id, self._link_id)
                if found is not None and found.key == self._capture_key:
                    await self._captures.stop(self._lab_id, self._link_id)

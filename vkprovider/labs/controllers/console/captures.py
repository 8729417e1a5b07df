"""`exec -c lab -- capture r1:eth0`: packets of a link, as a pcap file that grows on stdout until the capture ends.

CML gives the whole file each time, so that it is asked how many packets there are, and the file is read when they are
more. A lab has one capture at a time. Each has a limit of seconds at CML, by which one that a killed replica has left
ends by itself; before that, the next capture of the lab stops it.
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
from vkprovider.lablet.ports import HIDDEN_TAG
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.labs.controllers.console.commands import say
from vkprovider.labs.controllers.console.finding import ENDED, MOVED, Finder, FoundLablet, check, facts_of, topology_of
from vkprovider.labs.kubelet.spi import Exit, RemoteCommand
from vkprovider.labs.pure.console.links import EMPTY, GrowingPcap, NamedLink, find, named
from vkprovider.platform.errors import Fenced, InputError, OutsideError, Unavailable
from vkprovider.platform.messages import count

_POLL_S: Final = 1.0
_BYTES_PER_S: Final = 2 * 2**20
"""By which polls of a large file are further apart."""
_LATE_S: Final = 5.0
"""How much longer than its limit CML may take to end a capture."""
_FAULTS_MAX: Final = 5
_STOP_S: Final = 5.0


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
            stream = _Stream(place, link, wanted, running, command)
            await stream.run(lambda: self._over(place))
        finally:
            del self._running[key]
            running.over.set()
        return Exit(0)

    async def _links(self, place: FoundLablet) -> list[NamedLink]:
        worker, lab_id = place.worker, place.claim.lab_id
        check(worker)
        facts, topology = await facts_of(place), topology_of(place)
        hidden = frozenset(each.label for each in topology.devices if HIDDEN_TAG in each.tags)
        links = await worker.labs.captures.list_links(lab_id)
        return named(links, {fact.id: fact.label for fact in facts}, hidden)

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
            return "the learner's time with it is over"
        return "it was stopped, or is being reset" if claim.stopped_at or claim.resetting else ""


def _key(place: FoundLablet) -> tuple[str, str]:
    return place.worker.name, place.claim.lab_id


class _Stream:
    """One capture on its way to its reader.

    Args:
        place: The lablet.
        link: The link.
        wanted: What is captured.
        running: Says when somebody asks for its end.
        command: The session.
    """

    def __init__(
        self,
        place: FoundLablet,
        link: NamedLink,
        wanted: CaptureRequest,
        running: RunningCapture,
        command: RemoteCommand,
    ) -> None:
        self._captures: Captures = place.worker.labs.captures
        self._lab_id, self._link_id = place.claim.lab_id, link.fact.id
        self._link = link
        self._wanted = wanted
        self._running = running
        self._command = command
        self._file = GrowingPcap()
        self._read_bytes = 0
        self._capture_key = ""

    async def run(self, over: Callable[[], str]) -> None:
        """Capture until the end.

        Args:
            over: Called before each look: why nothing may be captured any more, or "".

        Raises:
            OutsideError: CML refused, or does not answer; as of `over`.
            ConnectionLost: The client left.
        """
        wanted = self._wanted
        self._capture_key = await self._captures.start(self._lab_id, self._link_id, wanted)
        ends = [
            asyncio.create_task(self._command.gone(), name="capture: client"),
            asyncio.create_task(self._running.stopped.wait(), name="capture: stop"),
        ]
        try:
            limits = f"{count(wanted.packets, 'packet')} or {wanted.seconds} s"
            await say(self._command, f"capturing {self._link}, until there are {limits}")
            why = await self._follow(ends, over)
        finally:
            for task in ends:
                task.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
            await self._end()
        with suppress(OutsideError, Fenced):  # CML may have forgotten what it captured
            await self._pass_on()
        if not self._file.has_begun:
            await self._command.write(EMPTY)
        await say(self._command, f"{count(self._file.packets, 'packet')} captured: {why}")

    async def _follow(self, ends: Sequence[asyncio.Task[object]], over: Callable[[], str]) -> str:
        now_s = asyncio.get_running_loop().time
        end_s, faults = now_s() + self._wanted.seconds + _LATE_S, 0
        while True:
            pause_s = _POLL_S + self._read_bytes / _BYTES_PER_S
            await asyncio.wait(ends, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
            if any(task.done() for task in ends):
                return "it was stopped"
            if why := over():
                return why
            try:
                found = await self._captures.status(self._lab_id, self._link_id)
                if found is None or found.key != self._capture_key:
                    return "it has reached its limit, or was ended in CML"
                if not self._file.has_begun or found.packets > self._file.packets:
                    await self._pass_on()
            except Unavailable:
                faults += 1
                if faults >= _FAULTS_MAX:
                    raise
                continue
            faults = 0
            if found.packets >= self._wanted.packets or now_s() > end_s:
                return "it has reached its limit"

    async def _pass_on(self) -> None:
        data = await self._captures.read(self._capture_key)
        self._read_bytes = len(data)
        if new := self._file.new(data):
            await self._command.write(new)

    async def _end(self) -> None:
        """Stop the capture, unless it has ended, or this replica may not: by its limit of seconds it ends then."""
        with suppress(OutsideError, Fenced, TimeoutError):
            async with asyncio.timeout(_STOP_S):
                found = await self._captures.status(self._lab_id, self._link_id)
                if found is not None and found.key == self._capture_key:
                    await self._captures.stop(self._lab_id, self._link_id)

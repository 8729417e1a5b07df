"""Which lablet a lab belongs to, by mark, notes and title, for labs that no claim names.

A lab without exactly our mark is foreign: counted, never touched. A marked lab that no claim names is reported and left
alone, as it may be a copy that somebody saved, unless it is certainly what an import left behind whose answer was lost,
and was never started. Its ports are given to no lablet: it may be started at any time.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import structlog

from vkprovider.cml.spi import Labs
from vkprovider.lablet import names, ports
from vkprovider.lablet import observations as words
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.identity import KnownLab, certain, is_leftover, matches, origin_of
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import NotFound, OutsideError, Unavailable

_log: Final = structlog.get_logger(__name__)
_READS_MAX: Final = 32
"""Unknown labs that are looked at in one pass."""
_UNREADABLE_S: Final = 60.0
"""How long a lab that cannot be read is not read again: a look at its worker waits for the answer."""
_AT_ONCE: Final = 0.0
"""When a lab is read again about which there was no answer for the first time: it may be the worker that is silent."""
_READS_AT_ONCE: Final = 2
"""Labs that are read at once; the worker's probe must find a connection."""


class LabIndex:
    """The labs of one worker that no claim names.

    Attributes:
        foreign: How many labs are others'.
        unclaimed: Marked labs that no claim names: lab id → title. A list may be older than the claims, and name a lab
            that is already gone with its claim; so a lab must be in two lists in a row.
        ports: What marked labs open that no claim names, as (protocol, port).
        examined: Whether every lab of the last list was looked at, so that `ports` has all of them; it may be one that
            cannot be read. One about which there was no answer was not looked at until it has been asked for again.
    """

    def __init__(self, installation: str, worker: str, labs: Labs) -> None:
        self._mark = names.mark(installation)
        self._worker = worker
        self._labs = labs
        self._known: dict[str, KnownLab] = {}
        self._suspects: frozenset[str] = frozenset()
        self._unreadable: dict[str, float] = {}  # by id, when it is read again
        self._finding = asyncio.Lock()
        self.foreign = 0
        self.unclaimed: dict[str, str] = {}
        self.ports: frozenset[tuple[str, int]] = frozenset()
        self.examined = False

    def reconnect(self, labs: Labs) -> None:
        """Go on over another connection to the same controller."""
        self._labs = labs

    async def find(self, claim: Claim, claims: Mapping[str, Claim], shown: str = "") -> list[KnownLab]:
        """Find the labs that may be that of a claim that names none, see `identity.matches`.

        Raises:
            OutsideError: The worker could not be asked; that is not "none".
        """
        return matches(claim, (await self.unknown_to(claims)).values(), shown)

    async def unknown_to(self, claims: Mapping[str, Claim], *, strict: bool = True) -> dict[str, KnownLab]:
        """Return the marked labs that no claim names, from a fresh list; for `strict` see `marked`.

        Raises:
            OutsideError: The worker could not be asked; that is not "none".
        """
        return await self._read_marked({claim.lab_id for claim in claims.values() if claim.lab_id}, strict=strict)

    async def marked(self, *, strict: bool) -> dict[str, KnownLab]:
        """Read every lab of the worker again, as its notes may have changed, and return the marked ones by id.

        Args:
            strict: Whether a lab that cannot be read may be one of ours; else it counts as foreign, as in `scan`.

        Raises:
            OutsideError: The list could not be read, or a lab in it that may be ours; ask again.
        """
        return await self._read_marked(frozenset(), strict=strict, reread=True)

    async def _read_marked(self, taken: Collection[str], *, strict: bool, reread: bool = False) -> dict[str, KnownLab]:
        """Return the marked labs that are not in `taken`, by id."""
        async with self._finding:  # after a takeover many look at once, and what one has learned serves all
            if reread:
                self._known.clear()
            lab_ids = [lab_id for lab_id in await self._labs.list_lab_ids() if lab_id not in taken]
            unknown = [lab_id for lab_id in lab_ids if lab_id not in self._known]
            await self._learn(unknown if strict else self._due(unknown), strict=strict)
            if silent := self._silent(lab_ids):
                raise Unavailable(f"worker {self._worker} says nothing of lab {silent[0]}")
        if reread:
            self.ports = _opened(self._known.values())  # until the next scan, for claims that are made before it
        found = {lab_id: self._known.get(lab_id) for lab_id in lab_ids}
        return {lab_id: known for lab_id, known in found.items() if known is not None and known.marked}

    async def scan(self, lab_ids: frozenset[str], claims: Mapping[str, Claim]) -> None:
        """Sort the labs of a fresh list into ours, foreign and unclaimed; remove what lost answers left for certain.

        A lab that cannot be read counts as foreign: one that is broken must not look like a worker that is.
        """
        taken = {claim.lab_id for claim in claims.values() if claim.lab_id}
        others = lab_ids - taken
        for lab_id in list(self._known):
            if lab_id not in lab_ids:
                del self._known[lab_id]
        self._unreadable = {lab_id: at for lab_id, at in self._unreadable.items() if lab_id in lab_ids}
        due = self._due(lab_id for lab_id in others if lab_id not in self._known)
        due.sort(key=lambda lab_id: lab_id in self._unreadable)
        unknown, later = due[:_READS_MAX], due[_READS_MAX:]
        gone = await self._learn(unknown, strict=False)
        self.examined = not self._silent(others) and (later == [] or later[0] in self._unreadable)
        marked = {i: known for i in others - gone if (known := self._known.get(i)) is not None and known.marked}
        foreign = len(others - gone) - len(marked)
        dated = self._labs.time() > 0
        found = {i: known.title for i, known in marked.items() if not _is_awaited(known, marked, claims, dated=dated)}
        for lab_id in list(found):
            claim = claims.get(origin.pod_uid) if (origin := marked[lab_id].origin) is not None else None
            if claim is not None and is_leftover(claim, marked[lab_id], marked.values()):
                await self._remove_leftover(lab_id)
                del found[lab_id]
        self.ports = _opened(marked.values())
        unclaimed = {lab_id: title for lab_id, title in found.items() if lab_id in self._suspects}
        for lab_id in unclaimed.keys() - self.unclaimed.keys():
            _log.warning("marked lab without a claim", worker=self._worker, lab=lab_id, title=unclaimed[lab_id])
        self.foreign, self.unclaimed, self._suspects = foreign, unclaimed, frozenset(found)

    def _due(self, lab_ids: Iterable[str]) -> list[str]:
        """Return the labs that are to be read now: those that could not be read only after a while."""
        now_s = asyncio.get_running_loop().time()
        return [lab_id for lab_id in lab_ids if self._unreadable.get(lab_id, now_s) <= now_s]

    def _silent(self, lab_ids: Iterable[str]) -> list[str]:
        """Return the labs about which there was no answer, and which have not been asked for again."""
        return [lab_id for lab_id in lab_ids if self._unreadable.get(lab_id) == _AT_ONCE]

    async def _learn(self, lab_ids: list[str], *, strict: bool) -> set[str]:
        """Read labs, a few at a time; what was learned before a fault stays. Return those that are gone by now.

        Raises:
            OutsideError: One could not be read, and that matters.
        """
        gone, later_s = set[str](), asyncio.get_running_loop().time() + _UNREADABLE_S

        async def look(lab_id: str) -> None:
            try:
                lab = await self._labs.get_lab(lab_id)
                first_line = lab.lab_notes.split("\n", 1)[0].strip()
                tags = await self._labs.list_tags(lab_id) if first_line == self._mark else {}
            except NotFound:
                gone.add(lab_id)
                self._unreadable[lab_id] = later_s  # where it is listed for ever, it keeps no other one waiting
                return
            except OutsideError as error:
                if strict:
                    raise
                if lab_id in self._known:
                    return  # another one that looks has read it meanwhile
                is_first = lab_id not in self._unreadable
                if is_first and isinstance(error, Unavailable) and not error.status:
                    self._unreadable[lab_id] = _AT_ONCE
                    return
                if is_first or self._silent((lab_id,)):
                    _log.warning("a lab cannot be read", worker=self._worker, lab=lab_id, error=str(error))
                self._unreadable[lab_id] = later_s
                return
            title, created, marked = lab.lab_title, lab.created or "", first_line == self._mark
            origin = origin_of(title, lab.lab_notes) if marked else None
            self._known[lab_id] = KnownLab(lab_id, title, marked, created, origin, tags if marked else {})
            self._unreadable.pop(lab_id, None)

        await at_most(_READS_AT_ONCE, look, lab_ids)
        return gone

    async def _remove_leftover(self, lab_id: str) -> None:
        try:
            lab = await self._labs.get_lab(lab_id)
            if lab.state == words.DEFINED:
                await self._labs.delete_lab(lab_id)
                _log.info("removed what an import left behind whose answer was lost", worker=self._worker, lab=lab_id)
        except OutsideError as error:
            _log.warning("cannot remove what an import left behind", worker=self._worker, lab=lab_id, error=str(error))


def _is_awaited(lab: KnownLab, marked: Mapping[str, KnownLab], claims: Mapping[str, Claim], *, dated: bool) -> bool:
    """Return whether a lab is being imported, or is about to be found: its claim is to name it.

    On a worker that says what time it is, no import is sent without a note.
    """
    claim = claims.get(lab.origin.pod_uid) if lab.origin is not None else None
    if claim is None or claim.lab_id or (dated and not claim.asked_at):
        return False
    return certain(claim, matches(claim, marked.values(), ""), "") is lab


def _opened(labs: Iterable[KnownLab]) -> frozenset[tuple[str, int]]:
    """Return the ports that labs open, with their protocols."""
    return frozenset(port for lab in labs for port in ports.named_by(lab.tags))

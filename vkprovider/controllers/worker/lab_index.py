"""Which lablet a lab belongs to, by mark, notes and title, for labs that no claim names.

A lab without exactly our mark is foreign: counted, never touched. A marked lab that no claim names is reported and left
alone, unless it is a lost answer's duplicate: never started, and its Pod's claim names another lab.
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from vkprovider.api import labs as words
from vkprovider.api import names
from vkprovider.api.errors import NotFound, OutsideError
from vkprovider.cml.spi import Labs
from vkprovider.concurrency import at_most
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet.identity import Origin, origin_of

_log: Final = structlog.get_logger(__name__)
_READS_MAX: Final = 32
"""Unknown labs that are looked at in one pass."""
_READS_AT_ONCE: Final = 2
"""Labs that are read at once; the worker's probe must find a connection."""


@dataclass(frozen=True, slots=True)
class KnownLab:
    """A lab that was read.

    Attributes:
        created: ISO 8601; "" if CML does not say.
        origin: What a marked lab was imported from; None if it does not say.
    """

    title: str
    marked: bool
    created: str
    origin: Origin | None


class LabIndex:
    """The labs of one worker that no claim names.

    Attributes:
        foreign: How many labs are others'.
        unclaimed: Marked labs that no claim names: lab id → title. A list may be older than the claims, and name a lab
            that is already gone with its claim; so a lab must be in two lists in a row.
    """

    def __init__(self, installation: str, worker: str, labs: Labs) -> None:
        self._mark = names.mark(installation)
        self._worker = worker
        self._labs = labs
        self._known: dict[str, KnownLab] = {}
        self._suspects: frozenset[str] = frozenset()
        self._unreadable: set[str] = set()
        self._finding = asyncio.Lock()
        self.foreign = 0
        self.unclaimed: dict[str, str] = {}

    async def find(self, claim: Claim, claims: Mapping[str, Claim]) -> str:
        """Find the lab of a claim that names none: ours, of its title or else by its notes, the oldest; "" if none.

        Raises:
            OutsideError: The worker could not be asked; that is not "none".
        """
        taken = {other.lab_id for other in claims.values() if other.lab_id}
        matches = [
            (known.title != claim.title, known.created, lab_id)
            for lab_id, known in (await self._read_marked(taken)).items()
            if known.title == claim.title or (known.origin is not None and known.origin.pod_uid == claim.pod_uid)
        ]
        return min(matches)[2] if matches else ""

    async def unknown_to(self, claims: Mapping[str, Claim]) -> dict[str, KnownLab]:
        """Return the marked labs that no claim names, from a fresh list.

        Raises:
            OutsideError: The worker could not be asked; that is not "none".
        """
        return await self._read_marked({claim.lab_id for claim in claims.values() if claim.lab_id})

    async def marked(self) -> dict[str, KnownLab]:
        """Read every lab of the worker again, as its notes may have changed, and return the marked ones by id.

        Raises:
            OutsideError: The list, or a lab in it, could not be read.
        """
        return await self._read_marked(frozenset(), reread=True)

    async def _read_marked(self, taken: Collection[str], *, reread: bool = False) -> dict[str, KnownLab]:
        """Return the marked labs that are not in `taken`, by id."""
        async with self._finding:  # after a takeover many look at once, and what one has learned serves all
            if reread:
                self._known.clear()
            lab_ids = [lab_id for lab_id in await self._labs.list_lab_ids() if lab_id not in taken]
            await self._learn([lab_id for lab_id in lab_ids if lab_id not in self._known])
        found = {lab_id: self._known.get(lab_id) for lab_id in lab_ids}
        return {lab_id: known for lab_id, known in found.items() if known is not None and known.marked}

    async def scan(self, lab_ids: frozenset[str], claims: Mapping[str, Claim]) -> None:
        """Sort the labs of a fresh list into ours, foreign and unclaimed; remove duplicates of lost answers.

        A lab that cannot be read counts as foreign: one that is broken must not look like a worker that is.
        """
        taken = {claim.lab_id for claim in claims.values() if claim.lab_id}
        others = lab_ids - taken
        for lab_id in list(self._known):
            if lab_id not in lab_ids:
                del self._known[lab_id]
        self._unreadable &= lab_ids
        if unknown := [lab_id for lab_id in others if lab_id not in self._known][:_READS_MAX]:
            await self._learn(unknown, strict=False)
        gone = {lab_id for lab_id in unknown if lab_id not in self._known} - self._unreadable
        by_title = {claim.title: claim for claim in claims.values()}
        foreign, found = 0, {}
        for lab_id in others - gone:
            known = self._known.get(lab_id)
            if known is None or not known.marked:
                foreign += 1
            elif (claim := by_title.get(known.title)) is None:
                found[lab_id] = known.title
            elif claim.lab_id and claim.lab_id != lab_id:
                await self._remove_duplicate(lab_id)
        unclaimed = {lab_id: title for lab_id, title in found.items() if lab_id in self._suspects}
        for lab_id in unclaimed.keys() - self.unclaimed.keys():
            _log.warning("marked lab without a claim", worker=self._worker, lab=lab_id, title=unclaimed[lab_id])
        self.foreign, self.unclaimed, self._suspects = foreign, unclaimed, frozenset(found)

    async def _learn(self, lab_ids: list[str], *, strict: bool = True) -> None:
        """Read labs, a few at a time; what was learned before a fault stays.

        Raises:
            OutsideError: One could not be read, and that matters.
        """

        async def look(lab_id: str) -> None:
            try:
                lab = await self._labs.get_lab(lab_id)
            except NotFound:
                return
            except OutsideError as error:
                if strict:
                    raise
                if lab_id not in self._unreadable:
                    self._unreadable.add(lab_id)
                    _log.warning("a lab cannot be read", worker=self._worker, lab=lab_id, error=str(error))
                return
            first_line = lab.lab_notes.split("\n", 1)[0].strip()
            marked = first_line == self._mark
            origin = origin_of(lab.lab_title, lab.lab_notes) if marked else None
            self._known[lab_id] = KnownLab(lab.lab_title, marked, lab.created or "", origin)
            self._unreadable.discard(lab_id)

        await at_most(_READS_AT_ONCE, look, lab_ids)

    async def _remove_duplicate(self, lab_id: str) -> None:
        try:
            lab = await self._labs.get_lab(lab_id)
            if lab.state == words.DEFINED:
                await self._labs.delete_lab(lab_id)
                _log.info("removed a lost answer's duplicate", worker=self._worker, lab=lab_id)
        except OutsideError as error:
            _log.warning("cannot remove a duplicate", worker=self._worker, lab=lab_id, error=str(error))

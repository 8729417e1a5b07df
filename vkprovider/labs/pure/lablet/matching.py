"""Which marked lab is the one of a claim that names none, and which is certainly a leftover of ours.

Export and import keep a lab's title and notes, so a copy that somebody saved looks like its original. Two things tell
them apart: the note of an import, which is the worker's time before it and stands in the claim and in the lab's notes,
and the time at which the worker created the lab. No two imports of a lablet have the same note, and a lab that was
created later than an import may take is a copy of the imported one. Where that leaves a doubt, nothing is chosen and
nothing is removed.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.labs import IMPORT_S
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.identity import Origin
from vkprovider.platform.objects import Pod

NOTE_S: Final = 20
"""How old a note may be when its import is sent."""
_RESOLUTION_S: Final = 1
"""The resolution of an HTTP date, and of the time at which CML created a lab."""


class KnownLab(msgspec.Struct, frozen=True):
    """A lab that was read.

    Attributes:
        created: ISO 8601; "" if CML does not say.
        origin: What a marked lab was imported from; None if it does not say.
        tags: The tags of a marked lab's devices, by label.
    """

    lab_id: str
    title: str
    marked: bool
    created: str
    origin: Origin | None
    tags: Mapping[str, tuple[str, ...]] = {}


def shown_lab(pod: Pod | None) -> str:
    """Return the id of the lab that a Pod shows, "" if it shows none; it only chooses among labs that bear its UID."""
    return pod.metadata.annotations.get(names.ANNOTATION_LAB_ID, "") if pod is not None else ""


def matches(claim: Claim, labs: Iterable[KnownLab], shown: str) -> list[KnownLab]:
    """Return the labs that may be a claim's.

    Args:
        claim: Names no lab.
        labs: The marked labs that no claim names.
        shown: The id of the lab that the claim's Pod shows; it decides where the claim has no note.
    """
    ours = [lab for lab in labs if lab.title == claim.title or _uid(lab) == claim.pod_uid]
    if claim.asked_at:
        return [lab for lab in ours if _asked(lab) == claim.asked_at and _in_time(lab, unknown=True)]
    return [lab for lab in ours if lab.lab_id == shown] or ours


def certain(claim: Claim, found: Collection[KnownLab], shown: str) -> KnownLab | None:
    """Return the lab that is a claim's for certain, of its `matches`; None if none is."""
    if len(found) != 1:
        return None
    [lab] = found
    return lab if claim.asked_at or shown in {"", lab.lab_id} else None


def is_leftover(claim: Claim, lab: KnownLab, labs: Iterable[KnownLab]) -> bool:
    """Return whether a lab is what an import left behind whose answer was lost, and that was found too late.

    Its note is that of an earlier import of the claim than the one of the claim's lab, so that it is no copy of that.

    Args:
        claim: Of the lab's Pod.
        lab: A marked lab that no claim names.
        labs: All of them: of two with one note, one is a copy, and both stay.
    """
    asked = _asked(lab)
    if not claim.lab_id or not claim.first_asked_at or _uid(lab) != claim.pod_uid:
        return False
    if not claim.first_asked_at <= asked < claim.asked_at or not _in_time(lab, unknown=False):
        return False
    return sum(_asked(other) == asked and _uid(other) == claim.pod_uid for other in labs) == 1


def _in_time(lab: KnownLab, *, unknown: bool) -> bool:
    """Return whether a lab was created within the deadline of the import whose note it has; `unknown` if CML is silent.

    >>> lab = KnownLab("l", "t", True, "2026-01-01T00:01:00+00:00", Origin("u", "n", "p", "d", asked=1767225600))
    >>> _in_time(lab, unknown=False)
    True
    """
    try:
        created = datetime.fromisoformat(lab.created)
    except ValueError:
        return unknown
    at = (created if created.tzinfo is not None else created.replace(tzinfo=UTC)).timestamp()
    asked = _asked(lab)
    return asked - _RESOLUTION_S <= at <= asked + NOTE_S + IMPORT_S + _RESOLUTION_S


def _uid(lab: KnownLab) -> str:
    return lab.origin.pod_uid if lab.origin is not None else ""


def _asked(lab: KnownLab) -> int:
    return lab.origin.asked if lab.origin is not None else 0

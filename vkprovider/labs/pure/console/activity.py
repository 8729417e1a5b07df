"""When the learner of a lablet was last active: a report that is at most a minute old, and never goes back.

What counts is input at a console, and that the learner's session started. The state is the report on the Pod, so that a
replica that takes over, or starts again, goes on from there; it loses what was noted and not written, a minute at most.
A lablet that gets another learner begins without a report: nobody has opened it yet.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from vkprovider.lablet import names
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.platform.times import iso, unix

EVERY_S: Final = 60
"""How old a report is before the next one is written."""


class Activity(msgspec.Struct, frozen=True, gc=False):
    """Input at a console of a lablet.

    Attributes:
        at: When it came (Unix seconds); 0 if none has.
        learner: Whose lablet it was; "" while warm.
    """

    at: int = 0
    learner: str = ""


NO_ACTIVITY: Final = Activity()


def noted(known: Activity, annotations: Mapping[str, str], learner: str, now: int) -> Activity:
    """Return what is to be known of input that comes now; `known` itself if the report need not change for it.

    Args:
        known: The input that was noted last.
        annotations: Of the Pod.
        learner: Whose lablet it is.
        now: Unix seconds.
    """
    is_noted = known.learner == learner and known.at and now - known.at < EVERY_S
    if is_noted or not _is_due(_before(annotations, learner), now):
        return known
    return Activity(now, learner)


def reported(known: Activity, annotations: Mapping[str, str], claim: Claim) -> str:
    """Return the report that the Pod should have; "" for none.

    Args:
        known: The input that was noted last.
        annotations: Of the Pod.
        claim: The lablet's.
    """
    before = _before(annotations, claim.learner)
    typed_at = known.at if known.learner == claim.learner else 0
    at = max(typed_at, claim.session.started_at if claim.session is not None else 0)
    return iso(at) if at and _is_due(before, at) else before


def _before(annotations: Mapping[str, str], learner: str) -> str:
    """Return the report that a Pod has of this learner."""
    same = annotations.get(names.ANNOTATION_LEARNER, "") == learner
    return annotations.get(names.ANNOTATION_LAST_ACTIVITY, "") if same else ""


def _is_due(before: str, at: int) -> bool:
    """Return whether activity is reported, by the report before; one that cannot be read is replaced."""
    reported_at = unix(before)
    return reported_at is None or at - reported_at >= EVERY_S

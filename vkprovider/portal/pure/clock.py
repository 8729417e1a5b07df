"""The end of a user's time: when it is at first, how far it can be moved, and how people read it."""

import math
from typing import Final

from vkprovider.platform.times import clock, length
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.rejections import BODY, USERNAME, Grounds, Rejection
from vkprovider.portal.settings import PortalSettings

DURATION_MIN_S: Final = 60


def duration_of(asked_s: int, settings: PortalSettings) -> int | Rejection:
    """Return for how long a user who asks for so many seconds has a lab; who asks for 0 has the usual time."""
    if not asked_s:
        return settings.duration_s
    if DURATION_MIN_S <= asked_s <= settings.duration_max_s:
        return asked_s
    told = f"a lab takes {length(DURATION_MIN_S)} to {length(settings.duration_max_s)}, not {length(asked_s)}"
    return Rejection(Grounds.INVALID_BODY, told, (BODY, "options", "duration"))


def extended(lab: UserLab, asked_s: int, now: float, settings: PortalSettings) -> int | Rejection:
    """Return the new end of a lab, in Unix seconds.

    Args:
        lab: The lab.
        asked_s: By how many seconds its time is to be extended; it gets fewer where that is the longest time.
        now: Unix seconds.
        settings: The bounds.
    """
    if not 0 < asked_s <= settings.extend_s:
        told = f"one request extends a lab by 1 s to {length(settings.extend_s)}"
        return Rejection(Grounds.INVALID_BODY, told, (BODY, "seconds"))
    if lab.own_pod is None or lab.own_pod.terminal or lab.record.ending is not None or math.isinf(lab.end_at):
        return Rejection(Grounds.CANNOT_EXTEND, "the lab has no time that could be extended", USERNAME)
    if lab.end_at <= now:
        return Rejection(Grounds.CANNOT_EXTEND, f"the time of the lab ended at {clock(lab.end_at, now)}", USERNAME)
    latest = lab.began_at + settings.duration_max_s
    end = int(min(lab.end_at + asked_s, latest))
    if end <= lab.end_at:
        told = f"the lab already has its longest time, {length(settings.duration_max_s)}, until {clock(latest, now)}"
        return Rejection(Grounds.CANNOT_EXTEND, told, USERNAME)
    return end


def words(end: float, now: float) -> str:
    """Return the end of a lab in words.

    >>> words(1769869800, 1769865480)
    'ends 14:30 UTC, in 1 h 12 min'
    """
    if math.isinf(end):
        return "has no end"
    return f"ends {clock(end, now)}, in {length(end - now)}" if end > now else f"ended {clock(end, now)}"

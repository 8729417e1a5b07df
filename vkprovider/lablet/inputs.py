"""The annotations by which users direct a lablet, its image, and what an instructor tells its learner.

These annotations are requests by users who may edit the Pod, and affect that one lablet and nothing else.

vkprovider.io/message: 2026-11-26T17:00:00Z We go on at 14:00.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

from vkprovider.lablet import deviceacts, names
from vkprovider.lablet.archives import ARCHIVE_ID
from vkprovider.lablet.guests import fault_of_guests
from vkprovider.lablet.models.fields import LATEST
from vkprovider.lablet.shownname import SHOWN_CHARS_MAX
from vkprovider.lablet.standing import State
from vkprovider.platform import wellknown
from vkprovider.platform.messages import plain
from vkprovider.platform.objects import Metadata
from vkprovider.platform.times import iso, unix

_TIME_MAX: Final = int(datetime(9000, 1, 1, tzinfo=UTC).timestamp())
"""Later times, or a little more, cannot be written as dates."""
_DESIRABLE: Final = (State.READY, State.RUNNING, State.STOPPED, State.COLLECTING, State.TERMINATED)
_USERNAME_CHARS_MAX: Final = 256
_TOKEN: Final = re.compile(r"[\x20-\x7e]{1,64}")
"""Any text whose change is a request, such as a time."""
_DEVICES: Final = '{"r1": "restart 2026-01-31T12:00:00Z"}'
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


class Inputs(msgspec.Struct, frozen=True, gc=False):
    """What the annotations request.

    Attributes:
        username: The learner; "" for a warm lablet.
        slot_start, slot_end: The learner's timeslot (Unix seconds), 0 where it is open.
        desired: The requested state; None without a request.
        reset: A word; a new one requests that the lab is wiped and started again.
        devices: What is asked of single devices: label and request.
        pool: The pool that the Pod is in, by its label.
        lent_by: The pool that lent the lablet to a learner.
        begin_from: The id of the saved work that the devices begin with; "" for the topology alone.
        faults: The annotations that cannot be read; they count as absent.
    """

    username: str = ""
    slot_start: int = 0
    slot_end: int = 0
    desired: State | None = None
    reset: str = ""
    devices: tuple[tuple[str, str], ...] = ()
    pool: str = ""
    lent_by: str = ""
    begin_from: str = ""
    faults: tuple[str, ...] = ()


NOTHING: Final = Inputs()
_PREFIX: Final = f"{wellknown.GROUP}/"
_OURS: Final = frozenset(
    {
        names.ANNOTATION_LENT_BY,
        names.ANNOTATION_DEVICE_REQUESTS,
        names.ANNOTATION_GUESTS,
        names.ANNOTATION_OWNER,
        names.ANNOTATION_BEGIN_FROM,
    }
)
"""Written by commands and by the provider, never by hand."""
_WORDS: Final = sorted(name.removeprefix(_PREFIX) for name in names.INPUTS - _OURS)
_UNKNOWN_MAX: Final = 5
_WORD_CHARS_MAX: Final = 63
"""How many annotations that mean nothing are named, and how much of each."""


def inputs_of(meta: Metadata) -> Inputs:
    """Parse a Pod's annotations; those that cannot be read are listed as faults and left out."""
    notes = meta.annotations
    pool = meta.labels.get(names.LABEL_POOL, "")
    faults = _unknown(notes.keys() - names.POD_ANNOTATIONS)
    if names.INPUTS.isdisjoint(notes) and not faults:
        return Inputs(pool=pool) if pool else NOTHING
    _check_shown(notes, faults)
    start = _time(notes, names.ANNOTATION_TIMESLOT_START, faults)
    end = _time(notes, names.ANNOTATION_TIMESLOT_END, faults)
    if fault := fault_of_guests(notes):
        faults.append(fault)
    if start and end and end <= start:
        faults.append(f"{names.ANNOTATION_TIMESLOT_END} is not after {names.ANNOTATION_TIMESLOT_START}")
        start = end = 0
    return Inputs(
        username=_username(notes, faults),
        slot_start=start,
        slot_end=end,
        desired=_desired(notes, faults),
        reset=_copied(notes, names.ANNOTATION_RESET, _TOKEN, faults),
        devices=_devices(notes, faults),
        pool=pool,
        lent_by=_copied(notes, names.ANNOTATION_LENT_BY, _LABEL_VALUE, faults),
        begin_from=_copied(notes, names.ANNOTATION_BEGIN_FROM, ARCHIVE_ID, faults),
        faults=tuple(faults),
    )


def _unknown(others: Iterable[str]) -> list[str]:
    """Report annotations of our group that mean nothing, such as a misspelt `vkprovider.io/user`."""
    found = []
    for name in sorted(name for name in others if name.startswith(_PREFIX))[:_UNKNOWN_MAX]:
        word = name.removeprefix(_PREFIX)[:_WORD_CHARS_MAX]
        meant = difflib.get_close_matches(word, _WORDS, n=1, cutoff=0.5)
        hint = f"; do you mean {_PREFIX}{meant[0]}?" if meant else f"; there are {', '.join(_WORDS)}"
        found.append(f"{_PREFIX}{word} means nothing to vkprovider{hint}")
    return found


def _username(notes: dict[str, str], faults: list[str]) -> str:
    username = notes.get(names.ANNOTATION_USERNAME, "").strip()
    if len(username) > _USERNAME_CHARS_MAX or not username.isprintable():
        faults.append(
            f"{names.ANNOTATION_USERNAME} is not a name of at most {_USERNAME_CHARS_MAX} printable characters"
        )
        return ""
    return username


def _check_shown(notes: dict[str, str], faults: list[str]) -> None:
    """Report a name for people that is not shown as it is written."""
    shown = notes.get(names.ANNOTATION_SHOWN_NAME, "")
    if len(shown) > SHOWN_CHARS_MAX or not shown.isprintable():
        faults.append(f"{names.ANNOTATION_SHOWN_NAME} is not a name of at most {SHOWN_CHARS_MAX} printable characters")


def _copied(notes: dict[str, str], name: str, pattern: re.Pattern[str], faults: list[str]) -> str:
    """Return an annotation that goes into the claim, whose ConfigMap all lablets of the worker share."""
    text = notes.get(name, "")
    if text and not pattern.fullmatch(text):
        faults.append(f"{name} {text[:40]!r} does not match {pattern.pattern}")
        return ""
    return text


def _devices(notes: dict[str, str], faults: list[str]) -> tuple[tuple[str, str], ...]:
    text = notes.get(names.ANNOTATION_DEVICE_REQUESTS, "")
    found = deviceacts.read(text) if text else {}
    if found is None:
        faults.append(f"{names.ANNOTATION_DEVICE_REQUESTS} {text[:40]!r} is not like {_DEVICES}")
        return ()
    return tuple(sorted(found.items()))


def _time(notes: dict[str, str], name: str, faults: list[str]) -> int:
    text = notes.get(name, "")
    if not text:
        return 0
    try:
        when = datetime.fromisoformat(text)
        seconds = int(when.timestamp()) if when.tzinfo is not None else 0
    except (ValueError, OverflowError):
        seconds = 0
    if seconds <= 0:
        faults.append(f"{name} {text[:40]!r} is not a time with a zone; example: 2026-01-31T12:00:00Z")
    elif seconds > _TIME_MAX:
        faults.append(f"{name} {text[:40]!r} is after the year 9000; leave it out for no end")
    return seconds if 0 < seconds <= _TIME_MAX else 0


def _desired(notes: dict[str, str], faults: list[str]) -> State | None:
    text = notes.get(names.ANNOTATION_DESIRED_STATE, "")
    if not text:
        return None
    for state in _DESIRABLE:
        if text.upper() == state:
            return state
    faults.append(f"{names.ANNOTATION_DESIRED_STATE} {text[:40]!r} is not one of {', '.join(_DESIRABLE)}")
    return None


def tag_of(image: str) -> tuple[str, str]:
    """Split an image into definition and version; no version and `latest` are both ``""``.

    >>> tag_of("netlab:1.2.0")
    ('netlab', '1.2.0')
    """
    name, _, tag = image.partition(":")
    return name, "" if tag == LATEST else tag


CHARS_MAX: Final = 500
"""The most characters of a message."""


class InstructorMessage(NamedTuple):
    """A message.

    Attributes:
        at: When it was written, in Unix seconds; None if it does not say that.
        text: For the learner.
    """

    at: float | None
    text: str


def message_of(annotations: Mapping[str, str]) -> InstructorMessage | None:
    """Return the message of a Pod; None without one."""
    written = annotations.get(names.ANNOTATION_MESSAGE, "").strip()
    stamp, _, text = written.partition(" ")
    at = unix(stamp)
    shown = plain(written if at is None else text.strip())[:CHARS_MAX]
    return InstructorMessage(at, shown) if shown else None


def annotation_for(text: str, now: float) -> dict[str, str | None]:
    """Return the annotations to patch so that a Pod has a message; an empty one removes what is there.

    Args:
        text: For the learner; lines become one.
        now: Unix seconds.
    """
    line = plain(" ".join(text.split()))[:CHARS_MAX].strip()
    return {names.ANNOTATION_MESSAGE: f"{iso(int(now))} {line}" if line else None}

"""What an instructor tells the learner of a lablet: one line of plain text on the Pod, with its time.

vkprovider.io/message: 2026-11-26T17:00:00Z We go on at 14:00.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from vkprovider.lablet import names
from vkprovider.platform.times import iso, unix
from vkprovider.platform.wording import plain

CHARS_MAX: Final = 500
"""The most characters of a message."""


class Message(NamedTuple):
    """A message.

    Attributes:
        at: When it was written, in Unix seconds; None if it does not say that.
        text: For the learner.
    """

    at: float | None
    text: str


def message_of(annotations: Mapping[str, str]) -> Message | None:
    """Return the message of a Pod; None without one."""
    written = annotations.get(names.ANNOTATION_MESSAGE, "").strip()
    stamp, _, text = written.partition(" ")
    at = unix(stamp)
    shown = plain(written if at is None else text.strip())[:CHARS_MAX]
    return Message(at, shown) if shown else None


def annotation_for(text: str, now: float) -> dict[str, str | None]:
    """Return the annotations to patch so that a Pod has a message; an empty one removes what is there.

    Args:
        text: For the learner; lines become one.
        now: Unix seconds.
    """
    line = plain(" ".join(text.split()))[:CHARS_MAX].strip()
    return {names.ANNOTATION_MESSAGE: f"{iso(int(now))} {line}" if line else None}

"""Changes as events of a stream, as `live.js` reads them: pure.

    event: change
    data: {"topic": "class:net101", "from": "", "version": "aGk…", "elements": {…}, "lists": {…}}

Without `from`, the change is all that there is, and what a list has beside it is there no more.
"""

from typing import Final

import msgspec

from vkprovider.platform.http.sse import frame
from vkprovider.portal.web.live.rendered import PageChange, Shown, all_of, difference

_encoder: Final = msgspec.json.Encoder()


class _Change(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    topic: str
    from_: str
    version: str
    elements: object
    lists: object


class _Gone(msgspec.Struct, frozen=True):
    topic: str
    words: str


def change(topic: str, old: Shown | None, new: Shown) -> bytes:
    """Return the event after which a page that shows `old` shows `new`; without `old`, it may have shown anything."""
    found: PageChange = difference(old.rendered, new.rendered) if old is not None else all_of(new.rendered)
    body = _Change(topic, old.version if old is not None else "", new.version, found.elements, found.lists)
    return frame("", _encoder.encode(body).decode(), "change")


def gone(topic: str, words: str) -> bytes:
    """Return the event by which a topic ends for a visitor."""
    return frame("", _encoder.encode(_Gone(topic, words)).decode(), "gone")


class _Beat(msgspec.Struct, frozen=True):
    at: int
    age: int


def beat(unix_s: float, age_s: float) -> bytes:
    """Return the sign of life.

    Args:
        unix_s: The API server's time, by which labs end: clocks of visitors are wrong.
        age_s: How old what is shown may be, if that matters; else 0.
    """
    return frame("", _encoder.encode(_Beat(int(unix_s * 1000), int(age_s))).decode(), "beat")

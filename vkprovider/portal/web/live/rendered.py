"""What a topic looks like, what differs between two renderings, and changes as events of a stream. Pure.

    event: change
    data: {"topic": "class:net101", "from": "", "version": "aGk…", "elements": {…}, "lists": {…}}

Without `from`, the change is all that there is, and what a list has beside it is there no more.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from vkprovider.platform.http.sse import frame

_MINUTE_S: Final = 60
_EXACT_MINUTES: Final = 10
_HOURS_MAX: Final = 48


def time_left(seconds: float) -> str:
    """Return how long something still lasts, for `<time data-until="…">`.

    >>> time_left(5000)
    '1 h 23 min left'
    """
    if seconds <= 0:
        return "over"
    minutes, rest = divmod(int(seconds), _MINUTE_S)
    if minutes < _EXACT_MINUTES:
        return f"{minutes}:{rest:02} min left"
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min left"
    return f"{hours} h {minutes} min left" if hours < _HOURS_MAX else f"{hours // 24} d {hours % 24} h left"


_VERSION_BYTES: Final = 12
_NOTHING: Final[Mapping[str, str]] = {}


class Rendered(msgspec.Struct, frozen=True):
    """The elements of a page that change.

    Attributes:
        elements: The HTML of whole elements, by the id that each has.
        lists: Elements that come, go and change places, by the id of the element that holds them alone; each as in
            `elements`, in the order of the page.
    """

    elements: Mapping[str, str] = {}
    lists: Mapping[str, Mapping[str, str]] = {}

    def version(self) -> str:
        """Return a name for exactly this: every replica that sees the same gives it the same name."""
        parts = hashlib.blake2b(digest_size=_VERSION_BYTES)
        for key, html in self.elements.items():
            parts.update(f"{key}\0{html}\0".encode())
        for parent, children in self.lists.items():
            parts.update(f"\0{parent}\0".encode())
            for key, html in children.items():
                parts.update(f"{key}\0{html}\0".encode())
        return urlsafe_b64encode(parts.digest()).decode()


class Rendering(NamedTuple):
    """A rendering and its version."""

    version: str
    rendered: Rendered


class Put(NamedTuple):
    """An element of a list that is new, has changed, or has another place.

    Attributes:
        after: The id of the element before it; "" for the first.
    """

    id: str
    html: str
    after: str


class ListChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """What differs in a list.

    Attributes:
        put: What is new, has changed, or has another place, in the order of the page.
        gone: The ids of what is there no more.
    """

    put: tuple[Put, ...] = ()
    gone: tuple[str, ...] = ()


class PageChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """What differs between two renderings.

    Attributes:
        elements, lists: What is to be shown now; as in `Rendered`.
    """

    elements: Mapping[str, str] = {}
    lists: Mapping[str, ListChange] = {}


def all_of(new: Rendered) -> PageChange:
    """Return everything, for a page of which nobody knows what it shows."""
    return PageChange(new.elements, {parent: ListChange(_put(its, its)) for parent, its in new.lists.items()})


def difference(old: Rendered, new: Rendered) -> PageChange:
    """Return what differs."""
    elements = {key: html for key, html in new.elements.items() if old.elements.get(key) != html}
    lists = {parent: _list_change(old.lists.get(parent, _NOTHING), its) for parent, its in new.lists.items()}
    return PageChange(elements, {parent: change for parent, change in lists.items() if change != _SAME})


_SAME: Final = ListChange()


def _list_change(old: Mapping[str, str], new: Mapping[str, str]) -> ListChange:
    stay = [key for key, html in new.items() if old.get(key) == html]
    kept = set(stay)
    if [key for key in old if key in kept] != stay:
        kept = set()  # they have changed places without a change of themselves: rare, so all are put
    return ListChange(_put(new, (key for key in new if key not in kept)), tuple(key for key in old if key not in new))


def _put(its: Mapping[str, str], keys: Iterable[str]) -> tuple[Put, ...]:
    before = dict(zip(its, ["", *its], strict=False))
    return tuple(Put(key, its[key], before[key]) for key in keys)


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


def change(topic: str, old: Rendering | None, new: Rendering) -> bytes:
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

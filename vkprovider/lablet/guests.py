"""The guests of a lablet: who shares it with its learner, to watch or to type.

An instructor names them on the Pod, as the learner is named; they go with the learner's time.

    vkprovider.io/guests: {"bob": "watch"}

Who watches opens consoles without input, as an instructor does who looks over a shoulder. Who types works as the
learner does. Handing in and resetting stay the learner's.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from vkprovider.lablet import names

GUESTS_MAX: Final = 3
"""The most guests of a lablet; `manifests/base/instructors.yaml` knows the number, too."""
_NAME_CHARS_MAX: Final = 256


class GuestMode(StrEnum):
    """What a guest does at the consoles of a lablet."""

    WATCH = "watch"
    TYPE = "type"


_decoder: Final = msgspec.json.Decoder(dict[str, GuestMode])


def guests_in(annotations: Mapping[str, str]) -> dict[str, GuestMode]:
    """Return the guests that a Pod names, by their names; none if what it says cannot be read.

    >>> guests_in({"vkprovider.io/guests": '{"bob": "watch"}'})
    {'bob': <GuestMode.WATCH: 'watch'>}
    """
    text = annotations.get(names.ANNOTATION_GUESTS, "")
    if not text:
        return {}
    try:
        found = _decoder.decode(text)
    except msgspec.MsgspecError:
        return {}
    return found if len(found) <= GUESTS_MAX and all(map(_is_name, found)) else {}


def guests_note(guests: Mapping[str, GuestMode]) -> str | None:
    """Return guests as the annotation has them; None, which removes it, if there are none."""
    return msgspec.json.encode(dict(sorted(guests.items()))).decode() if guests else None


def fault_of_guests(annotations: Mapping[str, str]) -> str:
    """Return what is wrong with the annotation; "" if it can be read, or is absent."""
    text = annotations.get(names.ANNOTATION_GUESTS, "")
    if not text or text == "{}" or guests_in(annotations):
        return ""
    return (
        f"{names.ANNOTATION_GUESTS} does not name up to {GUESTS_MAX} guests, each with watch or type; example: "
        '{"bob": "watch"}'
    )


def _is_name(text: str) -> bool:
    return bool(text.strip()) and text == text.strip() and len(text) <= _NAME_CHARS_MAX and text.isprintable()

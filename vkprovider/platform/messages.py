"""A reason with its message, and words of messages: singular and plural, lists of which only the first are shown."""

import codecs
from collections.abc import Sequence
from typing import Literal

import msgspec

from vkprovider.platform.reasons import NO_REASON, Reason


def count(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun.

    >>> count(1, "lablet"), count(2, "lablet"), count(0, "policy", "policies")
    ('1 lablet', '2 lablets', '0 policies')
    """
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def listed(texts: Sequence[str], most: int) -> str:
    """Return a list of words, the first of them and how many more there are.

    >>> listed(["a", "b"], 2), listed(["a", "b", "c"], 2)
    ('a, b', 'a, b and 1 more')
    """
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def sentences(texts: Sequence[str], most: int) -> str:
    """Return a list of sentences, the first of them and how many more there are.

    >>> sentences(["a", "b"], 2), sentences(["a", "b", "c"], 2)
    ('a; b', 'a; b; and 1 more')
    """
    more = len(texts) - most
    return "; ".join(texts[:most]) + (f"; and {more} more" if more > 0 else "")


def plain(text: str) -> str:
    """Replace what is not printable: annotations are written by tenants, and a terminal obeys escape sequences.

    >>> plain("a" + chr(27) + "[2J")
    'a�[2J'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def plain_lines(text: str) -> str:
    """Do as `plain`, but keep the ends of lines and tabs."""
    lines = (line.removesuffix("\r").split("\t") for line in text.split("\n"))
    return "\n".join("\t".join(map(plain, cells)) for cells in lines)


def in_utf8(content: bytes) -> str:
    """Return the text of a file that is UTF-8, with or without a byte order mark.

    Raises:
        ValueError: It is another one; the text says which, and what to do.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        encoding = "UTF-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "ISO-8859-1"
    raise ValueError(
        f"not UTF-8, probably {encoding}: convert it (iconv -f {encoding} -t UTF-8 FILE > NEW) or save it as UTF-8"
    )


class Fault(msgspec.Struct, frozen=True, gc=False):
    """Why something cannot be done, or not yet: a value, where an error would be raised elsewhere.

    Attributes:
        reason: Fit for a condition or a waiting state.
        message: What is wrong, where, and what to do about it.
    """

    reason: Reason
    message: str

    def __str__(self) -> str:
        """Return reason and message as one text."""
        return f"{self.reason}: {self.message}"


class TimelessCondition(msgspec.Struct, frozen=True, gc=False):
    """A condition without its times, so that two of them can be compared.

    Attributes:
        type: `Ready`, for instance.
        status: `True`, `False` or `Unknown`.
        reason: May be `NO_REASON` in a condition of a Pod.
        message: For people.
    """

    type: str
    status: str
    reason: Reason = NO_REASON
    message: str = ""

    @property
    def fault(self) -> Fault:
        """Its reason and message."""
        return Fault(self.reason, self.message)


class Notice(msgspec.Struct, frozen=True, gc=False):
    """An Event to be emitted.

    Attributes:
        type: `Normal` or `Warning`.
        reason: Kubernetes shows it as the Event's.
        message: For people; Kubernetes calls it the note.
    """

    type: Literal["Normal", "Warning"]
    reason: Reason
    message: str

"""Label selectors as kubectl writes them, for objects whose labels the API server does not select by. Pure.

>>> Selector.parsed("class=friday,!old,room in (a, b)").accepts({"class": "friday", "room": "b"})
True
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

_KEY: Final = r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?"
_VALUE: Final = r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_EQUAL: Final = re.compile(rf"(?P<key>{_KEY})\s*(?P<operator>==|=|!=)\s*(?P<value>{_VALUE})")
_SET: Final = re.compile(rf"(?P<key>{_KEY})\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_THERE: Final = re.compile(rf"(?P<absent>!?)\s*(?P<key>{_KEY})")
_COMMA: Final = re.compile(r",(?![^(]*\))")
"""A comma outside of brackets."""
_CHARS_MAX: Final = 1024


class Requirement(msgspec.Struct, frozen=True):
    """One requirement of a selector.

    Attributes:
        key: Of a label.
        values: Those that the label may have; None for any value.
        negated: Whether the label must not be so; one that is absent is not.
    """

    key: str
    values: frozenset[str] | None
    negated: bool

    def accepts(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet it."""
        value = labels.get(self.key)
        return (value is not None and (self.values is None or value in self.values)) is not self.negated


class Selector(msgspec.Struct, frozen=True):
    """A label selector; labels must meet all of its requirements."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parsed(cls, text: str) -> "Selector":
        """Parse a selector; an empty one selects everything.

        Raises:
            ValueError: It is not one.
        """
        if len(text) > _CHARS_MAX:
            raise ValueError(f"a label selector has at most {_CHARS_MAX} characters")
        return cls(tuple(_requirement(part.strip()) for part in _COMMA.split(text))) if text.strip() else cls()

    def accepts(self, labels: Mapping[str, str]) -> bool:
        """Return whether it selects an object with these labels."""
        return all(requirement.accepts(labels) for requirement in self.requirements)


def _requirement(text: str) -> Requirement:
    if equal := _EQUAL.fullmatch(text):
        return Requirement(equal["key"], frozenset({equal["value"]}), equal["operator"] == "!=")
    if within := _SET.fullmatch(text):
        values = frozenset(value.strip() for value in within["values"].split(","))
        return Requirement(within["key"], values, within["operator"] == "notin")
    if there := _THERE.fullmatch(text):
        return Requirement(there["key"], None, bool(there["absent"]))
    raise ValueError(f"{text!r} is not a requirement such as class=friday, class!=friday, class in (a, b), or !class")

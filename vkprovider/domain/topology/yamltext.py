"""YAML text of strangers: read within limits, written again quickly.

Reading: size, nesting and aliases are limited, because a few lines of YAML can otherwise fill any memory or end the
process. Writing: whatever JSON can hold is written as JSON, one line for each key of the top level. That is YAML, too,
and a hundred times quicker to write; everything else (dates, bytes, numbers without end, aliases) goes through the YAML
emitter.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
import yaml

from vkprovider.api.errors import InputError, shorten

CHARS_MAX: Final = 4 * 2**20
ALIASES_MAX: Final = 100
"""CML writes no YAML aliases; many of them are an attempt to blow the parser up."""
NESTING_MAX: Final = 100
"""CML nests a handful deep; the C parser overflows its stack, and so ends the process, at some ten thousand."""

_KEY_CHARS_MAX: Final = 128
"""YAML ends a simple key after 1024 characters; one of these may take six when it is escaped."""
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What JSON leaves as it is and YAML does not: characters that it refuses, or reads as the end of a line."""
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_SCALARS: Final = yaml.constructor.SafeConstructor()
_PROLOGUE: Final = (yaml.StreamStartEvent, yaml.DocumentStartEvent)
_UNUSUAL: Final = ("tag:yaml.org,2002:merge", "tag:yaml.org,2002:value")
_REMEMBERED_CHARS_MAX: Final = 64
_OPENING: Final = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_CLOSING: Final = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


def load(text: str) -> tuple[Any, bool]:
    """Read a document; the second value tells whether it has aliases, so that one part may stand in many places.

    Raises:
        InputError: `TopologyInvalid`: it is no YAML (with line and column), or exceeds a limit.
    """
    if len(text) > CHARS_MAX:
        raise InputError("TopologyInvalid", f"the topology has {len(text)} characters, at most {CHARS_MAX}")
    try:
        try:
            return _build(text), False
        except _SlowerError:
            return _load_any(text)
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        where = f" in line {place.line + 1}, column {place.column + 1}" if place else ""
        problem = getattr(error, "problem", None) or str(error)
        raise InputError("TopologyInvalid", f"no YAML{where}: {shorten(str(problem), 120)}") from None
    except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:  # of a wrong tag: !!bool x
        raise InputError("TopologyInvalid", f"no YAML: {shorten(str(error), 120)}") from None


class _SlowerError(Exception):
    """The document has what only the whole loader understands."""


def _build(text: str) -> Any:
    """Build a document of plain mappings, lists and scalars straight from its events, in a third of the loader's time.

    Raises:
        _SlowerError: It has an anchor, an alias, an explicit tag, a merge key, or a key that is no scalar.
    """
    loader = _Loader(text)
    try:
        following = loader.get_event
        while type(event := following()) in _PROLOGUE:
            pass
        if type(event) is yaml.StreamEndEvent:
            return None
        document = _value(event, following, 0)
        following()  # the end of the document
        if type(following()) is not yaml.StreamEndEvent:
            raise _SlowerError
        return document
    finally:
        loader.dispose()


def _value(event: Any, following: Callable[[], Any], depth: int) -> Any:
    kind = type(event)
    if kind is yaml.AliasEvent or event.anchor is not None or event.tag is not None:
        raise _SlowerError
    if kind is yaml.ScalarEvent:
        text: str = event.value
        if not event.implicit[0]:
            return text
        return _plain(text) if len(text) <= _REMEMBERED_CHARS_MAX else _resolved(text)
    if depth == NESTING_MAX:
        raise InputError("TopologyInvalid", f"the topology is nested more than {NESTING_MAX} deep")
    if kind is yaml.SequenceStartEvent:
        items: list[Any] = []
        while type(event := following()) is not yaml.SequenceEndEvent:
            items.append(_value(event, following, depth + 1))
        return items
    mapping: dict[Any, Any] = {}
    while type(event := following()) is not yaml.MappingEndEvent:
        if type(event) is not yaml.ScalarEvent:
            raise _SlowerError
        key = _value(event, following, depth + 1)
        mapping[key] = _value(following(), following, depth + 1)
    return mapping


def _resolved(text: str) -> Any:
    """Read a scalar without quotes as YAML 1.1 does: a text, a number, a date, true, nothing."""
    resolvers = _Loader.yaml_implicit_resolvers
    for tag, pattern in (*resolvers.get(text[:1], ()), *resolvers.get(None, ())):
        if pattern.match(text):
            if tag in _UNUSUAL:
                raise _SlowerError
            return _Loader.yaml_constructors[tag](_SCALARS, yaml.ScalarNode(tag, text))
    return text


_plain = lru_cache(maxsize=4096)(_resolved)


def _load_any(text: str) -> tuple[Any, bool]:
    aliases = depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        aliases += isinstance(event, yaml.AliasEvent)
        depth += isinstance(event, _OPENING) - isinstance(event, _CLOSING)
        if depth > NESTING_MAX:
            raise InputError("TopologyInvalid", f"the topology is nested more than {NESTING_MAX} deep")
    if aliases > ALIASES_MAX:
        raise InputError("TopologyInvalid", f"the topology has {aliases} YAML aliases, at most {ALIASES_MAX}")
    return yaml.load(text, Loader=_Loader), aliases > 0  # noqa: S506 (the safe loader in C)


def write(mapping: Mapping[str, Any], *, shared: bool = False) -> str:
    """Write a mapping, one line per key where JSON can hold it.

    Args:
        mapping: What to write.
        shared: Whether parts may stand in many places, which JSON would repeat without end.

    Raises:
        ValueError: YAML cannot carry it.
    """
    if not mapping:
        return ""
    try:
        if not shared and _is_json(mapping):
            return "".join(f"{_json(key)}: {_json(value)}\n" for key, value in mapping.items())
        text: str = yaml.dump(mapping, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"it cannot be written again: {shorten(str(error), 120)}") from None
    return text


def _json(value: Any) -> str:
    text = msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _is_json(value: Any) -> bool:
    """Tell whether JSON holds a value in a form that YAML 1.1 reads as the same."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or len(key) > _KEY_CHARS_MAX or not (type(item) is str or _is_json(item)):
                return False
        return True
    if kind is list:
        return all(map(_is_json, value))
    if kind is int:
        return bool(-(2**63) <= value < 2**63)
    return kind is float and math.isfinite(value) and "e" not in repr(value)

"""YAML from outside: read within limits, written quickly.

Reading: size, nesting and what aliases and merge keys multiply are limited before anything is expanded, because a few
lines of YAML can otherwise fill any memory or crash the process. Numbers to base 60 (`1:30`) stay text: CML writes
none, they are read in quadratic time, and an author means an address or a time.

Writing: what JSON can hold is written as JSON, one line for each key of the top level. That is YAML, too, and a hundred
times quicker to write; everything else (dates, bytes, infinities, aliases) goes through the YAML emitter.

A document that is JSON is read as JSON: it writes characters beyond U+FFFF as two escapes, which YAML refuses.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import yaml

from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.platform.errors import InputError, shorten

CHARS_MAX: Final = 4 * 2**20
ALIASES_MAX: Final = 100
"""CML writes no YAML aliases; many of them are an attempt to exhaust the parser."""
NESTING_MAX: Final = 100
"""CML nests a handful deep; the C parser overflows its stack, and so ends the process, at some ten thousand."""
EXPANDED_MAX: Final = 100_000
"""Values of a document with aliases once each alias and merge key (`<<: *common`) is replaced by what it names."""

_XML: Final = re.compile(r"[\ufeff\s]*<[?!A-Za-z]")
_VIRL: Final = re.compile(r"<(?:\w+:)?topology\b")
_KEY_CHARS_MAX: Final = 128
"""YAML ends a simple key after 1024 characters; one of these may take six when it is escaped."""
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What JSON leaves as it is and YAML does not: characters that it refuses, or reads as the end of a line."""
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_OPENING: Final = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_CLOSING: Final = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # (yaml has no types)
    """A safe loader that reads numbers to base 60 as text."""

    def whole(self, node: yaml.ScalarNode) -> Any:
        """Return an integer, or the text of one to base 60."""
        return node.value if ":" in node.value else self.construct_yaml_int(node)

    def fraction(self, node: yaml.ScalarNode) -> Any:
        """Return a float, or the text of one to base 60."""
        return node.value if ":" in node.value else self.construct_yaml_float(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.whole)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.fraction)


def load(text: str) -> tuple[Any, bool]:
    """Read a document; the second value is whether it has aliases, so that one part may stand in many places.

    Raises:
        InputError: `TopologyInvalid`: it is not YAML (with line and column), or exceeds a limit.
    """
    if len(text) > CHARS_MAX:
        raise InputError(
            DefinitionReason.TOPOLOGY_INVALID, f"the topology has {len(text)} characters, at most {CHARS_MAX}"
        )
    if _XML.match(text):
        raise InputError(DefinitionReason.TOPOLOGY_INVALID, _not_xml(text))
    if (found := _load_json(text)) is not None:
        return found, False
    try:
        aliases = _check_events(text)
        loader = _Loader(text)
        try:
            document = loader.get_single_node()
            if document is None:
                return None, False
            if aliases:
                _check_expanded(document)
            return loader.construct_document(document), aliases > 0
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        where = f" at line {place.line + 1}, column {place.column + 1}" if place else ""
        problem = getattr(error, "problem", None) or str(error)
        raise InputError(
            DefinitionReason.TOPOLOGY_INVALID, f"invalid YAML{where}: {shorten(str(problem), 120)}"
        ) from None
    except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:  # of a wrong tag: !!bool x
        raise InputError(DefinitionReason.TOPOLOGY_INVALID, f"invalid YAML: {shorten(str(error), 120)}") from None


def _not_xml(text: str) -> str:
    """Return the refusal of XML, with the way to a file that is read."""
    if _VIRL.search(text):
        return "this is a file of VIRL 1.x (XML): import it into CML once, and download it there as YAML"
    return "this is XML or HTML, not YAML: download the lab again in CML (Lab, Download Lab)"


def _load_json(text: str) -> dict[str, Any] | None:
    """Read a document that is a JSON object; None if it is not, for it may be YAML all the same.

    Raises:
        InputError: `TopologyInvalid`: it is nested too deep.
    """
    text = text.lstrip("\ufeff \t\r\n")
    if not text.startswith("{"):
        return None
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    level: list[Any] = [found]
    for _ in range(NESTING_MAX):
        level = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
        level = [part for part in level if isinstance(part, dict | list)]
    if level:
        raise InputError(DefinitionReason.TOPOLOGY_INVALID, f"the topology is nested more than {NESTING_MAX} deep")
    return found


def _check_events(text: str) -> int:
    """Check nesting and count aliases before the C parser recurses into the document; return how many there are.

    Raises:
        InputError: A limit is exceeded.
        yaml.YAMLError: It is not YAML.
    """
    aliases = depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.ScalarEvent):
            continue
        aliases += isinstance(event, yaml.AliasEvent)
        depth += isinstance(event, _OPENING) - isinstance(event, _CLOSING)
        if depth > NESTING_MAX:
            raise InputError(DefinitionReason.TOPOLOGY_INVALID, f"the topology is nested more than {NESTING_MAX} deep")
    if aliases > ALIASES_MAX:
        raise InputError(
            DefinitionReason.TOPOLOGY_INVALID, f"the topology has {aliases} YAML aliases, at most {ALIASES_MAX}"
        )
    return aliases


def _check_expanded(document: yaml.Node) -> None:
    """Check how large and how deep the document is once its aliases and merge keys are expanded.

    Raises:
        InputError: It is too large or too deep, or an alias stands within what it names.
    """
    known: dict[int, tuple[int, int] | None] = {}

    def measure(node: yaml.Node) -> tuple[int, int]:
        """Return values and depth; visit every node once. Anchors precede aliases, so the recursion is not deep."""
        if isinstance(node, yaml.ScalarNode):
            return 1, 0
        if id(node) in known:
            found = known[id(node)]
            if found is None:
                raise InputError(
                    DefinitionReason.TOPOLOGY_INVALID, f"a YAML alias{_place(node)} stands within what it names"
                )
            return found
        known[id(node)] = None
        inner = node.value if isinstance(node, yaml.SequenceNode) else [part for pair in node.value for part in pair]
        size, depth = 1, 0
        for part in inner:
            more, below = measure(part)
            size, depth = size + more, max(depth, below)
        if size > EXPANDED_MAX:
            what = f"expand to more than {EXPANDED_MAX} values"
            raise InputError(DefinitionReason.TOPOLOGY_INVALID, f"the topology's YAML aliases{_place(node)} {what}")
        if depth >= NESTING_MAX:
            raise InputError(DefinitionReason.TOPOLOGY_INVALID, f"the topology is nested more than {NESTING_MAX} deep")
        known[id(node)] = found = (size, depth + 1)
        return found

    measure(document)


def _place(node: yaml.Node) -> str:
    return f" in line {node.start_mark.line + 1}"


def write(mapping: Mapping[str, Any], *, shared: bool = False) -> str:
    """Return a mapping as YAML text, one line per key where JSON can hold it.

    Args:
        mapping: The document.
        shared: Whether parts may stand in many places, each of which JSON would repeat.

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


def scalar(text: str) -> str:
    """Return a text as a YAML scalar that fits wherever a plain word does."""
    return _json(text)


def _json(value: Any) -> str:
    text = msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _is_json(value: Any) -> bool:
    """Return whether JSON holds a value in a form that YAML 1.1 reads as the same."""
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

"""What CML's own schema refuses of a topology, with both ends of each link.

links: [{id: l0, n1: n0, i1: i0, n2: n1, i2: i0}]      nodes and, within them, interfaces by their ids

`faults` finds what no CML imports: ids that are not text or not unique, links whose ends are not free interfaces.
`doubts` finds fields that the schema does not have, and values beyond its bounds; another CML may know more.

Source: the schema of `POST /import` in the OpenAPI documents of CML 2.8 to 2.10, for versions from 0.2.0 on. What is
older CML converts before it checks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from vkprovider.platform.errors import shorten
from vkprovider.platform.messages import listed

_LISTED_MAX: Final = 8
"""Ids in a message."""


def link_fault(nodes: Sequence[Any], links: Sequence[Any]) -> tuple[str, str] | None:
    """Return the field of the first link that leads nowhere, and what is wrong about it; None if there is none."""
    labels: dict[Any, str] = {}
    interfaces: dict[Any, list[Any] | None] = {}
    for node in nodes:
        if (name := _id(node.get("id"))) is not None:
            labels[name], interfaces[name] = node["label"], _interfaces(node)
    for i, link in enumerate(links):
        if not isinstance(link, dict):
            return f"links[{i}]", "must be a mapping"
        for end in "12":
            node, interface = link.get(f"n{end}"), link.get(f"i{end}")
            if node is None or interface is None:
                lacking = f"n{end}" if node is None else f"i{end}"
                return f"links[{i}].{lacking}", "is missing; a link has n1, i1, n2 and i2"
            if _id(node) not in labels:
                return f"links[{i}].n{end}", f"{_show(node)} is not the id of a node; there are {_listed(labels)}"
            known = interfaces[node]
            if known is not None and _id(interface) not in known:
                has = f"it has {_listed(known)}" if known else "it has none"
                return f"links[{i}].i{end}", f"{_show(interface)} is not an interface of {labels[node]!r}; {has}"
    return None


def reached_from(definition: str, nodes: Sequence[Any], links: Sequence[Any]) -> frozenset[str]:
    """Return the labels of the nodes that links, over any other nodes, join with a node of a definition.

    Args:
        definition: A node definition, such as `external_connector`.
        nodes: Of the topology.
        links: Of the topology; `link_fault` has found nothing in them.
    """
    next_to: dict[Any, set[Any]] = {}
    for link in links:
        next_to.setdefault(link["n1"], set()).add(link["n2"])
        next_to.setdefault(link["n2"], set()).add(link["n1"])
    found: set[Any] = set()
    waiting = [_id(node.get("id")) for node in nodes if node["node_definition"] == definition]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += next_to.get(name, ())
    return frozenset(node["label"] for node in nodes if _id(node.get("id")) in found)


def pairs(nodes: Sequence[Any], links: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    """Return the labels of the two nodes that each link joins; each pair once, however many links join it.

    Args:
        nodes: Of the topology.
        links: Of the topology; `link_fault` has found nothing in them.
    """
    labels = {name: node["label"] for node in nodes if (name := _id(node.get("id"))) is not None}
    found: dict[frozenset[str], tuple[str, str]] = {}
    for link in links:
        ends = labels[link["n1"]], labels[link["n2"]]
        found.setdefault(frozenset(ends), ends)
    return tuple(found.values())


def _id(value: Any) -> str | int | None:
    return value if isinstance(value, str | int) else None


def _interfaces(node: Mapping[Any, Any]) -> list[Any] | None:
    """Return the ids of a node's interfaces; None if they cannot be told."""
    found = node.get("interfaces")
    if not isinstance(found, list) or not all(isinstance(interface, dict) for interface in found):
        return None
    return [_id(interface.get("id")) for interface in found]


def _show(value: Any) -> str:
    return repr(value)[:40] if _id(value) is not None else "a list or mapping"


def _listed(ids: Mapping[Any, Any] | Sequence[Any]) -> str:
    return listed([str(each)[:40] for each in ids], _LISTED_MAX) if ids else "none"


FOUND_MAX: Final = 20
"""The most faults, and the most doubts, of one topology."""

COORDINATE_MAX: Final = 15000
_ID_CHARS_MAX: Final = 64
_CPUS_MAX: Final = 128
_RAM_MIB_MAX: Final = 2**20
_CPU_LIMIT: Final = range(20, 101)
_LINE_ENDS: Final = frozenset("\n\r")

_FIELDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "topology": frozenset({"lab", "nodes", "links", "annotations", "smart_annotations"}),
        "lab": frozenset({"version", "title", "description", "notes", "node_staging"}),
        "node": frozenset(
            {
                *("id", "label", "node_definition", "image_definition", "x", "y", "hide_links", "tags", "interfaces"),
                *("ram", "cpus", "cpu_limit", "data_volume", "boot_disk_size", "configuration", "parameters"),
                *("priority", "pyats"),
            }
        ),
        "interface": frozenset({"id", "label", "type", "slot", "mac_address", "node"}),
        "link": frozenset({"id", "n1", "i1", "n2", "i2", "label", "conditioning"}),
    }
)


def faults(nodes: Sequence[Mapping[Any, Any]], links: Sequence[Mapping[Any, Any]]) -> list[str]:
    """List what no CML imports, each with its place; `link_fault` has found nothing in them."""
    return _first(_faults(nodes, links))


def _faults(nodes: Sequence[Mapping[Any, Any]], links: Sequence[Mapping[Any, Any]]) -> Iterator[str]:
    labels: dict[str, str] = {}
    free: dict[str, set[str]] = {}
    for i, node in enumerate(nodes):
        name: Any = node.get("id")
        place, label = f"nodes[{i}]", repr(node["label"])
        if wrong := _wrong_id(name):
            yield f"{place}.id of {label} {wrong}"
            continue
        if name in labels:
            yield f"{place}.id {name!r} of {label} is that of {labels[name]!r}, too; ids must differ"
        labels[name], free[name] = node["label"], set()
        for j, interface in enumerate(_mappings(node.get("interfaces"))):
            own: Any = interface.get("id")
            if wrong := _wrong_id(own):
                yield f"{place}.interfaces[{j}].id of {label} {wrong}"
            elif own in free[name]:
                yield f"{place}.interfaces[{j}].id of {label}: {own!r} is there twice"
            else:
                free[name].add(own)
    yield from _link_faults(links, labels, free)


def _link_faults(
    links: Sequence[Mapping[Any, Any]], labels: Mapping[str, str], interfaces: Mapping[str, set[str]]
) -> Iterator[str]:
    ids: dict[str, int] = {}
    taken: dict[tuple[str, str], int] = {}
    for i, link in enumerate(links):
        place, name = f"links[{i}]", link.get("id")
        if wrong := _wrong_id(name):
            yield f"{place}.id {wrong}"
        elif (other := ids.setdefault(str(name), i)) != i:
            yield f"{place}.id {name!r} is that of links[{other}], too; ids must differ"
        for end in "12":
            node, interface = link[f"n{end}"], link[f"i{end}"]
            if wrong := _wrong_id(interface):
                yield f"{place}.i{end} {wrong}"
            elif node not in labels:
                continue  # its own id is the fault
            elif interface not in interfaces[node]:
                yield f"{place}.i{end} {interface!r} is not an interface of {labels[node]!r}"
            elif (node, interface) in taken:
                yield f"{place}.i{end}: {interface!r} of {labels[node]!r} is taken by links[{taken[node, interface]}]"
            else:
                taken[node, interface] = i


def doubts(document: Mapping[Any, Any], nodes: Sequence[Mapping[Any, Any]]) -> list[str]:
    """List the fields and values that CML's schema does not allow, each with its place."""
    return _first(_doubts(document, nodes))


def _doubts(document: Mapping[Any, Any], nodes: Sequence[Mapping[Any, Any]]) -> Iterator[str]:
    yield from _unknown("the topology", document, "topology")
    yield from _unknown("lab", document.get("lab", {}), "lab")
    for name in ("annotations", "smart_annotations"):
        if name in document and not isinstance(document[name], list):
            yield f"{name} must be a list"
    for i, node in enumerate(nodes):
        place = f"nodes[{i}]"
        yield from _unknown(place, node, "node")
        yield from (f"{place}.{field} of {node['label']!r} {wrong}" for field, wrong in _values(node))
        for j, interface in enumerate(_mappings(node.get("interfaces"))):
            yield from _unknown(f"{place}.interfaces[{j}]", interface, "interface")
    for i, link in enumerate(document.get("links", ())):
        yield from _unknown(f"links[{i}]", link, "link")


def _values(node: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Yield each field of a node whose value the schema does not allow, and what is wrong about it."""
    for field, (is_right, wanted) in _CHECKS.items():
        if field in node and not is_right(node[field]):
            yield field, wanted


def _is_configuration(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(file, dict) and isinstance(file.get("name"), str) for file in value)
    return value is None or isinstance(value, str) or (isinstance(value, dict) and isinstance(value.get("name"), str))


def _is_parameters(value: Any) -> bool:
    return isinstance(value, dict) and all(each is None or isinstance(each, str) for each in value.values())


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_one_line(value: Any) -> bool:
    return all(_LINE_ENDS.isdisjoint(text) for text in ([value] if isinstance(value, str) else value or ()))


def _is_coordinate(value: Any) -> bool:
    return _is_whole(value) and -COORDINATE_MAX <= value <= COORDINATE_MAX


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _at_most(limit: int) -> Callable[[Any], bool]:
    return lambda value: value is None or value <= limit


_WHERE: Final = (_is_coordinate, f"must be a whole number from {-COORDINATE_MAX} to {COORDINATE_MAX}")
_CHECKS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = MappingProxyType(
    {
        "label": (_is_one_line, "must not have line ends"),
        "x": _WHERE,
        "y": _WHERE,
        "image_definition": (lambda value: value != "", "is empty; leave the field out"),
        "configuration": (_is_configuration, "must be a text, or files with name and content"),
        "cpus": (_at_most(_CPUS_MAX), f"must be at most {_CPUS_MAX}"),
        "ram": (_at_most(_RAM_MIB_MAX), f"must be at most {_RAM_MIB_MAX} (MiB)"),
        "cpu_limit": (
            lambda value: value is None or (_is_whole(value) and value in _CPU_LIMIT),
            f"must be a whole number from {_CPU_LIMIT[0]} to {_CPU_LIMIT[-1]} (percent)",
        ),
        "tags": (lambda value: isinstance(value, list) and _is_one_line(value), "must be a list of texts in one line"),
        "parameters": (_is_parameters, "must map names to texts; put numbers in quotes"),
        "interfaces": (_is_list, "must be a list"),
    }
)
"""The check of a node's field and its rule in words, by field; cpus, ram and tags have been read already."""


def cpu_limit_of(node: Mapping[str, Any]) -> int:
    """Return the share of its CPU that a node gets, in percent; all of it if it says nothing that CML would take."""
    value = node.get("cpu_limit")
    return int(value) if value is not None and _is_whole(value) and value in _CPU_LIMIT else _CPU_LIMIT[-1]


def _unknown(place: str, mapping: Any, kind: str) -> Iterator[str]:
    if isinstance(mapping, dict) and (more := [key for key in mapping if key not in _FIELDS[kind]]):
        yield f"{place} has a field that CML does not know: {', '.join(shorten(str(key), 40) for key in more[:5])}"


def _mappings(found: Any) -> list[dict[Any, Any]]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _wrong_id(value: Any) -> str:
    """Return the fault of an id; "" if it has none."""
    if value is None:
        return "is missing"
    if not isinstance(value, str):
        return f"must be a text, not {shorten(repr(value), 40)}" if isinstance(value, int | float) else "must be a text"
    return "" if 1 <= len(value) <= _ID_CHARS_MAX else f"must have 1 to {_ID_CHARS_MAX} characters"


def _first(found: Iterator[str]) -> list[str]:
    """Return the first few."""
    return [text for _, text in zip(range(FOUND_MAX), found, strict=False)]

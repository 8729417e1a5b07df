"""Links of a topology: both ends of each must be interfaces that the topology has, and what they join.

links: [{id: l0, n1: n0, i1: i0, n2: n1, i2: i0}]      nodes and, within them, interfaces by their ids
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vkprovider.platform.wording import listed

_LISTED_MAX: Final = 8
"""Ids in a message."""


def fault(nodes: Sequence[Any], links: Sequence[Any]) -> tuple[str, str] | None:
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
        links: Of the topology; `fault` has found nothing in them.
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
        links: Of the topology; `fault` has found nothing in them.
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

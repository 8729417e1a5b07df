"""Why a lablet has no place yet, for people: the scheduler's sentence without its nodes and taints. Pure."""

import re
from typing import Final

from vkprovider.lablet import names

_LACKS: Final = re.compile(r"Insufficient ([^\s,.]+(?:\.[^\s,.]+)*)")
_WORDS: Final = {
    "cpu": "CPU",
    "memory": "memory",
    "pods": "labs",
    names.RESOURCE_LAB_NODES: "licensed devices",
    names.RESOURCE_PORTS: "ports",
}
NO_ROOM: Final = "no room"
"""The reason `Unschedulable` for people who know no scheduler."""


def room_words(message: str) -> str:
    """Return what a lablet waits for, by the message of the condition `PodScheduled`.

    >>> room_words("0/3 nodes are available: 2 Insufficient cpu, 1 node(s) had untolerated taint(s). preemption: 0/3 …")
    'No worker has room: CPU'
    >>> room_words("0/3 nodes are available: 3 Too many pods.")
    'No worker has room: labs'
    >>> room_words("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.")
    'No worker takes this lab: none of its kind is there, or ready'
    """
    lacks = {_WORDS.get(found, found) for found in _LACKS.findall(message)}
    if "Too many pods" in message:
        lacks.add(_WORDS["pods"])
    if lacks:
        return f"No worker has room: {', '.join(sorted(lacks, key=str.casefold))}"
    return "No worker takes this lab: none of its kind is there, or ready"

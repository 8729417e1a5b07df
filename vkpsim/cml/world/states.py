"""The states of labs, nodes, links and interfaces, in CML's own words."""

from enum import StrEnum
from typing import Final


class LabState(StrEnum):
    """State of a lab. There is no QUEUED: only nodes queue."""

    DEFINED = "DEFINED_ON_CORE"
    STOPPED = "STOPPED"
    STARTED = "STARTED"


class NodeState(StrEnum):
    """State of a node. STARTED means that it boots; BOOTED, that it has booted."""

    DEFINED = "DEFINED_ON_CORE"
    QUEUED = "QUEUED"
    STARTED = "STARTED"
    BOOTED = "BOOTED"
    STOPPED = "STOPPED"
    DISCONNECTED = "DISCONNECTED"


class WireState(StrEnum):
    """State of a link or an interface."""

    DEFINED = "DEFINED_ON_CORE"
    STOPPED = "STOPPED"
    STARTED = "STARTED"


ACTIVE: Final = frozenset({NodeState.QUEUED, NodeState.STARTED, NodeState.BOOTED, NodeState.DISCONNECTED})
"""States of a node that make its lab STARTED."""

RUNNING: Final = frozenset({NodeState.STARTED, NodeState.BOOTED})
"""States in which a node holds a licence, CPU and memory (a DISCONNECTED node is one of these below the surface)."""

PROGRESS: Final = {
    NodeState.DEFINED: "Not running",
    NodeState.QUEUED: "Not running",
    NodeState.STARTED: "Booting",
    NodeState.BOOTED: "Booted",
    NodeState.STOPPED: "Not running",
    NodeState.DISCONNECTED: "Not running",
}
"""State of a node: its `boot_progress`."""

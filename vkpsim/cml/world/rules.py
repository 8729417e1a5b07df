"""What may be done in which state: the operation table, one row per operation.

The sources of the rows are Cisco's OpenAPI document and its integration tests; where a row refuses, `errors` says
whether code and text are verified.
"""

from enum import Enum
from typing import Final

from vkpsim.cml.errors import E
from vkpsim.cml.world.states import LabState, NodeState


class Effect(Enum):
    """The outcome of a request that the state does not refuse."""

    DO = "do"
    NOTHING = "nothing to do, answered as success"


class LabOp(Enum):
    """Operations on a whole lab."""

    START = "start"
    STOP = "stop"
    WIPE = "wipe"
    DELETE = "delete"


class NodeOp(Enum):
    """Operations on one node."""

    START = "start"
    STOP = "stop"
    WIPE = "wipe"
    DELETE = "delete"
    CONFIGURE = "change configuration, image, RAM, CPUs or disks"
    DECORATE = "change label, position or tags"
    INTERFACES = "add or remove interfaces"
    EXTRACT = "extract the configuration"
    CLONE = "clone the image"
    CONSOLE = "get a console or VNC key"


Row = Effect | E
DO, NOTHING = Effect.DO, Effect.NOTHING

LAB_RULES: Final[dict[LabOp, dict[LabState, Row]]] = {
    LabOp.START: {LabState.DEFINED: DO, LabState.STARTED: DO, LabState.STOPPED: DO},
    LabOp.STOP: {LabState.DEFINED: NOTHING, LabState.STARTED: DO, LabState.STOPPED: NOTHING},
    LabOp.WIPE: {LabState.DEFINED: NOTHING, LabState.STARTED: E.LAB_RUNNING_WIPE, LabState.STOPPED: DO},
    LabOp.DELETE: {LabState.DEFINED: DO, LabState.STARTED: E.LAB_NOT_WIPED, LabState.STOPPED: E.LAB_NOT_WIPED},
}
"""Operation on a lab, state of the lab: verdict or refusal. A start starts only the nodes that do not run."""


def _row(defined: Row, queued: Row, started: Row, booted: Row, stopped: Row, disconnected: Row) -> dict[NodeState, Row]:
    return {
        NodeState.DEFINED: defined,
        NodeState.QUEUED: queued,
        NodeState.STARTED: started,
        NodeState.BOOTED: booted,
        NodeState.STOPPED: stopped,
        NodeState.DISCONNECTED: disconnected,
    }


_BUSY, _DIRTY, _FIXED = E.NODE_RUNNING, E.NODE_NOT_WIPED, E.NODE_LOCKED
_PLUGGED, _MUTE, _DARK, _COLD = E.INTERFACES_LOCKED, E.NOT_EXTRACTABLE, E.CONSOLE_NOT_FOUND, E.NOT_CLONEABLE

NODE_RULES: Final[dict[NodeOp, dict[NodeState, Row]]] = {
    #                     DEFINED   QUEUED    STARTED   BOOTED    STOPPED   DISCONNECTED
    NodeOp.START: _row(DO, NOTHING, NOTHING, NOTHING, DO, NOTHING),
    NodeOp.STOP: _row(NOTHING, DO, DO, DO, NOTHING, DO),
    NodeOp.WIPE: _row(NOTHING, _BUSY, _BUSY, _BUSY, DO, _BUSY),
    NodeOp.DELETE: _row(DO, _BUSY, _BUSY, _BUSY, _DIRTY, _BUSY),
    NodeOp.CONFIGURE: _row(DO, _FIXED, _FIXED, _FIXED, _FIXED, _FIXED),
    NodeOp.DECORATE: _row(DO, DO, DO, DO, DO, DO),
    NodeOp.INTERFACES: _row(DO, _PLUGGED, _PLUGGED, _PLUGGED, _PLUGGED, _PLUGGED),
    NodeOp.EXTRACT: _row(_MUTE, _MUTE, _MUTE, DO, _MUTE, _MUTE),
    NodeOp.CLONE: _row(_COLD, _COLD, _COLD, _COLD, DO, _COLD),
    NodeOp.CONSOLE: _row(_DARK, _DARK, DO, DO, _DARK, _DARK),
}
"""Operation on a node, state of the node: verdict or refusal."""

"""Observations of labs, in CML's own words."""

from typing import Final

import msgspec

DEFINED: Final = "DEFINED_ON_CORE"
QUEUED: Final = "QUEUED"
STARTING: Final = "STARTING"
STARTED: Final = "STARTED"
BOOTED: Final = "BOOTED"
STOPPED: Final = "STOPPED"
DISCONNECTED: Final = "DISCONNECTED"

ACTIVE: Final = frozenset({QUEUED, STARTING, STARTED, BOOTED, DISCONNECTED})
"""States in which a device holds resources; a lab with one of them must be stopped before it is wiped."""
BOOTING: Final = frozenset({QUEUED, STARTING, STARTED})
KNOWN: Final = ACTIVE | {DEFINED, STOPPED}

IMPORT_S: Final = 60.0
"""The deadline of an import."""


class DeviceFact(msgspec.Struct, frozen=True, gc=False):
    """One device of a lab.

    Attributes:
        state: CML's word; one that is not in `KNOWN` never counts as success.
    """

    id: str
    label: str
    definition: str
    state: str

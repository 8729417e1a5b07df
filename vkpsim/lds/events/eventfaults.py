"""Faults of event deliveries, from a seeded plan or ordered at run time. Choosing them is pure."""

import random
import re
from typing import Annotated, Literal

import msgspec

from vkpsim.http.patterns import check_pattern

EventKind = Literal["duplicate", "reorder", "delay", "lose", "forge"]
"""What happens to an event.

* `duplicate`: it is delivered `copies` times more, with the same id, to the next targets.
* `reorder`: it waits until a later event was delivered, at most `delay_s`.
* `delay`: it is sent `delay_s` later.
* `lose`: it is never sent.
* `forge`: it is sent with a wrong token first.
"""


class EventFault(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A fault and the events it affects.

    Example:
        `{"kind": "duplicate", "type": "session.ended", "copies": 2}`
    """

    kind: EventKind
    type: str = ""
    """A regular expression, searched in the event's type."""
    count: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How many events it affects; None means no limit."""
    rate: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    """Share of the matching events that it affects, drawn by seed."""
    copies: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    delay_s: Annotated[float, msgspec.Meta(ge=0)] = 5.0

    def __post_init__(self) -> None:
        check_pattern("type", self.type)


class EventFaults:
    """The faults in force; every match applies."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._armed: list[EventFault] = []

    def add(self, fault: EventFault) -> None:
        """Put a fault in force."""
        self._armed.append(msgspec.structs.replace(fault))  # a copy, for its count goes down

    def clear(self) -> None:
        """End all faults."""
        self._armed.clear()

    def in_force(self) -> list[EventFault]:
        """List the faults in force, each with what is left of its count."""
        return list(self._armed)

    def meet(self, event_type: str) -> list[EventFault]:
        """Choose what happens to an event."""
        met = []
        for fault in self._armed:
            if re.search(fault.type, event_type) and (fault.rate == 1 or self._random.random() < fault.rate):
                met.append(fault)
                if fault.count is not None:
                    fault.count -= 1
        self._armed = [fault for fault in self._armed if fault.count != 0]
        return met

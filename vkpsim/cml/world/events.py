"""The events of labs, as `GET /labs/{id}/events` lists them. They are not part of the stored state."""

from collections import deque
from typing import Any, Final

from vkpsim.cml.world.model import Lab

EVENTS_KEPT: Final = 500
"""Events remembered per lab."""


class Events:
    """The latest events of each lab."""

    def __init__(self) -> None:
        self._by_lab: dict[str, deque[dict[str, Any]]] = {}

    def record(
        self,
        now: float,
        lab: Lab,
        event: str,
        element: str,
        element_id: str,
        *,
        data: dict[str, Any] | None = None,
        previous: dict[str, Any] | None = None,
    ) -> None:
        """Record an event of a lab; the oldest are forgotten."""
        events = self._by_lab.get(lab.id)
        if events is None:
            events = self._by_lab[lab.id] = deque(maxlen=EVENTS_KEPT)
        events.append(
            {
                "lab_id": lab.id,
                "event": event,
                "element_type": element,
                "element_id": element_id,
                "data": data or {},
                "previous": previous or {},
                "timestamp": now,
            }
        )

    def of(self, lab_id: str) -> list[dict[str, Any]]:
        """List the events of a lab, oldest first; `timestamp` is in seconds."""
        return list(self._by_lab.get(lab_id, ()))

    def forget(self, lab_id: str) -> None:
        """Drop the events of a deleted lab."""
        self._by_lab.pop(lab_id, None)

"""One Event of core/v1, as it waits to be written."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from vkprovider.platform.kube.client import Guard
from vkprovider.platform.times import iso

EventType = Literal["Normal", "Warning"]

_NAME_CHARS_MAX: Final = 253 - 17  # leaves room for a dot and the time in hexadecimal


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """The object that an Event is about; no namespace if it is cluster-scoped."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(slots=True, eq=False)
class EmittedEvent:
    """An Event and its progress."""

    regarding: ObjectRef
    type_: EventType
    reason: str
    note: str
    action: str
    stamp_ns: int  # part of its name
    first_s: float
    last_s: float
    heard_s: float  # on the monotonic clock, as the next one
    guard: Guard | None = None
    written_s: float | None = None
    count: int = 1
    sent: int = 0  # the count as last sent
    fenced: int = 0  # how often its guard raised `Fenced`
    due: bool = True  # queued, or waiting for its next patch

    @property
    def path(self) -> str:
        """The collection of the Event."""
        return f"/api/v1/namespaces/{self.regarding.namespace or 'default'}/events"

    @property
    def name(self) -> str:
        """`<object>.<time in hexadecimal>`, as client-go names Events."""
        return f"{self.regarding.name[:_NAME_CHARS_MAX]}.{self.stamp_ns:x}"

    def body(self, component: str, instance: str) -> dict[str, Any]:
        """Return the Event as core/v1 has it."""
        about = self.regarding
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": about.namespace or "default"},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "type": self.type_,
            "reason": self.reason,
            "message": self.note,
            "action": self.action,
            "count": self.count,
            "firstTimestamp": iso(int(self.first_s)),
            "lastTimestamp": iso(int(self.last_s)),
            "source": {"component": component, "host": instance},
            "reportingComponent": component,
            "reportingInstance": instance,
        }

"""Events about muxes and channels: each once, and again before the API server forgets it.

What is the case is found again with every pass, several times a minute; what happened is told when it happens.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import structlog

from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.events import EventRecorder, EventType, ObjectRef
from vkprovider.platform.messages import Fault
from vkprovider.platform.reasons import Reason
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)
_AGAIN_S: Final = 1800.0
"""An API server keeps Events for an hour."""


class Told(NamedTuple):
    """A Warning about an object."""

    about: ObjectRef
    fault: Fault


class LoggedEvents(EventRecorder):
    """Logs Warnings instead of writing Events: for a dry run, whose log shows each intended write as it is."""

    def emit(
        self,
        regarding: ObjectRef,
        type_: EventType,
        reason: str,
        note: str,
        *,
        action: str = "",  # noqa: ARG002 (the signature is that of the base)
        guard: Guard | None = None,  # noqa: ARG002 (as above)
    ) -> None:
        """Log a Warning; a Normal Event would tell of a write that does not take place."""
        if type_ == "Normal":
            return
        about = f"{regarding.kind}/{regarding.namespace}/{regarding.name}"
        _log.info("dry run: would emit an Event", object=about, reason=str(reason), message=note)


class Events:
    """Writes Events.

    Attributes:
        recent: The last ones, the newest last.
    """

    RECENT_MAX: Final = 100

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._told: dict[str, dict[Told, float]] = {}
        self.recent: list[dict[str, str]] = []

    def happened(self, key: str, about: ObjectRef, reason: Reason, note: str, guard: Guard | None = None) -> None:
        """Tell what a pass over `key` has done."""
        self._emit(key, about, "Normal", reason, note, guard)

    def found(self, key: str, warnings: Iterable[Told], guard: Guard | None = None) -> None:
        """Tell what a pass over `key` finds wrong; what it told a moment ago is not repeated."""
        before, now = self._told.get(key, {}), self._ctx.now()
        after: dict[Told, float] = {}
        for each in warnings:
            told_at = before.get(each)
            if told_at is None or now - told_at >= _AGAIN_S:
                self._emit(key, each.about, "Warning", each.fault.reason, each.fault.message, guard)
                told_at = now
            after[each] = told_at
        self._told[key] = after

    def forget(self, key: str) -> None:
        """Forget what was told about a key."""
        self._told.pop(key, None)

    def _emit(
        self, key: str, about: ObjectRef, type_: EventType, reason: Reason, note: str, guard: Guard | None
    ) -> None:
        named = {
            "mux": key,
            "object": f"{about.kind}/{about.namespace}/{about.name}",
            "type": type_,
            "reason": str(reason),
        }
        self.recent.append({**named, "message": note})
        del self.recent[: -self.RECENT_MAX]
        self._ctx.events.emit(about, type_, reason, note, guard=guard)

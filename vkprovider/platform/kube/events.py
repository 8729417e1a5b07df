"""Record Events in the background, as client-go's broadcaster does.

`emit` only queues; one loop writes, at a bounded rate, Warnings first. It writes core/v1 Events, because `kubectl
describe` shows these. The same message about the same object within ten minutes becomes one Event with a count, which
is patched at most once a minute.
"""

import asyncio
import heapq
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec
import structlog

from vkprovider.platform.backoff import delay_s
from vkprovider.platform.errors import Conflict, Fenced, NotFound, OutsideError, Throttled, Unavailable, shorten
from vkprovider.platform.kube.client import Guard, KubeClient
from vkprovider.platform.kube.flow import Lane, TokenBucket
from vkprovider.platform.times import iso

_log: Final = structlog.get_logger(__name__)

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
    put_back: int = 0  # how often in a row it was refused for the moment: by its guard, or with 429
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


__all__ = ["EventRecorder", "ObjectRef"]


_NOTE_CHARS_MAX: Final = 1024  # the API's own limit
_SAME_S: Final = 600.0
_REPEAT_S: Final = 60.0
_TRIES_MAX: Final = 4
_FENCED_S: Final = 2.0
_QUIET_LOOK_S: Final = 0.02
"""The pause of a hurry after an Event whose namespace is throttled."""


class EventRecorder:
    """Queue Events and write them in the background.

    Attributes:
        written_total: Events created or counted up.
        dropped_total: Events never written: queue full, refused, or the API server unreachable for too long.
        warnings_total: Warnings by reason, repeated ones too.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        component: str,
        instance: str,
        rate_per_s: float = 50,
        burst: int = 25,
        queued_max: int = 512,
        remembered_max: int = 512,
        backoff_s: tuple[float, float] = (0.5, 8.0),
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Configure the recorder; `run` and `flush` write.

        Args:
            client: Writes the Events.
            component: The reporting controller (`vkprovider`).
            instance: The replica.
            rate_per_s: Writes a second on average.
            burst: Writes at once.
            queued_max: Events that may wait; the oldest Normal one is dropped for a new one.
            remembered_max: Events that are recognised as the same and counted up.
            backoff_s: First and greatest bound of the back-off after a failed write.
            now: A monotonic clock.
            wall: The time of day, in Unix seconds.
        """
        self.written_total = 0
        self.dropped_total = 0
        self.warnings_total: Counter[str] = Counter()
        self._client = client
        self._component = component
        self._instance = instance
        self._queued_max = queued_max
        self._remembered_max = remembered_max
        self._backoff_s = backoff_s
        self._now = now
        self._wall = wall
        self._bucket = TokenBucket(rate_per_s, burst, now=now)
        self._warnings: OrderedDict[int, EmittedEvent] = OrderedDict()
        self._normals: OrderedDict[int, EmittedEvent] = OrderedDict()
        self._normals_of: dict[str, list[int]] = {}
        self._repeats: list[tuple[float, int, EmittedEvent]] = []
        self._known: OrderedDict[tuple[str, str, str, str], EmittedEvent] = OrderedDict()
        self._quiet_until: dict[str, float] = {}
        self._serial = 0
        self._stamp_ns = 0
        self._work = asyncio.Event()
        self._writing = asyncio.Lock()

    @property
    def depth(self) -> int:
        """Queued Events."""
        return len(self._warnings) + len(self._normals)

    def emit(
        self,
        regarding: ObjectRef,
        type_: EventType,
        reason: str,
        note: str,
        *,
        action: str = "",
        guard: Guard | None = None,
    ) -> None:
        """Queue an Event. Never blocks, never raises.

        Args:
            regarding: What it is about.
            type_: `Warning` if it needs attention.
            reason: One CamelCase word; Kubernetes' own where it has one: `Pulling`, `FailedMount`, `Killing`.
            note: A sentence, without secrets; shortened to 1024 characters.
            action: The action in progress, in CamelCase, if it differs from the reason.
            guard: Called when the Event is sent; while it raises `Fenced` the Event waits, and is dropped in the end.
        """
        if type_ == "Warning":
            self.warnings_total[reason] += 1
        now_s, wall_s = self._now(), self._wall()
        key = (regarding.uid, type_, reason, note)
        event = self._known.get(key)
        if event is not None and now_s - event.heard_s < _SAME_S:
            event.count += 1
            event.last_s, event.heard_s, event.guard = wall_s, now_s, guard
            self._known.move_to_end(key)
            if not event.due:
                self._repeat(event)
            return
        self._stamp_ns = max(int(wall_s * 1e9), self._stamp_ns + 1)  # names are unique
        note = shorten(note, _NOTE_CHARS_MAX)
        event = EmittedEvent(regarding, type_, reason, note, action, self._stamp_ns, wall_s, wall_s, now_s, guard)
        self._known.pop(key, None)
        self._known[key] = event
        if len(self._known) > self._remembered_max:
            self._known.popitem(last=False)
        self._enqueue(event)

    def forget(self, uid: str) -> None:
        """Drop the Normal Events about a deleted object: `kubectl describe` can no longer show them."""
        for serial in self._normals_of.pop(uid, ()):
            self._normals.pop(serial).due = False

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            self._work.clear()
            if not self._waiting():
                first_s = self._repeats[0][0] if self._repeats else None
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if first_s is None else max(0.0, first_s - self._now())):
                        await self._work.wait()
                continue
            await asyncio.sleep(self._bucket.reserve())
            event = self._next()
            if event is not None:
                await self._write(event)

    async def flush(self, timeout_s: float) -> bool:
        """Write all queued Events and counts, ignoring the rate limit; return False if `timeout_s` was too short."""
        try:
            async with asyncio.timeout(timeout_s):
                while (event := self._next(hurry=True)) is not None:
                    await self._write(event)
                    if event.due and self._quiet_s(event):
                        await asyncio.sleep(_QUIET_LOOK_S)
                async with self._writing:  # what `run` is writing
                    return True
        except TimeoutError:
            return False

    def _waiting(self, *, hurry: bool = False) -> bool:
        return bool(self.depth or (self._repeats and (hurry or self._repeats[0][0] <= self._now())))

    def _repeat(self, event: EmittedEvent, *, after_s: float = 0.0) -> None:
        """Schedule a count for the end of the Event's minute, or later, or, if it was never written, in `after_s`."""
        if len(self._repeats) >= self._queued_max + self._remembered_max:
            self._drop(event, "too many wait")
            event.due = False
            return
        event.due = True
        self._serial += 1
        due_s = self._now() + after_s
        if event.written_s is not None:
            due_s = max(due_s, event.written_s + _REPEAT_S)
        heapq.heappush(self._repeats, (due_s, self._serial, event))
        self._work.set()

    def _enqueue(self, event: EmittedEvent) -> None:
        self._serial += 1
        if event.type_ == "Warning":
            self._warnings[self._serial] = event
        else:
            self._normals[self._serial] = event
            self._normals_of.setdefault(event.regarding.uid, []).append(self._serial)
        if self.depth > self._queued_max:
            dropped = self._pop_normal() or self._warnings.popitem(last=False)[1]
            dropped.due = False
            self.dropped_total += 1
        self._work.set()

    def _next(self, *, hurry: bool = False) -> EmittedEvent | None:
        """Pop the next Event to write: Warnings, Normals, then counts that are due."""
        if self._warnings:
            return self._warnings.popitem(last=False)[1]
        if self._normals:
            return self._pop_normal()
        return heapq.heappop(self._repeats)[2] if self._waiting(hurry=hurry) else None

    def _pop_normal(self) -> EmittedEvent | None:
        if not self._normals:
            return None
        serial, event = self._normals.popitem(last=False)
        serials = self._normals_of[event.regarding.uid]
        serials.remove(serial)
        if not serials:
            del self._normals_of[event.regarding.uid]
        return event

    async def _write(self, event: EmittedEvent) -> None:
        """Write one Event; retry a few times while the API server is unavailable, then drop it.

        A namespace that is throttled, as by the API server's EventRateLimit, holds up only its own: they wait.
        """
        if (quiet_s := self._quiet_s(event)) > 0:
            self._repeat(event, after_s=quiet_s)
            return
        try:
            async with self._writing:
                for attempt in range(1, _TRIES_MAX + 1):
                    try:
                        await self._send(event)
                    except Unavailable as error:
                        if attempt == _TRIES_MAX or isinstance(error, Throttled):
                            raise
                        first_s, cap_s = self._backoff_s
                        wait_s = delay_s(attempt, first_s=first_s, cap_s=cap_s, dice=random.random(), floor=0)
                        await asyncio.sleep(wait_s)
                    else:
                        break
        except asyncio.CancelledError:
            self._repeat(event)  # `flush` still finds it
            raise
        except Fenced as error:  # this replica may act again soon
            self._put_back(event, str(error), after_s=_FENCED_S)
            return
        except Throttled as error:
            self._quiet_until = {each: until for each, until in self._quiet_until.items() if until > self._now()}
            self._quiet_until[event.path] = self._now() + error.after_s
            self._put_back(event, str(error), after_s=error.after_s)
            return
        except OutsideError as error:  # the namespace is going, rights are missing
            self._drop(event, str(error))
        else:
            event.written_s, event.put_back = self._now(), 0
            self.written_total += 1
        event.due = False
        if event.count > event.sent:
            self._repeat(event)  # emitted again while it was being written

    def _quiet_s(self, event: EmittedEvent) -> float:
        """Return how long no Event of the same namespace is to be sent."""
        return max(0.0, self._quiet_until.get(event.path, 0.0) - self._now())

    def _put_back(self, event: EmittedEvent, why: str, *, after_s: float) -> None:
        """Leave an Event for later, while others go on; drop it after a few times in a row."""
        event.put_back += 1
        if event.put_back < _TRIES_MAX:
            self._repeat(event, after_s=after_s)
            return
        self._drop(event, why)
        event.due = False

    def _drop(self, event: EmittedEvent, why: str) -> None:
        self.dropped_total += 1
        if self.dropped_total & (self.dropped_total - 1) == 0:  # the first one, and each doubling
            _log.warning("events dropped", total=self.dropped_total, reason=event.reason, error=why)

    async def _send(self, event: EmittedEvent) -> None:
        """Create the Event, or patch its count if it has been written before.

        Raises:
            OutsideError: Any of its kinds except `NotFound` (the Event has expired and is created again) and `Conflict`
                (an earlier attempt got through).
        """
        event.sent = event.count
        if event.written_s is not None:
            body = msgspec.json.encode({"count": event.count, "lastTimestamp": iso(int(event.last_s))})
            with suppress(NotFound):
                path = f"{event.path}/{event.name}"
                await self._client.merge_patch(path, body, guard=event.guard, brief=True, lane=Lane.NEWS)
                return
        with suppress(Conflict):
            body = msgspec.json.encode(event.body(self._component, self._instance))
            await self._client.create(event.path, body, guard=event.guard, brief=True, lane=Lane.NEWS)

"""A part of a process, and what a process says of its parts: `GET /health`, `GET /admin/state`.

A process is a list of parts. Whatever is to be done for all of them (open the queues, list the metrics, tell whether
everything is known, hand over) iterates over the parts: there is no second list of queues, informers or metrics.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from aiohttp import web

from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.kube.queue import KeyedQueue, Reconcile
from vkprovider.platform.kube.watch import HasMetadata
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.metrics import Measure
from vkprovider.platform.runtime.ownership import Ownership

T = TypeVar("T", bound=HasMetadata)
Loop = Callable[[], Coroutine[Any, Any, None]]
Loops = Mapping[str, Loop]
Facts = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What follows from a change of an object.

    Attributes:
        informer: The informer that sees the change.
        handler: Called by the informer with the object before and after; see `Informer.add_handler`.
    """

    informer: Informer[T]
    handler: Callable[[T | None, T | None], None]

    def register(self) -> None:
        """Have the handler called from now on."""
        self.informer.add_handler(self.handler)


@dataclass(frozen=True, slots=True)
class Work:
    """A queue and the reconciler that works on it.

    Attributes:
        queue: The queue; its name is that of the loop, too.
        reconcile: Called by the queue for each key that is due.
        is_early: Whether the queue opens as soon as everything is listed. The other queues wait for the early ones that
            have `first_s`.
        first_s: How long at most, at start, other queues wait until every key that is due here had its turn.
    """

    queue: KeyedQueue[str]
    reconcile: Reconcile[str]
    is_early: bool = False
    first_s: float = 0.0


class Route(NamedTuple):
    """A path of the process's page.

    Attributes:
        handler: Called by the page with each request; it raises `Refused` to refuse one.
    """

    method: str
    path: str
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]]


Hosted = Callable[[web.Request], Callable[[web.Request], Awaitable[web.StreamResponse]] | None]
"""Returns the handler of a request to a host of its own; None if its host is that of the page."""


def no_host(_: web.Request) -> None:
    """Return no handler: all hosts are that of the page."""


def _nothing() -> None:
    """Do nothing."""


async def _none() -> None:
    """Have nothing to wait for."""


def _no_facts() -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of a process; the process calls its functions, each at the moment that is named here.

    Attributes:
        owns: The kinds of keys that this process owns for it; handed over at the end of the process.
        informers: What it follows; nothing is decided before all have listed once.
        changes: What follows from changes of objects, in this order; registered before the informers run.
        works: Its queues.
        loops: Its further loops, by name; called once, when the process runs.
        measures: Its metrics.
        routes: Its paths of the page.
        hosted: Called at each request; returns its handler if it is to a host that is not the page's.
        health: Returns its lines of `GET /health`; called at each request.
        stats: Returns its lines of `GET /admin/stats`; called at each request.
        known: Called once, when everything is known and before the queues that are not early open.
        fenced: Called at the fence; cancels what is in flight.
        resumed: Called when the process may act (again); adds all keys, for the fence has dropped some.
        led: Called when the process begins to lead, and when it may act (again); adds what only the leader does.
        finish: Awaited first when the process is asked to end, while its loops run; finishes what is in hand.
        hand_over: Awaited when its loops have ended, while the process still owns its keys.
        close: Awaited at last; it limits its time itself.
    """

    owns: tuple[Ownership, ...] = ()
    informers: tuple[Informer[Any], ...] = ()
    changes: tuple[Change[Any], ...] = ()
    works: tuple[Work, ...] = ()
    loops: Loops = field(default_factory=lambda: MappingProxyType({}))
    measures: tuple[Measure, ...] = ()
    routes: tuple[Route, ...] = ()
    hosted: Hosted = no_host
    health: Facts = _no_facts
    stats: Facts = _no_facts
    known: Callable[[], None] = _nothing
    fenced: Callable[[], None] = _nothing
    resumed: Callable[[], None] = _nothing
    led: Callable[[], None] = _nothing
    finish: Callable[[], Awaitable[None]] = _none
    hand_over: Callable[[], Awaitable[None]] = _none
    close: Callable[[], Awaitable[None]] = _none


def owned(parts: Iterable[Part]) -> Iterator[Ownership]:
    """Yield the kinds of keys that a process owns."""
    return (ownership for part in parts for ownership in part.owns)


def informers(parts: Iterable[Part]) -> Iterator[Informer[Any]]:
    """Yield the informers of a process."""
    return (informer for part in parts for informer in part.informers)


def works(parts: Iterable[Part]) -> Iterator[Work]:
    """Yield the queues of a process."""
    return (work for part in parts for work in part.works)


def starting(replica: str) -> dict[str, Any]:
    """Return the health of a process that has no parts yet: the API server has not answered."""
    return {"status": "starting", "is_leader": False, "instance_id": replica, "last_reconciliation": None}


def health(ctx: Context, membership: Membership, parts: Sequence[Part]) -> dict[str, Any]:
    """Return the health of a process."""
    ended = max((work.queue.ended_unix for work in works(parts)), default=0.0)
    found: dict[str, Any] = {
        "status": "fenced" if membership.is_fenced else "healthy",
        "is_leader": any(ownership.epochs for ownership in owned(parts)),
        "instance_id": ctx.replica,
        "last_reconciliation": datetime.fromtimestamp(ended, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if ended else None,
    }
    for part in parts:
        found |= part.health()
    return found


def stats(ctx: Context, membership: Membership, parts: Sequence[Part]) -> dict[str, Any]:
    """Return the health and the counts of a process."""
    found = health(ctx, membership, parts)
    for part in parts:
        found |= part.stats()
    queues = [work.queue for work in works(parts)]
    return {
        **found,
        "queues": {
            queue.name: {"waiting": queue.depth, "runs": queue.runs_total, "failures": queue.failures_total}
            for queue in queues
        },
        "api_requests": ctx.kube.requests_total,
        "api_errors": dict(ctx.kube.errors),
    }

"""Deliver events at least once, to the targets in turn, with back-off after a failure."""

import asyncio
import itertools
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import aiohttp
import msgspec
import structlog

from vkpsim.lds.events.cloudevents import Mode, encode, proof
from vkpsim.lds.events.eventfaults import EventFaults
from vkpsim.lds.model import Event

RETRIED: Final = frozenset({404, 408, 425, 429})
"""Statuses, besides those from 500, after which an event is sent again."""
DELIVERIES_KEPT: Final = 100_000
_LOG: Final = structlog.get_logger(__name__)


class EventSettings(msgspec.Struct, kw_only=True, frozen=True):
    """Settings of event delivery.

    Attributes:
        targets: URLs that receive events, in turn.
        token: The bearer token they are sent with; empty sends none.
        mode: The content mode of CloudEvents.
        signed: Whether, instead of showing the token, they carry an HMAC of the body by it.
        first_wait_s: How long to wait before the second try; twice as long before each further one.
        longest_wait_s: How long to wait at most between two tries, also if a target asks for more.
        give_up_s: How long delivery of an event is retried.
        timeout_s: How long a target may take to answer.
        seed: Of the jitter and of the faults.
    """

    targets: tuple[str, ...] = ()
    token: str = ""
    mode: Mode = "structured"
    signed: bool = False
    first_wait_s: float = 0.5
    longest_wait_s: float = 15.0
    give_up_s: float = 600.0
    timeout_s: float = 10.0
    seed: int = 0


class Delivery(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One try to deliver an event."""

    number: int
    event: str
    type: str
    session: str
    target: str
    sent_unix_s: float
    answered_unix_s: float = 0.0
    status: int = 0
    """0 if there was no answer."""
    error: str = ""
    forged: bool = False


class Sender:
    """Sends the events of one LDS.

    Args:
        settings: Of the delivery.
        source: The `source` of its events.
        faults: Faults of the delivery.
        changed: Called when an event no longer needs to be sent.

    Raises:
        ValueError: They cannot be signed.
    """

    def __init__(
        self, settings: EventSettings, source: Callable[[], str], faults: EventFaults, changed: Callable[[], None]
    ) -> None:
        if settings.signed and (settings.mode == "binary" or not settings.token):
            raise ValueError("events can be signed only with a token, and not in binary mode")
        self.settings = settings
        self.faults = faults
        self.deliveries: deque[Delivery] = deque(maxlen=DELIVERIES_KEPT)
        self.undelivered: dict[str, Event] = {}
        self._source = source
        self._changed = changed
        self._random = random.Random(settings.seed)
        self._numbers = itertools.count(1)
        self._order = itertools.count(1)
        self._targets: tuple[str, ...] = settings.targets
        self._turns = itertools.count()
        self._aimed = asyncio.Event()
        self._held: dict[int, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._http: aiohttp.ClientSession | None = None
        self._closing = False

    async def start(self, undelivered: Iterable[Event]) -> None:
        """Start, with the undelivered events of an earlier run."""
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self.settings.timeout_s))
        self.aim(self._targets)
        for event in undelivered:
            self.put(event)

    async def close(self) -> None:
        """Stop; undelivered events stay in `undelivered`."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._http is not None:
            await self._http.close()

    def aim(self, targets: Iterable[str]) -> None:
        """Change the targets; without targets, events wait."""
        self._targets = tuple(targets)
        if self._targets:
            self._aimed.set()
        else:
            self._aimed.clear()

    def put(self, event: Event) -> None:
        """Accept an event for delivery."""
        self.undelivered[event.id] = event
        if self._closing:
            return
        task = asyncio.create_task(self._deliver(event, next(self._order)), name=f"event-{event.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, event: Event, place: int) -> None:
        copies, turns = 1, itertools.count(next(self._turns))  # so that each try goes to another target
        for fault in self.faults.meet(event.type):
            match fault.kind:
                case "lose":
                    copies = 0
                case "duplicate":
                    copies += fault.copies
                case "delay":
                    await asyncio.sleep(fault.delay_s)
                case "reorder":
                    await self._be_overtaken(place, fault.delay_s)
                case "forge":
                    await self._try(event, turns, forged=True)
        for _ in range(copies):
            await self._insist(event, turns)
        self.undelivered.pop(event.id, None)
        for other, overtaken in self._held.items():
            if other < place:
                overtaken.set()
        self._changed()

    async def _be_overtaken(self, place: int, longest_s: float) -> None:
        overtaken = self._held[place] = asyncio.Event()
        try:
            await asyncio.wait_for(overtaken.wait(), longest_s)
        except TimeoutError:
            return
        finally:
            del self._held[place]

    async def _insist(self, event: Event, turns: Iterator[int]) -> None:
        """Retry until a target accepts it or the time is up."""
        gives_up_s = time.monotonic() + self.settings.give_up_s
        wait_s = self.settings.first_wait_s
        while True:
            status, retry_after_s = await self._try(event, turns)
            if 0 < status < 500 and status not in RETRIED:  # noqa: PLR2004 (where server errors begin)
                if status >= 300:  # noqa: PLR2004 (where success ends)
                    _LOG.warning("event refused", id=event.id, type=event.type, status=status)
                return
            pause_s = min(self.settings.longest_wait_s, max(wait_s * self._random.uniform(0.8, 1.2), retry_after_s))
            if time.monotonic() + pause_s > gives_up_s:
                _LOG.warning("event given up", id=event.id, type=event.type, status=status)
                return
            await asyncio.sleep(pause_s)
            wait_s *= 2

    async def _try(self, event: Event, turns: Iterator[int], *, forged: bool = False) -> tuple[int, float]:
        """Send an event to the next target; return the status (0 is none) and how long that asks to wait."""
        await self._aimed.wait()
        assert self._http is not None  # noqa: S101 (set by start)
        target = self._targets[next(turns) % len(self._targets)]
        headers, body = encode(event, self._source(), self.settings.mode)
        headers |= proof("forged" if forged else self.settings.token, body, signed=self.settings.signed)
        delivery = Delivery(
            number=next(self._numbers),
            event=event.id,
            type=event.type,
            session=event.session,
            target=target,
            sent_unix_s=time.time(),
            forged=forged,
        )
        self.deliveries.append(delivery)
        try:
            async with self._http.post(target, data=body, headers=headers, allow_redirects=False) as response:
                delivery.status = response.status
                asked = response.headers.get("Retry-After", "")
                return response.status, float(asked) if asked.isdecimal() else 0.0
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            delivery.error = f"{type(error).__name__}: {error}"
            return 0, 0.0
        finally:
            delivery.answered_unix_s = time.time()

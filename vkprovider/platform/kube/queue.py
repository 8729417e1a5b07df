"""Run a reconciler per key: serial for one key, parallel across keys, with delays and back-off.

A key is in one of these places; `add` moves it, and an earlier time wins over a later one:

    later (a heap, one timer for all) ──due──▶ due (by priority) ──a worker is free──▶ running
      ▲                                                                                 │
      └── failed: back-off · Result(after_s) · added while running ◀────────────────────┘

No task and no timer belongs to a key: 10,000 waiting keys cost memory, not wake-ups.
"""

import asyncio
import heapq
import random
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar, get_args

import structlog

from vkprovider.platform.concurrency import end_tasks
from vkprovider.platform.errors import Fenced
from vkprovider.platform.histogram import BRIEF_S, COARSE_S, Histogram
from vkprovider.platform.kube.due import Due, Pauses, Priority

K = TypeVar("K", bound=Hashable)

Outcome = Literal["ok", "error", "fenced"]

_log: Final = structlog.get_logger(__name__)

_NEVER_S: Final = float("inf")
_STALE_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Result:
    """What a reconciler returns for its key.

    Attributes:
        after_s: Run the key again after so long; None: not before it is added again.
    """

    after_s: float | None = None


DONE: Final = Result()

Reconcile = Callable[[K], Awaitable[Result]]


@dataclass(slots=True)
class _Run:
    """A key that is being reconciled.

    Attributes:
        again_s: When to run it again, if it was added meanwhile.
        priority: Then.
        forgotten: Whether to ignore its result.
    """

    again_s: float = _NEVER_S
    priority: Priority = Priority.RESYNC
    forgotten: bool = False


class KeyedQueue(Generic[K]):
    """Run a reconciler for every key added: serial for one key, parallel across keys.

    Attributes:
        name: For logs and metrics.
        failures_total: Runs that raised.
        runs_total: Completed runs, whatever their outcome.
        ended_unix: When the last run ended (Unix seconds); 0 before the first.
        waited_s: Seconds from due to run; `ran_s`: seconds of the runs, by outcome.
        ran_s_of: The same by key, until the key is forgotten; None if it is not measured.
    """

    def __init__(
        self,
        *,
        name: str,
        workers: int,
        backoff_s: tuple[float, float] = (0.2, 30.0),
        by_key: bool = False,
        now: Callable[[], float] = time.monotonic,
        rand: Callable[[], float] = random.random,
    ) -> None:
        """Configure the queue; nothing runs before `run`, but keys may be added.

        Args:
            name: For logs and metrics.
            workers: Keys reconciled at once, at most.
            backoff_s: First and greatest bound of the back-off.
            by_key: Whether runs are measured by key, too.
            now: A monotonic clock.
            rand: A random number between 0 and 1.
        """
        self.failures_total = 0
        self.runs_total = 0
        self.ended_unix = 0.0
        self.waited_s = Histogram(BRIEF_S)
        self.ran_s: dict[Outcome, Histogram] = {outcome: Histogram(BRIEF_S) for outcome in get_args(Outcome)}
        self.ran_s_of: dict[K, Histogram] | None = {} if by_key else None
        self._reconcile: Reconcile[K] | None = None  # while `run` runs
        self._workers_max = workers
        self._now = now
        self._due = Due[K]()
        self._later: dict[K, float] = {}  # when each is due
        self._heap: list[tuple[float, int, K]] = []  # of `_later`, and outdated entries
        self._pushes = 0  # breaks ties in the heap, so that keys need no order
        self._running: dict[K, _Run] = {}
        self._workers: dict[asyncio.Task[None], None] = {}  # a set whose order is that of their starts
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = _NEVER_S
        self._quiet = asyncio.Event()
        self._quiet.set()
        self.name = name
        self._log = _log.bind(queue=name)
        self._pauses = Pauses[K](backoff_s, rand, self._log)

    @property
    def depth(self) -> int:
        """Keys that are due and wait for a worker."""
        return len(self._due)

    @property
    def oldest_age_s(self) -> float:
        """Seconds for which the first of them has been due."""
        return 0.0 if (oldest := self._due.oldest) is None else max(0.0, self._now() - oldest)

    @property
    def rushes_total(self) -> int:
        """Runs that asked for the next one at once and were made to wait."""
        return self._pauses.rushes_total

    def add(self, key: K, *, after_s: float = 0.0, priority: Priority = Priority.CHANGED) -> None:
        """Run `key` once, in `after_s` seconds at the latest; if it is running, once more afterwards.

        `priority` counts among the keys that are due; after a delay it is `CHANGED`.
        """
        now_s = self._now()
        run = self._running.get(key)
        if run is None:
            self._schedule(key, now_s + after_s, now_s, priority)
        else:
            run.again_s, run.priority = min(run.again_s, now_s + after_s), min(run.priority, priority)

    def forget(self, key: K) -> None:
        """Drop `key` with its delays and failures; ignore its result if it is running."""
        self._due.discard(key)
        self._later.pop(key, None)
        self._pauses.forget(key)
        if self.ran_s_of is not None:
            self.ran_s_of.pop(key, None)
        run = self._running.get(key)
        if run is not None:
            run.again_s, run.forgotten = _NEVER_S, True
        self._settle()

    async def run(self, reconcile: Reconcile[K]) -> None:
        """Run reconciles until cancelled; then cancel those in progress and wait for them.

        Args:
            reconcile: Brings the world nearer to what the key's object specifies. An exception is logged, and the key
                runs again after a back-off; `Fenced` drops the key: another replica owns it, or this one adds all keys
                when it may act again.
        """
        self._reconcile = reconcile
        try:
            self._wake()
            await asyncio.get_running_loop().create_future()
        finally:
            self._reconcile = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer, self._timer_s = None, _NEVER_S
            await end_tasks(self._workers)

    def interrupt(self) -> None:
        """Cancel the reconciles in progress; their keys stay due and run again on the next free worker."""
        for worker in list(self._workers):
            worker.cancel()

    async def drain(self, timeout_s: float) -> bool:
        """Wait until no key is due or running; return False on timeout. Delayed keys do not count."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    def _schedule(self, key: K, due_s: float, now_s: float, priority: Priority = Priority.CHANGED) -> None:
        """Schedule a key that is not running, unless it is scheduled earlier already."""
        if due_s <= now_s:
            self._later.pop(key, None)
            self._due.add(key, due_s, priority)
            self._quiet.clear()
            self._staff()
            return
        if key in self._due or self._later.get(key, _NEVER_S) <= due_s:
            return
        self._later[key] = due_s
        self._pushes += 1
        heapq.heappush(self._heap, (due_s, self._pushes, key))
        if len(self._heap) > 2 * len(self._later) + _STALE_MAX:
            self._heap = [entry for entry in self._heap if self._later.get(entry[2]) == entry[0]]
            heapq.heapify(self._heap)
        if self._reconcile is not None and due_s < self._timer_s:
            self._wake()

    def _wake(self) -> None:
        """Move due keys to `_due`, and set the one timer for the next."""
        now_s = self._now()
        next_s = _NEVER_S
        while self._heap:
            due_s, _, key = self._heap[0]
            if self._later.get(key) == due_s:
                if due_s > now_s:
                    next_s = due_s
                    break
                del self._later[key]
                self._due.add(key, due_s, Priority.CHANGED)
                self._quiet.clear()
            heapq.heappop(self._heap)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_s = next_s
        if next_s != _NEVER_S:
            self._timer = asyncio.get_running_loop().call_later(next_s - now_s, self._wake)
        self._staff()

    def _staff(self) -> None:
        """Start workers for due keys without one, within the limit."""
        if (reconcile := self._reconcile) is not None:
            free = len(self._workers) - len(self._running)
            for _ in range(min(len(self._due) - free, self._workers_max - len(self._workers))):
                worker = asyncio.create_task(self._work(reconcile), name=f"{self.name}-worker")
                self._workers[worker] = None
                worker.add_done_callback(self._ended)  # also of one that was cancelled before its first step

    async def _work(self, reconcile: Reconcile[K]) -> None:
        """Run due keys until there are none."""
        while self._due:
            await self._run_one(reconcile, *self._due.pop())

    def _ended(self, worker: asyncio.Task[None]) -> None:
        """Remove a worker that found no more keys, or was interrupted."""
        self._workers.pop(worker, None)
        if not worker.cancelled() and (error := worker.exception()) is not None:
            self._log.error("a worker of the queue failed", error=repr(error))
        self._staff()
        self._settle()

    async def _run_one(self, reconcile: Reconcile[K], key: K, due_s: float, priority: Priority) -> None:
        run = self._running[key] = _Run()
        began_s = self._now()
        outcome: Outcome = "ok"
        wait_s: float | None = None
        try:
            after_s = (await reconcile(key)).after_s
            wait_s = None if run.forgotten else self._pauses.after_run(key, after_s)
        except Fenced as error:
            outcome = "fenced"
            self._pauses.end_failures(key)
            self._log.debug("fenced", key=key, error=str(error))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                self._due.add(key, due_s, priority)  # not done: it is still due when `run` is called again
                raise
            outcome, wait_s = "error", self._failed(key, run, error)  # a task that the reconciler awaited was cancelled
        except Exception as error:  # noqa: BLE001 (any bug: this key is retried and the others go on)
            outcome, wait_s = "error", self._failed(key, run, error)
        finally:
            del self._running[key]
        ended_s = self._now()
        self.runs_total += 1
        self.ended_unix = time.time()
        if run.again_s != _NEVER_S and (outcome != "error" or run.forgotten):
            self._schedule(key, run.again_s, ended_s, run.priority)
        if wait_s is not None and not run.forgotten:
            self._schedule(key, ended_s + wait_s, ended_s)
        self._measure(key, run, outcome, began_s - due_s, ended_s - began_s)

    def _measure(self, key: K, run: _Run, outcome: Outcome, waited_s: float, ran_s: float) -> None:
        self.waited_s.observe(max(0.0, waited_s))
        self.ran_s[outcome].observe(ran_s)
        if self.ran_s_of is not None and not run.forgotten:
            histogram = self.ran_s_of[key] = self.ran_s_of.get(key) or Histogram(COARSE_S)
            histogram.observe(ran_s)

    def _failed(self, key: K, run: _Run, error: BaseException) -> float | None:
        self.failures_total += 1
        return None if run.forgotten else self._pauses.after_failure(key, error)

    def _settle(self) -> None:
        """Wake `drain` when no key is due or running."""
        if not self._running and not self._due:
            self._quiet.set()

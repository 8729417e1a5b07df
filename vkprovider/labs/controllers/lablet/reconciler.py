"""Pod → lab, by Pod UID. A turn: gather facts, decide, act, remember.

A step that fails is reported on the Pod and tried again later, after a growing pause. The turn is the only writer of a
lablet's memory, and but for `Sessions` of its claim: it applies what `labs.pure.lablet.after` returns.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Final, Protocol

import structlog

from vkprovider.labs.controllers.counters import READY_DECIDED, TURN_BEGUN, Counters
from vkprovider.labs.controllers.lablet.effects import Effects
from vkprovider.labs.controllers.lablet.gather import Gatherer
from vkprovider.labs.controllers.lablet.index import Lablet, LabletIndex
from vkprovider.labs.controllers.lablet.ports import PortCheck
from vkprovider.labs.controllers.lablet.publish import Publisher
from vkprovider.labs.controllers.session.sessions import Sessions
from vkprovider.labs.controllers.worker.worker import Slots, Worker
from vkprovider.labs.pure.lablet.after import After, after, begun, chosen_session, decided, failed
from vkprovider.labs.pure.lablet.decisions.decide import decide
from vkprovider.labs.pure.lablet.decisions.stepfault import fault_of, fault_report
from vkprovider.labs.pure.lablet.facts import Decision, Facts, Report
from vkprovider.labs.pure.lablet.memory import held_s, refreshed
from vkprovider.labs.pure.lablet.outcomes import Abandoned, Circumstances, Failure
from vkprovider.labs.pure.lablet.steps import (
    WAIT,
    ArchiveSession,
    Collect,
    Extract,
    Forget,
    Import,
    Provision,
    Release,
    Reschedule,
    Step,
    System,
    Wait,
)
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.backoff import delay_s
from vkprovider.platform.errors import Fenced, InputError, Invalid, OutsideError, StepFailed, Throttled
from vkprovider.platform.kube.queue import Result
from vkprovider.platform.messages import Fault
from vkprovider.platform.reasons import NO_REASON
from vkprovider.platform.runtime.context import Context
from vkprovider.rest.dialect import may_have_happened

_log: Final = structlog.get_logger(__name__)

Wake = Callable[[str], None]
_WORKER_CALLS_MAX: Final = 80
_DELIVERIES_MAX: Final = 24
"""Turns at once that call workers, and that call the LDS or the grader. Together they leave some of the queue's workers
to turns that only publish."""
_DEPLOYMENT_MAX: Final = 16
"""Turns at once that call one LDS deployment, or the grader: one that hangs leaves the others a third of the slots."""


class NoSlot(Exception):  # noqa: N818 (a state, as `Fenced`)
    """A step that has begun needs a slot, and none is free; a released slot wakes its lablet."""


@dataclass(frozen=True, slots=True)
class TurnSlots:
    """The slots of all turns. A `wake` queues a lablet by Pod UID: the one whose turn a released slot allows."""

    _worker_calls: Slots = field(default_factory=lambda: Slots(_WORKER_CALLS_MAX), init=False)
    _deliveries: Slots = field(default_factory=lambda: Slots(_DELIVERIES_MAX), init=False)
    _by_service: defaultdict[str, Slots] = field(
        default_factory=lambda: defaultdict(lambda: Slots(_DEPLOYMENT_MAX)), init=False
    )

    def acquire(self, step: Step, uid: str, worker: Worker) -> bool:
        """Return whether a step may be executed now; if not, a released slot wakes the lablet.

        A step that calls the LDS and then the worker gets the slot of the worker in between (`turn_to_worker`). The LDS
        is not asked while the worker has none.
        """
        calls_worker = System.WORKER in step.calls and not worker.labs.immediate
        if not step.calls & (System.LDS | System.GRADER):
            return not calls_worker or self._acquire_worker(uid, worker)
        if calls_worker and not (worker.slots.has_room(uid) and self._worker_calls.has_room(uid)):
            return False
        service = self._by_service[_service_of(step)]
        return service.has_room(uid) and self._deliveries.acquire(uid) and service.acquire(uid)

    def turn_to_worker(self, uid: str, worker: Worker, wake: Wake) -> None:
        """Exchange a turn's slot of the LDS for one of the worker.

        Raises:
            NoSlot: The worker has none.
        """
        _release(uid, wake, self._deliveries, *self._by_service.values())
        if not worker.labs.immediate and not self._acquire_worker(uid, worker):
            raise NoSlot

    def release(self, uid: str, worker: Worker, wake: Wake) -> None:
        """Release what a turn holds, at its end."""
        _release(uid, wake, worker.slots, self._worker_calls, self._deliveries, *self._by_service.values())

    def _acquire_worker(self, uid: str, worker: Worker) -> bool:
        return worker.slots.acquire(uid) and self._worker_calls.acquire(uid)


def _service_of(step: Step) -> str:
    """Return the LDS deployment that a step calls; "" for the grader, and for a session that has none yet."""
    match step:
        case Provision(session=session) | Reschedule(session=session) | ArchiveSession(session=session):
            return session.deployment
        case Collect(claim=claim) if claim.session is not None:
            return claim.session.deployment
        case _:
            return ""


def _release(uid: str, wake: Wake, *held: Slots) -> None:
    for slots in held:
        if (waiting := slots.release(uid)) is not None:
            wake(waiting)


_NO_SLOT_S: Final = 5.0
"""How soon a lablet without a slot tries again, if no released slot wakes it."""
_STEPS_MAX: Final = 16
"""Steps in one turn; a decision that goes round in circles must not hold a queue worker for ever."""
_TURN_PAUSE_S: Final = 0.5
"""The pause after a turn of `_STEPS_MAX` steps."""
_REFUSED_TIMES: Final = 10
"""How many times longer the pauses before an import that CML has refused may grow than those before other steps."""


class ObserveSoon(Protocol):
    """The signature of `Workers.observe_soon`."""

    def __call__(self, name: str, uid: str, *, newer_than: float) -> None:
        """Observe a worker soon."""


@dataclass(frozen=True, slots=True)
class Lablets:
    """Brings the lablets on the Nodes of this replica to what their Pods ask for.

    Attributes:
        workers: Those that this replica acts for, by name.
        observe_soon: Request an observation of a worker, by name, and a turn of the Pod after it, see `Workers`.
        wake: Queue a lablet, by Pod UID.
    """

    ctx: Context
    counters: Counters
    settings: LabletSettings
    index: LabletIndex
    workers: Mapping[str, Worker]
    gatherer: Gatherer
    effects: Effects
    publisher: Publisher
    sessions: Sessions
    ports: PortCheck
    observe_soon: ObserveSoon
    wake: Callable[[str], None]
    _closing: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _slots: TurnSlots = field(default_factory=TurnSlots, init=False)

    def close(self) -> None:
        """Begin no further step; those in hand are finished."""
        self._closing.set()

    async def reconcile(self, uid: str) -> Result:
        """Run the next steps of one lablet."""
        lablet = self.index.items.get(uid)
        if lablet is None or self._closing.is_set():
            return Result()
        worker = self.workers.get(lablet.worker)
        if worker is None or worker.parked:
            return Result()  # not this replica's; the next owner wakes its lablets
        with self.index.turn(worker.name):
            result = await self._turn(lablet, worker)
        if result is None:
            self.index.forget(lablet)
        return result or Result()

    async def _turn(self, lablet: Lablet, worker: Worker) -> Result | None:
        """Run the next steps of a lablet; return None if it has come to its end."""
        self.counters.timeline.note(lablet.uid, TURN_BEGUN)
        self._refresh(lablet, worker)
        if left := held_s(lablet.memory, lablet.pod, self.ctx.now()):
            return await self._publish_fault(lablet, worker, left)
        try:
            return await self._run(lablet, worker)
        finally:
            self._slots.release(lablet.uid, worker, self.wake)

    async def _run(self, lablet: Lablet, worker: Worker) -> Result | None:
        decision, later_s = Decision(WAIT), None
        lablet.awaits_claim = True
        for _ in range(_STEPS_MAX):
            facts, now = self._gather(lablet, worker), self.ctx.now()
            decision = decide(facts, now, self.settings)
            step = decision.step
            if not self._slots.acquire(step, lablet.uid, worker):
                later_s = _NO_SLOT_S
                break
            self._record_decision(lablet, worker, facts, decision)
            if isinstance(step, Wait | Forget):
                lablet.awaits_claim = decision.claim is not None or decision.awaits_claim
                break
            try:
                ended = await self._carry_out(decision, lablet, worker)
            except Fenced:
                return Result()
            except NoSlot:
                later_s = _NO_SLOT_S
                break
            except (InputError, StepFailed, OutsideError) as error:
                if isinstance(error, Throttled) and error.status == HTTPStatus.ACCEPTED:  # the grader is at work
                    later_s = error.after_s
                    break
                pause_s = self._record_failure(step, lablet, worker, error)
                if step.holds:
                    return await self._publish_fault(lablet, worker, pause_s)
                continue
            if not ended or not step.continues or self._closing.is_set() or worker.parked:
                break
        else:
            return Result(_TURN_PAUSE_S)
        if isinstance(decision.step, Forget):
            return None
        if decision.observe:
            self.observe_soon(worker.name, lablet.uid, newer_than=lablet.memory.acted_at)
        wait_s = await self.publisher.publish(lablet, worker, decision.report)
        waits = [w for w in (wait_s, decision.after_s, later_s) if w is not None]
        return Result(min(waits) if waits else None)

    # --------------------------------------------------------------------------------------------- records

    def _refresh(self, lablet: Lablet, worker: Worker) -> None:
        claim, ctx = worker.claims.claims.get(lablet.uid), self.ctx
        silent, sure = bool(worker.seen.silent_because), ctx.is_sure()
        lablet.memory = refreshed(
            lablet.memory, lablet.pod, claim, now=ctx.now(), wall=ctx.wall(), sure=sure, silent=silent
        )

    def _gather(self, lablet: Lablet, worker: Worker) -> Facts:
        self._refresh(lablet, worker)
        return self.gatherer.gather(lablet, worker)

    def _record_decision(self, lablet: Lablet, worker: Worker, facts: Facts, decision: Decision) -> None:
        before = lablet.memory
        self._apply(lablet, worker, decided(before, facts, decision, worker=worker.name, now=self.ctx.now()))
        if decision.claim is not None and (session := chosen_session(facts, decision)) is not None:
            self.sessions.took(decision.claim, session, facts.delivery)
        if lablet.memory.ready_since and not before.ready_since:
            self.counters.timeline.note(lablet.uid, READY_DECIDED)
            if before.starting_since:
                self.counters.lab_started(worker.name, lablet.memory.ready_since - before.starting_since)
            self.ports.begin(lablet, worker)

    def _apply(self, lablet: Lablet, worker: Worker, result: After) -> None:
        self.publisher.count_transition(lablet.uid, lablet.memory.state, result.memory.state)
        lablet.memory = result.memory
        if result.claim is not None:
            worker.claims.put(result.claim, lazy=result.lazy)
        self.publisher.emit(lablet, worker, result.notices)

    def _place(self, lablet: Lablet, worker: Worker) -> Circumstances:
        return Circumstances(worker.name, lablet.pod, self.ctx.now(), self.ctx.now_unix)

    # --------------------------------------------------------------------------------------------- one step

    async def _execute(self, step: Step, lablet: Lablet, worker: Worker) -> None:
        """Execute a step and record its outcome; raises as `Effects.execute` does."""
        counters, claims = self.counters, worker.claims
        counters.steps[step.label] = counters.steps.get(step.label, 0) + 1
        lablet.memory = begun(lablet.memory, step)
        outcome = await self.effects.execute(
            step, worker, partial(self._slots.turn_to_worker, lablet.uid, worker, self.wake)
        )
        self.counters.timeline.note(lablet.uid, step.label)
        claim = claims.claims.get(lablet.uid)
        self._apply(lablet, worker, after(lablet.memory, claim, step, outcome, self._place(lablet, worker)))
        if isinstance(step, Release):
            claims.drop(lablet.uid)
            self.index.capacity_freed(worker.name)

    async def _carry_out(self, decision: Decision, lablet: Lablet, worker: Worker) -> bool:
        """Execute a decision's step, publishing progress while a worker takes its time; False if it was abandoned."""
        step, report = decision.step, decision.report
        if worker.labs.immediate or System.WORKER not in step.calls:
            await self._execute(step, lablet, worker)
            return True
        task = asyncio.ensure_future(self._execute(step, lablet, worker))
        try:
            await asyncio.wait((task,), timeout=0.0)
            while not task.done():
                if worker.seen.silent_because:
                    if isinstance(step, Extract):  # each device would be waited for in turn
                        await _cancel(task)
                        claim, place = worker.claims.claims.get(lablet.uid), self._place(lablet, worker)
                        self._apply(lablet, worker, after(lablet.memory, claim, step, Abandoned(), place))
                        return False
                    facts = self._gather(lablet, worker)
                    meanwhile = decide(facts, self.ctx.now(), self.settings)
                    self._record_decision(lablet, worker, facts, meanwhile)
                    report = meanwhile.report
                wait_s = await self._publish_meanwhile(lablet, worker, report)
                pause_s = self.settings.transition_s
                await asyncio.wait((task,), timeout=pause_s if wait_s is None else min(wait_s, pause_s))
            task.result()
        finally:
            await _cancel(task)
        return True

    async def _publish_meanwhile(self, lablet: Lablet, worker: Worker, report: Report | None) -> float | None:
        try:
            return await self.publisher.publish(lablet, worker, report)
        except OutsideError as error:
            _log.warning("the progress of a slow step cannot be written", pod=lablet.uid, error=str(error))
            return None

    # --------------------------------------------------------------------------------------------- failures

    def _record_failure(
        self, step: Step, lablet: Lablet, worker: Worker, error: InputError | StepFailed | OutsideError
    ) -> float:
        """Record that a step failed; return the pause after which it is tried again."""
        failures = self.counters.step_failures
        failures[step.label] = failures.get(step.label, 0) + 1
        tries = lablet.memory.failures + 1
        first_s, cap_s = self.settings.step_retry_first_s, self.settings.step_retry_cap_s
        if isinstance(step, Import) and isinstance(error, Invalid):
            cap_s *= _REFUSED_TIMES  # the same topology is refused again, unless the worker changes
        pause_s = delay_s(tries, first_s=first_s, cap_s=cap_s, dice=self.ctx.dice())
        if isinstance(error, Throttled):
            pause_s = max(pause_s, error.after_s)
        if isinstance(error, OutsideError):
            failure = Failure(fault_of(type(step), error), pause_s, error, not may_have_happened(error))
        else:
            event = error.event if isinstance(error, InputError) else NO_REASON
            failure = Failure(Fault(error.reason, error.message), pause_s, event=event)
        claim, acted_at = worker.claims.claims.get(lablet.uid), lablet.memory.acted_at
        self._apply(lablet, worker, failed(lablet.memory, claim, step, failure, self._place(lablet, worker)))
        if lablet.memory.acted_at != acted_at:  # nobody knows what the lab is like now
            self.observe_soon(worker.name, lablet.uid, newer_than=lablet.memory.acted_at)
        return pause_s

    async def _publish_fault(self, lablet: Lablet, worker: Worker, pause_s: float) -> Result:
        """Publish the last failure; its step is tried again after `pause_s`."""
        fault = lablet.memory.fault
        if fault is None:
            return Result(pause_s)
        report = fault_report(self._gather(lablet, worker), fault)
        wait_s = await self.publisher.publish(lablet, worker, report, urgent=lablet.memory.failures > 1)
        return Result(pause_s if wait_s is None else min(pause_s, wait_s))


async def _cancel(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end; nothing of it may run after the turn has released its slot."""
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()  # retrieved: the turn has ended for another reason

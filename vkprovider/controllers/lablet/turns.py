"""One turn of one lablet: gather the facts, ask the domain, carry out a step, tell of it, and again.

What fails is said on the Pod and tried again later, at a growing distance.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import msgspec
import structlog

from vkprovider.api.errors import Fenced, InputError, NotFound, OutsideError, StepFailed, Throttled, Unavailable
from vkprovider.controllers.context import Context
from vkprovider.controllers.lablet.factfinder import FactFinder
from vkprovider.controllers.lablet.memory import Lablet
from vkprovider.controllers.lablet.portcheck import PortCheck
from vkprovider.controllers.lablet.steps import Steps
from vkprovider.controllers.lablet.telling import Teller
from vkprovider.controllers.session.sessions import Sessions
from vkprovider.controllers.worker.slots import Slots
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.backoff import delay_s
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet import intent
from vkprovider.domain.lablet.decide import decide
from vkprovider.domain.lablet.delivering import closing_state
from vkprovider.domain.lablet.facts import Decision, Facts, Report, Step, phase_of
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.domain.lablet.stepfault import fault_of
from vkprovider.kube.queue import Result

_log: Final = structlog.get_logger(__name__)
_SLOW: Final = frozenset(
    {
        Step.SEARCH,
        Step.IMPORT,
        Step.START,
        Step.EXTRACT,
        Step.COLLECT,
        Step.STOP,
        Step.WIPE,
        Step.DELETE_LAB,
    }
)
"""Steps that ask the worker."""
_DELIVERY: Final = frozenset({Step.PROVISION, Step.ARCHIVE, Step.GRADE})
"""Steps that ask the LDS or the grader."""
_SLOW_MAX: Final = 80
_DELIVERIES_MAX: Final = 24
"""Turns at once that ask workers, and that ask the LDS or the grader. Together they leave some of the queue's for those
that ask nobody, and only have to say something."""
_NO_ROOM_S: Final = 5.0
"""How soon a lablet looks again for which there was no room, if nobody wakes it."""
_STEPS_MAX: Final = 16
"""Steps in one turn; a decision that goes round in circles must not hold a worker for ever."""
_BREATH_S: Final = 0.5
"""The pause after so many."""


class Turns:
    """Takes turns of lablets.

    Attributes:
        closing: No further step is taken; those in hand are finished.
    """

    def __init__(
        self,
        ctx: Context,
        finder: FactFinder,
        steps: Steps,
        teller: Teller,
        sessions: Sessions,
        ports: PortCheck,
        observe_soon: Callable[[str, str], None],
        wake: Callable[[str], None],
    ) -> None:
        """Take what does the work.

        Args:
            ctx: The replica.
            finder: Gathers the facts.
            steps: Carries out steps.
            teller: Tells what was done.
            sessions: Those of the LDS.
            ports: Looks whether the ports of a lablet open that has become ready.
            observe_soon: Has a worker observed at the pace of transitions, and a Pod looked at then.
            wake: Has a Pod looked at.
        """
        self._ctx = ctx
        self._finder = finder
        self._steps = steps
        self._teller = teller
        self._sessions = sessions
        self._ports = ports
        self._observe_soon = observe_soon
        self._wake = wake
        self._asking = Slots(_SLOW_MAX)
        self._deliveries = Slots(_DELIVERIES_MAX)
        self.closing = False

    async def take(self, lablet: Lablet, worker: Worker) -> Result | None:
        """Take the next steps of a lablet; None if it has come to its end."""
        if worker.silent:
            lablet.hold_until = 0.0  # when it answers again, nothing should wait any longer
        elif lablet.fault is not None and (left := lablet.hold_until - self._ctx.now()) > 0:
            return await self._say_fault(lablet, worker, lablet.fault, left)
        try:
            return await self._take(lablet, worker)
        finally:
            for slots in (worker.slots, self._asking, self._deliveries):
                if (waits := slots.release(lablet.uid)) is not None:
                    self._wake(waits)

    async def _take(self, lablet: Lablet, worker: Worker) -> Result | None:
        decision, later_s = Decision(Step.NONE), None
        for _ in range(_STEPS_MAX):
            facts = self._finder.of(lablet, worker)
            decision = decide(facts, self._ctx.now(), self._ctx.limits)
            if not self._has_room(decision.step, lablet, worker):
                later_s = _NO_ROOM_S
                break
            self._note(lablet, worker, facts, decision)
            if decision.step in {Step.NONE, Step.FORGET}:
                break
            try:
                go_on = await self._carry_out(decision, lablet, worker, facts)
            except Fenced:
                return Result()
            except (InputError, StepFailed) as fault:
                return await self._failed(decision.step, lablet, worker, (fault.reason, fault.message))
            except OutsideError as error:
                after_s = error.after_s if isinstance(error, Throttled) else 0.0
                if error.status == HTTPStatus.ACCEPTED:  # a grader that is at it
                    later_s = after_s
                    break
                self._after_failure(lablet, worker, decision.step, facts, error)
                return await self._failed(decision.step, lablet, worker, fault_of(decision.step, error), after_s)
            if decision.step is not Step.SEARCH:  # it only leads up to an import, and that may be what fails
                lablet.failures, lablet.fault = 0, None
            if not go_on or self.closing or worker.parked:
                break
        else:
            return Result(_BREATH_S)
        if decision.step is Step.FORGET:
            return None
        if decision.observe:
            self._observe_soon(worker.name, lablet.uid)
        wait_s = await self._teller.publish(lablet, worker, _with_fault(decision.report, worker.claims.fault))
        waits = [w for w in (wait_s, decision.after_s, later_s) if w is not None]
        return Result(min(waits) if waits else None)

    def _has_room(self, step: Step, lablet: Lablet, worker: Worker) -> bool:
        """Tell whether a step may be taken now; if not, the lablet is woken when it may."""
        if step in _DELIVERY:
            return self._deliveries.acquire(lablet.uid)
        if step not in _SLOW or worker.labs.immediate:
            return True
        return worker.slots.acquire(lablet.uid) and self._asking.acquire(lablet.uid)

    def _note(self, lablet: Lablet, worker: Worker, facts: Facts, decision: Decision) -> None:
        """Take over what a decision says about the row and the times, and tell about it."""
        if decision.claim is not None:
            worker.claims.put(decision.claim, lazy=not _is_awaited(decision.claim))
            session, before = decision.claim.session, facts.claim.session if facts.claim is not None else None
            if session is not None and before is None:
                lablet.unasked = session.key
                self._sessions.took(decision.claim, session, facts.delivery)
            if not decision.claim.lab_id:
                lablet.absent, lablet.assumed = False, None
        if decision.retry_at is not None:
            lablet.retry_at = decision.retry_at
        if decision.anew:
            lablet.starting_since = lablet.start_sent_at = 0.0
        report = decision.report
        if report is not None:
            if not report.ready:
                lablet.ready_since = 0.0
            elif not lablet.ready_since:
                lablet.ready_since = self._ctx.now()
                if lablet.starting_since:
                    self._ctx.counters.lab_started(worker.name, lablet.ready_since - lablet.starting_since)
                lablet.retry_at = lablet.starting_since = 0.0
                lablet.warned = None
                self._ports.begin(lablet, worker)
            self._teller.move(lablet, report.state)
        for type_, reason, note in decision.events:
            if type_ == "Warning":
                self._teller.warn(lablet, reason, note)
            else:
                self._teller.emit(lablet, type_, reason, note)
        if facts.inputs.faults != lablet.told:
            lablet.told = facts.inputs.faults
            if lablet.told:
                self._teller.emit(lablet, "Warning", "AnnotationInvalid", "; ".join(lablet.told))
        pod, claim = lablet.pod, worker.claims.claims.get(lablet.uid)
        changed = intent.changed_image(pod, claim) if pod is not None and claim is not None else ""
        if changed != lablet.image_changed:
            lablet.image_changed = changed
            if changed:
                self._teller.emit(lablet, "Warning", "ImageChangeIgnored", changed)
        if pod is not None and pod.metadata.deletion_timestamp is not None and not lablet.killing:
            lablet.killing = True
            if lablet.uid in worker.claims.claims:
                self._teller.emit(lablet, "Normal", "Killing", f"Removing the lab from worker {worker.name}")

    async def _carry_out(self, decision: Decision, lablet: Lablet, worker: Worker, facts: Facts) -> bool:
        """Carry out a step; while a worker takes its time over it, the Pod says what it waits for."""
        step = self._steps.take(decision.step, lablet, worker, facts)
        if worker.labs.immediate or decision.step not in _SLOW:
            return await step
        task = asyncio.ensure_future(step)
        try:
            await asyncio.wait((task,), timeout=0.0)
            while not task.done():
                if worker.silent:
                    if decision.step in {Step.EXTRACT, Step.COLLECT}:
                        return False  # one device after the other would be waited for
                    facts = self._finder.of(lablet, worker)
                    decision = decide(facts, self._ctx.now(), self._ctx.limits)
                    self._note(lablet, worker, facts, decision)
                wait_s = await self._publish_meanwhile(lablet, worker, decision.report)
                pause_s = self._ctx.tuning.transition_s
                await asyncio.wait((task,), timeout=pause_s if wait_s is None else min(wait_s, pause_s))
            return task.result()
        finally:
            task.cancel()

    async def _publish_meanwhile(self, lablet: Lablet, worker: Worker, report: Report | None) -> float | None:
        try:
            return await self._teller.publish(lablet, worker, report)
        except OutsideError as error:
            _log.warning("a slow step's progress cannot be written", pod=lablet.uid, error=str(error))
            return None

    # --------------------------------------------------------------------------------------------- failures

    def _after_failure(self, lablet: Lablet, worker: Worker, step: Step, facts: Facts, error: OutsideError) -> None:
        if step is Step.IMPORT:
            lablet.searched = not isinstance(error, Unavailable)  # without an answer the lab may be there all the same
        if step is Step.START and facts.claim is not None:
            worker.claims.put(facts.claim, lazy=True)  # a start that was refused is none that was made in vain
        if step is Step.ARCHIVE:
            lablet.archive_failed = True
        if isinstance(error, NotFound) and step in _SLOW:
            lablet.acted_at, lablet.assumed = self._ctx.now(), None  # somebody deleted it: look again
            self._observe_soon(lablet.worker, lablet.uid)

    async def _failed(
        self, step: Step, lablet: Lablet, worker: Worker, fault: tuple[str, str], after_s: float = 0.0
    ) -> Result:
        """Say why a step failed, and try it again later, not before `after_s`."""
        tuning, failures = self._ctx.tuning, self._ctx.counters.step_failures
        failures[step.name] = failures.get(step.name, 0) + 1
        lablet.failures += 1
        pause = delay_s(lablet.failures, first_s=tuning.retry_first_s, cap_s=tuning.retry_cap_s, dice=self._ctx.dice())
        pause = max(pause, after_s)
        lablet.fault = fault
        lablet.hold_until = self._ctx.now() + pause
        reason, message = fault
        if lablet.failures == 1 or reason != "WorkerUnreachable":
            self._teller.warn(lablet, reason, message)
        return await self._say_fault(lablet, worker, fault, pause)

    async def _say_fault(self, lablet: Lablet, worker: Worker, fault: tuple[str, str], pause: float) -> Result:
        """Say why a step failed, until it is tried again after `pause` seconds."""
        reason, message = fault
        text = f"{message}; trying again"
        pod = lablet.pod
        if pod is not None and not pod.terminal:
            facts = self._finder.of(lablet, worker)
            ending = pod.metadata.deletion_timestamp is not None or (facts.claim is not None and facts.claim.outcome)
            state = State.STOPPING if ending else State.INSTANTIATING
            if facts.claim is not None and facts.claim.closing and not ending:
                state = closing_state(facts, facts.claim)
            waiting = ("CleaningUp", text) if ending else (reason, text)
            report = Report(state, phase_of(facts), waiting, facts.devices)
            wait_s = await self._teller.publish(lablet, worker, report, urgent=lablet.failures > 1)
            pause = pause if wait_s is None else min(pause, wait_s)
        return Result(pause)


def _is_awaited(claim: Claim) -> bool:
    """Tell whether what comes next waits for the row: an end, or a session that is written before it is made."""
    return bool(claim.outcome or claim.closing) or (claim.session is not None and not claim.session.ready)


def _with_fault(report: Report | None, fault: InputError | None) -> Report | None:
    """Say why a row is not being written, instead of that it is."""
    if report is None or fault is None or report.waiting is None or report.waiting[0] != "AllocatingPorts":
        return report
    return msgspec.structs.replace(report, waiting=(fault.reason, fault.message))

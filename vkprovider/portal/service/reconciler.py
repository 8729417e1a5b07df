"""One turn of a user lab: look at what is known, decide, take the user's lock, take one step.

A turn that finds nothing to do releases the lock. Whatever it finds undone it does, whichever replica left it so.
"""

from typing import Final, Literal

import msgspec
import structlog

from vkprovider.platform.errors import Conflict, Forbidden, Invalid, NotFound
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.kube.queue import DONE, Result
from vkprovider.platform.messages import Fault
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.times import length
from vkprovider.portal.pure import stream
from vkprovider.portal.pure.decide import (
    HELD_S,
    Assign,
    Complete,
    DeleteBench,
    DeleteNamespace,
    DeletePod,
    End,
    Fail,
    Free,
    LabPlan,
    Look,
    Make,
    MakeBench,
    NoteProvisioned,
    Reseal,
    decide,
)
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.portalnames import UserLabReason
from vkprovider.portal.pure.record import annotation, ended, ending
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.locks import Locks
from vkprovider.portal.service.making import LabObjects, Making
from vkprovider.portal.service.records import new_id
from vkprovider.portal.service.workbenches import Workbenches
from vkprovider.portal.settings import PortalSettings

_log: Final = structlog.get_logger(__name__)
_UNSEEN_S: Final = 5.0
"""How long a step is not repeated while the watch shows no change."""
_LATE_S: Final = 1.0
"""How soon to look again after a write that came too late."""
_REFUSED_S: Final = 15.0
"""How long what the API server refuses is tried again: one that has just started refuses what it does not know yet."""
_BENCH_REFUSED_S: Final = 60.0
"""How long a workbench is not tried again that the API server refuses."""
_GRACE_S: Final = 0.3
"""How long the replica that leads leaves work to the one that has just released the lock: its news may be late."""


class UserLabs:
    """Has every user lab go on.

    Attributes:
        steps_total: Steps that were taken, by name.
    """

    def __init__(
        self,
        ctx: Context,
        effects: LabObjects,
        settings: PortalSettings,
        index: UserLabIndex,
        locks: Locks,
        membership: Membership,
        making: Making,
        workbenches: Workbenches,
    ) -> None:
        self._ctx = ctx
        self._settings = settings
        self._index = index
        self._locks = locks
        self._membership = membership
        self._making = making
        self._workbenches = workbenches
        self._bench_at: dict[str, float] = {}
        self._records = effects.records
        self._pods = effects.pods
        self._contents = effects.contents
        self._sent: dict[str, tuple[object, float]] = {}
        self._undone: dict[str, float] = {}
        self._refused: dict[str, float] = {}
        self.steps_total: dict[str, int] = {}

    async def reconcile(self, namespace: str) -> Result:
        """Take one step for the lab of a namespace, if there is one to take."""
        lab = self._index.at(namespace)
        if lab is None:
            self._sent.pop(namespace, None)
            self._undone.pop(namespace, None)
            self._refused.pop(namespace, None)
            self._bench_at.pop(namespace, None)
            self._contents.forget(namespace)
            return DONE
        if self._locks.is_in_request(lab.key):
            return DONE  # the request wakes it at its end
        plan = self._decide(lab, sealed=self._sealed(lab))
        if plan.step is None:
            return await self._rest(lab, plan)
        seen, sent = _seen(lab, plan), self._sent.get(namespace)
        unseen = sent is not None and sent[0] == seen
        if sent is not None and unseen and (left_s := sent[1] + _UNSEEN_S - self._ctx.now()) > 0:
            return Result(left_s)
        if not self._locks.holds(lab.key):
            wait_s = await self._take(lab)
            if wait_s is not None:
                return Result(wait_s)
        self._undone.pop(namespace, None)
        try:
            if not unseen and not isinstance(plan.step, Look):
                return await self._act(lab, plan)
            if unseen:  # the watch does not show what was done: look again no sooner
                self._sent[namespace] = seen, self._ctx.now()
            lab, sealed = await self._look(lab)
            plan = self._decide(lab, sealed=sealed, looked=True)
            if plan.step is not None:
                return await self._act(lab, plan)
            return Result(_UNSEEN_S) if unseen else await self._rest(lab, plan)
        except (Conflict, NotFound):  # somebody was quicker: the watch will show it
            return Result(_LATE_S)

    def _decide(self, lab: UserLab, *, sealed: bool | None, looked: bool = False) -> LabPlan:
        at = self._bench_at.get(lab.record.namespace, 0.0)
        now, sure = self._ctx.wall(), self._ctx.is_sure()
        return decide(lab, now, self._settings, looked=looked, sealed=sealed, sure=sure, bench_at=at)

    def _sealed(self, lab: UserLab) -> bool | None:
        """Return whether a lab that is being made has its Secret, as far as is known here; None: it must look."""
        record = lab.record
        if record.request is None or record.ending is not None or record.outcome is not None:
            return None
        return True if self._contents.has_written_secret(record.namespace, record.request.id) else None

    async def _rest(self, lab: UserLab, plan: LabPlan) -> Result:
        """Release the lock of a lab whose operation has ended; wait until the next step."""
        self._undone.pop(lab.record.namespace, None)
        self._refused.pop(lab.record.namespace, None)
        if self._locks.holds(lab.key) and (lab.record.outcome is not None or lab.record.warm or lab.record.deleted):
            await self._locks.release(lab.key)
        return Result(max(0.05, plan.wake_at - self._ctx.wall())) if plan.wake_at is not None else DONE

    async def _take(self, lab: UserLab) -> float | None:
        """Take the lock for work that is undone; return the seconds to wait if it is not this replica's turn."""
        now, key = self._ctx.now(), lab.key
        holder = self._locks.held_by(key)
        if holder not in {"", self._ctx.replica} and not self._membership.members.is_gone(holder):
            self._undone[lab.record.namespace] = now
            return _LATE_S
        since = self._undone.setdefault(lab.record.namespace, now)
        patience_s = _GRACE_S if self._membership.leads() else self._settings.patience_s
        if now < since + patience_s:
            return since + patience_s - now
        return None if await self._locks.take(key) else _LATE_S

    # ------------------------------------------------------------------------------------------ steps

    async def _act(self, lab: UserLab, plan: LabPlan) -> Result:
        """Take a step, under the lock."""
        self._note(lab, plan)
        guard = self._locks.guard(lab.key)
        match plan.step:
            case Make(end_at=end_at):
                return await self._make(lab, end_at)
            case Assign(end_at=end_at):
                await self._making.assign(lab, end_at, guard)
            case MakeBench():
                await self._make_bench(lab, guard)
            case DeleteBench():
                if lab.bench is not None:
                    await self._pods.delete(lab.bench, guard)
            case NoteProvisioned():
                await self._workbenches.note_provisioned(lab, guard)
            case DeletePod():
                if lab.pod is not None:
                    await self._pods.delete(lab.pod, guard)
            case Free():
                await self._free(lab, guard)
            case DeleteNamespace():
                await self._records.delete(lab.record, guard)
                await self._locks.release(lab.key)
            case Reseal():
                await self._reseal(lab, guard)
            case Complete():
                await self._end(lab, "complete")
            case Fail(reason=reason, text=text):
                await self._end(lab, "failed", reason, text)
            case End(reason=reason):
                note = annotation(ending(new_id(), self._ctx.wall(), reason=reason))
                await self._records.patch(lab.record, note, guard)
                _log.info("lab is ended", user=lab.user, namespace=lab.record.namespace, reason=reason)
            case Look() | None:  # neither is left after a look
                pass
        return Result(_UNSEEN_S)

    async def _reseal(self, lab: UserLab, guard: Guard) -> None:
        """Have the Secret of a lab without the token of its user, and then the record say so."""
        if lab.record.request is not None:
            await self._making.reseal(lab, guard)
            request = msgspec.structs.replace(lab.record.request, secrets=())
            await self._records.patch(lab.record, annotation(request), guard)
            _log.info("a token that an earlier version kept is removed", user=lab.user, namespace=lab.record.namespace)

    async def _make_bench(self, lab: UserLab, guard: Guard) -> None:
        """Make the workbench of a lab; one that cannot be made is told, and tried again after a time."""
        try:
            await self._workbenches.make(lab, guard)
        except (Forbidden, Invalid) as error:
            namespace = lab.record.namespace
            self._bench_at[namespace] = self._ctx.wall() + _BENCH_REFUSED_S
            if lab.pod is not None:
                about = ObjectRef("v1", "Pod", namespace, lab.pod.metadata.name, lab.pod.metadata.uid)
                # No guard: it is true, although the lock of a lab that runs is let go before the Event is sent.
                self._ctx.events.emit(about, "Warning", UserLabReason.WORKBENCH_REFUSED, error.message)
            _log.warning("a workbench cannot be made", namespace=namespace, error=error.message)

    async def _free(self, lab: UserLab, guard: Guard) -> None:
        """Let go of a Pod that others hold although its lab is gone, and say who did."""
        if lab.pod is None:
            return
        meta, strange = lab.pod.metadata, lab.strange_finalizers
        about = ObjectRef("v1", "Pod", meta.namespace, meta.name, meta.uid)
        held = ", ".join(strange)
        note = f"the lab is gone for {length(HELD_S)}, and held by {held}: the Pod is let go without them"
        self._ctx.events.emit(about, "Warning", UserLabReason.HELD, note, guard=guard)
        kept = [each for each in meta.finalizers if each not in strange]
        await self._pods.keep_finalizers(lab.pod, kept, guard)
        _log.warning("a Pod is let go without finalizers of others", namespace=meta.namespace, finalizers=held)

    async def _look(self, lab: UserLab) -> tuple[UserLab, bool | None]:
        """Return a lab as the API server has it, and whether its request has its Secret: the watch may be late."""
        lab = await self._making.look(lab)
        if lab.second:
            first = await self._records.of_user(lab.user)
            lab = lab._replace(second=first is not None and first.uid != lab.record.uid)
        sealed, record = self._sealed(lab), lab.record
        if sealed is None and lab.user and record.ending is None and record.outcome is None:
            sealed = await self._making.is_sealed(lab, self._locks.guard(lab.key))
        return lab, sealed

    async def _make(self, lab: UserLab, end_at: float | None) -> Result:
        """Make what a lab consists of; what the API server keeps refusing fails it."""
        try:
            await self._making.make(lab, end_at, self._locks.guard(lab.key))
        except (Forbidden, Invalid) as error:
            meta = await self._records.read(lab.record.namespace)
            if meta is None or meta.deletion_timestamp is not None:  # it refuses what is new in there
                return Result(_LATE_S)
            since = self._refused.setdefault(lab.record.namespace, self._ctx.now())
            if self._ctx.now() < since + _REFUSED_S and isinstance(error, Forbidden):
                self._sent.pop(lab.record.namespace, None)
                return Result(_LATE_S)
            refused = Fault(UserLabReason.POD_REFUSED, error.message)
            plan = decide(lab, self._ctx.wall(), self._settings, looked=True, sealed=True, refused=refused)
            if not isinstance(plan.step, Fail):
                raise
            await self._end(lab, "failed", plan.step.reason, plan.step.text)
        self._refused.pop(lab.record.namespace, None)
        return Result(_UNSEEN_S)

    async def _end(self, lab: UserLab, phase: Literal["complete", "failed"], reason: str = "", text: str = "") -> None:
        """Write how an operation ended, and release the lock."""
        record = lab.record
        operation = ended(record, phase, self._ctx.wall(), reason=reason, text=text)
        if operation is None:
            return
        lines = stream.saved(stream.tell(lab, self._index.events_at(record.namespace)))
        operation = msgspec.structs.replace(operation, lines=lines)
        await self._records.patch(record, annotation(operation), self._locks.guard(lab.key))
        await self._locks.release(lab.key)
        _log.info("operation ended", user=lab.user, namespace=record.namespace, kind=operation.kind, phase=phase)

    def _note(self, lab: UserLab, plan: LabPlan) -> None:
        name = type(plan.step).__name__
        self.steps_total[name] = self.steps_total.get(name, 0) + 1
        self._sent[lab.record.namespace] = (_seen(lab, plan), self._ctx.now())


def _seen(lab: UserLab, plan: LabPlan) -> tuple[str, ...]:
    """Return a step with what was seen when it was taken."""
    pod, bench = lab.pod, lab.bench
    return (
        type(plan.step).__name__,
        lab.record.resource_version,
        pod.metadata.uid if pod is not None else "",
        pod.metadata.resource_version if pod is not None else "",
        bench.metadata.resource_version if bench is not None else "",
    )

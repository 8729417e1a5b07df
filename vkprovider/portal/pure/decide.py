"""The next step of a user lab, each of which may be repeated: from what is known and the time.

                        ┌───────── a failed lab is replaced ───────────┐
                        ▼                                              │
    a request ──▶ PENDING ──▶ RUNNING ──▶ TERMINATING ──▶ gone      FAILED ──▶ gone, after a time
                   │   queue, Pod,  │       Pod, then        ▲         ▲
                   │   Ready        │       Namespace        │         │
                   └────────────────┴────────────────────────┴─────────┘
                                          in vain, or too late

The state is never stored: it follows from the record, so that any replica goes on where another one ended. What is
final, or follows from the absence of an object, is decided only after a look, because what is watched may be behind.
A record that names nobody, one that is damaged, and one that another program deletes are left alone, unless somebody
asks for the deletion of the lab.
"""

import math
from typing import Final, NamedTuple

from vkprovider.lablet.reasons import Trouble
from vkprovider.platform.messages import Fault
from vkprovider.platform.times import length
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.portalnames import UserLabReason
from vkprovider.portal.pure.record import FAILED, Ending, LabOutcome, LabRequest
from vkprovider.portal.settings import PortalSettings


class Look(NamedTuple):
    """Ask the API server itself before something is decided from the absence of an object, or is final.

    The answer is the lab as it is now: its Pod, whether the user has another lab, and whether the Secret of its
    request was written.
    """


class Make(NamedTuple):
    """Make what is still missing of the lab, the Pod last.

    Attributes:
        end_at: When the user's time ends, in Unix seconds; None for a warm lab.
    """

    end_at: int | None


class Assign(NamedTuple):
    """Make what is still missing of the lab, and give its warm Pod to the user.

    Attributes:
        end_at: When the user's time ends, in Unix seconds.
    """

    end_at: int


class MakeBench(NamedTuple):
    """Make what is still missing of the workbench, its Pod last."""


class DeleteBench(NamedTuple):
    """Delete the Pod of the workbench.

    Attributes:
        uid: Of the Pod, a precondition.
    """

    uid: str


class NoteProvisioned(NamedTuple):
    """Note that the user is provisioned: the container of the workbench that does it has succeeded once."""


class DeletePod(NamedTuple):
    """Delete the Pod.

    Attributes:
        uid: Of the Pod, a precondition.
    """

    uid: str


class Free(NamedTuple):
    """Take the finalizers of others from a Pod that has been deleted and has no lab any more.

    Attributes:
        uid: Of the Pod, a precondition.
    """

    uid: str


class DeleteNamespace(NamedTuple):
    """Delete the Namespace with all that is in it, if it is still as the record says."""


class Reseal(NamedTuple):
    """Take the token of its user from the Secret of a lab that an earlier version of the portal made."""


class Complete(NamedTuple):
    """Record that the lab was made, if the record is still as it was read."""


class Fail(NamedTuple):
    """Record that the operation under way, or a lab that was made, has failed, if the record is still as it was read.

    Attributes:
        reason: Why.
        text: The same for people.
    """

    reason: UserLabReason
    text: str


class End(NamedTuple):
    """Begin to delete the lab, as if somebody had asked for that, if the record is still as it was read.

    Attributes:
        reason: Why.
    """

    reason: UserLabReason


LabStep = (
    Look
    | Make
    | Assign
    | MakeBench
    | DeleteBench
    | NoteProvisioned
    | DeletePod
    | Free
    | DeleteNamespace
    | Reseal
    | Complete
    | Fail
    | End
)


class LabPlan(NamedTuple):
    """What is to be done for a user lab.

    Attributes:
        step: The next step; None to wait.
        wake_at: When to decide again even if nothing changes, in Unix seconds; None if a change brings that.
    """

    step: LabStep | None = None
    wake_at: float | None = None


HELD_S: Final = 300.0
"""How long a Pod without a lab may be held by the finalizers of others, such as those that collect its logs."""
_UNSURE_S: Final = 5.0
"""How soon is looked again whether the time is certain."""
_WAIT: Final = LabPlan()
_RUNNING: Final = "Running"
_SUCCEEDED: Final = "Succeeded"


def decide(
    lab: UserLab,
    now: float,
    settings: PortalSettings,
    *,
    looked: bool = False,
    sealed: bool | None = None,
    refused: Fault | None = None,
    sure: bool = True,
    bench_at: float = 0.0,
) -> LabPlan:
    """Return the next step of a user lab.

    Args:
        lab: What is known of it.
        now: Unix seconds.
        settings: The bounds of times.
        looked: Whether the API server was looked at in this turn, so that nothing is behind.
        sealed: Whether the Secret of the request was written, without which nobody got an answer to the request; None
            while that is not known. A look tells it.
        refused: Why the API server has refused what was to be made; None if it has not.
        sure: Whether the time is certain: until it is, nothing ends because its time has passed.
        bench_at: When the workbench may be tried again that the API server refused, in Unix seconds.
    """
    turn = _Turn(lab, now, settings, looked, sealed, refused, sure, bench_at)
    record = lab.record
    if not record.key:
        return _WAIT
    if record.ending is not None:
        return _ending(turn, record.ending)
    if record.deleted:
        return _freed(turn)
    if record.request is None:
        return _WAIT
    outcome = record.outcome
    if record.damaged:
        return LabPlan(Complete()) if outcome is None and _is_ready(lab) else _WAIT
    if outcome is not None and lab.user and record.request.secrets is None:
        return LabPlan(Reseal())
    if outcome is not None and outcome.phase == FAILED:
        return _failed(turn, outcome)
    if lab.second:
        return turn.after_look(End(UserLabReason.SECOND_LAB))
    if outcome is None:
        return _beside(turn, _pending(turn, record.request))
    return _beside(turn, _running(turn, outcome))


class _Turn(NamedTuple):
    """The arguments of `decide`."""

    lab: UserLab
    now: float
    settings: PortalSettings
    looked: bool
    sealed: bool | None
    refused: Fault | None
    sure: bool
    bench_at: float

    def after_look(self, step: LabStep) -> LabPlan:
        """Return a step that is taken only if the API server itself shows what it is decided from."""
        return LabPlan(step if self.looked else Look())

    def by(self, due: float, late: LabPlan, plan: LabPlan = _WAIT) -> LabPlan:
        """Return a plan, which is decided again at a time, and after that time another one."""
        if self.now >= due:
            if self.sure or late.step is None:
                return late
            due = self.now + _UNSURE_S
        if math.isinf(due):
            return plan
        wake_at = due if plan.wake_at is None else min(due, plan.wake_at)
        return plan._replace(wake_at=wake_at) if plan.step is None else plan


def _pending(turn: _Turn, request: LabRequest) -> LabPlan:
    """Make the lab: take the place in the queue, make its objects, wait until the Pod is Ready."""
    lab, settings = turn.lab, turn.settings
    pod = lab.pod
    if turn.refused is not None:
        return LabPlan(Fail(UserLabReason.POD_REFUSED, turn.refused.message))
    if lab.own_pod is not None:
        return _booting(turn)
    if pod is None and lab.ahead:
        return _WAIT
    if pod is not None and (lab.unassigned_pod is None or pod.terminal or pod.metadata.deletion_timestamp):
        told = f"the Pod of the lab before was not gone within {length(settings.delete_timeout_s)}"
        late = turn.after_look(Fail(UserLabReason.DELETE_TIMED_OUT, told))
        return turn.by(request.at + settings.delete_timeout_s, late, _without_pod(turn))
    end_at = int(turn.now) + request.duration_s
    if lab.record.warm:
        return LabPlan(Make(None))
    if turn.sealed is None:
        return LabPlan(Look())
    if not turn.sealed:  # nobody got an answer to the request
        return _take_down(turn)
    return LabPlan(Make(end_at) if pod is None else Assign(end_at))


def _booting(turn: _Turn) -> LabPlan:
    """Wait until the Pod is Ready, for so long as a lab may take to start."""
    lab, settings = turn.lab, turn.settings
    if lab.own_pod is not None and lab.own_pod.terminal:
        return _over(turn)
    if _is_ready(lab):
        return _WAIT if lab.record.warm else LabPlan(Complete())
    told = f"the lab was not ready within {length(settings.start_timeout_s)}"
    text = f"{told} ({lab.pod_says})" if lab.pod_says else told
    late = turn.after_look(Fail(UserLabReason.START_TIMED_OUT, text))
    return turn.by(lab.began_at + settings.start_timeout_s, late)


def _beside(turn: _Turn, plan: LabPlan) -> LabPlan:
    """Have the workbench be there while the lab is, until the user's time ends; the lab waits for nothing of it."""
    lab, asked = turn.lab, turn.lab.record.request
    if plan.step is not None or lab.own_pod is None:
        return plan
    over = lab.own_pod.terminal or lab.own_pod.metadata.deletion_timestamp is not None
    if asked is None or asked.bench is None or over:
        return _without_bench(turn) or plan
    return turn.by(lab.end_at, _without_bench(turn) or plan, _bench_of(turn, plan))


def _bench_of(turn: _Turn, plan: LabPlan) -> LabPlan:
    """Make the workbench of a lab whose time goes on, and make it again if it has ended."""
    lab, bench = turn.lab, turn.lab.own_bench
    if lab.bench is None:
        if turn.now < turn.bench_at:
            return turn.by(turn.bench_at, plan, plan)
        return turn.after_look(MakeBench()) if turn.now < lab.end_at else plan
    if bench is None or bench.terminal:
        return _without_bench(turn) or plan
    is_noted = not bench.spec.init_containers or portalnames.ANNOTATION_PROVISIONED in bench.metadata.annotations
    has_succeeded = bench.status.phase == _RUNNING  # no Pod runs before its init containers have succeeded
    return LabPlan(NoteProvisioned()) if has_succeeded and not is_noted else plan


def _without_bench(turn: _Turn) -> LabPlan | None:
    """Delete the workbench; None if there is none, or it ends."""
    bench = turn.lab.bench
    if bench is None or bench.metadata.deletion_timestamp is not None:
        return None
    return LabPlan(DeleteBench(bench.metadata.uid))


def _running(turn: _Turn, made: LabOutcome) -> LabPlan:
    """Keep a lab that was made, until its time is over, or nobody has opened it in time."""
    lab, settings = turn.lab, turn.settings
    if lab.own_pod is None:
        return turn.after_look(Fail(UserLabReason.POD_GONE, "somebody deleted the Pod of the lab"))
    if lab.own_pod.terminal:
        return _over(turn)
    plan = _WAIT
    if settings.idle_s and not lab.exposed and not lab.opened:
        plan = turn.by(made.at + settings.idle_s, turn.after_look(End(UserLabReason.NEVER_OPENED)))
    # The provider collects and grades at the end of the time, and then ends the Pod; without a provider we do.
    over = turn.after_look(End(UserLabReason.TIME_OVER))
    return turn.by(lab.end_at + settings.delete_timeout_s, over, plan)


def _over(turn: _Turn) -> LabPlan:
    """End a lab whose Pod has ended as it should, or keep the record of one that has failed."""
    lab, pod = turn.lab, turn.lab.pod
    if lab.record.outcome is not None and turn.now >= lab.end_at:  # what follows is the same: its Pod has ended
        return LabPlan(End(UserLabReason.TIME_OVER))
    if pod is not None and (pod.status.phase == _SUCCEEDED or pod.status.reason == Trouble.NOT_PASSED):
        return LabPlan(End(UserLabReason.POD_ENDED))
    return LabPlan(Fail(UserLabReason.LAB_FAILED, lab.pod_says or "the Pod of the lab has failed"))


def _failed(turn: _Turn, failed: LabOutcome) -> LabPlan:
    """Keep the record of a failed lab for a time. Its Pod goes at once, unless it has ended: then it explains why."""
    pod = turn.lab.pod
    kept = _without_pod(turn) if pod is not None and not pod.terminal else _without_bench(turn) or _WAIT
    return turn.by(failed.at + turn.settings.failed_s, _take_down(turn), kept)


def _ending(turn: _Turn, ending: Ending) -> LabPlan:
    """Delete the lab; what does not go in time has failed, and still goes when it can."""
    plan = _freed(turn) if turn.lab.record.deleted else _take_down(turn)
    if turn.lab.record.outcome is not None:
        return plan
    told = f"the lab was not gone within {length(turn.settings.delete_timeout_s)}"
    text = f"{told} ({turn.lab.pod_says})" if turn.lab.pod_says else told
    late = turn.after_look(Fail(UserLabReason.DELETE_TIMED_OUT, text))
    return turn.by(ending.at + turn.settings.delete_timeout_s, late, plan)


def _take_down(turn: _Turn) -> LabPlan:
    """Delete the Pod, and when it is gone for certain the Namespace with all the rest."""
    if turn.lab.pod is not None:
        return _without_pod(turn)
    return _without_bench(turn) or turn.after_look(DeleteNamespace())


def _without_pod(turn: _Turn) -> LabPlan:
    """Delete the Pod, that of the workbench before it, or wait until it is gone."""
    pod, bench = turn.lab.pod, _without_bench(turn)
    if bench is not None:
        return bench
    if pod is None or pod.metadata.deletion_timestamp is not None:
        return _freed(turn)
    return LabPlan(DeletePod(pod.metadata.uid))


def _freed(turn: _Turn) -> LabPlan:
    """Wait until a deleted Pod is gone; one whose lab is gone for long is not held by others any more.

    Who may patch a Pod could keep a user without a lab for good otherwise.
    """
    lab, since = turn.lab, turn.lab.empty_since
    if lab.pod is None or since is None or not lab.strange_finalizers:
        return _WAIT
    return turn.by(since + HELD_S, turn.after_look(Free(lab.pod.metadata.uid)))


def _is_ready(lab: UserLab) -> bool:
    return lab.own_pod is not None and not lab.own_pod.terminal and lab.ready_at is not None

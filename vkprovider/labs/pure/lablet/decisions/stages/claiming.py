"""Before a lablet has a claim that the API server knows: nothing else may begin."""

from typing import Final

import msgspec

from vkprovider.lablet.inputs import tag_of
from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.lablet.decisions.living import Living, pending, renewing, returning
from vkprovider.labs.pure.lablet.facts import Decision, Facts, Report, phase_of
from vkprovider.labs.pure.lablet.steps import WAIT, MakeClaim
from vkprovider.platform.messages import Fault, Notice
from vkprovider.platform.objects import Pod

_COUNTS: Final = (
    "nothing of this pod runs here: this node runs lablets only. It counts as available, so that its DaemonSet goes on "
    "with updates; to keep it away, add nodeSelector {kubernetes.io/os: linux} to the DaemonSet's template"
)
_SAVED_S: Final = 1.0
"""How soon to look for a lazily written claim, whose write wakes no lablet."""


def await_claims(facts: Facts) -> Decision:
    """Begin, end and forget nothing before it is known whether the lablet has a lab; its claim may be lost."""
    if facts.pod is None or facts.pod.terminal:
        return Decision(WAIT)
    if phase_of(facts) == "Running":
        return Decision(WAIT, Report(State.READY, phase="Running", silent=facts.silent) if facts.silent else None)
    if facts.silent:
        return Decision(WAIT, pending(Trouble.WORKER_UNREACHABLE, facts.silent))
    text = "the worker's claims were lost: its labs are examined before a new one begins"
    return Decision(WAIT, pending(Progress.WAITING_FOR_CLAIMS, text, state=facts.memory.state or State.SCHEDULED))


def make(facts: Facts, pod: Pod) -> Decision:
    """Make the claim, unless the Pod may not begin."""
    refusal = facts.refusal
    if refusal is None:
        return Decision(MakeClaim(pod), _claiming(facts))
    if refusal.reason is Trouble.NOT_A_LABLET and _counts(pod):
        report = pending(Trouble.NOT_A_LABLET, _COUNTS, state=State.SCHEDULED)
        notice = Notice("Warning", Trouble.NOT_A_LABLET, _COUNTS)
        return Decision(WAIT, msgspec.structs.replace(report, counts=True), events=(notice,))
    event = Notice("Warning", refusal.reason, refusal.message)
    if _is_stray(pod):
        return Decision(WAIT, Report(State.FAILED, phase="Failed", terminal=refusal.fault), events=(event,))
    report = pending(refusal.reason, refusal.message, state=State.SCHEDULED)
    return Decision(WAIT, report, events=() if refusal.reason.passing else (event,))


def decide(lablet: Living) -> Decision:
    """Wait until a claim without a lab is written."""
    facts, claim = lablet.facts, lablet.claim
    if claim.renews:
        return Decision(WAIT, renewing(facts), after_s=_SAVED_S)
    if claim.starts_again:
        report = pending(Trouble.CRASH_LOOP_BACK_OFF, f"{claim.last_message}; the lab is imported again")
        return Decision(WAIT, report, after_s=_SAVED_S)
    if claim.lent_back:
        return Decision(WAIT, returning(facts, claim), after_s=_SAVED_S)
    return Decision(WAIT, _claiming(facts))


def _is_stray(pod: Pod) -> bool:
    """Return whether a Pod can never become a lablet and no controller would replace it.

    Like a Pod that a kubelet does not admit, it ends, so that the scheduler no longer counts what it requests. A Pod of
    a controller stays Pending: its successor would come here again, for ever.
    """
    return not pod.spec.runtime_class_name and not any(owner.controller for owner in pod.metadata.owner_references)


def _counts(pod: Pod) -> bool:
    """Return whether a Pod is one of a DaemonSet that came here because it tolerates everything.

    Were it not Ready, its DaemonSet would count it among the unavailable ones for ever, and update no other node. One
    that is meant as a lablet has its definition as image. One that has an address would get traffic if it were Ready.
    """
    owned = any(owner.controller and owner.kind == "DaemonSet" for owner in pod.metadata.owner_references)
    class_name = pod.spec.runtime_class_name
    meant = bool(class_name) and any(tag_of(container.image)[0] == class_name for container in pod.spec.containers)
    return owned and not meant and not pod.status.pod_ip


def _claiming(facts: Facts) -> Report:
    fault = facts.unsaved_because or Fault(Progress.ALLOCATING_PORTS, "the worker's claims are being written")
    return pending(fault.reason, fault.message)

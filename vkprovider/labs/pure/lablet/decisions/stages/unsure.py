"""A lab that cannot be seen, shows nothing to go by, or whose ports are unknown: nothing is done that could harm."""

from vkprovider.lablet import observations
from vkprovider.lablet.observations import DeviceFact
from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.lablet.decisions.exposed import Ports, ports
from vkprovider.labs.pure.lablet.decisions.living import Living, instantiating, not_ready, pending, state_of
from vkprovider.labs.pure.lablet.decisions.session import closing_state
from vkprovider.labs.pure.lablet.decisions.takedown import again_or_kept, labels
from vkprovider.labs.pure.lablet.facts import Decision, Report, phase_of
from vkprovider.labs.pure.lablet.memory import Presence
from vkprovider.labs.pure.lablet.steps import WAIT, Release
from vkprovider.platform.messages import Fault, Notice


@ports(Ports.KEPT)
def while_unseen(lablet: Living) -> Decision:
    """Wait for an observation, or for the worker.

    While the lab cannot be seen: nothing is done to it, and what was reported stays.
    """
    if not lablet.facts.silent:
        return Decision(WAIT, observe=True)
    text = f"{lablet.facts.silent}; the lablet continues as soon as the worker answers"
    return Decision(WAIT, _silent(lablet, text), events=(Notice("Warning", Trouble.WORKER_UNREACHABLE, text),))


def _silent(lablet: Living, message: str) -> Report:
    facts, claim = lablet.facts, lablet.claim
    if phase_of(facts) != "Running":
        state = State.STOPPING if claim.closing_reason else State.INSTANTIATING
        return pending(
            Progress.CLEANING_UP if claim.closing_reason else Trouble.WORKER_UNREACHABLE, message, state=state
        )
    state = state_of(claim) if claim.ready_at else State.INSTANTIATING
    if claim.closing_reason:
        state = closing_state(facts, claim)
    elif claim.stopped_at:
        state = State.STOPPED
    return Report(state, phase="Running", silent=message)


@ports(Ports.KEPT)
def while_unclear(lablet: Living) -> Decision:
    """Wait for the lab, and end that as for any lab that does not boot in time.

    A lab that is on the worker and shows nothing to go by: no devices, an unknown state, or a compute host that is
    away.

    CML may mend it by itself, so it is waited for. After that a lab in which a learner may have worked is kept for a
    person, and any other is replaced, as after every other failure. The devices alone decide: the state of the lab as a
    whole is not read, because CML calls a lab `STARTED` long before it has booted.
    """
    lablet = lablet.recalled
    facts, now, timeout_s = lablet.facts, lablet.now, lablet.limits.sign_s
    fault = _fault(lablet.claim.title, facts.devices)
    due = (facts.memory.unclear_since or now) + timeout_s
    if now < due or facts.observed_at < due:  # the second: this replica was paused, and looks before it judges
        report = not_ready(lablet.claim, fault.reason, fault.message, facts.devices)
        return Decision(WAIT, report, after_s=due - now if now < due else None, observe=True)
    return again_or_kept(lablet, fault.reason, f"{fault.message}, for more than {timeout_s:.0f} s")


def _fault(title: str, devices: tuple[DeviceFact, ...]) -> Fault:
    """Return why the devices of a lab show nothing to go by."""
    if not devices:
        return Fault(Trouble.LAB_EMPTY, f"lab {title} has no devices any more: they were removed on the worker")
    if unknown := {device.state for device in devices} - observations.KNOWN:
        words = ", ".join(sorted(unknown))
        return Fault(
            Trouble.UNKNOWN_STATE, f"CML reports {words} for {labels(devices, unknown)}; waiting for a known state"
        )
    away = labels(devices, {observations.DISCONNECTED})
    return Fault(Trouble.COMPUTE_DISCONNECTED, f"the compute host of {away} is away; CML brings the devices back")


@ports(Ports.WITHDRAWN)
def while_portless(lablet: Living) -> Decision:
    """Leave the lab alone, and begin again when it is gone.

    A lab whose ports are unknown, or another one's, since its claim was lost: a learner may be working in it.
    """
    facts, fault = lablet.facts, lablet.claim.ports_fault
    if facts.presence is Presence.ABSENT:
        return Decision(Release(lablet.claim))
    assert fault is not None  # noqa: S101 (or it would be in another stage)
    event = Notice("Warning", fault.reason, fault.message)
    return Decision(WAIT, instantiating(facts, fault.reason, fault.message), events=(event,))

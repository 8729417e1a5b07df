"""A lab that is on the worker and shows nothing to go by: no devices, an unknown state, or a compute host that is away.

CML may mend it by itself, so it is waited for. After that a lab in which a learner may
have worked is kept for a person, and any other is replaced, as after every other failure. The devices alone decide: the
state of the lab as a whole is not read, because CML calls a lab `STARTED` long before it has booted.
"""

from vkprovider.lablet import observations
from vkprovider.lablet.observations import DeviceFact
from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.pure.lablet.decisions.living import Living, not_ready
from vkprovider.labs.pure.lablet.decisions.takedown import again_or_kept, labels
from vkprovider.labs.pure.lablet.facts import Decision
from vkprovider.labs.pure.lablet.steps import WAIT
from vkprovider.platform.messages import Fault


def decide(lablet: Living) -> Decision:
    """Wait for the lab, and end that as for any lab that does not boot in time."""
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

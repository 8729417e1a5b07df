"""A lab that is on the worker and shows nothing to go by: no devices, an unknown state, or a compute host that is away.

CML may mend it by itself, so it is waited for, as long as a start may take. After that a lab in which a learner may
have worked is kept for a person, and any other is replaced, as after every other failure. The devices alone decide: the
state of the lab as a whole is not read, because CML calls a lab `STARTED` long before it has booted.
"""

from vkprovider.api import labs
from vkprovider.api.labs import DeviceFact
from vkprovider.api.messages import Fault
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet.decisions.delivering import worked
from vkprovider.domain.lablet.decisions.recovering import again, labels, needs_attention, not_ready
from vkprovider.domain.lablet.facts import Decision, Facts
from vkprovider.domain.lablet.steps import WAIT
from vkprovider.settings.cluster import LabletSettings


def unclear(title: str, devices: tuple[DeviceFact, ...]) -> Fault | None:
    """Return why the devices of a lab show nothing to go by; None if they do."""
    states = {device.state for device in devices}
    if not devices:
        return Fault("LabEmpty", f"lab {title} has no devices any more: they were removed on the worker")
    if unknown := states - labs.KNOWN:
        words = ", ".join(sorted(unknown))
        return Fault("UnknownState", f"CML reports {words} for {labels(devices, unknown)}; waiting for a known state")
    if labs.DISCONNECTED in states:
        away = labels(devices, {labs.DISCONNECTED})
        return Fault("ComputeDisconnected", f"the compute host of {away} is away; CML brings the devices back")
    return None


def outlast(facts: Facts, claim: Claim, fault: Fault, now: float, limits: LabletSettings) -> Decision:
    """Wait for a lab that shows nothing to go by, and end that as for any lab that does not boot in time.

    Args:
        facts: Of the lablet.
        claim: With what a crash lost of it.
        fault: Why the lab is unclear.
        now: Monotonic seconds.
        limits: Settings.
    """
    devices, memory = facts.devices, facts.memory
    due = (memory.starting_since or memory.unclear_since or now) + limits.start_timeout_s
    if now < due or facts.observed_at < due:  # the second: this replica was paused, and looks before it judges
        return Decision(
            WAIT,
            not_ready(claim, fault.reason, fault.message, devices),
            after_s=due - now if now < due else None,
            observe=True,
        )
    text = f"{fault.message}, for more than {limits.start_timeout_s:.0f} s"
    if worked(facts, claim):
        return needs_attention(claim, devices, text)
    return again(facts, claim, now, limits, fault.reason, text)

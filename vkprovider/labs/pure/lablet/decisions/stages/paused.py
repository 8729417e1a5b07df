"""A lab that is stopped on request, kept for a while, and started again.

What runs in the lab is lost as when a machine is switched off; its disks are kept.
"""

from vkprovider.lablet.reasons import Happened, Progress, Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.lablet.decisions.living import Living, instantiating
from vkprovider.labs.pure.lablet.decisions.takedown import finish, is_on, switch_off
from vkprovider.labs.pure.lablet.facts import UNSURE_S, Decision, Report, phase_of
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT, Start
from vkprovider.platform.messages import Fault, Notice


def decide(lablet: Living) -> Decision:
    """Stop the lab and keep it stopped, as long as it is wanted and allowed; then start it."""
    facts, claim, limits = lablet.facts, lablet.claim, lablet.limits
    text = f"stopped on request; go on with: kubectl lablet start {lablet.pod.metadata.name}"
    paused = Report(State.STOPPED, phase_of(facts), Fault(Progress.LAB_STOPPED, text), facts.devices)
    if not claim.stopped_at:
        event = Notice("Normal", Happened.STOPPING, "stopped on request")
        return Decision(SAVE, paused, claim.paused(facts.now_unix), events=(event,))
    if facts.inputs.desired is not State.STOPPED:
        report = instantiating(facts, Progress.STARTING_NODES, "started on request")
        return Decision(Start(claim), report, claim.resumed(facts.now_unix), retry_at=0.0, forgets_starts=True)
    left = claim.stopped_at + limits.stopped_max_s - facts.now_unix
    if left <= 0 and facts.sure:
        return finish(
            facts, "Failed", Trouble.STOPPED_TOO_LONG, f"stopped for more than {limits.stopped_max_s / 3600:.0f} hours"
        )
    if not is_on(facts.devices):
        return Decision(WAIT, paused, after_s=left if left > 0 else UNSURE_S)
    return switch_off(facts, claim, paused, lablet.now, limits)

"""A lab that is stopped on request: kept for a while, or wiped to be started afresh."""

from vkprovider.lablet import observations
from vkprovider.lablet.reasons import Happened, Progress, Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.lablet.decisions.exposed import Ports, ports
from vkprovider.labs.pure.lablet.decisions.living import Living, begun_afresh, instantiating, until_saved
from vkprovider.labs.pure.lablet.decisions.takedown import extract_due, extraction, finish, is_on, switch_off, take_down
from vkprovider.labs.pure.lablet.facts import UNSURE_S, Decision, Report, phase_of
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT, Extract, Start
from vkprovider.platform.messages import Fault, Notice


@ports(Ports.WITHDRAWN)
def while_paused(lablet: Living) -> Decision:
    """Stop the lab and keep it stopped, as long as it is wanted and allowed; then start it.

    A lab that is stopped on request, kept for a while, and started again.

    What runs in the lab is lost as when a machine is switched off; its disks are kept.
    """
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
    if extract_due(facts, claim, limits):
        return extraction(facts, claim, Extract, paused)
    if not facts.claim_saved:  # a stop that the claim does not know of is taken for another client's
        return until_saved(paused)
    return switch_off(facts, claim, paused, lablet.now)


@ports(Ports.WITHDRAWN)
def while_wiping(lablet: Living) -> Decision:
    """Stop and wipe the lab, then let it start afresh.

    One without devices, or to begin with other configurations than a wipe leaves, is deleted and imported again.

    A lab that is stopped and wiped, to be started again: after a failure, on request, or for the next learner.
    """
    facts, claim = lablet.facts, lablet.claim
    if facts.inputs.reset and facts.inputs.reset != claim.reset:
        return _begin(lablet)
    report = begun_afresh(facts, claim)
    if {device.state for device in facts.devices} == {observations.DEFINED} and not claim.reimports:
        return Decision(SAVE, report, claim.wiped())
    if not facts.claim_saved:  # a delete that the claim does not know of is, too
        return until_saved(report)
    # A wipe gives no device back that was removed, and none the configuration of the topology if CML extracted one.
    return take_down(facts, claim, report, lablet.now)


def _begin(lablet: Living) -> Decision:
    """Begin on request; the session stays."""
    lablet = lablet.recalled
    facts, claim, text = lablet.facts, lablet.claim, "the lab is wiped and started again on request"
    report = instantiating(facts, Progress.RESETTING, text)
    if facts.inputs.begin_from != claim.begin_from:  # before the extraction, which spares what the lab begins from
        return Decision(SAVE, report, claim.beginning_from(facts.inputs.begin_from))
    if extract_due(facts, claim, lablet.limits):
        return extraction(facts, claim, Extract, report)
    changed = claim.reset_on(facts.inputs.reset, text, facts.now_unix)
    event = Notice("Normal", Progress.RESETTING, f"{text} (number {changed.starts_again})")
    return Decision(SAVE, report, changed, retry_at=0.0, forgets_starts=True, events=(event,))

"""A lab that boots: it is booted when all of its devices are, never when CML calls the lab `STARTED`."""

from vkprovider.api import labs
from vkprovider.api.reasons import Progress, Reason, Trouble
from vkprovider.api.wording import count
from vkprovider.domain.lablet.decisions.afresh import again_or_kept, labels
from vkprovider.domain.lablet.decisions.living import Living
from vkprovider.domain.lablet.decisions.reports import not_ready
from vkprovider.domain.lablet.facts import Decision
from vkprovider.domain.lablet.steps import SAVE, WAIT


def decide(lablet: Living) -> Decision:
    """Wait until all devices are booted, as long as a start may take."""
    lablet = lablet.recalled
    facts, claim, devices, timeout_s = lablet.facts, lablet.claim, lablet.facts.devices, lablet.limits.start_timeout_s
    since = facts.memory.starting_since
    left = since + timeout_s - lablet.now if since else timeout_s
    queued = any(device.state == labs.QUEUED for device in devices)
    if left <= 0 and facts.observed_at < since + timeout_s:
        return Decision(WAIT, observe=True)  # this replica or the machine was paused: observe before judging
    if left <= 0:
        text = f"not booted {timeout_s:.0f} s after the start: {labels(devices, labs.BOOTING)}"
        if queued:
            text += "; CML has them queued: the worker lacks CPU, memory or node licences"
        return again_or_kept(lablet, Trouble.LAB_START_TIMEOUT, text)
    if queued:
        reason: Reason = Trouble.LAB_QUEUED
        text = f"CML has queued {labels(devices, {labs.QUEUED})} until CPU, memory and node licences are free"
    else:
        reason, booted = Progress.STARTING_NODES, sum(device.state == labs.BOOTED for device in devices)
        text = f"{booted} of {count(len(devices), 'device')} booted, waiting for {labels(devices, labs.BOOTING)}"
    report = not_ready(claim, reason, text, devices)
    if not claim.started_at:  # lost in a crash; without it this start would never time out
        return Decision(SAVE, report, claim.started(facts.now_unix), observe=True)
    return Decision(WAIT, report, after_s=left, observe=True)

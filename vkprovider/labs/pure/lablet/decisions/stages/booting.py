"""A lab that boots: it is booted when all of its devices are, never when CML calls the lab `STARTED`."""

from vkprovider.lablet import observations
from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.labs.pure.lablet.boots import (
    LABELS_MAX,
    NO_BOOTS,
    Boots,
    Limit,
    Way,
    ends_at,
    limit_of,
    named,
    noted,
    told,
)
from vkprovider.labs.pure.lablet.decisions.living import Living, not_ready
from vkprovider.labs.pure.lablet.decisions.takedown import again_or_kept
from vkprovider.labs.pure.lablet.facts import Decision, boots_of
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT
from vkprovider.platform.messages import count, listed
from vkprovider.platform.reasons import Reason


def decide(lablet: Living) -> Decision:
    """Wait until all devices are booted, each for as long as it may take."""
    lablet = lablet.recalled
    facts, claim, devices, now = lablet.facts, lablet.claim, lablet.facts.devices, lablet.now
    boots = boots_of(facts, now) or NO_BOOTS
    limit = limit_of(lablet.limits.start_timeout_s, facts.patience, devices, definition=claim.definition)
    ends = {label: ends_at(boot, limit.seconds) for label, boot in boots.items()}
    if over := [label for label, end in ends.items() if end <= now and boots[label].way is not Way.START]:
        if facts.observed_at < min(ends[label] for label in over):
            return Decision(WAIT, observe=True)  # this replica or the machine was paused: observe before judging
        text = _too_late({label: boots[label] for label in over}, limit)
        return again_or_kept(lablet, Trouble.LAB_START_TIMEOUT, text)
    queued = {label: boot for label, boot in boots.items() if boot.way is Way.QUEUE}
    if queued:
        reason: Reason = Trouble.LAB_QUEUED
        text = f"CML has queued {named(queued, facts.now_unix)} until CPU, memory and node licences are free"
    else:
        reason, booted = Progress.STARTING_NODES, sum(device.state == observations.BOOTED for device in devices)
        waiting = told(boots, facts.patience, limit.seconds, facts.now_unix)
        text = f"{booted} of {count(len(devices), 'device')} booted, waiting for {waiting}"
    report = not_ready(claim, reason, text, devices)
    if not claim.started_at:  # lost in a crash; without it this start would never time out
        return Decision(SAVE, report, claim.started(facts.now_unix), observe=True)
    if (later := noted(boots, claim, now)) != claim.later:
        return Decision(SAVE, report, claim.noting(later), observe=True)
    return Decision(WAIT, report, after_s=max(0.0, min(ends.values(), default=limit.seconds) - now), observe=True)


def _too_late(boots: Boots, limit: Limit) -> str:
    """Return which devices did not boot in time, and how to give them more of it."""
    text = f"not booted {limit.seconds:.0f} s after the start: {listed(sorted(boots), LABELS_MAX)}"
    if any(boot.way is Way.QUEUE for boot in boots.values()):
        text += "; CML has them queued: the worker lacks CPU, memory or node licences"
    return f"{text}; to wait longer, {limit.raise_by}"

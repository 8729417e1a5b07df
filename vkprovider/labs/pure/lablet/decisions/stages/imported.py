"""A lab of which no device has been started."""

from typing import Final

from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.labs.pure.lablet.decisions.living import Living, pending
from vkprovider.labs.pure.lablet.decisions.takedown import again, back_off
from vkprovider.labs.pure.lablet.facts import Decision
from vkprovider.labs.pure.lablet.steps import WAIT, Start
from vkprovider.platform.messages import count

_START_AGAIN_S: Final = 30.0
"""A start that has moved no device is sent again after so many seconds."""


def decide(lablet: Living) -> Decision:
    """Start the lab, or wait for an earlier start; one that has moved no device in time is sent again."""
    if (wait := back_off(lablet)) is not None:
        return wait
    facts, claim, now, timeout_s = lablet.facts, lablet.claim, lablet.now, lablet.limits.sign_s
    report = pending(Progress.STARTING_NODES, f"starting {count(len(facts.devices), 'device')}", devices=facts.devices)
    if facts.memory.start_sent_at and facts.memory.starting_since:
        due = facts.memory.starting_since + timeout_s
        if now >= due and facts.observed_at >= due:
            text = f"CML accepted the start, but moved no device within {timeout_s:.0f} s"
            return again(lablet, claim, Trouble.LAB_START_TIMEOUT, text)
        pause = facts.memory.start_sent_at + _START_AGAIN_S - now
        if pause > 0:
            return Decision(WAIT, report, after_s=max(0.0, min(due - now, pause)) or pause, observe=True)
    return Decision(Start(claim), report, claim if claim.started_at else claim.started(facts.now_unix), retry_at=0.0)

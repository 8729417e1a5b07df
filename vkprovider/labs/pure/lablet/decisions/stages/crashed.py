"""A lab of which devices have stopped: they are started again, without a wipe, for a learner may have worked in it."""

from typing import Final

from vkprovider.lablet import observations
from vkprovider.lablet.reasons import Happened, Progress, Trouble
from vkprovider.labs.pure.lablet.decisions.living import Living, not_ready
from vkprovider.labs.pure.lablet.decisions.takedown import again_or_kept, labels
from vkprovider.labs.pure.lablet.facts import Decision
from vkprovider.labs.pure.lablet.steps import WAIT, Start
from vkprovider.platform.backoff import delay_s
from vkprovider.platform.messages import Notice

_OFF: Final = frozenset({observations.STOPPED, observations.DEFINED})


def decide(lablet: Living) -> Decision:
    """Start what stopped again after a pause, a few times."""
    lablet = lablet.recalled
    facts, claim, limits, devices = lablet.facts, lablet.claim, lablet.limits, lablet.facts.devices
    what = f"{labels(devices, _OFF)} stopped on the worker"
    if claim.recoveries >= limits.recoveries_max:
        kept = f"{what} and did not come back after {claim.recoveries} starts"
        return again_or_kept(lablet, Trouble.LAB_CRASHED, f"{what} while it booted", kept)
    if not facts.memory.retry_at:
        pause = delay_s(claim.recoveries, first_s=limits.start_retry_first_s, cap_s=limits.start_retry_cap_s)
        text = f"{what}; starting again without a wipe (number {claim.starts_again + 1})"
        event = Notice("Warning", Happened.BACK_OFF if claim.recoveries else Progress.RECOVERING, text)
        report = not_ready(claim, Progress.RECOVERING, text, devices)
        return Decision(WAIT, report, after_s=pause, retry_at=lablet.now + pause, events=(event,))
    if (left := facts.memory.retry_at - lablet.now) > 0:
        text = f"{what}; starting again in {left:.0f} s"
        return Decision(WAIT, not_ready(claim, Progress.RECOVERING, text, devices), after_s=left)
    stopped = tuple(sorted(device.label for device in devices if device.state in _OFF))
    report = not_ready(claim, Progress.RECOVERING, f"{what}; starting again", devices)
    return Decision(
        Start(claim), report, claim.continued(stopped, what, facts.now_unix), retry_at=0.0, forgets_starts=True
    )

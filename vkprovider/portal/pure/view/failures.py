"""What is wrong with a lab, and what to do about it, in the words of docs/why.md."""

from typing import NamedTuple

from vkprovider.lablet import words
from vkprovider.lablet.reasons import WORKERS, Happened, Trouble
from vkprovider.lablet.standings import Standing
from vkprovider.platform.objects import Pod
from vkprovider.platform.reasons import ForeignReason, reason_of
from vkprovider.platform.wording import plain
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.reasons import UserLabReason
from vkprovider.portal.pure.state import UserLabStatus


class Failure(NamedTuple):
    """What is wrong, and what to do about it, in the words of docs/why.md.

    Attributes:
        reason: As one word.
        message: The particulars.
        means: What is the case; "" if the word is not explained.
        remedy: What to do; "" if nothing has to be done, or nobody knows.
    """

    reason: str
    message: str
    means: str
    remedy: str


def of_lab(lab: UserLab, status: UserLabStatus, pod: Pod | None, standing: Standing) -> Failure | None:
    """Return what is wrong with a user lab, or why the portal removes it; None if its user has nothing to know."""
    if status is UserLabStatus.FAILED:
        return _of_record(lab)
    if status is UserLabStatus.TERMINATING:
        ending = lab.record.ending
        return _explained(ending.reason, "") if ending is not None and not ending.by and ending.reason else None
    return of_pod(pod, standing)


def _of_record(lab: UserLab) -> Failure:
    """Return why a user lab has failed."""
    outcome = lab.record.outcome
    if outcome is None:
        damaged = ", ".join(lab.record.damaged)
        told = f"The record of the lab cannot be read: {damaged}." if damaged else "The lab has failed."
        return Failure("", told, "", "Have the lab deleted, and ask for a new one.")
    if outcome.reason == UserLabReason.LAB_FAILED:
        word, _, message = outcome.text.partition(": ")
        if (inner := _explained(word, message)).means:
            return inner
    return _explained(outcome.reason, outcome.text)


def of_pod(pod: Pod | None, standing: Standing) -> Failure | None:
    """Return what is wrong with a lab that has a Pod; None if nothing is, or it goes away by itself."""
    if pod is None:
        return None
    word, message = words.why(pod)
    reason = reason_of(word)
    wrong = {Standing.NEEDS_HELP, Standing.UNREACHABLE, Standing.FAILED, Standing.REPAIRING, Standing.STOPPED}
    if standing in wrong or word == Happened.UNSCHEDULABLE or isinstance(reason, Trouble) or reason in WORKERS:
        return _explained(word, message) if word or message else None
    return None


def _explained(word: str, message: str) -> Failure:
    reason = reason_of(word)
    if isinstance(reason, ForeignReason):
        return Failure(word, plain(message), "", "")
    return Failure(word, plain(message), reason.means, reason.remedy)

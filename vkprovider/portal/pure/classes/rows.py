"""One lablet of a class, as a row."""

from typing import Final

import msgspec

from vkprovider.lablet import names, words
from vkprovider.lablet.devices import DeviceState, devices_in
from vkprovider.lablet.message import message_of
from vkprovider.lablet.models.status import DefinitionStatus
from vkprovider.lablet.standings import Standing, Tone, tone_of
from vkprovider.platform.objects import Pod
from vkprovider.platform.times import unix
from vkprovider.platform.wording import plain
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.state import UserLabStatus, status_of
from vkprovider.portal.pure.view.lab import standing_of_lab

_QUIET: Final = frozenset({Standing.READY, Standing.WORKING, Standing.FREE, Standing.STOPPED, Standing.PASSED})
"""These stand as they should: nothing holds them up."""
_SERVING: Final = frozenset({Standing.READY, Standing.WORKING, Standing.FREE, Standing.REPAIRING})


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One lablet of a class; what is unknown is empty.

    Attributes:
        key: Names it among the rows of its class: `pod-NAME` of a lablet, `lab-KEY` of a user lab.
        learner: Who has it; "" for one that is free.
        user: The user of a user lab, by the exact name; "" for a lablet.
        namespace, pod, uid: Of its Pod; "" before that is made.
        standing: How it stands.
        score: Of the learner's work, if it was graded.
        started_at: When the learner began to work in a session, in Unix seconds.
        active_at: When somebody last worked in the lab.
        devices: How many are booted, of how many, such as `5/6`.
        down: The devices that are off.
        ends_at: When it ends.
        reason: Why it does not stand as it should, as one word.
        why: The same as a sentence.
        message: What an instructor told the learner.
    """

    key: str
    learner: str
    user: str = ""
    namespace: str = ""
    pod: str = ""
    uid: str = ""
    standing: Standing
    score: str = ""
    started_at: float | None = None
    active_at: float | None = None
    devices: str = ""
    down: tuple[str, ...] = ()
    ends_at: float | None = None
    reason: str = ""
    why: str = ""
    message: str = ""

    @property
    def state(self) -> str:
        """How it stands, in plain words, with the score."""
        return words.words_of(self.standing, self.score)

    @property
    def tone(self) -> Tone:
        """The colour of its standing."""
        return tone_of(self.standing)

    @property
    def is_over(self) -> bool:
        """Whether nothing can be done with it any more."""
        return self.standing in {Standing.PASSED, Standing.NOT_PASSED, Standing.FAILED, Standing.ENDING}


def of_lablet(pod: Pod) -> Row:
    """Return the row of a lablet that is no user lab."""
    standing, score = words.standing_of(pod)
    return _row(f"pod-{pod.metadata.name}", words.learner_in(pod), "", pod, standing, score)


def of_lab(lab: UserLab) -> Row:
    """Return the row of a user lab."""
    status = status_of(lab)
    standing, score = standing_of_lab(lab, status)
    row = _row(f"lab-{lab.key}", plain(lab.user), lab.user, lab.own_pod, standing, score)
    outcome = lab.record.outcome
    if status is not UserLabStatus.FAILED or outcome is None:
        return row
    return msgspec.structs.replace(row, reason=outcome.reason, why=plain(outcome.text))


def _row(key: str, learner: str, user: str, pod: Pod | None, standing: Standing, score: str) -> Row:
    if pod is None:
        return Row(key=key, learner=learner, user=user, standing=standing, score=score)
    notes = pod.metadata.annotations
    reason, why = words.why(pod) if standing not in _QUIET else ("", "")
    ended = words.has_ended(pod)
    return Row(
        key=key,
        learner=learner,
        user=user,
        namespace=pod.metadata.namespace,
        pod=pod.metadata.name,
        uid=pod.metadata.uid,
        standing=standing,
        score=score,
        started_at=_since(pod, names.CONDITION_SESSION_STARTED),
        active_at=unix(notes.get(names.ANNOTATION_LAST_ACTIVITY, "")),
        devices="" if ended else plain(notes.get(names.ANNOTATION_DEVICES, "")),
        down=_down(pod) if standing in _SERVING else (),
        ends_at=unix(words.end_of(pod)),
        reason=plain(reason),
        why=plain(why),
        message=told.text if (told := message_of(notes)) is not None else "",
    )


def _down(pod: Pod) -> tuple[str, ...]:
    """Return the devices that are off, by the containers that stand for them."""
    found = (each.label for each in devices_in(pod, DefinitionStatus()) if each.state is DeviceState.OFF)
    return tuple(sorted(plain(label) for label in found if label != names.LAB_CONTAINER))


def _since(pod: Pod, condition: str) -> float | None:
    found = (each for each in pod.status.conditions if each.type == condition and each.status == "True")
    return next((unix(each.last_transition_time or "") for each in found), None)

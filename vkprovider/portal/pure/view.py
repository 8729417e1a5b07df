"""A lab as its learner sees it: how it stands, what goes on, its devices, its end, and what is wrong.

One view serves the learner's own page and that of an instructor; it is made of what the cluster shows of a user lab, or
of the Pod of a class's lablet.
"""

import math
import shlex
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.devices import SeenDevice, devices_in
from vkprovider.lablet.guests import GuestMode, guests_in
from vkprovider.lablet.inputs import InstructorMessage, message_of, tag_of
from vkprovider.lablet.models.status import DefinitionStatus
from vkprovider.lablet.reasons import WORKERS, Happened, Progress, Trouble
from vkprovider.lablet.shownname import shown_in, spoken, with_name
from vkprovider.lablet.standing import end_of, learner_in, standing_of, why, words_of
from vkprovider.lablet.standings import Standing, Tone, tone_of
from vkprovider.platform.messages import plain
from vkprovider.platform.objects import Event, Pod
from vkprovider.platform.reasons import ForeignReason, reason_of
from vkprovider.platform.times import clock, length, unix
from vkprovider.portal.pure.facts import UserLab, UserLabStatus, extended, status_of
from vkprovider.portal.pure.options import Rejection
from vkprovider.portal.pure.picture import Picture, draw
from vkprovider.portal.pure.portalnames import UserLabReason
from vkprovider.portal.pure.stream import LabOperation, LabStory, LineKind, tell, tell_of
from vkprovider.portal.settings import PortalSettings

_LINES_MAX: Final = 12
"""The lines of a story that a page shows, the last ones."""


class StoryLine(NamedTuple):
    """A line of the story of a lab.

    Attributes:
        at: Seconds since the epoch.
        time: The same as a clock shows it.
        text: What happened.
        warns: Whether it tells of a fault.
    """

    at: float
    time: str
    text: str
    warns: bool


class SeenProgress(NamedTuple):
    """What goes on.

    Attributes:
        percent: How far it is.
        sentence: What goes on at present.
        lines: What happened before, the oldest first.
    """

    percent: int
    sentence: str
    lines: tuple[StoryLine, ...] = ()


def started_again(pod: Pod, events: Iterable[Event]) -> LabStory:
    """Return the story of a Pod since it was Ready last, or since it was made."""
    created = unix(pod.metadata.creation_timestamp) or 0.0
    changed = [unix(c.last_transition_time or "") for c in pod.status.conditions if c.type == "Ready"]
    since = next((at for at in changed if at is not None), created) if pod.status.phase == "Running" else created
    deletes = pod.metadata.deletion_timestamp is not None
    title = "The lab is to be deleted" if deletes else "The lab starts"
    return tell_of(LabOperation(pod.metadata.uid, deletes, at=since, title=title, since=since), pod, events)


def going_on(told: LabStory, now: float) -> SeenProgress:
    """Return what a story says goes on; `now` is in Unix seconds."""
    lines = tuple(
        StoryLine(line.at, clock(line.at, now), plain(line.text), line.kind is LineKind.ERROR)
        for line in told.lines[-_LINES_MAX:]
    )
    return SeenProgress(told.progress, plain(told.state), lines)


class LabFailure(NamedTuple):
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


def of_lab(lab: UserLab, status: UserLabStatus, pod: Pod | None, standing: Standing) -> LabFailure | None:
    """Return what is wrong with a user lab, or why the portal removes it; None if its user has nothing to know."""
    if status is UserLabStatus.FAILED:
        return _of_record(lab)
    if status is UserLabStatus.TERMINATING:
        ending = lab.record.ending
        return _explained(ending.reason, "") if ending is not None and not ending.by and ending.reason else None
    return of_pod(pod, standing)


def _of_record(lab: UserLab) -> LabFailure:
    """Return why a user lab has failed."""
    outcome = lab.record.outcome
    if outcome is None:
        damaged = ", ".join(lab.record.damaged)
        told = f"The record of the lab cannot be read: {damaged}." if damaged else "The lab has failed."
        return LabFailure("", told, "", "Have the lab deleted, and ask for a new one.")
    if outcome.reason == UserLabReason.LAB_FAILED:
        word, _, message = outcome.text.partition(": ")
        if (inner := _explained(word, message)).means:
            return inner
    return _explained(outcome.reason, outcome.text)


def of_pod(pod: Pod | None, standing: Standing) -> LabFailure | None:
    """Return what is wrong with a lab that has a Pod; None if nothing is, or it goes away by itself."""
    if pod is None:
        return None
    word, message = why(pod)
    reason = reason_of(word)
    wrong = {Standing.NEEDS_HELP, Standing.UNREACHABLE, Standing.FAILED, Standing.REPAIRING, Standing.STOPPED}
    if standing in wrong or word == Happened.UNSCHEDULABLE or isinstance(reason, Trouble) or reason in WORKERS:
        return _explained(word, message) if word or message else None
    return None


def _explained(word: str, message: str) -> LabFailure:
    reason = reason_of(word)
    if isinstance(reason, ForeignReason):
        return LabFailure(word, plain(message), "", "")
    return LabFailure(word, plain(message), reason.means, reason.remedy)


_UNDER_WAY: Final = frozenset(
    {Standing.WAITING, Standing.BOOTING, Standing.REPAIRING, Standing.RETURNING, Standing.ENDING}
)
_WORKING: Final = frozenset({Standing.READY, Standing.WORKING, Standing.FREE})
_OVER: Final = frozenset({Standing.HANDED_IN, Standing.PASSED, Standing.NOT_PASSED, Standing.FAILED, Standing.ENDING})
_HEADLINES: Final = {
    Standing.NEEDS_HELP: "{lab} needs help",
    Standing.UNREACHABLE: "The worker of {lab} does not answer",
    Standing.REPAIRING: "{lab} is being repaired",
    Standing.WAITING: "{lab} waits to be started",
    Standing.BOOTING: "{lab} is starting",
    Standing.READY: "{lab} is ready",
    Standing.WORKING: "{lab} is ready",
    Standing.FREE: "{lab} is ready",
    Standing.STOPPED: "{lab} is stopped",
    Standing.HANDED_IN: "{work} is handed in",
    Standing.PASSED: "{work} has passed",
    Standing.NOT_PASSED: "{work} has not passed",
    Standing.FAILED: "{lab} has failed",
    Standing.ENDING: "{lab} is being removed",
    Standing.RETURNING: "{lab} goes back to its pool",
}
"""The headline by standing."""


class _Whose(NamedTuple):
    """The words for a lab and for the work in it, at the beginning of a sentence."""

    lab: str
    work: str


_MINE: Final = _Whose("Your lab", "Your work")
_NOBODYS: Final = _Whose("This lab", "The work in this lab")


def _of(learner: str) -> _Whose:
    return _Whose(f"The lab of {learner}", f"The work of {learner}") if learner else _NOBODYS


class Availability(NamedTuple):
    """Whether something can be done with a lab now.

    Attributes:
        possible: Whether it can.
        why: Why it cannot, as a sentence; "" if it is not to be offered at all.
    """

    possible: bool
    why: str = ""


_NO: Final = Availability(possible=False)
_YES: Final = Availability(possible=True)


class LabView(msgspec.Struct, frozen=True, kw_only=True):
    """A lab, as people see it.

    Attributes:
        name: The user of a user lab; else the learner, or "".
        greeting: To whom it speaks, by the name that people know; "" if there is none, or somebody else reads it.
        namespace, pod: Of its Pod, for commands; "" before it is made.
        class_: The namespace of its class; "" if it is of none.
        definition: `NAME:VERSION`.
        standing: How it stands.
        score: Of the learner's work, if it was graded.
        headline: The same as a sentence.
        progress: What goes on; None if nothing does.
        devices: In the order of the topology.
        picture: Where they stand; None if that is not known.
        end_at: When it ends, seconds since the epoch; None if it has no end.
        ends: The same as a clock shows it.
        left: How long that is from now; "" if it is over.
        message: What an instructor has told the learner last; None if that is nothing.
        guests: Who shares it with the learner, each with what they do: sentences.
        failure: What is wrong; None if nothing is.
        replaceable: Whether a new request replaces it.
        extend, reset, stop, configurations: What can be done now.
    """

    name: str
    greeting: str = ""
    namespace: str = ""
    pod: str = ""
    class_: str = ""
    definition: str = ""
    standing: Standing
    score: str = ""
    headline: str
    progress: SeenProgress | None = None
    devices: tuple[SeenDevice, ...] = ()
    picture: Picture | None = None
    end_at: float | None = None
    ends: str = ""
    left: str = ""
    message: InstructorMessage | None = None
    guests: tuple[str, ...] = ()
    failure: LabFailure | None = None
    replaceable: bool = False
    extend: Availability = _NO
    reset: Availability = _NO
    stop: Availability = _NO
    configurations: Availability = _NO

    @property
    def tone(self) -> Tone:
        """The colour of its standing."""
        return tone_of(self.standing)

    @property
    def state(self) -> str:
        """Its standing in plain words, with the score."""
        return words_of(self.standing, self.score)

    @property
    def console_command(self) -> str:
        """The command that opens the console of a device, but for the label; "" if there is no Pod."""
        if not self.pod:
            return ""
        return f"kubectl --namespace {self.namespace} exec -it {self.pod} -c {names.LAB_CONTAINER} -- console"


def command_for(view: LabView, label: str) -> str:
    """Return the command that opens the console of a device."""
    return f"{view.console_command} {shlex.quote(plain(label))}"


def from_userlab(
    lab: UserLab, definition: DefinitionStatus, events: Iterable[Event], now: float, settings: PortalSettings
) -> LabView:
    """Return the view of a user lab.

    Args:
        lab: As it was found.
        definition: The status of its definition; an empty one if there is none.
        events: Those about its Pod.
        now: Unix seconds.
        settings: How long labs last.
    """
    status = status_of(lab)
    pod = lab.pod if status is UserLabStatus.TERMINATING else lab.own_pod
    standing, score = standing_of_lab(lab, status)
    image = lab.record.request.definition if lab.record.request is not None else ""
    end = lab.end_at if not math.isinf(lab.end_at) and standing not in _OVER else None
    progress = None
    if standing in _UNDER_WAY:
        told = tell(lab, events)
        again = status is UserLabStatus.RUNNING and pod is not None
        progress = going_on(started_again(pod, events) if again and pod is not None else told, now)
    alive = pod is not None and standing not in _OVER
    return _view(
        lab.user,
        lab.record.class_,
        pod,
        image,
        definition,
        standing,
        score,
        whose=_MINE,
        progress=progress,
        end=end,
        now=now,
        failure=of_lab(lab, status, pod, standing),
        replaceable=status is UserLabStatus.FAILED and not lab.record.deleted,
        extend=_extend(lab, now, settings) if alive else _NO,
        stop=_YES if standing is not Standing.ENDING else _NO,
    )


def from_pod(
    pod: Pod, definition: DefinitionStatus, events: Iterable[Event], now: float, *, mine: bool = False
) -> LabView:
    """Return the view of the lablet of a class.

    Args:
        pod: Its Pod.
        definition: The status of its definition; an empty one if it is not known.
        events: Those about the Pod.
        now: Unix seconds.
        mine: Whether its learner reads it.
    """
    standing, score = standing_of(pod)
    learner = learner_in(pod)
    content = pod.metadata.annotations.get(names.ANNOTATION_CONTENT, "").partition("@")[0]
    image = next((container.image for container in pod.spec.containers), "")
    name, version = tag_of(image)
    version = content or version or definition.version
    end = unix(end_of(pod))
    return _view(
        learner,
        pod.metadata.namespace,
        pod,
        f"{name}:{version}" if version else name,
        definition,
        standing,
        score,
        whose=_MINE if mine else _of(with_name(learner, shown_in(pod)) if learner else ""),
        greeting=f"Hello, {spoken(shown)}." if mine and (shown := shown_in(pod)) else "",
        progress=going_on(started_again(pod, events), now) if standing in _UNDER_WAY else None,
        end=end,
        now=now,
        failure=of_pod(pod, standing),
        stop=_YES if standing not in _OVER | {Standing.STOPPED} else _NO,
    )


def _view(
    name: str,
    class_: str,
    pod: Pod | None,
    image: str,
    definition: DefinitionStatus,
    standing: Standing,
    score: str,
    *,
    whose: _Whose,
    progress: SeenProgress | None,
    end: float | None,
    now: float,
    failure: LabFailure | None,
    stop: Availability,
    greeting: str = "",
    replaceable: bool = False,
    extend: Availability = _NO,
) -> LabView:
    known = definition if definition.version and tag_of(image)[1] == definition.version else DefinitionStatus()
    over = standing in _OVER
    devices = devices_in(pod, known) if not over else ()
    imported = pod is not None and any(
        each.type == names.CONDITION_LAB_IMPORTED and each.status == "True" for each in pod.status.conditions
    )
    return LabView(
        name=plain(name),
        greeting=greeting,
        namespace=pod.metadata.namespace if pod is not None else "",
        pod=pod.metadata.name if pod is not None else "",
        class_=class_,
        definition=image,
        standing=standing,
        score=score,
        headline=_headline(standing, whose, pod),
        progress=progress,
        devices=devices,
        picture=_picture(known, devices),
        end_at=end,
        ends=clock(end, now) if end is not None else "",
        message=message_of(pod.metadata.annotations) if pod is not None and not over else None,
        guests=guests_said(pod) if pod is not None and not over else (),
        left=length(end - now) if end is not None and end > now else "",
        failure=failure,
        replaceable=replaceable,
        extend=extend,
        reset=_YES if imported and not over else _NO,
        stop=stop,
        configurations=_YES if imported and standing in _WORKING else _NO,
    )


_DOES: Final = {GuestMode.WATCH: "watches", GuestMode.TYPE: "works in this lab, too"}


def guests_said(pod: Pod) -> tuple[str, ...]:
    """Return who shares a lablet with its learner, each with what they do: `bob watches`."""
    return tuple(f"{plain(guest)} {_DOES[mode]}" for guest, mode in guests_in(pod.metadata.annotations).items())


def standing_of_lab(lab: UserLab, status: UserLabStatus) -> tuple[Standing, str]:
    """Return how a user lab stands, and the learner's score; "" without one."""
    match status:
        case UserLabStatus.FAILED:
            return Standing.FAILED, ""
        case UserLabStatus.TERMINATING:
            return Standing.ENDING, ""
        case _ if lab.own_pod is None:
            return Standing.WAITING, ""
        case _:
            return standing_of(lab.own_pod)


def _headline(standing: Standing, whose: _Whose, pod: Pod | None) -> str:
    reason = why(pod)[0] if pod is not None else ""
    if standing is Standing.BOOTING and reason == Progress.RESETTING:
        return f"{whose.lab} is being reset"
    text = _HEADLINES[standing]
    lab = whose.lab if text.startswith("{lab}") else whose.lab[0].lower() + whose.lab[1:]
    return text.format(lab=lab, work=whose.work)


def _picture(definition: DefinitionStatus, devices: Iterable[SeenDevice]) -> Picture | None:
    seen = {device.label for device in devices}
    if not seen:
        return None
    places = {
        each.label: (each.x, each.y)
        for each in definition.devices
        if isinstance(each.x, int) and isinstance(each.y, int)
    }
    return draw(
        tuple((device.label, places.get(device.label)) for device in devices),
        tuple((link.n1, link.n2) for link in definition.links),
    )


def _extend(lab: UserLab, now: float, settings: PortalSettings) -> Availability:
    end = extended(lab, settings.extend_s, now, settings)
    return Availability(possible=False, why=end.msg) if isinstance(end, Rejection) else _YES

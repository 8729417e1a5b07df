"""What a learner reads where others read reasons: one sentence, and whom to ask; no names of objects, no addresses.

Whoever teaches or runs the labs sees the same lab with reasons, messages and remedies; the word of the reason is here,
too, for the learner to pass on. Who teaches is spared the scheduler's words alone.
"""

import re
from typing import Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.reasons import Happened, Progress, Trouble
from vkprovider.lablet.standings import Standing
from vkprovider.portal.pure.portalnames import UserLabReason
from vkprovider.portal.pure.stream import BENCH_SAYS
from vkprovider.portal.pure.view import LabFailure, LabView, SeenProgress

_OF_REASON: Final = {
    Happened.UNSCHEDULABLE: "There is no room for your lab at the moment. It starts by itself when other labs end.",
    Trouble.STOPPED_TOO_LONG: "Your lab was stopped for too long, and has ended.",
    UserLabReason.TIME_OVER: "The time of your lab is over, and it is being removed.",
    UserLabReason.NEVER_OPENED: "Nobody opened your lab, so that it is being removed. You can start another one then.",
    UserLabReason.START_TIMED_OUT: "Your lab did not start in time.",
    UserLabReason.POD_REFUSED: "A rule of the cluster does not allow your lab.",
}
"""By the word of a reason, what a learner can make of it."""
_OF_STANDING: Final = {
    Standing.NEEDS_HELP: "Your lab does not get ready by itself.",
    Standing.UNREACHABLE: "The server of your lab does not answer. Your lab goes on by itself when it does again.",
    Standing.REPAIRING: "Something in your lab broke off. It is being repaired by itself; wait some minutes.",
    Standing.WAITING: "Your lab cannot start at the moment. It is tried again by itself.",
    Standing.BOOTING: "Your lab takes longer to start than usual. It is tried again by itself.",
    Standing.STOPPED: "Your lab was switched off; what was saved on its devices is kept.",
    Standing.FAILED: "Your lab has failed, and does not go on.",
    Standing.ENDING: "Your lab is being removed.",
}
"""By standing, the same where the reason says nothing to a learner."""
_SENTENCE_ELSE: Final = "Something is the matter with your lab."
_EVENT: Final = re.compile(r"([A-Z][A-Za-z]+): ")
"""How a line begins that tells of an Event."""
_NO_BENCH: Final = "Your workbench cannot be made at the moment; it is tried again, and your lab goes on"
_TOLD: Final = {
    Happened.STARTED: "The devices are started",
    Happened.ADOPTED: "The lab was found again",
    Happened.RECOVERED: "All devices booted again",
    Happened.RESET: "The devices are wiped, and start again",
    Happened.COLLECTING: "Your work is being collected",
    Happened.COLLECTED: "Your work is stored",
    Happened.GRADED: "Your work is graded",
    Happened.STOPPING: "The devices are switched off",
    Happened.KILLING: "The lab is being removed",
    Progress.CLEANING_UP: "The lab is being removed",
    Happened.UNSCHEDULABLE: "There is no room at the moment",
    "FailedScheduling": "There is no room at the moment",
    UserLabReason.WORKBENCH_REFUSED: _NO_BENCH,
}
"""By the word of an Event, its line for a learner; others are for those who run the labs."""
_WAITS: Final = "The lab waits for a worker that can take it"


def learners_view(view: LabView) -> LabView:
    """Return a lab in the words for its learner."""
    failure = _failure(view.failure, view) if view.failure is not None else None
    progress = _progress(view.progress) if view.progress is not None else None
    return msgspec.structs.replace(view, failure=failure, progress=progress)


def whom_to_ask(view: LabView) -> str:
    """Return who helps the learner of a lab."""
    return "your instructor" if view.class_ else "whoever runs the labs"


def _failure(failure: LabFailure, view: LabView) -> LabFailure:
    sentence = _OF_REASON.get(failure.reason) or _OF_STANDING.get(view.standing, _SENTENCE_ELSE)  # type: ignore[call-overload]  # (a reason equals its word)
    if view.replaceable:
        remedy = f"Start a lab again, which replaces this one. If that fails too, ask {whom_to_ask(view)}."
    else:
        remedy = f"If it stays so, ask {whom_to_ask(view)}."
    return LabFailure(failure.reason, "", sentence, remedy)


def _progress(progress: SeenProgress) -> SeenProgress:
    """Return what goes on without names of objects and words of schedulers."""
    lines = tuple(line._replace(text=text) for line in progress.lines if (text := _line(line.text)))
    sentence = progress.sentence
    if sentence.startswith(_WAITS):
        sentence = f"{_WAITS}."
    elif _EVENT.match(sentence):
        sentence = ""
    return progress._replace(lines=lines, sentence=sentence)


def _line(text: str) -> str:
    """Return a line of the story for a learner; "" if it tells them nothing."""
    if text.startswith(BENCH_SAYS):
        said = _line(text.removeprefix(BENCH_SAYS))
        return f"{BENCH_SAYS}{said[0].lower()}{said[1:]}" if said else ""
    event = _EVENT.match(text)
    return _TOLD.get(event[1], "") if event is not None else text


_LACKS: Final = re.compile(r"Insufficient ([^\s,.]+(?:\.[^\s,.]+)*)")
_RESOURCES: Final = {
    "cpu": "CPU",
    "memory": "memory",
    "pods": "labs",
    names.RESOURCE_LAB_NODES: "licensed devices",
    names.RESOURCE_PORTS: "ports",
}
NO_ROOM: Final = "no room"
"""The reason `Unschedulable` for people who know no scheduler."""


def room_words(message: str) -> str:
    """Return what a lablet waits for, by the message of the condition `PodScheduled`.

    >>> room_words("0/3 nodes are available: 2 Insufficient cpu, 1 node(s) had untolerated taint(s). preemption: 0/3 …")
    'No worker has room: CPU'
    >>> room_words("0/3 nodes are available: 3 Too many pods.")
    'No worker has room: labs'
    >>> room_words("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.")
    'No worker takes this lab: none of its kind is there, or ready'
    """
    lacks = {_RESOURCES.get(found, found) for found in _LACKS.findall(message)}
    if "Too many pods" in message:
        lacks.add(_RESOURCES["pods"])
    if lacks:
        return f"No worker has room: {', '.join(sorted(lacks, key=str.casefold))}"
    return "No worker takes this lab: none of its kind is there, or ready"

"""What a learner reads of a lab that is not as it should be: no addresses, no names of objects, no scheduler."""

import msgspec
import pytest

from tests.unit.portal.pure.builders import NOW
from vkprovider.lablet.reasons import Happened, Trouble
from vkprovider.lablet.standings import Standing
from vkprovider.portal.pure.plainwords import learners_view, whom_to_ask
from vkprovider.portal.pure.portalnames import UserLabReason
from vkprovider.portal.pure.view import LabFailure, LabView, SeenProgress, StoryLine

SECRET = "GET /system_information: 127.118.0.11:8443: Connection refused; lab netlab-8a489148-ba0f"


def view(reason: str, standing: Standing, *, replaceable: bool = False, class_: str = "") -> LabView:
    failure = LabFailure(reason, SECRET, f"means {SECRET}", f"See that spec.url of {SECRET} is right.")
    return LabView(
        name="alice", headline="", standing=standing, failure=failure, replaceable=replaceable, class_=class_
    )


def told(reason: str, standing: Standing, *, replaceable: bool = False, class_: str = "") -> LabFailure:
    found = learners_view(view(reason, standing, replaceable=replaceable, class_=class_)).failure
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("reason", "standing", "words"),
    [
        (Happened.UNSCHEDULABLE, Standing.WAITING, "There is no room for your lab"),
        (Trouble.STOPPED_TOO_LONG, Standing.FAILED, "Your lab was stopped for too long"),
        (UserLabReason.TIME_OVER, Standing.ENDING, "The time of your lab is over"),
        ("WorkerUnreachable", Standing.UNREACHABLE, "The server of your lab does not answer."),
        ("DeviceStopped", Standing.REPAIRING, "It is being repaired by itself"),
        ("AWordOfALaterVersion", Standing.READY, "Something is the matter with your lab."),
    ],
)
def test_one_sentence_and_whom_to_ask(reason: str, standing: Standing, words: str) -> None:
    failure = told(str(reason), standing)
    assert words in failure.means
    assert failure.remedy == "If it stays so, ask whoever runs the labs."
    assert failure.reason == str(reason), "the word is there to be passed on"


@pytest.mark.parametrize("standing", Standing)
@pytest.mark.parametrize("replaceable", [True, False])
def test_nothing_of_the_particulars_is_told(standing: Standing, *, replaceable: bool) -> None:
    failure = told("AnyWord", standing, replaceable=replaceable)
    assert failure.means.endswith(".")
    for part in (failure.message, failure.means, failure.remedy):
        assert "8443" not in part
        assert "spec.url" not in part
        assert "8a489148" not in part


def test_who_is_asked() -> None:
    of_class = view("X", Standing.FAILED, replaceable=True, class_="net101")
    assert whom_to_ask(of_class) == "your instructor"
    failure = learners_view(of_class).failure
    assert failure is not None
    assert failure.remedy.startswith("Start a lab again, which replaces this one.")
    assert failure.remedy.endswith("ask your instructor.")


def line(text: str) -> StoryLine:
    return StoryLine(NOW, "12:00 UTC", text, warns=False)


def test_the_story_has_no_names_of_objects() -> None:
    lines = [
        "Lab asked for: netlab:1.0",
        "A worker has room for the lab",
        "Started: Started lab netlab-8a489148-ba0f",
        f"CleaningUp: {SECRET}",
        "FailedScheduling: 0/3 nodes are available: 3 Insufficient cpu.",
        f"ImportWarned: {SECRET}",
        "Workbench: a node has room for it",
        "Workbench: FailedScheduling: 0/3 nodes are available: 3 Insufficient cpu.",
        f"Workbench: Pulled: {SECRET}",
        f'WorkbenchRefused: pods "nb-alice-workbench" is forbidden: exceeded quota: {SECRET}',
    ]
    found = view("X", Standing.BOOTING)
    seen = msgspec.structs.replace(found, progress=SeenProgress(20, "", tuple(map(line, lines))))
    progress = learners_view(seen).progress
    assert progress is not None
    assert [each.text for each in progress.lines] == [
        "Lab asked for: netlab:1.0",
        "A worker has room for the lab",
        "The devices are started",
        "The lab is being removed",
        "There is no room at the moment",
        "Workbench: a node has room for it",
        "Workbench: there is no room at the moment",
        "Your workbench cannot be made at the moment; it is tried again, and your lab goes on",
    ]


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        (
            "The lab waits for a worker that can take it: 0/3 nodes are available",
            "The lab waits for a worker that can take it.",
        ),
        ("Devices boot: 1 of 2", "Devices boot: 1 of 2"),
        ("The lab waits to be started: place 3 in the queue", "The lab waits to be started: place 3 in the queue"),
        (f"WaitingForClaims: {SECRET}", ""),
    ],
)
def test_what_goes_on(sentence: str, shown: str) -> None:
    seen = msgspec.structs.replace(view("X", Standing.BOOTING), progress=SeenProgress(20, sentence))
    progress = learners_view(seen).progress
    assert progress is not None
    assert progress.sentence == shown

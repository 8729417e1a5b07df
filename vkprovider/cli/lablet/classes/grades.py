"""`kubectl lablet collect -l … --wait`: the grades of a class.

A Pod that has ended shows its verdict. One that goes back to its pool does not, for the next learner gets it: its
verdict is the newest Event `Graded` that was not there before.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from vkprovider.api.errors import Forbidden
from vkprovider.api.objects import Metadata
from vkprovider.api.reasons import Happened
from vkprovider.cli.lablet.lists.standings import Standing
from vkprovider.cli.lablet.lists.words import score_in, standing_of
from vkprovider.cli.shared.output import Column, Listing
from vkprovider.cli.shared.pods import LabletPod
from vkprovider.kube.client import KubeClient
from vkprovider.kube.resources import Resource, kind


class Grade(msgspec.Struct, frozen=True):
    """A learner's grade; what is unknown is empty.

    Attributes:
        learner: Whose.
        passed: `yes` or `no`.
        score: As the grader gave it.
        name: Of the Pod.
    """

    learner: str
    passed: str
    score: str
    name: str


class _Involved(msgspec.Struct, frozen=True):
    uid: str = ""


class GradedEvent(msgspec.Struct, frozen=True, rename="camel"):
    """An Event `Graded`."""

    metadata: Metadata
    message: str = ""
    involved_object: _Involved = _Involved()


_EVENTS: Final = kind("/api/v1", "events", GradedEvent)
LISTING: Final[Listing[Grade]] = Listing(
    kind="LabletGrade",
    row=Grade,
    columns=(
        Column("LEARNER", lambda row: row.learner),
        Column("PASSED", lambda row: row.passed, colour=lambda row: {"yes": "green", "no": "red"}.get(row.passed, "")),
        Column("SCORE", lambda row: row.score),
        Column("NAME", lambda row: row.name),
    ),
    name=lambda row: f"pod/{row.name}",
)
_PASSED: Final[Mapping[Standing, str]] = {Standing.PASSED: "yes", Standing.NOT_PASSED: "no"}


async def graded_events(kube: KubeClient, namespace: str) -> list[GradedEvent]:
    """List the Events `Graded` of a namespace; none without the right to do so."""
    try:
        return await Resource(kube, _EVENTS, namespace).list(fields=f"reason={Happened.GRADED}")
    except Forbidden:
        return []


def grade_of(
    pod: LabletPod, over: LabletPod | None, before: Sequence[GradedEvent], after: Sequence[GradedEvent]
) -> Grade:
    """Return the grade of a learner whose time is over.

    Args:
        pod: The learner's, as it was.
        over: The same at its end; None if it is gone.
        before: The Events `Graded` of the namespace when the end was asked for.
        after: Those that are there now.
    """
    if over is not None and over.ended:
        standing, score = standing_of(over)
        return Grade(pod.user, _PASSED.get(standing, ""), score, pod.metadata.name)
    old = {event.metadata.name: event.metadata.resource_version for event in before}
    fresh = [
        event
        for event in after
        if event.involved_object.uid == pod.metadata.uid
        and old.get(event.metadata.name) != event.metadata.resource_version
    ]
    if not fresh:
        return Grade(pod.user, "", "", pod.metadata.name)
    said = max(fresh, key=lambda event: int(event.metadata.resource_version)).message
    word, _, rest = said.partition(", ")
    return Grade(pod.user, {"passed": "yes", "not passed": "no"}.get(word, ""), score_in(rest), pod.metadata.name)

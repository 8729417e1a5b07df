"""A lablet is given to a learner: which ones can be, in which order, and the write by which it is done."""

import random
from collections.abc import Sequence
from typing import Final

import msgspec

from vkprovider.classroom.pods import LabletPod, change
from vkprovider.lablet import names
from vkprovider.platform.kube.client import KubeClient

HINDRANCES_MAX: Final = 5
"""How many lablets that are not free are named, with the reason of each."""
_HASH: Final = "pod-template-hash"
_COST: Final = "1000"
"""A ReplicaSet that scales down deletes Pods with a lower cost first; the default is 0."""


class Wish(msgspec.Struct, frozen=True):
    """The learner of a lablet, and the timeslot.

    Attributes:
        start, end: When the timeslot starts and ends, as annotations have it; "" if it is open.
    """

    user: str
    start: str = ""
    end: str = ""

    def annotations(self) -> dict[str, str]:
        """Return it as annotations of a Pod."""
        pairs = {
            names.ANNOTATION_USERNAME: self.user,
            names.ANNOTATION_TIMESLOT_START: self.start,
            names.ANNOTATION_TIMESLOT_END: self.end,
        }
        return {name: value for name, value in pairs.items() if value}


def hindrance(pod: LabletPod) -> str:
    """Return why a Pod cannot be assigned now; "" if it can."""
    meta = pod.metadata
    if meta.deletion_timestamp is not None:
        return "is being deleted"
    if pod.ended:
        return f"has ended ({pod.status.phase})"
    if pod.user:
        return f"is assigned to {pod.user}"
    if meta.annotations.get(names.ANNOTATION_SESSION_ID):
        return "has a session"
    if names.ANNOTATION_LENT_BY in meta.annotations:
        return f"is on its way back to its pool {meta.annotations[names.ANNOTATION_LENT_BY]}"
    if not pod.ready:
        return "is not Ready"
    if names.ANNOTATION_DESIRED_STATE in meta.annotations:
        return f"is wanted to be {meta.annotations[names.ANNOTATION_DESIRED_STATE]}"
    return ""


async def give(kube: KubeClient, pod: LabletPod, wish: Wish) -> LabletPod:
    """Assign a Pod to a learner, unless it was written since it was read: of two callers only one succeeds.

    Raises:
        Conflict: It was written.
        OutsideError: The API server refused or did not answer.
    """
    notes: dict[str, str | None] = dict(wish.annotations())
    labels: dict[str, str | None] = {}
    if pool := pod.metadata.labels.get(names.LABEL_POOL):
        notes[names.ANNOTATION_LENT_BY] = pool
        labels[names.LABEL_POOL] = None
    elif any(owner.controller for owner in pod.metadata.owner_references):
        notes[names.ANNOTATION_DELETION_COST] = _COST
    return await change(kube, pod, annotations=notes, labels=labels, unchanged=True)


def in_order(pods: Sequence[LabletPod], dice: random.Random | None = None) -> list[LabletPod]:
    """Sort Pods by template, newest first; within a template by age, or shuffled so that callers do not collide.

    The oldest comes first: of those that are too many a ReplicaSet ends the youngest.
    """
    newest: dict[str, str] = {}
    for pod in pods:
        template = pod.metadata.labels.get(_HASH, "")
        newest[template] = max(newest.get(template, ""), pod.metadata.creation_timestamp)
    mixed = dice.sample(list(pods), len(pods)) if dice else sorted(pods, key=_age)
    return sorted(mixed, key=lambda pod: newest[pod.metadata.labels.get(_HASH, "")], reverse=True)


def _age(pod: LabletPod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp, pod.metadata.name

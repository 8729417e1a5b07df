"""A lablet's Pod, as those who run a class read, change and assign it."""

import contextlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.guests import GuestMode, guests_in
from vkprovider.lablet.shownname import shown_in
from vkprovider.lablet.standing import has_ended, is_closing, is_ready, learner_in, passed_to
from vkprovider.platform.errors import Conflict, NotFound
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import ChangeHow, Resource, kind
from vkprovider.platform.objects import Metadata, Pod, PodSpec, PodStatus


class LabletSpec(PodSpec, frozen=True, rename="camel"):
    """The spec of a Pod, with what sends it to a worker."""

    node_selector: dict[str, str] = msgspec.field(default_factory=dict)


class LabletPod(msgspec.Struct, frozen=True):
    """A Pod, with the fields that show whether it is a lablet."""

    metadata: Metadata
    spec: LabletSpec
    status: PodStatus = PodStatus()

    @property
    def is_lablet(self) -> bool:
        """Whether a definition's RuntimeClass placed it: its selector shows it without a right to read definitions."""
        return names.is_lablet(self.spec.runtime_class_name, self.spec.node_name, self.spec.node_selector)

    @property
    def ready(self) -> bool:
        """Whether the Pod is Ready."""
        return is_ready(self)

    @property
    def runs(self) -> bool:
        """Whether the lab runs, whatever the Pod's readiness gates are."""
        return any(c.type == "ContainersReady" and c.status == "True" for c in self.status.conditions)

    @property
    def ended(self) -> bool:
        """Whether the phase is final."""
        return has_ended(self)

    @property
    def over(self) -> bool:
        """Whether it has ended, or is being deleted."""
        return self.ended or self.metadata.deletion_timestamp is not None

    @property
    def lasts(self) -> bool:
        """Whether its learner has it from now on: what is over, or is being collected, ends with all that is given."""
        return not self.over and not is_closing(self)

    @property
    def user(self) -> str:
        """The learner whose lablet it is, else the one who is to have it; "" for a warm lablet."""
        return learner_in(self)

    @property
    def shown(self) -> str:
        """The name by which people know the learner; "" if there is none."""
        return shown_in(self)

    @property
    def guests(self) -> dict[str, GuestMode]:
        """Who shares it with its learner."""
        return guests_in(self.metadata.annotations)

    @property
    def is_free(self) -> bool:
        """Whether a pool's lablet is nobody's; one of no pool may be worked in without a username."""
        pooled = names.LABEL_POOL in self.metadata.labels or names.ANNOTATION_LENT_BY in self.metadata.annotations
        return not self.user and pooled

    @property
    def last_ends(self) -> dict[str, str]:
        """Why each container last ended, by name; every start again of the lab changes it, for its number is in it."""
        return {status.name: status.last_end for status in self.status.container_statuses}


PODS: Final = kind("/api/v1", "pods", LabletPod)


def pods_in(kube: KubeClient, namespace: str) -> Resource[LabletPod]:
    """Return the Pods of a namespace; of all namespaces if it is empty."""
    return Resource(kube, PODS, namespace)


async def change(
    kube: KubeClient,
    pod: LabletPod | Pod,
    *,
    annotations: Mapping[str, str | None],
    labels: Mapping[str, str | None] | None = None,
    unchanged: bool = False,
) -> LabletPod:
    """Change annotations and labels of exactly this Pod; None removes one.

    Args:
        kube: The API server.
        pod: As it was read.
        annotations: What to change.
        labels: What to change.
        unchanged: Only if it was not written since it was read.

    Raises:
        Conflict: Another Pod has the name now, or the Pod was written.
    """
    meta = pod.metadata
    held: ChangeHow = {"uid": meta.uid}
    if unchanged:
        held["resource_version"] = meta.resource_version
    body = {"metadata": {"annotations": annotations, **({"labels": labels} if labels else {})}}
    return await pods_in(kube, meta.namespace).patch(meta.name, body, **held)


P = TypeVar("P", LabletPod, Pod)

TRIES: Final = 20
"""Attempts: the Pod's status may be written between our read and write, and the Pod must then be read again."""


class NotChangedError(Exception):
    """A lablet was left as it is; the text says why, without its name."""


async def change_for(pods: Resource[P], learner: str, pod: P, notes: Callable[[P], Mapping[str, str | None]]) -> P:
    """Change annotations of a lablet as long as it is that of one learner: its Pod may pass to the next one meanwhile.

    Args:
        pods: Those of its namespace.
        learner: Who must have the lablet; "" if it must be free.
        pod: As it was read.
        notes: Called with the Pod as it is before each attempt; returns what to change, and raises to prevent it.

    Raises:
        NotChangedError: It is another learner's now, or gone, or written to all the time.
        OutsideError: The API server did not do it.
    """
    name, uid = pod.metadata.name, pod.metadata.uid
    for _ in range(TRIES):
        if gone := passed_to(learner, learner_in(pod)):
            raise NotChangedError(gone)
        body = {"metadata": {"annotations": notes(pod)}}
        try:
            return await pods.patch(name, body, uid=uid, resource_version=pod.metadata.resource_version)
        except Conflict:
            found = await pods.get(name)
        if found is None or found.metadata.uid != uid:
            raise NotChangedError("is gone; nothing was done")
        pod = found
    raise NotChangedError("is written to all the time; try again")


HINDRANCES_MAX: Final = 5
"""How many lablets that are not free are named, with the reason of each."""
_HASH: Final = "pod-template-hash"
_COST: Final = "1000"
"""A ReplicaSet that scales down deletes Pods with a lower cost first; the default is 0."""


class Assignment(msgspec.Struct, frozen=True):
    """The learner of a lablet, and the timeslot.

    Attributes:
        start, end: When the timeslot starts and ends, as annotations have it; "" if it is open.
        shown: The name by which people know the learner; "" if there is none.
    """

    user: str
    start: str = ""
    end: str = ""
    shown: str = ""

    def annotations(self) -> dict[str, str]:
        """Return it as annotations of a Pod."""
        pairs = {
            names.ANNOTATION_USERNAME: self.user,
            names.ANNOTATION_SHOWN_NAME: self.shown,
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
        return f"is at the end of the time of {pod.user}" if is_closing(pod) else f"is assigned to {pod.user}"
    if meta.annotations.get(names.ANNOTATION_SESSION_ID):
        return "has a session"
    if names.ANNOTATION_LENT_BY in meta.annotations:
        return f"is on its way back to its pool {meta.annotations[names.ANNOTATION_LENT_BY]}"
    if not pod.ready:
        return "is not Ready"
    if names.ANNOTATION_DESIRED_STATE in meta.annotations:
        return f"is wanted to be {meta.annotations[names.ANNOTATION_DESIRED_STATE]}"
    return ""


async def give(kube: KubeClient, pod: LabletPod, wish: Assignment) -> LabletPod:
    """Assign a Pod to a learner, unless it was written since it was read: of two callers only one succeeds.

    Raises:
        Conflict: It was written.
    """
    notes: dict[str, str | None] = {names.ANNOTATION_SHOWN_NAME: None, **wish.annotations()}
    labels: dict[str, str | None] = {}
    if pool := pod.metadata.labels.get(names.LABEL_POOL):
        notes[names.ANNOTATION_LENT_BY] = pool
        labels[names.LABEL_POOL] = None
    elif any(owner.controller for owner in pod.metadata.owner_references):
        notes[names.ANNOTATION_DELETION_COST] = _COST
    return await change(kube, pod, annotations=notes, labels=labels, unchanged=True)


async def name_again(kube: KubeClient, pairs: Iterable[tuple[LabletPod, Assignment]]) -> None:
    """Write the names by which people know learners on lablets that have others, as they were given before.

    Raises:
        OutsideError: One cannot be written; a lablet that is gone, or another's meanwhile, is passed over.
    """
    for pod, wish in pairs:
        if wish.shown and pod.user == wish.user and pod.shown != wish.shown:
            with contextlib.suppress(Conflict, NotFound):
                await change(kube, pod, annotations={names.ANNOTATION_SHOWN_NAME: wish.shown}, unchanged=True)


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

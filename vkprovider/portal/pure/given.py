"""Which lablets of classes are somebody's: by what stands on their Pods, and by the RoleBindings of their namespaces.

A Pod names its learner, and anybody who makes Pods may write that. So a lablet is shown as somebody's own only where
they have a right, too: the Role that `assign` wrote on that Pod, or to attend the class.
"""

from collections.abc import Container, Iterable
from typing import NamedTuple

from vkprovider.lablet import names
from vkprovider.lablet.guests import GuestMode, guests_in
from vkprovider.platform.objects import Pod, RoleBinding


class OpenedLablet(NamedTuple):
    """A lablet that a RoleBinding opens to its learner.

    Attributes:
        uid: Of the Pod.
    """

    namespace: str
    pod: str
    uid: str


def opened_by(binding: RoleBinding) -> OpenedLablet | None:
    """Return the lablet that a RoleBinding opens to its learner; None if it is no such binding."""
    meta, ref = binding.metadata, binding.role_ref
    owner = next((each for each in meta.owner_references if each.kind == "Pod"), None)
    if owner is None or ref.kind != "Role" or not (ref.name == meta.name == names.assignment_name(owner.name)):
        return None
    return OpenedLablet(meta.namespace, owner.name, owner.uid)


def learner_name(pod: Pod) -> str:
    """Return the learner of a lablet as it is written; "" for a warm one."""
    notes = pod.metadata.annotations
    return notes.get(names.ANNOTATION_LEARNER, "") or notes.get(names.ANNOTATION_USERNAME, "")


def people_of(pod: Pod) -> set[str]:
    """Return the learner of a lablet, as it is written, and the guests."""
    return {learner_name(pod), *guests_in(pod.metadata.annotations)} - {""}


def mode_of(pod: Pod, people: Container[str]) -> GuestMode | None:
    """Return how somebody who has some names is a guest of a lablet; None: they are none.

    Who is named twice only watches.
    """
    modes = {mode for guest, mode in guests_in(pod.metadata.annotations).items() if guest in people}
    return min(modes, key=(GuestMode.WATCH, GuestMode.TYPE).index, default=None)


def admits(pod: Pod, people: Iterable[str]) -> bool:
    """Return whether a lablet is that of somebody who has some names, or they are a guest there."""
    return not people_of(pod).isdisjoint(people)


def is_of(pod: Pod, learners: Iterable[str]) -> bool:
    """Return whether a lablet is that of somebody who has some names."""
    name = learner_name(pod)
    return bool(name) and name in learners

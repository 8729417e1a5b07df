"""Which lablet of a warm pool takes up new content next: one at a time, and none that has a learner.

Every replica sees all Pods of a pool and comes to the same choice; only the owner of the chosen one acts. What the Pods
report decides about the order alone: whether a lab is replaced is decided from the lablet's claim.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vkprovider.lablet import names
from vkprovider.lablet.inputs import inputs_of
from vkprovider.labs.pure.lablet.pod.intent import Definition, resolve
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import Pod


class Pool(NamedTuple):
    """A warm pool: the lablets of one definition with one value of the pool label in one namespace."""

    namespace: str
    name: str
    definition: str


class Member(NamedTuple):
    """A lablet of a pool.

    Attributes:
        uid: Of its Pod.
        ready: Whether it is Ready, and stays.
        digest: Of the content that it would run if it began now; "" if that is what it runs.
    """

    uid: str
    ready: bool
    digest: str


def pool_of(pod: Pod) -> Pool | None:
    """Return the pool that a Pod is free in; None if it is in none, or somebody uses it."""
    meta = pod.metadata
    if not meta.labels.get(names.LABEL_POOL) or pod.terminal:
        return None
    inputs = inputs_of(meta)
    if inputs.username or inputs.lent_by or inputs.desired is not None:
        return None
    return Pool(meta.namespace, inputs.pool, pod.spec.runtime_class_name)


def member_of(pod: Pod, definitions: Mapping[str, Definition]) -> Member:
    """Describe a lablet of a pool."""
    meta = pod.metadata
    return Member(meta.uid, is_ready(pod) and meta.deletion_timestamp is None, _newer(pod, definitions))


def is_ready(pod: Pod) -> bool:
    """Return whether a Pod shows the condition Ready."""
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)


def _newer(pod: Pod, definitions: Mapping[str, Definition]) -> str:
    definition = definitions.get(pod.spec.runtime_class_name)
    runs = pod.metadata.annotations.get(names.ANNOTATION_CONTENT, "").rpartition(":")[2]
    if definition is None or not runs or not definition.versions or definition.versions[0].digest == runs:
        return ""
    try:
        content = resolve(pod, definitions, environment=definition.environment)
    except InputError:
        return ""  # no version that is kept fits what the Pod was charged
    return content.digest if content.digest != runs else ""


def next_up(members: Iterable[Member]) -> Member | None:
    """Return the lablet of a pool whose turn it is: none while another one is not Ready."""
    known = sorted(members)
    if not all(member.ready for member in known):
        return None
    return next((member for member in known if member.digest), None)

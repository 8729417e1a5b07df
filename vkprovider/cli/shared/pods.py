"""A lablet's Pod, for the commands of `kubectl lablet`: find it by its name or its learner's, read and change it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import click
import msgspec

from vkprovider.api import names
from vkprovider.api.errors import Forbidden
from vkprovider.api.objects import Metadata, PodSpec, PodStatus
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.domain.view.words import has_ended, is_ready, learner_in, state_of
from vkprovider.kube.client import KubeClient
from vkprovider.kube.resources import ChangeHow, Resource, kind

UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_POD_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class _Spec(PodSpec, frozen=True, rename="camel"):
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)


class LabletPod(msgspec.Struct, frozen=True):
    """A Pod, with the fields that show whether it is a lablet."""

    metadata: Metadata
    spec: _Spec
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
    def user(self) -> str:
        """The learner whose lablet it is, else the one who is to have it; "" for a warm lablet."""
        return learner_in(self)

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


class Named(msgspec.Struct, frozen=True):
    """What a command line names one lablet by.

    Attributes:
        name: Of its Pod, or of its learner.
        kinds: Which of the two it may be.
    """

    name: str
    kinds: Literal["pod", "learner", "either"] = "either"


def named(pod: str | None, learner: str | None) -> Named:
    """Return the target that the argument POD or the option `-u` names: `pod/a` is a Pod, and `a` a Pod or a learner.

    Raises:
        UsageError: Both are given, or none, or one names nothing.
    """
    if learner is not None and pod is not None:
        raise click.UsageError("name a POD, or a learner with -u, not both")
    if learner is not None:
        if not learner.strip():
            raise click.UsageError("-u names no learner; write -u LEARNER")
        return Named(learner.strip(), "learner")
    if pod is None:
        raise click.UsageError("name a POD, or a learner with -u, such as -u alice")
    return Named(pod_name(pod), "pod" if "/" in pod else "either")


def pod_name(text: str) -> str:
    """Return the Pod's name: `pod/a`, `pods/a` and `a` all name the Pod a.

    Raises:
        UsageError: It does not name a Pod.
    """
    kind, slash, name = text.rpartition("/")
    if slash and kind not in {"pod", "pods", "po"}:
        raise click.UsageError(
            f"{text!r} does not name a pod; write pod/{name or 'NAME'} or the name alone, or -u and a learner's name"
        )
    if not name:
        raise click.UsageError(f"{text!r} does not name a pod; write pod/NAME or the name alone")
    return name


def pods_in(kube: KubeClient, namespace: str) -> Resource[LabletPod]:
    """Return the Pods of a namespace; of all namespaces if it is empty."""
    return Resource(kube, PODS, namespace)


class NoPod(click.ClickException):
    """There is no Pod of that name."""


async def find(kube: KubeClient, namespace: str, wanted: Named) -> LabletPod:
    """Find the lablet that a command line names; see `find_all`.

    Raises:
        NoPod: There is none.
        ClickException: It is not a lablet, or several are meant.
        OutsideError: It cannot be read.
    """
    return (await find_all(kube, namespace, [wanted]))[0]


async def find_all(kube: KubeClient, namespace: str, wanted: Iterable[Named]) -> list[LabletPod]:
    """Find the lablets that a command line names, each once: by the Pod's exact name, else by the learner's.

    Raises:
        NoPod: There is none.
        ClickException: It is not a lablet, or several are meant.
        OutsideError: They cannot be read.
    """
    pods, found, everyone = pods_in(kube, namespace), dict[str, LabletPod](), None
    for each in wanted:
        pod = await pods.get(each.name) if each.kinds != "learner" and _POD_NAME.fullmatch(each.name) else None
        if (pod is None or not pod.is_lablet) and each.kinds != "pod":
            try:
                everyone = await pods.list() if everyone is None else everyone
                pod = of_learner(everyone, each.name) or pod
            except Forbidden:
                if each.kinds == "learner":
                    raise
        pod = _lablet(pod, each, namespace)
        found.setdefault(pod.metadata.uid, pod)
    return list(found.values())


def of_learner(pods: Sequence[LabletPod], learner: str) -> LabletPod | None:
    """Return the lablet of a learner; one that has ended only if the learner has no other. None if there is none.

    Raises:
        ClickException: The learner has several.
    """
    mine = [pod for pod in pods if pod.is_lablet and pod.user == learner]
    mine = [pod for pod in mine if not pod.over] or mine
    if len(mine) > 1:
        listed = ", ".join(sorted(f"pod/{pod.metadata.name}" for pod in mine))
        raise click.ClickException(f"{learner} has {len(mine)} lablets: {listed}; name one of these pods")
    return mine[0] if mine else None


def _lablet(pod: LabletPod | None, wanted: Named, namespace: str) -> LabletPod:
    """Check what was found.

    Raises:
        NoPod: Nothing.
        ClickException: It is not a lablet.
    """
    if pod is None and wanted.kinds == "learner":
        raise NoPod(f"{wanted.name} has no lablet in namespace {namespace}; see: kubectl lablet list")
    if pod is None:
        besides = f", and no learner {wanted.name} has a lablet there" if wanted.kinds == "either" else ""
        raise NoPod(f'pods "{wanted.name}" not found in namespace {namespace}{besides}; see: kubectl lablet list')
    if not pod.is_lablet:
        raise click.ClickException(
            f"pod/{wanted.name} in namespace {namespace} is not a lablet; see: kubectl lablet list"
        )
    return pod


async def read(kube: KubeClient, namespace: str, name: str) -> LabletPod:
    """Read a lablet's Pod.

    Raises:
        NoPod: It does not exist.
        ClickException: It is not a lablet.
        OutsideError: It cannot be read.
    """
    return _lablet(await pods_in(kube, namespace).get(name), Named(name, "pod"), namespace)


async def change(
    kube: KubeClient,
    pod: LabletPod,
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
        OutsideError: The API server refused or did not answer.
    """
    meta = pod.metadata
    held: ChangeHow = {"uid": meta.uid}
    if unchanged:
        held["resource_version"] = meta.resource_version
    body = {"metadata": {"annotations": annotations, **({"labels": labels} if labels else {})}}
    return await pods_in(kube, meta.namespace).patch(meta.name, body, **held)


def check_alive(pod: LabletPod) -> None:
    """Check that a lablet has not ended.

    Raises:
        ClickException: It has, or is being deleted.
    """
    name = pod.metadata.name
    if pod.metadata.deletion_timestamp is not None:
        raise click.ClickException(
            f"pod/{name} is being deleted; for its configurations: kubectl lablet configs {name}"
        )
    if pod.ended:
        raise click.ClickException(
            f"pod/{name} has ended ({pod.status.phase}); for its configurations: kubectl lablet configs {name}"
        )


def check_not_collecting(pod: LabletPod) -> None:
    """Check that the learner's time is not over.

    Raises:
        ClickException: It is.
    """
    if state_of(pod) in {State.COLLECTING, State.GRADING, State.STOPPING}:
        name = pod.metadata.name
        raise click.ClickException(
            f"pod/{name} is at its end: its state is {state_of(pod)}; to follow it: kubectl lablet list --watch"
        )

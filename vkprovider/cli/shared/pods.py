"""A lablet's Pod, for the commands of `kubectl lablet`: parse its name, read and change it."""

import re
from collections.abc import Mapping
from typing import Final

import click
import msgspec

from vkprovider.api import names
from vkprovider.api.objects import Metadata, PodSpec, PodStatus
from vkprovider.cli.shared.tables import plain
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.kube.client import KubeClient
from vkprovider.kube.resources import ChangeHow, Resource, kind

UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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
        sent = self.spec.node_selector.get(names.LABEL_COMPONENT) == names.COMPONENT_VNODE
        return bool(self.spec.runtime_class_name) and (sent or self.spec.node_name.startswith(names.NODE_PREFIX))

    @property
    def ready(self) -> bool:
        """Whether the Pod is Ready."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)

    @property
    def ended(self) -> bool:
        """Whether the phase is final."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def user(self) -> str:
        """The learner whose lablet it is, else the one who is to have it; "" for a warm lablet."""
        notes = self.metadata.annotations
        return plain(notes.get(names.ANNOTATION_LEARNER, "") or notes.get(names.ANNOTATION_USERNAME, ""))

    @property
    def last_ends(self) -> dict[str, str]:
        """Why each container last ended, by name; every start again of the lab changes it, for its number is in it."""
        return {status.name: status.last_end for status in self.status.container_statuses}


PODS: Final = kind("/api/v1", "pods", LabletPod)


def pod_name(text: str) -> str:
    """Return the Pod's name: `pod/a`, `pods/a` and `a` all name the Pod a.

    Raises:
        UsageError: It does not name a Pod.
    """
    kind, slash, name = text.rpartition("/")
    if slash and kind not in {"pod", "pods", "po"}:
        raise click.UsageError(f"{text!r} does not name a pod; write pod/{name or 'NAME'} or the name alone")
    if not name:
        raise click.UsageError(f"{text!r} does not name a pod; write pod/NAME or the name alone")
    return name


def pods_in(kube: KubeClient, namespace: str) -> Resource[LabletPod]:
    """Return the Pods of a namespace; of all namespaces if it is empty."""
    return Resource(kube, PODS, namespace)


class NoPod(click.ClickException):
    """There is no Pod of that name."""


async def read(kube: KubeClient, namespace: str, name: str) -> LabletPod:
    """Read a lablet's Pod.

    Raises:
        NoPod: It does not exist.
        ClickException: It is not a lablet.
        OutsideError: It cannot be read.
    """
    pod = await pods_in(kube, namespace).get(name)
    if pod is None:
        raise NoPod(f'pods "{name}" not found in namespace {namespace}; see: kubectl lablet list')
    if not pod.is_lablet:
        raise click.ClickException(f"pod/{name} in namespace {namespace} is not a lablet; see: kubectl lablet list")
    return pod


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


def why(pod: LabletPod) -> tuple[str, str]:
    """Return reason and message of why a lablet is not Ready."""
    for container in pod.status.container_statuses:
        for state in ("waiting", "terminated"):
            if state in container.state:
                return container.state[state].get("reason", ""), container.state[state].get("message", "")
    for condition in pod.status.conditions:
        if condition.type in {"Ready", "PodScheduled"} and condition.status == "False" and condition.message:
            return condition.reason, condition.message
    return "", ""


def state_of(pod: LabletPod) -> str:
    """Return the state that a lablet reports; PENDING before the first report."""
    return pod.metadata.annotations.get(names.ANNOTATION_STATE, "") or "PENDING"


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

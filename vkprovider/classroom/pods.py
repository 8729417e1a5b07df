"""A lablet's Pod, as those who run a class read and change it."""

from collections.abc import Mapping
from typing import Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.words import has_ended, is_ready, learner_in
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
        OutsideError: The API server refused or did not answer.
    """
    meta = pod.metadata
    held: ChangeHow = {"uid": meta.uid}
    if unchanged:
        held["resource_version"] = meta.resource_version
    body = {"metadata": {"annotations": annotations, **({"labels": labels} if labels else {})}}
    return await pods_in(kube, meta.namespace).patch(meta.name, body, **held)

"""The Deployments of pools, and which Pods are theirs."""

from typing import Final

import msgspec

from vkprovider.classroom.pods import LabletPod
from vkprovider.lablet import names
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource, kind
from vkprovider.platform.objects import Condition, Container, Metadata


class GivingError(Exception):
    """Lablets cannot be given; the text says why, and what to do about it."""


class LabelSelectorRequirement(msgspec.Struct, frozen=True):
    """One of `matchExpressions`."""

    key: str
    operator: str
    values: list[str] = []


class LabelSelector(msgspec.Struct, frozen=True, rename="camel"):
    """A label selector."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []

    @property
    def keys(self) -> set[str]:
        """The labels that decide."""
        return {*self.match_labels, *(requirement.key for requirement in self.match_expressions)}

    @property
    def text(self) -> str:
        """The selector as a query parameter."""
        parts = [f"{key}={value}" for key, value in self.match_labels.items()]
        for need in self.match_expressions:
            match need.operator:
                case "In" | "NotIn":
                    parts.append(f"{need.key} {need.operator.lower()} ({','.join(need.values)})")
                case "Exists":
                    parts.append(need.key)
                case _:
                    parts.append(f"!{need.key}")
        return ",".join(parts)


class _TemplateSpec(msgspec.Struct, frozen=True, rename="camel"):
    runtime_class_name: str = ""
    containers: list[Container] = []


class _Template(msgspec.Struct, frozen=True):
    spec: _TemplateSpec


class _Spec(msgspec.Struct, frozen=True):
    selector: LabelSelector
    template: _Template
    replicas: int = 1


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    observed_generation: int = 0
    replicas: int = 0
    conditions: list[Condition] = []


class Deployment(msgspec.Struct, frozen=True):
    """A Deployment, with the fields that say which Pods it has and should have."""

    metadata: Metadata
    spec: _Spec
    status: _Status = _Status()

    @property
    def selects_by_pool(self) -> bool:
        """Whether a lablet that is given leaves it, so that it ends free ones alone."""
        return names.LABEL_POOL in self.spec.selector.match_labels and not self.spec.selector.match_expressions

    @property
    def hindrance(self) -> str:
        """Why its ReplicaSet makes no lablets; "" if nothing is known to hinder it."""
        failed = [each for each in self.status.conditions if each.type == "ReplicaFailure" and each.status == "True"]
        if failed:
            return f"its ReplicaSet makes no more: {failed[0].message}"
        if not self.spec.template.spec.runtime_class_name:
            return "its template needs the runtimeClassName of a LabletDefinition"
        return "its replicas are 0" if self.spec.replicas == 0 else ""


DEPLOYMENTS: Final = kind("/apis/apps/v1", "deployments", Deployment)


async def deployment_in(deployments: Resource[Deployment], namespace: str, name: str) -> Deployment:
    """Read a Deployment.

    Raises:
        GivingError: There is none.
        OutsideError: It cannot be read.
    """
    if (found := await deployments.get(name)) is None:
        raise GivingError(
            f"deployment/{name} not found in namespace {namespace}; see: kubectl get deployments -n {namespace}"
        )
    return found


class _Target(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""


class _ScalerSpec(msgspec.Struct, frozen=True, rename="camel"):
    scale_target_ref: _Target = _Target()


class _Scaler(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _ScalerSpec = _ScalerSpec()


_SCALERS: Final = kind("/apis/autoscaling/v2", "horizontalpodautoscalers", _Scaler)


async def scaler_of(kube: KubeClient, namespace: str, deployment: str) -> str:
    """Return the name of the HorizontalPodAutoscaler that sets the replicas of a Deployment; "" if none does.

    Raises:
        OutsideError: They cannot be read.
    """
    for scaler in await Resource(kube, _SCALERS, namespace).list():
        target = scaler.spec.scale_target_ref
        if (target.kind, target.name) == ("Deployment", deployment):
            return scaler.metadata.name
    return ""


def scale_command(name: str, namespace: str, replicas: int) -> str:
    """Return the command that scales a Deployment."""
    return f"kubectl scale deployment/{name} --replicas={replicas} -n {namespace}"


def is_replica(pod: LabletPod) -> bool:
    """Return whether a lablet is one of a Deployment's."""
    return pod.is_lablet and any(o.controller and o.kind == "ReplicaSet" for o in pod.metadata.owner_references)

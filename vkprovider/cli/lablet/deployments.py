"""The Deployments of pools, and which Pods are theirs."""

from typing import Final

import click
import msgspec

from vkprovider.api.objects import Metadata
from vkprovider.cli.shared.pods import LabletPod
from vkprovider.kube.resources import Resource, kind


class Requirement(msgspec.Struct, frozen=True):
    """One of `matchExpressions`."""

    key: str
    operator: str
    values: list[str] = []


class Selector(msgspec.Struct, frozen=True, rename="camel"):
    """A label selector."""

    match_labels: dict[str, str] = {}
    match_expressions: list[Requirement] = []

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


class _Template(msgspec.Struct, frozen=True):
    spec: _TemplateSpec


class _Spec(msgspec.Struct, frozen=True):
    selector: Selector
    template: _Template
    replicas: int = 1


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    observed_generation: int = 0
    replicas: int = 0


class Deployment(msgspec.Struct, frozen=True):
    """A Deployment, with the fields that say which Pods it has and should have."""

    metadata: Metadata
    spec: _Spec
    status: _Status = _Status()


DEPLOYMENTS: Final = kind("/apis/apps/v1", "deployments", Deployment)


async def deployment_in(deployments: Resource[Deployment], namespace: str, name: str) -> Deployment:
    """Read a Deployment.

    Raises:
        ClickException: There is none.
        OutsideError: It cannot be read.
    """
    if (found := await deployments.get(name)) is None:
        raise click.ClickException(
            f"deployment/{name} not found in namespace {namespace}; see: kubectl get deployments -n {namespace}"
        )
    return found


def is_replica(pod: LabletPod) -> bool:
    """Return whether a lablet is one of a Deployment's."""
    return pod.is_lablet and any(o.controller and o.kind == "ReplicaSet" for o in pod.metadata.owner_references)

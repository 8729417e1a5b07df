"""The objects of a user lab as they are sent to the API server. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.inputs import tag_of
from vkprovider.lablet.models.status import DefinitionStatus, definition_status
from vkprovider.lablet.ports import INFRASTRUCTURE_NODE_TYPES
from vkprovider.platform import wellknown
from vkprovider.platform.objects import CustomResource, Subject
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.instructors import BINDING, LAB_ROLE

Json = dict[str, Any]

LEARNER_ROLE: Final = "vkprovider-learner"
"""The ClusterRole of a user in the namespace of the own lab."""
CONTAINERS_MAX: Final = 100
"""The most devices of a lab with a container of their own: each is a few hundred bytes of the Pod."""
_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
"""The annotation by which kubectl takes the lab's container without saying so."""
_RBAC: Final = "rbac.authorization.k8s.io"
_ARGO_LABELS: Final = {"argocd.argoproj.io/instance": "nublado-users"}
_ARGO_NOTES: Final = {
    "argocd.argoproj.io/compare-options": "IgnoreExtraneous",
    "argocd.argoproj.io/sync-options": "Prune=false",
}
"""Marks by which Argo CD shows the objects, and leaves them alone."""

_RESTRICTED: Final = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_RESTRICTED_CONTAINER: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""What the Pod Security Standard "restricted" asks for, which a cluster may enforce; a lab in CML needs none of it."""


def metadata(name: str, labels: Mapping[str, str], annotations: Mapping[str, str] | None = None) -> Json:
    """Return the metadata of an object of a user lab.

    Args:
        name: Its name.
        labels: Those of the user, or of the warm lab, with the mark.
        annotations: Its own.
    """
    return {
        "name": name,
        "labels": {**_ARGO_LABELS, wellknown.LABEL_MANAGED_BY: portalnames.PORTAL_PROGRAM, **labels},
        "annotations": {**_ARGO_NOTES, **(annotations or {})},
    }


def secret(name: str, labels: Mapping[str, str], token: str, env: Mapping[str, str]) -> Json:
    """Return the Secret with the token of a user, and the environment that the request brought."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(name, labels),
        "stringData": {**env, "token": token},
    }


def config_map(name: str, labels: Mapping[str, str], data: Mapping[str, str]) -> Json:
    """Return the ConfigMap with the options and the environment that is not secret."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name, labels), "data": dict(data)}


def service_account(name: str, labels: Mapping[str, str]) -> Json:
    """Return the ServiceAccount of the Pod, which is nobody's."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(name, labels),
        "automountServiceAccountToken": False,
    }


def role_binding(name: str, labels: Mapping[str, str], username: str) -> Json:
    """Return the RoleBinding by which a user sees the Pod and its consoles."""
    return _binding(name, labels, LEARNER_ROLE, [{"apiGroup": _RBAC, "kind": "User", "name": username}])


def instructors_binding(labels: Mapping[str, str], subjects: Iterable[Subject]) -> Json:
    """Return the RoleBinding by which the instructors of a class work in one of its labs."""
    return _binding(BINDING, labels, LAB_ROLE, named(subjects))


def named(subjects: Iterable[Subject]) -> list[Json]:
    """Return people as a RoleBinding names them."""
    return [msgspec.to_builtins(subject) for subject in subjects]


def _binding(name: str, labels: Mapping[str, str], role: str, subjects: list[Json]) -> Json:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata(name, labels),
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    }


def device_containers(definition: CustomResource | None, image: str) -> tuple[str, ...]:
    """Return the names of the containers for the devices of a lab; none of a version whose devices nobody lists.

    A container that names no device of its version would keep the lab from starting.

    Args:
        definition: As it is known; None if it is not.
        image: `NAME:VERSION` of it.
    """
    status = definition_status(definition) if definition is not None else DefinitionStatus()
    if not status.version or tag_of(image)[1] != status.version:
        return ()
    devices = (
        each.container
        for each in status.devices
        if each.node_definition not in INFRASTRUCTURE_NODE_TYPES and each.hidden is not True
    )
    return tuple(dict.fromkeys(each for each in devices if each not in {"", names.LAB_CONTAINER}))[:CONTAINERS_MAX]


def pod(
    name: str, labels: Mapping[str, str], annotations: Mapping[str, str], image: str, devices: Sequence[str] = ()
) -> Json:
    """Return the lablet.

    Args:
        name: Its name, and that of its ServiceAccount.
        labels: As in `metadata`.
        annotations: The learner, and when the timeslot ends; none for a warm one.
        image: `NAME:VERSION` of the definition.
        devices: The containers beside that of the lab.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, labels, {_DEFAULT_CONTAINER: names.LAB_CONTAINER, **annotations}),
        "spec": {
            "runtimeClassName": tag_of(image)[0],
            "serviceAccountName": name,
            "automountServiceAccountToken": False,
            "securityContext": _RESTRICTED,
            "containers": [_container(each, image) for each in (names.LAB_CONTAINER, *devices)],
        },
    }


def _container(name: str, image: str) -> Json:
    return {
        "name": name,
        "image": image,
        "stdin": True,  # so that `kubectl exec -it` opens a console
        "tty": True,
        "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}},
        "securityContext": _RESTRICTED_CONTAINER,
    }

"""The objects of user labs as they are sent; Namespaces and Pods change, and end, only as they were seen."""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.inputs import tag_of
from vkprovider.lablet.podspec import RESTRICTED, lablet_container
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Conflict
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.resources import ChangeHow, PartialObject
from vkprovider.platform.objects import Metadata, Pod, Subject
from vkprovider.platform.runtime.context import Context
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.facts import precedence
from vkprovider.portal.pure.leading import BINDING, LAB_ROLE
from vkprovider.portal.pure.portalnames import user_key
from vkprovider.portal.pure.record import LabRecord, record_of

Json = dict[str, Any]

_POD_SECURITY: Final = "pod-security.kubernetes.io/enforce"
LEARNER_ROLE: Final = "vkprovider-learner"
"""The ClusterRole of a user in the namespace of the own lab."""
PARAMETERS_ROLE: Final = "vkprovider-parameter-reader"
"""The ClusterRole of the provider where it may read ConfigMaps and Secrets for the variables of lablets."""
WORKBENCH_ROLE: Final = "vkprovider-workbench"
"""The ClusterRole of the account of a workbench."""
_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
"""The annotation by which kubectl takes the lab's container without saying so."""
_RBAC: Final = "rbac.authorization.k8s.io"
_ARGO_LABELS: Final = {"argocd.argoproj.io/instance": "nublado-users"}
_ARGO_NOTES: Final = {
    "argocd.argoproj.io/compare-options": "IgnoreExtraneous",
    "argocd.argoproj.io/sync-options": "Prune=false",
}
"""Marks by which Argo CD shows the objects, and leaves them alone."""


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


def secret_body(name: str, labels: Mapping[str, str], env: Mapping[str, str]) -> Json:
    """Return the Secret with the part of the environment that is secret."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(name, labels),
        "stringData": dict(env),
    }


def config_map_body(name: str, labels: Mapping[str, str], data: Mapping[str, str]) -> Json:
    """Return the ConfigMap with the environment that is not secret."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name, labels), "data": dict(data)}


def service_account_body(name: str, labels: Mapping[str, str]) -> Json:
    """Return the ServiceAccount of the Pod, which is nobody's."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(name, labels),
        "automountServiceAccountToken": False,
    }


def role_binding_body(name: str, labels: Mapping[str, str], username: str) -> Json:
    """Return the RoleBinding by which a user sees the Pod and its consoles."""
    return _binding(name, labels, LEARNER_ROLE, [{"apiGroup": _RBAC, "kind": "User", "name": username}])


def parameters_body(name: str, labels: Mapping[str, str], home: str) -> Json:
    """Return the RoleBinding by which the provider, which runs in the namespace `home`, reads the environment."""
    provider = {"kind": "ServiceAccount", "namespace": home, "name": wellknown.MANAGER}
    return _binding(name, labels, PARAMETERS_ROLE, [provider])


def workbench_binding_body(name: str, labels: Mapping[str, str], namespace: str) -> Json:
    """Return the RoleBinding by which the account of a workbench, of the same name, opens consoles of its lab."""
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return _binding(name, labels, WORKBENCH_ROLE, [account])


def instructors_body(labels: Mapping[str, str], subjects: Iterable[Subject]) -> Json:
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


def env_from(config_map: str, secret: str = "") -> list[Json]:
    """Return where the variables of a lab come from: a ConfigMap, and a Secret if one is named."""
    found: list[Json] = [{"configMapRef": {"name": config_map}}]
    return [*found, {"secretRef": {"name": secret}}] if secret else found


def pod_body(
    name: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    image: str,
    devices: Sequence[str] = (),
    env: Sequence[Json] = (),
) -> Json:
    """Return the lablet.

    Args:
        name: Its name, and that of its ServiceAccount.
        labels: As in `metadata`.
        annotations: The learner, and when the timeslot ends; none for a warm one.
        image: `NAME:VERSION` of the definition.
        devices: The containers beside that of the lab.
        env: Where the variables of the lab, which are those of all its devices, come from.
    """
    lab, *others = (lablet_container(each, image) for each in (names.LAB_CONTAINER, *devices))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, labels, {_DEFAULT_CONTAINER: names.LAB_CONTAINER, **annotations}),
        "spec": {
            "runtimeClassName": tag_of(image)[0],
            "serviceAccountName": name,
            "automountServiceAccountToken": False,
            "securityContext": RESTRICTED,
            "containers": [{**lab, **({"envFrom": list(env)} if env else {})}, *others],
        },
    }


_ID_BYTES: Final = 8


class Pods:
    """Writes the Pods."""

    def __init__(self, ctx: Context, wrote: Callable[[Pod], None]) -> None:
        """Write nothing yet.

        Args:
            ctx: The replica; its namespace is the mark.
            wrote: Called with each Pod of a user lab as it was written or read: the watch may be late.
        """
        self._whole = ctx.api.pods
        self._pods = ctx.api.pods.metadata_only
        self._selector = f"{portalnames.LABEL_PORTAL}={ctx.namespace}"
        self._wrote = wrote

    async def of_lab(self, namespace: str) -> list[Pod]:
        """Read the Pods of a lab from the API server."""
        found = await self._whole.within(namespace).list(labels=self._selector)
        for each in found:
            self._wrote(each)
        return list(found)

    async def create(
        self,
        namespace: str,
        name: str,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
        image: str,
        guard: Guard,
        devices: Sequence[str] = (),
        env: Sequence[Json] = (),
    ) -> None:
        """Create the Pod, unless there is one of that name."""
        body = pod_body(name, labels, annotations, image, devices, env)
        with suppress(Conflict):
            self._wrote(await self._whole.within(namespace).create(body, guard=guard))

    async def create_from(
        self, namespace: str, name: str, labels: Mapping[str, str], spec: Mapping[str, Any], guard: Guard
    ) -> None:
        """Create a Pod of a spec, unless there is one of that name."""
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata(name, labels), "spec": spec}
        with suppress(Conflict):
            self._wrote(await self._whole.within(namespace).create(body, guard=guard))

    async def change(
        self,
        pod: Pod,
        annotations: Mapping[str, str | None],
        guard: Guard,
        labels: Mapping[str, str] | None = None,
        *,
        unchanged: bool = False,
    ) -> None:
        """Set annotations and labels of the Pod that was seen; None removes an annotation.

        Args:
            pod: As it was seen.
            annotations: What to set.
            guard: Checked right before the write.
            labels: What to set.
            unchanged: Only if it was not written since it was seen.

        Raises:
            Conflict: Another one has its name, or it was written.
            NotFound: It is gone.
        """
        meta = pod.metadata
        change = {"annotations": dict(annotations), **({"labels": dict(labels)} if labels else {})}
        pods = self._whole.within(meta.namespace)
        held: ChangeHow = {"uid": meta.uid, "guard": guard}
        if unchanged:
            held["resource_version"] = meta.resource_version
        self._wrote(await pods.patch(meta.name, {"metadata": change}, **held))

    async def keep_finalizers(self, pod: Pod, kept: Sequence[str], guard: Guard) -> None:
        """Take all finalizers but some from the Pod that was seen.

        Raises:
            Conflict: It has changed.
            NotFound: It is gone.
        """
        meta = pod.metadata
        change = {"metadata": {"finalizers": list(kept) or None}}
        pods = self._pods.within(meta.namespace)
        await pods.patch(meta.name, change, uid=meta.uid, resource_version=meta.resource_version, guard=guard)

    async def delete(self, pod: Pod, guard: Guard) -> None:
        """Ask for the end of the Pod that was seen."""
        meta = pod.metadata
        with suppress(Conflict):  # another one has its name
            await self._pods.within(meta.namespace).delete(meta.name, uid=meta.uid, guard=guard)


class Records:
    """Writes the Namespaces."""

    def __init__(self, ctx: Context, wrote: Callable[[PartialObject], None], *, restricted: bool = False) -> None:
        """Write nothing yet.

        Args:
            ctx: The replica; its namespace is the mark.
            wrote: Called with each Namespace of the portal's as it was written or read: the watch may be late.
            restricted: Whether the API server lets only restricted Pods into new ones, whatever a policy says.
        """
        self._level = {_POD_SECURITY: "restricted"} if restricted else {}
        self._wrote = wrote
        self._namespaces = ctx.api.namespaces
        self._mark = ctx.namespace

    async def create(
        self, name: str, labels: Mapping[str, str], annotations: Mapping[str, str], guard: Guard
    ) -> Metadata:
        """Create a Namespace.

        Raises:
            Conflict: The name is taken.
        """
        body = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": metadata(name, {**labels, **self._level}, annotations),
        }
        made = await self._namespaces.create(body, guard=guard)
        self._wrote(made)
        return made.metadata

    async def read(self, name: str) -> Metadata | None:
        """Read a Namespace from the API server; None if there is none."""
        found = await self._namespaces.get(name)
        return found.metadata if found is not None else None

    async def of_user(self, user: str) -> LabRecord | None:
        """Read the record of a user from the API server, of several the one that stays; None if there is none."""
        selector = f"{portalnames.LABEL_PORTAL}={self._mark},{portalnames.LABEL_USER}={user_key(user)}"
        listed = await self._namespaces.list(labels=selector)
        for each in listed:
            self._wrote(each)
        read = (record_of(each.metadata, self._mark) for each in listed)
        found = [record for record in read if record is not None and record.user == user]
        return min(found, key=precedence, default=None)

    async def patch(
        self,
        record: LabRecord,
        annotations: Mapping[str, str | None],
        guard: Guard,
        labels: Mapping[str, str | None] | None = None,
    ) -> Metadata:
        """Change annotations and labels of a Namespace, unless it was written since it was seen.

        Args:
            record: As it was seen.
            annotations: Those to set; None removes one.
            guard: Called right before the write.
            labels: The same of labels.

        Raises:
            Conflict: It is another one, or was written since.
            NotFound: It is gone.
        """
        change = {"annotations": dict(annotations), **({"labels": dict(labels)} if labels else {})}
        found = await self._namespaces.patch(
            record.namespace,
            {"metadata": change},
            uid=record.uid,
            resource_version=record.resource_version,
            guard=guard,
        )
        self._wrote(found)
        return found.metadata

    async def delete(self, record: LabRecord, guard: Guard) -> None:
        """Delete a Namespace with all that is in it, unless it was written since it was seen.

        Raises:
            Conflict: It is another one, or was written since.
        """
        await self._namespaces.metadata_only.delete(
            record.namespace, uid=record.uid, resource_version=record.resource_version, guard=guard
        )


def new_id() -> str:
    """Return the id of a new operation."""
    return secrets.token_hex(_ID_BYTES)

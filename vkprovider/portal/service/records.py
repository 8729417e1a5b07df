"""Namespaces and Pods of user labs: made, taken, marked and deleted, each only as it was seen."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from vkprovider.platform.errors import Conflict
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.resources import PartialObject
from vkprovider.platform.objects import Metadata, Pod
from vkprovider.platform.runtime.context import Context
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.facts import precedence
from vkprovider.portal.pure.portalnames import user_key
from vkprovider.portal.pure.record import LabRecord, record_of
from vkprovider.portal.service import objects
from vkprovider.portal.service.objects import metadata

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
    ) -> None:
        """Create the Pod, unless there is one of that name."""
        body = objects.pod(name, labels, annotations, image, devices)
        with suppress(Conflict):
            self._wrote(await self._whole.within(namespace).create(body, guard=guard))

    async def change(
        self, pod: Pod, annotations: Mapping[str, str | None], guard: Guard, labels: Mapping[str, str] | None = None
    ) -> None:
        """Set annotations and labels of the Pod that was seen; None removes an annotation.

        Raises:
            Conflict: Another one has its name.
            NotFound: It is gone.
        """
        meta = pod.metadata
        change = {"annotations": dict(annotations), **({"labels": dict(labels)} if labels else {})}
        pods = self._whole.within(meta.namespace)
        self._wrote(await pods.patch(meta.name, {"metadata": change}, uid=meta.uid, guard=guard))

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

    def __init__(self, ctx: Context, wrote: Callable[[PartialObject], None]) -> None:
        """Write nothing yet.

        Args:
            ctx: The replica; its namespace is the mark.
            wrote: Called with each Namespace of the portal's as it was written or read: the watch may be late.
        """
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
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(name, labels, annotations)}
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

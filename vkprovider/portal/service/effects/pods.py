"""The Pods of user labs: made, given to a user, extended, reset and deleted."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from vkprovider.platform.errors import Conflict
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.objects import Pod
from vkprovider.platform.runtime.context import Context
from vkprovider.portal.pure import portalnames
from vkprovider.portal.service.effects import objects


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
        """Read the Pods of a lab from the API server.

        Raises:
            OutsideError: The API server refused or did not answer.
        """
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
        """Create the Pod, unless there is one of that name.

        Raises:
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
        """
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
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
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
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
        """
        meta = pod.metadata
        change = {"metadata": {"finalizers": list(kept) or None}}
        pods = self._pods.within(meta.namespace)
        await pods.patch(meta.name, change, uid=meta.uid, resource_version=meta.resource_version, guard=guard)

    async def delete(self, pod: Pod, guard: Guard) -> None:
        """Ask for the end of the Pod that was seen.

        Raises:
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
        """
        meta = pod.metadata
        with suppress(Conflict):  # another one has its name
            await self._pods.within(meta.namespace).delete(meta.name, uid=meta.uid, guard=guard)

"""The RuntimeClass of each LabletDefinition; one that is not ours is never touched."""

import contextlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from vkprovider.api import names
from vkprovider.api.errors import Conflict, InputError, NotFound
from vkprovider.api.models import LabletDefinitionSpec
from vkprovider.api.objects import CustomResource, RuntimeClass
from vkprovider.controllers.context import Context
from vkprovider.domain.definition import content as contents
from vkprovider.domain.definition.content import Content

_encode: Final = msgspec.json.encode
_runtime_class: Final = msgspec.json.Decoder(RuntimeClass)
_RUNTIME_CLASSES: Final = "/apis/node.k8s.io/v1/runtimeclasses"


class RuntimeClasses:
    """The RuntimeClasses of our definitions."""

    def __init__(self, ctx: Context, known: Callable[[str], RuntimeClass | None]) -> None:
        """Take what is known elsewhere.

        Args:
            ctx: The replica.
            known: The RuntimeClass of a name.
        """
        self._ctx = ctx
        self._known = known

    async def write(self, resource: CustomResource, spec: LabletDefinitionSpec, kept: list[Content]) -> None:
        """Have new pods be charged for whatever they may run.

        Raises:
            InputError: `RuntimeClassConflict`.
            OutsideError: The API server did not take it.
        """
        name = resource.metadata.name
        wanted = contents.runtime_class(
            name, resource.metadata.uid, self._ctx.installation, spec, contents.charged(kept)
        )
        found = self._known(name)
        if found is not None and self._is_ours(found, resource) and contents.same_runtime_class(found, wanted):
            return
        path = f"{_RUNTIME_CLASSES}/{name}"
        try:
            found = _runtime_class.decode(await self._ctx.kube.get(path))
        except NotFound:
            try:
                await self._ctx.kube.create(_RUNTIME_CLASSES, _encode(wanted))
            except Conflict:
                raise InputError(
                    "RuntimeClassConflict", f"RuntimeClass {name} was just made by somebody else"
                ) from None
            return
        if found.metadata.annotations.get(names.ANNOTATION_INSTALLATION) != self._ctx.installation:
            raise InputError(
                "RuntimeClassConflict",
                f"RuntimeClass {name} exists and is not of this definition; rename the LabletDefinition, or delete it",
            )
        if self._is_ours(found, resource) and contents.same_runtime_class(found, wanted):
            return
        await self._ctx.kube.merge_patch(path, _encode(_patch(found, wanted)))

    async def remove(self, resource: CustomResource) -> None:
        """Delete the RuntimeClass of a definition that goes.

        Raises:
            OutsideError: It did not work.
        """
        found = self._known(resource.metadata.name)
        if found is not None and self._is_ours(found, resource):
            with contextlib.suppress(NotFound, Conflict):
                path = f"{_RUNTIME_CLASSES}/{resource.metadata.name}"
                await self._ctx.kube.delete(path, uid=found.metadata.uid)

    def _is_ours(self, found: RuntimeClass, resource: CustomResource) -> bool:
        return found.metadata.annotations.get(names.ANNOTATION_INSTALLATION) == self._ctx.installation and any(
            o.uid == resource.metadata.uid for o in found.metadata.owner_references
        )


def _patch(found: RuntimeClass, wanted: dict[str, Any]) -> dict[str, Any]:
    """Make a merge patch that leaves nothing of what was there before."""
    overhead: dict[str, str | None] = dict(wanted["overhead"]["podFixed"])
    for key in found.overhead.get("podFixed", {}):
        overhead.setdefault(key, None)
    selector: dict[str, str | None] = dict(wanted["scheduling"]["nodeSelector"])
    for key in found.scheduling.get("nodeSelector", {}):
        selector.setdefault(key, None)
    return {
        "metadata": {  # it may have been left by an earlier definition of that name
            "resourceVersion": found.metadata.resource_version,
            "ownerReferences": wanted["metadata"]["ownerReferences"],
        },
        "overhead": {"podFixed": overhead},
        "scheduling": {"nodeSelector": selector, "tolerations": wanted["scheduling"]["tolerations"]},
    }

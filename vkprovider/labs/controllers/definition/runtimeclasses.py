"""The RuntimeClass of each LabletDefinition; a RuntimeClass of another owner is never touched."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vkprovider.lablet.models.definition import LabletDefinitionSpec
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.pure.definition import content as contents
from vkprovider.labs.pure.definition.content import Content
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Conflict, InputError
from vkprovider.platform.objects import CustomResource, RuntimeClass
from vkprovider.platform.runtime.context import Context


@dataclass(frozen=True, slots=True)
class RuntimeClasses:
    """Writes and deletes the RuntimeClasses of our definitions.

    Attributes:
        ctx: The replica.
        known: Returns the RuntimeClass of a name, as the informer knows it.
    """

    ctx: Context
    known: Callable[[str], RuntimeClass | None]

    async def write(self, resource: CustomResource, spec: LabletDefinitionSpec, versions: list[Content]) -> None:
        """Make the RuntimeClass charge new Pods for the largest of the versions that they may run.

        Raises:
            InputError: `RuntimeClassConflict`.
        """
        name, api = resource.metadata.name, self.ctx.api.runtime_classes
        charge, few = contents.charged(versions), contents.versions_of_few(versions)
        wanted = contents.runtime_class(name, resource.metadata.uid, self.ctx.installation, spec, charge, few)
        if self._is_current(self.known(name), resource, wanted):
            return
        found = await api.get(name)
        if found is None:
            try:
                await api.create(wanted)
            except Conflict:
                raise InputError(
                    DefinitionReason.RUNTIME_CLASS_CONFLICT, f"RuntimeClass {name} was just created by another client"
                ) from None
            return
        if found.metadata.annotations.get(wellknown.ANNOTATION_INSTALLATION) != self.ctx.installation:
            raise InputError(
                DefinitionReason.RUNTIME_CLASS_CONFLICT,
                f"RuntimeClass {name} exists and is not of this definition; rename the LabletDefinition, or delete it",
            )
        if not self._is_current(found, resource, wanted):
            await api.patch(name, _patch(found, wanted), resource_version=found.metadata.resource_version)

    async def remove(self, resource: CustomResource) -> None:
        """Delete the RuntimeClass of a definition that is being deleted."""
        found = self.known(resource.metadata.name)
        if found is not None and self._belongs_to(found, resource):
            with contextlib.suppress(Conflict):  # it was replaced by another one of that name
                await self.ctx.api.runtime_classes.delete(resource.metadata.name, uid=found.metadata.uid)

    def _is_current(self, found: RuntimeClass | None, resource: CustomResource, wanted: dict[str, Any]) -> bool:
        return found is not None and self._belongs_to(found, resource) and contents.same_runtime_class(found, wanted)

    def _belongs_to(self, found: RuntimeClass, resource: CustomResource) -> bool:
        return found.metadata.annotations.get(wellknown.ANNOTATION_INSTALLATION) == self.ctx.installation and any(
            owner.uid == resource.metadata.uid for owner in found.metadata.owner_references
        )


def _patch(found: RuntimeClass, wanted: dict[str, Any]) -> dict[str, Any]:
    """Build a merge patch that also deletes the keys that are no longer wanted."""
    overhead: dict[str, str | None] = dict(wanted["overhead"]["podFixed"])
    for key in found.overhead.get("podFixed", {}):
        overhead.setdefault(key, None)
    selector: dict[str, str | None] = dict(wanted["scheduling"]["nodeSelector"])
    for key in found.scheduling.get("nodeSelector", {}):
        selector.setdefault(key, None)
    return {
        # An earlier definition of that name may have left it.
        "metadata": {"ownerReferences": wanted["metadata"]["ownerReferences"]},
        "overhead": {"podFixed": overhead},
        "scheduling": {"nodeSelector": selector, "tolerations": wanted["scheduling"]["tolerations"]},
    }

"""The ConfigMap that a LabletDefinition names as its source → the text of its topology.

An inline topology needs no reading; content packages come from `packages`.
"""

from vkprovider.api.errors import Forbidden, InputError
from vkprovider.api.models.definition import ConfigMapSource
from vkprovider.api.reasons import DefinitionReason
from vkprovider.runtime.context import Context


async def read_config_map(ctx: Context, where: ConfigMapSource) -> str:
    """Read a topology from a ConfigMap.

    Raises:
        InputError: `SourceNotFound`; `SourceForbidden`, with the command that grants the right.
        OutsideError: The API server did not answer.
    """
    try:
        found = await ctx.api.config_maps.within(where.namespace).get(where.name)
    except Forbidden:
        raise InputError(
            DefinitionReason.SOURCE_FORBIDDEN,
            f"ConfigMap {where.namespace}/{where.name} may not be read; bind it: kubectl -n {where.namespace} "
            "create rolebinding vkprovider-topologies --clusterrole=vkprovider-topology-reader "
            f"--serviceaccount={ctx.namespace}:vkprovider",
        ) from None
    if found is None:
        raise InputError(DefinitionReason.SOURCE_NOT_FOUND, f"ConfigMap {where.namespace}/{where.name} does not exist")
    if where.key not in found.data:
        keys = ", ".join(sorted(found.data)) or "none"
        raise InputError(
            DefinitionReason.SOURCE_NOT_FOUND,
            f"ConfigMap {where.namespace}/{where.name} has no key {where.key!r}; it has {keys}",
        )
    return found.data[where.key]

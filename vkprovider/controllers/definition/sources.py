"""The source of a LabletDefinition → its topology: what stands in the spec itself or in a ConfigMap.

Content packages come from `packages`.
"""

from typing import Final

import msgspec

from vkprovider.api.errors import Forbidden, InputError, NotFound
from vkprovider.api.models import ConfigMapSource
from vkprovider.api.objects import ConfigMap
from vkprovider.controllers.context import Context

_config_map: Final = msgspec.json.Decoder(ConfigMap)


async def read_config_map(ctx: Context, where: ConfigMapSource) -> str:
    """Read a topology from a ConfigMap.

    Raises:
        InputError: `SourceNotFound` or `SourceForbidden`, with the command that helps.
        OutsideError: The API server did not answer.
    """
    path = f"/api/v1/namespaces/{where.namespace}/configmaps/{where.name}"
    try:
        found = _config_map.decode(await ctx.kube.get(path))
    except NotFound:
        raise InputError("SourceNotFound", f"ConfigMap {where.namespace}/{where.name} does not exist") from None
    except Forbidden:
        raise InputError(
            "SourceForbidden",
            f"ConfigMap {where.namespace}/{where.name} may not be read; bind it: kubectl -n {where.namespace} "
            "create rolebinding vkprovider-topologies --clusterrole=vkprovider-topology-reader "
            f"--serviceaccount={ctx.namespace}:vkprovider",
        ) from None
    if where.key not in found.data:
        keys = ", ".join(sorted(found.data)) or "none"
        raise InputError(
            "SourceNotFound", f"ConfigMap {where.namespace}/{where.name} has no key {where.key!r}; it has {keys}"
        )
    return found.data[where.key]

"""The ConfigMap that a LabletDefinition names as its source → the text of its topology.

An inline topology needs no reading; content packages come from `packages`.
"""

import base64
import codecs

from vkprovider.lablet.models.definition import ConfigMapSource
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.platform.errors import Forbidden, InputError
from vkprovider.platform.runtime.context import Context


async def read_config_map(ctx: Context, where: ConfigMapSource) -> str:
    """Read a topology from a ConfigMap.

    Raises:
        InputError: `SourceNotFound`; `SourceForbidden`, with the command that grants the right; `TopologyInvalid`, if
            it is not UTF-8.
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
    if where.key in found.binary_data:
        return _text(where, base64.b64decode(found.binary_data[where.key]))
    if where.key not in found.data:
        keys = ", ".join(sorted({*found.data, *found.binary_data})) or "none"
        raise InputError(
            DefinitionReason.SOURCE_NOT_FOUND,
            f"ConfigMap {where.namespace}/{where.name} has no key {where.key!r}; it has {keys}",
        )
    return found.data[where.key]


def _text(where: ConfigMapSource, data: bytes) -> str:
    """Decode a file that a client has put into `binaryData`: kubectl does so with each that is not UTF-8.

    Raises:
        InputError: `TopologyInvalid`: it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        encoding = "UTF-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "ISO-8859-1"
    raise InputError(
        DefinitionReason.TOPOLOGY_INVALID,
        f"{where.key!r} of ConfigMap {where.namespace}/{where.name} is not UTF-8, probably {encoding}: convert it "
        f"(iconv -f {encoding} -t UTF-8 FILE > NEW) or save it as UTF-8, and create the ConfigMap again",
    )

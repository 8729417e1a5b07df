"""The claims of workers, whoever owns them, read from the API server: for what one replica's memory cannot tell.

"Could not read" is never "no claims": who is about to drop something gets an error instead of a shorter list.
"""

from typing import Final

import msgspec

from vkprovider.api import names
from vkprovider.api.errors import NotFound
from vkprovider.api.objects import ConfigMap
from vkprovider.controllers.context import Context
from vkprovider.domain.claims import claim as claims
from vkprovider.domain.claims.claim import Claim


class _ConfigMaps(msgspec.Struct, frozen=True):
    items: list[ConfigMap]


_one: Final = msgspec.json.Decoder(ConfigMap)
_list: Final = msgspec.json.Decoder(_ConfigMaps)


async def of_all(ctx: Context) -> list[Claim]:
    """Read the claims of every worker.

    Raises:
        InputError: `ClaimStoreInvalid`: a worker's claims cannot be read, and may hold anything.
        OutsideError: The API server was no help.
    """
    selector = {"labelSelector": f"{names.LABEL_COMPONENT}={names.COMPONENT_CLAIMS}"}
    stores = _list.decode(await ctx.kube.get(_path(ctx), selector)).items
    return [claim for store in stores for claim in _rows(ctx, store).values()]


async def of_worker(ctx: Context, worker: str) -> dict[str, Claim]:
    """Read the claims of one worker, by Pod UID; none if there is no store for it.

    Raises:
        InputError: `ClaimStoreInvalid`.
        OutsideError: The API server was no help.
    """
    try:
        raw = await ctx.kube.get(f"{_path(ctx)}/{names.claims_name(worker)}")
    except NotFound:
        return {}
    return _rows(ctx, _one.decode(raw))


def _path(ctx: Context) -> str:
    return f"/api/v1/namespaces/{ctx.namespace}/configmaps"


def _rows(ctx: Context, store: ConfigMap) -> dict[str, Claim]:
    worker = store.metadata.name.removesuffix(names.claims_name(""))
    return claims.read(store, worker=worker, installation=ctx.installation).claims

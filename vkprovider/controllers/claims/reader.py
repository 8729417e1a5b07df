"""The claims of all workers, whichever replica owns them, read from the API server.

"Could not read" is never "no claims": a caller that is about to delete something gets an error, not a shorter list.
"""

from vkprovider.api import names
from vkprovider.api.objects import ConfigMap
from vkprovider.controllers.context import Context
from vkprovider.domain.claims import claim as claims
from vkprovider.domain.claims.claim import Claim


async def of_all(ctx: Context) -> list[Claim]:
    """Read the claims of every worker.

    Raises:
        InputError: `ClaimStoreInvalid`: the claims of a worker cannot be read, and may name anything.
        OutsideError: The API server did not answer, or refused.
    """
    stores = await ctx.api.config_maps.list(labels=f"{names.LABEL_COMPONENT}={names.COMPONENT_CLAIMS}")
    return [claim for store in stores for claim in _rows(ctx, store).values()]


async def of_worker(ctx: Context, worker: str) -> dict[str, Claim]:
    """Read the claims of one worker, by Pod UID; none if it has no ConfigMap of claims.

    Raises:
        InputError: `ClaimStoreInvalid`.
        OutsideError: The API server did not answer, or refused.
    """
    store = await ctx.api.config_maps.get(names.claims_name(worker))
    return _rows(ctx, store) if store is not None else {}


def _rows(ctx: Context, store: ConfigMap) -> dict[str, Claim]:
    worker = store.metadata.name.removesuffix(names.claims_name(""))
    return claims.read(store, worker=worker, installation=ctx.installation).claims

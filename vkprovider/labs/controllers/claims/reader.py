"""The claims of all workers, whichever replica owns them, read from the API server.

"Could not read" is never "no claims": a caller that is about to delete something gets an error, not a shorter list.
"""

from vkprovider.lablet import names
from vkprovider.labs.pure.claims import document
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.platform.errors import NotFound, Unavailable
from vkprovider.platform.objects import ConfigMap, CustomResource
from vkprovider.platform.runtime.context import Context


async def of_all(ctx: Context) -> list[Claim]:
    """Read the claims of every worker.

    Raises:
        InputError: `ClaimStoreInvalid`: the claims of a worker cannot be read, and may name anything.
        OutsideError: The API server did not answer, or refused; or the claims of a worker were lost.
    """
    try:
        workers = await ctx.api.workers.list()
    except NotFound:
        workers = []  # the CRD was deleted, and every CMLWorker with it; each took its claims along
    stores = await ctx.api.config_maps.list(labels=f"{names.LABEL_COMPONENT}={names.COMPONENT_CLAIMS}")
    found = {store.metadata.name for store in stores}
    for worker in workers:
        if names.claims_name(worker.metadata.name) not in found:
            _check_unused(worker)
    return [claim for store in stores for claim in _rows(ctx, store).values()]


async def of_worker(ctx: Context, worker: str) -> dict[str, Claim]:
    """Read the claims of one worker, by Pod UID; none if it has no ConfigMap of claims.

    Raises:
        InputError: `ClaimStoreInvalid`.
    """
    store = await ctx.api.config_maps.get(names.claims_name(worker))
    if store is not None:
        return _rows(ctx, store)
    if (resource := await ctx.api.workers.get(worker)) is not None:
        _check_unused(resource)
    return {}


def _check_unused(worker: CustomResource) -> None:
    """Check that a worker without a ConfigMap of claims never had one.

    Raises:
        Unavailable: Its claims were lost, and are not rebuilt yet.
    """
    if document.may_have_claims(worker):
        raise Unavailable(f"the claims of worker {worker.metadata.name} were lost and are not rebuilt yet")


def _rows(ctx: Context, store: ConfigMap) -> dict[str, Claim]:
    worker = names.worker_of_claims(store.metadata.name)
    return document.read(store, worker=worker, installation=ctx.installation).claims

"""Opens a worker as its CMLWorker says: where it is, whom to trust, who we are."""

from vkprovider.api.errors import InputError
from vkprovider.api.models import CMLWorkerSpec
from vkprovider.cml.factory import open_labs
from vkprovider.cml.spi import Labs
from vkprovider.cml.stats import WorkerStats, open_worker_stats
from vkprovider.controllers.context import Context
from vkprovider.controllers.worker.credentials import reader
from vkprovider.kube.client import Guard, user_agent


def open_worker(ctx: Context, spec: CMLWorkerSpec, guard: Guard | None = None) -> Labs:
    """Open a worker's labs; nothing is sent before the first call.

    Args:
        ctx: The replica.
        spec: The worker's.
        guard: Called right before a request is written; None for who only reads.

    Raises:
        InputError: `TunnelUnsupported`, `WorkerUrlInvalid` or `CaBundleInvalid`.
    """
    if spec.tunnel != "direct":
        raise InputError("TunnelUnsupported", f"spec.tunnel: {spec.tunnel} is not there yet, only direct is")
    return open_labs(
        spec.url,
        reader(ctx, spec),
        verify=not spec.tls.insecure_skip_verify,
        ca_bundle=spec.tls.ca_bundle,
        guard=guard,
        user_agent=user_agent(ctx.replica),
    )


def open_stats(ctx: Context, spec: CMLWorkerSpec) -> WorkerStats | None:
    """Open a worker's statistics; None unless its CMLWorker asks for them.

    Raises:
        InputError: `WorkerUrlInvalid` or `CaBundleInvalid`.
    """
    if spec.stats != "On":
        return None
    return open_worker_stats(
        spec.url, reader(ctx, spec), verify=not spec.tls.insecure_skip_verify, ca_bundle=spec.tls.ca_bundle
    )

"""What the program follows: Services with load balancers, addresses of all, EndpointSlices, and the CML workers."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import msgspec

from vkprovider.mux.index import AddressedService, MuxIndex, Service, slim_addressed, slim_service
from vkprovider.mux.pure.endpoints import Network, Reserved, canonical
from vkprovider.platform import wellknown
from vkprovider.platform.kube.informer import ALERT, Informer
from vkprovider.platform.objects import CustomResource, EndpointSlice
from vkprovider.platform.runtime.context import Context

_KEPT_LABELS: Final = frozenset({wellknown.LABEL_SERVICE_NAME})


@dataclass(frozen=True, slots=True)
class MuxInformers:
    """What is followed."""

    services: Informer[Service]
    slices: Informer[EndpointSlice]
    workers: Informer[CustomResource]
    addressed: Informer[AddressedService]


def informers(ctx: Context, prefix: str) -> MuxInformers:
    """Describe what is followed; nothing is read before the informers run."""
    return MuxInformers(
        services=Informer(
            ctx.kube,
            "/api/v1/services",
            Service,
            name="services",
            field_selector="spec.type=LoadBalancer",
            slim=partial(slim_service, prefix=prefix),
            patience=ALERT,
        ),
        slices=Informer(
            ctx.kube,
            "/apis/discovery.k8s.io/v1/endpointslices",
            EndpointSlice,
            name="endpointslices",
            slim=slim_slice,
            patience=ALERT,
        ),
        workers=Informer(
            ctx.kube, f"/apis/{wellknown.API_VERSION}/cmlworkers", CustomResource, name="cmlworkers", patience=ALERT
        ),
        addressed=Informer(
            ctx.kube,
            "/api/v1/services",
            AddressedService,
            name="clusterips",
            slim=slim_addressed,
            patience=ALERT,
        ),
    )


def slim_slice(each: EndpointSlice) -> EndpointSlice:
    """Return a slice without the annotations and most labels of those of other programs: there may be thousands."""
    meta = each.metadata
    if wellknown.LABEL_SLICE_MANAGED_BY in meta.labels and meta.labels[wellknown.LABEL_SLICE_MANAGED_BY].startswith(
        wellknown.MANAGER
    ):
        return each
    labels = {key: value for key, value in meta.labels.items() if key in _KEPT_LABELS}
    return msgspec.structs.replace(each, metadata=msgspec.structs.replace(meta, labels=labels, annotations={}))


def reserved_addresses(objects: MuxInformers, index: MuxIndex, ctx: Context, others: tuple[Network, ...]) -> Reserved:
    """Return the addresses for which a Pod must vouch; `others` are those of the settings."""
    return Reserved(
        worker_addresses(objects.workers.items.values()),
        index.api_servers() | {_host(ctx.kube.server)} - {""},
        index.cluster_ips,
        others,
    )


def worker_addresses(workers: Iterable[CustomResource]) -> frozenset[str]:
    """Return the IP addresses of CML workers: as they are written, as they were resolved, and those of their URLs."""
    texts = [
        text
        for worker in workers
        for text in (worker.spec.get("address"), worker.status.get("address"), _host(worker.spec.get("url")))
    ]
    return frozenset(canonical(str(text)) for text in texts if text)


def _host(url: object) -> str:
    """Return the host of a URL if it is an IP address."""
    try:
        host = urlsplit(str(url or "")).hostname or ""
        return str(ipaddress.ip_address(host)) if host else ""
    except ValueError:
        return ""

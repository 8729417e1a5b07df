"""Slim structs of Services and EndpointSlices: the fields of which it depends where connections go."""

import msgspec

from vkprovider.api.objects import Metadata


class SpecPort(msgspec.Struct, frozen=True, gc=False):
    """A port of a Service."""

    port: int
    name: str = ""
    protocol: str = "TCP"


class ServiceSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of a Service's spec that we read."""

    type: str = "ClusterIP"
    ports: tuple[SpecPort, ...] = ()
    load_balancer_source_ranges: tuple[str, ...] = ()


class Service(msgspec.Struct, frozen=True, gc=False):
    """A Service."""

    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()


class SlicePort(msgspec.Struct, frozen=True, gc=False):
    """A port at each endpoint of an EndpointSlice; None for a number means every port."""

    name: str | None = None
    protocol: str | None = None
    port: int | None = None


class EndpointConditions(msgspec.Struct, frozen=True, gc=False):
    """The state of an endpoint; None for `ready` is to be taken as True."""

    ready: bool | None = None


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """An endpoint; its addresses are the same endpoint, and consumers use the first."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()


class EndpointSlice(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An EndpointSlice; `null` stands for an empty list."""

    metadata: Metadata
    address_type: str = "IPv4"
    endpoints: tuple[Endpoint, ...] | None = ()
    ports: tuple[SlicePort, ...] | None = ()

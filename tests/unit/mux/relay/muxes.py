"""Services and EndpointSlices, as the API server writes them."""

import json
from typing import Any

import msgspec

from vkprovider.mux.relay.wanted import MuxService
from vkprovider.platform.objects import EndpointSlice


def service(*ports: tuple[str, int] | tuple[str, int, str], ranges: tuple[str, ...] = ()) -> MuxService:
    """Return a mux with these ports: name, number, and a protocol other than TCP."""
    spec: dict[str, Any] = {
        "type": "LoadBalancer",
        "ports": [{"name": each[0], "port": each[1], "protocol": (*each, "TCP")[2]} for each in ports],
    }
    if ranges:
        spec["loadBalancerSourceRanges"] = list(ranges)
    document = {"metadata": {"name": "labs", "namespace": "muxes"}, "spec": spec}
    return msgspec.json.decode(json.dumps(document), type=MuxService)


def endpoint_slice(
    ports: list[dict[str, Any]] | None, *addresses: str, ready: bool | None = True, kind: str = "IPv4", **more: bool
) -> EndpointSlice:
    """Return an EndpointSlice whose endpoints are all ready, or not, or do not say; with further conditions."""
    conditions = {**({} if ready is None else {"ready": ready}), **more}
    endpoints = [{"addresses": [address], "conditions": conditions} for address in addresses]
    document = {
        "metadata": {"name": "labs-1", "namespace": "muxes"},
        "addressType": kind,
        "endpoints": endpoints or None,
        "ports": ports,
    }
    return msgspec.json.decode(json.dumps(document), type=EndpointSlice)


def port(name: str, number: int | None, protocol: str = "TCP") -> dict[str, Any]:
    """Return a port of an EndpointSlice."""
    return {"name": name, "port": number, "protocol": protocol}

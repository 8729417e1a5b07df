"""What carries the backends of a mux: EndpointSlices, or one object of the kind Endpoints.

A channel has one slice of the mux for each of its own: a changed backend is one write of one slice.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vkprovider.lablet import names
from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.decide import Plan
from vkprovider.mux.pure.endpoints import Backends, collect_channel_endpoints, written_endpoint
from vkprovider.mux.pure.facts import Mux, MuxRef, Owner, ServicePort, annotation_key
from vkprovider.mux.pure.state import DISCARD
from vkprovider.platform import wellknown
from vkprovider.platform.objects import Endpoint, EndpointConditions, EndpointSlice
from vkprovider.platform.ports.allocator import UDP

_NAME_CHARS: Final = 40
_HASH_CHARS: Final = 16
_NO_SLICE: Final = ""
"""Stands for the name of a channel's slice where the backend is none of the channel's."""
_PORTS_MAX: Final = 100
"""The ports of one slice, at most."""
_DISCARDS: Final = frozenset(DISCARD.values())
_READY: Final = EndpointConditions(ready=True)
_NOT_READY: Final = EndpointConditions(ready=False)
_LEAVING: Final = EndpointConditions(ready=False, serving=True, terminating=True)


class Source(NamedTuple):
    """Backends of a channel, as one EndpointSlice has them.

    Attributes:
        name: The name of that slice.
        address_type: `IPv4` or `IPv6`.
        backends: Under the names of the channel's ports, or of the mux's.
    """

    name: str
    address_type: str
    backends: Backends


Sources = Mapping[Owner, Sequence[Source]]


class MuxObject(NamedTuple):
    """The Service of a mux, as far as what belongs to it names it."""

    ref: MuxRef
    uid: str
    prefix: str


def collect_sources(plan: Plan, found: Mapping[Owner, Iterable[Source]]) -> dict[Owner, tuple[Source, ...]]:
    """Return the backends of a mux by channel and slice, under the names of its ports; see `collect_mux_endpoints`."""
    collected: dict[Owner, tuple[Source, ...]] = {}
    for owner, mapped in plan.mapped.items():
        sources = tuple(
            source._replace(backends=backends)
            for source in found.get(owner, ())
            for backends in collect_channel_endpoints(mapped, [source.backends])
        )
        if sources:
            collected[owner] = sources
    return collected


def with_discards(plan: Plan, sources: Sources, families: Iterable[str]) -> dict[Owner, tuple[Source, ...]]:
    """Return the backends of a mux with those that end open flows: `DISCARD` for each UDP port that no backend serves.

    Args:
        plan: What was decided.
        sources: The backends of its channels.
        families: `spec.ipFamilies` of the mux.
    """
    idle: dict[Owner, list[ServicePort]] = {}
    for drain in plan.drains:
        idle.setdefault(drain.owner, []).append(drain.port)
    for owner, mapped in plan.mapped.items():
        ready = {port.name for its in sources.get(owner, ()) if its.backends.serves for port in its.backends.ports}
        ports = [ServicePort(each.name, each.row.mux_port, UDP) for each in mapped if each.row.protocol == UDP]
        if waiting := [port for port in ports if port.name not in ready]:
            idle.setdefault(owner, []).extend(waiting)
    added = {
        owner: tuple(
            Source(_NO_SLICE, family, Backends(tuple(ports), ready=(DISCARD[family],)))
            for family in families
            if family in DISCARD
        )
        for owner, ports in idle.items()
    }
    return {owner: (*sources.get(owner, ()), *added.get(owner, ())) for owner in (*sources, *(added.keys() - sources))}


def last_discards(mux: Mux, families: Iterable[str]) -> dict[Owner, tuple[Source, ...]]:
    """Return the backends of a mux that ends: `DISCARD` for each of its UDP ports; none if it has no such port.

    Args:
        mux: The mux.
        families: Its `spec.ipFamilies`.
    """
    ports = [port for port in mux.ports if port.protocol == UDP]
    sources = tuple(
        Source(str(first), family, Backends(tuple(ports[first : first + _PORTS_MAX]), ready=(DISCARD[family],)))
        for family in families
        if family in DISCARD
        for first in range(0, len(ports), _PORTS_MAX)
    )
    return {Owner(*mux.ref): sources} if sources else {}


def is_ours(found: EndpointSlice) -> bool:
    """Return whether a slice is one of those that are written here."""
    return found.metadata.labels.get(wellknown.LABEL_SLICE_MANAGED_BY) == names.MUX_PROXY


def forwarded_udp(own: Iterable[EndpointSlice]) -> frozenset[str]:
    """Return the names of the UDP ports that slices of a mux lead to a backend."""
    return frozenset(
        port.name
        for each in own
        if any(address not in _DISCARDS for endpoint in each.endpoints or () for address in endpoint.addresses)
        for port in each.ports or ()
        if port.protocol == UDP
    )


def own_labels(ref: MuxRef) -> dict[str, str]:
    """Return the labels by which the slices of a mux are found, here and by what forwards connections."""
    return {wellknown.LABEL_SERVICE_NAME: ref.name, wellknown.LABEL_SLICE_MANAGED_BY: names.MUX_PROXY}


def wanted_slices(mux: MuxObject, sources: Sources) -> dict[str, dict[str, Any]]:
    """Return the EndpointSlices of a mux, by name."""
    wanted = {}
    for owner, its in sources.items():
        for source in its:
            body = _slice(mux, owner, source)
            wanted[body["metadata"]["name"]] = body
    return wanted


def differs(found: EndpointSlice, wanted: Mapping[str, Any]) -> bool:
    """Return whether a slice is not as it should be; its type of address cannot change and is part of its name."""
    meta = wanted["metadata"]
    its = found.metadata
    return (
        _read(found) != (wanted["endpoints"], wanted["ports"])
        or any(its.labels.get(key) != value for key, value in meta["labels"].items())
        or any(its.annotations.get(key) != value for key, value in meta["annotations"].items())
        or [owner.uid for owner in its.owner_references] != [owner["uid"] for owner in meta["ownerReferences"]]
    )


def _read(found: EndpointSlice) -> tuple[list[Any], list[Any]]:
    endpoints = [written_endpoint(endpoint) for endpoint in found.endpoints or ()]
    ports = [{"name": port.name, "port": port.port, "protocol": port.protocol} for port in found.ports or ()]
    return endpoints, ports


def _slice(mux: MuxObject, owner: Owner, source: Source) -> dict[str, Any]:
    backends = source.backends
    kinds = ((backends.ready, _READY), (backends.not_ready, _NOT_READY), (backends.leaving, _LEAVING))
    endpoints = [Endpoint([address], conditions) for addresses, conditions in kinds for address in addresses]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": _name(mux.ref, owner, source),
            "namespace": mux.ref.namespace,
            "labels": {**own_labels(mux.ref), **_labels()},
            "annotations": _annotations(mux, [owner]),
            "ownerReferences": [_owner(mux)],
        },
        "addressType": source.address_type,
        "endpoints": [written_endpoint(endpoint) for endpoint in endpoints],
        "ports": _ports(backends.ports),
    }


def wanted_endpoints(mux: MuxObject, sources: Sources) -> dict[str, Any]:
    """Return the Endpoints of a mux."""
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": mux.ref.name,
            "namespace": mux.ref.namespace,
            "labels": _labels(),
            "annotations": _annotations(mux, sources),
        },
        "subsets": [_subset(source.backends) for its in sources.values() for source in its],
    }


def are_our_endpoints(found: Mapping[str, Any]) -> bool:
    """Return whether Endpoints are those that are written here."""
    labels: Mapping[str, str] = found["metadata"].get("labels") or {}
    return labels.get(wellknown.LABEL_MANAGED_BY) == muxnames.MUX_PROGRAM


def endpoints_differ(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether Endpoints are not as they should be. The API server sorts and merges what it stores."""
    meta, its = wanted["metadata"], found["metadata"]
    return (
        _targets(found) != _targets(wanted)
        or any((its.get("labels") or {}).get(key) != value for key, value in meta["labels"].items())
        or any((its.get("annotations") or {}).get(key) != value for key, value in meta["annotations"].items())
    )


def _targets(endpoints: Mapping[str, Any]) -> set[tuple[str, bool, str, int, str]]:
    """Return every pair of an address and a port: what Endpoints say, however it is put into subsets."""
    return {
        (address["ip"], ready, port.get("name", ""), port["port"], port.get("protocol", "TCP"))
        for subset in endpoints.get("subsets") or ()
        for field, ready in (("addresses", True), ("notReadyAddresses", False))
        for address in subset.get(field) or ()
        for port in subset.get("ports") or ()
    }


def _subset(backends: Backends) -> dict[str, Any]:
    fields = {
        "addresses": [{"ip": address} for address in backends.ready],
        "notReadyAddresses": [{"ip": address} for address in (*backends.not_ready, *backends.leaving)],
        "ports": _ports(backends.ports),
    }
    return {name: value for name, value in fields.items() if value}


def _name(ref: MuxRef, owner: Owner, source: Source) -> str:
    text = json.dumps([ref.name, *owner, source.name, source.address_type])
    return f"{ref.name[:_NAME_CHARS].rstrip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARS]}"


def _labels() -> dict[str, str]:
    return {wellknown.LABEL_MANAGED_BY: muxnames.MUX_PROGRAM, "app.kubernetes.io/component": "mux-endpoints"}


def _annotations(mux: MuxObject, owners: Iterable[Owner]) -> dict[str, str]:
    return {
        annotation_key(mux.prefix, muxnames.MUX_MANAGED): "true",
        annotation_key(mux.prefix, muxnames.MUX_OWNER): str(mux.ref),
        annotation_key(mux.prefix, muxnames.MUX_CHANNELS): json.dumps([str(owner) for owner in owners]),
    }


def _owner(mux: MuxObject) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "name": mux.ref.name, "uid": mux.uid, "controller": True}


def _ports(ports: Iterable[ServicePort]) -> list[dict[str, Any]]:
    return [{"name": port.name, "port": port.port, "protocol": port.protocol} for port in ports]

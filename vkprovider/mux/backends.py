"""The backends of channels, as EndpointSlices have them, and the Pods that vouch for suspicious addresses."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from vkprovider.mux.index import MuxIndex
from vkprovider.mux.pure.endpoints import Backends, Reserved, canonical, owner_of, suspicion
from vkprovider.mux.pure.endpoints import backends_of as lablet_backends
from vkprovider.mux.pure.facts import MuxRef, Owner, ServicePort
from vkprovider.mux.pure.slices import Source
from vkprovider.platform.kube.resources import Resource, kind
from vkprovider.platform.objects import Endpoint, EndpointSlice, Metadata
from vkprovider.platform.runtime.context import Context

_IP: Final = frozenset({"IPv4", "IPv6"})
_ASKED_MAX: Final = 64
"""Pods that the API server is asked about for one namespace in a pass, at most; the next passes ask about others."""
_POD: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
"""The name of a Pod; whoever writes a slice may write anything else."""
_REMEMBER_S: Final = 30.0
_REMEMBER_REFUSED_S: Final = 3.0
_REMEMBERED_MAX: Final = 4096


class PodAddress(msgspec.Struct, frozen=True, gc=False):
    """One of a Pod's addresses."""

    ip: str


class PodAddresses(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of a Pod's status that tells its addresses."""

    phase: str = ""
    pod_ips: tuple[PodAddress, ...] = msgspec.field(default=(), name="podIPs")


class AddressedPod(msgspec.Struct, frozen=True, gc=False):
    """A Pod with its addresses."""

    metadata: Metadata
    status: PodAddresses = PodAddresses()


_PODS: Final = kind("/api/v1", "pods", AddressedPod)


class Vouching:
    """Asks whether the Pod that an endpoint names has its address, and remembers the answers for a while."""

    def __init__(self, ctx: Context) -> None:
        self._now = ctx.now
        self._pods = Resource(ctx.kube, _PODS)
        self._known: dict[tuple[str, str, str, str], tuple[float, bool]] = {}

    async def vouched(self, endpoint: Endpoint, namespace: str, asked: Counter[str]) -> bool:
        """Return whether a Pod of a namespace has the addresses of an endpoint; see `backends_of`."""
        ref = endpoint.target_ref
        if ref is None or ref.kind != "Pod" or (ref.namespace or namespace) != namespace:
            return False
        if not _POD.fullmatch(ref.name):
            return False
        key = (namespace, ref.name, ref.uid, endpoint.addresses[0])
        found = self._known.get(key)
        if found is None or found[0] <= self._now():
            if asked[namespace] >= _ASKED_MAX:
                return False
            asked[namespace] += 1
            if len(self._known) >= _REMEMBERED_MAX:
                self._known.clear()
            pod = await self._pods.within(namespace).get(ref.name)
            has = _has(pod, ref.uid, endpoint.addresses[0])
            found = self._known[key] = (self._now() + (_REMEMBER_S if has else _REMEMBER_REFUSED_S), has)
        return found[1]


def _has(pod: AddressedPod | None, uid: str, address: str) -> bool:
    if pod is None or pod.metadata.uid != uid or pod.status.phase in {"Succeeded", "Failed"}:
        return False
    return canonical(address) in {canonical(each.ip) for each in pod.status.pod_ips}


class ChannelBackends(NamedTuple):
    """What was found for one channel.

    Attributes:
        sources: Its backends by slice.
        refused: Addresses that are refused, each with what it is.
    """

    sources: list[Source]
    refused: dict[str, str]


async def backends_of(
    slices: Iterable[EndpointSlice], namespace: str, reserved: Reserved, vouching: Vouching, asked: Counter[str]
) -> ChannelBackends:
    """Return the backends of a channel.

    Args:
        slices: Its EndpointSlices.
        namespace: Its namespace.
        reserved: Addresses for which a Pod must vouch.
        vouching: Asks for it.
        asked: How many Pods were asked about in this pass, by namespace.
    """
    found = ChannelBackends([], {})
    for each in sorted(slices, key=lambda each: each.metadata.name):
        if each.address_type not in _IP:
            continue
        taken: list[Endpoint] = []
        for endpoint in each.endpoints or ():
            what = next((what for address in endpoint.addresses if (what := suspicion(address, reserved))), "")
            if what and not await vouching.vouched(endpoint, namespace, asked):
                found.refused[endpoint.addresses[0]] = what
                continue
            taken.append(endpoint)
        found.sources.append(Source(each.metadata.name, each.address_type, _backends(each, taken)))
    return found


def lent_to(ref: MuxRef, index: MuxIndex) -> dict[Owner, list[Backends]]:
    """Return the backends that channels lend to a mux, also those that would be refused."""
    found = {
        each.owner: [_backends(one, one.endpoints or ()) for one in index.slices_of(*each.ref)]
        for each in index.channels(ref)
    }
    for lablet in index.lablets(ref):
        found.setdefault(owner_of(lablet.exposure), []).append(lablet_backends(lablet.exposure))
    return found


def _backends(found: EndpointSlice, endpoints: Sequence[Endpoint]) -> Backends:
    ports = tuple(
        ServicePort(port.name, port.port, port.protocol) for port in found.ports or () if port.port and port.name
    )
    ready = _addresses(endpoints, lambda one: one.conditions.is_ready)
    leaving = _addresses(endpoints, lambda one: one.conditions.is_leaving)
    others = _addresses(endpoints, lambda one: not (one.conditions.is_ready or one.conditions.is_leaving))
    return Backends(ports, ready, others, leaving)


def _addresses(endpoints: Sequence[Endpoint], good: Callable[[Endpoint], bool]) -> tuple[str, ...]:
    """Return the first address of each endpoint, which alone counts, in one order whatever theirs is."""
    return tuple(sorted({endpoint.addresses[0] for endpoint in endpoints if endpoint.addresses and good(endpoint)}))

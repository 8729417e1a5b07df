"""Which Service is a mux, which are its channels, and what is kept of each.

A change wakes the muxes that it concerns. What a mux itself writes wakes nobody: drift is found when it is looked at
again after `DAEMON_QUEUE_TIMEOUT`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.exposure import Exposure, decode
from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.endpoints import canonical
from vkprovider.mux.pure.endpoints import mux_of as mux_of_lablet
from vkprovider.mux.pure.facts import (
    Channel,
    Mux,
    MuxRef,
    Owner,
    ServicePort,
    annotation_key,
    get_mux_from_lb_class,
    is_marked,
    names_a_mux,
)
from vkprovider.mux.pure.slices import is_ours
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.kube.resources import kind
from vkprovider.platform.kube.watch import key_of
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import EndpointSlice, Metadata, ServiceSpec

_GKE: Final = ("cloud.google.com/", "networking.gke.io/")
_HOSTNAME = re.compile(r"(?=.{1,253}$)(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
"""A name of DNS with a dot, or a wildcard; what is shown on a mux is written by the owners of its channels."""


class ServiceStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of a Service's status that we read."""

    load_balancer: dict[str, Any] = {}


class Service(msgspec.Struct, frozen=True, gc=False):
    """A Service."""

    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()

    @property
    def ref(self) -> MuxRef:
        """Its name, as that of a mux."""
        return MuxRef(self.metadata.namespace, self.metadata.name)

    @property
    def owner(self) -> Owner:
        """Its name, as that of a channel."""
        return Owner(self.metadata.namespace, self.metadata.name)

    @property
    def about(self) -> ObjectRef:
        """The reference for Events about it."""
        return ObjectRef("v1", "Service", self.metadata.namespace, self.metadata.name, self.metadata.uid)

    @property
    def ingress(self) -> list[Any]:
        """The addresses of its load balancer, as they are written in its status."""
        return list(self.status.load_balancer.get("ingress") or ())

    @property
    def addresses(self) -> list[str]:
        """Names and addresses of its load balancer."""
        return [str(each.get("hostname") or each.get("ip") or "") for each in self.ingress]

    @property
    def external_names(self) -> list[str]:
        """The names that external-dns is asked to give its address, without those that cannot be names."""
        asked = self.metadata.annotations.get(muxnames.EXTERNAL_DNS, "")
        return [name for each in asked.split(",") if _HOSTNAME.fullmatch(name := each.strip().rstrip("."))]


class AddressedSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of a Service's spec that tells its addresses."""

    cluster_ips: tuple[str, ...] = msgspec.field(default=(), name="clusterIPs")


class AddressedService(msgspec.Struct, frozen=True, gc=False):
    """Any Service, with the addresses at which the cluster reaches it."""

    metadata: Metadata
    spec: AddressedSpec = AddressedSpec()


def slim_addressed(service: AddressedService) -> AddressedService:
    """Return a Service with nothing but its name and addresses: there may be thousands."""
    meta = service.metadata
    bare = Metadata(meta.name, meta.namespace, meta.uid, meta.resource_version)
    return AddressedService(bare, service.spec)


SERVICES: Final = kind("/api/v1", "services", Service)


def finalizer(prefix: str) -> str:
    """Return the finalizer of a mux."""
    return annotation_key(prefix, muxnames.MUX_FINALIZER)


def is_mux(service: Service, prefix: str) -> bool:
    """Return whether a Service is marked as a mux, or was one and is not cleared up yet."""
    return is_marked(service.metadata.annotations, prefix) or finalizer(prefix) in service.metadata.finalizers


def is_leaving(service: Service, prefix: str) -> bool:
    """Return whether a mux ceases to be one."""
    meta = service.metadata
    return meta.deletion_timestamp is not None or not is_marked(meta.annotations, prefix)


def is_channel(service: Service, prefix: str) -> bool:
    """Return whether a Service names a mux. One that is a mux itself, or is being deleted, is no channel."""
    named = names_a_mux(service.spec.load_balancer_class, prefix)
    return named and not is_mux(service, prefix) and service.metadata.deletion_timestamp is None


def mux_of(service: Service) -> Mux:
    """Return a mux as decisions see it."""
    return Mux(service.ref, service.metadata.annotations, service.spec.load_balancer_class, _ports(service))


def channel_of(service: Service) -> Channel:
    """Return a channel as decisions see it."""
    return Channel(service.owner, _ports(service), service.metadata.annotations)


def slim_service(service: Service, prefix: str) -> Service:
    """Return a Service with the annotations by which it asks for something; nothing else of one that is no mux's."""
    meta = service.metadata
    if not (is_mux(service, prefix) or names_a_mux(service.spec.load_balancer_class, prefix)):
        bare = Metadata(meta.name, meta.namespace, meta.uid, meta.resource_version)
        return Service(bare, ServiceSpec(service.spec.type))
    reports = {
        annotation_key(prefix, name) for name in (muxnames.MUX_CHANNELS, muxnames.MUX_TOPOLOGY, muxnames.MUX_SUMMARY)
    }
    kept = {
        key: value
        for key, value in meta.annotations.items()
        if key.startswith((f"{prefix}/", *_GKE, muxnames.EXTERNAL_DNS)) and key not in reports
    }
    return msgspec.structs.replace(service, metadata=msgspec.structs.replace(meta, annotations=kept, labels={}))


def _ports(service: Service) -> tuple[ServicePort, ...]:
    return tuple(ServicePort(port.name, port.port, port.protocol) for port in service.spec.ports)


N = TypeVar("N")
T = TypeVar("T")

_KUBERNETES: Final = ("default", "kubernetes")
"""The Service of the API server."""


class ExposedLablet(msgspec.Struct, frozen=True):
    """An exposed lablet: a virtual channel.

    Attributes:
        slice: The EndpointSlice that stands for it, in the provider's namespace.
        exposure: What that says.
    """

    slice: EndpointSlice
    exposure: Exposure


class MuxIndex:
    """Muxes, channels and EndpointSlices, by name.

    Attributes:
        muxes: Services that are marked as muxes, or were so and are not cleared up, by `namespace/name`.
        cluster_ips: The addresses of all Services.
    """

    def __init__(
        self,
        prefix: str,
        default_namespace: str,
        own_namespace: str,
        *,
        wake: Callable[[str], None],
        replan: Callable[[], None],
    ) -> None:
        """Begin with nothing.

        Args:
            prefix: Of annotations and classes.
            default_namespace: That of a mux that is named without one.
            own_namespace: The provider's, where alone slices of exposed lablets are believed.
            wake: Called with each mux that a change concerns.
            replan: Called when a mux comes or goes.
        """
        self._prefix = prefix
        self._default_namespace = default_namespace
        self._own_namespace = own_namespace
        self._wake = wake
        self._replan = replan
        self._channels: dict[MuxRef, dict[str, Service]] = {}
        self._slices: dict[tuple[str, str], dict[str, EndpointSlice]] = {}
        self._lablets: dict[MuxRef, dict[str, ExposedLablet]] = {}
        self._invalid: dict[str, tuple[EndpointSlice, Fault]] = {}
        self.muxes: dict[str, Service] = {}
        self.cluster_ips: Counter[str] = Counter()

    # ------------------------------------------------------------------------------------------ what is known

    def channels(self, ref: MuxRef) -> list[Service]:
        """Return the Services that name a mux."""
        return list(self._channels.get(ref, {}).values())

    def lablets(self, ref: MuxRef) -> list[ExposedLablet]:
        """Return the lablets that name a mux, the oldest first."""
        found = self._lablets.get(ref, {}).values()
        return sorted(found, key=lambda one: (one.slice.metadata.creation_timestamp, one.slice.metadata.name))

    def named(self) -> Iterator[MuxRef]:
        """Yield the muxes that channels name, whether or not they exist."""
        yield from {*self._channels, *self._lablets}

    def unreadable(self) -> Iterable[tuple[EndpointSlice, Fault]]:
        """Return the slices of lablets that cannot be read, and why."""
        return self._invalid.values()

    def slices_of(self, namespace: str, service: str) -> list[EndpointSlice]:
        """Return the slices that hold the backends of a Service."""
        return list(self._slices.get((namespace, service), {}).values())

    def own_slices(self, ref: MuxRef) -> dict[str, EndpointSlice]:
        """Return the slices that were written here for a mux, by name."""
        return {each.metadata.name: each for each in self.slices_of(*ref) if is_ours(each)}

    def api_servers(self) -> frozenset[str]:
        """Return the addresses of the API server."""
        return frozenset(
            address
            for each in self.slices_of(*_KUBERNETES)
            for endpoint in each.endpoints or ()
            for address in endpoint.addresses
        )

    def mux_named_by(self, service: Service) -> MuxRef:
        """Return the mux that a channel names.

        Raises:
            InputError: `InvalidLoadBalancerClass`.
        """
        return get_mux_from_lb_class(service.spec.load_balancer_class, self._prefix, self._default_namespace)

    # ------------------------------------------------------------------------------------------ what changes

    def service_changed(self, old: Service | None, new: Service | None) -> None:
        """Note a Service, and wake the mux that it is, and those that it names or named."""
        before, after = self._ref_of(old), self._ref_of(new)
        if before is not None and old is not None:
            _drop(self._channels, before, key_of(old.metadata))
        if after is not None and new is not None:
            self._channels.setdefault(after, {})[key_of(new.metadata)] = new
        if before != after or self._lent(old) != self._lent(new):
            self._wake_each(before, after)
        self._mux_changed(old, new)

    def _mux_changed(self, old: Service | None, new: Service | None) -> None:
        service = new or old
        key = key_of(service.metadata) if service is not None else ""
        known = key in self.muxes
        if new is not None and is_mux(new, self._prefix):
            self.muxes[key] = new
            if not known or self._asked(old) != self._asked(new):
                self._wake(key)
        else:
            self.muxes.pop(key, None)
        if known is not (key in self.muxes):
            self._replan()
            self._wake(key)

    def addresses_changed(self, old: AddressedService | None, new: AddressedService | None) -> None:
        """Note the addresses of any Service; muxes learn of it when they are looked at again."""
        self.cluster_ips.update(map(canonical, new.spec.cluster_ips if new is not None else ()))
        self.cluster_ips.subtract(map(canonical, old.spec.cluster_ips if old is not None else ()))
        for address in old.spec.cluster_ips if old is not None else ():
            if self.cluster_ips[canonical(address)] <= 0:
                del self.cluster_ips[canonical(address)]

    def slice_changed(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        """Note a slice, and wake the mux whose channel it belongs to."""
        before = self._muxes_of(old)
        for each in (old, new):
            if each is not None:
                self._note(each, gone=each is not new)
        if old is None or new is None or _carried(old) != _carried(new):
            self._wake_each(*before, *self._muxes_of(new))

    def _note(self, each: EndpointSlice, *, gone: bool) -> None:
        meta = each.metadata
        if service := meta.labels.get(wellknown.LABEL_SERVICE_NAME):
            named = (meta.namespace, service)
            if gone:
                _drop(self._slices, named, meta.name)
            else:
                self._slices.setdefault(named, {})[meta.name] = each
        if not self._is_lablet(each):
            return
        self._invalid.pop(meta.name, None)
        for ref in _refs(self._lablets, meta.name):
            _drop(self._lablets, ref, meta.name)
        if not gone:
            try:
                exposure = decode(each)
                ref = mux_of_lablet(exposure, self._prefix, self._default_namespace)
            except InputError as error:
                self._invalid[meta.name] = (each, error.fault)
            else:
                self._lablets.setdefault(ref, {})[meta.name] = ExposedLablet(each, exposure)

    def _is_lablet(self, each: EndpointSlice) -> bool:
        meta = each.metadata
        return (
            meta.namespace == self._own_namespace and meta.labels.get(names.LABEL_COMPONENT) == names.COMPONENT_EXPOSED
        )

    def _muxes_of(self, each: EndpointSlice | None) -> list[MuxRef]:
        """Return the muxes whose backends are in a slice that was noted; none of those that were written here."""
        if each is None or is_ours(each):
            return []
        meta = each.metadata
        if self._is_lablet(each):
            return _refs(self._lablets, meta.name)
        return _refs(self._channels, f"{meta.namespace}/{meta.labels.get(wellknown.LABEL_SERVICE_NAME, '')}")

    def _ref_of(self, service: Service | None) -> MuxRef | None:
        if service is None or not is_channel(service, self._prefix):
            return None
        try:
            return self.mux_named_by(service)
        except InputError:
            return None

    def _asked(self, mux: Service | None) -> object:
        """Return what matters of a mux: all but its version."""
        return mux and msgspec.structs.replace(mux, metadata=self._undated(mux))

    def _lent(self, channel: Service | None) -> object:
        """Return what matters of a channel: all but its version and what is reported on it."""
        return channel and (self._undated(channel, annotation_key(self._prefix, muxnames.MUX_PORTS)), channel.spec)

    def _undated(self, service: Service, *but: str) -> Metadata:
        meta = service.metadata
        kept = {key: value for key, value in meta.annotations.items() if key not in but}
        return msgspec.structs.replace(meta, resource_version="", annotations=kept)

    def _wake_each(self, *refs: MuxRef | None) -> None:
        for ref in dict.fromkeys(refs):
            if ref is not None and str(ref) in self.muxes:
                self._wake(str(ref))


def _drop(table: dict[N, dict[str, T]], name: N, key: str) -> None:
    """Remove an entry of a table of tables, and the inner table with its last one."""
    its = table.get(name, {})
    its.pop(key, None)
    if not its:
        table.pop(name, None)


def _refs(table: Mapping[N, Mapping[str, object]], key: str) -> list[N]:
    """Return the names in a table of tables whose inner table has an entry."""
    return [name for name, its in table.items() if key in its]


def _carried(each: EndpointSlice) -> object:
    return each.endpoints, each.ports, each.metadata.uid, each.metadata.labels

"""What is read of a Service, and what is kept of it in memory."""

from typing import Any, Final

import msgspec

from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.facts import Channel, Mux, MuxRef, Owner, ServicePort
from vkprovider.mux.pure.refs import annotation_key, is_marked, names_a_mux
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.kube.resources import kind
from vkprovider.platform.objects import Metadata, ServiceSpec

_GKE: Final = ("cloud.google.com/", "networking.gke.io/")


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
        if key.startswith((f"{prefix}/", *_GKE)) and key not in reports
    }
    return msgspec.structs.replace(service, metadata=msgspec.structs.replace(meta, annotations=kept, labels={}))


def _ports(service: Service) -> tuple[ServicePort, ...]:
    return tuple(ServicePort(port.name, port.port, port.protocol) for port in service.spec.ports)

"""Lablets as channels of a mux: what their EndpointSlices say, in the words of `facts` and `endpoints`."""

from vkprovider.lablet.exposure import Exposure
from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.endpoints import Backends
from vkprovider.mux.pure.facts import Channel, MuxRef, Owner, ServicePort
from vkprovider.mux.pure.refs import annotation_key, get_mux_from_lb_class
from vkprovider.platform.ports.rows import AUTO


def mux_of(exposure: Exposure, prefix: str, default_namespace: str) -> MuxRef:
    """Return the mux that a lablet's definition names.

    Raises:
        InputError: `InvalidLoadBalancerClass`.
    """
    return get_mux_from_lb_class(f"{prefix}/{exposure.mux}", prefix, default_namespace)


def owner_of(exposure: Exposure) -> Owner:
    """Return the identity of a lablet as a channel."""
    return Owner(exposure.namespace, exposure.pod, exposure.learner)


def channel_of(exposure: Exposure, prefix: str) -> Channel:
    """Return a lablet as a channel, each of whose ports asks for any outside port."""
    asked = ",".join(f"{port.name}:{AUTO}" for port in exposure.ports)
    return Channel(
        owner_of(exposure),
        _ports(exposure),
        {annotation_key(prefix, muxnames.MUX_EXTERNAL_PORTS): asked},
    )


def backends_of(exposure: Exposure) -> Backends:
    """Return the backends of a lablet: its worker, under the names of its own ports."""
    return Backends(_ports(exposure), ready=(exposure.address,))


def _ports(exposure: Exposure) -> tuple[ServicePort, ...]:
    return tuple(ServicePort(port.name, port.port, port.protocol) for port in exposure.ports)

"""Muxes and channels as they were found: which Service is a mux, and which mux a channel names."""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import Fault
from vkprovider.platform.ports.allocator import TCP

PortKey = tuple[str, int]
"""Protocol and number of an outside port."""

_NAME_CHARS: Final = 7


class MuxRef(NamedTuple):
    """A mux, by its name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


class ServicePort(NamedTuple):
    """A port of a Service."""

    name: str
    port: int
    protocol: str = TCP


class Owner(NamedTuple):
    """A channel by its identity: ports belong to it whatever becomes of the objects that stand for it.

    Attributes:
        service: The name of the Service, or of a lablet's Pod.
        learner: The learner for whom a lablet's lab was claimed, "" while it has none; None for a Service. Another
            learner in a Pod of the same name is another owner.
    """

    namespace: str
    service: str
    learner: str | None = None

    def __str__(self) -> str:
        """Return `namespace/name`; a learner's name stands in no message that others read."""
        return f"{self.namespace}/{self.service}"

    @property
    def order(self) -> tuple[str, str, bool, str]:
        """The key by which owners are sorted."""
        return self.namespace, self.service, self.learner is not None, self.learner or ""

    def mux_port_name(self, port_name: str) -> str:
        """Return the name that a port has in the Service of the mux: the beginning of a SHA-256.

        What is hashed for a lablet has a slash more, so that it is never that of a Service.

        >>> Owner("app", "api").mux_port_name("http")
        'bcaefde'
        """
        text = f"{self.namespace}/{self.service}/{port_name}"
        return _hash(text if self.learner is None else f"{text}/{self.learner}")[:_NAME_CHARS]


class Channel(NamedTuple):
    """A channel.

    Attributes:
        owner: Its identity.
        ports: Its ports.
        annotations: Those of the Service; a lablet has the request `NAME:auto` for each of its ports.
    """

    owner: Owner
    ports: tuple[ServicePort, ...]
    annotations: Mapping[str, str] = {}


class Mux(NamedTuple):
    """A mux.

    Attributes:
        ref: Its name.
        annotations: Those of its Service.
        load_balancer_class: `spec.loadBalancerClass`, which may be "".
        ports: `spec.ports` as it stands; what a GitOps tool applied again has none of ours.
        forwarded: The names of UDP ports that its slices lead to a backend, whatever was decided since.
    """

    ref: MuxRef
    annotations: Mapping[str, str] = {}
    load_balancer_class: str = ""
    ports: tuple[ServicePort, ...] = ()
    forwarded: frozenset[str] = frozenset()


@lru_cache(maxsize=16_384)
def _hash(text: str) -> str:
    """Return the SHA-256 of a text: every pass over a mux asks for those of all its ports."""
    return hashlib.sha256(text.encode()).hexdigest()


_LOAD_BALANCER: Final = "LoadBalancer"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_EVERY: Final = "*"


def annotation_key(prefix: str, name: str) -> str:
    """Return the key of an annotation.

    >>> annotation_key("svc-mux.nowake.ai", "port-range")
    'svc-mux.nowake.ai/port-range'
    """
    return f"{prefix}/{name}"


def is_marked(annotations: Mapping[str, str], prefix: str) -> bool:
    """Return whether a Service is marked as a mux, which it may be unfit for."""
    return annotations.get(annotation_key(prefix, muxnames.MUX_MULTIPLEXER)) == "true"


def unfit_for_mux(service_type: str, selector: Mapping[str, str]) -> Fault | None:
    """Return why a marked Service cannot be a mux; None if it can."""
    if service_type != _LOAD_BALANCER:
        return Fault(
            MuxReason.NOT_LOAD_BALANCER, f"a mux needs spec.type {_LOAD_BALANCER}; this Service has {service_type}"
        )
    if selector:
        return Fault(MuxReason.NOT_SUPPORTED, "a mux has no spec.selector: its backends are those of its channels")
    return None


def names_a_mux(load_balancer_class: str, prefix: str) -> bool:
    """Return whether a Service of this class is a channel, although the class may be malformed."""
    return load_balancer_class.startswith(f"{prefix}/")


def get_mux_from_lb_class(load_balancer_class: str, prefix: str, default_namespace: str) -> MuxRef:
    """Return the mux that a channel names: `PREFIX/MUX` or `PREFIX/MUX.NAMESPACE`.

    >>> str(get_mux_from_lb_class("svc-mux.nowake.ai/mux.edge", "svc-mux.nowake.ai", "svc-mux"))
    'edge/mux'

    Raises:
        InputError: `InvalidLoadBalancerClass`.
    """
    if names_a_mux(load_balancer_class, prefix):
        name, dot, namespace = load_balancer_class[len(prefix) + 1 :].partition(".")
        namespace = namespace if dot else default_namespace
        if _NAME.fullmatch(name) and _NAME.fullmatch(namespace):
            return MuxRef(namespace, name)
    raise InputError(
        MuxReason.INVALID_LOAD_BALANCER_CLASS,
        f"spec.loadBalancerClass {load_balancer_class!r} is not {prefix}/MUX or {prefix}/MUX.NAMESPACE",
    )


def serves(mux: MuxRef, allowed: str | None, owner: Owner) -> bool:
    """Return whether a mux serves a channel.

    Args:
        mux: The mux.
        allowed: Its annotation `allowed-namespaces`: names with commas between them, or `*`.
        owner: The channel. Lablets ask by their definition, which an admin lets them do: their namespaces do not count.
    """
    if owner.learner is not None or owner.namespace == mux.namespace:
        return True
    return not {_EVERY, owner.namespace}.isdisjoint(part.strip() for part in (allowed or "").split(","))

"""Muxes and channels, as they were found in the cluster."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

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

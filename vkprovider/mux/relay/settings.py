"""Settings of the relay, `vkprovider relay`, and of the HAProxy that it fills."""

import ipaddress
from typing import Annotated

from pydantic import AfterValidator, Field

from vkprovider.platform.settings import Group, KubeSettings, LogSettings, PortRange, ProgramSettings, bounds

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _rewrites(text: str) -> str:
    """Check pairs of networks."""
    for pair in text.split():
        if "=" not in pair:
            raise ValueError(f"{pair[:80]!r} is not NETWORK=NETWORK")
        of, to = _pair(pair)
        if of.prefixlen != to.prefixlen or of.version != to.version:
            raise ValueError(f"the networks of {pair[:80]!r} differ in size")
    return text


def _pair(pair: str) -> tuple[Network, Network]:
    of, _, to = pair.partition("=")
    return ipaddress.ip_network(of), ipaddress.ip_network(to)


class RelaySettings(Group):
    """The relay, `vkprovider relay`, and its HAProxy."""

    mux: str = Field(
        validation_alias="VKPROVIDER_RELAY_MUX",
        description="The mux: `NAMESPACE/NAME` of its Service.",
        pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z]([a-z0-9-]{0,61}[a-z0-9])?$",
    )
    socket: str = Field(
        "/run/vkprovider-relay/haproxy.sock",
        validation_alias="VKPROVIDER_RELAY_SOCKET",
        description="HAProxy's runtime socket, whose folder both containers mount.",
    )
    address: str = Field(
        "*",
        validation_alias="VKPROVIDER_RELAY_ADDRESS",
        description="Address that HAProxy listens on: one of the host, `*` for all of IPv4, `::` for all of IPv6. Read "
        "by HAProxy alone.",
    )
    ports: PortRange = Field(
        "26000-29999",
        validation_alias="VKPROVIDER_RELAY_PORTS",
        description="Ports that HAProxy listens on, those of the mux's annotation `port-range`: outside of node ports "
        "(30000-32767), of VKPROVIDER_KUBELET_PORTS, and of the host's `net.ipv4.ip_local_port_range`.",
    )
    connections_max: int = Field(
        5000,
        validation_alias="VKPROVIDER_RELAY_CONNECTIONS",
        ge=1,
        description="Connections through HAProxy, at most; each takes two open files, each port one. Read by HAProxy "
        "alone.",
    )
    health: str = Field(
        "127.0.0.1:8089",
        validation_alias="VKPROVIDER_RELAY_HEALTH",
        description="Address and port at which HAProxy answers `GET /readyz`: 200 once it is filled, else 503. Read by "
        "HAProxy alone.",
    )
    rewrites: Annotated[str, AfterValidator(_rewrites)] = Field(
        "",
        validation_alias="VKPROVIDER_RELAY_REWRITE",
        description="Networks of endpoints that are dialled elsewhere, `198.51.100.1/32=127.0.0.11/32`, separated by "
        "blanks. For a sandbox, whose workers have addresses of documentation.",
    )

    @property
    def namespace(self) -> str:
        """The namespace of the mux."""
        return self.mux.partition("/")[0]

    @property
    def name(self) -> str:
        """The name of the mux's Service."""
        return self.mux.partition("/")[2]

    @property
    def port_range(self) -> tuple[int, int]:
        """The first and the last port that HAProxy listens on."""
        return bounds(self.ports)

    @property
    def moved(self) -> tuple[tuple[Network, Network], ...]:
        """Networks of endpoints, each with the one that is dialled instead."""
        return tuple(map(_pair, self.rewrites.split()))


class RelayProcessSettings(ProgramSettings):
    """The settings of one relay, by subject."""

    relay: RelaySettings
    kube: KubeSettings = KubeSettings()
    log: LogSettings = LogSettings()

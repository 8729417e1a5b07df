"""Settings of muxes and of the relay; their names are those of the program that came before."""

import ipaddress
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, Field, SecretStr, field_validator

from vkprovider.mux.pure import muxnames
from vkprovider.platform.settings import (
    Group,
    HttpSettings,
    KubeSettings,
    LogSettings,
    PortRange,
    ProgramSettings,
    ReplicaProgramSettings,
    bounds,
)


class MuxSettings(Group):
    """Muxes."""

    prefix: str = Field(
        muxnames.MUX_PREFIX,
        validation_alias="API_PREFIX",
        pattern=r"^[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?$",
        description="Prefix of annotations and of the finalizer, and of the `loadBalancerClass` of channels: "
        "`PREFIX/MUX[.NAMESPACE]`.",
    )
    default_namespace: str | None = Field(
        None,
        validation_alias=AliasChoices("DEFAULT_MUX_NAMESPACE", "NAMESPACE"),
        description="Namespace of a mux that a channel names without one. Unset: `VKPROVIDER_NAMESPACE`.",
    )
    queue_timeout_s: float = Field(
        10.0,
        validation_alias="DAEMON_QUEUE_TIMEOUT",
        gt=0,
        description="Seconds after which a mux is looked at again without an event, and between two writes of its "
        "annotations, at least.",
    )
    reconcile_s: float = Field(
        30.0,
        validation_alias="RECONCILE_INTERVAL",
        gt=0,
        description="Seconds between two looks at what no event announces a change of.",
    )
    rest_s: float = Field(
        300.0,
        validation_alias="VKPROVIDER_MUX_REST_SECONDS",
        ge=300,
        description="Seconds for which an outside port that was freed rests, before another channel or another learner "
        "gets it.",
    )
    refused_addresses: str = Field(
        "168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fd20:ce::254",
        validation_alias="VKPROVIDER_MUX_REFUSED_ADDRESSES",
        description="Addresses and networks, separated by blanks, that are backends of no channel unless a Pod of its "
        "namespace has them. By default those at which Azure, Alibaba Cloud, Oracle, AWS and Google tell machines "
        "their credentials; link-local ones are refused without being named.",
    )
    endpoints: Literal["slices", "endpoints"] = Field(
        "slices",
        validation_alias="VKPROVIDER_MUX_ENDPOINTS",
        description="How the backends of a mux are written: as EndpointSlices, or as one object of the deprecated "
        "kind Endpoints, of which Kubernetes makes the slices.",
    )
    dry_run: bool = Field(
        default=False,
        validation_alias="DRYRUN_MODE",
        description="Whether intended writes are only logged. Leases are written, under names of their own.",
    )
    debug: bool = Field(
        default=False,
        validation_alias="SVC_LB_MUX_DEBUG",
        description="Whether the log is written in full, as with `VKPROVIDER_LOG_LEVEL` debug.",
    )

    @property
    def refused_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks of `refused_addresses`."""
        return tuple(ip_network(each) for each in self.refused_addresses.split())

    @field_validator("refused_addresses")
    @classmethod
    def _check_addresses(cls, text: str) -> str:
        for each in text.split():
            try:
                ip_network(each)
            except ValueError as error:
                raise ValueError(f"{each[:80]!r} is no address and no network: {error}") from None
        return text


class DebugWebSettings(Group):
    """The debug page of muxes."""

    enabled: bool = Field(
        default=True, validation_alias="DEBUG_WEB_ENABLED", description="Whether the page has the routes about muxes."
    )
    port: int | None = Field(
        None,
        validation_alias="DEBUG_WEB_PORT",
        ge=0,
        le=65535,
        description="Port of the page. Unset: `VKPROVIDER_HTTP_PORT`.",
    )
    actions: bool = Field(
        default=False,
        validation_alias="DEBUG_WEB_ACTIONS_ENABLED",
        description="Whether `/api/test-tcp` connects to backends of muxes that the caller may see.",
    )
    audiences: str = Field(
        "mux.vkprovider.io",
        validation_alias="VKPROVIDER_MUX_AUDIENCES",
        description="Audiences of tokens of the cluster that the page accepts, separated by blanks. Not those of the "
        "provider's page, where a token that was sent here would be valid, too.",
    )
    token: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("DEBUG_WEB_AUTH_TOKEN", "AUTH_TOKEN"),
        description="Password, with any user name, of those who may see all muxes. Tokens of the cluster count without "
        "it.",
        min_length=16,
    )

    @property
    def token_audiences(self) -> tuple[str, ...]:
        """Audiences of which a token must have one."""
        return tuple(self.audiences.split())


class MuxProcessSettings(ReplicaProgramSettings):
    """The settings of one replica of the program that serves muxes, by subject."""

    mux: MuxSettings = MuxSettings()
    http: HttpSettings = HttpSettings()
    web: DebugWebSettings = DebugWebSettings()
    log: LogSettings = LogSettings()


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

"""Settings of the program that serves muxes; their names are those of the design that it carries out."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Literal

from pydantic import AliasChoices, Field, SecretStr, field_validator

from vkprovider.mux.pure import muxnames
from vkprovider.platform.settings import (
    Group,
    HttpSettings,
    KubeSettings,
    LogSettings,
    ProgramSettings,
    ReplicaSettings,
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


class MuxProcessSettings(ProgramSettings):
    """The settings of one replica of the program that serves muxes, by subject."""

    replica: ReplicaSettings = Field(default_factory=ReplicaSettings)
    kube: KubeSettings = KubeSettings()
    mux: MuxSettings = MuxSettings()
    http: HttpSettings = HttpSettings()
    web: DebugWebSettings = DebugWebSettings()
    log: LogSettings = LogSettings()

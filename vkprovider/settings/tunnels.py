"""Settings of tunnels: on the replica's side, and on the agent's."""

from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from vkprovider.settings.group import Group
from vkprovider.settings.services import Token

Register = Literal["deny", "approve", "allow"]
"""What happens when an agent presents itself whose name no CMLWorker has."""

_PORTS: Final = {"mqtt": 1883, "mqtts": 8883}


def _broker(url: str) -> str:
    """Check the URL of a broker."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("user name and password belong into settings of their own")
    try:
        usable = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if url and (not usable or parts.path.strip("/") or parts.query):
        raise ValueError(f"{url[:80]!r} is not a URL like mqtts://broker.example.com:8883")
    return url


BrokerUrl = Annotated[str, AfterValidator(_broker)]


class MqttSettings(Group):
    """The connection to an MQTT broker; the same for replicas and agents."""

    url: BrokerUrl = Field(
        "",
        validation_alias="VKPROVIDER_TUNNEL_MQTT_URL",
        description="The broker of `spec.tunnel: mqtt`: `mqtts://HOST[:8883]`, or `mqtt://HOST[:1883]` without "
        "encryption. No MQTT if unset.",
    )
    username: str = Field(
        "", validation_alias="VKPROVIDER_TUNNEL_MQTT_USERNAME", description="User name at the broker."
    )
    password: Token = Field(
        None, validation_alias="VKPROVIDER_TUNNEL_MQTT_PASSWORD", description="Its password at the broker."
    )
    ca_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_TUNNEL_MQTT_CA_FILE",
        description="PEM file of the authorities that may sign the broker's certificate; the system's if unset.",
    )
    cert_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_TUNNEL_MQTT_CERT_FILE",
        description="PEM file of a client certificate, where the broker wants one.",
    )
    key_file: str | None = Field(
        None, validation_alias="VKPROVIDER_TUNNEL_MQTT_KEY_FILE", description="PEM file of its key."
    )

    @model_validator(mode="after")
    def _check_certificate(self) -> Self:
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError(
                "set both VKPROVIDER_TUNNEL_MQTT_CERT_FILE and VKPROVIDER_TUNNEL_MQTT_KEY_FILE, or neither"
            )
        return self

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection is encrypted and the broker's certificate verified."""
        return urlsplit(self.url).scheme == "mqtts"

    @property
    def broker(self) -> tuple[str, int]:
        """Host and port of the broker."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or _PORTS[parts.scheme]


class TunnelSettings(Group):
    """Workers behind tunnels."""

    register_policy: Register = Field(
        "approve",
        validation_alias="VKPROVIDER_TUNNEL_REGISTER",
        description="What happens when an agent presents itself whose name no CMLWorker has: `deny`, `approve` (a "
        "CMLWorker is created on which nothing begins before `kubectl lablet approve NAME`), or `allow`.",
    )


class AgentSettings(Group):
    """The agent, `vkprovider agent`, beside a worker."""

    name: str = Field(
        "",
        validation_alias="VKPROVIDER_AGENT_NAME",
        description="The worker's name: that of its CMLWorker.",
        max_length=200,
        pattern=r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$",
    )
    environment: str = Field(
        "default",
        validation_alias="VKPROVIDER_AGENT_ENVIRONMENT",
        description="`spec.environment` of a CMLWorker that is created for it.",
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$",
    )
    url: str = Field("", validation_alias="VKPROVIDER_AGENT_CML_URL", description="CML: `https://192.0.2.7`.")
    address: str = Field(
        "",
        validation_alias="VKPROVIDER_AGENT_ADDRESS",
        description="What learners reach: an IP address or a name. The host of the url if unset.",
    )
    credentials_file: str = Field(
        "",
        validation_alias="VKPROVIDER_AGENT_CREDENTIALS_FILE",
        description="File with CML's user name in its first line and the password in its second; read at every login.",
    )
    ca_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_AGENT_CA_FILE",
        description="PEM file of the authorities that may sign CML's certificate; the system's if unset.",
    )
    insecure_skip_verify: bool = Field(
        default=False,
        validation_alias="VKPROVIDER_AGENT_INSECURE_SKIP_VERIFY",
        description="Trust any certificate of CML. For tests only.",
    )
    state_file: str = Field(
        "",
        validation_alias="VKPROVIDER_AGENT_STATE_FILE",
        description="File in which the newest epoch outlives a restart; not kept if unset.",
    )

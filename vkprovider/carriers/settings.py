"""Settings of tunnels on the replica's side, and of the broker, which an agent shares."""

import re
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from vkprovider.platform.settings import SECRET_CHARS_MIN, Group, ProgramSettings, Token, reveal

Register = Literal["deny", "approve", "allow"]
"""What happens when an agent presents itself whose name no CMLWorker has."""

_PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
_SCHEMES: Final = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


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
    password_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_TUNNEL_MQTT_PASSWORD_FILE",
        description="File that holds the password instead; read again when it is replaced.",
    )
    ca_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_TUNNEL_MQTT_CA_FILE",
        description="PEM file of the authorities that may sign the broker's certificate; the system's if unset. It and "
        "the next two are read at every connection.",
    )
    cert_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_TUNNEL_MQTT_CERT_FILE",
        description="PEM file of a client certificate, where the broker wants one.",
    )
    key_file: str | None = Field(
        None, validation_alias="VKPROVIDER_TUNNEL_MQTT_KEY_FILE", description="PEM file of its key."
    )

    version: Literal["5", "3.1.1"] = Field(
        "5",
        validation_alias="VKPROVIDER_TUNNEL_MQTT_VERSION",
        description="Version of MQTT. By 3.1.1 a broker does not say which messages its access rules refuse.",
    )

    @model_validator(mode="after")
    def _check_certificate(self) -> Self:
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError(
                "set both VKPROVIDER_TUNNEL_MQTT_CERT_FILE and VKPROVIDER_TUNNEL_MQTT_KEY_FILE, or neither"
            )
        return self

    @model_validator(mode="after")
    def _check_password(self) -> Self:
        if self.password is not None and self.password_file:
            raise ValueError("set VKPROVIDER_TUNNEL_MQTT_PASSWORD or VKPROVIDER_TUNNEL_MQTT_PASSWORD_FILE, not both")
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


def page_url(url: str) -> str:
    """Check the URL of a replica's page, and return it with `http` or `https`."""
    parts = urlsplit(url)
    try:
        usable = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if url and (not usable or "@" in parts.netloc or parts.query or parts.fragment or not url.isprintable()):
        raise ValueError(f"{url[:80]!r} is not a URL like https://vkprovider.example.com")
    return parts._replace(scheme=_SCHEMES[parts.scheme], path=parts.path.rstrip("/")).geturl() if url else ""


def _of_agent(word: str) -> tuple[str, str]:
    """Return agent and token of a word of VKPROVIDER_TUNNEL_HTTP_TOKENS."""
    name, colon, token = word.partition(":")
    return (name, token) if colon and _NAME.fullmatch(name) else ("", word)


def parse_tokens(text: str) -> list[tuple[str, str]]:
    """Return tokens, each after the name of its agent, empty for any.

    Raises:
        ValueError: One is too short.
    """
    tokens = [_of_agent(word) for word in text.split()]
    if any(len(token) < SECRET_CHARS_MIN or not token.isascii() for _, token in tokens):
        raise ValueError(f"a token has less than {SECRET_CHARS_MIN} ASCII characters; use `openssl rand -hex 32`")
    return tokens


class HttpTunnelSettings(Group):
    """Agents that dial the HTTP page."""

    tokens: SecretStr | None = Field(
        None,
        validation_alias="VKPROVIDER_TUNNEL_HTTP_TOKENS",
        description="Tokens of agents by `spec.tunnel: http`, at least 16 characters each, separated by blanks. "
        "`NAME:TOKEN` is that of the agent NAME, which may have several, to change it; who knows a token without a "
        "name may present any agent. Without tokens and client certificates, the page accepts no agent.",
    )
    tokens_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_TUNNEL_HTTP_TOKENS_FILE",
        description="File of further tokens, separated by blanks or line breaks; read again when it is replaced.",
    )
    client_ca_file: str | None = Field(
        None,
        validation_alias="VKPROVIDER_TUNNEL_HTTP_CLIENT_CA_FILE",
        description="PEM file of the authorities that sign certificates of agents: one with the common name or DNS "
        "name NAME is that of the agent NAME. Read again when it is replaced. The page must serve TLS itself.",
    )
    advertised_url: Annotated[str, AfterValidator(page_url)] = Field(
        "",
        validation_alias="VKPROVIDER_TUNNEL_HTTP_ADVERTISED_URL",
        description="Where agents dial this replica and no other one, such as `https://replica-1.example.com`. If "
        "unset, they dial what leads to all replicas until each is reached.",
    )

    @field_validator("tokens")
    @classmethod
    def _check_tokens(cls, given: SecretStr | None) -> SecretStr | None:
        parse_tokens(reveal(given) or "")
        return given

    @property
    def agent_tokens(self) -> list[tuple[str, str]]:
        """Tokens of the environment, each after the name of its agent, empty for any."""
        return parse_tokens(reveal(self.tokens) or "")

    @property
    def is_on(self) -> bool:
        """Whether the page accepts agents."""
        return bool(self.agent_tokens or self.tokens_file or self.client_ca_file)


class TunnelSettings(Group):
    """Workers behind tunnels."""

    register_policy: Register = Field(
        "approve",
        validation_alias="VKPROVIDER_TUNNEL_REGISTER",
        description="What happens when an agent presents itself whose name no CMLWorker has: `deny`, `approve` (a "
        "CMLWorker is created on which nothing begins before `kubectl lablet approve NAME`), or `allow`.",
    )


class DoctorProcessSettings(ProgramSettings):
    """What `vkprovider doctor` examines from where it runs, by subject."""

    mqtt: MqttSettings = MqttSettings()

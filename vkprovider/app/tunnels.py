"""The carriers of the tunnels that the settings configure, for replicas and for agents."""

import re
from pathlib import Path
from typing import Final

from tunnels.link.carrier import Address, Carrier
from tunnels.mqtt.broker import Broker, Login
from tunnels.mqtt.carrier import AgentSide, CallerSide, MqttCarrier
from tunnels.mqtt.topics import Topics
from vkprovider.api import names
from vkprovider.api.errors import InputError
from vkprovider.settings.services import reveal
from vkprovider.settings.tunnels import MqttSettings

_TOPICS: Final = Topics(names.MANAGER)
_IDENTITY_CHARS_MAX: Final = 64
_NOT_IDENTITY: Final = re.compile(r"[^0-9A-Za-z_.-]")


def carriers(mqtt: MqttSettings, process: str) -> dict[str, Carrier]:
    """Return a replica's carriers, by the word in `spec.tunnel`; nothing connects before they run.

    Args:
        mqtt: The broker; no MQTT without a url.
        process: This process, unique for ever.

    Raises:
        InputError: `SettingInvalid`: a file cannot be read.
    """
    identity = _NOT_IDENTITY.sub("-", process[-_IDENTITY_CHARS_MAX:])
    return {"mqtt": MqttCarrier(_broker(mqtt), CallerSide(_TOPICS, identity))} if mqtt.url else {}


def agent_carrier(mqtt: MqttSettings, address: Address) -> Carrier:
    """Return an agent's carrier; nothing connects before it runs.

    Args:
        mqtt: The broker.
        address: The agent's.

    Raises:
        InputError: `SettingInvalid`: a setting is missing, or a file cannot be read.
    """
    if not mqtt.url:
        raise InputError("SettingInvalid", "VKPROVIDER_TUNNEL_MQTT_URL is not set: the agent has nothing to dial")
    return MqttCarrier(_broker(mqtt), AgentSide(_TOPICS, address))


def read_pem(path: str | None, setting: str) -> str | None:
    """Return the text of a PEM file; None without a path.

    Raises:
        InputError: `SettingInvalid`: it cannot be read.
    """
    try:
        return Path(path).read_text("ascii") if path else None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("SettingInvalid", f"{setting} {path}: {error}") from None


def _broker(mqtt: MqttSettings) -> Broker:
    host, port = mqtt.broker
    password = reveal(mqtt.password) or ""

    def login() -> Login | None:
        return (mqtt.username, password) if mqtt.username else None

    return Broker(
        host,
        port,
        tls=mqtt.is_encrypted,
        ca_bundle=read_pem(mqtt.ca_file, "VKPROVIDER_TUNNEL_MQTT_CA_FILE"),
        certificate_file=mqtt.cert_file,
        key_file=mqtt.key_file,
        login=login,
    )

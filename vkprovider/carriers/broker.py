"""The MQTT broker that the settings name, for replicas, agents and the doctor."""

from pathlib import Path
from typing import Final

from tunnels.mqtt.broker import Broker, Login
from tunnels.mqtt.carrier import TopicGrammar
from vkprovider.carriers.settings import MqttSettings
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.rereading import Reread
from vkprovider.platform.settings import reveal

TOPICS: Final = TopicGrammar(wellknown.MANAGER)


def broker_of(mqtt: MqttSettings) -> Broker:
    """Return the broker of the settings, which name one.

    Raises:
        InputError: `SettingInvalid`: a file cannot be read.
    """
    host, port = mqtt.broker
    read_pem(mqtt.ca_file, "VKPROVIDER_TUNNEL_MQTT_CA_FILE")
    password = Reread([mqtt.password_file], lambda: read_line(mqtt.password_file, reveal(mqtt.password)))

    def login() -> Login | None:
        return (mqtt.username, password.current()) if mqtt.username else None

    return Broker(
        host,
        port,
        tls=mqtt.is_encrypted,
        ca_file=mqtt.ca_file,
        certificate_file=mqtt.cert_file,
        key_file=mqtt.key_file,
        login=login,
        version=mqtt.version,
    )


def read_line(path: str | None, otherwise: str | None) -> str:
    """Return the only line of a file; without a path, what a setting says.

    Raises:
        OSError: The file cannot be read.
        ValueError: It holds no text, or several lines.
    """
    if not path:
        return otherwise or ""
    lines = Path(path).read_text("utf-8").splitlines()
    if len(lines) != 1 or not lines[0]:
        raise ValueError(f"{len(lines)} lines, not one")
    return lines[0]


def read_pem(path: str | None, setting: str) -> str | None:
    """Return the text of a PEM file; None without a path.

    Raises:
        InputError: `SettingInvalid`: it cannot be read.
    """
    try:
        return Path(path).read_text("ascii") if path else None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(StartReason.SETTING_INVALID, f"{setting} {path}: {error}") from None

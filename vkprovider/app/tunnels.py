"""The carriers of the tunnels that the settings configure, for replicas and for agents."""

import re
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tunnels.direct import fresh_ssl_context
from tunnels.errors import CertificateInvalid
from tunnels.link.carrier import Address, Carrier
from tunnels.mqtt.broker import Broker, Login
from tunnels.mqtt.carrier import AgentSide, CallerSide, MqttCarrier
from tunnels.mqtt.topics import Topics
from tunnels.websocket.dialing import Dialing
from tunnels.websocket.listening import Listening
from vkprovider.api import names
from vkprovider.api.errors import InputError
from vkprovider.settings.services import reveal
from vkprovider.settings.tunnels import DialSettings, HttpTunnelSettings, MqttSettings

_TOPICS: Final = Topics(names.MANAGER)
_IDENTITY_CHARS_MAX: Final = 64
_NOT_IDENTITY: Final = re.compile(r"[^0-9A-Za-z_.-]")


def listening(settings: HttpTunnelSettings, process: str, dialled: Callable[[], Mapping[str, str]]) -> Listening | None:
    """Return a replica's carrier to agents that dial its page; None if the settings let none in.

    Args:
        settings: Who may dial.
        process: This process, unique for ever.
        dialled: Returns where agents dial each replica, by its process.
    """

    def callers() -> dict[str, str]:
        return {_identity(each): url for each, url in dialled().items()}

    return Listening(_identity(process), callers) if settings.is_on else None


def carriers(mqtt: MqttSettings, process: str, http: Listening | None) -> dict[str, Carrier]:
    """Return a replica's carriers, by the word in `spec.tunnel`; nothing connects before they run.

    Args:
        mqtt: The broker; no MQTT without a url.
        process: This process, unique for ever.
        http: See `listening`.

    Raises:
        InputError: `SettingInvalid`: a file cannot be read.
    """
    found: dict[str, Carrier] = {}
    if mqtt.url:
        found["mqtt"] = MqttCarrier(broker_of(mqtt), CallerSide(_TOPICS, _identity(process)))
    if http is not None:
        found["http"] = http
    return found


def agent_carrier(mqtt: MqttSettings, dial: DialSettings, address: Address) -> Carrier:
    """Return an agent's carrier; nothing connects before it runs.

    Args:
        mqtt: The broker.
        dial: The replicas' pages.
        address: The agent's.

    Raises:
        InputError: `SettingInvalid`: a setting is missing, or a file cannot be read.
    """
    if bool(mqtt.url) == bool(dial.url):
        wrong = "both are set" if mqtt.url else "neither is set: the agent has nothing to dial"
        raise InputError("SettingInvalid", f"set VKPROVIDER_TUNNEL_MQTT_URL or VKPROVIDER_TUNNEL_HTTP_URL; {wrong}")
    if mqtt.url:
        return MqttCarrier(broker_of(mqtt), AgentSide(_TOPICS, address))
    return Dialing(dial.urls, address, token=reveal(dial.token) or "", tls=_client_tls(dial))


def read_pem(path: str | None, setting: str) -> str | None:
    """Return the text of a PEM file; None without a path.

    Raises:
        InputError: `SettingInvalid`: it cannot be read.
    """
    try:
        return Path(path).read_text("ascii") if path else None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("SettingInvalid", f"{setting} {path}: {error}") from None


def broker_of(mqtt: MqttSettings) -> Broker:
    """Return the broker of the settings, which name one.

    Raises:
        InputError: `SettingInvalid`: a file cannot be read.
    """
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


def _client_tls(dial: DialSettings) -> ssl.SSLContext:
    """Return the TLS settings of an agent that dials pages.

    Raises:
        InputError: `SettingInvalid`: a file cannot be read.
    """
    bundle = read_pem(dial.ca_file, "VKPROVIDER_TUNNEL_HTTP_CA_FILE")
    try:
        context = fresh_ssl_context(verify=True, ca_bundle=bundle)
    except CertificateInvalid as error:
        raise InputError("SettingInvalid", f"VKPROVIDER_TUNNEL_HTTP_CA_FILE {dial.ca_file}: {error}") from None
    if dial.cert_file is not None:
        try:
            context.load_cert_chain(dial.cert_file, dial.key_file)
        except (OSError, ssl.SSLError) as error:
            where = (
                f"VKPROVIDER_TUNNEL_HTTP_CERT_FILE {dial.cert_file}, VKPROVIDER_TUNNEL_HTTP_KEY_FILE {dial.key_file}"
            )
            raise InputError("SettingInvalid", f"{where}: {error}") from None
    return context


def _identity(process: str) -> str:
    """Return the identity of a process as a caller."""
    return _NOT_IDENTITY.sub("-", process[-_IDENTITY_CHARS_MAX:])

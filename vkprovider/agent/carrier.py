"""The carrier of an agent: to a broker, or to the replicas' pages."""

import ssl

from tunnels.direct import fresh_ssl_context
from tunnels.errors import CertificateInvalid
from tunnels.link.carrier import Address, Carrier
from tunnels.mqtt.carrier import AgentSide, MqttCarrier
from tunnels.websocket.dialing import Credentials, Dialing
from vkprovider.agent.settings import DialSettings
from vkprovider.carriers.broker import TOPICS, broker_of, read_line, read_pem
from vkprovider.carriers.settings import MqttSettings
from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.rereading import Reread
from vkprovider.platform.settings import reveal


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
        raise InputError(
            StartReason.SETTING_INVALID, f"set VKPROVIDER_TUNNEL_MQTT_URL or VKPROVIDER_TUNNEL_HTTP_URL; {wrong}"
        )
    if mqtt.url:
        return MqttCarrier(broker_of(mqtt), AgentSide(TOPICS, address))
    token = Reread([dial.token_file], lambda: read_line(dial.token_file, reveal(dial.token)))
    tls = Reread([dial.ca_file, dial.cert_file, dial.key_file], lambda: _client_tls(dial))
    authorities = f"the file of VKPROVIDER_TUNNEL_HTTP_CA_FILE{'' if dial.ca_file else ', which is not set'}"
    return Dialing(dial.urls, address, lambda: Credentials(token.current(), tls.current()), authorities=authorities)


def _client_tls(dial: DialSettings) -> ssl.SSLContext:
    """Return the TLS settings of an agent that dials pages.

    Raises:
        InputError: `SettingInvalid`: a file cannot be used.
    """
    setting = "VKPROVIDER_TUNNEL_HTTP_CA_FILE"
    try:
        context = fresh_ssl_context(verify=True, ca_bundle=read_pem(dial.ca_file, setting))
    except CertificateInvalid as error:
        raise InputError(StartReason.SETTING_INVALID, f"{setting} {dial.ca_file}: {error}") from None
    if dial.cert_file is not None:
        try:
            context.load_cert_chain(dial.cert_file, dial.key_file)
        except OSError as error:  # of ssl, too
            where = (
                f"VKPROVIDER_TUNNEL_HTTP_CERT_FILE {dial.cert_file}, VKPROVIDER_TUNNEL_HTTP_KEY_FILE {dial.key_file}"
            )
            raise InputError(StartReason.SETTING_INVALID, f"{where}: {error}") from None
    return context

"""The way to a broker: a TCP connection, made directly or by an HTTP proxy's CONNECT. It blocks.

paho-mqtt's own way through a proxy needs PySocks, which has had no release since 2019 and reads no more than the first
line of a proxy's answer; `http.client` of Python makes the same tunnel.
"""

import http.client
import os
import socket
from base64 import b64encode
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from paho.mqtt import client as paho

from tunnels.mqtt.broker import Broker
from tunnels.mqtt.faults import BrokerFault
from tunnels.outgoing.proxies import ProxyUnsupportedError, place_of, proxy_of

_PORT: Final = 80
"""The port of a proxy whose URL names none."""


class DialledClient(paho.Client):
    """A client of paho-mqtt whose connection comes from `dial`."""

    def __init__(self, broker: Broker, **settings: Any) -> None:
        super().__init__(**settings)
        self._broker = broker

    def _create_socket_connection(self) -> socket.socket:
        return dial(self._broker)


def proxy_to(broker: Broker) -> str | None:
    """Return the URL of the proxy to a broker; None to dial it directly.

    `HTTPS_PROXY` is for connections with TLS and `HTTP_PROXY` for those without, as with every other server.

    Raises:
        ProxyUnsupportedError: The environment names a proxy that cannot be used.
    """
    proxy = proxy_of(f"{'https' if broker.tls else 'http'}://{_bracketed(broker.host)}:{broker.port}", os.environ)
    if proxy is not None and not proxy.startswith("http:"):
        raise ProxyUnsupportedError(
            f"proxy https://{place_of(proxy)}: a broker is reached through an http:// proxy only"
        )
    return proxy


def dial(broker: Broker) -> socket.socket:
    """Return a connection to a broker, before TLS.

    Raises:
        BrokerFault: The proxy cannot be used, cannot be reached, or makes no connection.
        OSError: Without a proxy, no connection came about.
    """
    try:
        proxy = proxy_to(broker)
    except ProxyUnsupportedError as error:
        raise BrokerFault(f"{broker}: {error}") from None
    if proxy is None:
        return socket.create_connection((broker.host, broker.port), timeout=broker.connect_s)
    where = urlsplit(proxy)
    tunnel = http.client.HTTPConnection(where.hostname or "", where.port or _PORT, timeout=broker.connect_s)
    tunnel.set_tunnel(_bracketed(broker.host), broker.port, headers=_login(where.username, where.password))
    try:
        tunnel.connect()
    except (OSError, UnicodeError, http.client.HTTPException) as error:
        tunnel.close()
        raise BrokerFault(f"{broker}: {_why(error, place_of(proxy))}") from error
    sock: socket.socket = tunnel.sock
    return sock


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _login(name: str | None, password: str | None) -> dict[str, str]:
    if name is None:
        return {}
    given = f"{unquote(name)}:{unquote(password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {b64encode(given).decode()}"}


def _why(error: Exception, place: str) -> str:
    """Return the sentence for a tunnel that does not come about; `http.client` has one for a refusal."""
    refusal = str(error).removeprefix("Tunnel connection failed: ")
    if refusal != str(error):
        return f"its proxy {place} answers {refusal}"
    if isinstance(error, http.client.HTTPException):
        return f"its proxy {place} does not answer as an HTTP proxy: {type(error).__name__} {error}"
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"no connection to its proxy {place}: {said}"

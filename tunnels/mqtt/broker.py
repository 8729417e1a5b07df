"""How a broker is reached, directly or by an HTTP proxy, and why it is not.

paho-mqtt's own way through a proxy needs PySocks, which has had no release since 2019 and reads no more than the first
line of a proxy's answer; `http.client` of Python makes the same tunnel.
"""

import http.client
import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

from paho.mqtt import client as paho

from tunnels.direct import fresh_ssl_context
from tunnels.outgoing import ProxyUnsupportedError, place_of, proxy_of

Login = tuple[str, str]
"""User name and password."""


def no_login() -> Login | None:
    """Return no user name and password: for a broker that knows its clients by their certificates."""
    return None


class _ClosesItself(ssl.SSLSocket):
    """A socket that is closed when the handshake fails; paho-mqtt forgets to."""

    def do_handshake(self, block: bool = False) -> None:  # noqa: FBT001, FBT002 (the signature of ssl)
        try:
            super().do_handshake(block)
        except BaseException:
            self.close()
            raise


@dataclass(frozen=True, slots=True)
class Broker:
    """An MQTT broker.

    Attributes:
        host: Its name, also the one that its certificate must bear.
        port: 8883 is usual with TLS, 1883 without.
        tls: Whether the connection is encrypted; the certificate is verified always.
        ca_file: PEM file of the authorities to trust instead of the system's; read at every connect.
        certificate_file: PEM file of the client's certificate, if the broker asks for one; read at every connect.
        key_file: PEM file of its key, if that is another one.
        login: Returns user name and password; called before every connect, so that they can be rotated.
        version: Of the protocol. With 5, the broker says why it refuses a message.
        keepalive_s: A connection on which nothing comes for one and a half times as long is lost.
        connect_s: Until a connection must stand.
    """

    host: str
    port: int
    tls: bool = True
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    login: Callable[[], Login | None] = no_login
    version: Literal["5", "3.1.1"] = "5"
    keepalive_s: int = 15
    connect_s: float = 10.0

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def ssl_context(self) -> ssl.SSLContext:
        """Return fresh TLS settings.

        Raises:
            CertificateInvalid: The authorities are not PEM text.
            OSError: A file cannot be read.
        """
        ca_bundle = Path(self.ca_file).read_text("ascii", "replace") if self.ca_file is not None else None
        context = fresh_ssl_context(verify=True, ca_bundle=ca_bundle)
        context.sslsocket_class = _ClosesItself
        if self.certificate_file is not None:
            context.load_cert_chain(self.certificate_file, self.key_file)
        return context


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


class BrokerFault(Exception):  # noqa: N818 (a state of the world)
    """The broker cannot be reached, refuses the client, or the connection ended."""


class TlsFault(BrokerFault):
    """The broker cannot be trusted, or does not speak TLS."""


class LoginRefused(BrokerFault):
    """The broker does not accept user name, password or certificate."""


class TopicRefused(BrokerFault):
    """The broker's access rules do not allow a topic."""

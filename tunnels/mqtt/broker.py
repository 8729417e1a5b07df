"""How a broker is reached."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tunnels.direct import fresh_ssl_context

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

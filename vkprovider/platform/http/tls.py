"""TLS of servers: certificate and key from files, read again when they change, or made by the replica itself."""

import functools
import ssl
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.rereading import Reread
from vkprovider.platform.settings import HttpSettings

_log: Final = structlog.get_logger(__name__)


def context_of_pair(pair: bytes) -> ssl.SSLContext:
    """Return the context of a server with a key and its certificate, PEM.

    Raises:
        ssl.SSLError: They do not belong together.
    """
    # Python's ssl loads certificates only from files; this one exists for the call.
    with tempfile.TemporaryDirectory(prefix="vkprovider-") as folder:  # mode 0700
        path = Path(folder) / "pair.pem"
        path.write_bytes(pair)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(path)
        return context


_VALID_DAYS: Final = 3650
"""The certificate's life, longer than that of any process: nobody renews it."""
_BEFORE: Final = timedelta(days=1)
"""How far the clocks of clients may be behind."""


def self_signed(hosts: Sequence[str]) -> bytes:
    """Return a new key and its certificate, PEM.

    Args:
        hosts: Names and addresses that the certificate is for.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "vkprovider self-signed")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + timedelta(days=_VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([_general(host) for host in dict.fromkeys(hosts)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + certificate.public_bytes(serialization.Encoding.PEM)


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


_SETTINGS: Final = "VKPROVIDER_HTTP_TLS_CERT", "VKPROVIDER_HTTP_TLS_KEY"


class ServingCertificate:
    """A certificate that can be renewed while the page is served.

    Attributes:
        context: For the listener. Each handshake goes on with what the files hold then, so no loop is needed.
    """

    def __init__(
        self, files: tuple[str, str] | None, *, hosts: Sequence[str] = (), client_ca: str | None = None
    ) -> None:
        """Read the files, or make a certificate while there are none.

        Args:
            files: Certificate and key, PEM.
            hosts: Of the certificate that serves until the files exist; without any they must exist.
            client_ca: PEM file of the authorities that may sign certificates of clients, who need none; None: nobody
                is asked for one.

        Raises:
            InputError: `SettingInvalid`: the files cannot be used.
        """
        named = files or ()
        own = functools.partial(_own, hosts, named) if hosts else None
        self._pair: Reread[bytes] = Reread(named, functools.partial(_read_pair, named), before=own)
        self._authorities: Reread[str] = Reread([client_ca], functools.partial(_read_authorities, client_ca))
        self._context = functools.lru_cache(maxsize=1)(_serving)
        self.context = self._context(self._pair.current(), self._authorities.current())
        self.context.sni_callback = self._handshake

    def _handshake(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._context(self._pair.current(), self._authorities.current())


def page_tls(http: HttpSettings, hosts: Iterable[str], *, client_ca: str | None = None) -> ssl.SSLContext | None:
    """Return the context of a page; None if its settings name no certificate, so that it is plain HTTP.

    Args:
        http: Settings of the page.
        hosts: Names and addresses of a certificate of its own making.
        client_ca: As in `ServingCertificate`.

    Raises:
        InputError: `SettingInvalid`: the certificate cannot be used.
    """
    own = list(hosts) if http.tls_self_signed else []
    if not (http.tls_files or own):
        return None
    return ServingCertificate(http.tls_files, hosts=own, client_ca=client_ca).context


def _own(hosts: Sequence[str], files: Sequence[str]) -> bytes:
    """Return a certificate of the replica's own making, and say that there is one."""
    _log.info("the page has a certificate of its own, which nobody can verify", file=", ".join(files))
    return self_signed(hosts)


def _read_pair(files: Sequence[str]) -> bytes:
    """Return a certificate and its key, PEM.

    Raises:
        InputError: `SettingInvalid`: they cannot be used.
    """
    try:
        pair = b"\n".join(Path(name).read_bytes() for name in dict.fromkeys(files))
        context_of_pair(pair)
    except (OSError, ssl.SSLError) as error:
        text = " and ".join(f"{name} {file}" for name, file in zip(_SETTINGS, files, strict=True))
        raise InputError(
            StartReason.SETTING_INVALID, f"{text}: {error}; expected PEM files that belong together"
        ) from None
    return pair


def _read_authorities(file: str | None) -> str:
    """Return certificates of authorities, PEM; empty without a file.

    Raises:
        InputError: `SettingInvalid`: they cannot be used.
    """
    if file is None:
        return ""
    try:
        text = Path(file).read_bytes().decode("ascii", "ignore")  # what is not ASCII is a comment
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=text)
    except (OSError, ValueError) as error:  # of ssl, too
        raise InputError(
            StartReason.SETTING_INVALID, f"VKPROVIDER_TUNNEL_HTTP_CLIENT_CA_FILE {file}: {error}"
        ) from None
    return text


def _serving(pair: bytes, authorities: str) -> ssl.SSLContext:
    """Return the context that serves a certificate, and asks clients for theirs where there are authorities."""
    context = context_of_pair(pair)
    if authorities:
        context.load_verify_locations(cadata=authorities)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context

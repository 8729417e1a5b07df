"""TLS of the page: certificate and key from files, read again when they are renewed, or of the replica's own making."""

import functools
import ssl
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import structlog

from vkprovider.platform.errors import InputError
from vkprovider.platform.http import contexts
from vkprovider.platform.http.selfsigned import self_signed
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.rereading import Reread
from vkprovider.platform.settings import HttpSettings

_log: Final = structlog.get_logger(__name__)
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
        contexts.of_pair(pair)
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
    context = contexts.of_pair(pair)
    if authorities:
        context.load_verify_locations(cadata=authorities)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context

"""TLS of the page: certificate and key from files, reread when they are renewed, or of the replica's own making."""

import ssl
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from vkprovider.api.errors import InputError
from vkprovider.serving import contexts
from vkprovider.serving.selfsigned import self_signed

_log: Final = structlog.get_logger(__name__)
_LOOK_EVERY_S: Final = 5.0


class ServingCertificate:
    """A certificate that can be renewed while the page is served.

    Attributes:
        context: For the listener. A handshake checks whether the files changed, so no loop is needed.
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
        self._client_ca = client_ca
        self._files = tuple(Path(name) for name in files or ())
        self._looked_at = time.monotonic()
        self._stamp: tuple[int, ...] = ()  # empty while the certificate is the replica's own
        if hosts and not self._exist():
            self._current = self._serving(contexts.of_pair(self_signed(hosts)))
            _log.info("the page has a certificate of its own, which nobody can verify", file=", ".join(files or ()))
        else:
            self._stamp, self._current = self._first()
        self.context = self._current
        self.context.sni_callback = self._handshake

    def _first(self) -> tuple[tuple[int, ...], ssl.SSLContext]:
        certificate, key = self._files
        try:
            return self._look(), self._serving(contexts.load(certificate, key))
        except (OSError, ssl.SSLError) as error:
            text = f"VKPROVIDER_HTTP_TLS_CERT {certificate}, VKPROVIDER_HTTP_TLS_KEY {key}: {error}"
            raise InputError("SettingInvalid", f"{text}; expected PEM files that belong together") from None

    def _serving(self, context: ssl.SSLContext) -> ssl.SSLContext:
        """Make a context ask clients for a certificate, where they may have one.

        Raises:
            InputError: `SettingInvalid`: the file of the authorities cannot be used.
        """
        if self._client_ca is not None:
            try:
                context.load_verify_locations(self._client_ca)
            except (OSError, ssl.SSLError) as error:
                text = f"VKPROVIDER_TUNNEL_HTTP_CLIENT_CA_FILE {self._client_ca}: {error}"
                raise InputError("SettingInvalid", text) from None
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _exist(self) -> bool:
        return any(path.exists() for path in self._files)

    def _look(self) -> tuple[int, ...]:
        return tuple(path.stat().st_mtime_ns for path in self._files)

    def _handshake(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        if time.monotonic() - self._looked_at >= _LOOK_EVERY_S:
            self._looked_at = time.monotonic()
            self.renew()
        connection.context = self._current

    def renew(self) -> None:
        """Reread the files if they changed; on an error, log it and keep the old certificate."""
        if not self._stamp and not self._exist():
            return
        certificate, key = self._files
        try:
            stamp = self._look()
            if stamp != self._stamp:
                self._current, self._stamp = self._serving(contexts.load(certificate, key)), stamp
                _log.info("the page's certificate was renewed", file=str(certificate))
        except (OSError, ssl.SSLError, InputError) as error:
            _log.warning("the page's certificate cannot be read again", file=str(certificate), error=str(error))

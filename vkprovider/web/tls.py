"""TLS of the page: certificate and key from files, reread when they are renewed."""

import ssl
import time
from pathlib import Path
from typing import Final

import structlog

from vkprovider.api.errors import InputError

_log: Final = structlog.get_logger(__name__)
_LOOK_EVERY_S: Final = 5.0


class ServingCertificate:
    """A certificate that can be renewed while the page is served.

    Attributes:
        context: For the listener. A handshake checks whether the files changed, so no loop is needed.
    """

    def __init__(self, certificate: str, key: str) -> None:
        """Read the files.

        Raises:
            InputError: `SettingInvalid`: they cannot be used.
        """
        self._files = (Path(certificate), Path(key))
        self._looked_at = time.monotonic()
        try:
            self._stamp = self._look()
            self._current = self._load()
        except (OSError, ssl.SSLError) as error:
            text = f"VKPROVIDER_HTTP_TLS_CERT {certificate}, VKPROVIDER_HTTP_TLS_KEY {key}: {error}"
            raise InputError("SettingInvalid", f"{text}; expected PEM files that belong together") from None
        self.context = self._current
        self.context.sni_callback = self._handshake

    def _look(self) -> tuple[int, ...]:
        return tuple(path.stat().st_mtime_ns for path in self._files)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(*self._files)
        return context

    def _handshake(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        if time.monotonic() - self._looked_at >= _LOOK_EVERY_S:
            self._looked_at = time.monotonic()
            self.renew()
        connection.context = self._current

    def renew(self) -> None:
        """Reread the files if they changed; on an error, log it and keep the old certificate."""
        try:
            stamp = self._look()
            if stamp != self._stamp:
                self._current, self._stamp = self._load(), stamp
                _log.info("the page's certificate was renewed", file=str(self._files[0]))
        except (OSError, ssl.SSLError) as error:
            _log.warning("the page's certificate cannot be read again", file=str(self._files[0]), error=str(error))

"""TLS of the kubelet API: a certificate and authorities of clients that change while connections are open."""

import ssl
import weakref
from typing import Any

from vkprovider.platform.http import contexts


class ServingTls:
    """The certificate of all listeners, and whose client certificates they verify.

    Without authorities no client certificate can be verified, and a handshake with one fails.

    Attributes:
        context: For the listeners; each handshake goes on with the current certificate and authorities.
    """

    def __init__(self, pair: bytes) -> None:
        """Begin with a key and its certificate, PEM, and no authorities."""
        self._pair = pair
        self._authorities = ""
        self._verifying: weakref.WeakSet[ssl.SSLContext] = weakref.WeakSet()
        self._current = self._made()
        self.context = self._made()
        self.context.sni_callback = self._handshake

    def serve(self, pair: bytes) -> None:
        """Use another key and certificate from now on.

        Raises:
            ssl.SSLError: They do not belong together.
        """
        before, self._pair = self._pair, pair
        try:
            self._current = self._made()
        except ssl.SSLError:
            self._pair = before
            raise

    def trust(self, authorities: str) -> None:
        """Verify client certificates by other authorities, PEM, from now on; others count no more.

        Raises:
            ssl.SSLError: It is not PEM.
        """
        before, self._authorities = self._authorities, authorities
        known, self._verifying = self._verifying, weakref.WeakSet()
        try:
            self._current = self._made()
        except ssl.SSLError:
            self._authorities, self._verifying = before, known
            raise

    def certificate_of(self, connection: ssl.SSLObject) -> dict[str, Any] | None:
        """Return the client certificate of a connection; None without one that today's authorities have verified.

        A resumed session brings a certificate that was verified in an earlier one: it does not count.
        """
        if connection.context not in self._verifying or connection.session_reused:
            return None
        found: dict[str, Any] | None = connection.getpeercert()
        return found or None

    def _made(self) -> ssl.SSLContext:
        context = contexts.of_pair(self._pair)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
        if self._authorities:
            context.load_verify_locations(cadata=self._authorities)
            self._verifying.add(context)
        return context

    def _handshake(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current

"""TLS of the kubelet API: its certificate, and the authorities that sign those of clients.

The API server publishes the authorities in a ConfigMap (its `--client-ca-file`); a kubelet has the same as a file.
"""

import ssl
import weakref
from typing import Any, Final

import structlog

from vkprovider.platform.http.tls import context_of_pair
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.objects import ConfigMap

_log: Final = structlog.get_logger(__name__)


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
        context = context_of_pair(self._pair)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
        if self._authorities:
            context.load_verify_locations(cadata=self._authorities)
            self._verifying.add(context)
        return context

    def _handshake(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current


_NAME: Final = "extension-apiserver-authentication"
_KEY: Final = "client-ca-file"


def client_authorities(kube: KubeClient, tls: ServingTls) -> Informer[ConfigMap]:
    """Return the informer that keeps the authorities of the kubelet API up to date while it runs."""

    def changed(_: ConfigMap | None, new: ConfigMap | None) -> None:
        found = new.data.get(_KEY, "") if new is not None else ""
        if not found:
            _log.warning("client certificates cannot be verified: the API server publishes no authority", name=_NAME)
        try:
            tls.trust(found)
        except ssl.SSLError as error:
            _log.warning("the authorities of client certificates cannot be read", name=_NAME, error=str(error))

    informer = Informer(
        kube,
        "/api/v1/namespaces/kube-system/configmaps",
        ConfigMap,
        name="client-authorities",
        field_selector=f"metadata.name={_NAME}",
    )
    informer.add_handler(changed)
    return informer

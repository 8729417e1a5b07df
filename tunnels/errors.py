"""Every error of the transports, by what is known about the request.

    TransportError
    ├── RequestRefused      not on the allow-list: nothing was sent
    ├── StaleEpoch          the agent has heard a newer owner: nothing was sent
    ├── ConnectFailed       no connection (no such host, refused, no TLS there): nothing was sent
    ├── CertificateInvalid  the server's certificate cannot be trusted: nothing was sent
    ├── ConnectionLost      the connection ended before the response: the request may have been carried out
    └── DeadlineExceeded    no response in time: the request may have been carried out

Messages name host and port, never headers or bodies.
"""

from typing import Literal

CertificateFault = Literal["self-signed", "expired", "not-yet-valid", "hostname", "untrusted", "ca-bundle"]
"""What is wrong with a certificate; `ca-bundle`: the CA bundle itself is unreadable."""


class TransportError(Exception):
    """The root of the tree."""


class RequestRefused(TransportError):  # noqa: N818 (a verdict, not a fault)
    """The request is not on the allow-list."""


class StaleEpoch(TransportError):  # noqa: N818 (a verdict, not a fault)
    """An agent has seen a newer epoch than the request's: another caller owns the server now."""


class ConnectFailed(TransportError):  # noqa: N818 (the tree's naming)
    """No connection came about; nothing was sent."""


class CertificateInvalid(TransportError):  # noqa: N818 (the tree's naming)
    """The server's certificate cannot be trusted; nothing was sent.

    Attributes:
        fault: What is wrong with it.
    """

    def __init__(self, message: str, *, fault: CertificateFault) -> None:
        super().__init__(message)
        self.fault = fault


class ConnectionLost(TransportError):  # noqa: N818 (the tree's naming)
    """The connection ended before the whole response; the request may have been carried out."""


class DeadlineExceeded(TransportError):  # noqa: N818 (the tree's naming)
    """No whole response in time; the request may have been carried out."""

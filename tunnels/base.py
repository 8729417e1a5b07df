"""The contracts of every transport: requests, streams of bytes, their errors, and the requests that may pass.

    TransportError
    ├── RequestRefused      not on the allow-list: nothing was sent
    ├── StaleEpoch          the agent has heard a newer owner: nothing was sent
    ├── ConnectFailed       no connection (no such host, refused, no TLS there): nothing was sent
    ├── CertificateInvalid  the server's certificate cannot be trusted: nothing was sent
    ├── ConnectionLost      the connection ended before the response: the request may have been carried out
    └── DeadlineExceeded    no response in time: the request may have been carried out

Messages name host and port, never headers or bodies.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

_RETRY_AFTER_S_MAX: Final = 300.0


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response.

    Attributes:
        status: The HTTP status, also 4xx and 5xx: those are answers, not errors of the transport.
        body: The body, decompressed.
        headers: The few headers that callers need, names in lower case: `content-type`, `date`, `location`,
            `retry-after`.
    """

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def retry_after_s(self, default_s: float = 1.0) -> float:
        """Return Retry-After in seconds, bounded to 0.1 s … 5 minutes.

        Its form with a date, which none of the services here uses, counts as absent.
        """
        try:
            asked_s = float(self.headers.get("retry-after", default_s))
        except ValueError:
            return default_s
        return min(max(0.1, asked_s), _RETRY_AFTER_S_MAX)


class Transport(Protocol):
    """Carries requests to one server.

    Obligations of every implementation:

    * A request that its allow-list does not name is refused before anything is sent.
    * `deadline_s` covers everything: waiting for a free connection, connecting, sending, and the whole response.
    * A write is sent at most once. A read may be repeated once, and only because the connection ended without an
      answer.
    * Redirects are not followed; they could lead around the allow-list.
    * Every error is of `tunnels.base`; only what the caller's guard raises passes through unchanged.
    * Cancelling the caller cancels the request; the connection is not used again.
    """

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> Response:
        """Send one request and return the whole response.

        Args:
            method: `GET`, `POST`, …
            path: The absolute path, without query: `/api/v0/labs`.
            params: The query.
            body: The body, sent as it is; a content type only if `headers` names one.
            headers: Further headers.
            deadline_s: Seconds until `DeadlineExceeded`.

        Raises:
            TransportError: The response did not arrive.
        """

    async def close(self) -> None:
        """Close all connections; later requests raise `ConnectFailed`."""


class ByteChannel(Protocol):
    """A connection that carries bytes both ways, each of which ends by itself."""

    async def read(self) -> bytes:
        """Return the next bytes; none at the end.

        Raises:
            ConnectionLost: It broke, or the other side has left.
        """

    async def write(self, data: bytes) -> None:
        """Send bytes, and wait while too many are on their way.

        Raises:
            ConnectionLost: It broke or was closed.
        """

    async def end(self) -> None:
        """Say that nothing more is written; reading goes on. Where that cannot be said, do nothing."""

    async def close(self) -> None:
        """Close it in both directions."""


class StreamOpener(Protocol):
    """Opens streams of bytes to one server; its obligations are those of a `Transport`."""

    async def open_stream(
        self, path: str, *, params: Mapping[str, str] | None = None, deadline_s: float
    ) -> ByteChannel:
        """Open a stream.

        Args:
            path: What to connect to; an allow-list names it with the method `OPEN`.
            params: Further particulars, such as a key.
            deadline_s: Seconds until `DeadlineExceeded`; an open stream has none.

        Raises:
            TransportError: It was not opened.
        """

    async def close(self) -> None:
        """Close all connections; later streams raise `ConnectFailed`."""


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


_SEGMENT: Final = r"[0-9A-Za-z_-]{1,64}"
"""What a `{placeholder}` stands for: one segment without dots, escapes or slashes, so that no path can climb out."""


class AllowList:
    """A closed list of (method, path pattern).

    Args:
        entries: For instance `[("GET", "/api/v0/labs"), ("PUT", "/api/v0/labs/{lab}/start")]`.
    """

    def __init__(self, entries: Iterable[tuple[str, str]]) -> None:
        self.entries: Final = tuple(entries)
        patterns: dict[str, list[str]] = {}
        for method, pattern in self.entries:
            literal = re.split(r"\{[a-z_]+\}", pattern)
            patterns.setdefault(method, []).append(_SEGMENT.join(re.escape(part) for part in literal))
        self._patterns = {method: re.compile("|".join(paths)) for method, paths in patterns.items()}

    def allows(self, method: str, path: str) -> bool:
        """Return whether the list names the request."""
        pattern = self._patterns.get(method)
        return pattern is not None and pattern.fullmatch(path) is not None

    def check(self, method: str, path: str) -> None:
        """Refuse a request that the list does not name.

        Raises:
            RequestRefused: It does not.
        """
        if not self.allows(method, path):
            raise RequestRefused(f"{method} {path} is not on the allow-list")

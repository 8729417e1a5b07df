"""One request and its answer: base path, headers, deadline; how long it took, and what time it is on the server."""

import asyncio
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from typing import Final

from tunnels import base
from tunnels.base import Response, Transport, TransportError
from vkprovider.platform.histogram import LONG_S, Histogram
from vkprovider.rest import dialect as dialects
from vkprovider.rest.dialect import Dialect
from vkprovider.rest.operations import OperationRequest

BOUNDS_S: Final = (0.005, 0.02, 0.1, 0.5)
"""The short ones; a service adds those of `LONG_S` that its timeouts reach."""

_UNANSWERED: Final = (
    (base.DeadlineExceeded, "timeout"),
    (base.ConnectionLost, "lost"),
    (base.CertificateInvalid, "certificate"),
    (base.RequestRefused, "not_allowed"),
)


def code_of(error: base.TransportError) -> str:
    """Return the metric's code for a request without an answer; `unreachable` if there was not even a connection."""
    return next((code for kind, code in _UNANSWERED if isinstance(error, kind)), "unreachable")


class Calls:
    """Seconds of requests by the service's labels, operation and code: an HTTP status, or a word of `code_of`.

    Args:
        long_bounds: How many of `LONG_S` the histograms have.
    """

    def __init__(self, *, long_bounds: int) -> None:
        self.took_s: dict[tuple[str, ...], Histogram] = {}
        self._bounds_s = (*BOUNDS_S, *LONG_S[:long_bounds])

    def count(self, labels: Sequence[str], took_s: float) -> None:
        """Count a request."""
        key = tuple(labels)
        histogram = self.took_s.get(key)
        if histogram is None:
            histogram = self.took_s[key] = Histogram(self._bounds_s)
        histogram.observe(took_s)


class ServerClock:
    """What time it is on a server; unknown before its first answer with a date."""

    def __init__(self) -> None:
        self._date = 0.0
        self._seen_at = 0.0

    def note(self, response: Response, at: float) -> None:
        """Note the date of an answer, if it has one.

        Args:
            response: The answer.
            at: When it arrived, by a monotonic clock.
        """
        try:
            self._date = parsedate_to_datetime(response.headers["date"]).timestamp()
        except (KeyError, ValueError, OverflowError):
            return
        self._seen_at = at

    def at(self, now: float) -> int:
        """Return the server's Unix seconds at `now`, by the same monotonic clock; 0 while they are unknown."""
        return int(self._date + max(0.0, now - self._seen_at)) if self._date else 0


_SECONDS_MIN: Final = 0.001


class Exchange:
    """Requests to one service, without retries; the caller brings the token.

    Args:
        transport: Carries the requests; closed with the exchange.
        dialect: The service's.
        base: What precedes every path: `/api/v0`.
        calls: Counts the requests; None for none.
        labels: The first labels of each count.

    Attributes:
        clock: The service's.
    """

    def __init__(
        self,
        transport: Transport,
        dialect: Dialect,
        *,
        base: str = "",
        calls: Calls | None = None,
        labels: tuple[str, ...] = (),
    ) -> None:
        self.dialect: Final = dialect
        self.clock: Final = ServerClock()
        self._transport = transport
        self._base = base
        self._calls = calls
        self._labels = labels

    async def send(self, request: OperationRequest, token: str | None, end_s: float) -> Response:
        """Send a request and return the answer, whatever its status.

        Args:
            request: The request.
            token: The bearer token; None for none.
            end_s: The deadline, by the event loop's clock.

        Raises:
            OutsideError: There was no answer.
        """
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if request.content_type:
            headers["Content-Type"] = request.content_type
        now_s = asyncio.get_running_loop().time
        began_s, code = now_s(), ""
        try:
            response = await self._transport.request(
                request.operation.method,
                self._base + request.path,
                params=request.params,
                body=request.body,
                headers=headers,
                deadline_s=max(_SECONDS_MIN, end_s - began_s),
            )
            code = str(response.status)
            if response.status in dialects.SUCCESSES:  # an error may be that of a proxy, whose clock is another
                self.clock.note(response, now_s())
        except TransportError as error:
            code = code_of(error)
            raise dialects.transport_error(self.dialect, request, error) from error
        finally:
            if self._calls is not None and code:
                self._calls.count((*self._labels, request.operation.name, code), now_s() - began_s)
        return response

    async def close(self) -> None:
        """Close the transport."""
        await self._transport.close()

"""One request and its answer: the base path, the headers, the deadline, the count, the translated error."""

import asyncio
from typing import Final

from tunnels.base import Response, Transport
from tunnels.errors import TransportError
from vkprovider.rest import dialect as dialects
from vkprovider.rest.calls import Calls, code_of
from vkprovider.rest.clock import ServerClock
from vkprovider.rest.dialect import Dialect
from vkprovider.rest.operations import OperationRequest

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

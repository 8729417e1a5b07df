"""The server beside an agent: callers' requests to it, and streams of bytes that they open to it."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from tunnels import wire
from tunnels.base import (
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    RequestRefused,
    Response,
    StreamOpener,
    Transport,
    TransportError,
)
from tunnels.link.stream import StreamPort, join
from tunnels.protocol import refusals
from tunnels.protocol.answering import Run

STREAMS_MAX: Final = 512
"""Streams at once: far more than people look at consoles, and few enough for a small process."""
_HEADERS: Final = frozenset({"accept", "authorization", "content-type", "user-agent"})
"""The headers that are passed on; anything else is between caller and agent."""
_LOG: Final = logging.getLogger("tunnels")


class Server:
    """The server of one agent; what callers may ask of it is decided before.

    Args:
        agent: The agent's name, for messages.
        transport: Reaches the server.
        opener: Opens streams to it; None: there are none.
        say: Sends a message to a caller.
        counts: Those of the agent.
    """

    def __init__(
        self,
        agent: str,
        transport: Transport,
        opener: StreamOpener | None,
        say: Callable[[str, wire.Message], None],
        counts: Counter[str],
    ) -> None:
        self.streams: Final = StreamPort(say)
        self._agent = agent
        self._transport = transport
        self._opener = opener
        self._say = say
        self._counts = counts

    async def answer(self, run: Run) -> Response | TransportError:
        """Carry out a request."""
        request = run.request
        try:
            return await self._transport.request(
                request.method,
                request.path,
                params=request.params or None,
                body=run.body or None,
                headers=_passed_on(request.headers),
                deadline_s=run.left_s,
            )
        except TransportError as error:
            return error
        except Exception:  # noqa: BLE001 (a header that HTTP does not know, or a fault of the embedder's transport)
            _LOG.exception("agent %s: %s %s failed", self._agent, request.method, request.path)
            return ConnectionLost(f"the agent failed at {request.method} {request.path}: see its log")

    async def carry(self, peer: str, opening: wire.StreamOpen, left_s: float) -> None:
        """Connect, accept a stream, and copy bytes until either side ends; refuse it if that fails.

        Args:
            peer: The caller.
            opening: Its message.
            left_s: How long connecting may take.
        """
        try:
            if self._opener is None:
                raise RequestRefused(f"the agent of {self._agent} opens no streams")  # noqa: TRY301 (as the opener's)
            if len(self.streams) >= STREAMS_MAX:
                raise ConnectFailed(f"the agent of {self._agent} carries {STREAMS_MAX} streams already")  # noqa: TRY301 (as above)
            async with asyncio.timeout(left_s):
                channel = await self._opener.open_stream(opening.path, params=opening.params, deadline_s=left_s)
        except TransportError as error:
            self._refuse(peer, opening, error)
        except TimeoutError:
            self._refuse(peer, opening, DeadlineExceeded(f"{opening.path} was not opened in time"))
        except Exception:  # noqa: BLE001 (a fault of the embedder's opener)
            _LOG.exception("agent %s: no stream to %s", self._agent, opening.path)
            self._refuse(peer, opening, ConnectionLost(f"the agent failed to open {opening.path}: see its log"))
        else:
            self._counts["streams"] += 1
            await join(self.streams.accept(peer, opening), channel)

    def _refuse(self, peer: str, opening: wire.StreamOpen, error: TransportError) -> None:
        self._say(peer, refusals.of_error(opening.stream, error))


def _passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() in _HEADERS}

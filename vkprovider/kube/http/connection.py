"""One HTTP/1.1 connection to an API server, with one request on it at a time; `httptools` parses the responses.

A general client spends 100 µs of CPU on a request, mostly on what an API server never uses: cookies, redirects,
compression, multipart bodies. A thousand pods that come and go are thousands of small requests and as many watch
events. Here a request is one write, and a response is what the parser reports of it.
"""

import asyncio
from typing import Final, Literal, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

_FRAMING_BYTES_MAX: Final = 1 << 16
"""Bytes in a row without a complete head and without a byte of a body: a head, a chunk size, or a trailer."""
_BUFFERED_BYTES_MAX: Final = 1 << 22
_BODILESS: Final = {204, 304}
_INTERIM: Final = range(100, 200)


class ProtocolError(Exception):
    """The peer sent something that is not an HTTP/1.1 response."""


class SilentError(OSError):
    """Nothing arrived for longer than a stream may be silent."""


class Connection(asyncio.BufferedProtocol):
    """One connection, with one request on it at a time.

    Received bytes go into a buffer that all connections share: uvloop would otherwise allocate 256 KiB for each read,
    mostly for a few hundred bytes.

    Attributes:
        status: Of the response; 0 before its head is complete.
        headers: Of the response, names in lower case.
        complete: Whether the whole response has arrived.
        heard: Whether any byte of it has arrived.
        closed: Whether the connection is lost.
        uses: Requests sent on it.
        idle_since_s: Written by the pool, as is `generation`.
        generation: The generation of credentials with which it was opened.
    """

    def __init__(self, buffer: memoryview) -> None:
        """Read into `buffer`, which is free again after each call of `buffer_updated`."""
        self._buffer = buffer
        self.closed = False
        self.uses = 0
        self.idle_since_s = 0.0
        self.generation = 0
        self._parser = HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._awaited: Literal["head", "some", "all"] = "all"
        self._paused = False
        self._silence_s_max = 0.0
        self._heard_at_s = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._reset()

    def _reset(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.complete = self.heard = False
        self._parts: list[bytes] = []
        self._buffered_bytes = self._framing_bytes = 0
        self._reusable = True
        self._until_closed = False
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    @property
    def usable(self) -> bool:
        """Whether another request may follow."""
        return self.complete and self._reusable and not self.closed

    def send(self, request: bytes) -> None:
        """Send a request and forget the previous response."""
        self._reset()
        self.uses += 1
        if self._transport is not None:
            self._transport.write(request)

    async def head(self) -> int:
        """Wait for the head of the response; return its status.

        Raises:
            OSError: The connection is lost.
            ProtocolError: What arrived is not an HTTP/1.1 response.
        """
        if not self.status:
            await self._wait("head")
        return self.status

    async def body(self) -> bytes:
        """Wait for the whole response; return its body.

        Raises:
            OSError: The connection is lost.
            ProtocolError: What arrived is not an HTTP/1.1 response.
        """
        if not self.complete:
            await self._wait("all")
        return self._pop()

    async def piece(self) -> bytes:
        """Wait for more of the body; return what has arrived, or nothing at its end.

        Raises:
            OSError: The connection is lost.
            ProtocolError: What arrived is not an HTTP/1.1 response.
        """
        if not self._parts and not self.complete:
            await self._wait("some")
        return self._pop()

    def limit_silence(self, silence_s_max: float) -> None:
        """Make `piece` raise `SilentError` after so long without a byte; applies to this response only.

        One timer serves the whole response, because a stream arrives in thousands of pieces.
        """
        self._silence_s_max = silence_s_max
        self._heard_at_s = asyncio.get_running_loop().time()
        self._set_alarm(silence_s_max)

    def _set_alarm(self, after_s: float) -> None:
        self._alarm = asyncio.get_running_loop().call_later(after_s, self._check_silence)

    def _check_silence(self) -> None:
        if self.complete or self.closed:
            return
        left_s = self._heard_at_s + self._silence_s_max - asyncio.get_running_loop().time()
        if self._paused:  # the consumer is slow, not the peer
            left_s = self._silence_s_max
        if left_s > 0:
            self._set_alarm(left_s)
        else:
            self._fail(SilentError(f"nothing heard for {self._silence_s_max:g} s"))
            self._wake()

    def close(self) -> None:
        """Abort the connection; what has not arrived never will."""
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: Exception) -> None:
        self._error = error
        self.close()

    async def _wait(self, what: Literal["head", "some", "all"]) -> None:
        if self._error is not None:
            raise self._error
        self._awaited = what
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if self._error is not None:
            self._waiter.set_exception(self._error)
        elif self.complete or (self._awaited == "head" and self.status) or (self._awaited == "some" and self._parts):
            self._waiter.set_result(None)

    def _pop(self) -> bytes:
        parts, self._parts, self._buffered_bytes = self._parts, [], 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it

    def connection_lost(self, exc: Exception | None) -> None:
        """End; this is the regular end of a response that has neither a length nor chunks."""
        self.closed = True
        if self._until_closed and exc is None:
            self.complete = True
        else:
            self._error = self._error or exc or ConnectionResetError("the server closed the connection")
        self._wake()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 (asyncio's signature)
        """Return where to read to."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parse what has arrived."""
        if self._alarm is not None:
            self._heard_at_s = asyncio.get_running_loop().time()
        self.heard = True
        if self.complete:  # bytes that belong to no request: nothing may follow on this connection
            self._reusable = False
            return
        self._parse(self._buffer[:nbytes])
        if self._buffered_bytes > _BUFFERED_BYTES_MAX and self._awaited == "some" and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def _parse(self, data: memoryview) -> None:
        self._framing_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if self.complete:  # the error is in what follows the response
                self._reusable = False
            else:
                self._fail(ProtocolError(f"not an HTTP/1.1 response: {error}"))
        if self._framing_bytes > _FRAMING_BYTES_MAX:
            self._fail(ProtocolError(f"not an HTTP/1.1 response: {self._framing_bytes} bytes without a head or a body"))

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        """Notice a second response, which no request asked for."""
        if self.complete:
            self._reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect the headers; a trailer changes nothing any more."""
        if not self.status:
            self.headers[name.lower().decode("latin-1")] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        """Evaluate the head; interim responses (100, 103) are skipped."""
        status = self._parser.get_status_code()
        if self.complete:
            return
        if status in _INTERIM:
            self.headers = {}
            return
        self.status = status
        self._framing_bytes = 0
        self._reusable = self._parser.should_keep_alive()
        headers = self.headers
        chunked = headers.get("transfer-encoding", "").lower().endswith("chunked")
        self._until_closed = not chunked and "content-length" not in headers and status not in _BODILESS

    def on_body(self, piece: bytes) -> None:
        """Collect a piece of the body."""
        if not self.complete:
            self._parts.append(piece)
            self._buffered_bytes += len(piece)
            self._framing_bytes = 0

    def on_message_complete(self) -> None:
        """Mark the end of the response."""
        if self.status:
            self.complete = True

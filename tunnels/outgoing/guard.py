"""The guard at the moment of the write: a request class of aiohttp."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.connector import Connection

Guard = Callable[[], None]
"""Called in the step of the event loop in which a request is written; raises to stop it."""

_guard: Final[ContextVar[Guard | None]] = ContextVar("guard", default=None)


@contextmanager
def guarded_by(guard: Guard | None) -> Iterator[None]:
    """Ask `guard` before each request that is written within the block; None asks nobody."""
    token = _guard.set(guard)
    try:
        yield
    finally:
        _guard.reset(token)


class GuardedRequest(aiohttp.ClientRequest):
    """A request that is written only if the guard of its block agrees; what the guard raises passes through.

    aiohttp writes a request without body inside `send`, and one with a body inside `write_bytes`, which may be a task
    of its own that runs a step later; hence both places. A proxy's CONNECT, which comes before, is none of them.
    """

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Ask the guard, then send; the head of a request with a body waits for `write_bytes`."""
        _ask()
        return await super().send(conn)

    async def write_bytes(
        self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
    ) -> None:
        """Ask the guard again, then write head and body."""
        try:
            _ask()
        except Exception as error:  # noqa: BLE001 (handed to the task that waits for the response)
            if conn.protocol is not None:
                conn.protocol.set_exception(error)
            return
        await super().write_bytes(writer, conn, content_length)


def _ask() -> None:
    guard = _guard.get()
    if guard is not None:
        guard()

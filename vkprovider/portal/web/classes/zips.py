"""A zip file that is sent while it is made: of a class no more is in memory than the work of one learner."""

import asyncio
import io
import zipfile
from collections.abc import Callable
from typing import Final

from aiohttp import web

from vkprovider.platform.http.connections import uncount
from vkprovider.platform.http.served import attachment
from vkprovider.portal.web.consoles.routes import FAILURES, zip_entry
from vkprovider.portal.web.layout import HEADERS


class _Pending(io.RawIOBase):
    """Holds what was written until it is sent."""

    def __init__(self) -> None:
        self._held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # type: ignore[call-overload]  # (any buffer, as `RawIOBase` says)
        self._held += piece
        return len(piece)

    def take(self) -> bytes:
        held, self._held = bytes(self._held), bytearray()
        return held


class SentZip:
    """A zip file that goes to a browser; it begins with its first file."""

    def __init__(self, request: web.Request, name: str, wall: Callable[[], float]) -> None:
        """Send nothing yet.

        Args:
            request: What it answers.
            name: Of the file, without its ending.
            wall: Returns Unix seconds.
        """
        headers = {**HEADERS, "Content-Type": "application/zip", **attachment(f"{name}.zip")}
        self._request: Final = request
        self._response: Final = web.StreamResponse(headers=headers)
        self._wall: Final = wall
        self._pending: Final = _Pending()
        self._zip: Final = zipfile.ZipFile(self._pending, "w", zipfile.ZIP_DEFLATED)
        self._faults: Final[list[str]] = []

    async def add(self, name: str, content: bytes) -> None:
        """Send one more file.

        Raises:
            ConnectionResetError: The browser has left.
        """
        if not self._response.prepared:
            uncount(self._request)
            await self._response.prepare(self._request)
        await asyncio.to_thread(self._zip.writestr, zip_entry(name, self._wall()), content, zipfile.ZIP_DEFLATED)
        await self._response.write(self._pending.take())

    def miss(self, words: str) -> None:
        """Note what is not in it, for a file at its end."""
        self._faults.append(f"{words}\n")

    async def finish(self) -> web.StreamResponse:
        """Send the end, and before it a file that says what is missing, if anything is.

        Raises:
            ConnectionResetError: The browser has left.
        """
        if self._faults or not self._response.prepared:
            await self.add(FAILURES, "".join(self._faults or ["There is nothing to be read.\n"]).encode())
        await asyncio.to_thread(self._zip.close)
        await self._response.write(self._pending.take())
        await self._response.write_eof()
        return self._response

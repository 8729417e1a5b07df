"""Sizes of a terminal, as clients send them: JSON objects one after another, `{"Width":80,"Height":24}`."""

from typing import Annotated, Final

import msgspec

from vkprovider.labs.kubelet.spi import Size
from vkprovider.labs.kubelet.wire.errors import ProtocolError

_BYTES_MAX: Final = 1024
"""The longest object."""
_Number = Annotated[int, msgspec.Meta(ge=0, le=65535)]


class _Size(msgspec.Struct):
    Width: _Number = 0
    Height: _Number = 0


class Sizes:
    """Reads sizes from slices of their stream."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> Size | None:
        """Return the last size that some more bytes complete; one without extent is left out.

        Raises:
            ProtocolError: They are not sizes.
        """
        self._pending += data
        *whole, rest = self._pending.split(b"}")
        self._pending = rest
        if len(rest) > _BYTES_MAX:
            raise ProtocolError("a size of a terminal is too long")
        latest: Size | None = None
        for text in whole:
            try:
                size = msgspec.json.decode(text + b"}", type=_Size)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ProtocolError(f"not the size of a terminal: {error}") from None
            if size.Width and size.Height:
                latest = Size(size.Width, size.Height)
        return latest

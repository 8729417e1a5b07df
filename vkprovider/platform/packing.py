"""Text that is packed into the `binaryData` of a ConfigMap: gzip, then base64."""

import base64
import gzip
import io
import zlib
from typing import Final

_LEVEL_MAX: Final = 9


def pack(raw: bytes, level: int = _LEVEL_MAX) -> str:
    """Compress bytes; equal input gives equal output."""
    return base64.b64encode(gzip.compress(raw, level, mtime=0)).decode()


def unpack(packed: str, bytes_max: int) -> bytes:
    """Return the unpacked bytes, at most the first `bytes_max`, so that no small object fills the memory.

    Raises:
        ValueError: It is damaged.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(base64.b64decode(packed))) as stream:
            return stream.read(bytes_max)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(str(error)) from None

"""Memory goes back to the system: what a burst took must not stay with a replica that idles for days.

A list of five hundred nodes is a buffer of megabytes that lives for milliseconds. glibc learns from the first such
buffer that they are common, takes the next ones from its heap, and that does not shrink while anything younger lives.
"""

import asyncio
import ctypes
from typing import Any, Final

_MMAP_THRESHOLD: Final = -3  # M_MMAP_THRESHOLD of malloc.h
_LARGE_BYTES: Final = 128 * 1024
_TRIM_EVERY_S: Final = 30.0


def _libc(name: str) -> Any:
    """Find a function of the C library; None where it is not glibc's."""
    try:
        return getattr(ctypes.CDLL(None), name, None)
    except OSError:
        return None


def keep_large_buffers_apart() -> None:
    """Have every large buffer mapped by itself, so that it goes back the moment it is freed."""
    if (mallopt := _libc("mallopt")) is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)


async def run_trim() -> None:
    """Give back what is free, now and then, for ever."""
    trim = _libc("malloc_trim")
    while True:
        await asyncio.sleep(_TRIM_EVERY_S)
        if trim is not None:
            trim(0)

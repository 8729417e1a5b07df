"""Messages of a VNC viewer (RFC 6143) to a simulated screen, and how long its answers are."""

import struct
from typing import Final

from vkpsim.cml.consoles.screen import BLOCK, HEIGHT, WIDTH

HELLO: Final = b"RFB 003.008\n\x01\x01"
"""The version, no password, and that others may look, too."""
ASK, ASK_CHANGES = (struct.pack(">BBHHHH", 3, again, 0, 0, WIDTH, HEIGHT) for again in (0, 1))
_HEAD: Final = 16
WHOLE_BYTES: Final = _HEAD + 4 * WIDTH * HEIGHT
BLOCK_BYTES: Final = _HEAD + 4 * BLOCK * BLOCK


def hello_bytes(name: str) -> int:
    """Return the length of all that a screen says at first, which ends with the name of the device."""
    return 12 + 2 + 4 + 24 + len(name)


def click(x: int, y: int) -> bytes:
    """Return a click with the first button."""
    return struct.pack(">BBHH", 5, 1, x, y) + struct.pack(">BBHH", 5, 0, x, y)


def key(code: int) -> bytes:
    """Return a key that is pressed and released, by its keysym."""
    return struct.pack(">BBxxI", 4, 1, code) + struct.pack(">BBxxI", 4, 0, code)


def pixel(picture: bytes, at: int = 0) -> int:
    """Return the colour of a pixel of an answer, as 0xRRGGBB."""
    return int.from_bytes(picture[_HEAD + 4 * at : _HEAD + 4 * at + 3], "little")

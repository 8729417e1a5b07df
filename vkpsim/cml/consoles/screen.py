"""Screens of devices: an RFB 3.8 server (RFC 6143) that asks for no password and sends all pixels as they are.

A screen shows eight upright bars of different colours. A click turns the block under the pointer white, and the next
one back to its bar; each key that is pressed fills the next block of the lowest row with a colour of its own. All who
are connected see the same.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

WIDTH: Final = 320
HEIGHT: Final = 200
BLOCK: Final = 20
"""The side of a block, in pixels."""
BARS: Final = (0xC0C0C0, 0xC0C000, 0x00C0C0, 0x00C000, 0xC000C0, 0xC00000, 0x0000C0, 0x202020)
"""The colours of the bars from the left, as 0xRRGGBB."""
WHITE: Final = 0xFFFFFF
RFB_BANNER: Final = b"RFB 003.008\n"
_NO_PASSWORD: Final = 1
_FORMAT: Final = struct.Struct(">BB??HHHBBB3x")
_ASKED: Final = struct.Struct(">?HHHH")
_RECTANGLE: Final = struct.Struct(">HHHHi")

Send = Callable[[bytes], Awaitable[None]]
_Area = tuple[int, int, int, int]
"""Left, top, width and height, in pixels."""


def colour_of(key: int) -> int:
    """Return the colour that a key draws, by its keysym."""
    return (key * 0x9E3779) & 0xFFFFFF


def bar_at(x: int) -> int:
    """Return the colour of the pattern in a column of pixels."""
    return BARS[x * len(BARS) // WIDTH]


@dataclass(frozen=True, slots=True)
class _PixelFormat:
    """How a viewer wants pixels."""

    bits: int = 32
    depth: int = 24
    is_big_endian: bool = False
    has_true_colour: bool = True
    maxima: tuple[int, int, int] = (255, 255, 255)
    shifts: tuple[int, int, int] = (16, 8, 0)

    @classmethod
    def of(cls, packed: bytes) -> "_PixelFormat":
        bits, depth, big, true, *rest = _FORMAT.unpack(packed)
        return cls(bits, depth, big, true, (rest[0], rest[1], rest[2]), (rest[3], rest[4], rest[5]))

    def packed(self) -> bytes:
        return _FORMAT.pack(self.bits, self.depth, self.is_big_endian, self.has_true_colour, *self.maxima, *self.shifts)

    def pixel(self, colour: int) -> bytes:
        parts = (colour >> 16, colour >> 8 & 0xFF, colour & 0xFF)
        value = sum(
            part * most // 0xFF << shift for part, most, shift in zip(parts, self.maxima, self.shifts, strict=True)
        )
        return value.to_bytes(self.bits // 8, "big" if self.is_big_endian else "little")


@dataclass(eq=False, slots=True)
class _Viewer:
    """Somebody who is connected.

    Attributes:
        format: How they want pixels.
        asks: Whether they wait for what changes.
        changed: What has changed since they got something last.
        news: Is set when either of them differs.
    """

    format: _PixelFormat = _PixelFormat()
    asks: bool = False
    changed: list[_Area] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)


class Screen:
    """The screen of one run of a device, which has a name."""

    def __init__(self, name: str) -> None:
        self._name = name.encode()
        self._rows = [[bar_at(x) for x in range(WIDTH)] for _ in range(HEIGHT)]
        self._viewers: set[_Viewer] = set()
        self._drawn = 0

    async def serve(self, reader: asyncio.StreamReader, send: Send) -> None:
        """Serve a viewer until it leaves, or sends what RFB has not.

        Args:
            reader: Of what it sends.
            send: Called with each message for it; waits while it is slow.
        """
        viewer = _Viewer()
        try:
            await self._greet(reader, send)
            self._viewers.add(viewer)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._show(viewer, send), name="sim-screen")
                await self._listen(viewer, reader, send)
        except* (asyncio.IncompleteReadError, ConnectionError, ValueError):
            pass
        finally:
            self._viewers.discard(viewer)

    async def _greet(self, reader: asyncio.StreamReader, send: Send) -> None:
        await send(RFB_BANNER)
        if await reader.readexactly(len(RFB_BANNER)) != RFB_BANNER:
            raise ValueError("a viewer of another version")
        await send(bytes((1, _NO_PASSWORD)))
        await reader.readexactly(1)
        await send(bytes(4))
        await reader.readexactly(1)  # whether it shares the screen, as all do
        size, name = struct.pack(">HH", WIDTH, HEIGHT), struct.pack(">I", len(self._name)) + self._name
        await send(size + _PixelFormat().packed() + name)

    async def _listen(self, viewer: _Viewer, reader: asyncio.StreamReader, send: Send) -> None:
        pressed = False
        while True:
            match (await reader.readexactly(1))[0]:
                case 0:  # SetPixelFormat
                    viewer.format = _PixelFormat.of((await reader.readexactly(19))[3:])
                case 2:  # SetEncodings: every viewer knows the raw one
                    (count,) = struct.unpack(">xH", await reader.readexactly(3))
                    await reader.readexactly(4 * count)
                case 3:  # FramebufferUpdateRequest
                    only_changes, left, top, width, height = _ASKED.unpack(await reader.readexactly(9))
                    if only_changes:
                        viewer.asks = True
                        viewer.news.set()
                    else:
                        area = (left, top, min(width, WIDTH - left), min(height, HEIGHT - top))
                        await self._send(viewer, [area], send)
                case 4:  # KeyEvent
                    down, key = struct.unpack(">?xxI", await reader.readexactly(7))
                    if down:
                        self._press(key)
                case 5:  # PointerEvent
                    buttons, x, y = struct.unpack(">BHH", await reader.readexactly(5))
                    if buttons and not pressed and x < WIDTH and y < HEIGHT:
                        self._click(x // BLOCK * BLOCK, y // BLOCK * BLOCK)
                    pressed = bool(buttons)
                case 6:  # ClientCutText
                    (length,) = struct.unpack(">3xI", await reader.readexactly(7))
                    await reader.readexactly(length)
                case kind:
                    raise ValueError(f"a message of the kind {kind}")

    async def _show(self, viewer: _Viewer, send: Send) -> None:
        """Send what has changed whenever the viewer asks for it, for ever."""
        while True:
            await viewer.news.wait()
            viewer.news.clear()
            if viewer.asks and viewer.changed:
                areas, viewer.changed, viewer.asks = viewer.changed, [], False
                await self._send(viewer, areas, send)

    async def _send(self, viewer: _Viewer, areas: list[_Area], send: Send) -> None:
        message = bytearray(struct.pack(">BxH", 0, len(areas)))
        pixels = {colour: viewer.format.pixel(colour) for row in self._rows for colour in set(row)}
        for left, top, width, height in areas:
            message += _RECTANGLE.pack(left, top, width, height, 0)
            for row in self._rows[top : top + height]:
                message += b"".join(map(pixels.__getitem__, row[left : left + width]))
        await send(bytes(message))

    def _click(self, left: int, top: int) -> None:
        is_white = self._rows[top][left] == WHITE
        self._fill(left, top, None if is_white else WHITE)

    def _press(self, key: int) -> None:
        self._fill(self._drawn * BLOCK % WIDTH, HEIGHT - BLOCK, colour_of(key))
        self._drawn += 1

    def _fill(self, left: int, top: int, colour: int | None) -> None:
        """Fill a block with a colour, or with the pattern."""
        for row in self._rows[top : top + BLOCK]:
            row[left : left + BLOCK] = [bar_at(x) if colour is None else colour for x in range(left, left + BLOCK)]
        for viewer in self._viewers:
            viewer.changed.append((left, top, BLOCK, BLOCK))
            viewer.news.set()

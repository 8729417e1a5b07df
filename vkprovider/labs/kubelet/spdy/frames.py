"""Frames of SPDY/3.1, as far as moby/spdystream, which kubectl and the API server use, sends them.

Source: draft-mbelshe-httpbis-spdy-00 and the SPDY/3.1 draft, sections 2.2 to 2.6; all numbers are big endian. Streams
have no flow control: the peer neither sends nor honours WINDOW_UPDATE and SETTINGS, so that TCP's is what there is. The
dictionary of compressed headers is that of section 2.6.10.1; both ends need the same bytes, and a test checks its
digest.
"""

import struct
import zlib
from collections.abc import Mapping
from typing import Final

import msgspec

from vkprovider.labs.kubelet.wire import ProtocolError

_NAMES: Final = """
options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow
authorization cache-control connection content-base content-encoding content-language content-length content-location
content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match
if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range
referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get
status
"""

_LATER: Final = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")

_TEXT: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)

_WORDS: Final = (*_NAMES.split(), *_LATER)

DICTIONARY: Final = b"".join(struct.pack(">I", len(word)) + word.encode() for word in _WORDS) + _TEXT.encode()
"""1423 bytes."""


CONTROL_BYTES_MAX: Final = 16 * 1024
"""The longest body of a control frame; kubectl's have about 100 bytes."""
HEADERS_BYTES_MAX: Final = 16 * 1024
"""The longest headers, decompressed."""
HEADERS_MAX: Final = 100
DATA_BYTES_MAX: Final = (1 << 24) - 1
"""The longest data frame."""

PROTOCOL_ERROR: Final = 1
REFUSED_STREAM: Final = 3
CANCEL: Final = 5

_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _HEADERS, _WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
_VERSION: Final = 0x8003
"""The control bit, and version 3, which SPDY/3.1 writes too."""
_FIN: Final = 1
_HEAD: Final = struct.Struct(">II")
_CONTROL_HEAD: Final = struct.Struct(">HHI")
_TWO: Final = struct.Struct(">II")
_ONE: Final = struct.Struct(">I")
_LENGTHS: Final = {_RST_STREAM: 8, _PING: 4, _GOAWAY: 8}
"""The body's length of frames in which it is fixed."""
_HEADERS_AT: Final = {_SYN_STREAM: 10, _SYN_REPLY: 4, _HEADERS: 4}
"""The offset of the headers in the bodies that have them."""
_BODY_MASK: Final = (1 << 24) - 1
_ID_MASK: Final = (1 << 31) - 1


class SynStream(msgspec.Struct, frozen=True):
    """A client opens a stream."""

    stream: int
    headers: Mapping[str, str]
    fin: bool = False


class SynReply(msgspec.Struct, frozen=True):
    """A stream is accepted."""

    stream: int
    headers: Mapping[str, str]
    fin: bool = False


class Data(msgspec.Struct, frozen=True):
    """Some bytes of a stream: a whole frame, or what has arrived of it."""

    stream: int
    data: bytes
    fin: bool = False


class RstStream(msgspec.Struct, frozen=True):
    """A stream is aborted, in both directions."""

    stream: int
    status: int


class Ping(msgspec.Struct, frozen=True):
    """A sign of life, which the receiver sends back; odd numbers are a client's own."""

    number: int


class GoAway(msgspec.Struct, frozen=True):
    """The sender accepts no further stream."""

    last_stream: int
    status: int


Frame = SynStream | SynReply | Data | RstStream | Ping | GoAway


class FrameDecoder:
    """Turns a stream of bytes, in slices as they come, into frames.

    It buffers the head of a frame or the body of a control frame, never more than 16 KiB; bytes of data pass through.
    """

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._pending = bytearray()
        self._stream = 0
        self._fin = False
        self._data_left = 0
        self._skip_left = 0

    @property
    def buffered(self) -> int:
        """Count the bytes that wait for the rest of their frame."""
        return len(self._pending)

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that some more bytes complete; what there is of a data frame is returned at once.

        Raises:
            ProtocolError: The bytes are not SPDY/3.1, or break a bound.
        """
        frames: list[Frame] = []
        if self._pending:
            self._pending += data
            data = bytes(self._pending)
            self._pending.clear()
        at, end = 0, len(data)
        while at < end:
            if self._data_left:
                at = self._read_data(data, at, frames)
            elif self._skip_left:
                skipped = min(self._skip_left, end - at)
                self._skip_left -= skipped
                at += skipped
            else:
                next_at = self._read_frame(data, at, frames)
                if next_at == at:
                    self._pending += data[at:]
                    break
                at = next_at
        return frames

    def _read_data(self, data: bytes, at: int, frames: list[Frame]) -> int:
        piece = data[at : at + self._data_left]
        self._data_left -= len(piece)
        frames.append(Data(self._stream, piece, self._fin and not self._data_left))
        return at + len(piece)

    def _read_frame(self, data: bytes, at: int, frames: list[Frame]) -> int:
        """Read a whole control frame, or the head of a data frame; return where the next one begins, or `at`."""
        if len(data) - at < _HEAD.size:
            return at
        words: tuple[int, int] = _HEAD.unpack_from(data, at)
        first, second = words
        flags, length = second >> 24, second & _BODY_MASK
        at_body = at + _HEAD.size
        if not first >> 31:
            if not first:
                raise ProtocolError("data for stream 0")
            self._stream, self._fin, self._data_left = first, bool(flags & _FIN), length
            if not length:
                frames.append(Data(first, b"", self._fin))
            return at_body
        version, kind = first >> 16, first & 0xFFFF
        if version != _VERSION:
            raise ProtocolError(f"version {version & 0x7FFF}, not 3")
        if kind not in _HEADERS_AT and kind not in _LENGTHS:
            self._skip_left = length
            return at_body
        if length > CONTROL_BYTES_MAX:
            raise ProtocolError(f"a control frame of {length} bytes; {CONTROL_BYTES_MAX} are allowed")
        if len(data) - at_body < length:
            return at
        body = data[at_body : at_body + length]
        if (frame := self._control_frame(kind, flags, body)) is not None:
            frames.append(frame)
        return at_body + length

    def _control_frame(self, kind: int, flags: int, body: bytes) -> Frame | None:
        """Return a frame, None if it means nothing here."""
        if kind in _HEADERS_AT:
            begin = _HEADERS_AT[kind]
            if len(body) < begin:
                raise ProtocolError("a control frame is too short")
            stream = _ONE.unpack_from(body)[0] & _ID_MASK
            headers = self._headers(body[begin:])
            fin = bool(flags & _FIN)
            match kind:
                case 1:
                    return SynStream(stream, headers, fin)
                case 2:
                    return SynReply(stream, headers, fin)
                case _:
                    return None
        if len(body) != _LENGTHS[kind]:
            raise ProtocolError("a control frame has a wrong length")
        first = _ONE.unpack_from(body)[0]
        if kind == _PING:
            return Ping(first)
        second = _ONE.unpack_from(body, 4)[0]
        return RstStream(first & _ID_MASK, second) if kind == _RST_STREAM else GoAway(first & _ID_MASK, second)

    def _headers(self, block: bytes) -> dict[str, str]:
        """Decompress headers; every block must pass through here, because they share one state."""
        try:
            raw = self._inflate.decompress(block, HEADERS_BYTES_MAX)
        except zlib.error as error:
            raise ProtocolError(f"headers cannot be decompressed: {error}") from None
        if self._inflate.unconsumed_tail or self._inflate.eof:
            raise ProtocolError(f"headers have more than {HEADERS_BYTES_MAX} bytes, or end for good")
        return _parse_headers(raw)


def _parse_headers(raw: bytes) -> dict[str, str]:
    """Parse decompressed headers: a count, then lengths and texts; several values of one name are joined by NUL."""
    texts: list[str] = []
    try:
        (count,) = _ONE.unpack_from(raw)
        if count > HEADERS_MAX:
            raise ProtocolError(f"{count} headers; {HEADERS_MAX} are allowed")
        at = _ONE.size
        for _ in range(2 * count):
            (length,) = _ONE.unpack_from(raw, at)
            at += _ONE.size + length
            if at > len(raw):
                raise ProtocolError("a header is longer than its frame")
            texts.append(raw[at - length : at].decode())
    except (struct.error, UnicodeDecodeError) as error:
        raise ProtocolError(f"headers are not well-formed: {error}") from None
    if at != len(raw):
        raise ProtocolError("bytes after the last header")
    return dict(zip(texts[::2], texts[1::2], strict=True))


class Encoder:
    """Turns frames into bytes; those with headers must be sent in the order in which they were encoded."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(9, zlib.DEFLATED, 15, zdict=DICTIONARY)

    def syn_stream(self, stream: int, headers: Mapping[str, str], *, fin: bool = False) -> bytes:
        """Encode `SynStream`."""
        return _control(_SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + self._block(headers), fin=fin)

    def syn_reply(self, stream: int) -> bytes:
        """Encode `SynReply`, without headers."""
        return _control(_SYN_REPLY, _ONE.pack(stream) + self._block({}))

    def _block(self, headers: Mapping[str, str]) -> bytes:
        texts = [text.encode() for pair in headers.items() for text in pair]
        raw = _ONE.pack(len(headers)) + b"".join(_ONE.pack(len(text)) + text for text in texts)
        return self._deflate.compress(raw) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def data_head(stream: int, length: int, *, fin: bool = False) -> bytes:
    """Encode what stands before the bytes of a data frame."""
    return _HEAD.pack(stream, fin << 24 | length)


def rst_stream(stream: int, status: int) -> bytes:
    """Encode `RstStream`."""
    return _control(_RST_STREAM, _TWO.pack(stream, status))


def ping(number: int) -> bytes:
    """Encode `Ping`."""
    return _control(_PING, _ONE.pack(number))


def go_away(last_stream: int, status: int = 0) -> bytes:
    """Encode `GoAway`; status 0: nothing is wrong, 1: the peer broke the protocol."""
    return _control(_GOAWAY, _TWO.pack(last_stream, status))


def _control(kind: int, body: bytes, *, fin: bool = False) -> bytes:
    return _CONTROL_HEAD.pack(_VERSION, kind, fin << 24 | len(body)) + body

"""The gate for bodies: every body that a server of ours reads comes through `read` or `read_form`.

What is wrong with a body is judged by its headers before a byte is read; a body without a length is cut at the limit.
Forms are taken apart here: aiohttp's reader of `multipart/form-data` and that of the standard library take seconds for
a megabyte of line ends, during which no other request is answered. A body that is passed on comes through `streamed`,
and is not looked into.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from typing import Final
from urllib.parse import parse_qsl

from aiohttp import web
from multidict import MultiDict

from vkprovider.platform.http.answers import Refused

FORM: Final = "application/x-www-form-urlencoded"
FORM_WITH_FILES: Final = "multipart/form-data"

READ_S: Final = 30.0
"""How long a body may take."""
_FIELDS_MAX: Final = 10_000
"""The most fields of a form: an instructor may tick the rows of a large class."""
_PARTS_MAX: Final = 32
"""The most fields of a form with files."""
_HEAD_BYTES_MAX: Final = 4096
"""The longest headers of one of them."""
_END: Final = b"\r\n"
_PIECE_BYTES: Final = 64 * 1024


class BodyInvalid(Refused):
    """The body is not what its headers say."""

    status_code = 400
    remedy = "Send the form as a browser does."


class BodyLate(Refused):
    """The body does not come."""

    status_code = 408
    remedy = "Send it once more."


class BodyTooLarge(Refused):
    """The body is larger than this path takes."""

    status_code = 413
    remedy = "Send less at once."


class MediaTypeRefused(Refused):
    """The body is of a kind that this path does not take."""

    status_code = 415
    remedy = "Send one of the media types that the message names."


@dataclass(frozen=True, slots=True)
class Body:
    """What a path takes.

    Attributes:
        bytes_max: The largest body.
        types: Its media types; empty: any.
        within_s: How long it may take.
    """

    bytes_max: int
    types: tuple[str, ...] = ()
    within_s: float = READ_S


@dataclass(frozen=True, slots=True)
class File:
    """A file of a form."""

    name: str
    content: bytes


Form = MultiDict[str | File]
_TAKEN: Final = web.RequestKey("form", Form)


async def read(request: web.Request, body: Body) -> bytes:
    """Return the body of a request; empty if there is none.

    Raises:
        Refused: 400, 408, 413, or 415.
    """
    _judge(request, body)
    taken = bytearray()
    try:
        async with asyncio.timeout(body.within_s):
            async for chunk in request.content.iter_any():
                taken += chunk
                if len(taken) > body.bytes_max:
                    raise _too_large(body)
    except TimeoutError:
        raise BodyLate(f"the body did not come within {body.within_s:g} s") from None
    except (web.RequestPayloadError, ConnectionError) as error:  # nobody may be there any more to read the refusal
        raise BodyInvalid(f"the body breaks off: {error}") from None
    return bytes(taken)


async def read_form(request: web.Request, body: Body) -> Form:
    """Return the fields of a form, in their order; once read, it is remembered with the request.

    Args:
        request: The request.
        body: What the path takes; its types are `FORM`, and `FORM_WITH_FILES` where the form has files.

    Raises:
        Refused: 400, 408, 413, or 415.
    """
    if _TAKEN not in request:
        raw = await read(request, body)
        request[_TAKEN] = parse_form(request.headers.get("Content-Type", FORM), raw)
    return request[_TAKEN]


def streamed(request: web.Request) -> AsyncIterator[bytes] | None:
    """Return the body of a request as it comes, for who passes it on and keeps none of it; None if there is none."""
    return request.content.iter_chunked(_PIECE_BYTES) if request.can_read_body else None


def parse_form(content_type: str, raw: bytes) -> Form:
    """Return the fields of a form, in their order.

    Args:
        content_type: `application/x-www-form-urlencoded`, or `multipart/form-data; boundary=…`.
        raw: The body.

    Raises:
        BodyInvalid: It is no such form.
    """
    header = Message()
    header["Content-Type"] = content_type
    if header.get_content_type() == FORM_WITH_FILES:
        boundary = header.get_boundary("")
        assert isinstance(boundary, str)  # noqa: S101 (so is its default)
        return _with_files(boundary.encode(errors="surrogateescape"), raw)
    return _fields(raw)


def _judge(request: web.Request, body: Body) -> None:
    """Refuse a body by its headers."""
    if (request.content_length or 0) > body.bytes_max:
        raise _too_large(body)
    if not request.body_exists:
        return
    if body.types and request.content_type not in body.types:
        raise MediaTypeRefused(f"{request.content_type} is not taken here: send {' or '.join(body.types)}")
    if (encoding := request.headers.get("Content-Encoding", "identity")) != "identity":
        raise MediaTypeRefused(f"Content-Encoding {encoding!r} is not taken: send the body as it is")


def _too_large(body: Body) -> BodyTooLarge:
    return BodyTooLarge(f"what was sent is larger than {body.bytes_max // 1024} KiB")


def _fields(raw: bytes) -> Form:
    try:
        return MultiDict(parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MAX))
    except ValueError as error:
        raise BodyInvalid(f"the form cannot be read: {error}") from None


def _with_files(boundary: bytes, raw: bytes) -> Form:
    """Take a form with files apart (RFC 7578), by searches in bytes alone until all limits are known to hold."""
    # No browser sends anything before the first boundary.
    delimiter = _END + b"--" + boundary
    before, *pieces = (_END + raw).split(delimiter, _PARTS_MAX + 1)
    if not boundary or before or not pieces or not pieces[-1].startswith(b"--"):
        raise BodyInvalid(f"the form cannot be read: it is not that of its boundary, or has over {_PARTS_MAX} fields")
    return MultiDict(_part(piece) for piece in pieces[:-1])


def _part(piece: bytes) -> tuple[str, str | File]:
    at = piece.find(_END + _END, 0, _HEAD_BYTES_MAX)
    if at < 0:
        raise BodyInvalid("the form cannot be read: a field has no headers, or too long ones")
    head = HeaderParser().parsestr(piece[len(_END) : at + len(_END)].decode(errors="replace"))
    name, content = head.get_param("name", header="Content-Disposition"), piece[at + 2 * len(_END) :]
    if not isinstance(name, str):
        raise BodyInvalid("the form cannot be read: a field has no name")
    if (file := head.get_filename()) is not None:
        return name, File(file, content)
    try:
        return name, content.decode()
    except UnicodeDecodeError:
        raise BodyInvalid(f"the form cannot be read: the field {name!r} is not in UTF-8") from None

"""CloudEvents 1.0 over HTTP: structured, binary and batched content, and the session event in one. Pure.

See the HTTP protocol binding and the JSON format of the specification, 1.0.2. An event that violates the
specification is refused as a whole, with the cause; `time` is the only required attribute that may be missing.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from urllib.parse import unquote

import msgspec

from vkprovider.labs.http.refusals import EventInvalid, MediaTypeUnsupported
from vkprovider.labs.pure.session.inbox import SessionEvent

Mode = Literal["structured", "batch", "binary"]

EVENTS_MAX: Final = 1000
"""The most events in one batch."""

_STRUCTURED: Final = "application/cloudevents"
_BATCH: Final = "application/cloudevents-batch"
_SESSION_TYPE: Final = re.compile(r"(?:^|\.)session\.(started|ended)(?:\.v\d+)?$")
_SESSION_ID: Final = re.compile(r"[\x21-\x7e]{1,256}")
_JSON: Final = re.compile(r"(application|text)/([\w.-]+\+)?json")

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]


class CloudEvent(msgspec.Struct, frozen=True):
    """An event: the attributes of the specification, its data, and the one known extension.

    Attributes:
        data: Decoded JSON; None if it is missing or of another type.
        ldssessionid: Extension: the session that the event is about.
    """

    specversion: Literal["1.0"]
    id: _Name
    source: _Name
    type: _Name
    time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    subject: str | None = None
    datacontenttype: str | None = None
    data: Any = None
    data_base64: str | None = None
    ldssessionid: str | None = None


_one: Final = msgspec.json.Decoder(CloudEvent)
_some: Final = msgspec.json.Decoder(list[msgspec.Raw])


def mode_of(headers: Mapping[str, str]) -> Mode:
    """Return the content mode of a request.

    Raises:
        MediaTypeUnsupported: it has none of the supported content types.
    """
    media = _media_type(headers)
    kind, _, suffix = media.partition("+")
    if kind in {_STRUCTURED, _BATCH}:
        if suffix != "json":
            raise MediaTypeUnsupported(f"Content-Type {media}: only {kind}+json is read")
        return "structured" if kind == _STRUCTURED else "batch"
    if "ce-specversion" in headers:
        return "binary"
    raise MediaTypeUnsupported(
        f"Content-Type {media or 'is missing'}: send {_STRUCTURED}+json, {_BATCH}+json, or headers ce-…"
    )


def read(mode: Mode, headers: Mapping[str, str], body: bytes) -> list[CloudEvent | EventInvalid]:
    """Decode the events of a request; an invalid event does not affect the others of its batch.

    Args:
        mode: As `mode_of` gives it.
        headers: Case-insensitive.
        body: The body.

    Raises:
        EventInvalid: nothing in it can be read.
    """
    if mode == "binary":
        return [_binary(headers, body)]
    if mode == "structured":
        return [_structured(body)]
    try:
        raws = _some.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise EventInvalid(f"the batch is not a JSON array: {error}") from None
    if len(raws) > EVENTS_MAX:
        raise EventInvalid(f"the batch has {len(raws)} events; send {EVENTS_MAX} at most")
    found: list[CloudEvent | EventInvalid] = []
    for raw in raws:
        try:
            found.append(_structured(bytes(raw)))
        except EventInvalid as error:
            found.append(error)
    return found


def session_event(event: CloudEvent, received_unix: int) -> SessionEvent | None:
    """Return the session event in a CloudEvent; None for other event types.

    The session is named by `lds_session_id` in the data, by the extension `ldssessionid`, or by the subject.

    Raises:
        EventInvalid: it names no session.
    """
    match = _SESSION_TYPE.search(event.type)
    if match is None:
        return None
    data = event.data if isinstance(event.data, dict) else {}
    session = data.get("lds_session_id") or event.ldssessionid or event.subject
    if not isinstance(session, str) or not _SESSION_ID.fullmatch(session):
        raise EventInvalid(
            f"event {event.id} of type {event.type} names no session; put its id into data.lds_session_id, the "
            "extension ldssessionid, or subject"
        )
    at = received_unix if event.time is None else int(event.time.timestamp())
    kind: Literal["started", "ended"] = "started" if match[1] == "started" else "ended"
    return SessionEvent(session, kind, max(1, min(at, received_unix)), event.source, event.id)


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _structured(body: bytes) -> CloudEvent:
    try:
        event = _one.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise EventInvalid(f"not a CloudEvent 1.0 in JSON: {error}") from None
    if event.data_base64 is None:
        return event
    if event.data is not None:
        raise EventInvalid(f"event {event.id} has both data and data_base64")
    try:
        raw = base64.b64decode(event.data_base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EventInvalid(f"data_base64 of event {event.id}: {error}") from None
    return msgspec.structs.replace(event, data=_data(raw, event.datacontenttype or ""), data_base64=None)


def _binary(headers: Mapping[str, str], body: bytes) -> CloudEvent:
    attributes: dict[str, Any] = {
        name.lower().removeprefix("ce-"): unquote(value)
        for name, value in headers.items()
        if name.lower().startswith("ce-")
    }
    media = _media_type(headers)
    for name in ("data", "data_base64", "datacontenttype"):
        if name in attributes:
            raise EventInvalid(f"header ce-{name} is not allowed; data is the body")
    for name, value in attributes.items():
        if not _is_text(value):
            raise EventInvalid(f"header ce-{ascii(name)[1:-1]} is not UTF-8")
    try:
        return msgspec.convert({**attributes, "datacontenttype": media or None, "data": _data(body, media)}, CloudEvent)
    except msgspec.ValidationError as error:
        raise EventInvalid(f"not a CloudEvent 1.0 in the headers: {error}") from None


def _is_text(value: str) -> bool:
    """Return whether a header's value was UTF-8; aiohttp decodes other bytes as lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _data(raw: bytes, media: str) -> Any:
    """Decode data that is JSON, or that does not say what it is and turns out to be JSON.

    Raises:
        EventInvalid: it says so and is not.
    """
    if not raw or (media and not _JSON.fullmatch(media.partition(";")[0].strip().lower())):
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        if not media:
            return None
        raise EventInvalid(f"the data is not the JSON that it says to be: {error}") from None

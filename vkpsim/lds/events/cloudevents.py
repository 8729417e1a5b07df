"""CloudEvents 1.0 over HTTP: an event as headers and body, in each of the content modes."""

import hashlib
import hmac
import urllib.parse
from typing import Final, Literal

import msgspec

from vkpsim.lds.model import Event, instant

Mode = Literal["structured", "binary", "batch"]
"""`batch` is a batch of one."""

_SAFE: Final = "!#$&'()*+,/:;<=>?@[\\]^`{|}~"
"""What binary mode leaves as it is in a header, besides letters, digits and `_.-`; no blank, quote or percent sign."""


def proof(token: str, body: bytes, *, signed: bool) -> dict[str, str]:
    """Return the header that authenticates the sender; none for an empty token.

    A signature covers the body alone, so it is useful only where the whole event is in the body.
    """
    if not token:
        return {}
    if not signed:
        return {"Authorization": f"Bearer {token}"}
    return {"X-Hub-Signature-256": "sha256=" + hmac.new(token.encode(), body, hashlib.sha256).hexdigest()}


def encode(event: Event, source: str, mode: Mode) -> tuple[dict[str, str], bytes]:
    """Encode an event as headers and body of a request."""
    attributes = {
        "specversion": "1.0",
        "id": event.id,
        "source": source,
        "type": event.type,
        "subject": event.session,
        "time": instant(event.at_unix_s),
    }
    if mode == "binary":
        headers = {f"ce-{name}": urllib.parse.quote(value, safe=_SAFE) for name, value in attributes.items()}
        return {**headers, "Content-Type": "application/json"}, msgspec.json.encode(event.data)
    whole = {**attributes, "datacontenttype": "application/json", "data": event.data}
    if mode == "batch":
        return {"Content-Type": "application/cloudevents-batch+json"}, msgspec.json.encode([whole])
    return {"Content-Type": "application/cloudevents+json"}, msgspec.json.encode(whole)

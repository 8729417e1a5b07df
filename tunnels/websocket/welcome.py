"""What a caller says first, and again whenever it changes: a text message. All other messages are binary frames."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from tunnels.link.carrier import WORD

PATH: Final = "/tunnel"
"""The path at which callers accept agents."""
CALLERS_MAX: Final = 64

Url = Annotated[str, Meta(max_length=256, pattern=r"^(https?://[!-~]+)?\Z")]
Name = Annotated[str, Meta(pattern=rf"^({WORD.pattern})\Z")]


class Welcome(Struct, frozen=True):
    """Who speaks, and which callers there are.

    Attributes:
        caller: The identity of the caller that speaks.
        callers: Where each caller can be dialled, by identity; empty if only a proxy leads there.
    """

    caller: Name
    callers: Annotated[dict[Name, Url], Meta(max_length=CALLERS_MAX)] = {}


_DECODER: Final = msgspec.json.Decoder(Welcome)


def encode(welcome: Welcome) -> str:
    """Return the text of a welcome."""
    return msgspec.json.encode(welcome).decode()


def decode(text: str) -> Welcome | None:
    """Return the welcome in a text; None if it holds none.

    >>> decode('{"caller": "replica-1", "callers": {"replica-1": "https://192.0.2.1:8443"}}')
    Welcome(caller='replica-1', callers={'replica-1': 'https://192.0.2.1:8443'})
    """
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None

"""Server-sent events, read from bytes as they come: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

LINE_BYTES_MAX: Final = 65536
"""The longest line that is kept; the rest of a longer one is dropped."""
DATA_LINES_MAX: Final = 100
"""The most lines of one message that are kept."""


@dataclass(frozen=True)
class Message:
    """An event of a stream.

    Attributes:
        event: Its type.
        id: The last id that the stream has given so far; "" before the first one.
    """

    event: str
    data: str
    id: str = ""


class Parser:
    """The messages of one connection; a comment gives none.

    Args:
        last_id: The id with which the connection was asked to go on.
    """

    def __init__(self, last_id: str = "") -> None:
        self._rest = b""
        self._after_return = False
        self._id = last_id
        self._event = ""
        self._data: list[str] = []

    def feed(self, received: bytes) -> list[Message]:
        """Return the messages that are complete with these bytes."""
        return [message for line in self._lines(received) if (message := self._line(line)) is not None]

    def _lines(self, received: bytes) -> Iterator[bytes]:
        """Yield complete lines, which end with CR, LF or both, also if the two come apart."""
        if self._after_return and received.startswith(b"\n"):
            received = received[1:]
        self._after_return = received.endswith(b"\r") if received else self._after_return
        *complete, rest = (self._rest + received).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = rest[:LINE_BYTES_MAX]
        yield from (line[:LINE_BYTES_MAX] for line in complete)

    def _line(self, line: bytes) -> Message | None:
        """Take a line, and return the message that it ends."""
        if not line:
            return self._dispatch()
        name, _, value = line.decode(errors="replace").removeprefix("\ufeff").partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._event = value
            case "data" if len(self._data) < DATA_LINES_MAX:
                self._data.append(value)
            case "id" if "\0" not in value:
                self._id = value
            case _:
                pass  # a comment has no name; `retry` is for browsers
        return None

    def _dispatch(self) -> Message | None:
        event, data = self._event, self._data
        self._event, self._data = "", []
        return Message(event or "message", "\n".join(data), self._id) if data else None

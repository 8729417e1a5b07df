"""What goes between a browser's console and the portal: frames, output that waits for a slow browser, and why it ends.

Of output that waits for a slow browser the last is kept. The provider does the same for a session that reads too
slowly; but between it and a browser megabytes fit into the buffers of the connections, and would be shown before
anything that comes after them.

Binary messages carry what the device prints, and what a person types. Text messages are JSON:

* of the browser, `{"shown": 4096}`: how many bytes the terminal has written since the beginning; and
  `{"ticket": "…"}`: its session goes on with another token.
* of the portal, `{"type": "open", "watches": false, "began": 1764340000.5}`, `{"type": "typist", "you": false,
  "who": "ann", "since": "2026-11-28T14:32:00Z"}` whenever that changes, with "" for what is not known,
  `{"type": "alive"}` where there is no other word, and at the end `{"type": "end", "why": "in-use", "text": "…"}`.
"""

from enum import StrEnum
from typing import Any, Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.platform.errors import Forbidden, Invalid, NotFound, OutsideError, Unauthorized

WAITING_BYTES_MAX: Final = 256 * 1024
"""The most output that waits for a browser."""
SKIPPED: Final = b"\r\n[output was skipped: this browser shows it too slowly]\r\n"
_KEPT_BYTES_MAX: Final = WAITING_BYTES_MAX - len(SKIPPED)


class Backlog:
    """Output that a browser has not got."""

    def __init__(self) -> None:
        self._bytes = bytearray()  # parts that are objects of their own would take more memory than their bytes

    def __len__(self) -> int:
        """Count the bytes."""
        return len(self._bytes)

    def feed(self, data: bytes) -> None:
        """Add output; if too much waits, all but the end of the new is dropped, with a line that says so."""
        if len(self) + len(data) > WAITING_BYTES_MAX:
            self._bytes = bytearray(SKIPPED)
            data = data[-_KEPT_BYTES_MAX:]
        self._bytes += data

    def take(self, most: int) -> bytes:
        """Remove and return the next bytes, as many as given at most."""
        taken = bytes(self._bytes[:most])
        del self._bytes[:most]
        return taken


UNSHOWN_BYTES_MAX: Final = 256 * 1024
"""The most output that a browser has got and not shown."""
OUTPUT_BYTES_MAX: Final = 16 * 1024
"""The longest message with output: a terminal writes it within a frame of the screen."""
TYPED_BYTES_MAX: Final = 64 * 1024
"""The longest message with what a person types or pastes."""
TEXT_CHARS_MAX: Final = 100
TICKET_CHARS_MAX: Final = 24 * 1024


class FrameError(Exception):
    """A browser's message is not one of ours."""


class Mode(StrEnum):
    """What a person wants at a console."""

    TYPE = "type"
    WATCH = "watch"
    TAKE_OVER = "take-over"


class Why(StrEnum):
    """Why a console has ended, for the page."""

    ENDED = "ended"
    """The device, or the person, has ended it."""
    IN_USE = "in-use"
    """Somebody else types there."""
    REFUSED = "refused"
    """It cannot be opened now; the text says why."""
    SIGNED_OUT = "signed-out"
    """The token is not valid any more."""
    MOVED = "moved"
    """The same person has opened it elsewhere."""
    WITHDRAWN = "withdrawn"
    """The right to it was taken away."""
    LOST = "lost"
    """The way to the device broke; trying again helps."""


CLOSE_CODES: Final = {
    Why.ENDED: 1000,
    Why.LOST: 1012,
    Why.REFUSED: 4400,
    Why.SIGNED_OUT: 4401,
    Why.WITHDRAWN: 4403,
    Why.IN_USE: 4409,
    Why.MOVED: 4410,
}
"""The codes with which the WebSocket is closed: those of RFC 6455, and private ones that look like HTTP's."""


class ConsoleEnd(msgspec.Struct, frozen=True):
    """The end of a console.

    Attributes:
        why: In one word.
        text: In a sentence.
    """

    why: Why
    text: str

    def by(self, who: str) -> "ConsoleEnd":
        """Return the same with the name of the person who types, if it is that somebody does."""
        if self.why is not Why.IN_USE or not who:
            return self
        return ConsoleEnd(self.why, self.text.replace(_SOMEBODY, who, 1))


class Typed(msgspec.Struct, frozen=True):
    """Keys."""

    data: bytes


class BytesShown(msgspec.Struct, frozen=True):
    """The browser has shown so many bytes since the beginning."""

    total: int


class SessionRenewed(msgspec.Struct, frozen=True):
    """The session of the browser goes on; the ticket is of `cookie.ticket`."""

    ticket: str


class OutputWindow(msgspec.Struct, frozen=True):
    """How much was sent to a browser, and how much of it the browser has shown.

    Attributes:
        sent: Bytes since the beginning.
        shown: Of these.
    """

    sent: int = 0
    shown: int = 0

    @property
    def room(self) -> int:
        """How many bytes may be sent now."""
        return UNSHOWN_BYTES_MAX - (self.sent - self.shown)

    def after_sending(self, count: int) -> "OutputWindow":
        """Return the window after bytes were sent."""
        return OutputWindow(self.sent + count, self.shown)

    def after(self, shown: BytesShown) -> "OutputWindow":
        """Return the window after the browser has shown bytes.

        Raises:
            FrameError: It says that it has shown what was never sent, or less than before.
        """
        if not self.shown <= shown.total <= self.sent:
            raise FrameError(f"{shown.total} bytes were never shown")
        return OutputWindow(self.sent, shown.total)


class _Ack(msgspec.Struct, forbid_unknown_fields=True):
    shown: int


class _Ticket(msgspec.Struct, forbid_unknown_fields=True):
    ticket: str


_ack: Final = msgspec.json.Decoder(_Ack)
_ticket: Final = msgspec.json.Decoder(_Ticket)


def parse(message: bytes | str) -> Typed | BytesShown | SessionRenewed:
    """Return a message of a browser.

    Raises:
        FrameError: It is none.
    """
    if isinstance(message, bytes):
        if len(message) > TYPED_BYTES_MAX:
            raise FrameError("too much was typed at once")
        return Typed(message)
    try:
        if len(message) <= TEXT_CHARS_MAX:
            return BytesShown(_ack.decode(message).shown)
        if len(message) <= TICKET_CHARS_MAX:
            return SessionRenewed(_ticket.decode(message).ticket)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        raise FrameError("a text that is neither an acknowledgement nor a ticket") from None
    raise FrameError("too long a text")


def opened(*, watches: bool, began: float) -> str:
    """Return the first message of the portal; with `began` a page says which of its sessions it connects again."""
    return _text({"type": "open", "watches": watches, "began": began})


def typist(*, you: bool, who: str, since: str, left: str = "") -> str:
    """Return the message that says who types, and since when, or when who did has left; "" for what is not known.

    Args:
        you: Whether it is the person at this page.
        who: Their name, if it is another one.
        since: Since when (RFC 3339).
        left: When who typed has left, and nobody types (RFC 3339).
    """
    return _text({"type": "typist", "you": you, "who": who, "since": since, "left": left})


def ended(end: ConsoleEnd) -> str:
    """Return the last message of the portal."""
    return _text({"type": "end", "why": end.why, "text": end.text})


def _text(content: dict[str, Any]) -> str:
    return msgspec.json.encode(content).decode()


ALIVE: Final = _text({"type": "alive"})
"""What the portal says every few seconds."""


ENDED: Final = ConsoleEnd(Why.ENDED, "The console has ended.")
BROKEN: Final = ConsoleEnd(Why.LOST, "The way to the device broke off; your lab goes on.")
LEAVING: Final = ConsoleEnd(Why.LOST, "This portal restarts; your lab goes on.")
SIGNED_OUT: Final = ConsoleEnd(Why.SIGNED_OUT, "Your login has ended: log in again. Your lab goes on.")
WITHDRAWN: Final = ConsoleEnd(
    Why.WITHDRAWN,
    "You may not use this console any more: the right to it was withdrawn, or to type in it, or your login has ended.",
)
MOVED: Final = ConsoleEnd(Why.MOVED, "You have opened this console elsewhere, where you type now.")
NONSENSE: Final = ConsoleEnd(Why.REFUSED, "The browser sent what is no part of a console; load the page again.")
_SOMEBODY: Final = "Somebody else"
_SUCCESS: Final = "Success"
_EXITED: Final = "NonZeroExitCode"
_AGAIN: Final = ": run the command again"
_WRAPPED: Final = "Internal error occurred: "
"""What an API server before 1.36 puts before the text of any refusal of a kubelet, whose reason it drops."""


class _Status(msgspec.Struct):
    status: str = ""
    reason: str = ""
    message: str = ""


_statuses: Final = msgspec.json.Decoder(_Status)


def refusal(error: OutsideError, device: str, *, what: str = "console") -> ConsoleEnd:
    """Return what the API server's refusal means for the person who opens the console, or the screen, of a device."""
    match error:
        case Unauthorized():
            return SIGNED_OUT
        case Forbidden():
            return ConsoleEnd(
                Why.WITHDRAWN,
                f"You may not open the {what} of {device}: the cluster gives you no right to it in this lab. "
                f"It says: {error.message}",
            )
        case NotFound():
            return ConsoleEnd(Why.REFUSED, "The lab has ended, or is not there yet; see its state.")
        case Invalid():
            return ConsoleEnd(Why.REFUSED, f"The {what} of {device} cannot be opened: {error.message}")
        case _:
            return ConsoleEnd(Why.LOST, f"The way to {device} does not come about at the moment: {error.message}")


def end_of(status: bytes, device: str) -> ConsoleEnd:
    """Return what the last status of a session means; empty if none came.

    Args:
        status: A `metav1.Status`, as JSON.
        device: The label.
    """
    if not status:
        return BROKEN
    try:
        found = _statuses.decode(status)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return BROKEN
    if found.status == _SUCCESS:
        return ENDED
    message = found.message.removeprefix(_WRAPPED)
    if found.reason == ConsoleReason.CONSOLE_IN_USE or message.startswith(names.CONSOLE_IN_USE):
        return ConsoleEnd(Why.IN_USE, in_use(message, device))
    if found.reason in {_EXITED, "InternalError", ""}:  # the session ended, or its worker does not answer
        return ConsoleEnd(Why.LOST, _sentence(message) or BROKEN.text)
    return ConsoleEnd(Why.REFUSED, _sentence(message))


def in_use(message: str, device: str) -> str:
    """Return the provider's refusal without its commands, since the page has buttons for them."""
    since = message.partition(" since ")[2].partition(": ")[0]
    when = f" since {since}" if since else ""
    return (
        f"{_SOMEBODY} types at the console of {device}{when}. You watch; if you take over, the other one watches "
        "until you leave."
    )


def _sentence(text: str) -> str:
    """Return a message as a sentence, without the advice to run a command again: the page does so by itself.

    The name of a device at its beginning is left as it is.
    """
    text = text.strip().removesuffix(_AGAIN)
    if not text:
        return ""
    begins = text[:1].upper() + text[1:] if text.startswith(("the ", "this ", "a ", "another ")) else text
    return begins + ("" if text.endswith((".", "!", "?")) else ".")

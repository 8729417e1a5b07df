"""Why a console does not open, or has ended, in a sentence for the person at it. Pure."""

from typing import Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.platform.errors import Forbidden, Invalid, NotFound, OutsideError, Unauthorized
from vkprovider.portal.web.consoles.frames import ConsoleEnd, Why

ENDED: Final = ConsoleEnd(Why.ENDED, "The console has ended.")
BROKEN: Final = ConsoleEnd(Why.LOST, "The way to the device broke off; your lab goes on.")
LEAVING: Final = ConsoleEnd(Why.LOST, "This portal restarts; your lab goes on.")
SIGNED_OUT: Final = ConsoleEnd(Why.SIGNED_OUT, "Your login has ended: log in again. Your lab goes on.")
WITHDRAWN: Final = ConsoleEnd(
    Why.WITHDRAWN, "You may not use this console any more: the right to it was withdrawn, or your login has ended."
)
NONSENSE: Final = ConsoleEnd(Why.REFUSED, "The browser sent what is no part of a console; load the page again.")
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


def refusal(error: OutsideError, device: str) -> ConsoleEnd:
    """Return what the API server's refusal means for the person who opens the console of a device."""
    match error:
        case Unauthorized():
            return SIGNED_OUT
        case Forbidden():
            return ConsoleEnd(
                Why.WITHDRAWN,
                f"You may not open the console of {device}: the cluster gives you no right to it in this lab. "
                f"It says: {error.message}",
            )
        case NotFound():
            return ConsoleEnd(Why.REFUSED, "The lab has ended, or is not there yet; see its state.")
        case Invalid():
            return ConsoleEnd(Why.REFUSED, f"The console of {device} cannot be opened: {error.message}")
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
        f"Somebody else types at the console of {device}{when}. You watch; if you take over, the other one watches "
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

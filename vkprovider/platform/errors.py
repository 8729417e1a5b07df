"""Every error of vkprovider, by what the caller should do about it.

    VkproviderError
    ├── InputError            an object is invalid: report it on the object, wait until it changes
    ├── StepFailed            a step that calls several systems failed in a named one: try it again
    ├── Fenced                this replica may no longer act for the Node: stop, without a trace
    └── OutsideError          an outside system (the API server, CML) did not do as asked
        ├── NotFound          404: the object is gone; often success
        ├── Conflict          409: another client wrote first; read again
        ├── Gone              410: the resource version is too old; list again
        ├── Invalid           400, 422, 413: the request is wrong; the same request will fail again
        ├── Unauthorized      401, or a login refused: credentials are wrong
        │   └── Withheld      credentials may not be used for this: nothing was sent
        ├── Forbidden         403: credentials are right, rights are missing
        ├── TlsFailed         the certificate is expired, self-signed or for another host
        └── Unavailable       5xx, refused, reset, no such host: try again later
            ├── Throttled     429: try again after `after_s`
            └── DeadlineExceeded   no answer in time; the request may or may not have been carried out

Shells translate the errors of their libraries into this tree at their edge. Messages carry no secrets and no bodies
longer than 256 characters.
"""

from typing import Final

from vkprovider.platform.messages import Fault
from vkprovider.platform.reasons import Reason

_MESSAGE_CHARS_MAX: Final = 256
_INPUT_CHARS_MAX: Final = 1000
"""The message quotes the input, and an Event has room for 1024 characters."""


def shorten(text: str, limit: int = _MESSAGE_CHARS_MAX) -> str:
    """Cut a foreign text to `limit` characters, so that no HTML page or blob reaches a log or an Event."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


class VkproviderError(Exception):
    """The root of the tree."""


class InputError(VkproviderError):
    """An object is invalid; retrying is useless until it changes.

    Attributes:
        reason: Fit for a condition or a waiting state (`TopologyInvalid`).
        message: What is wrong, where, and what to do about it.
        event: The reason of its Event, where that is more particular; else `reason`.
    """

    def __init__(self, reason: Reason, message: str, *, event: Reason | None = None) -> None:
        message = shorten(message, _INPUT_CHARS_MAX)
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.event = event or reason

    @property
    def fault(self) -> Fault:
        """Its reason and message as a value, where nothing is raised."""
        return Fault(self.reason, self.message)


class StepFailed(VkproviderError):  # noqa: N818 (what happened, as in Step)
    """One of the outside systems that a step calls failed.

    Attributes:
        reason: Fit for a waiting state (`ApiUnavailable`).
        message: That system's message.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class Fenced(VkproviderError):  # noqa: N818 (a state, named as in the literature on leases)
    """This replica may no longer act for the Node."""


class OutsideError(VkproviderError):
    """An outside system did not do as asked.

    Attributes:
        status: The HTTP status, or 0 if there was no answer.
        message: The other side's message, shortened.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        message = shorten(message)
        super().__init__(message)
        self.status = status
        self.message = message


class NotFound(OutsideError):  # noqa: N818 (the field's own name)
    """404."""


class Conflict(OutsideError):  # noqa: N818 (the field's own name)
    """409."""


class Gone(OutsideError):  # noqa: N818 (the field's own name)
    """410: list again."""


class Invalid(OutsideError):  # noqa: N818 (the field's own name)
    """The same request will fail again."""


class Unauthorized(OutsideError):  # noqa: N818 (the field's own name)
    """Credentials are wrong."""


class CredentialsUnread(Unauthorized):
    """There are no credentials, or they cannot be read.

    The message is about our own objects and holds the commands that help, so it is not shortened as a foreign one.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = shorten(message, _INPUT_CHARS_MAX)


class Withheld(CredentialsUnread):
    """The credentials may not be used for this, and were not sent."""


class Forbidden(OutsideError):  # noqa: N818 (the field's own name)
    """Rights are missing."""


class TlsFailed(OutsideError):  # noqa: N818 (the field's own name)
    """The server's certificate cannot be trusted."""


class Unavailable(OutsideError):  # noqa: N818 (the field's own name)
    """Try again later."""


class Throttled(Unavailable):
    """Try again after `after_s` seconds."""

    def __init__(self, message: str, *, status: int = 429, after_s: float = 1.0) -> None:
        super().__init__(message, status=status)
        self.after_s = after_s


class DeadlineExceeded(Unavailable):
    """No answer in time: the request may or may not have been carried out."""


_BY_STATUS: Final[dict[int, type[OutsideError]]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    410: Gone,
    413: Invalid,
    422: Invalid,
}


def from_status(status: int, message: str, *, after_s: float = 1.0) -> OutsideError:
    """Return the error for an HTTP status of 400 or more; `after_s` is from Retry-After."""
    if status == 429:  # noqa: PLR2004 (the status's own number)
        return Throttled(message, after_s=after_s)
    if status >= 500:  # noqa: PLR2004 (the class of statuses)
        return Unavailable(message, status=status)
    return _BY_STATUS.get(status, Invalid)(message, status=status)

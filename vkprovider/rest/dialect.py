"""What answers and the transport's errors mean, in the error tree of `vkprovider.platform.errors`.

What all services share stands here; a `Dialect` adds what one service says in its own words.
"""

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec

from tunnels import base as transport_errors
from tunnels.base import Response
from vkprovider.platform.errors import DeadlineExceeded, Invalid, OutsideError, Throttled, TlsFailed, Unavailable
from vkprovider.rest.operations import OperationRequest


class NotDone(Unavailable):
    """The call failed without any effect."""


class Unsent(NotDone):
    """No connection came about; nothing was sent."""


def may_have_happened(error: OutsideError) -> bool:
    """Return whether a call that failed may have been carried out all the same.

    A session is created on another deployment only if this is False of the first; otherwise the first is asked again
    with the same client key, or its events are awaited.
    """
    return isinstance(error, Unavailable) and not isinstance(error, NotDone | Throttled)


SUCCESSES: Final = range(200, 300)
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

_T = TypeVar("_T")


class Dialect(Protocol):
    """How one service names things and words its refusals."""

    @property
    def kind(self) -> str:
        """The service, as a message names it: `CML`, `an LDS`."""

    @property
    def setting(self) -> str:
        """What to correct if another server answers: `the worker's url`."""

    def describe(self, request: OperationRequest) -> str:
        """Return server and request, for the beginning of a message."""

    def untrusted(self, what: str, error: transport_errors.CertificateInvalid) -> str:
        """Return the message for a certificate that cannot be trusted, with the remedy."""

    def refusal(self, what: str, request: OperationRequest, response: Response, secrets: Iterable[str]) -> OutsideError:
        """Return the error for an answer that is neither a success nor a redirect.

        Args:
            what: See `describe`.
            request: The request.
            response: The answer.
            secrets: What must not be quoted.
        """


def error_of(
    dialect: Dialect, request: OperationRequest, response: Response, secrets: Iterable[str] = ()
) -> OutsideError | None:
    """Judge the answer to a request; None if the service did as asked.

    Args:
        dialect: The service's.
        request: The request.
        response: The answer.
        secrets: What was sent and must not be quoted.
    """
    status, what = response.status, dialect.describe(request)
    if status in SUCCESSES:
        html = response.headers.get("content-type", "").startswith("text/html")
        return foreign(dialect, what, status) if html else None
    if status in REDIRECTS:
        return redirected(dialect, what, response)
    return dialect.refusal(what, request, response, secrets)


def transport_error(
    dialect: Dialect, request: OperationRequest, error: transport_errors.TransportError
) -> OutsideError:
    """Translate an error of the transport."""
    what = dialect.describe(request)
    match error:
        case transport_errors.CertificateInvalid():
            return TlsFailed(dialect.untrusted(what, error))
        case transport_errors.DeadlineExceeded():
            return DeadlineExceeded(f"{what}: {error}")
        case transport_errors.ConnectFailed():
            return Unsent(f"{what}: {error}")
        case transport_errors.RequestRefused():
            return Invalid(f"{what}: {error}")
        case _:
            return Unavailable(f"{what}: {error}")


def decode(dialect: Dialect, request: OperationRequest, response: Response, shape: type[_T]) -> _T:
    """Decode a JSON answer.

    Raises:
        Unavailable: The answer does not have the shape: another server answered, or only half of it arrived.
    """
    try:
        return msgspec.json.decode(response.body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"{dialect.describe(request)} brought an answer that is not {dialect.kind}'s: {error}"
        raise Unavailable(message, status=response.status) from error


def foreign(dialect: Dialect, what: str, status: int) -> Unavailable:
    """Return the error for an answer of a proxy or of another server."""
    message = f"{what} was answered {status} by something other than {dialect.kind}: check {dialect.setting}"
    return Unavailable(message, status=status)


def redirected(dialect: Dialect, what: str, response: Response) -> Invalid:
    """Return the error for a redirect, which is never followed."""
    to = without_secrets(response.headers.get("location", "")) or "nowhere"
    return Invalid(f"{what} was redirected to {to}: correct {dialect.setting}", status=response.status)


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Return a foreign text with every secret replaced."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "…")
    return text


def without_secrets(url: str) -> str:
    """Return a URL without query, fragment and user; an unreadable one is empty.

    >>> without_secrets("https://lds.example.com/login/7?token=secret")
    'https://lds.example.com/login/7'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

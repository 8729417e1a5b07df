"""What CML's answers and the transport's errors mean, in our own tree of errors. Pure.

A 404 becomes `NotFound` only if CML itself says that the object asked for does not exist: it quotes the object's id
(`Lab not found: <id>`, which Cisco's own client relies on as well). The 404 of a proxy, of another server behind the
URL or of a path that this release lacks must never make a lab look deleted.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from tunnels import errors as transport_errors
from tunnels.base import Response
from vkprovider.api.errors import (
    DeadlineExceeded,
    Invalid,
    OutsideError,
    TlsFailed,
    Unauthorized,
    Unavailable,
    from_status,
)
from vkprovider.cml.wire import CmlError

_LOGIN_REFUSALS: Final = frozenset({400, 401, 403})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SUCCESSES: Final = range(200, 300)
_SERVER_ERROR: Final = 500
_NOT_FOUND: Final = 404
_TOO_LARGE: Final = 413
_TOO_MANY: Final = 429

_REMEDY: Final[Mapping[transport_errors.CertificateFault, str]] = {
    "self-signed": "is self-signed: put it into tls.caBundle, or set tls.insecureSkipVerify",
    "untrusted": "is signed by an unknown authority: put the authority's into tls.caBundle, or set"
    " tls.insecureSkipVerify",
    "expired": "has expired: renew it on the worker, or set tls.insecureSkipVerify",
    "not-yet-valid": "is not valid yet: check the clocks, or set tls.insecureSkipVerify",
    "hostname": "is for another host name: use that name in the worker's url, or set tls.insecureSkipVerify",
    "ca-bundle": "cannot be checked: tls.caBundle holds no certificate in PEM form",
}


def error_of(address: str, method: str, path: str, response: Response) -> OutsideError | None:
    """Judge the answer to a request; None if CML did as asked.

    Args:
        address: The worker's URL.
        method: `GET`, `PUT`, …
        path: What follows `/api/v0`: `/labs/<lab>/nodes/<node>/state`.
        response: The answer.
    """
    status = response.status
    what = f"{address}: {method} {path}"
    if status in _REDIRECTS:
        return _redirected(what, response)
    if status in _SUCCESSES:
        foreign = response.headers.get("content-type", "").startswith("text/html")
        return _not_cml(what, status) if foreign else None
    if status == _TOO_LARGE:
        return Invalid(f"{what}: larger than the worker accepts (CML's limit is 20 MB)", status=status)
    said = _description(response)
    if status < _SERVER_ERROR and status != _TOO_MANY and not said:
        return _not_cml(what, status)
    if status == _NOT_FOUND and not any(object_id in said for object_id in path.split("/")[2:5:2]):
        return Unavailable(f"{what}: 404, but not about this object: {said}", status=status)
    return from_status(status, f"{what}: {status} {said}".rstrip(), after_s=response.retry_after_s())


def token_of(address: str, username: str, response: Response) -> str:
    """Read the token from the answer to a login.

    The answer's text is never quoted, it may repeat what was sent; and no failure looks like a missing object.

    Raises:
        Unauthorized: The login was refused.
        Unavailable: CML, or something in front of it, failed; `Throttled` if there were too many logins.
        Invalid: The URL leads elsewhere.
    """
    status = response.status
    what = f"{address}: POST /authenticate"
    if status in _LOGIN_REFUSALS:
        raise Unauthorized(
            f"{address} refused the login of user {username!r}: check username and password in the worker's"
            " credentials Secret",
            status=status,
        )
    if status in _REDIRECTS:
        raise _redirected(what, response)
    if status == _TOO_MANY or status >= _SERVER_ERROR:
        raise from_status(status, f"{address} answered {status} to the login", after_s=response.retry_after_s())
    try:
        return msgspec.json.decode(response.body if status in _SUCCESSES else b"", type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _not_cml(what, status) from None


def transport_error(address: str, method: str, path: str, error: transport_errors.TransportError) -> OutsideError:
    """Translate an error of the transport."""
    what = f"{address}: {method} {path}"
    match error:
        case transport_errors.CertificateInvalid():
            return TlsFailed(f"the certificate of {address} {_REMEDY[error.fault]} ({error})")
        case transport_errors.DeadlineExceeded():
            return DeadlineExceeded(f"{what}: {error}")
        case transport_errors.RequestRefused():
            return Invalid(f"{what}: {error}")
        case _:
            return Unavailable(f"{what}: {error}")


def _description(response: Response) -> str:
    try:
        return msgspec.json.decode(response.body, type=CmlError).description
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _redirected(what: str, response: Response) -> OutsideError:
    to = response.headers.get("location", "nowhere")
    return Invalid(f"{what} was redirected to {to}: correct the worker's url", status=response.status)


def _not_cml(what: str, status: int) -> OutsideError:
    return Unavailable(f"{what} was answered {status} by something other than CML: check the url", status=status)

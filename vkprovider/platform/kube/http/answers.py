"""Map an API server's refusals to `vkprovider.platform.errors`."""

from collections.abc import Mapping
from typing import Final

import msgspec

from vkprovider.platform import errors

_REDIRECTS: Final = range(300, 400)
_RETRY_AFTER_S_MAX: Final = 300.0
_NOT_FOUND: Final = 404
_UNSERVED: Final = b"404 page not found"
"""An API server's answer for a path that none of its kinds has: Go's text, where a missing object has a Status."""


class StatusObject(msgspec.Struct, rename="camel"):
    """A `Status`: `{"code": 404, "reason": "NotFound", "message": "namespaces 'a' not found"}` and more."""

    code: int = 0
    reason: str = ""
    message: str = ""


_status_decoder: Final = msgspec.json.Decoder(StatusObject)


def refusal(status: int, body: bytes, headers: Mapping[str, str], what: str) -> errors.OutsideError:
    """Return the error for a response other than 2xx; `what` names the request (`GET /api/v1/pods`)."""
    if (place := headers.get("location")) is not None and status in _REDIRECTS:
        message = f"{what}: redirected to {place}; the kubeconfig must name the API server itself"
        return errors.Invalid(message, status=status)
    try:
        message = _status_decoder.decode(body).message
    except (msgspec.MsgspecError, UnicodeDecodeError):  # a proxy's page, or an empty body
        message = ""
    if not message and status == _NOT_FOUND and body.strip() == _UNSERVED:
        message = (
            f"{what}: the API server does not serve this kind: its custom resource definition is missing, or not "
            "established yet; `vkprovider doctor` says how it is installed"
        )
    elif not message:
        message = f"{what}: HTTP {status} {body[:200].decode(errors='replace')}"
    return errors.from_status(status, message, after_s=_retry_after_s(headers.get("retry-after")))


def error_event(body: bytes, what: str) -> errors.OutsideError:
    """Return the error for the Status inside a watch's ERROR event."""
    try:
        status = _status_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return errors.Unavailable(f"{what}: the watch reported an undecodable error", status=500)
    return errors.from_status(status.code or 500, status.message or f"{what}: the watch reported {status.reason}")


def _retry_after_s(header: str | None) -> float:
    """Read Retry-After; the API server sends whole seconds, never a date."""
    try:
        return min(max(float(header or 1.0), 0.0), _RETRY_AFTER_S_MAX)
    except ValueError:
        return 1.0

"""What may be asked of an LDS or a grader, and what the answers mean.

A 404 becomes `NotFound` only if the LDS itself says so by its code: the 404 of a proxy, or of another server behind
the URL, must never make a live session look archived. What an LDS says is quoted without the secrets that were sent.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from tunnels.base import CertificateInvalid, Response
from vkprovider.platform.errors import Invalid, NotFound, OutsideError, Unauthorized, from_status
from vkprovider.rest.dialect import NotDone, foreign, redacted
from vkprovider.rest.operations import Operation, OperationRequest


class Full(NotDone):
    """The deployment holds as many sessions as it can."""


class Lacking(Invalid):
    """The deployment lacks the extension that the call needs; nothing was sent."""


BASE: Final = "/api/v1"

_REFRESH_S: Final = 120.0
"""How long the LDS may take at least to fetch content from its store."""
_SESSION: Final = "/sessions/{session}"

INFO: Final = Operation("info", "GET", "/info")
LIST_SESSIONS: Final = Operation("list_sessions", "GET", "/sessions")
CREATE_SESSION: Final = Operation("create_session_with_part", "POST", "/sessions")
GET_SESSION: Final = Operation("get_session_info", "GET", _SESSION)
GET_LOGIN_URL: Final = Operation("get_login_url", "GET", f"{_SESSION}/login_url")
SET_DEVICES: Final = Operation("set_devices", "PUT", f"{_SESSION}/devices")
SET_TIMESLOT: Final = Operation("set_timeslot", "PUT", f"{_SESSION}/timeslot")
ARCHIVE_SESSION: Final = Operation("archive_session", "POST", f"{_SESSION}/archive")
COLLECT_RESPONSES: Final = Operation("collect_responses", "GET", f"{_SESSION}/responses")
COLLECT_FEEDBACK: Final = Operation("collect_user_feedback_by_session", "GET", f"{_SESSION}/feedback")
COLLECT_FORM_FEEDBACK: Final = Operation("collect_user_feedback_by_form", "GET", "/feedback")
REFRESH_CONTENT: Final = Operation("refresh_content", "POST", "/content/refresh", _REFRESH_S)

OPERATIONS: Final = (
    INFO,
    LIST_SESSIONS,
    CREATE_SESSION,
    GET_SESSION,
    GET_LOGIN_URL,
    SET_DEVICES,
    SET_TIMESLOT,
    ARCHIVE_SESSION,
    COLLECT_RESPONSES,
    COLLECT_FEEDBACK,
    COLLECT_FORM_FEEDBACK,
    REFRESH_CONTENT,
)


UNKNOWN_SESSION: Final = "UnknownSession"
UNKNOWN_FORM: Final = "UnknownForm"
CAPACITY_EXHAUSTED: Final = "CapacityExhausted"

_UNAUTHORIZED: Final = 401
_NOT_FOUND: Final = 404
_UNAVAILABLE: Final = 503


class _Error(msgspec.Struct, frozen=True):
    code: str = ""
    message: str = ""


class LdsDialect(msgspec.Struct, frozen=True):
    """The dialect of an LDS deployment.

    Attributes:
        name: The deployment, for messages: `LDS us-west`.
        kind: See `Dialect.kind`.
        setting: See `Dialect.setting`.
        token_setting: What to correct if the token is refused.
        ca_setting: What to correct if the certificate cannot be trusted.
    """

    name: str
    kind: str = "an LDS"
    setting: str = "the deployment's base_url"
    token_setting: str = "token_file or LDS_API_TOKEN"  # noqa: S105 (the settings' names)
    ca_setting: str = "renew it, or correct ca_file"

    def describe(self, request: OperationRequest) -> str:
        """Return `LDS us-west: set_devices`."""
        return f"{self.name}: {request.operation.name}"

    def untrusted(self, what: str, error: CertificateInvalid) -> str:
        """Return the message for a certificate that cannot be trusted."""
        return f"{what}: the certificate cannot be trusted ({error}): {self.ca_setting}"

    def refusal(self, what: str, request: OperationRequest, response: Response, secrets: Iterable[str]) -> OutsideError:  # noqa: ARG002 (an LDS names what it lacks by its code)
        """Return the error for a refusal; `NotFound` only by the LDS's own code."""
        status = response.status
        if status == _UNAUTHORIZED:
            return Unauthorized(f"{what}: the token was refused: check {self.token_setting}", status=status)
        error = _decoded(response)
        said = " ".join(part for part in (error.code, redacted(error.message, secrets)) if part)
        if status == _NOT_FOUND:
            if error.code in {UNKNOWN_SESSION, UNKNOWN_FORM}:
                return NotFound(f"{what}: {said}", status=status)
            return foreign(self, what, status)
        if status == _UNAVAILABLE and error.code == CAPACITY_EXHAUSTED:
            return Full(f"{what}: {said}", status=status)
        return from_status(status, f"{what}: {status} {said}".rstrip(), after_s=response.retry_after_s())


def _decoded(response: Response) -> _Error:
    try:
        return msgspec.json.decode(response.body, type=_Error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Error()

"""What the answers of an LDS or a grader mean, in the error tree of `vkprovider.platform.errors`. Pure.

A 404 becomes `NotFound` only if the LDS itself says so by its code: the 404 of a proxy, or of another server behind
the URL, must never make a live session look archived. What an LDS says is quoted without the secrets that were sent.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from tunnels.base import Response
from tunnels.errors import CertificateInvalid
from vkprovider.labs.lds.errors import Full
from vkprovider.platform.errors import NotFound, OutsideError, Unauthorized, from_status
from vkprovider.rest.dialect import foreign, redacted
from vkprovider.rest.operations import OperationRequest

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

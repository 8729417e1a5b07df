"""What CML's answers mean, in the error tree of `vkprovider.api.errors`. Pure.

A 404 becomes `NotFound` only if CML itself says that the object asked for does not exist: it quotes the object's id
(`Lab not found: <id>`, which Cisco's own client relies on as well). The 404 of a proxy, of another server behind the
URL or of a path that this release lacks must never make a lab look deleted.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from tunnels.base import Response
from tunnels.errors import CertificateFault, CertificateInvalid
from vkprovider.api.errors import Invalid, OutsideError, Unauthorized, Unavailable, from_status
from vkprovider.cml.wire import CmlError
from vkprovider.rest.dialect import REDIRECTS, SUCCESSES, foreign, redirected
from vkprovider.rest.operations import OperationRequest

_LOGIN_REFUSALS: Final = frozenset({400, 401, 403})
_SERVER_ERROR: Final = 500
_NOT_FOUND: Final = 404
_TOO_LARGE: Final = 413
_TOO_MANY: Final = 429

_REMEDY: Final[Mapping[CertificateFault, str]] = {
    "self-signed": "is self-signed: put it into tls.caBundle, or, for tests only, set tls.insecureSkipVerify",
    "untrusted": "is signed by an unknown authority: put the authority's into tls.caBundle",
    "expired": "has expired: renew it on the worker",
    "not-yet-valid": "is not valid yet: check the clocks",
    "hostname": "is for another host name: use that name in the worker's url",
    "ca-bundle": "cannot be checked: tls.caBundle holds no certificate in PEM form",
}


class CmlDialect(msgspec.Struct, frozen=True):
    """The dialect of a CML worker.

    Attributes:
        address: The worker's URL.
        kind: See `Dialect.kind`.
        setting: See `Dialect.setting`.
    """

    address: str
    kind: str = "CML"
    setting: str = "the worker's url"

    def describe(self, request: OperationRequest) -> str:
        """Return `https://cml1: GET /labs`."""
        return f"{self.address}: {request.operation.method} {request.path}"

    def untrusted(self, what: str, error: CertificateInvalid) -> str:  # noqa: ARG002 (the address says enough)
        """Return the message for a certificate that cannot be trusted."""
        return f"the certificate of {self.address} {_REMEDY[error.fault]} ({error})"

    def refusal(
        self,
        what: str,
        request: OperationRequest,
        response: Response,
        secrets: Iterable[str],  # noqa: ARG002 (CML does not repeat what was sent, except after a login: `token_of`)
    ) -> OutsideError:
        """Return the error for a refusal; `NotFound` only if CML quotes the id of the object."""
        status, said = response.status, _description(response)
        if status == _TOO_LARGE:
            return Invalid(f"{what}: larger than the worker accepts (CML's limit is 20 MB)", status=status)
        if status < _SERVER_ERROR and status != _TOO_MANY and not said:
            return foreign(self, what, status)
        if status == _NOT_FOUND and not any(object_id in said for object_id in request.path.split("/")[2:5:2]):
            return Unavailable(f"{what}: 404, but not about this object: {said}", status=status)
        return from_status(status, f"{what}: {status} {said}".rstrip(), after_s=response.retry_after_s())

    def token_of(self, request: OperationRequest, response: Response, source: str) -> str:
        """Decode the token of a login's answer.

        The answer's text is never quoted, it may repeat what was sent; and no failure looks like a missing object.

        Args:
            request: The login.
            response: The answer.
            source: See `Credentials.source`.

        Raises:
            Unauthorized: The login was refused.
            Unavailable: CML, or something in front of it, failed; `Throttled` if there were too many logins.
            Invalid: The URL leads elsewhere.
        """
        status, what = response.status, self.describe(request)
        if status in _LOGIN_REFUSALS:
            raise Unauthorized(
                f"{self.address} refused the login: check username and password in {source}", status=status
            )
        if status in REDIRECTS:
            raise redirected(self, what, response)
        if status == _TOO_MANY or status >= _SERVER_ERROR:
            message = f"{self.address} answered {status} to the login"
            raise from_status(status, message, after_s=response.retry_after_s())
        try:
            return msgspec.json.decode(response.body if status in SUCCESSES else b"", type=str)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise foreign(self, what, status) from None


def _description(response: Response) -> str:
    try:
        return msgspec.json.decode(response.body, type=CmlError).description
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""

"""What CML's answers mean, in the error tree of `vkprovider.platform.errors`. Pure.

A 404 becomes `NotFound` only if CML itself says that the object asked for does not exist: it quotes the object's id
(`Lab not found: <id>`, which Cisco's own client relies on as well). The 404 of a proxy, of another server behind the
URL or of a path that this release lacks must never make a lab look deleted.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from tunnels.base import CertificateFault, CertificateInvalid, Response
from vkprovider.cml.wire import CmlError
from vkprovider.platform.errors import Invalid, OutsideError, Unauthorized, Unavailable, from_status
from vkprovider.rest.dialect import REDIRECTS, SUCCESSES, foreign, redirected
from vkprovider.rest.operations import OperationRequest

_LOGIN_REFUSALS: Final = frozenset({400, 401, 403})
_SERVER_ERROR: Final = 500
_NOT_FOUND: Final = 404
_TOO_LARGE: Final = 413
_TOO_MANY: Final = 429

_REMEDY: Final[Mapping[CertificateFault, str]] = {
    "self-signed": "is self-signed: put it into {into}, or, for tests only, set {skip}",
    "untrusted": "is signed by an unknown authority: put the authority's into {into}",
    "expired": "has expired: renew it on the worker",
    "not-yet-valid": "is not valid yet: check the clocks",
    "hostname": "is for another host name: use that name in {url}",
    "ca-bundle": "cannot be checked: {given} holds no certificate in PEM form",
}
_REMEDY_WITH_OTHERS: Final[Mapping[CertificateFault, str]] = {
    "self-signed": "is self-signed and not the one in {given}: put it there",
    "untrusted": "is signed by another authority than those in {given}: put the authority's there",
}
"""Where authorities are given, but others than the certificate's."""


class Trust(msgspec.Struct, frozen=True):
    """Where the authorities stand by which a worker's certificate is checked, for messages.

    Attributes:
        into: Where a certificate is put that is to be trusted.
        given: The same place, once it holds some.
        skip: What switches the check off.
        url: Where the worker's address stands.
        others: Whether some are given that do not include the worker's; False also while that is not known.
    """

    into: str
    given: str
    skip: str
    url: str
    others: bool = False

    def remedy(self, fault: CertificateFault) -> str:
        """Return the predicate of a certificate with a fault, and what to do."""
        known = _REMEDY_WITH_OTHERS if self.others and fault in _REMEDY_WITH_OTHERS else _REMEDY
        return known[fault].format(into=self.into, given=self.given, skip=self.skip, url=self.url)


BY_SPEC: Final = Trust("spec.tls.caBundle", "spec.tls.caBundle", "spec.tls.insecureSkipVerify", "spec.url")
"""Of a worker that is dialled directly: its CMLWorker."""
BY_AGENT: Final = Trust(
    "the PEM file that VKPROVIDER_AGENT_CA_FILE of the agent names",
    "the PEM file that VKPROVIDER_AGENT_CA_FILE of the agent names",
    "VKPROVIDER_AGENT_INSECURE_SKIP_VERIFY of the agent",
    "VKPROVIDER_AGENT_CML_URL of the agent",
)
"""Of a worker behind an agent, as a replica sees it: nothing in the CMLWorker has an effect there."""
BY_OWN_SETTINGS: Final = Trust(
    "a PEM file that VKPROVIDER_AGENT_CA_FILE names",
    "the file of VKPROVIDER_AGENT_CA_FILE",
    "VKPROVIDER_AGENT_INSECURE_SKIP_VERIFY",
    "VKPROVIDER_AGENT_CML_URL",
)
"""The same, as the agent itself sees it."""


def with_others(trust: Trust, given: object) -> Trust:
    """Return where authorities stand of which some are given, if they are."""
    return msgspec.structs.replace(trust, others=bool(given))


class CmlDialect(msgspec.Struct, frozen=True):
    """The dialect of a CML worker.

    Attributes:
        address: The worker's URL.
        trust: Where the authorities stand that may sign its certificate.
        kind: See `Dialect.kind`.
        setting: See `Dialect.setting`.
    """

    address: str
    trust: Trust = BY_SPEC
    kind: str = "CML"
    setting: str = "the worker's url"

    def describe(self, request: OperationRequest) -> str:
        """Return `https://cml1: GET /labs`."""
        return f"{self.address}: {request.operation.method} {request.path}"

    def untrusted(self, what: str, error: CertificateInvalid) -> str:  # noqa: ARG002 (the address says enough)
        """Return the message for a certificate that cannot be trusted."""
        return f"the certificate of {self.address} {self.trust.remedy(error.fault)} ({error})"

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

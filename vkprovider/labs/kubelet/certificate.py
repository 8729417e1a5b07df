"""The serving certificate: requested of the cluster's signer, and renewed.

One certificate serves all Nodes of a replica: its verifier compares the address that was dialled. The signer
`kubernetes.io/kubelet-serving` wants the organization `system:nodes` and a common name `system:node:…`; nothing
approves its requests by itself. The key never leaves the process, so that a restarted replica requests another one.
"""

import asyncio
import base64
import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any, Final

import msgspec
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from vkprovider.lablet import names
from vkprovider.labs.kubelet.tls import ServingTls
from vkprovider.platform import wellknown
from vkprovider.platform.backoff import delay_s
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.http.tls import self_signed
from vkprovider.platform.kube.resources import Resource, kind
from vkprovider.platform.objects import Condition, Metadata
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)

SIGNER: Final = "kubernetes.io/kubelet-serving"
_HOPELESS: Final = frozenset({"Denied", "Failed"})
_DECIDED: Final = _HOPELESS | {"Approved"}


class _Status(msgspec.Struct, frozen=True):
    certificate: bytes = b""
    conditions: list[Condition] = []


class SigningRequest(msgspec.Struct, frozen=True):
    """A CertificateSigningRequest."""

    metadata: Metadata
    status: _Status = _Status()

    @property
    def refused(self) -> str:
        """Why no certificate will come of it; empty if one may."""
        found = (c for c in self.status.conditions if c.type in _HOPELESS)
        return next((f"{c.type}: {c.reason} {c.message}" for c in found), "")

    @property
    def is_pending(self) -> bool:
        """Whether it is neither approved nor refused."""
        return not any(condition.type in _DECIDED for condition in self.status.conditions)


REQUESTS: Final = kind("/apis/certificates.k8s.io/v1", "certificatesigningrequests", SigningRequest)


_LOOK_FIRST_S: Final = 1.0
_LOOK_CAP_S: Final = 60.0
"""A program approves a request within seconds, a person perhaps in days."""
_REFUSED_S: Final = 3600.0
_RENEW_AT: Final = 0.8
"""The share of a certificate's life after which it is renewed; a kubelet chooses between 0.7 and 0.9."""


@dataclass(frozen=True, slots=True)
class _Pending:
    name: str
    key: bytes


class Certificates:
    """Keeps the serving certificate of a replica valid."""

    def __init__(
        self,
        ctx: Context,
        tls: ServingTls,
        address: str,
        lasts_s: int,
        *,
        dice: Callable[[], float] = random.random,
    ) -> None:
        """Create it; nothing is requested before `run`.

        Args:
            ctx: The replica.
            tls: Serves the certificate.
            address: What it is for.
            lasts_s: For how long it is requested, at least 600 s.
            dice: A random number between 0 and 1.
        """
        self._ctx = ctx
        self._tls = tls
        self._address = address
        self._lasts_s = lasts_s
        self._dice = dice
        self._requests = Resource(ctx.kube, REQUESTS)
        self._pending: _Pending | None = None
        self._looks = 0
        self._renew_at = 0.0
        self._expires_at = 0.0

    @property
    def is_signed(self) -> bool:
        """Whether the certificate is signed by the cluster."""
        return self._expires_at > 0

    async def run(self) -> None:
        """Request certificates and serve them, for ever."""
        failures = 0
        while True:
            try:
                wait_s, failures = await self.turn(), 0
            except OutsideError as error:
                failures += 1
                wait_s = delay_s(failures, first_s=2.0, cap_s=300.0, dice=self._dice())
                _log.warning("a serving certificate cannot be requested", error=str(error))
            await asyncio.sleep(wait_s)

    async def turn(self) -> float:
        """Do what is due; return after how many seconds something may be."""
        wait_s = await self._do(self._ctx.wall())
        if self._expires_at:  # whatever is waited for, one that has expired is not served
            return min(wait_s, max(0.0, self._expires_at - self._ctx.wall()))
        return wait_s

    async def _do(self, now: float) -> float:
        if 0 < self._expires_at <= now:
            self._expires_at = 0.0
            self._tls.serve(self_signed([self._address]))
            _log.warning("the serving certificate has expired; one of the replica's own serves until a new one comes")
        if self._pending is not None:
            return await self._look(self._pending)
        if now < self._renew_at:
            return min(self._renew_at - now, _REFUSED_S)
        await self._request()
        return self._again_s()

    async def _request(self) -> None:
        key, request = _signing_request(f"system:node:{self._ctx.replica}", self._address)
        body: dict[str, Any] = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {
                "generateName": "vkprovider-",
                "labels": {
                    names.LABEL_COMPONENT: names.COMPONENT_SERVING,
                    wellknown.LABEL_MANAGED_BY: wellknown.MANAGER,
                },
            },
            "spec": {
                "request": base64.b64encode(request).decode(),
                "signerName": SIGNER,
                "expirationSeconds": self._lasts_s,
                "usages": ["digital signature", "server auth"],
            },
        }
        made = await self._requests.create(body)
        self._pending, self._looks = _Pending(made.metadata.name, key), 0
        remedy = f"kubectl certificate approve {made.metadata.name}"
        _log.info("a serving certificate awaits its approval", approve=remedy, address=self._address)

    async def _look(self, pending: _Pending) -> float:
        found = await self._requests.get(pending.name)
        if found is None:  # the cluster removes a request that nobody has approved within a day
            self._pending = None
            return 0.0
        if found.refused:
            self._pending, self._renew_at = None, self._ctx.wall() + _REFUSED_S
            _log.warning("the serving certificate is refused", request=pending.name, why=found.refused)
            return _REFUSED_S
        if found.status.certificate:
            self._serve(pending, found.status.certificate)
            return 0.0
        return self._again_s()

    def _again_s(self) -> float:
        """Return the seconds until the request is looked at again, which are more each time."""
        self._looks += 1
        return delay_s(self._looks, first_s=_LOOK_FIRST_S, cap_s=_LOOK_CAP_S, dice=self._dice())

    def _serve(self, pending: _Pending, chain: bytes) -> None:
        self._pending, now = None, self._ctx.wall()
        try:
            certificate = x509.load_pem_x509_certificates(chain)[0]
            self._tls.serve(pending.key + chain)
        except (ValueError, IndexError, ssl.SSLError) as error:
            self._renew_at = now + _REFUSED_S
            _log.warning("the signed certificate cannot be used", request=pending.name, error=str(error))
            return
        begins, ends = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
        self._expires_at = ends
        self._renew_at = begins + (ends - begins) * (_RENEW_AT + 0.05 * self._dice())
        until = datetime.fromtimestamp(ends, UTC).isoformat()
        _log.info("a signed certificate is served", request=pending.name, until=until)


def _signing_request(user: str, address: str) -> tuple[bytes, bytes]:
    """Return a new key and the request for its certificate, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
        x509.NameAttribute(NameOID.COMMON_NAME, user[:64]),
    ]
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name(subject))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private, request.public_bytes(serialization.Encoding.PEM)

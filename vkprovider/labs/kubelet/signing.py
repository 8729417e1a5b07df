"""Requests to the cluster's signer of serving certificates, as far as they are read."""

from typing import Final

import msgspec

from vkprovider.platform.kube.resources import kind
from vkprovider.platform.objects import Condition, Metadata

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

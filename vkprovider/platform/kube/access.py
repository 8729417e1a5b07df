"""What the API server says of users: whose a token is, and what somebody may do. All reviews are sent from here."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Unpack

import msgspec

from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import How, Resource, kind
from vkprovider.platform.rights import User

_AUTHENTICATION: Final = "authentication.k8s.io/v1"
_AUTHORIZATION: Final = "authorization.k8s.io/v1"


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()
    audiences: list[str] = []


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


class _SelfStatus(msgspec.Struct, frozen=True, rename="camel"):
    user_info: User = User()


class _SelfReview(msgspec.Struct, frozen=True):
    status: _SelfStatus = _SelfStatus()


_SELVES: Final = kind(f"/apis/{_AUTHENTICATION}", "selfsubjectreviews", _SelfReview)
_TOKEN_REVIEWS: Final = kind(f"/apis/{_AUTHENTICATION}", "tokenreviews", _TokenReview)
_REVIEWS: Final = kind(f"/apis/{_AUTHORIZATION}", "subjectaccessreviews", _AccessReview)
_SELF_REVIEWS: Final = kind(f"/apis/{_AUTHORIZATION}", "selfsubjectaccessreviews", _AccessReview)


async def user_of(kube: KubeClient, token: str, audiences: Sequence[str], timeout_s: float) -> User | None:
    """Return the user of a token; None if the cluster does not know it.

    Args:
        kube: The API server.
        token: The token.
        audiences: Those of which it must have one; none means the API server's own.
        timeout_s: How long the answer may take.
    """
    spec: dict[str, Any] = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
    body = {"apiVersion": _AUTHENTICATION, "kind": "TokenReview", "spec": spec}
    status = (await Resource(kube, _TOKEN_REVIEWS).create(body, timeout_s=timeout_s)).status
    meant = not audiences or not set(audiences).isdisjoint(status.audiences)
    return status.user if status.authenticated and meant and status.user.username else None


async def self_of(kube: KubeClient, **how: Unpack[How]) -> User:
    """Return the user of the client: of its token, or as whom it acts by headers; every user may ask."""
    body = {"apiVersion": _AUTHENTICATION, "kind": "SelfSubjectReview"}
    return (await Resource(kube, _SELVES).create(body, **how)).status.user_info


async def user_may(kube: KubeClient, user: User, attributes: Mapping[str, Any], **how: Unpack[How]) -> bool:
    """Return whether a user has a right.

    Args:
        kube: The API server.
        user: Whoever it is.
        attributes: Those of the right: `Right.attributes()`.
        how: Options of the request.
    """
    body = {"apiVersion": _AUTHORIZATION, "kind": "SubjectAccessReview", "spec": {**user.spec(), **attributes}}
    return (await Resource(kube, _REVIEWS).create(body, **how)).status.allowed


async def may(kube: KubeClient, attributes: Mapping[str, Any], **how: Unpack[How]) -> bool:
    """Return whether the user of the client has a right; every user may ask, but in some clusters."""
    body = {"apiVersion": _AUTHORIZATION, "kind": "SelfSubjectAccessReview", "spec": attributes}
    return (await Resource(kube, _SELF_REVIEWS).create(body, **how)).status.allowed

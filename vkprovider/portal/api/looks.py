"""An admin's look as a user: the headers by which Kubernetes lets one user act as another, judged by the API server.

    curl -H "Authorization: Bearer $TOKEN" -H "Impersonate-User: oidc:alice" -H "Impersonate-Group: oidc:students" \
      https://portal:8083/nublado/spawner/v1/user-status

The headers go to the API server with the caller's own token, in a SelfSubjectReview: it answers with the user that the
caller then is, if the caller may impersonate. The portal has no such right, and each look is a line of its log.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import structlog
from aiohttp import web

from vkprovider.platform import wellknown
from vkprovider.platform.errors import Forbidden, OutsideError, Unauthorized
from vkprovider.platform.http.access import AccessControl
from vkprovider.platform.http.answers import (
    ApiServerUnavailable,
    NotAllowed,
    TokenInvalid,
    TooManyReviews,
    bearer,
)
from vkprovider.platform.kube.access import self_of
from vkprovider.platform.kube.client import KubeClient, user_agent
from vkprovider.platform.kube.flow import TokenBuckets
from vkprovider.platform.kube.http import auth
from vkprovider.platform.kube.http.credentials import ClusterAccess
from vkprovider.platform.rights import Right, User
from vkprovider.platform.settings import KubeSettings

_log: Final = structlog.get_logger(__name__)
_PREFIX: Final = "impersonate-"
_HEADERS_MAX: Final = 100
_PER_S: Final = 2.0
_BURST: Final = 20.0
"""The limits of one caller: each look takes a connection of its own."""
_ASK_S: Final = 5.0


def impersonating(request: web.Request) -> tuple[tuple[str, str], ...]:
    """Return the headers of a request that ask to act as another user."""
    return tuple((name, value) for name, value in request.headers.items() if name.lower().startswith(_PREFIX))


def right_to_be(user: User) -> Right:
    """Return the right to be somebody in all that is asked.

    Since Kubernetes 1.35 somebody may be allowed to act as a user in single verbs alone, such as in SelfSubjectReviews,
    and that is not enough here.
    """
    if user.username.startswith(wellknown.ACCOUNT_USERNAME):
        namespace, _, name = user.username.removeprefix(wellknown.ACCOUNT_USERNAME).partition(":")
        return Right("impersonate", "serviceaccounts", namespace, name)
    return Right("impersonate", "users", name=user.username)


class Looks:
    """Finds out as whom a caller acts."""

    def __init__(self, access: AccessControl, settings: KubeSettings, replica: str) -> None:
        """Create it.

        Args:
            access: Asks for rights.
            settings: Name the API server.
            replica: The name of this replica, for audit logs.
        """
        self._access = access
        self._settings = settings
        self._agent = user_agent(replica, "vkprovider-portal-look")
        self._pace: TokenBuckets[str] = TokenBuckets(_PER_S, _BURST)

    async def of(self, request: web.Request, by: User) -> User:
        """Return the user as whom the sender of a request acts: as itself, unless headers say otherwise.

        Args:
            request: Whose headers and token count.
            by: The user of that token.

        Raises:
            Refused: 401: the API server does not take the token; 403: the sender may not impersonate this user, or asks
                for what the API server does not understand; 429: too often; 503: it cannot be asked.
        """
        headers = impersonating(request)
        if not headers:
            return by
        if len(headers) > _HEADERS_MAX:
            raise NotAllowed(f"a request has {_HEADERS_MAX} headers Impersonate-… at most")
        if not self._pace.take(by.username):
            raise TooManyReviews("you act as others too often; try again")
        user = await self._review(bearer(request), headers)
        await self._access.check(by, right_to_be(user))
        _log.info("a caller acts as another user", by=by.username, user=user.username, method=request.method)
        return user

    async def _review(self, token: str, headers: Sequence[tuple[str, str]]) -> User:
        async def reload() -> ClusterAccess:
            return replace(await auth.load_for(token, self._settings.kubeconfig), headers=tuple(headers))

        client = KubeClient(await reload(), reload, self._settings, user_agent=self._agent)
        try:
            return await self_of(client, timeout_s=_ASK_S)
        except Unauthorized as error:
            raise TokenInvalid(f"the API server does not take your token: {error.message}") from None
        except Forbidden as error:
            raise NotAllowed(f"you may not act as this user: {error.message}") from None
        except OutsideError as error:
            if 400 <= error.status < 500:  # noqa: PLR2004 (refusals of HTTP)
                raise NotAllowed(f"the API server does not let you act so: {error.message}") from None
            raise ApiServerUnavailable(f"the API server cannot be asked as whom you act: {error.message}") from None
        finally:
            await client.close()

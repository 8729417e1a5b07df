"""Who calls the kubelet API, and what the cluster lets them do: as a kubelet finds out (pkg/kubelet/server/auth.go).

A client certificate of the cluster's authorities says who calls, or else a token, by TokenReview. Both are looked at
with every request, also on a connection that stays open, so that they end when they expire; a stream that has begun
goes on. Nobody is anonymous.
"""

import ssl
import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from aiohttp import web

from vkprovider.labs.kubelet.tls import ServingTls
from vkprovider.platform.http.access import AccessControl
from vkprovider.platform.http.answers import bearer
from vkprovider.platform.rights import Right, User

_log: Final = structlog.get_logger(__name__)
_VERBS: Final = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_STREAMS: Final = frozenset({"exec", "attach", "portForward", "run"})
_SUBRESOURCES: Final = {
    "pods": ("pods", "proxy"),
    "runningpods": ("pods", "proxy"),
    "healthz": ("healthz", "proxy"),
    "configz": ("configz", "proxy"),
    "stats": ("stats",),
    "metrics": ("metrics",),
    "logs": ("log",),
}
"""Subresources of `nodes`, of which one is enough, by the first word of the path (KEP-2862); else `proxy`."""
_EVERYBODY: Final = "system:authenticated"


def verb_of(method: str, path: str) -> str:
    """Return the verb that a request needs.

    A stream changes what it reaches, so that it needs `create` even where a WebSocket begins it by GET: a user who may
    only read nodes/proxy opens no console.
    """
    return "create" if _first(path) in _STREAMS else _VERBS.get(method, method.lower())


def subresources_of(path: str) -> Sequence[str]:
    """Return the subresources of `nodes` of which one must be allowed for a path."""
    return _SUBRESOURCES.get(_first(path), ("proxy",))


def _first(path: str) -> str:
    return path.lstrip("/").partition("/")[0]


class Callers:
    """Tells who sends a request, and refuses those who may not.

    Attributes:
        wall: The time of day.
    """

    def __init__(self, access: AccessControl, tls: ServingTls, wall: Callable[[], float] = time.time) -> None:
        """Create it.

        Args:
            access: Asks the cluster.
            tls: Has verified the client certificates.
            wall: The time of day.
        """
        self._access = access
        self._tls = tls
        self.wall = wall

    async def admit(self, request: web.Request, node: str) -> User:
        """Return the sender of a request to a Node, who may do this.

        Raises:
            Refused: 401 or 403; 429 if too many unknown callers ask, 503 if the API server cannot be asked.
            web.HTTPException: 401 or 403, in a kubelet's words.
        """
        user = self._certified(request)
        if user is None:
            token = bearer(request)
            if not token:
                raise unauthorized()
            user = await self._access.user_of(token)
        verb, subresources = verb_of(request.method, request.path), subresources_of(request.path)
        for subresource in subresources:
            if await self._access.may(user, Right(verb, f"nodes/{subresource}", name=node)):
                return user
        wanted = " ".join(subresources)
        text = f"Forbidden (user={user.username}, verb={verb}, resource=nodes, subresource(s)=[{wanted}])\n"
        raise web.HTTPForbidden(text=text)

    def _certified(self, request: web.Request) -> User | None:
        """Return the user of the client certificate; None without one that counts today."""
        connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        if not isinstance(connection, ssl.SSLObject) or (found := self._tls.certificate_of(connection)) is None:
            return None
        if ssl.cert_time_to_seconds(found["notAfter"]) <= self.wall():
            return None
        words = [pair for part in found.get("subject", ()) for pair in part]
        names = [value for key, value in words if key == "commonName"]
        groups = [value for key, value in words if key == "organizationName"]
        return User(names[-1], groups=[*groups, _EVERYBODY]) if names and names[-1] else None


def unauthorized() -> web.HTTPUnauthorized:
    """Return the answer to a sender whom the cluster does not know."""
    return web.HTTPUnauthorized(text="Unauthorized\n", headers={"WWW-Authenticate": 'Bearer realm="kubelet"'})

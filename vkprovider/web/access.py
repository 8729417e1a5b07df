"""Authentication and authorization by the cluster: TokenReview and SubjectAccessReview, as in stock components.

The API server's answers are cached for a few seconds, so that a dashboard does not ask it with every request; a
revoked right therefore still counts for that long. Concurrent requests that need the same answer share one review.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec
from aiohttp import web

from vkprovider.api import names
from vkprovider.api.errors import OutsideError
from vkprovider.kube.client import KubeClient
from vkprovider.web.answers import Refused, bearer

REMEMBER_S: Final = 10.0
REMEMBER_REFUSED_S: Final = 3.0
ENTRIES_MAX: Final = 2000
_ASK_S: Final = 5.0
_TOKEN_CHARS_MAX: Final = 16_384
_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 (a path)
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

V = TypeVar("V")


class User(msgspec.Struct, frozen=True):
    """The user of a token, as the API server reports it."""

    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()
    error: str = ""


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True, rename="camel"):
    allowed: bool = False
    reason: str = ""
    evaluation_error: str = ""


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


class Resource(msgspec.Struct, frozen=True):
    """A right on a lablet: `verb` on `lablets/<subresource>` of our group, in a namespace, on a name."""

    subresource: str
    namespace: str
    name: str
    verb: str = "get"

    def attributes(self) -> dict[str, Any]:
        """Return it as the spec of a SubjectAccessReview."""
        return {
            "resourceAttributes": {
                "group": names.GROUP,
                "version": names.VERSION,
                "resource": "lablets",
                "subresource": self.subresource,
                "namespace": self.namespace,
                "name": self.name,
                "verb": self.verb,
            }
        }

    def __str__(self) -> str:
        return f"{self.verb} lablets.{names.GROUP}/{self.subresource} {self.name} in namespace {self.namespace}"


class Path(msgspec.Struct, frozen=True):
    """A right on a path of our page, as a non-resource URL."""

    path: str
    verb: str

    def attributes(self) -> dict[str, Any]:
        """Return it as the spec of a SubjectAccessReview."""
        return {"nonResourceAttributes": {"path": self.path, "verb": self.verb}}

    def __str__(self) -> str:
        return f"{self.verb} the non-resource URL {self.path}"


Right = Resource | Path


class _Memory(Generic[V]):
    """A cache of answers with a lifetime; calls in flight are shared."""

    def __init__(self, now: Callable[[], float], entries_max: int) -> None:
        self._now = now
        self._entries_max = entries_max
        self._entries: OrderedDict[bytes, tuple[float, V]] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[V]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    async def get(self, key: bytes, ask: Callable[[], Coroutine[Any, Any, V]], remember_s: Callable[[V], float]) -> V:
        """Return the cached answer, or ask."""
        entry = self._entries.get(key)
        if entry is not None and self._now() < entry[0]:
            return entry[1]
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(ask())
            task.add_done_callback(lambda done: self._asked(key, done, remember_s))
        return await asyncio.shield(task)

    def _asked(self, key: bytes, task: asyncio.Task[V], remember_s: Callable[[V], float]) -> None:
        self._asking.pop(key, None)
        if task.cancelled() or task.exception() is not None:
            return
        self._entries[key] = self._now() + remember_s(task.result()), task.result()
        self._entries.move_to_end(key)
        while len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)


class Access:
    """Asks the API server for the user of a token and for the user's rights."""

    def __init__(
        self, kube: KubeClient, *, now: Callable[[], float] = time.monotonic, entries_max: int = ENTRIES_MAX
    ) -> None:
        self._kube = kube
        self._users: _Memory[User | None] = _Memory(now, entries_max)
        self._rights: _Memory[bool] = _Memory(now, entries_max)

    async def user(self, request: web.Request) -> User:
        """Return the user of the request's token.

        Raises:
            Refused: 401: the cluster does not know the token; 503: it cannot be asked.
        """
        token = bearer(request)
        challenge = {"WWW-Authenticate": 'Bearer realm="vkprovider"'}
        if not token:
            text = "send a token of the cluster as `Authorization: Bearer …`, such as `kubectl create token` gives"
            raise Refused(401, "TokenMissing", text, challenge)
        if len(token) > _TOKEN_CHARS_MAX:
            raise Refused(401, "TokenInvalid", "that is too long for a token", challenge)
        key = hashlib.sha256(token.encode()).digest()
        try:
            user = await self._users.get(key, lambda: self._review_token(token), _remember_s)
        except OutsideError as error:
            raise _cannot_ask("who you are", error) from None
        if user is None:
            raise Refused(401, "TokenInvalid", "the cluster does not know the token, or it has expired", challenge)
        return user

    async def require(self, request: web.Request, right: Right) -> User:
        """Refuse a request unless the cluster grants its sender the right.

        Raises:
            Refused: 401, 403, or 503 if the API server cannot be asked.
        """
        user = await self.user(request)
        await self.check(user, right)
        return user

    async def check(self, user: User, right: Right) -> None:
        """Refuse a user who lacks a right.

        Raises:
            Refused: 403, or 503 if the API server cannot be asked.
        """
        if not await self.may(user, right):
            raise Refused(
                403, "NotAllowed", f"user {user.username!r} may not {right}; have an RBAC role bound that does"
            )

    async def may(self, user: User, right: Right) -> bool:
        """Return whether a user has a right.

        Raises:
            Refused: 503: the API server cannot be asked.
        """
        spec = {**msgspec.to_builtins(user), **right.attributes()}
        spec["user"] = spec.pop("username")
        spec = {key: value for key, value in spec.items() if value}
        key = hashlib.sha256(msgspec.json.encode(spec, order="sorted")).digest()
        try:
            return await self._rights.get(key, lambda: self._review_access(spec), _remember_s)
        except OutsideError as error:
            raise _cannot_ask("what you may do", error) from None

    async def _review_token(self, token: str) -> User | None:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        raw = await self._kube.create(_TOKEN_REVIEWS, msgspec.json.encode(body), timeout_s=_ASK_S)
        status = msgspec.json.decode(raw, type=_TokenReview).status
        return status.user if status.authenticated and status.user.username else None

    async def _review_access(self, spec: Mapping[str, Any]) -> bool:
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        raw = await self._kube.create(_ACCESS_REVIEWS, msgspec.json.encode(body), timeout_s=_ASK_S)
        return msgspec.json.decode(raw, type=_AccessReview).status.allowed


def _remember_s(answer: object) -> float:
    return REMEMBER_S if answer else REMEMBER_REFUSED_S


def _cannot_ask(what: str, error: OutsideError) -> Refused:
    text = f"the API server cannot be asked {what}: {error.message}"
    return Refused(503, "ApiServerUnavailable", text, {"Retry-After": "5"})

"""`GET /namespaces/{namespace}/archives` and `…/archives/{id}`: what learners of a namespace left, and their grades.

`GET /archives` and `/archives/{id}` are what the sender has saved of user labs, also of those whose namespace is gone.
It takes no right but to be who the portal made the lab for: the name that the API server has of the token's owner.

The others are for users who may `get` `lablets/archive` in that namespace. The ConfigMaps themselves are in the
provider's namespace, those of all namespaces together, where an instructor has no right. Any replica answers.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final, Protocol

import msgspec
from aiohttp import web

from vkprovider.lablet.archives import ARCHIVE_ID, ArchiveEntry, Leftovers
from vkprovider.labs.http.refusals import Age, ArchiveUnavailable, ArchiveUnknown, ListExpired, begun, lablet_right
from vkprovider.platform.errors import Gone, Invalid, OutsideError
from vkprovider.platform.http.access import AccessControl
from vkprovider.platform.http.answers import QueryInvalid
from vkprovider.platform.selectors import Selector

PAGE_SIZE: Final = 500
"""The most entries of one answer."""
_NAMESPACE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PARAMETERS: Final = frozenset({"learner", "since", "labelSelector", "limit", "continue"})
_DIGITS_MAX: Final = 9
_HEADERS: Final = {"Cache-Control": "no-store"}


class ArchiveStore(Protocol):
    """Where what learners left comes from; see `labs.controllers.lablet.archive`."""

    async def page(self, namespace: str, *, size: int, after: str) -> tuple[list[ArchiveEntry], str]:
        """List one page of what learners of a namespace left."""

    async def find(self, pod_uid: str) -> Leftovers | None:
        """Return what is stored under an id."""

    async def of_owner(self, owner: str) -> list[ArchiveEntry]:
        """List what a user has saved of user labs, the newest first."""


class Query(msgspec.Struct, frozen=True):
    """Which entries a request asks for.

    Attributes:
        learner: Only this learner's; None for all of them.
        since: Only those collected at this time or later (Unix seconds).
        labels: Only those whose Pod had these labels.
        size: The most entries of one answer.
        after: The token of the page.
    """

    learner: str | None
    since: float
    labels: Selector
    size: int
    after: str

    def accepts(self, entry: ArchiveEntry) -> bool:
        """Return whether an entry is asked for."""
        mine = self.learner is None or entry.learner == self.learner
        return mine and entry.at >= self.since and self.labels.accepts(entry.labels)


class ArchiveHandlers:
    """Serves what learners left, to users with the right in the namespace of their lablets."""

    def __init__(self, access: AccessControl, kept: ArchiveStore, age: Age) -> None:
        self._access = access
        self._kept = kept
        self._age = age

    async def list(self, request: web.Request) -> web.Response:
        """Answer `GET /namespaces/{namespace}/archives`: a page of entries, without the work itself."""
        namespace = await self._permitted(request)
        query = query_of(request.query)
        try:
            found, after = await self._kept.page(namespace, size=query.size, after=query.after)
            since = await begun(self._age, namespace)
        except Gone as error:
            raise ListExpired(f"the list has changed too much meanwhile: {error.message}") from None
        except Invalid as error:
            raise QueryInvalid(f"continue: {error.message}") from None
        except OutsideError as error:
            raise ArchiveUnavailable(f"the archive cannot be listed now: {error.message}") from None
        items = [msgspec.to_builtins(entry) for entry in found if entry.at >= since and query.accepts(entry)]
        return web.json_response({"items": items, "continue": after}, headers=_HEADERS)

    async def get(self, request: web.Request) -> web.Response:
        """Answer `GET /namespaces/{namespace}/archives/{id}`: all that one learner left."""
        namespace, id_ = await self._permitted(request), request.match_info["id"]
        left = None
        try:
            if ARCHIVE_ID.fullmatch(id_):
                left = await self._kept.find(id_)
            kept = left is not None and left.namespace == namespace and left.at >= await begun(self._age, namespace)
        except OutsideError as error:
            raise ArchiveUnavailable(f"the archive cannot be read now: {error.message}") from None
        if left is None or not kept:
            raise ArchiveUnknown(f"nothing is kept in namespace {namespace} under the id {id_!r}")
        return web.Response(body=msgspec.json.encode(left), content_type="application/json", headers=_HEADERS)

    async def list_own(self, request: web.Request) -> web.Response:
        """Answer `GET /archives`: what the sender has saved, without the work itself, the newest first."""
        user = await self._access.user(request)
        try:
            found = await self._kept.of_owner(user.username)
        except OutsideError as error:
            raise ArchiveUnavailable(f"the archive cannot be listed now: {error.message}") from None
        return web.json_response({"items": [msgspec.to_builtins(entry) for entry in found]}, headers=_HEADERS)

    async def get_own(self, request: web.Request) -> web.Response:
        """Answer `GET /archives/{id}`: all that the sender has saved of one lab, but for hidden devices."""
        user, id_ = await self._access.user(request), request.match_info["id"]
        try:
            left = await self._kept.find(id_) if ARCHIVE_ID.fullmatch(id_) else None
        except OutsideError as error:
            raise ArchiveUnavailable(f"the archive cannot be read now: {error.message}") from None
        if left is None or not left.owner or left.owner != user.username:
            raise ArchiveUnknown(f"nothing of yours is kept under the id {id_!r}")
        return web.Response(
            body=msgspec.json.encode(left.for_owner()), content_type="application/json", headers=_HEADERS
        )

    async def _permitted(self, request: web.Request) -> str:
        """Return the namespace of a request whose sender may read what its learners left.

        Raises:
            Refused: The sender may not.
        """
        user, namespace = await self._access.user(request), request.match_info["namespace"]
        if not _NAMESPACE.fullmatch(namespace):
            raise ArchiveUnknown(f"{namespace!r} is not the name of a namespace")
        await self._access.check(user, lablet_right("archive", namespace))
        return namespace


def query_of(given: Mapping[str, str]) -> Query:
    """Read the parameters of a list.

    Raises:
        Refused: `QueryInvalid`.
    """
    if unknown := sorted(set(given) - _PARAMETERS):
        raise QueryInvalid(f"unknown parameter {unknown[0]!r}; there are {', '.join(sorted(_PARAMETERS))}")
    text, limit = given.get("since", ""), given.get("limit", "")
    try:
        since = datetime.fromisoformat(text).astimezone().timestamp() if text else 0.0
    except (ValueError, OverflowError):
        raise QueryInvalid(f"since: {text!r} is not a time such as 2026-01-31T12:00:00Z") from None
    if limit and not (limit.isascii() and limit.isdigit() and int(limit[:_DIGITS_MAX])):
        raise QueryInvalid(f"limit: {limit!r} is not a number from 1 on")
    try:
        labels = Selector.parsed(given.get("labelSelector", ""))
    except ValueError as error:
        raise QueryInvalid(f"labelSelector: {error}") from None
    size = min(int(limit[:_DIGITS_MAX] or PAGE_SIZE), PAGE_SIZE)
    return Query(given.get("learner"), since, labels, size, given.get("continue", ""))

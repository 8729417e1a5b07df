"""`GET /labs/{id}/login`: the login URL of a lablet's session, for users who may `get` `lablets/login` of its Pod.

The URL authenticates as the learner. It is requested for each call and never stored, and it has its own right:
reading Pods, which show the URL without its query, does not suffice.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog
from aiohttp import web

from vkprovider.labs.controllers.lablet.exports import Found
from vkprovider.labs.http.refusals import LabUnknown, LoginUnavailable, NoSession, ObjectInvalid
from vkprovider.labs.http.rights import PageResource
from vkprovider.platform.errors import InputError, NotFound, OutsideError
from vkprovider.platform.http.access import AccessControl

_log = structlog.get_logger(__name__)

LoginUrl = Callable[[str, str], Awaitable[str]]
"""Requests the login URL of a session from a deployment, given by its id."""


class Finder(Protocol):
    """Where labs come from; see `labs.controllers.lablet.exports`."""

    async def find(self, key: str) -> Found | None:
        """Find a lab by its own id or by its Pod's UID."""


class Logins:
    """Serves login URLs."""

    def __init__(self, access: AccessControl, finder: Finder, login_url: LoginUrl | None) -> None:
        """Create the handler; without `login_url` there is no Lab Delivery System, and so no session."""
        self._access = access
        self._finder = finder
        self._login_url = login_url

    async def handle(self, request: web.Request) -> web.Response:
        """Answer `GET /labs/{id}/login`; the id is the lab's, or its Pod's UID."""
        user = await self._access.user(request)
        key = request.match_info["id"]
        try:
            found = await self._finder.find(key)
            if found is None:
                raise LabUnknown(f"no lablet has a lab or Pod with the id {key!r}")
            claim = found.claim
            await self._access.check(user, PageResource("login", claim.namespace, claim.pod))
            session = claim.session
            if session is None or not session.ready_at or session.archived_at or self._login_url is None:
                raise NoSession(f"Pod {claim.namespace}/{claim.pod} has no session to log in to (now)")
            url = await self._login_url(session.deployment, session.id)
        except NotFound as error:
            raise NoSession(f"the Lab Delivery System has no such session: {error}") from None
        except InputError as error:
            raise ObjectInvalid(error) from None
        except OutsideError as error:
            raise LoginUnavailable(f"the login URL cannot be fetched now: {error}") from None
        _log.info("login URL handed out", pod=f"{claim.namespace}/{claim.pod}", session=session.id, to=user.username)
        body = {"url": url, "username": session.username, "session": session.id, "pod": claim.pod}
        return web.json_response(body, headers={"Cache-Control": "no-store"})

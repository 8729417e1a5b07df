"""A lab as a file, and the login URL of a lablet's session, for those who may.

A download: while the lab exists, its worker exports it; afterwards the answer is what was collected before its devices
stopped.

A login: the URL authenticates as the learner. It is requested for each call and never stored, and it has its own right:
reading Pods, which show the URL without its query, does not suffice.
"""

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final, Protocol

import structlog
import yaml
from aiohttp import web

from vkprovider.lablet.archives import Leftovers
from vkprovider.labs.controllers.lablet.exports import LabOfLablet
from vkprovider.labs.http.refusals import (
    Age,
    LabUnavailable,
    LabUnknown,
    LoginUnavailable,
    NoSession,
    ObjectInvalid,
    begun,
    lablet_right,
)
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform.errors import Fenced, InputError, NotFound, OutsideError
from vkprovider.platform.http.access import AccessControl

Allow = Callable[[str, str], Awaitable[None]]
"""Raises `Refused` unless the caller may download the lab of a Pod, given as namespace and name."""

_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class LabFiles(Protocol):
    """Where labs come from; see `labs.controllers.lablet.exports`."""

    async def find(self, key: str) -> LabOfLablet | None:
        """Find a lab by its own id or by its Pod's UID."""

    async def fetch(self, found: LabOfLablet) -> bytes:
        """Fetch a lab as YAML."""


class ArchiveLookup(Protocol):
    """Where what was collected comes from; see `labs.controllers.lablet.archive`."""

    async def find(self, pod_uid: str) -> Leftovers | None:
        """Return the archive of a lablet."""


class Downloads:
    """Serves labs as files."""

    def __init__(self, access: AccessControl, source: LabFiles, archive: ArchiveLookup, age: Age) -> None:
        self._access = access
        self._source = source
        self._archive = archive
        self._age = age

    async def handle(self, request: web.Request) -> web.Response:
        """Answer `GET /labs/{id}/download`; the id is the lab's, or its Pod's UID."""
        user = await self._access.user(request)  # unauthenticated callers must not learn which labs exist
        key = request.match_info["id"]

        async def allow(namespace: str, pod: str) -> None:
            await self._access.check(user, lablet_right("download", namespace, pod))

        try:
            answer = await self._live(key, allow) or await self._kept(key, allow)
        except InputError as error:
            raise ObjectInvalid(error) from None
        except (OutsideError, Fenced) as error:
            raise LabUnavailable(f"the lab cannot be fetched now: {error}") from None
        if answer is None:
            raise LabUnknown(f"no lablet has a lab or Pod with the id {key!r}")
        return answer

    async def _live(self, key: str, allow: Allow) -> web.Response | None:
        found = await self._source.find(key)
        if found is None:
            return None
        claim = found.claim
        await allow(claim.namespace, claim.pod)
        try:
            body = await self._source.fetch(found)
        except NotFound:
            return None
        return _file(f"{claim.pod}-{claim.lab_id}.yaml", body)

    async def _kept(self, key: str, allow: Allow) -> web.Response | None:
        left = await self._archive.find(key) if _UID.fullmatch(key) else None
        if left is None:
            return None
        await allow(left.namespace, left.pod)
        if left.at < await begun(self._age, left.namespace):
            return None
        return _file(f"{left.pod}-{left.pod_uid}.yaml", _document(left))


def _document(left: Leftovers) -> bytes:
    """Write what was kept as YAML, in words of its own: it is not a topology that CML could import."""
    document = {
        "kept": {
            "at": datetime.fromtimestamp(left.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "namespace": left.namespace,
            "pod": left.pod,
            "podUID": left.pod_uid,
            "definition": left.definition,
            "version": left.version,
            "labId": left.lab_id,
        },
        "configs": left.configs,
        "faults": left.faults,
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()


def _file(name: str, body: bytes) -> web.Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return web.Response(body=body, content_type="application/yaml", headers=headers)


_log = structlog.get_logger(__name__)

LoginUrl = Callable[[Session, str], Awaitable[str]]
"""Requests the login URL of a claim's session, given by its id; see `labs.controllers.session.sessions`."""


class LabLookup(Protocol):
    """Where labs come from; see `labs.controllers.lablet.exports`."""

    async def find(self, key: str) -> LabOfLablet | None:
        """Find a lab by its own id or by its Pod's UID."""


class Logins:
    """Serves login URLs."""

    def __init__(self, access: AccessControl, finder: LabLookup, login_url: LoginUrl | None) -> None:
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
            await self._access.check(user, lablet_right("login", claim.namespace, claim.pod))
            session = claim.session
            session_id = _ready_id(session, found.session)
            if session is None or not session_id or session.archived_at or self._login_url is None:
                raise NoSession(f"Pod {claim.namespace}/{claim.pod} has no session to log in to (now)")
            url = await self._login_url(session, session_id)
        except NotFound as error:
            raise NoSession(f"the Lab Delivery System has no such session: {error}") from None
        except InputError as error:
            raise ObjectInvalid(error) from None
        except OutsideError as error:
            raise LoginUnavailable(f"the login URL cannot be fetched now: {error}") from None
        _log.info("login URL handed out", pod=f"{claim.namespace}/{claim.pod}", session=session_id, to=user.username)
        body = {"url": url, "username": session.username, "session": session_id, "pod": claim.pod}
        return web.json_response(body, headers={"Cache-Control": "no-store"})


def _ready_id(session: Session | None, reported: str) -> str:
    """Return the id of a session that is ready, which a Pod reports seconds before the row of its owner says so."""
    if session is None or session.ready_at:
        return session.id if session is not None else ""
    return reported if session.id in {"", reported} else ""

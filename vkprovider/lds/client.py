"""The calls of the LDS over HTTP, for one deployment."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

import msgspec

from tunnels.direct import Guard
from vkprovider.api.errors import NotFound, Unavailable
from vkprovider.domain.topology.devices import DeviceAccessInfo
from vkprovider.lds.connection import REFRESH_S, Connection
from vkprovider.lds.errors import Lacking
from vkprovider.lds.spi import (
    CLIENT_KEY,
    OWNER,
    ContentMetadata,
    Feedback,
    FeedbackData,
    Info,
    LabSessionInfo,
    ResponseData,
)

INFO_KEPT_S: Final = 300.0
NO_INFO_KEPT_S: Final = 30.0
PAGE: Final = "500"
PAGES_MAX: Final = 1000
"""More pages than this are a server that turns in a circle."""

_NOT_FOUND: Final = 404


class _NewSession(msgspec.Struct, frozen=True):
    username: str
    timeslot_start: datetime
    timeslot_end: datetime
    form_qualified_name: str
    client_key: str
    owner: str


class _Page(msgspec.Struct, frozen=True):
    next: str | None = None


class _SessionPage(_Page, frozen=True, kw_only=True):
    sessions: tuple[LabSessionInfo, ...]


class _FeedbackPage(_Page, frozen=True, kw_only=True):
    entries: tuple[Feedback, ...]


_P = TypeVar("_P", bound=_Page)


class _LoginUrl(msgspec.Struct, frozen=True):
    login_url: str


class _Known:
    """What a deployment said that it is, shared by all who speak with it."""

    def __init__(self) -> None:
        self.info: Info | None = None
        self.until_s = 0.0


class LdsClient:
    """A `LabDelivery` over HTTP.

    Args:
        connection: To the deployment; the client closes it.
        guard: Called in the loop step in which a request leaves; raises to stop it.
    """

    def __init__(self, connection: Connection, *, guard: Guard | None = None, known: _Known | None = None) -> None:
        self.deployment: Final = connection.deployment
        self._connection = connection
        self._guard = guard
        self._known = known or _Known()

    def guarded(self, guard: Guard) -> "LdsClient":
        """Give a client of the same connections whose every request is guarded."""
        return LdsClient(self._connection, guard=guard, known=self._known)

    async def info(self) -> Info:
        """See `LabDelivery.info`."""
        now_s = asyncio.get_running_loop().time()
        if self._known.info is None or now_s >= self._known.until_s:
            response = await self._connection.request("info", "GET", "/info", guard=self._guard, accept=_NOT_FOUND)
            if response.status == _NOT_FOUND:  # a deployment without extensions, or a wrong URL that may be corrected
                self._known.info, kept_s = Info(), NO_INFO_KEPT_S
            else:
                self._known.info, kept_s = self._connection.decode("info", response, Info), INFO_KEPT_S
            self._known.until_s = now_s + kept_s
        return self._known.info

    async def create_session_with_part(
        self,
        username: str,
        timeslot_start: datetime,
        timeslot_end: datetime,
        form_qualified_name: str,
        *,
        client_key: str,
        owner: str,
    ) -> LabSessionInfo:
        """See `LabDelivery.create_session_with_part`."""
        call = "create_session_with_part"
        wish = _NewSession(
            username, _utc(timeslot_start), _utc(timeslot_end), form_qualified_name, client_key=client_key, owner=owner
        )
        repeat = CLIENT_KEY in (await self.info()).extensions
        response = await self._connection.request(
            call, "POST", "/sessions", guard=self._guard, repeat=repeat, body=wish
        )
        return self._connection.decode(call, response, LabSessionInfo)

    async def set_devices(self, session_id: str, devices: Sequence[DeviceAccessInfo]) -> None:
        """See `LabDelivery.set_devices`."""
        await self._connection.request(
            "set_devices",
            "PUT",
            f"/sessions/{session_id}/devices",
            guard=self._guard,
            body={"devices": devices},
            secrets=[device.password for device in devices if device.password],
        )

    async def get_session_info(self, session_id: str) -> LabSessionInfo:
        """See `LabDelivery.get_session_info`."""
        call = "get_session_info"
        response = await self._connection.request(call, "GET", f"/sessions/{session_id}", guard=self._guard)
        return self._connection.decode(call, response, LabSessionInfo)

    async def get_login_url(self, session_id: str) -> str:
        """See `LabDelivery.get_login_url`."""
        call = "get_login_url"
        response = await self._connection.request(call, "GET", f"/sessions/{session_id}/login_url", guard=self._guard)
        return self._connection.decode(call, response, _LoginUrl).login_url

    async def archive_session(self, session_id: str) -> None:
        """See `LabDelivery.archive_session`."""
        path = f"/sessions/{session_id}/archive"
        try:
            await self._connection.request("archive_session", "POST", path, guard=self._guard)
        except NotFound:
            return

    async def refresh_content(self, form_qualified_name: str) -> ContentMetadata:
        """See `LabDelivery.refresh_content`."""
        call = "refresh_content"
        body = {"form_qualified_name": form_qualified_name}
        response = await self._connection.request(
            call, "POST", "/content/refresh", guard=self._guard, body=body, timeout_s=REFRESH_S
        )
        return self._connection.decode(call, response, ContentMetadata)

    async def collect_responses(self, session_id: str) -> ResponseData:
        """See `LabDelivery.collect_responses`."""
        call = "collect_responses"
        response = await self._connection.request(call, "GET", f"/sessions/{session_id}/responses", guard=self._guard)
        return self._connection.decode(call, response, ResponseData)

    async def collect_user_feedback_by_session(self, session_id: str) -> FeedbackData:
        """See `LabDelivery.collect_user_feedback_by_session`."""
        call = "collect_user_feedback_by_session"
        response = await self._connection.request(call, "GET", f"/sessions/{session_id}/feedback", guard=self._guard)
        return self._connection.decode(call, response, FeedbackData)

    async def collect_user_feedback_by_form(self, form_qualified_name: str) -> FeedbackData:
        """See `LabDelivery.collect_user_feedback_by_form`."""
        call = "collect_user_feedback_by_form"
        params = {"form_qualified_name": form_qualified_name}
        pages = await self._pages(call, "/feedback", params, _FeedbackPage)
        return FeedbackData(tuple(entry for page in pages for entry in page.entries))

    async def list_sessions(self, *, owner: str, client_key: str | None = None) -> tuple[LabSessionInfo, ...]:
        """See `LabDelivery.list_sessions`."""
        needed = {OWNER} if client_key is None else {OWNER, CLIENT_KEY}
        if lacking := needed - (await self.info()).extensions:
            raise Lacking(
                f"LDS {self.deployment} cannot tell its sessions apart: it lacks {', '.join(sorted(lacking))}"
            )
        params = {"owner": owner} | ({} if client_key is None else {"client_key": client_key})
        pages = await self._pages("list_sessions", "/sessions", params, _SessionPage)
        sessions = {session.id: session for page in pages for session in page.sessions}
        return tuple(
            session
            for session in sessions.values()
            if session.owner == owner and client_key in {None, session.client_key} and not session.archived
        )

    async def close(self) -> None:
        """Close the connections, also of all guarded clients."""
        await self._connection.close()

    async def _pages(self, call: str, path: str, params: dict[str, str], shape: type[_P]) -> list[_P]:
        """Get all pages of a list; an incomplete one is an error."""
        pages: list[_P] = []
        seen: set[str] = set()
        cursor = ""
        while len(pages) < PAGES_MAX:
            query = params | {"limit": PAGE} | ({"cursor": cursor} if cursor else {})
            response = await self._connection.request(call, "GET", path, guard=self._guard, params=query)
            page = self._connection.decode(call, response, shape)
            pages.append(page)
            cursor = page.next or ""
            if not cursor:
                return pages
            if cursor in seen:
                break
            seen.add(cursor)
        raise Unavailable(f"LDS {self.deployment}: {call}: the pages do not end")


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no zone")
    return moment.astimezone(UTC)

"""The calls of the LDS over HTTP, for one deployment that is opened by its URL."""

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final, TypeVar

import msgspec
from yarl import URL

from tunnels.base import Response
from tunnels.direct import DirectTransport, trusting
from tunnels.outgoing import Guard
from vkprovider.labs.lds import dialect
from vkprovider.labs.lds.dialect import BASE, OPERATIONS, Lacking, LdsDialect
from vkprovider.labs.lds.spi import LabDelivery
from vkprovider.labs.lds.wire import (
    CLIENT_KEY,
    OWNER,
    TIMESLOT,
    ContentMetadata,
    Feedback,
    FeedbackData,
    Info,
    LabSessionInfo,
    ResponseData,
)
from vkprovider.labs.pure.topology.devices import DeviceAccessInfo
from vkprovider.platform.errors import NotFound, Unavailable
from vkprovider.rest.client import Reporter, Retry, ServiceClient
from vkprovider.rest.exchange import Calls, Exchange
from vkprovider.rest.operations import Operation, OperationRequest, allow_list
from vkprovider.rest.tokens import GivenToken, TokenReader

INFO_KEPT_S: Final = 300.0
NO_INFO_KEPT_S: Final = 30.0
PAGE: Final = "500"
PAGES_MAX: Final = 1000
"""A server with more pages than this repeats itself."""

_NO_INFO: Final = Info()
"""The answer of a deployment without extensions, or behind a wrong URL that may be corrected."""

_guard: ContextVar[Guard | None] = ContextVar("lds_guard", default=None)
"""The guard of the call under way: one pool serves the lablets of many nodes, and each has its own guard."""


class _NewSession(msgspec.Struct, frozen=True):
    username: str
    timeslot_start: datetime
    timeslot_end: datetime
    form_qualified_name: str
    client_key: str
    owner: str


class _Timeslot(msgspec.Struct, frozen=True):
    timeslot_start: datetime
    timeslot_end: datetime


class _Page(msgspec.Struct, frozen=True):
    next: str | None = None


class _SessionPage(_Page, frozen=True, kw_only=True):
    sessions: tuple[LabSessionInfo, ...]


class _FeedbackPage(_Page, frozen=True, kw_only=True):
    entries: tuple[Feedback, ...]


_T = TypeVar("_T")
_P = TypeVar("_P", bound=_Page)


class _LoginUrl(msgspec.Struct, frozen=True):
    login_url: str


def check_guard() -> None:
    """Call the guard of the call under way; the transport does so right before it writes a request."""
    guard = _guard.get()
    if guard is not None:
        guard()


class _Known:
    """What a deployment last reported about itself, shared by all clients of its connections."""

    def __init__(self) -> None:
        self.info: Info | None = None
        self.until_s = 0.0


class LdsClient(LabDelivery):
    """A `LabDelivery` over HTTP.

    Args:
        deployment: Its id.
        service: Carries the calls; the client closes it.
        guard: Called in the loop step in which a request leaves; raises to stop it.
    """

    def __init__(
        self, deployment: str, service: ServiceClient, *, guard: Guard | None = None, known: _Known | None = None
    ) -> None:
        self.deployment: Final = deployment
        self._service = service
        self._guard = guard
        self._known = known or _Known()

    def guarded(self, guard: Guard) -> "LdsClient":
        """Return a client of the same connections whose every request is guarded."""
        return LdsClient(self.deployment, self._service, guard=guard, known=self._known)

    def server_time(self) -> int:
        return self._service.server_time()

    async def info(self) -> Info:
        now_s = asyncio.get_running_loop().time()
        if self._known.info is None or now_s >= self._known.until_s:
            info = await self._fetch(dialect.INFO.to(), Info, missing=_NO_INFO)
            self._known.info = info
            self._known.until_s = now_s + (NO_INFO_KEPT_S if info is _NO_INFO else INFO_KEPT_S)
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
        wish = _NewSession(
            username, _utc(timeslot_start), _utc(timeslot_end), form_qualified_name, client_key=client_key, owner=owner
        )
        repeat = CLIENT_KEY in (await self.info()).extensions
        return await self._fetch(dialect.CREATE_SESSION.to(json=wish), LabSessionInfo, repeat=repeat)

    async def set_devices(self, session_id: str, devices: Sequence[DeviceAccessInfo]) -> None:
        secrets = [device.password for device in devices if device.password]
        await self._send(dialect.SET_DEVICES.to(session=session_id, json={"devices": devices}, secrets=secrets))

    async def set_timeslot(self, session_id: str, timeslot_start: datetime, timeslot_end: datetime) -> None:
        if TIMESLOT not in (await self.info()).extensions:
            raise Lacking(f"LDS {self.deployment} cannot change the timeslot of a session")
        wish = _Timeslot(_utc(timeslot_start), _utc(timeslot_end))
        await self._send(dialect.SET_TIMESLOT.to(session=session_id, json=wish))

    async def get_session_info(self, session_id: str) -> LabSessionInfo:
        return await self._fetch(dialect.GET_SESSION.to(session=session_id), LabSessionInfo)

    async def get_login_url(self, session_id: str) -> str:
        return (await self._fetch(dialect.GET_LOGIN_URL.to(session=session_id), _LoginUrl)).login_url

    async def archive_session(self, session_id: str) -> None:
        try:
            await self._send(dialect.ARCHIVE_SESSION.to(session=session_id))
        except NotFound:
            return

    async def refresh_content(self, form_qualified_name: str) -> ContentMetadata:
        request = dialect.REFRESH_CONTENT.to(json={"form_qualified_name": form_qualified_name})
        return await self._fetch(request, ContentMetadata)

    async def collect_responses(self, session_id: str) -> ResponseData:
        return await self._fetch(dialect.COLLECT_RESPONSES.to(session=session_id), ResponseData)

    async def collect_user_feedback_by_session(self, session_id: str) -> FeedbackData:
        return await self._fetch(dialect.COLLECT_FEEDBACK.to(session=session_id), FeedbackData)

    async def collect_user_feedback_by_form(self, form_qualified_name: str) -> FeedbackData:
        params = {"form_qualified_name": form_qualified_name}
        pages = await self._pages(dialect.COLLECT_FORM_FEEDBACK, params, _FeedbackPage)
        return FeedbackData(tuple(entry for page in pages for entry in page.entries))

    async def list_sessions(self, *, owner: str, client_key: str | None = None) -> tuple[LabSessionInfo, ...]:
        needed = {OWNER} if client_key is None else {OWNER, CLIENT_KEY}
        if lacking := needed - (await self.info()).extensions:
            raise Lacking(
                f"LDS {self.deployment} cannot tell its sessions apart: it lacks {', '.join(sorted(lacking))}"
            )
        params = {"owner": owner} | ({} if client_key is None else {"client_key": client_key})
        pages = await self._pages(dialect.LIST_SESSIONS, params, _SessionPage)
        sessions = {session.id: session for page in pages for session in page.sessions}
        return tuple(
            session
            for session in sessions.values()
            if session.owner == owner and client_key in {None, session.client_key} and not session.archived
        )

    async def close(self) -> None:
        """Close the connections, also of all guarded clients."""
        await self._service.close()

    async def _send(self, request: OperationRequest) -> Response:
        reset = _guard.set(self._guard)
        try:
            return await self._service.send(request)
        finally:
            _guard.reset(reset)

    async def _fetch(
        self, request: OperationRequest, shape: type[_T], *, repeat: bool = True, missing: _T | None = None
    ) -> _T:
        reset = _guard.set(self._guard)
        try:
            return await self._service.fetch(request, shape, repeat=repeat, missing=missing)
        finally:
            _guard.reset(reset)

    async def _pages(self, operation: Operation, params: dict[str, str], shape: type[_P]) -> list[_P]:
        """Get all pages of a list; an incomplete one is an error."""
        pages: list[_P] = []
        seen: set[str] = set()
        cursor = ""
        while len(pages) < PAGES_MAX:
            query = params | {"limit": PAGE} | ({"cursor": cursor} if cursor else {})
            page = await self._fetch(operation.to(params=query), shape)
            pages.append(page)
            cursor = page.next or ""
            if not cursor:
                return pages
            if cursor in seen:
                break
            seen.add(cursor)
        raise Unavailable(f"LDS {self.deployment}: {operation.name}: the pages do not end")


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no zone")
    return moment.astimezone(UTC)


RETRY: Final = Retry(attempts_max=3, first_s=0.2, cap_s=2.0)

CALLS: Final = Calls(long_bounds=5)
"""The calls of this process: clients come and go with the configuration, but a count only ever grows."""


def open_deployment(
    deployment: str,
    base_url: str,
    *,
    token: TokenReader,
    timeout_s: float,
    ca_bundle: str | None = None,
    report: Reporter | None = None,
    user_agent: str = "",
    retry: Retry = RETRY,
) -> LdsClient:
    """Open a deployment; nothing is sent before the first call.

    Args:
        deployment: Its id, for messages and metrics.
        base_url: `https://host[:port][/path]`.
        token: Reads its token.
        timeout_s: Seconds for one call, retries included.
        ca_bundle: PEM text of the authorities to trust instead of the system's.
        report: Called with the outcome of each call.
        user_agent: The name of this client in the LDS's log.
        retry: When to send a request again.

    Raises:
        CertificateInvalid: `ca_bundle` is not PEM text.
    """
    url = URL(base_url)
    base = url.raw_path.rstrip("/") + BASE
    name = f"LDS {deployment}"
    transport = DirectTransport(
        str(url.origin()),
        tls=trusting(ca_bundle=ca_bundle),
        allow=allow_list(OPERATIONS, base),
        guard=check_guard,
        user_agent=user_agent,
    )
    service = ServiceClient(
        Exchange(transport, LdsDialect(name), base=base, calls=CALLS, labels=(deployment,)),
        GivenToken(name, token),
        timeout_s=lambda operation: max(operation.timeout_s, timeout_s),
        retry=retry,
        report=report,
    )
    return LdsClient(deployment, service)

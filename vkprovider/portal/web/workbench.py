"""The road to a workbench: let in from the page of its lab by a one-time code, and then passed on, at its own host.

Each answer is streamed; a workbench that sends much holds up itself alone: it has a number of requests and of
WebSockets at once, and each holds one piece. While an answer or a WebSocket goes on, it is asked again whether who
opened it still may.
"""

import asyncio
import hashlib
from collections.abc import Coroutine
from functools import partial
from http import HTTPStatus
from typing import Final

import aiohttp
import msgspec
import structlog
from aiohttp import web
from yarl import URL

from vkprovider.lablet.standing import is_ready
from vkprovider.platform.concurrency import end_tasks
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.http.answers import ApiServerUnavailable, Refused
from vkprovider.platform.http.bodies import streamed
from vkprovider.platform.http.open import Places, Reviews, ReviewTimes
from vkprovider.platform.http.origin import is_own
from vkprovider.platform.http.served import Handler, strict_headers
from vkprovider.platform.rights import User
from vkprovider.platform.runtime.parts import Route
from vkprovider.platform.wildcardhosts import WildcardHosts
from vkprovider.portal.api.callers import KnownCaller, lab_right
from vkprovider.portal.pure.benchhost import SESSION_S_MAX, BenchSession, cookie_of, may_pass, sent_back, sent_on
from vkprovider.portal.pure.benchpod import access_of
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.service.requests import LabCaller
from vkprovider.portal.web.codes import Codes
from vkprovider.portal.web.cookie import Keys, seal, unseal
from vkprovider.portal.web.layout import PIECE, SiteContext

_log: Final = structlog.get_logger(__name__)
ENTER: Final = "/.vkprovider/enter/"
"""The path of a workbench's host where a code becomes a cookie."""
_REQUESTS_MAX: Final = 48
_SOCKETS_MAX: Final = 32
"""What one workbench has at once, of each."""
_ALL_MAX: Final = 512
"""What all workbenches of a replica have at once, of each."""
_PIECE_BYTES: Final = 64 * 1024
_MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024
_CONNECT_S: Final = 5.0
_SILENT_S: Final = 300.0
"""How long a workbench may be silent within an answer."""
_TRUSTED_S: Final = 20.0
"""How long a right that was found is not asked for again; its answer may be ten seconds old."""
_decoder: Final = msgspec.json.Decoder(BenchSession)


class BenchRefusal(web.HTTPException):
    """A request to a workbench is refused, in plain text."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        self.status_code = int(status)
        super().__init__(text=f"{text}\n", headers=strict_headers())


class BenchDoor:
    """Lets people in, and passes their requests on."""

    def __init__(self, site: SiteContext, hosts: WildcardHosts, keys: Keys, secret: bytes) -> None:
        """Let nobody in yet.

        Args:
            site: What is known of labs and visitors.
            hosts: Where workbenches are.
            keys: Of the portal.
            secret: Of which the portal makes what it proves itself by.
        """
        self._site = site
        self._hosts = hosts
        self._key = keys.bench
        self._secret = secret
        self._codes = Codes(site.ctx, keys.bench)
        self._http: aiohttp.ClientSession | None = None
        self._requests = Places(_ALL_MAX, _REQUESTS_MAX, _too_many)
        self._sockets = Places(_ALL_MAX, _SOCKETS_MAX, _too_many)
        self._trusted: dict[BenchSession, float] = {}
        self._reviews = Reviews(ReviewTimes(first_s=_TRUSTED_S, every_s=_TRUSTED_S, again_s=_TRUSTED_S))

    def routes(self) -> tuple[Route, ...]:
        """Return the paths of the portal's own site."""
        return (Route("POST", "/labs/{user}/workbench", self._site.visitors.posting(self._open)),)

    def hosted(self, request: web.Request) -> Handler | None:
        """Return the handler of a request to the host of a workbench; None for any other request."""
        return self._serve if self._hosts.label_of(request.host) is not None else None

    async def finish(self) -> None:
        """End what goes on."""
        self._requests.close()
        self._sockets.close()
        await self._codes.finish()
        if self._http is not None:
            await self._http.close()

    # ------------------------------------------------------------------------------------------ to be let in

    async def _open(self, request: web.Request) -> web.StreamResponse:
        """Lead who may open consoles of a lab into its workbench."""
        visitor, user = await self._site.visitors.of(request), request.match_info["user"]
        lab, known = self._site.index.lab(user), visitor.known
        class_ = lab.record.class_ if lab is not None else ""
        own = await self._site.callers.owns(known, user)
        if not own and not await self._site.callers.teaches(known, user, class_):
            raise web.HTTPNotFound
        if lab is None or lab.record.request is None or bench_address(self._hosts, lab) == "":
            raise web.HTTPConflict(text="The workbench is not ready yet.")
        latest = self._site.ctx.wall() + SESSION_S_MAX
        ends_at = latest if visitor.ends_at is None or visitor.renews_s else visitor.ends_at
        session = BenchSession(
            namespace=lab.record.namespace,
            request=lab.record.request.id,
            user=user,
            class_="" if own else class_,
            username=known.of_cluster.username,
            groups=tuple(known.of_cluster.groups),
            expires_at=min(latest, ends_at),
        )
        try:
            code = await self._codes.make(msgspec.json.encode(session).decode())
        except OutsideError as error:
            raise ApiServerUnavailable(f"the API server lets nobody in now: {error.message}; try again") from None
        there = f"{self._hosts.address_of(lab.key)}{ENTER}{code}"
        if PIECE in request.headers:
            raise web.HTTPSeeOther(there)
        return self._site.layout.render(request, "going.html", headline="One moment", then=there)

    async def _enter(self, request: web.Request, key: str) -> web.StreamResponse:
        """Let the bearer of a code in, once."""
        try:
            text = await self._codes.redeem(request.path.removeprefix(ENTER))
        except Refused as refusal:
            raise BenchRefusal(HTTPStatus.TOO_MANY_REQUESTS, refusal.message) from None
        except OutsideError as error:
            text = f"The API server lets nobody in now: {error.message}. Open the workbench from its lab again."
            raise BenchRefusal(HTTPStatus.SERVICE_UNAVAILABLE, text) from None
        session = _session(text.encode()) if text is not None else None
        lab = self._site.index.at(session.namespace) if session is not None else None
        if session is None or lab is None or lab.key != key:
            raise BenchRefusal(HTTPStatus.FORBIDDEN, "This address was used already: open the workbench from its lab.")
        await self._check(session)
        response = web.Response(status=HTTPStatus.SEE_OTHER, headers={**strict_headers(), "Location": "/"})
        sealed = seal(self._key, msgspec.json.encode(session), request.host.lower())
        age_s, secure = max(1, int(session.expires_at - self._site.ctx.wall())), self._hosts.scheme == "https"
        response.set_cookie(
            cookie_of(self._hosts.scheme), sealed, max_age=age_s, path="/", httponly=True, secure=secure, samesite="Lax"
        )
        return response

    async def _check(self, session: BenchSession) -> UserLab:
        """Return the lab of a session that holds.

        Raises:
            BenchRefusal: It is over, or its visitor has no right any more.
        """
        lab, now = self._lab_of(session), self._site.ctx.wall()
        if lab is None:
            raise BenchRefusal(HTTPStatus.UNAUTHORIZED, "This session is over: open the workbench from its lab.")
        if self._trusted.get(session, 0.0) > now:
            return lab
        try:
            is_allowed = await self._is_allowed(session)
        except Refused as refusal:
            raise BenchRefusal(HTTPStatus.SERVICE_UNAVAILABLE, refusal.message) from None
        if not is_allowed:
            raise BenchRefusal(HTTPStatus.FORBIDDEN, "You may not open this workbench any more.")
        self._trusted = {each: until for each, until in self._trusted.items() if until > now}
        self._trusted[session] = now + _TRUSTED_S
        return lab

    def _lab_of(self, session: BenchSession) -> UserLab | None:
        """Return the lab of a session; None if either is over."""
        lab = self._site.index.at(session.namespace)
        asked = lab.record.request if lab is not None else None
        goes_on = asked is not None and asked.id == session.request and self._site.ctx.wall() < session.expires_at
        return lab if goes_on else None

    async def _is_allowed(self, session: BenchSession) -> bool:
        """Return whether a session goes on, and its visitor still has the right.

        Raises:
            Refused: 503: nobody knows.
        """
        lab = self._lab_of(session)
        if lab is None or session.class_ not in {"", lab.record.class_}:
            return False
        user = User(session.username, groups=list(session.groups))
        known = KnownCaller(user, LabCaller(session.user, session.username, session.groups))
        verb, where = ("teach", session.class_) if session.class_ else ("use", self._site.ctx.namespace)
        return await self._site.callers.may(known, lab_right(verb, where, session.user))

    # ------------------------------------------------------------------------------------------ passed on

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        key = self._hosts.label_of(request.host) or ""
        if not may_pass(request.method, request.headers, own=_is_own(request)):
            raise BenchRefusal(HTTPStatus.FORBIDDEN, "A page of another site asks; nothing was done.")
        if request.path.startswith(ENTER) and request.method == "GET":
            return await self._enter(request, key)
        sealed = request.cookies.get(cookie_of(self._hosts.scheme), "")
        session = _session(unseal(self._key, sealed, request.host.lower()))
        if session is None:
            raise BenchRefusal(HTTPStatus.UNAUTHORIZED, "Open the workbench from the page of its lab.")
        lab = await self._check(session)
        upstream = self._upstream(lab)
        if lab.key != key or upstream is None:
            raise BenchRefusal(HTTPStatus.SERVICE_UNAVAILABLE, "The workbench is not ready; try again in a moment.")
        access = access_of(self._secret, lab.record.namespace, session.request)
        headers = sent_on(request.headers.items(), request.host, self._hosts.scheme, access)
        there = URL(f"{upstream}{request.raw_path}", encoded=True)
        is_socket = request.headers.get("Upgrade", "").lower() == "websocket"
        over = asyncio.Event()
        with (self._sockets if is_socket else self._requests).taken(lab.key, over):
            carrying = (self._socket if is_socket else self._pass)(request, there, headers)
            return await self._while_allowed(request, session, over, carrying)

    async def _while_allowed(
        self,
        request: web.Request,
        session: BenchSession,
        over: asyncio.Event,
        carrying: Coroutine[None, None, web.StreamResponse],
    ) -> web.StreamResponse:
        """Carry an answer or a WebSocket until its end, or until `over` is set: its visitor may no more."""
        task, key = asyncio.create_task(carrying), hashlib.sha256(msgspec.json.encode(session)).digest()
        ended = asyncio.create_task(over.wait())
        try:
            async with self._reviews.holding(session.username, key, partial(self._is_allowed, session), over):
                await asyncio.wait([task, ended], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
        finally:
            await end_tasks((task, ended))
        if request.transport is not None:
            request.transport.abort()  # the browser sees that an answer is not whole
        return web.Response()

    def _upstream(self, lab: UserLab) -> str | None:
        """Return where the workbench of a lab answers; None while it does not."""
        asked, pod = lab.record.request, lab.own_bench
        kind = (
            self._site.choices.config.workbenches.get(asked.bench.name)
            if asked is not None and asked.bench is not None
            else None
        )
        if pod is None or kind is None or not pod.status.pod_ip:
            return None
        address = pod.status.pod_ip
        return f"http://[{address}]:{kind.port}" if ":" in address else f"http://{address}:{kind.port}"

    def _client(self) -> aiohttp.ClientSession:
        if self._http is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_SILENT_S)
            connector = aiohttp.TCPConnector(limit=0, force_close=True)
            jar = aiohttp.DummyCookieJar()
            self._http = aiohttp.ClientSession(
                timeout=timeout, connector=connector, cookie_jar=jar, auto_decompress=False, trust_env=False
            )
        return self._http

    async def _pass(self, request: web.Request, there: URL, headers: list[tuple[str, str]]) -> web.StreamResponse:
        response: web.StreamResponse | None = None
        try:
            async with self._client().request(
                request.method,
                there,
                headers=headers,
                data=streamed(request),
                allow_redirects=False,
                skip_auto_headers=_NOT_OURS,
            ) as answer:
                response = web.StreamResponse(status=answer.status, reason=answer.reason)
                response.headers.extend(sent_back(answer.headers.items()))
                await response.prepare(request)
                async for piece in answer.content.iter_chunked(_PIECE_BYTES):
                    await response.write(piece)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if response is not None and response.prepared:
                raise  # the browser sees that the answer is not whole
            _log.info("a workbench does not answer", error=type(error).__name__)
            raise BenchRefusal(HTTPStatus.BAD_GATEWAY, "The workbench does not answer; it may be starting.") from None
        await response.write_eof()
        return response

    async def _socket(self, request: web.Request, there: URL, headers: list[tuple[str, str]]) -> web.StreamResponse:
        wanted = [each.strip() for each in request.headers.get("Sec-WebSocket-Protocol", "").split(",") if each.strip()]
        try:
            async with self._client().ws_connect(
                there, headers=headers, protocols=wanted, max_msg_size=_MESSAGE_BYTES_MAX, autoclose=True
            ) as upstream:
                chosen = [upstream.protocol] if upstream.protocol else []
                socket = web.WebSocketResponse(protocols=chosen, max_msg_size=_MESSAGE_BYTES_MAX, heartbeat=30.0)
                await socket.prepare(request)
                both = [asyncio.create_task(_carry(upstream, socket)), asyncio.create_task(_carry(socket, upstream))]
                try:
                    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    await end_tasks(both)
                    await socket.close()
                return socket
        except (aiohttp.ClientError, TimeoutError, OSError):
            raise BenchRefusal(HTTPStatus.BAD_GATEWAY, "The workbench opens no WebSocket.") from None


def _too_many(_: bool) -> BenchRefusal:  # noqa: FBT001 (as `Places` calls it)
    return BenchRefusal(HTTPStatus.TOO_MANY_REQUESTS, "The workbench has too many requests at once.")


_NOT_OURS: Final = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_Socket = aiohttp.ClientWebSocketResponse | web.WebSocketResponse


async def _carry(source: _Socket, sink: _Socket) -> None:
    """Pass messages on, one at a time, until one side ends."""
    async for message in source:
        if message.type is aiohttp.WSMsgType.TEXT:
            await sink.send_str(message.data)
        elif message.type is aiohttp.WSMsgType.BINARY:
            await sink.send_bytes(message.data)


def _is_own(request: web.Request) -> bool:
    """Return whether a page of the workbench asks, or no page: a browser that says nothing of the latter is old."""
    if "Sec-Fetch-Site" in request.headers or "Origin" in request.headers:
        return is_own(request.headers, request.host)
    return request.method in {"GET", "HEAD"} and "Upgrade" not in request.headers


def _session(text: bytes | None) -> BenchSession | None:
    try:
        return _decoder.decode(text) if text is not None else None
    except msgspec.MsgspecError:
        return None


def bench_address(hosts: WildcardHosts | None, lab: UserLab | None) -> str:
    """Return the address of the workbench of a lab; "" if there is none, it is not ready, or it has no host."""
    pod = lab.own_bench if lab is not None else None
    if hosts is None or lab is None or pod is None:
        return ""
    return hosts.address_of(lab.key) if is_ready(pod) else ""

"""Who looks at the pages, by cookies or headers, whether they still may, and requests to the API server in their name.

Every request of a visitor has the visitor's token; without it nothing is asked: the portal never acts for a visitor
with its own rights, and impersonates nobody.
"""

import asyncio
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple, Protocol
from urllib.parse import quote

import msgspec
from aiohttp import web

from vkprovider.platform.errors import Forbidden, Unauthorized
from vkprovider.platform.http.answers import NotAllowed, Refused, TokenInvalid, TokenMissing
from vkprovider.platform.http.bodies import FORM, Body, read_form
from vkprovider.platform.http.open import OpenLogins, Reviews, ReviewTimes, answer_of
from vkprovider.platform.http.origin import is_loopback, is_own, leads_on
from vkprovider.platform.http.served import Handler
from vkprovider.platform.kube.access import may
from vkprovider.platform.kube.client import KubeClient, user_agent
from vkprovider.platform.kube.http import auth
from vkprovider.platform.kube.http.credentials import ClusterAccess
from vkprovider.platform.rights import Right
from vkprovider.platform.settings import KubeSettings
from vkprovider.portal.api.callers import KnownCaller, PortalCallers
from vkprovider.portal.settings import PortalSettings
from vkprovider.portal.web import cookie
from vkprovider.portal.web.cookie import Keys, LoginSession, mark


class OnlyLablet(NamedTuple):
    """The only lablet that somebody may see, who came by a link.

    Attributes:
        namespace: Of the class.
        pod: The name of its Pod.
        account: The ServiceAccount of the link.
        digest: The sum of the code by which they came.
    """

    namespace: str
    pod: str
    account: str
    digest: str


class Visitor(NamedTuple):
    """Somebody who looks at the site.

    Attributes:
        known: Who it is.
        csrf: What each of their forms sends along.
        token: Theirs, of the cluster; "" if an ingress names them and sends none.
        base: The path before those of the site.
        leaves: Whether they can log out here.
        session: Tells their session from others.
        ends_at: When it is over, in Unix seconds; None if an ingress names them with each request.
        renews_s: In how many seconds that is, if it may go on then with another token; 0 if not.
        only: What they may see, and nothing else; None for who has logged in.
    """

    known: KnownCaller
    csrf: str
    token: str
    base: str = ""
    leaves: bool = True
    session: str = ""
    ends_at: float | None = None
    renews_s: int = 0
    only: OnlyLablet | None = None

    @property
    def user(self) -> str:
        """Their name in paths; "" if they can have no lab."""
        return self.known.caller.user


BASE: Final = web.RequestKey("base", str)
"""Under this key a request knows the path that is before those of the site; without it there is none."""
PATH_BASE: Final = web.RequestKey("path_base", str)
"""Under this key a request knows how much of that is in its own path: a proxy may have taken it away."""
ASKED_FROM: Final = "X-Asked-From"
"""The header with the origin of a page, which browsers send with a WebSocket, and not with a plain request."""
SECURE: Final = web.RequestKey("secure", bool)
"""Under this key a request knows whether people reach the site by TLS, where the addresses of the site are known."""
VISITOR: Final = web.RequestKey("visitor", Visitor)
"""Under this key a request knows its sender, once that was asked for."""


def link_to(base: str, path: str) -> str:
    """Return a path of the site as a browser asks for it."""
    return f"{base.rstrip('/')}{path}"


def link(request: web.Request, path: str) -> str:
    """Return a path of the site as the browser of a request asks for it."""
    return link_to(request.get(BASE, ""), path)


class AsVisitor:
    """Reaches the API server of the portal for others."""

    def __init__(self, settings: KubeSettings, replica: str) -> None:
        """Create it.

        Args:
            settings: Name the API server.
            replica: The name of this replica, for audit logs.
        """
        self._settings = settings
        self._agent = user_agent(replica, "vkprovider-portal-visitor")

    async def access(self, token: str) -> ClusterAccess:
        """Return how to reach the API server with a token.

        Raises:
            InputError: The kubeconfig of the portal has changed, and is wrong.
            Refused: 401: there is no token.
        """
        if not token:
            raise TokenMissing("the ingress sends no token of yours, so that nothing can be done here in your name")
        return await auth.load_for(token, self._settings.kubeconfig)

    @asynccontextmanager
    async def client(self, token: str) -> AsyncIterator[KubeClient]:
        """Yield a client that has a token, as long as it is needed.

        Raises:
            InputError: The kubeconfig of the portal has changed, and is wrong.
            Refused: 401: there is no token.
        """

        async def reload() -> ClusterAccess:
            return await self.access(token)

        client = KubeClient(await reload(), reload, self._settings, user_agent=self._agent)
        try:
            yield client
        finally:
            await client.close()


_ASK_S: Final = 5.0
_ORIGIN_CHARS_MAX: Final = 100
_TIMES: Final = ReviewTimes()
AskVisitor = Callable[[Visitor, Right], Awaitable[bool]]
"""Returns whether a visitor still has a right; raises `Refused` or `OutsideError` if that is unknown."""


class VisitorReviews:
    """Asks again for the rights of visitors.

    Attributes:
        answers_total: Reviews by their answer: allowed, refused, or unknown.
        sessions: Ends what is open of a session with it.
    """

    def __init__(self, ask: AskVisitor, times: ReviewTimes = _TIMES, wall: Callable[[], float] = time.time) -> None:
        """Begin with nothing open; `wall` returns Unix seconds."""
        self._reviews = Reviews(times)
        self._ask = ask
        self.answers_total = self._reviews.answers_total
        self.sessions = OpenLogins(wall)

    @asynccontextmanager
    async def holding(
        self,
        visitor: Visitor,
        right: Right,
        wake: asyncio.Event | None = None,
        may: Callable[[], bool] | None = None,
    ) -> AsyncIterator[asyncio.Event]:
        """Yield an event that is set, and with it `wake`, when a visitor has a right no more, or their session ends.

        Args:
            visitor: Who it is.
            right: By which they have something open.
            wake: Set as well.
            may: Tells whether they still may what the right does not say; the same for all that they have open by it.
        """
        over = asyncio.Event()
        events = (over, wake) if wake is not None else (over,)
        user, name, token = visitor.known.of_cluster.username, visitor.session, visitor.token

        async def ask() -> bool:
            if may is not None and not may():
                return False
            return await self._ask(visitor._replace(token=self.sessions.token_of(name, token)), right)

        async with self._reviews.holding(user, _key(visitor, right, more=may is not None), ask, *events):
            with self.sessions.during(name, token, visitor.ends_at, *events):
                yield over

    def renewed(self, session: LoginSession) -> None:
        """Let what is open of a session go on with its next token."""
        self.sessions.renewed(session.id, session.token, session.expires_at)

    async def may(self, visitor: Visitor, right: Right) -> bool | None:
        """Return whether a visitor has a right now; None if nobody knows."""
        return await answer_of(visitor.known.of_cluster.username, partial(self._ask, visitor, right))


class Asking:
    """Asks the API server whether a visitor has a right: with the visitor's token, by one request for both."""

    def __init__(self, as_visitor: AsVisitor, callers: PortalCallers, *, own_tokens: bool) -> None:
        """Create it.

        Args:
            as_visitor: Asks in a visitor's name.
            callers: Asks about a visitor.
            own_tokens: Whether the API server takes the tokens of visitors; not if they are meant for the portal alone.
        """
        self._as_visitor = as_visitor
        self._callers = callers
        self._own_tokens = own_tokens

    async def ask(self, visitor: Visitor, right: Right) -> bool:
        """Return whether a visitor still has a right.

        Raises:
            Refused: 401: the token is not known any more; 503: the API server cannot be asked.
            OutsideError: It cannot be asked.
        """
        if visitor.token and self._own_tokens:
            try:
                async with self._as_visitor.client(visitor.token) as kube:
                    return await may(kube, right.attributes(), timeout_s=_ASK_S)
            except Unauthorized:
                return False
            except Forbidden:
                pass  # some clusters let nobody ask about themselves
        known = await self._callers.of_session(visitor.token) if visitor.token else visitor.known
        return await self._callers.may(known, right)


def _key(visitor: Visitor, right: Right, *, more: bool) -> bytes:
    session = visitor.session if visitor.ends_at is not None else visitor.token  # which may be renewed
    asked = msgspec.json.encode([visitor.known.of_cluster.username, session, right.attributes(), more])
    return hashlib.sha256(asked).digest()


COOKIE: Final = "vkprovider-portal"
CSRF_FIELD: Final = "csrf"
CSRF_HEADER: Final = "X-CSRF-Token"
FORM_BODY: Final = Body(1 << 20, (FORM,))
"""The forms of people who have logged in: a class has up to 2,000 rows."""


class KnownVisitor(NamedTuple):
    """Somebody whom a source knows.

    Attributes:
        known: Who it is.
        token: Theirs; "" if there is none.
        session: The seed of the tokens against forged forms (CSRF).
        leaves: Whether they can log out here.
        ends_at: When the session is over, in Unix seconds; None if it is none of this portal's.
        renews_s: In how many seconds that is, if it may go on then with another token; 0 if not.
        only: What they may see, and nothing else; None for who has logged in.
    """

    known: KnownCaller
    token: str
    session: str
    leaves: bool
    ends_at: float | None = None
    renews_s: int = 0
    only: OnlyLablet | None = None


class VisitorSource(Protocol):
    """Finds out who sends a request."""

    async def find(self, request: web.Request) -> KnownVisitor | None:
        """Return who sends a request; None if that person has to log in.

        Raises:
            Refused: 401: nobody can log in; 503: the API server cannot be asked.
        """


class ByCookie:
    """Knows visitors by the cookies that the login gave them."""

    def __init__(self, callers: PortalCallers, key: bytes, wall: Callable[[], float]) -> None:
        """Create it.

        Args:
            callers: Knows the user of a token.
            key: Of the cookies.
            wall: Returns Unix seconds.
        """
        self._callers = callers
        self._key = key
        self._wall = wall

    async def find(self, request: web.Request) -> KnownVisitor | None:
        """Read the cookies of a request, and ask whose their token is."""
        session = cookie.read(
            self._key, cookie_name(request, COOKIE), request.cookies, self._wall(), request.get(BASE, "")
        )
        if session is None:
            return None
        try:
            known = await self._callers.of_session(session.token)
        except TokenInvalid:
            return None
        left_s = max(1, int(session.expires_at - self._wall())) if session.refresh_token else 0
        ends_at = session.expires_at
        return KnownVisitor(known, session.token, session.id, leaves=True, ends_at=ends_at, renews_s=left_s)


class ByIngress:
    """Knows visitors as the ingress names them."""

    def __init__(self, callers: PortalCallers) -> None:
        """Create it; `callers` reads the headers."""
        self._callers = callers

    async def find(self, request: web.Request) -> KnownVisitor | None:
        """Read the headers of a request."""
        known = await self._callers.known(request)
        return KnownVisitor(known, known.caller.token, f"ingress:{known.of_cluster.username}", leaves=False)


class Nobody:
    """Knows nobody: the portal has no key."""

    async def find(self, request: web.Request) -> KnownVisitor | None:  # noqa: ARG002 (as its siblings have it)
        """Return None."""
        return None


class Visitors:
    """Finds out who sends a request, and refuses those who may not."""

    def __init__(self, source: VisitorSource, keys: Keys) -> None:
        """Create it.

        Args:
            source: Finds out who asks.
            keys: Of the portal.
        """
        self._source = source
        self._keys = keys

    async def of(self, request: web.Request) -> Visitor:
        """Return the sender of a request.

        Raises:
            HTTPSeeOther: To the login: nobody who is known wants to see a page.
            Refused: 401: nobody who is known wants anything else; 503: the API server cannot be asked.
        """
        there: Visitor | None = request.get(VISITOR)
        if there is not None:
            return there
        found = await self._source.find(request)
        if found is None:
            if wants_page(request):
                raise web.HTTPSeeOther(link(request, f"/login?next={quote(below_base(request), safe='')}"))
            raise TokenMissing("log in first: nobody is logged in here, or the session is over")
        visitor = Visitor(
            found.known,
            mark(self._keys.form, found.session),
            found.token,
            request.get(BASE, ""),
            found.leaves,
            found.session,
            found.ends_at,
            found.renews_s,
            found.only,
        )
        request[VISITOR] = visitor
        return visitor

    def of_ticket(self, ticket: str, now: float) -> LoginSession | None:
        """Return the session that was renewed, of which a page has a ticket; None if it is none, or over."""
        return cookie.read_ticket(self._keys.session, ticket, now)

    async def watching(self, request: web.Request) -> Visitor:
        """Return the sender of a request that opens a WebSocket, which a page of the site made.

        A page asks by a plain request, too, why its WebSocket did not open; the answer is that of the WebSocket.

        Raises:
            Refused: 401, 403, or 503.
        """
        require_own(request)
        if asked := request.headers.get(ASKED_FROM):
            _require_own(request, {"Origin": asked})
        return await self.of(request)

    def posting(self, handler: Handler, body: Body = FORM_BODY) -> Handler:
        """Return a handler of forms that answers a visitor, and a page of the site alone.

        The form is read: `await read_form(request, body)` returns it again.

        Args:
            handler: Of the form.
            body: What the form may be.
        """

        async def handle(request: web.Request) -> web.StreamResponse:
            require_own(request)
            visitor = await self.of(request)
            sent = request.headers.get(CSRF_HEADER) or await form_field(request, CSRF_FIELD, body)
            if not hmac.compare_digest(visitor.csrf.encode(), sent.encode(errors="replace")):
                raise OldForm(await _sent_again(request, body))
            return await handler(request)

        return handle


class OldForm(Refused):
    """A page of the site sends a form that it got in another session.

    Attributes:
        fields: What is in it; none if it cannot be shown again, as where it has a file.
    """

    status_code = 403
    remedy = "Load the page again, and send the form once more."

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        """Refuse it."""
        super().__init__("this form is of another session: load the page again, and send it once more")
        self.fields = fields


async def _sent_again(request: web.Request, body: Body) -> dict[str, list[str]]:
    """Return the fields of a form, but for its token; none if a script sends it, or if there is a file."""
    if CSRF_HEADER in request.headers:
        return {}
    form = await read_form(request, body)
    fields = {name: form.getall(name) for name in dict.fromkeys(form) if name != CSRF_FIELD}
    is_text = all(isinstance(each, str) for values in fields.values() for each in values)
    return {name: [str(each) for each in values] for name, values in fields.items()} if is_text else {}


def cookie_name(request: web.Request, name: str) -> str:
    """Return the name of a cookie: one that no other host of the domain can set, where browsers have such.

    They have none for a part of the paths of a host, and none without TLS, which the own machine does without.
    """
    secure = request.get(SECURE, not is_loopback(request.host))
    return f"__Host-{name}" if secure and not request.get(BASE, "") else name


async def form_field(request: web.Request, name: str, body: Body = FORM_BODY) -> str:
    """Return a field of a form; "" if it is not there.

    Raises:
        Refused: The form is not one, or it does not come.
    """
    field = (await read_form(request, body)).get(name, "")
    return field if isinstance(field, str) else ""


def require_own(request: web.Request) -> None:
    """Refuse a request that another site's page makes.

    Raises:
        Refused: 403.
    """
    _require_own(request, request.headers)


def _require_own(request: web.Request, headers: Mapping[str, str]) -> None:
    if not is_own(headers, request.host):
        page = headers.get("Origin", "none")[:_ORIGIN_CHARS_MAX]
        raise NotAllowed(
            f"a page of another site asks, in your name; nothing was done. The page is of {page}, and the portal is "
            f"asked at {request.host}: if both are this portal, a proxy in front of it rewrites Host, and whoever runs "
            "it names the former in VKPROVIDER_PORTAL_URLS"
        )


def wants_page(request: web.Request) -> bool:
    """Return whether a browser asks for a page to show, which may be the login."""
    is_stream = "text/event-stream" in request.headers.get("Accept", "")
    return request.method == "GET" and not is_stream and "Upgrade" not in request.headers


def below_base(request: web.Request) -> str:
    """Return path and query of a request without the base."""
    return request.path_qs.removeprefix(request.get(PATH_BASE, ""))


def lead_on(request: web.Request) -> None:
    """Lead on who writes a slash behind a path of the site, or none behind the one where the whole site is.

    Raises:
        HTTPPermanentRedirect: To where they want to go.
    """
    path = below_base(request)
    there = leads_on(path) if path.startswith("/") else f"/{path}"
    if there is not None:
        raise web.HTTPPermanentRedirect(link(request, there))


def source_of(
    settings: PortalSettings, callers: PortalCallers, keys: Keys | None, wall: Callable[[], float]
) -> VisitorSource:
    """Return how visitors are known."""
    if settings.callers == "headers":
        return ByIngress(callers)
    return ByCookie(callers, keys.session, wall) if keys is not None else Nobody()

"""Links of learners: a page that opens the lablet of one learner for whoever has the learner's link, and nothing else.

The code of a link stands behind `#`; the page posts it after a click. The browser then has a cookie that names the
account of the link and the sum of its code, sealed by the key of the portal, so that every replica opens it, and a link
that is taken back or made again ends it. What such a visitor asks for is asked with a token of that account
(`classroom.links`), which the portal gets for an hour at most: before that, and every few seconds while the link is
used, it compares the sum, the learner and the UID of the Pod with those that are there, and looks whether the namespace
still has links.

These pages are a site of their own, below `/link`, with visitors of their own: nothing else of the portal is there.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple
from urllib.parse import quote
from weakref import WeakValueDictionary

import msgspec
from aiohttp import web

from vkprovider.classroom.links import LinkAccount, LinkCode, account_of, read_code
from vkprovider.classroom.pods import LabletPod, pods_in
from vkprovider.lablet import names
from vkprovider.platform.errors import Forbidden, NotFound, OutsideError, Unauthorized
from vkprovider.platform.http.answers import ApiServerUnavailable, TooManyReviews
from vkprovider.platform.http.bodies import FORM, Body
from vkprovider.platform.http.origin import is_from_elsewhere, is_loopback, keeps_cookies, safe_next
from vkprovider.platform.http.served import Handler
from vkprovider.platform.kube.access import may
from vkprovider.platform.kube.api import NAMESPACES, SERVICE_ACCOUNTS
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.flow import TokenBucket, TokenBuckets
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.rights import Right, User
from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.api.callers import PortalCallers
from vkprovider.portal.web.cookie import SESSION_S_MAX, Keys, seal, unseal
from vkprovider.portal.web.layout import Layout, led_to
from vkprovider.portal.web.login import OLD_FORM, Login
from vkprovider.portal.web.visitors import (
    BASE,
    CSRF_FIELD,
    PATH_BASE,
    SECURE,
    VISITOR,
    AsVisitor,
    KnownVisitor,
    OnlyLablet,
    Visitor,
    Visitors,
    form_field,
    link,
)

LINK_BASE: Final = "/link"
"""The path before those of the pages that a link opens, and the page that opens it."""
LINK_COOKIE: Final = "vkprovider-portal-link"
TOKEN_S: Final = 3600
"""The longest life of a token; the policy `vkprovider-confine-portal` allows no more."""
_AGAIN_S: Final = TOKEN_S / 2
"""A token that is older is not used for what begins."""
_REMEMBER_S: Final = 10.0
"""How long it is remembered that a link leads somewhere: as the rights of everybody else are."""
_KEPT_MAX: Final = 2000
_ASK_S: Final = 5.0
_OPENED_PER_S: Final = 20.0
_OPENED_BURST: Final = 300.0
"""The limits of codes that are typed or posted, of all senders: each takes a request, and a class comes at once."""
_OF_SENDER_PER_S: Final = 2.0
_OF_SENDER_BURST: Final = 120.0
"""Of these, those of one sender: a class behind one address, or all behind an ingress; two leave others their share."""
_PURPOSE: Final = "link"
_ID_BYTES: Final = 16
_BODY: Final = Body(32 * 1024, (FORM,))
_WRONG: Final = (
    "This link opens nothing: it is not complete, was taken back, or its time is over. Ask your instructor for another "
    "one."
)
_NO_TLS: Final = "This page is reached without TLS, so that your browser keeps no session; open it with https://."


class LinkSession(msgspec.Struct, frozen=True):
    """What a browser that has opened a link sends with each request.

    Attributes:
        namespace: Of the class.
        account: The ServiceAccount of the link.
        digest: The sum of the code that opened it; another one when the link is made again.
        id: Tells this session from others; random.
        expires_at: Until when it is valid, in Unix seconds.
    """

    namespace: str
    account: str
    digest: str
    id: str
    expires_at: float


_sessions: Final = msgspec.json.Decoder(LinkSession)


class OpenLink(NamedTuple):
    """A link that leads somewhere.

    Attributes:
        token: Of its account.
        learner: Whose lablet it is.
        pod: The name of its Pod.
        version: The UIDs of account and Pod, for which the token was made.
        made_at: When, by the clock of this process, in seconds.
        seen_at: When it was compared last.
    """

    token: str
    learner: str
    pod: str
    version: tuple[str, str]
    made_at: float
    seen_at: float


class _TokenStatus(msgspec.Struct, frozen=True):
    token: str


class _TokenAnswer(msgspec.Struct, frozen=True):
    status: _TokenStatus


_tokens: Final = msgspec.json.Decoder(_TokenAnswer)
_Key = tuple[str, str, str]


class LinkTokens:
    """The links that are used at this replica."""

    def __init__(self, kube: KubeClient, now: Callable[[], float] = time.monotonic) -> None:
        """Know none.

        Args:
            kube: The API server, with the rights of the portal.
            now: A clock, in seconds.
        """
        self._kube = kube
        self._now = now
        self._open: OrderedDict[_Key, OpenLink] = OrderedDict()
        self._turns: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()
        self._allowed: dict[str, tuple[bool, float]] = {}

    async def of(self, namespace: str, account: str, digest: str, *, now: bool = False) -> OpenLink | None:
        """Return where a link leads; None if it leads nowhere, whatever the reason.

        Args:
            namespace: Of the class.
            account: The ServiceAccount of the link.
            digest: The sum of the code.
            now: Whether to compare it now, and not to remember that it was compared just before.

        Raises:
            OutsideError: The API server does not answer.
        """
        key = (namespace, account, digest)
        async with self._turns.setdefault(key, asyncio.Lock()):
            known = self._open.get(key)
            if known is not None and not now and self._now() - known.seen_at < _REMEMBER_S:
                return known
            found = await self._compared(key, known)
            self._open.pop(key, None)
            if found is not None:
                self._open[key] = found
                if len(self._open) > _KEPT_MAX:
                    self._open.popitem(last=False)
            return found

    async def _compared(self, key: _Key, known: OpenLink | None) -> OpenLink | None:
        """Compare a link with what is there, and get a token if the one that is known is none for it, or too old."""
        namespace, account, digest = key
        there = await Resource(self._kube, SERVICE_ACCOUNTS, namespace).metadata_only.get(account)
        found = account_of(there) if there is not None else None
        if there is None or found is None or not found.is_opened_by(digest):
            return None
        if not _is_of_link(found) or not await self._leads(found, namespace):
            return None
        now, version = self._now(), (there.metadata.uid, found.pod_uid)
        fits = known is not None and known.version == version and now - known.made_at < _AGAIN_S
        if known is not None and fits and await self._allows(namespace):
            return known._replace(seen_at=now)
        token = await self._token(namespace, account)
        return OpenLink(token, found.learner, found.pod, version, now, now) if token else None

    async def _leads(self, account: LinkAccount, namespace: str) -> bool:
        """Return whether the Pod of a link is there, and is its learner's."""
        if not account.pod:
            return False
        pods = await pods_in(self._kube, namespace).list(fields=f"metadata.name={account.pod}")
        return any(leads_to(account, pod) for pod in pods)

    async def _allows(self, namespace: str) -> bool:
        """Return whether a class has links, as it was some seconds ago: who gets no token has none at once."""
        allowed, seen_at = self._allowed.get(namespace, (False, -_REMEMBER_S))
        if self._now() - seen_at < _REMEMBER_S:
            return allowed
        there = await Resource(self._kube, NAMESPACES).get(namespace)
        allowed = there is not None and there.metadata.labels.get(names.LABEL_LINKS) == names.LINKS_ALLOWED
        self._allowed[namespace] = (allowed, self._now())
        return allowed

    async def _token(self, namespace: str, account: str) -> str:
        """Return a token of a link's account; "" if the portal may have none, as where links are not allowed."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/serviceaccounts/{quote(account, safe='')}/token"
        spec = {"expirationSeconds": TOKEN_S}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        try:
            return _tokens.decode(await self._kube.create(path, msgspec.json.encode(body))).status.token
        except (Forbidden, NotFound):
            return ""


def _is_of_link(account: LinkAccount) -> bool:
    """Return whether an account is one that `assign` has made for its learner."""
    meta = account.metadata
    is_marked = meta.labels.get(names.LABEL_COMPONENT) == names.COMPONENT_LINK
    return is_marked and account.is_whole


def leads_to(account: LinkAccount, pod: LabletPod) -> bool:
    """Return whether a link leads to a Pod, and not to a later one of its name, or to another learner's."""
    meta = pod.metadata
    return (meta.name, meta.uid) == (account.pod, account.pod_uid) and account.admits_to(pod) and not pod.ended


class ByLink:
    """Knows visitors by the cookie that a link gave them."""

    def __init__(self, tokens: LinkTokens, callers: PortalCallers, key: bytes, wall: Callable[[], float]) -> None:
        """Create it.

        Args:
            tokens: Says where links lead.
            callers: Knows whether all labs are known.
            key: Of the cookies.
            wall: Returns Unix seconds.
        """
        self._tokens = tokens
        self._callers = callers
        self._key = key
        self._wall = wall

    async def find(self, request: web.Request) -> KnownVisitor | None:
        """Read the cookie of a request, and ask where its link leads.

        Raises:
            Refused: 503: the API server cannot be asked, or not all labs are known.
        """
        session = read_link(self._key, request.cookies.get(link_cookie(request), ""), self._wall())
        if session is None:
            return None
        try:
            found = await self._tokens.of(session.namespace, session.account, session.digest)
        except OutsideError as error:
            raise ApiServerUnavailable(f"the API server cannot be asked for your link: {error.message}") from None
        if found is None:
            return None
        only = OnlyLablet(session.namespace, found.pod, session.account, session.digest)
        return linked_visitor(self._callers, only, found, session.id, session.expires_at)


def linked_visitor(
    callers: PortalCallers, only: OnlyLablet, found: OpenLink, session: str, ends_at: float
) -> KnownVisitor:
    """Return who came by a link.

    Args:
        callers: Knows whether all labs are known.
        only: Where the link leads.
        found: The same, with the token that acts.
        session: Tells this session from others.
        ends_at: When it is over, in Unix seconds.

    Raises:
        Refused: 503: not all labs are known.
    """
    known = callers.by_link(User.of_account(only.namespace, only.account), found.learner, found.token)
    return KnownVisitor(known, found.token, session, leaves=True, ends_at=ends_at, only=only)


def written_link(key: bytes, session: LinkSession) -> str:
    """Return the cookie of a link."""
    return seal(key, msgspec.json.encode(session), _PURPOSE)


def read_link(key: bytes, sealed: str, now: float) -> LinkSession | None:
    """Return what the cookie of a link holds; None if it is none, or over."""
    text = unseal(key, sealed, _PURPOSE)
    try:
        session = _sessions.decode(text) if text is not None else None
    except msgspec.MsgspecError:
        return None
    return session if session is not None and now < session.expires_at else None


def link_cookie(request: web.Request) -> str:
    """Return the name of the cookie: one that no other host of the domain can set, but on the own machine."""
    return f"__Host-{LINK_COOKIE}" if request.get(SECURE, not is_loopback(request.host)) else LINK_COOKIE


class AskingByLink:
    """Asks whether who came by a link still has a right: with a token of now, for what is open may be older."""

    def __init__(self, tokens: LinkTokens, as_visitor: AsVisitor) -> None:
        """Create it.

        Args:
            tokens: Says where links lead.
            as_visitor: Asks in a visitor's name.
        """
        self._tokens = tokens
        self._as_visitor = as_visitor

    async def ask(self, visitor: Visitor, right: Right) -> bool:
        """Return whether the link of a visitor still leads to the same lablet, and gives a right.

        Raises:
            OutsideError: The API server cannot be asked.
        """
        only = visitor.only
        found = await self._tokens.of(only.namespace, only.account, only.digest) if only is not None else None
        if only is None or found is None or found.pod != only.pod:
            return False
        try:
            async with self._as_visitor.client(found.token) as kube:
                return await may(kube, right.attributes(), timeout_s=_ASK_S)
        except Unauthorized:
            return False


_NETWORK_BITS: Final = 64


def sender_of(address: str) -> str:
    """Return a sender, as it is counted: of IPv6 the network, for each sender has one at least."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return f"{IPv6Address(int(found) >> _NETWORK_BITS << _NETWORK_BITS)}/{_NETWORK_BITS}"
    return str(found)


class LinkTries:
    """Opens links whose codes are typed, posted or given as passwords: so many of one sender at most.

    Attributes:
        tokens: Says where links lead that are open.
    """

    def __init__(self, tokens: LinkTokens) -> None:
        """Begin without a failure; `tokens` says where links lead."""
        self.tokens = tokens
        self._failures: TokenBuckets[str] = TokenBuckets(0.5, 20)
        self._paces: TokenBuckets[str] = TokenBuckets(_OF_SENDER_PER_S, _OF_SENDER_BURST)
        self._pace = TokenBucket(_OPENED_PER_S, _OPENED_BURST)

    async def open(self, sender: str, code: LinkCode) -> OpenLink | None:
        """Return where the link of a code leads; None if it leads nowhere, whatever the reason.

        Args:
            sender: The address that the code came from.
            code: As it was sent.

        Raises:
            Refused: 429: there are too many; 503: the API server cannot be asked.
        """
        sender = sender_of(sender)
        attempt = f"{sender} {code.namespace} {code.account}"
        if not (self._failures.has(attempt) and self._paces.take(sender) and self._pace.take()):
            raise TooManyReviews("too many links are tried at once; try again in a few seconds")
        try:
            found = await self.tokens.of(code.namespace, code.account, code.digest, now=True)
        except OutsideError as error:
            raise ApiServerUnavailable(f"the API server cannot be asked for the link: {error.message}") from None
        if found is None:
            self._failures.take(attempt)
        return found


class LinkPages:
    """The handlers of the page that opens links."""

    def __init__(
        self,
        tries: LinkTries,
        visitors: Visitors,
        login: Login,
        layout: Layout,
        wall: Callable[[], float],
        ended: Callable[[str], None],
        place: Callable[[str, str], str],
    ) -> None:
        """Create them.

        Args:
            tries: Opens links.
            visitors: Finds out who came by a link.
            login: Binds forms to browsers.
            layout: Makes pages.
            wall: Returns Unix seconds.
            ended: Called with a session that somebody leaves.
            place: Called with namespace and name of a lablet; returns the path of its page.
        """
        self._tries = tries
        self._visitors = visitors
        self._login = login
        self._layout = layout
        self._wall = wall
        self._ended = ended
        self._place = place

    def routes(self) -> tuple[Route, ...]:
        """Return the paths below `/link`."""
        return (
            Route("GET", "", self._show),
            Route("POST", "", self._open),
            Route("GET", "/", self._go_on),
            Route("GET", "/labs", self._go_on),
            Route("GET", "/login", self._lead_back),
            Route("POST", "/logout", self._visitors.posting(self._log_out)),
        )

    async def _show(self, request: web.Request) -> web.StreamResponse:
        """Show the form, which a script fills in with what stands behind `#`."""
        self._login.keys(request)
        return await self._form(request)

    async def _open(self, request: web.Request) -> web.StreamResponse:
        """Give a browser the cookie of the link whose code it sends."""
        keys = self._login.keys(request)
        fresh = self._login.is_fresh(request, await form_field(request, CSRF_FIELD, _BODY))
        if not keeps_cookies(request.headers):
            return await self._form(request, _NO_TLS, HTTPStatus.BAD_REQUEST)
        sent = await form_field(request, "code", _BODY)
        if not fresh:
            return await self._form(request, OLD_FORM, HTTPStatus.FORBIDDEN, sent)
        code = read_code(sent)
        if code is None:
            return await self._form(request, _WRONG, HTTPStatus.FORBIDDEN)
        found = await self._tries.open(request.remote or "", code)
        if found is None:
            return await self._form(request, _WRONG, HTTPStatus.FORBIDDEN)
        location = link(request, self._place(code.namespace, found.pod))
        response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": location})
        self._remember(request, response, keys, code)
        return response

    async def _go_on(self, request: web.Request) -> web.StreamResponse:
        """Lead to the lablet."""
        only = (await self._visitors.of(request)).only
        if only is None:
            raise web.HTTPNotFound
        raise web.HTTPSeeOther(link(request, self._place(only.namespace, only.pod)))

    async def _lead_back(self, request: web.Request) -> web.StreamResponse:
        """Lead who has no cookie to the form; whom another site's link has led here is sent on once."""
        if is_from_elsewhere(request.headers):
            then = link(request, safe_next(request.query.get("next", "/")))
            return self._layout.render(request, "going.html", headline="One moment", then=then)
        raise web.HTTPSeeOther(link(request, ""))

    async def _log_out(self, request: web.Request) -> web.StreamResponse:
        """Forget the link in this browser, and end what is open of it at this replica."""
        self._ended(request[VISITOR].session)
        response = led_to(request, link(request, ""))
        _set(request, response, "", 0)
        return response

    def _remember(self, request: web.Request, response: web.Response, keys: Keys, code: LinkCode) -> None:
        ends_at = self._wall() + SESSION_S_MAX
        session = LinkSession(code.namespace, code.account, code.digest, secrets.token_hex(_ID_BYTES), ends_at)
        _set(request, response, written_link(keys.session, session), SESSION_S_MAX)

    async def _form(
        self, request: web.Request, words: str = "", status: HTTPStatus = HTTPStatus.OK, code: str = ""
    ) -> web.StreamResponse:
        """Return the form, with a code where one was sent with a form that has grown old."""
        bound, csrf = self._login.bind_form(request)
        response = self._layout.render(request, "link.html", status=status, form_csrf=csrf, words=words, code=code)
        self._login.set_form_cookie(request, response, bound)
        return response


def _set(request: web.Request, response: web.Response, value: str, age_s: int) -> None:
    name = link_cookie(request)
    response.set_cookie(name, value, max_age=age_s, path="/", httponly=True, secure=True, samesite="Strict")


def below_link(handler: Handler) -> Handler:
    """Return a handler of the site for the paths below `/link`."""

    async def handle(request: web.Request) -> web.StreamResponse:
        for key in (BASE, PATH_BASE):
            request[key] = request.get(key, "") + LINK_BASE
        return await handler(request)

    return handle

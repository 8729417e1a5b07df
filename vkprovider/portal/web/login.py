"""Log in with a token of the cluster, and log out; how often somebody may try."""

import hashlib
import secrets
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from aiohttp import web

from vkprovider.platform.errors import OutsideError
from vkprovider.platform.http.answers import (
    ApiServerUnavailable,
    NotAllowed,
    TokenInvalid,
    TokenMissing,
    TooManyReviews,
    bearer,
)
from vkprovider.platform.http.bodies import FORM, Body
from vkprovider.platform.http.origin import is_from_elsewhere, is_loopback, is_own, keeps_cookies, safe_next
from vkprovider.platform.kube.flow import TokenBuckets
from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.api.callers import PortalCallers
from vkprovider.portal.web import cookie
from vkprovider.portal.web.codes import CODE_S, Codes
from vkprovider.portal.web.cookie import Keys, LoginSession, is_marked, mark
from vkprovider.portal.web.layout import Layout, led_to
from vkprovider.portal.web.visitors import (
    BASE,
    COOKIE,
    CSRF_FIELD,
    VISITOR,
    Visitors,
    cookie_name,
    form_field,
    link,
    require_own,
)


def attempt_of(peer: str, secret: str) -> str:
    """Return the name of an attempt to log in: by the connection's other end, and what is shown there.

    A whole class may share one address, and all people that of a proxy, so that what one person tries must not count
    against the others. What a header says of the sender counts for nothing: anybody may write it. Tokens that nobody
    has asked the API server about have the limits of all reviews together.

    Args:
        peer: The other end of the connection.
        secret: The token or the code; the name does not tell it.
    """
    return f"{peer} {hashlib.sha256(secret.encode(errors='replace')).hexdigest()}"


FORM_COOKIE: Final = "vkprovider-portal-form"
"""Binds the form of the login to the browser that asked for it, before there is a session."""
NO_KEY: Final = (
    "Nobody can log in yet: an admin must set VKPROVIDER_PORTAL_COOKIE_KEY for the portal, the same for all of its "
    "replicas (openssl rand -base64 32 makes one; the documentation says where it goes)."
)
_NO_TLS: Final = "This page is reached without TLS, so that your browser keeps no session; open it with https://."
_TOO_LONG: Final = f"That token has more than {cookie.TOKEN_CHARS_MAX} characters, which a browser cannot keep."
_USED: Final = "This code was used already, or is older than a minute: run `kubectl lablet portal` again."
_LEFT: Final = {
    "there": "You are logged out, also at {}.",
    "here": "You are logged out here. Your session at {} goes on: log out there too, if others use this browser.",
}
"""After a logout, by what the issuer did."""
OLD_FORM: Final = (
    "This form had grown old, or this browser had forgotten it. Here it is again, as it was: send it once more. If "
    "that does not help, the browser keeps no cookies of this page."
)
_CODE: Final = "/login/{code:[A-Za-z0-9_-]{20,64}}"
UPGRADE: Final = "/login/upgrade"
"""Opens a WebSocket to anybody, and closes it: the form finds out by it whether a proxy lets consoles through."""
_LOGIN_BODY: Final = Body(32 * 1024, (FORM,))
"""The forms of strangers: a token, or nothing but the mark of the form."""
_FORM_BYTES: Final = 16
_FORM_S: Final = 3600


class Login:
    """The handlers."""

    def __init__(
        self,
        visitors: Visitors,
        callers: PortalCallers,
        layout: Layout,
        keys: Keys | None,
        wall: Callable[[], float],
        codes: Codes | None,
        ended: Callable[[str], None],
        *,
        by_ingress: bool,
        organisation: str = "",
    ) -> None:
        """Create them.

        Args:
            visitors: Finds out who logs out.
            callers: Knows the user of a token.
            layout: Makes pages.
            keys: Of the portal; None if nobody can log in.
            wall: Returns Unix seconds.
            codes: One-time codes; None if nobody can log in.
            ended: Called with a session that somebody leaves.
            by_ingress: Whether an ingress names visitors, so that nobody need log in.
            organisation: With whose issuer people log in; "" if there is none.
        """
        self._visitors = visitors
        self._callers = callers
        self._layout = layout
        self._keys = keys
        self._wall = wall
        self._by_ingress = by_ingress
        self._organisation = organisation
        self._codes = codes
        self._ended = ended
        self._failures: TokenBuckets[str] = TokenBuckets(0.5, 20)
        self._made: TokenBuckets[str] = TokenBuckets(0.1, 10)

    def routes(self) -> tuple[Route, ...]:
        """Return the paths."""
        return (
            Route("GET", "/login", self._show),
            Route("POST", "/login", self._log_in),
            Route("POST", "/login/code", self._make_code),
            Route("GET", UPGRADE, self._upgrade),
            Route("GET", _CODE, self._show_code),
            Route("POST", _CODE, self._redeem),
            Route("POST", "/logout", self._visitors.posting(self._log_out)),
        )

    async def _show(self, request: web.Request) -> web.StreamResponse:
        """Show the form; whom another site's link has led here is sent on once, as their browser held cookies back."""
        then = safe_next(request.query.get("next", "/"))
        if is_from_elsewhere(request.headers):
            self.keys(request)
            return self._layout.render(request, "going.html", headline="One moment", then=link(request, then))
        left = _LEFT.get(request.query.get("left", "")) if self._organisation else None
        return self._form(request, then, left.format(self._organisation) if left else "")

    async def _log_in(self, request: web.Request) -> web.StreamResponse:
        """Begin the session of a token that the cluster knows."""
        keys = self.keys(request)
        fresh = self.is_fresh(request, await form_field(request, CSRF_FIELD, _LOGIN_BODY))
        token = (await form_field(request, "token", _LOGIN_BODY)).strip()
        then = safe_next(await form_field(request, "next", _LOGIN_BODY))
        if not keeps_cookies(request.headers):
            return self._form(request, then, _NO_TLS, HTTPStatus.BAD_REQUEST)
        if not fresh:
            return self._form(request, then, OLD_FORM, HTTPStatus.FORBIDDEN, token)
        attempt = attempt_of(request.remote or "", token)
        self._check(attempt)
        try:
            await self._callers.of_token(_fit(token))
        except (TokenInvalid, TokenMissing) as refusal:
            self._failures.take(attempt)
            return self._form(request, then, refusal.message, HTTPStatus.UNAUTHORIZED)
        return self.begun(request, keys, token, then)

    async def _upgrade(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        if not socket.can_prepare(request).ok:
            return web.Response(status=HTTPStatus.UPGRADE_REQUIRED, headers={"Upgrade": "websocket"})
        await socket.prepare(request)
        await socket.close()
        return socket

    async def _log_out(self, request: web.Request) -> web.StreamResponse:
        return self.ended(request, link(request, "/login"))

    # ------------------------------------------------------------------------------------------ one-time codes

    async def _make_code(self, request: web.Request) -> web.StreamResponse:
        """Answer the sender of a token with a code that stands for it: `{"code": "…", "seconds": 60}`."""
        if self._by_ingress:
            raise NotAllowed("this portal knows its visitors by an ingress: open it with a browser, without a code")
        if self._codes is None:
            raise web.HTTPServiceUnavailable(text=NO_KEY)
        token = bearer(request)
        attempt = attempt_of(request.remote or "", token)
        self._check(attempt)
        try:
            known = await self._callers.of_token(_fit(token))
        except (TokenInvalid, TokenMissing):
            self._failures.take(attempt)
            raise
        if not self._made.take(known.of_cluster.username):
            raise TooManyReviews("you have made too many codes; try again in a few seconds")
        with _asking():
            return web.json_response({"code": await self._codes.make(token), "seconds": CODE_S})

    async def _show_code(self, request: web.Request) -> web.StreamResponse:
        """Show a page that logs in; a program that only looks at an address does not use the code up.

        The page sends its form by itself, unless another site's page has led here, or somebody is logged in: nobody is
        to work in somebody else's name without having noticed.
        """
        self.keys(request)
        return await self._code_form(request)

    async def _code_form(
        self, request: web.Request, words: str = "", status: HTTPStatus = HTTPStatus.OK
    ) -> web.StreamResponse:
        try:
            other = (await self._visitors.of(request)).known.of_cluster.username
        except (web.HTTPSeeOther, TokenMissing):
            other = ""
        bound, csrf = self.bind_form(request)
        at_once = not (other or words) and is_own(request.headers, request.host)
        response = self._layout.render(
            request, "code.html", status=status, form_csrf=csrf, other=other, at_once=at_once, words=words
        )
        self.set_form_cookie(request, response, bound)
        return response

    async def _redeem(self, request: web.Request) -> web.StreamResponse:
        """Begin the session of what a code stands for."""
        keys = self.keys(request)
        fresh = self.is_fresh(request, await form_field(request, CSRF_FIELD, _LOGIN_BODY))
        if not keeps_cookies(request.headers):
            return self._form(request, "/", _NO_TLS, HTTPStatus.BAD_REQUEST)
        if not fresh:
            return await self._code_form(request, OLD_FORM, HTTPStatus.FORBIDDEN)
        code = request.match_info["code"]
        attempt = attempt_of(request.remote or "", code)
        self._check(attempt)
        with _asking():
            token = await self._codes.redeem(code) if self._codes is not None else None
        if token is None:
            self._failures.take(attempt)
            return self._form(request, "/", _USED, HTTPStatus.FORBIDDEN)
        return self.begun(request, keys, token, "/")

    # ------------------------------------------------------------------------------------------ what logins share

    def _check(self, attempt: str) -> None:
        """Refuse an attempt that has failed too often.

        Raises:
            Refused: 429.
        """
        if not self._failures.has(attempt):
            raise TooManyReviews("this login has failed too often from your address; try again in a few seconds")

    def keys(self, request: web.Request) -> Keys:
        """Return the keys of the portal.

        Raises:
            HTTPSeeOther: An ingress names visitors.
            HTTPServiceUnavailable: There are none.
        """
        if self._by_ingress:
            raise web.HTTPSeeOther(link(request, "/"))
        if self._keys is None:
            raise web.HTTPServiceUnavailable(text=NO_KEY)
        return self._keys

    def is_fresh(self, request: web.Request, sent: str) -> bool:
        """Return whether a form was made for this browser, within the hour; else it is shown again.

        Raises:
            Refused: 403: another site sends it.
        """
        require_own(request)
        bound = request.cookies.get(cookie_name(request, FORM_COOKIE), "")
        return bool(bound) and is_marked(self.keys(request).form, bound, sent)

    def bind_form(self, request: web.Request) -> tuple[str, str]:
        """Return the cookie of a form, and the token that the form sends along."""
        sent = request.cookies.get(cookie_name(request, FORM_COOKIE), "")
        bound = sent if sent.isalnum() and len(sent) == 2 * _FORM_BYTES else secrets.token_hex(_FORM_BYTES)
        return bound, mark(self.keys(request).form, bound)

    def set_form_cookie(self, request: web.Request, response: web.Response, bound: str) -> None:
        """Give a browser the cookie of a form."""
        _set(request, response, cookie_name(request, FORM_COOKIE), bound, _FORM_S)

    def begun(self, request: web.Request, keys: Keys, token: str, then: str) -> web.Response:
        """Return the answer that begins a session, and leads on."""
        response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": link(request, then)})
        self.begin_session(request, response, keys, cookie.session_of(token, self._wall()))
        return response

    def ended(self, request: web.Request, location: str) -> web.Response:
        """End the session of a visitor who was asked for; return the answer that forgets it, and leads elsewhere."""
        self._ended(request[VISITOR].session)
        response = led_to(request, location)
        self._forget(request, response, 0)
        return response

    def begin_session(self, request: web.Request, response: web.Response, keys: Keys, session: LoginSession) -> None:
        """Give a browser the cookies of a session, in place of those that it has."""
        now = self._wall()
        written = cookie.written(keys.session, cookie_name(request, COOKIE), session, request.get(BASE, ""))
        for name, chunk in written.items():
            _set(request, response, name, chunk, max(1, int(session.expires_at - now)))
        self._forget(request, response, len(written))

    def session(self, request: web.Request) -> LoginSession | None:
        """Return the session of a browser; None if it has none that goes on."""
        key, name = self.keys(request).session, cookie_name(request, COOKIE)
        return cookie.read(key, name, request.cookies, self._wall(), request.get(BASE, ""))

    def _form(
        self,
        request: web.Request,
        then: str,
        words: str = "",
        status: HTTPStatus = HTTPStatus.OK,
        token: str = "",
    ) -> web.Response:
        """Return the form, with a token where one was sent with a form that has grown old."""
        bound, csrf = self.bind_form(request)
        here = shlex.quote(f"{'http' if is_plain(request) else 'https'}://{request.host}{link(request, '')}")
        response = self._layout.render(
            request,
            "login.html",
            status=status,
            form_csrf=csrf,
            then=then,
            words=words,
            here=here,
            host=request.host,
            upgrade=UPGRADE,
            token=token,
            organisation=self._organisation,
            refused=status is HTTPStatus.UNAUTHORIZED,
        )
        self.set_form_cookie(request, response, bound)
        return response

    def _forget(self, request: web.Request, response: web.Response, kept: int) -> None:
        """Have a browser forget the cookies of an earlier session, from one of them on."""
        for at in range(kept, cookie.CHUNKS_MAX):
            name = cookie.chunk_name(cookie_name(request, COOKIE), at)
            if name in request.cookies:
                _set(request, response, name, "", 0)


def is_plain(request: web.Request) -> bool:
    """Return whether a request came without TLS, as it may on one machine: a proxy in front may have ended it."""
    return request.scheme == "http" and is_loopback(request.host)


def address_of(request: web.Request, path: str) -> str:
    """Return the address of a path of this site, as the browser has it."""
    return f"{'http' if is_plain(request) else 'https'}://{request.host}{link(request, path)}"


@contextmanager
def _asking() -> Iterator[None]:
    """Refuse a request for which the API server is needed, and does not answer.

    Raises:
        Refused: 503.
    """
    try:
        yield
    except OutsideError as error:
        raise ApiServerUnavailable(f"the API server cannot be asked for the code: {error.message}") from None


def _set(request: web.Request, response: web.Response, name: str, value: str, age_s: int) -> None:
    path = request.get(BASE, "") or "/"
    response.set_cookie(name, value, max_age=age_s, path=path, httponly=True, secure=True, samesite="Strict")


def _fit(token: str) -> str:
    """Return a token that a session can hold.

    Raises:
        Refused: 401: it can be none.
    """
    if not token:
        raise TokenMissing("Paste a token of the cluster.")
    if len(token) > cookie.TOKEN_CHARS_MAX:
        raise TokenInvalid(_TOO_LONG)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise TokenInvalid("That is no token: a token has neither blanks nor line breaks.")
    return token

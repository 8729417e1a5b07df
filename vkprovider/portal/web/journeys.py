"""Logins that a browser has begun elsewhere, at a hub or at an issuer, and comes back from with a code."""

import secrets
from collections.abc import Callable
from typing import Final

import msgspec
from aiohttp import web

from vkprovider.platform.http.origin import safe_next
from vkprovider.portal.web import cookie
from vkprovider.portal.web.cookie import Keys
from vkprovider.portal.web.visitors import BASE

STATE_COOKIE: Final = "vkprovider-portal-state"
"""Binds a login elsewhere to the browser that began it. Each has a cookie of its own: tabs log in side by side."""
LOST: Final = (
    "This login was not begun in this browser, or more than ten minutes ago, or the browser keeps no cookies of this "
    "page: it does so with https:// only. Open the page again."
)
_STATE_BYTES: Final = 16
_VERIFIER_BYTES: Final = 48
_JOURNEY_S: Final = 600
_JOURNEYS_MAX: Final = 8
"""Unfinished logins of one browser, at most: their cookies come with each request, and proxies limit its headers."""


class Journey(msgspec.Struct, frozen=True):
    """A login that was begun in a browser.

    Attributes:
        state: Comes back with the code.
        nonce: Comes back in an ID token.
        verifier: Proves whoever asks for the token as the one who began (RFC 7636).
        then: The path of the site to which it leads.
        until: When it is over, in Unix seconds.
    """

    state: str
    nonce: str
    verifier: str
    then: str
    until: float


_decoder: Final = msgspec.json.Decoder(Journey)


class Journeys:
    """Keeps them in cookies of the browsers."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall

    def begin(self, request: web.Request) -> Journey:
        """Return a new login, which leads where the request says."""
        state, nonce = secrets.token_hex(_STATE_BYTES), secrets.token_hex(_STATE_BYTES)
        then, until = safe_next(request.query.get("next", "/")), self._wall() + _JOURNEY_S
        return Journey(state, nonce, secrets.token_urlsafe(_VERIFIER_BYTES), then, until)

    def remember(self, request: web.Request, response: web.Response, keys: Keys, journey: Journey) -> None:
        """Give a browser the cookie of a login; of too many that were never finished, the oldest are forgotten."""
        under_way = sorted(
            (known.until, name)
            for name, value in request.cookies.items()
            if name.startswith(STATE_COOKIE) and (known := _opened(keys, value)) is not None
        )
        for _, name in under_way[: max(0, len(under_way) - _JOURNEYS_MAX + 1)]:
            self._set(request, response, name, "", 0)
        sealed = cookie.seal(keys.session, msgspec.json.encode(journey), STATE_COOKIE)
        self._set(request, response, _name_of(journey.state), sealed, _JOURNEY_S)

    def back(self, request: web.Request, keys: Keys) -> Journey | None:
        """Return the login that a browser comes back from; None if it has not begun it, or it is over."""
        state = request.query.get("state", "")
        journey = _opened(keys, request.cookies.get(_name_of(state), ""))
        return journey if journey is not None and journey.state == state and self._wall() < journey.until else None

    def forget(self, request: web.Request, response: web.Response, journey: Journey) -> None:
        """Have a browser forget a login that has come to its end."""
        self._set(request, response, _name_of(journey.state), "", 0)

    def _set(self, request: web.Request, response: web.Response, name: str, value: str, age_s: int) -> None:
        # What leads back here is a page of another site: a strict cookie would not come along.
        path = request.get(BASE, "") or "/"
        response.set_cookie(name, value, max_age=age_s, path=path, httponly=True, secure=True, samesite="Lax")


def _opened(keys: Keys, sealed: str) -> Journey | None:
    text = cookie.unseal(keys.session, sealed, STATE_COOKIE)
    try:
        return _decoder.decode(text) if text is not None else None
    except msgspec.MsgspecError:
        return None  # of an earlier version


def _name_of(state: str) -> str:
    return f"{STATE_COOKIE}-{state[:8]}"

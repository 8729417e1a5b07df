"""The pages behind a JupyterHub: where it is, how one logs in there and out, and the paths that lead here."""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgspec
import structlog
from aiohttp import web
from yarl import URL

from tunnels.outgoing import open_session
from vkprovider.platform.http.answers import TokenInvalid, TokenMissing
from vkprovider.platform.http.client import SilentError, ask
from vkprovider.platform.http.served import Handler
from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.api.callers import PortalCallers
from vkprovider.portal.web import cookie
from vkprovider.portal.web.cookie import Keys, is_marked, mark
from vkprovider.portal.web.journeys import LOST, Journeys
from vkprovider.portal.web.layout import Layout
from vkprovider.portal.web.login import Login
from vkprovider.portal.web.visitors import BASE, PATH_BASE, KnownVisitor, Visitors, VisitorSource, link

_log: Final = structlog.get_logger(__name__)


class HubPlace(NamedTuple):
    """A hub, and the service that the portal is there.

    Attributes:
        api_url: The API of the hub, as the portal reaches it: `http://hub:8081/hub/api`.
        service: The name of the service.
    """

    api_url: str
    service: str

    @property
    def front(self) -> str:
        """The path before those of the hub: `/`, or `/jupyter/`."""
        return urlsplit(self.api_url).path.removesuffix("/").removesuffix("hub/api")

    @property
    def base(self) -> str:
        """The path before those of the site, as the hub's proxy leads there."""
        return f"{self.front}services/{self.service}"

    @property
    def client_id(self) -> str:
        """The name of the service among the hub's OAuth clients."""
        return f"service-{self.service}"

    @property
    def callback(self) -> str:
        """The path to which the hub sends a browser back."""
        return f"{self.base}/oauth_callback"

    @property
    def logout(self) -> str:
        """The path at which one logs out of the hub."""
        return f"{self.front}hub/logout"

    def authorize(self, state: str, verifier: str) -> str:
        """Return the path to which a browser is sent, to log in.

        Args:
            state: Comes back with the code.
            verifier: Proves whoever asks for the token as the one who began (RFC 7636).
        """
        challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.callback,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{self.front}hub/api/oauth2/authorize?{urlencode(asked)}"


T = TypeVar("T")
_DEADLINE_S: Final = 15.0
_CONNECT_S: Final = 5.0
BODY_BYTES_MAX: Final = 1 << 20
_REFUSALS: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class HubRefusedError(Exception):
    """The hub knows the code of a login no more, or not the service."""


class HubSilentError(Exception):
    """The hub does not answer, or not as a hub."""


class _Access(msgspec.Struct, frozen=True):
    access_token: str


class _AuthState(msgspec.Struct, frozen=True):
    token: str = ""


class _User(msgspec.Struct, frozen=True):
    name: str
    auth_state: _AuthState | None = None


class HubLogins:
    """Asks the hub who logged in there."""

    def __init__(self, place: HubPlace, secret: str) -> None:
        """Create it; `secret` is the token of the service."""
        self._place = place
        self._secret = secret

    async def token_of(self, code: str, verifier: str) -> str:
        """Return the token of the cluster that the hub has of whom it sent back with a code; "" if it shows none.

        Raises:
            HubRefusedError: The hub does not know the code, or the service.
            HubSilentError: It does not answer, or not as a hub.
        """
        form = {
            "grant_type": "authorization_code",
            "client_id": self._place.client_id,
            "client_secret": self._secret,
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": self._place.callback,
        }
        encoded = {"Content-Type": "application/x-www-form-urlencoded"}
        access = await self._ask("POST", "/oauth2/token", _Access, data=form, headers=encoded)
        headers = {"Authorization": f"Bearer {access.access_token}"}
        user = await self._ask("GET", "/user", _User, headers=headers)
        path = f"/users/{quote(user.name, safe='')}"  # it alone shows the auth_state
        state = (await self._ask("GET", path, _User, headers=headers)).auth_state
        return state.token if state is not None else ""

    async def _ask(
        self,
        method: str,
        path: str,
        type_: type[T],
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        url = URL(f"{self._place.api_url.removesuffix('/')}{path}", encoded=True)
        try:
            async with open_session(aiohttp.TCPConnector(), connect_s_max=_CONNECT_S) as session:
                status, body, _ = await ask(
                    session,
                    method,
                    url,
                    within_s=_DEADLINE_S,
                    bytes_max=BODY_BYTES_MAX,
                    headers=headers,
                    data=data,
                )
        except SilentError as error:
            raise HubSilentError(f"{url.path}: {error}") from error
        if status in _REFUSALS:
            raise HubRefusedError(f"{url.path}: HTTP {status}")
        try:
            return msgspec.json.decode(body, type=type_)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise HubSilentError(f"{url.path}: HTTP {status}, and not what a hub answers") from error


BOUND_COOKIE: Final = "vkprovider-portal-hub"
"""Binds a session to that at the hub, so that who logs out there is logged out here."""
HUB_COOKIE: Final = "jupyterhub-session-id"
"""The hub's own, by which its services know one login from the next."""
_DENIED: Final = "The hub did not let you in: {}. Ask the hub's administrator."
_OVER: Final = (
    "The hub does not know this login any more. Open the page again; if that does not help, tell the hub's "
    "administrator."
)
_SILENT: Final = "The hub does not answer. Try again in a minute; your lab goes on."
_TOKENLESS: Final = (
    "The hub has no token of yours for the cluster. Log out of the hub, and log in again; if that does not help, tell "
    "the hub's administrator that users need the scope admin:auth_state!user, and auth_state a token."
)
_EXPIRED: Final = (
    "The cluster does not accept the token that the hub has of you: it has expired, or is not the cluster's. Log out "
    "of the hub, and log in again."
)


class HubLogin:
    """The handlers."""

    def __init__(
        self,
        place: HubPlace,
        logins: HubLogins,
        login: Login,
        callers: PortalCallers,
        layout: Layout,
        wall: Callable[[], float],
    ) -> None:
        """Create them.

        Args:
            place: Where the hub is.
            logins: Asks the hub.
            login: Begins sessions.
            callers: Knows the user of a token.
            layout: Makes pages.
            wall: Returns Unix seconds.
        """
        self._place = place
        self._logins = logins
        self._login = login
        self._callers = callers
        self._layout = layout
        self._wall = wall
        self._journeys = Journeys(wall)

    async def begin(self, request: web.Request) -> web.StreamResponse:
        """Send a browser to the hub."""
        keys, journey = self._login.keys(request), self._journeys.begin(request)
        location = self._place.authorize(journey.state, journey.verifier)
        response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": location})
        self._journeys.remember(request, response, keys, journey)
        return response

    async def come_back(self, request: web.Request) -> web.StreamResponse:
        """Begin the session of whom the hub sends back."""
        keys = self._login.keys(request)
        journey = self._journeys.back(request, keys)
        if journey is None:
            return self._refusal(request, HTTPStatus.BAD_REQUEST, LOST)
        if "error" in request.query:
            why = request.query.get("error_description") or request.query["error"]
            return self._refusal(request, HTTPStatus.FORBIDDEN, _DENIED.format(why))
        try:
            token = await self._logins.token_of(request.query.get("code", ""), journey.verifier)
            if not token:
                return self._refusal(request, HTTPStatus.FORBIDDEN, _TOKENLESS)
            await self._callers.of_token(token)
        except HubRefusedError as error:
            _log.warning("the hub refuses a login", error=str(error))
            return self._refusal(request, HTTPStatus.FORBIDDEN, _OVER)
        except HubSilentError as error:
            _log.warning("the hub does not answer a login", error=str(error))
            return self._refusal(request, HTTPStatus.SERVICE_UNAVAILABLE, _SILENT)
        except (TokenInvalid, TokenMissing):
            return self._refusal(request, HTTPStatus.FORBIDDEN, _EXPIRED)
        # A page, not a redirect: a browser that was led here by another site would not send strict cookies along.
        response = self._layout.render(request, "going.html", headline="Logged in", then=link(request, journey.then))
        self._login.begin_session(request, response, keys, cookie.session_of(token, self._wall()))
        bound = mark(keys.form, f"hub {request.cookies.get(HUB_COOKIE, '')}")
        age_s, path = cookie.SESSION_S_MAX, self._place.base
        response.set_cookie(
            BOUND_COOKIE, bound, max_age=age_s, path=path, httponly=True, secure=True, samesite="Strict"
        )
        self._journeys.forget(request, response, journey)
        return response

    async def log_out(self, request: web.Request) -> web.StreamResponse:
        """End the session here, and lead to the end of that at the hub."""
        return self._login.ended(request, self._place.logout)

    def _refusal(self, request: web.Request, status: HTTPStatus, words: str) -> web.Response:
        return self._layout.refusal(request, status, words)


class BoundToHub:
    """Knows visitors as another source does, but behind the hub only as long as they are logged in there."""

    def __init__(self, source: VisitorSource, place: HubPlace, keys: Keys) -> None:
        """Create it.

        Args:
            source: Finds out who sends a request.
            place: Where the hub is.
            keys: Of the portal.
        """
        self._source = source
        self._place = place
        self._keys = keys

    async def find(self, request: web.Request) -> KnownVisitor | None:
        """Return who sends a request; None if that person has to log in."""
        if request.get(BASE) == self._place.base:
            there = f"hub {request.cookies.get(HUB_COOKIE, '')}"
            if not is_marked(self._keys.form, there, request.cookies.get(BOUND_COOKIE, "")):
                return None
        return await self._source.find(request)


_LOGINS: Final = ("/login", "/logout")
"""What the hub does in place of the site."""


def hub_routes(login: HubLogin, visitors: Visitors) -> tuple[Route, ...]:
    """Return the paths of logins at the hub, as those of the site."""
    return (
        Route("GET", "/login", login.begin),
        Route("GET", "/oauth_callback", login.come_back),
        Route("POST", "/logout", visitors.posting(login.log_out)),
    )


def mounted(place: HubPlace, hub: Iterable[Route], site: Iterable[Route]) -> Iterator[Route]:
    """Yield the paths of the site behind a hub; they come before those of the site alone.

    Args:
        place: Where the hub is.
        hub: The paths of logins at the hub.
        site: Those of the site, with its own logins.
    """

    async def to_front(_: web.Request) -> web.StreamResponse:
        return _led(f"{place.base}/")

    async def to_lab(request: web.Request) -> web.StreamResponse:
        return _led(f"{place.base}/labs/{quote(request.match_info['hub_user'], safe='')}")

    kept = (route for route in site if not route.path.startswith(_LOGINS))
    for route in (*hub, *kept):
        yield Route(route.method, place.base + route.path, _based(place.base, route.handler))
    yield Route("GET", place.base, to_front)
    # The server of a user, in the hub's words: the proxy leads here while the spawner says that there is one.
    yield Route("GET", f"{place.front}user/{{hub_user}}{{tail:(/.*)?}}", to_lab)


def _based(base: str, handler: Handler) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        request[BASE] = request[PATH_BASE] = base
        return await handler(request)

    return handle


def _led(location: str) -> web.Response:
    return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": location, "Cache-Control": "no-store"})

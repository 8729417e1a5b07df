"""Log in with the organisation's issuer, go on there without a break, and log out.

    GET /login/organisation ──▶ the issuer ──▶ GET /login/organisation/callback ──▶ a session with the ID token as its
    token, and a refresh token
    a page that stays open ──▶ POST /login/renew, before the ID token ends ──▶ the same session with the next tokens

A refresh token is sent to the issuer once, by whichever tab and replica: a Lease with its name is made first, and
whoever finds it there sends nothing. So an answer that is lost costs a login when the session ends, and no more.
"""

import hashlib
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import msgspec
import structlog
from aiohttp import web

from vkprovider.lablet import names
from vkprovider.platform.errors import Conflict, OutsideError
from vkprovider.platform.http.answers import ApiServerUnavailable, NotAllowed, TokenInvalid, TokenMissing
from vkprovider.platform.rereading import Reread
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.parts import Route
from vkprovider.platform.settings import reveal
from vkprovider.platform.times import unix
from vkprovider.portal.api.callers import PortalCallers
from vkprovider.portal.pure import portalnames
from vkprovider.portal.web import cookie
from vkprovider.portal.web.cookie import LoginSession
from vkprovider.portal.web.issuer import Issuer, IssuerClient, IssuerRefusedError, IssuerSilentError
from vkprovider.portal.web.journeys import LOST, Journeys
from vkprovider.portal.web.layout import Layout, SiteContext
from vkprovider.portal.web.login import Login, address_of
from vkprovider.portal.web.visitors import Visitors, link

_log: Final = structlog.get_logger(__name__)
_CALLBACK: Final = "/login/organisation/callback"
_DENIED: Final = "{} did not let you in: {}. Ask whoever runs it."
_OVER: Final = "{} does not know this login any more. Log in again; if that does not help, tell whoever runs the labs."
_SILENT: Final = "{} does not answer. Try again in a minute; your lab goes on."
_UNKNOWN: Final = (
    "You are logged in at {}, but the cluster of the labs does not know its logins. Tell whoever runs the labs that "
    "the API server must trust this issuer with the portal's client as its audience."
)
_SWEEP_S: Final = 60.0


class RefreshTokens:
    """Sees that each refresh token is sent to the issuer once, by all replicas together."""

    def __init__(self, ctx: Context) -> None:
        self._ctx: Final = ctx
        self._leases: Final = ctx.api.member_leases
        self._swept_at = 0.0

    async def take(self, refresh_token: str, until: float) -> str:
        """Return the name by which a refresh token is taken; "" if it was before.

        Args:
            refresh_token: It.
            until: When the session ends that holds it, in Unix seconds: nobody can send it afterwards.

        Raises:
            OutsideError: The API server refused or did not answer; the token may be taken.
        """
        await self._sweep()
        name = f"{portalnames.PORTAL_PROGRAM}-renewal-{hashlib.sha256(refresh_token.encode()).hexdigest()[:40]}"
        seconds = max(1, int(until - self._ctx.wall()))
        labels = {names.LABEL_COMPONENT: portalnames.COMPONENT_RENEWAL}
        try:
            await self._leases.create(
                {"metadata": {"name": name, "labels": labels}, "spec": {"leaseDurationSeconds": seconds}}
            )
        except Conflict:
            return ""
        return name

    async def give_back(self, name: str) -> None:
        """Let a token be taken again that was surely not sent."""
        await self._leases.delete(name)

    async def _sweep(self) -> None:
        """Remove, once a minute, what stands for tokens of sessions that are over."""
        now = self._ctx.wall()
        if now < self._swept_at + _SWEEP_S:
            return
        self._swept_at = now
        for lease in await self._leases.list(labels=f"{names.LABEL_COMPONENT}={portalnames.COMPONENT_RENEWAL}"):
            made_at, seconds = unix(lease.metadata.creation_timestamp), lease.spec.lease_duration_seconds or 0
            if made_at is not None and now > made_at + seconds + _SWEEP_S:
                await self._leases.delete(lease.metadata.name, uid=lease.metadata.uid)


@dataclass(frozen=True, slots=True, eq=False)
class OpenIdLogin:
    """The handlers.

    Attributes:
        issuer: Of the organisation.
        name: The organisation's, for people.
        login: Begins and ends sessions.
        visitors: Finds out who renews, or logs out.
        callers: Knows the user of a token.
        layout: Makes pages.
        refresh_tokens: Sees that each is sent once.
        journeys: Logins that are under way at the issuer.
        wall: Returns Unix seconds.
        renewed: Called with a session that goes on with another token.
    """

    issuer: Issuer
    name: str
    login: Login
    visitors: Visitors
    callers: PortalCallers
    layout: Layout
    refresh_tokens: RefreshTokens
    journeys: Journeys
    wall: Callable[[], float]
    renewed: Callable[[LoginSession], None]

    def routes(self) -> tuple[Route, ...]:
        """Return the paths."""
        return (
            Route("GET", "/login/organisation", self._begin),
            Route("GET", _CALLBACK, self._come_back),
            Route("POST", "/login/renew", self.visitors.posting(self._renew)),
            Route("POST", "/logout", self.visitors.posting(self._log_out)),
        )

    async def _begin(self, request: web.Request) -> web.StreamResponse:
        """Send a browser to the issuer."""
        keys, journey, uri = self.login.keys(request), self.journeys.begin(request), address_of(request, _CALLBACK)
        try:
            location = await self.issuer.authorize(
                redirect_uri=uri, state=journey.state, nonce=journey.nonce, verifier=journey.verifier
            )
        except (IssuerRefusedError, IssuerSilentError) as error:
            return self._silent(request, error)
        response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": location})
        self.journeys.remember(request, response, keys, journey)
        return response

    async def _come_back(self, request: web.Request) -> web.StreamResponse:
        """Begin the session of whom the issuer sends back."""
        keys = self.login.keys(request)
        journey = self.journeys.back(request, keys)
        if journey is None:
            return self.layout.refusal(request, HTTPStatus.BAD_REQUEST, LOST)
        if "error" in request.query:
            why = request.query.get("error_description") or request.query["error"]
            return self.layout.refusal(request, HTTPStatus.FORBIDDEN, _DENIED.format(self.name, why))
        code, uri = request.query.get("code", ""), address_of(request, _CALLBACK)
        try:
            tokens = await self.issuer.exchange(code, redirect_uri=uri, nonce=journey.nonce, verifier=journey.verifier)
            await self.callers.of_token(tokens.id_token)
        except IssuerRefusedError as error:
            _log.warning("the issuer refuses a login", error=str(error))
            return self.layout.refusal(request, HTTPStatus.FORBIDDEN, _OVER.format(self.name))
        except IssuerSilentError as error:
            return self._silent(request, error)
        except (TokenInvalid, TokenMissing) as refusal:
            _log.warning("the API server does not know a login of the issuer", error=refusal.message)
            return self.layout.refusal(request, HTTPStatus.FORBIDDEN, _UNKNOWN.format(self.name))
        session = cookie.session_of(tokens.id_token, self.wall())
        session = msgspec.structs.replace(session, refresh_token=tokens.refresh_token, subject=tokens.subject)
        # A page, not a redirect: a browser that was led here by another site would not send strict cookies along.
        response = self.layout.render(request, "going.html", headline="Logged in", then=link(request, journey.then))
        self.login.begin_session(request, response, keys, session)
        self.journeys.forget(request, response, journey)
        return response

    def _silent(self, request: web.Request, error: Exception) -> web.StreamResponse:
        _log.warning("the issuer does not answer a login", error=str(error))
        return self.layout.refusal(request, HTTPStatus.SERVICE_UNAVAILABLE, _SILENT.format(self.name))

    # ------------------------------------------------------------------------------------------ renewal

    async def _renew(self, request: web.Request) -> web.StreamResponse:
        """Go on with the next token: `{"seconds": 3600, "ticket": "…"}`, its time, and what tells open consoles.

        Raises:
            Refused: 403: the session ends with its token; 503: nothing was sent, and it may be asked for again.
            HTTPConflict: The refresh token was sent before, and its answer is lost, or another tab's.
        """
        keys, session = self.login.keys(request), self.login.session(request)
        if session is None or not session.refresh_token:
            raise NotAllowed("this session ends with its token: log in again then")
        try:
            taken = await self.refresh_tokens.take(session.refresh_token, session.expires_at)
            if not taken:
                raise web.HTTPConflict(text="this session was renewed already, and the answer is another tab's or lost")
            renewed = await self._next(session, taken)
        except OutsideError as error:
            raise ApiServerUnavailable(f"the API server cannot be asked to renew the login: {error.message}") from None
        self.renewed(renewed)
        seconds = max(0, int(renewed.expires_at - self.wall()))
        response = web.json_response({"seconds": seconds, "ticket": cookie.ticket(keys.session, renewed)})
        self.login.begin_session(request, response, keys, renewed)
        return response

    async def _next(self, session: LoginSession, taken: str) -> LoginSession:
        """Return a session with its next token.

        Raises:
            Refused: 403: the issuer refuses, or names somebody else; 503: it was not reached.
            HTTPConflict: It may have got the request; its answer is lost.
        """
        try:
            tokens = await self.issuer.renew(session.refresh_token)
        except IssuerRefusedError as error:
            _log.info("the issuer does not renew a login", error=str(error))
            raise NotAllowed(f"{self.name} does not renew this login: log in again") from None
        except IssuerSilentError as error:
            _log.warning("the issuer does not answer a renewal", error=str(error))
            if not error.reached:
                await self.refresh_tokens.give_back(taken)
                raise ApiServerUnavailable(f"{self.name} cannot be reached to renew this login") from None
            raise web.HTTPConflict(text=f"{self.name} did not answer in time: log in again later") from None
        if tokens.subject != session.subject:
            raise NotAllowed(f"{self.name} names somebody else now: log in again")
        await self.callers.of_token(tokens.id_token)
        return cookie.renewed(session, tokens.id_token, tokens.refresh_token, self.wall())

    # ------------------------------------------------------------------------------------------ the end

    async def _log_out(self, request: web.Request) -> web.StreamResponse:
        """End the session here, and lead to the end of that at the issuer."""
        session, there = self.login.session(request), ""
        if session is None or not session.subject:  # of a token or a code
            return self.login.ended(request, link(request, "/login"))
        try:
            there = await self.issuer.log_out(session.token, address_of(request, "/login?left=there"))
        except (IssuerRefusedError, IssuerSilentError) as error:
            _log.warning("the issuer does not say where one logs out", error=str(error))
        return self.login.ended(request, there or link(request, "/login?left=here"))


def openid_login(site: SiteContext, login: Login, renewed: Callable[[LoginSession], None]) -> OpenIdLogin:
    """Return the login with the issuer that the settings name.

    Raises:
        InputError: `SettingInvalid`: the file with its authorities cannot be used.
    """
    settings, wall = site.settings, site.ctx.wall
    client = IssuerClient(
        settings.oidc_issuer,
        settings.oidc_client_id,
        reveal(settings.oidc_client_secret) or "",
        tuple(settings.oidc_scopes.split()),
        settings.oidc_prompt,
    )
    authorities = settings.oidc_ca_file
    tls = Reread([authorities], lambda: ssl.create_default_context(cafile=authorities))
    return OpenIdLogin(
        issuer=Issuer(client, wall, tls.current),
        name=settings.oidc_name,
        login=login,
        visitors=site.visitors,
        callers=site.callers,
        layout=site.layout,
        refresh_tokens=RefreshTokens(site.ctx),
        journeys=Journeys(wall),
        wall=wall,
        renewed=renewed,
    )

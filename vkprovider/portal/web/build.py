"""The web pages of the portal, made of all their views, and how each request ends."""

import os
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from aiohttp import web

from vkprovider.platform.http.answers import Refused
from vkprovider.platform.http.served import Handler, served
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.parts import Route
from vkprovider.platform.siteaddress import SiteAddress, address_used
from vkprovider.portal.api.callers import PortalCallers
from vkprovider.portal.service.choices import Choices
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.informers import OtherLablets
from vkprovider.portal.service.keeper import Instructors
from vkprovider.portal.service.learners import LabletLearners
from vkprovider.portal.service.leftwork import LeftWork
from vkprovider.portal.service.requests import Rejected, Requests
from vkprovider.portal.settings import PortalProcessSettings, PortalSettings
from vkprovider.portal.web.classes.routes import routes as classes_routes
from vkprovider.portal.web.codes import Codes
from vkprovider.portal.web.consoles.bridge import BrowserConsoles
from vkprovider.portal.web.consoles.routes import downloads
from vkprovider.portal.web.consoles.routes import routes as consoles_routes
from vkprovider.portal.web.cookie import KEY_BYTES, Keys, keys_of
from vkprovider.portal.web.front import Teachers, front_routes
from vkprovider.portal.web.hub import BoundToHub, HubLogin, HubLogins, HubPlace, hub_routes, mounted
from vkprovider.portal.web.lab.routes import routes as lab_routes
from vkprovider.portal.web.layout import HEADERS, HERE, PIECE, PREFIX, VIEWS, Assets, Layout, SiteContext
from vkprovider.portal.web.links import LINK_BASE, below_link
from vkprovider.portal.web.linksite import LinkSite, links_site
from vkprovider.portal.web.live.streams import Live, live_parts
from vkprovider.portal.web.live.streams import routes as live_routes
from vkprovider.portal.web.login import Login
from vkprovider.portal.web.openid import openid_login
from vkprovider.portal.web.visitors import (
    BASE,
    PATH_BASE,
    SECURE,
    AsVisitor,
    OldForm,
    Visitors,
    below_base,
    link,
    source_of,
)
from vkprovider.portal.web.workbench import BenchDoor

_REDIRECTS: Final = range(300, 400)
_WORDS: Final = {
    404: "The page does not exist, or it is not for you.",
    400: "The portal cannot read this request; load the page again.",
}


def answering(layout: Layout, route: Route) -> Route:
    """Return a route whose refusals are pages, and whose requests are logged by the route: a path may hold a secret."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return await _answer(layout, route.handler, request)

    return route._replace(handler=served(handle, HEADERS, route.path))


def located(addresses: Sequence[SiteAddress], route: Route, left: str = "") -> Route:
    """Return a route whose requests have scheme and host of the address that the browser used, if that is known.

    Args:
        addresses: Those of the site.
        route: The route.
        left: The base that is before its path, if a proxy leaves it there.
    """
    if not addresses:
        return route
    secure = addresses[0].scheme == "https"

    async def handle(request: web.Request) -> web.StreamResponse:
        used = address_used(addresses, request.headers, request.host, left)
        if used is not None:
            request = request.clone(scheme=used.scheme, host=used.host)
            request.setdefault(BASE, used.base)
            request.setdefault(PATH_BASE, left)
        request[SECURE] = secure
        return await route.handler(request)

    return route._replace(handler=handle)


def _at_addresses(addresses: Sequence[SiteAddress], routes: Sequence[Route]) -> list[Route]:
    """Return routes where a proxy may have them: below the path of an address, which it leaves, and without it.

    Those that take any path come last: with the address https://example.com/labs the path /labs/alice may be either.
    """
    bases = sorted({each.base for each in addresses} - {""})
    kept = [located(addresses, route._replace(path=base + route.path), base) for base in bases for route in routes]
    return sorted([*kept, *(located(addresses, route) for route in routes)], key=_takes_any)


def _takes_any(route: Route) -> bool:
    return route.path.endswith(".*}")


async def _answer(layout: Layout, handler: Handler, request: web.Request) -> web.StreamResponse:
    try:
        return await handler(request)
    except Rejected as error:
        return _refusal(layout, request, error.rejection.grounds.status, error.rejection.msg)
    except OldForm as refusal:
        if not refusal.fields or PIECE in request.headers or "application/json" in request.headers.get("Accept", ""):
            return _refusal(layout, request, refusal.status_code, refusal.message)
        action = link(request, below_base(request))
        return layout.render(request, "again.html", status=refusal.status_code, fields=refusal.fields, action=action)
    except Refused as refusal:
        response = _refusal(layout, request, refusal.status_code, refusal.message)
        response.headers.update(refusal.directions())
        return response
    except web.HTTPException as error:
        if error.status in _REDIRECTS and PIECE in request.headers and request.method == "POST":
            return web.Response(status=HTTPStatus.NO_CONTENT, headers={"X-Location": error.headers["Location"]})
        if error.status in _REDIRECTS:
            return web.Response(status=error.status, headers={"Location": error.headers["Location"]})
        return _refusal(layout, request, error.status, _WORDS.get(error.status) or error.text or error.reason)


def _refusal(layout: Layout, request: web.Request, status: int, words: str) -> web.Response:
    """Return a refusal as a page, or as JSON for a program: `{"code": 403, "message": "…"}`."""
    if "application/json" in request.headers.get("Accept", ""):
        return web.json_response({"code": status, "message": words}, status=status)
    return layout.refusal(request, status, words)


class PortalSite(NamedTuple):
    """The site of a replica.

    Attributes:
        routes: Its paths.
        context: What its views share.
        live: What changes by itself.
        linked: What links open.
        codes: One-time codes; None if nobody can log in.
        consoles: The open consoles.
        benches: Leads to workbenches; None if nothing does.
    """

    routes: tuple[Route, ...]
    context: SiteContext
    live: Live
    linked: LinkSite
    codes: Codes | None
    consoles: BrowserConsoles
    benches: BenchDoor | None

    async def finish(self) -> None:
        """End what goes on."""
        self.consoles.close()
        if self.codes is not None:
            await self.codes.finish()
        if self.benches is not None:
            await self.benches.finish()
        await self.live.finish()
        await self.linked.live.finish()


def portal_site(
    ctx: Context,
    settings: PortalProcessSettings,
    index: UserLabIndex,
    lablets: OtherLablets,
    learners: LabletLearners,
    instructors: Instructors,
    requests: Requests,
    choices: Choices,
    *,
    left: LeftWork,
    callers: PortalCallers,
) -> PortalSite:
    """Make the site of a replica.

    Args:
        ctx: The replica.
        settings: The portal's, and how it reaches the API server.
        index: All user labs.
        lablets: All other lablets.
        learners: Whose the lablets of classes are.
        instructors: Whom the RoleBindings of classes name.
        requests: Makes, deletes and extends labs.
        choices: The menu and the quotas.
        left: Says what learners have left, and what visitors have saved.
        callers: Finds out who asks, and says what they may.
    """
    keys, assets = _keys(settings.portal), Assets([HERE / "static", *(HERE / view / "static" for view in VIEWS)])
    teachers, place = Teachers(instructors), _hub_of(settings.portal)
    some_keys = keys or keys_of(os.urandom(KEY_BYTES))
    source = source_of(settings.portal, callers, keys, ctx.wall)
    visitors = Visitors(source if place is None else BoundToHub(source, place, some_keys), some_keys)
    codes = Codes(ctx, keys.code) if keys is not None and settings.portal.callers != "headers" else None
    site = SiteContext(
        ctx=ctx,
        settings=settings.portal,
        index=index,
        lablets=lablets,
        learners=learners,
        instructors=instructors,
        requests=requests,
        choices=choices,
        callers=callers,
        visitors=visitors,
        layout=Layout(assets, teachers.teaches),
        as_visitor=AsVisitor(settings.kube, ctx.replica),
        left=left,
    )
    live, consoles, benches = live_parts(site), BrowserConsoles(ctx.wall), _benches(site, keys)
    login, of_logins = _login(site, live, keys, codes)
    static = Route("GET", f"{PREFIX}/{{name:.+}}", assets.serve)
    of_people = (*of_logins, *(benches.routes() if benches is not None else ()))
    of_labs = (*_routes_of_views(site, live, consoles), *front_routes(site, live, teachers))
    linked = links_site(site, login, some_keys, consoles)
    answered = [
        [answering(site.layout, one) for one in each]
        for each in ((static, *linked.routes), (static, *of_people, *of_labs))
    ]
    return PortalSite(tuple(_placed(site, login, place, *answered)), site, live, linked, codes, consoles, benches)


def _benches(site: SiteContext, keys: Keys | None) -> BenchDoor | None:
    hosts, secret = site.settings.bench_hosts, site.settings.cookie_secret
    return BenchDoor(site, hosts, keys, secret) if hosts and keys and secret else None


def _placed(
    site: SiteContext, login: Login, place: HubPlace | None, links: Sequence[Route], here: Sequence[Route]
) -> Iterator[Route]:
    """Yield the paths of a site where they are: behind a hub, below the paths of its addresses, and without more.

    Args:
        site: What its views share.
        login: What all logins share.
        place: Where the hub is; None if there is none.
        links: The pages that links open, which no hub has; they are below `/link`.
        here: All others.
    """
    settings, addresses = site.settings, site.settings.addresses
    by_link = [route._replace(path=LINK_BASE + route.path, handler=below_link(route.handler)) for route in links]
    if place is None or settings.hub_token is None:
        yield from _at_addresses(addresses, [*by_link, *here])
        return
    logins = HubLogins(place, settings.hub_token.get_secret_value())
    hub = HubLogin(place, logins, login, site.callers, site.layout, site.ctx.wall)
    of_hub = [answering(site.layout, route) for route in hub_routes(hub, site.visitors)]
    yield from mounted(place, *([located(addresses, route, place.base) for route in each] for each in (of_hub, here)))
    yield from (located(addresses, route) for route in (*by_link, *here))


def _login(site: SiteContext, live: Live, keys: Keys | None, codes: Codes | None) -> tuple[Login, tuple[Route, ...]]:
    """Return what all logins share, and the paths of those that are here."""
    settings, sessions = site.settings, live.reviews.sessions
    organisation = settings.oidc_name if settings.oidc_issuer else ""
    login = Login(
        site.visitors,
        site.callers,
        site.layout,
        keys,
        site.ctx.wall,
        codes,
        sessions.end,
        by_ingress=settings.callers == "headers",
        organisation=organisation,
    )
    if not organisation:
        return login, login.routes()
    openid = openid_login(site, login, live.reviews.renewed)
    return login, (*openid.routes(), *login.routes())  # its logout comes before the other


def _routes_of_views(site: SiteContext, live: Live, consoles: BrowserConsoles) -> tuple[Route, ...]:
    places = downloads()
    return (
        *lab_routes(site, live),
        *consoles_routes(site, live, consoles, places),
        *classes_routes(site, live, places),
        *live_routes(live),
    )


def _hub_of(settings: PortalSettings) -> HubPlace | None:
    return HubPlace(settings.hub_api_url, settings.hub_service) if settings.hub_api_url else None


def _keys(settings: PortalSettings) -> Keys | None:
    """Return the keys of a portal; None if nobody can log in."""
    secret = settings.cookie_secret
    if secret is None and settings.callers == "headers" and settings.ingress_secret is not None:
        secret = settings.ingress_secret.get_secret_value().encode()
    return keys_of(secret) if secret is not None else None

"""The site below `/link`: the page that opens links, and of all views the one lablet that a link leads to."""

import dataclasses
from typing import Final, NamedTuple

from aiohttp import web

from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.web.consoles.bridge import BrowserConsoles
from vkprovider.portal.web.consoles.routes import downloads
from vkprovider.portal.web.consoles.routes import routes as consoles_routes
from vkprovider.portal.web.cookie import Keys
from vkprovider.portal.web.lab.given import given_place, given_routes
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.links import AskingByLink, ByLink, LinkPages, LinkTokens, LinkTries
from vkprovider.portal.web.live.streams import Live, Streams
from vkprovider.portal.web.live.streams import routes as live_routes
from vkprovider.portal.web.live.topics import Topics
from vkprovider.portal.web.login import Login
from vkprovider.portal.web.visitors import VisitorReviews, Visitors, lead_on

_GIVEN: Final = "/lablets/"
"""What the paths of given lablets begin with."""


class LinkSite(NamedTuple):
    """What links open.

    Attributes:
        routes: The paths of its pages.
        context: What they share.
        live: What changes on them by itself.
        tries: Opens links.
    """

    routes: tuple[Route, ...]
    context: SiteContext
    live: Live
    tries: LinkTries


def links_site(site: SiteContext, login: Login, keys: Keys, consoles: BrowserConsoles) -> LinkSite:
    """Return what links open.

    Args:
        site: The other pages, whose visitors are others.
        login: Binds forms to browsers.
        keys: Of the cookies.
        consoles: The open ones, of all pages.
    """
    tokens, wall = LinkTokens(site.ctx.kube), site.ctx.wall
    tries = LinkTries(tokens)
    visitors = Visitors(ByLink(tokens, site.callers, keys.session, wall), keys)
    here = dataclasses.replace(site, visitors=visitors)
    reviews = VisitorReviews(AskingByLink(tokens, site.as_visitor).ask, wall=wall)
    topics = Topics()
    live = Live(topics, reviews, Streams(visitors, topics, reviews, wall, site.index.age_s))

    def place(namespace: str, pod: str) -> str:
        return given_place(namespace, pod).path

    async def nowhere(request: web.Request) -> web.StreamResponse:
        lead_on(request)
        await visitors.of(request)
        raise web.HTTPNotFound

    pages = LinkPages(tries, visitors, login, site.layout, wall, reviews.sessions.end, place)
    shown = (each for each in consoles_routes(here, live, consoles, downloads()) if each.path.startswith(_GIVEN))
    routes = (*pages.routes(), *given_routes(here, live), *shown, *live_routes(live))
    return LinkSite((*routes, Route("GET", "/{path:.*}", nowhere)), here, live, tries)

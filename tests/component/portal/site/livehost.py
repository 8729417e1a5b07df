"""Pages that change by themselves, without a portal around them: boards whose text a test writes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from markupsafe import escape

from tests.support.proxy import Proxy
from tests.support.tcp import port_of
from vkprovider.platform.http.answers import NotAllowed
from vkprovider.platform.http.connections import listen, runner_of
from vkprovider.platform.http.open import ReviewTimes
from vkprovider.platform.rights import Right, User
from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.api.callers import KnownCaller, lab_right
from vkprovider.portal.service.index import Listeners
from vkprovider.portal.service.requests import LabCaller
from vkprovider.portal.web.build import answering
from vkprovider.portal.web.cookie import keys_of
from vkprovider.portal.web.layout import HERE, VIEWS, Assets, Layout
from vkprovider.portal.web.live.streams import Streams
from vkprovider.portal.web.live.topics import Rendered, Topics, TopicSource, TopicView
from vkprovider.portal.web.visitors import KnownVisitor, Visitor, VisitorReviews, Visitors

LOST: Final = "Connection lost; your lab goes on."
_END: Final = "2099-01-01T00:00:00Z"
_MAIN: Final = '<main id="main" tabindex="-1">'


class Host:
    """A site of boards, at an address of its own behind a proxy that cuts connections.

    Attributes:
        known: Whether the visitor is logged in.
        allowed: Whether the visitor may see boards.
        streams_total: Streams that were asked for.
        age_s: How old what is shown may be.
    """

    def __init__(self) -> None:
        self.known = True
        self.allowed = True
        self.streams_total = 0
        self.age_s = 0.0
        self.boards: dict[str, Rendered] = {}
        self._listeners: Listeners[str] = Listeners()
        self._assets = Assets([HERE / "static", *(HERE / view / "static" for view in VIEWS)])
        self._layout = Layout(self._assets)
        self._visitors = Visitors(self, keys_of(b"k" * 32))
        self.topics = Topics()
        self.topics.register(TopicSource("board", self._may_see, self._render, self._listeners.listen))
        self.reviews = VisitorReviews(self._ask, ReviewTimes(first_s=0.5, every_s=1.0, again_s=0.5))
        self.streams = Streams(self._visitors, self.topics, self.reviews, age_s=lambda: self.age_s)

    def write(self, name: str, state: str, **rows: str) -> None:
        """Change a board."""
        text = escape(state)
        self.boards[name] = Rendered(
            {
                "state": f'<section id="state"><h2>State</h2><p id="words" aria-live="polite">{text}</p>'
                f"<details><summary>More</summary><p>about {text}</p></details>"
                f'<p>Until <time id="until" datetime="{_END}" data-until="{_END}">later</time></p></section>',
                "form": f'<form id="form"><p>{text}</p><label for="minutes">Minutes</label>'
                '<input id="minutes" type="text" value="15"></form>',
            },
            {"rows": {f"row-{key}": f'<li id="row-{key}">{key} {escape(words)}</li>' for key, words in rows.items()}},
        )
        self._listeners.tell(name)

    def remove(self, name: str) -> None:
        """Take a board away."""
        del self.boards[name]
        self._listeners.tell(name)

    # ------------------------------------------------------------------------------------------ the site

    async def find(self, request: web.Request) -> KnownVisitor | None:  # noqa: ARG002 (as its caller has it)
        """Know everybody as alice, or nobody."""
        known = KnownCaller(User("alice"), LabCaller("alice", "alice", (), "t"))
        return KnownVisitor(known, "t", "session", leaves=True) if self.known else None

    async def _may_see(self, visitor: Visitor, name: str) -> TopicView:  # noqa: ARG002 (as its caller has it)
        if not self.allowed or name == "secret":
            raise NotAllowed("no")
        return TopicView("owner", lab_right("use", "portal", name))

    async def _ask(self, visitor: Visitor, right: Right) -> bool:  # noqa: ARG002 (as its caller has it)
        return self.allowed

    def _render(self, name: str, role: str, base: str) -> Rendered | None:  # noqa: ARG002 (as its caller has it)
        return self.boards.get(name)

    async def _page(self, request: web.Request) -> web.StreamResponse:
        await self._visitors.of(request)
        name = request.match_info["name"]
        shown = self.topics.now("board", name, "owner", "")
        assert shown is not None
        elements, rows = shown.rendered.elements, "".join(shown.rendered.lists["rows"].values())
        page = self._layout.render(request, "layout.html")
        assert page.text is not None
        page.text = page.text.replace("<title>", f"<title>{name}").replace(
            _MAIN,
            f'<main id="main" tabindex="-1" data-topic="board:{name}" data-version="{shown.version}">'
            f"<h1>{name}</h1>{elements['state']}{elements['form']}"
            '<div id="panel" data-live-keep><label for="typed">Console</label><input id="typed" type="text"></div>'
            f'<ol id="rows">{rows}</ol>',
        )
        return page

    async def _live(self, request: web.Request) -> web.StreamResponse:
        self.streams_total += 1
        return await self.streams.serve(request)

    def app(self) -> web.Application:
        """Return the site."""
        app = web.Application()
        for route in (
            Route("GET", "/static/{name:.+}", self._assets.serve),
            Route("GET", "/boards/{name}", self._page),
            Route("GET", "/live", self._live),
        ):
            app.router.add_route(route.method, route.path, answering(self._layout, route).handler)
        return app


@asynccontextmanager
async def hosting() -> AsyncIterator[tuple[Host, Proxy]]:
    """Serve a site with one board, `lab`, behind a proxy."""
    host = Host()
    host.write("lab", "booting", r1="off", r2="off")
    runner = runner_of(host.app(), shutdown_s=1.0)
    await runner.setup()
    server = await listen(runner, "127.0.0.1", 0)
    try:
        with Proxy("127.0.0.1", port_of(server)) as proxy:
            yield host, proxy
    finally:
        host.streams.close()
        server.close()
        await runner.cleanup()

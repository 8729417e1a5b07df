"""Pages and pieces of pages: templates, links, headers; and the pages that say why something is refused."""

import secrets
from pathlib import Path
from typing import Any, Final

import jinja2
from aiohttp import web

from vkprovider.portal.web.assets import Assets
from vkprovider.portal.web.headers import policy
from vkprovider.portal.web.visitor import Visitor

HERE: Final = Path(__file__).parent
VIEWS: Final = ("classes", "consoles", "lab", "live")
"""The packages that have templates, whose names begin with the package's, and assets of their own."""
BASE: Final = web.RequestKey("base", str)
"""Under this key a request knows the path that is before those of the site; without it there is none."""
VISITOR: Final = web.RequestKey("visitor", Visitor)
"""Under this key a request knows its sender, once that was asked for."""
PIECE: Final = "X-Piece"
"""The header of a request of a script, which puts the answer into the page that is there."""
_PACKED_BYTES_MIN: Final = 4096
_NONCE_BYTES: Final = 16


class Layout:
    """Makes pages of templates."""

    def __init__(self, assets: Assets) -> None:
        """Read no template yet."""
        self._assets = assets
        self._environment = jinja2.Environment(
            loader=jinja2.ChoiceLoader(
                [
                    jinja2.FileSystemLoader(HERE / "templates"),
                    jinja2.PrefixLoader({name: jinja2.FileSystemLoader(HERE / name / "templates") for name in VIEWS}),
                ]
            ),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )

    def render(
        self,
        request: web.Request,
        template: str,
        *,
        status: int = 200,
        nonce: bool = False,
        framed: bool = False,
        **values: Any,
    ) -> web.Response:
        """Return a page.

        Args:
            request: What it answers; if its sender was asked for, the page shows who that is.
            template: `layout.html` of this package, or `lab/page.html` of a view.
            status: The HTTP status.
            nonce: Whether a script of this page makes style elements: the template finds their `nonce`.
            framed: Whether another page of the site may show this one in a frame.
            values: What the template shows.
        """
        visitor = request.get(VISITOR)
        key = secrets.token_urlsafe(_NONCE_BYTES) if nonce else ""
        text = self._html(
            template,
            request.get(BASE, ""),
            {"csrf": visitor.csrf if visitor is not None else "", **values, "visitor": visitor, "nonce": key},
        )
        response = web.Response(
            text=text,
            status=status,
            content_type="text/html",
            headers={"Content-Security-Policy": policy(key, framed=framed)},
        )
        if len(text) >= _PACKED_BYTES_MIN:
            response.enable_compression()
        return response

    def html(self, template: str, *, base: str = "", **values: Any) -> str:
        """Return a piece of a page that many see: it knows no visitor, and its forms have no token.

        `site.js` fills the token of the page in when such a form is sent.

        Args:
            template: As in `render`.
            base: The path before those of the site.
            values: What the template shows.
        """
        return self._html(template, base, {"csrf": "", **values, "visitor": None, "nonce": ""})

    def refusal(self, request: web.Request, status: int, words: str) -> web.Response:
        """Return why a request is refused: a page, or a sentence for the page that is there."""
        piece = PIECE in request.headers
        title = _TITLES.get(status, "That was not done")
        return self.render(
            request, "_refusal.html" if piece else "refusal.html", status=status, words=words, headline=title
        )

    def _html(self, template: str, base: str, values: dict[str, Any]) -> str:
        def link(path: str) -> str:
            return link_to(base, path)

        def asset(name: str) -> str:
            return link_to(base, self._assets.path(name))

        return self._environment.get_template(template).render(values, link=link, asset=asset)


_TITLES: Final = {
    401: "Log in first",
    403: "You may not do this",
    404: "There is nothing here for you",
    429: "Too many requests",
    503: "Not now",
}


def link_to(base: str, path: str) -> str:
    """Return a path of the site as a browser asks for it."""
    return f"{base.rstrip('/')}{path}"


def link(request: web.Request, path: str) -> str:
    """Return a path of the site as the browser of a request asks for it."""
    return link_to(request.get(BASE, ""), path)

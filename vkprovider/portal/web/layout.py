"""Pages and pieces of pages: templates, files under names that change with their content; what every view is given."""

import gzip
import hashlib
import mimetypes
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import jinja2
from aiohttp import web

from vkprovider.platform.http.served import strict_headers
from vkprovider.platform.runtime.context import Context
from vkprovider.portal.api.callers import PortalCallers
from vkprovider.portal.service.choices import Choices
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.informers import OtherLablets
from vkprovider.portal.service.keeper import Instructors
from vkprovider.portal.service.learners import LabletLearners
from vkprovider.portal.service.leftwork import LeftWork
from vkprovider.portal.service.requests import Requests
from vkprovider.portal.settings import PortalSettings
from vkprovider.portal.web.visitors import BASE, VISITOR, AsVisitor, Visitor, Visitors, link_to

PREFIX: Final = "/static"
_DIGEST_CHARS: Final = 12
_KINDS: Final = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_HEADERS: Final = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}


class Asset(NamedTuple):
    """A file that is served as it is.

    Attributes:
        kind: Its media type.
        body: Its bytes.
        packed: The same as gzip; empty if that is not shorter.
    """

    kind: str
    body: bytes
    packed: bytes


class Assets:
    """The files of some folders."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Read all files; their names differ, whichever folder they are in."""
        self._hashed: dict[str, str] = {}
        self._served: dict[str, Asset] = {}
        for folder in folders:
            for path in sorted(each for each in folder.rglob("*") if each.is_file()):
                self._add(path.relative_to(folder).as_posix(), path.read_bytes())

    def _add(self, name: str, body: bytes) -> None:
        if name in self._hashed:
            raise ValueError(f"two assets have the name {name}")
        hashed = hashed_name(name, body)
        packed = gzip.compress(body, mtime=0)
        self._hashed[name] = hashed
        self._served[hashed] = Asset(kind_of(name), body, packed if len(packed) < len(body) else b"")

    @property
    def names(self) -> Mapping[str, str]:
        """The names under which files are served, by those that they have in their folders."""
        return self._hashed

    def path(self, name: str) -> str:
        """Return the path of a file below the base of the site."""
        return f"{PREFIX}/{self._hashed[name]}"

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer a request for a file."""
        found = self._served.get(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound
        packs = bool(found.packed) and "gzip" in request.headers.get("Accept-Encoding", "")
        headers = {**_HEADERS, "Content-Type": found.kind, **({"Content-Encoding": "gzip"} if packs else {})}
        return web.Response(status=HTTPStatus.OK, body=found.packed if packs else found.body, headers=headers)


def hashed_name(name: str, body: bytes) -> str:
    """Return the name of a file with a part of its hash before its ending.

    >>> hashed_name("site.css", b"")
    'site-e3b0c44298fc.css'
    """
    path = PurePosixPath(name)
    return str(path.with_name(f"{path.stem}-{hashlib.sha256(body).hexdigest()[:_DIGEST_CHARS]}{path.suffix}"))


def kind_of(name: str) -> str:
    """Return the media type of a file, by its name alone: the tables of machines differ."""
    ending = PurePosixPath(name).suffix
    kind = _KINDS.get(ending) or mimetypes.types_map.get(ending, "application/octet-stream")
    return f"{kind}; charset=utf-8" if kind.startswith("text/") or ending == ".svg" else kind


HERE: Final = Path(__file__).parent
VIEWS: Final = ("classes", "consoles", "lab", "live")
"""The packages that have templates, whose names begin with the package's, and assets of their own."""
PIECE: Final = "X-Piece"
"""The header of a request of a script, which puts the answer into the page that is there."""


def led_to(request: web.Request, location: str) -> web.Response:
    """Return an answer to a form that leads elsewhere: a browser, or the script that has sent it."""
    if PIECE in request.headers:
        return web.Response(status=HTTPStatus.NO_CONTENT, headers={"X-Location": location})
    return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": location})


_PACKED_BYTES_MIN: Final = 4096
_NONCE_BYTES: Final = 16


class Layout:
    """Makes pages of templates."""

    def __init__(self, assets: Assets, teaches: Callable[[Visitor], bool] = lambda _: False) -> None:
        """Read no template yet.

        Args:
            assets: The files that pages name.
            teaches: Called with the visitor of each page; returns whether there are classes to lead to.
        """
        self._assets = assets
        self._teaches = teaches
        self._environment = jinja2.Environment(
            loader=jinja2.ChoiceLoader(
                [
                    jinja2.FileSystemLoader(HERE / "templates"),
                    jinja2.PrefixLoader({name: jinja2.FileSystemLoader(HERE / name / "templates") for name in VIEWS}),
                    jinja2.PrefixLoader({"api": jinja2.FileSystemLoader(HERE.parent / "api")}),
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
        pictures: bool = False,
        **values: Any,
    ) -> web.Response:
        """Return a page.

        Args:
            request: What it answers; if its sender was asked for, the page shows who that is.
            template: `layout.html` of this package, or `lab/page.html` of a view.
            status: The HTTP status.
            nonce: Whether a script of this page makes style elements: the template finds their `nonce`.
            framed: Whether another page of the site may show this one in a frame.
            pictures: Whether a script of this page makes pictures of bytes.
            values: What the template shows.
        """
        visitor = request.get(VISITOR)
        key = secrets.token_urlsafe(_NONCE_BYTES) if nonce else ""
        text = self._html(
            template,
            request.get(BASE, ""),
            {
                "csrf": visitor.csrf if visitor is not None else "",
                **values,
                "visitor": visitor,
                "teaches": visitor is not None and self._teaches(visitor),
                "nonce": key,
            },
        )
        response = web.Response(
            text=text,
            status=status,
            content_type="text/html",
            headers={"Content-Security-Policy": policy(key, framed=framed, pictures=pictures)},
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


_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'{nonce}; img-src 'self'{pictures}; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors {framed}"
)


def policy(nonce: str = "", *, framed: bool = False, pictures: bool = False) -> str:
    """Return the content security policy of a page.

    Args:
        nonce: Style elements with this nonce are allowed; "" for none.
        framed: Whether another page of the site may show it in a frame.
        pictures: Whether pictures of `data:` are allowed, by which a screen shows what came as JPEG, and its pointer.
    """
    return _POLICY.format(
        nonce=f" 'nonce-{nonce}'" if nonce else "",
        framed="'self'" if framed else "'none'",
        pictures=" data:" if pictures else "",
    )


HEADERS: Final = {
    **strict_headers(),
    "Content-Security-Policy": policy(),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser hides the origin of forms
}
"""The headers; an answer may have others of these names."""


@dataclass(frozen=True, slots=True)
class SiteContext:
    """What every view of the site is given.

    Attributes:
        ctx: The replica.
        settings: The portal's.
        index: All user labs.
        lablets: All other lablets.
        learners: Whose the lablets of classes are.
        instructors: Whom the RoleBindings of classes name.
        requests: Makes, deletes and extends labs.
        choices: The menu and the quotas.
        callers: Says what somebody may.
        visitors: Finds out who asks; wraps handlers of forms.
        layout: Makes pages.
        as_visitor: Reaches the API server in a visitor's name.
        left: Asks the provider's page in a visitor's name.
    """

    ctx: Context
    settings: PortalSettings
    index: UserLabIndex
    lablets: OtherLablets
    learners: LabletLearners
    instructors: Instructors
    requests: Requests
    choices: Choices
    callers: PortalCallers
    visitors: Visitors
    layout: Layout
    as_visitor: AsVisitor
    left: LeftWork

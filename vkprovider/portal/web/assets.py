"""Stylesheets, scripts and pictures under names that change with their content: a browser keeps them for ever."""

import gzip
import hashlib
import mimetypes
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from aiohttp import web

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

"""Names of images, and what a registry answers, as the distribution API has both (OCI distribution-spec 1.1)."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final, NamedTuple, Self
from urllib.parse import parse_qsl, urljoin, urlsplit

import msgspec

from vkprovider.platform.errors import InputError, shorten
from vkprovider.platform.reasons import StartReason

_HUB: Final = "docker.io"
_HUB_API: Final = "registry-1.docker.io"
_HUB_LOGIN: Final = "https://index.docker.io/v1/"
_DIGEST: Final = r"sha256:[0-9a-f]{64}"
_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME = re.compile(
    rf"(?P<path>{_PART}(?:/{_PART})*)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?"
)
_HOST = re.compile(r"localhost(?::\d{1,5})?|[A-Za-z0-9.-]+(?:\.[A-Za-z0-9.-]+|:\d{1,5})(?::\d{1,5})?")
_PARAMETER = re.compile(r'([A-Za-z_]+)="((?:[^"\\]|\\.)*)"')


class ImageName(NamedTuple):
    """The name of an image, with nothing left out.

    Attributes:
        registry: `docker.io`, `quay.io`, `localhost:5000`.
        path: `library/python`.
        tag: "" where a digest alone names it.
        digest: `sha256:…`; "" while it is unknown.
    """

    registry: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        """The name without version."""
        return f"{self.registry}/{self.path}"

    @property
    def tagged(self) -> str:
        """The name as a Pod has it: by tag, else by digest."""
        return f"{self.repository}:{self.tag}" if self.tag else self.digested

    @property
    def digested(self) -> str:
        """The name by digest."""
        return f"{self.repository}@{self.digest}"

    @property
    def api_host(self) -> str:
        """Host and port of the registry's API."""
        return _HUB_API if self.registry == _HUB else self.registry

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a name as a Pod may write it.

        >>> ImageName.parse("python").tagged, ImageName.parse("localhost:5000/a/b:1").path
        ('docker.io/library/python:latest', 'a/b')

        Raises:
            InputError: It is none.
        """
        host, slash, rest = text.partition("/")
        if not slash or not _HOST.fullmatch(host):
            host, rest = _HUB, text
        found = _NAME.fullmatch(rest)
        if found is None:
            raise InputError(StartReason.SETTING_INVALID, f"{shorten(text, 80)!r} is no name of an image")
        path = found["path"]
        if host in {_HUB, "index.docker.io"}:
            host, path = _HUB, path if "/" in path else f"library/{path}"
        tag, digest = found["tag"] or "", found["digest"] or ""
        return cls(host, path, tag or ("" if digest else "latest"), digest)


class Challenge(NamedTuple):
    """What a registry asks for with a 401.

    Attributes:
        realm: Where a token is had; "" if name and password are to be sent to the registry itself.
        query: What is asked there.
    """

    realm: str
    query: Mapping[str, str]


def challenge_of(header: str, base: str, path: str) -> Challenge | None:
    """Return what `WWW-Authenticate` asks for; None if that is nothing we know, or would send a login to a worse place.

    Args:
        header: The header.
        base: The registry: `https://quay.io`. A login goes from one of https to no other.
        path: The path of the repository, for a registry that names no scope.
    """
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "basic":
        return Challenge("", {})
    given = {key.lower(): value for key, value in _PARAMETER.findall(rest)}
    realm = given.get("realm", "")
    parts = urlsplit(realm)
    allowed = {"https"} if base.startswith("https:") else {"https", "http"}
    if scheme.lower() != "bearer" or parts.scheme not in allowed or not parts.hostname:
        return None
    query = {"service": given["service"]} if "service" in given else {}
    return Challenge(realm, {**query, "scope": given.get("scope", f"repository:{path}:pull")})


class TagPage(msgspec.Struct, frozen=True):
    """A page of `GET /v2/NAME/tags/list`; a repository without tags may have null."""

    tags: tuple[str, ...] | None = None


class TokenAnswer(msgspec.Struct, frozen=True):
    """The answer of a token service; either name has the same token."""

    token: str = ""
    access_token: str = ""


def next_page(link: str, url: str) -> tuple[str, dict[str, str]] | None:
    """Return path and query of the page after this one; None if it is the last, or would be another server's.

    >>> next_page('</v2/a/tags/list?last=b&n=2>; rel="next"', "https://quay.io/v2/a/tags/list")
    ('/v2/a/tags/list', {'last': 'b', 'n': '2'})

    Args:
        link: The header `Link`.
        url: Of this page.
    """
    found = re.search(r'<([^>]+)>\s*;\s*rel="?next"?', link)
    if found is None:
        return None
    here, there = urlsplit(url), urlsplit(urljoin(url, found[1]))
    if (there.scheme, there.netloc, there.path) != (here.scheme, here.netloc, here.path):
        return None
    return there.path, dict(parse_qsl(there.query))


class DockerConfig(msgspec.Struct, frozen=True):
    """What `docker login` writes, and a Secret of the type kubernetes.io/dockerconfigjson holds."""

    auths: dict[str, dict[str, str]] = {}

    def login_of(self, registry: str) -> tuple[str, str] | None:
        """Return name and password for a registry; None without."""
        keys = [registry, f"https://{registry}", f"https://{registry}/", *([_HUB_LOGIN] if registry == _HUB else [])]
        for key in keys:
            entry = self.auths.get(key, {})
            if "username" in entry and "password" in entry:
                return entry["username"], entry["password"]
            try:
                name, colon, password = base64.b64decode(entry.get("auth", ""), validate=True).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError):
                continue
            if colon:
                return name, password
        return None

"""What a registry answers, as the distribution API has it (OCI distribution-spec 1.1), and logins."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urljoin, urlsplit

import msgspec

from vkprovider.portal.pure.nodeimages import HUB

_HUB_LOGIN: Final = "https://index.docker.io/v1/"
_PARAMETER = re.compile(r'([A-Za-z_]+)="((?:[^"\\]|\\.)*)"')


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
        keys = [registry, f"https://{registry}", f"https://{registry}/", *([_HUB_LOGIN] if registry == HUB else [])]
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

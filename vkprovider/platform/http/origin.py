"""Whether a request comes from a page of the site itself, and where a visitor may be sent: pure rules."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

_OWN: Final = frozenset({"same-origin", "none"})
"""What a browser says of a request that a page of the same host, or a person, makes."""
_OF_FORMS: Final = frozenset({"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"})
"""The media types of HTML's forms, which a page may send to another site without asking there."""
_PATH: Final = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""A path of the site: no host, no backslash, which browsers take for a slash, and no blank, which they drop."""
_FRONT: Final = ("/login", "/logout")
_PLAIN_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""The hosts for which browsers keep secure cookies without TLS."""


def is_own(headers: Mapping[str, str], host: str) -> bool:
    """Return whether a page of the site made a request.

    A browser says so by `Sec-Fetch-Site`, whatever a proxy calls the host; an older one, or one without TLS, by
    `Origin`. A request that says neither is no browser's, or of one from before 2020, and is refused.

    Args:
        headers: Those of the request.
        host: As the browser asked for it.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in _OWN
    return bool(host) and _split(headers.get("Origin", ""))[1] == host.lower()


def may_change(headers: Mapping[str, str], host: str, content_type: str) -> bool:
    """Return whether a request to change something, which an ingress lets pass by a cookie, is its sender's own.

    Programs come by the same way as browsers and name no origin, so that one that says nothing passes, unless its body
    is what a form of another site can send: older browsers tell no origin with those.

    Args:
        headers: Those of the request.
        host: As it was asked for.
        content_type: That of its body, without parameters; "" if there is none.
    """
    if "Sec-Fetch-Site" in headers or "Origin" in headers:
        return is_own(headers, host)
    return content_type not in _OF_FORMS


def is_from_elsewhere(headers: Mapping[str, str]) -> bool:
    """Return whether a link of another site led a browser here, which then sends no strict cookie along."""
    return headers.get("Sec-Fetch-Site", "none") not in _OWN


def safe_next(path: str) -> str:
    """Return the path to which a visitor is sent after the login: one of the site, or its front page."""
    is_safe = _PATH.fullmatch(path) is not None and not path.startswith(_FRONT)
    return path if is_safe else "/"


def leads_on(path: str) -> str | None:
    """Return the path of the site to which one leads that has a slash at its end; None if it has none.

    >>> leads_on("/labs/alice/?class=net101"), leads_on("//evil.example/"), leads_on("/labs")
    ('/labs/alice?class=net101', None, None)
    """
    there, mark, query = path.partition("?")
    without = there.rstrip("/")
    return without + mark + query if there != without and _PATH.fullmatch(without) else None


def keeps_cookies(headers: Mapping[str, str]) -> bool:
    """Return whether the browser that sent a form keeps cookies that ask for TLS."""
    scheme, host = _split(headers.get("Origin", ""))
    return scheme != "http" or is_loopback(host)


def is_loopback(host: str) -> bool:
    """Return whether a host, maybe with a port, is the browser's own machine."""
    return host.lower() in _PLAIN_HOSTS or host.lower().rpartition(":")[0] in _PLAIN_HOSTS


def _split(origin: str) -> tuple[str, str]:
    """Return scheme and host, with its port, of an origin; empty ones if it is none."""
    try:
        url = urlsplit(origin)
    except ValueError:
        return "", ""
    return url.scheme, url.netloc.lower()

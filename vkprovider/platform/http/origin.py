"""Whether a page of the site itself made a request, at which address, and where a visitor may be sent: pure rules.

A proxy may rewrite `Host` (nginx does, unless it is told not to), end TLS, and take a part of the path away. If the
addresses of a site are known, what a request says of itself only tells which of them a browser used.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
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


class SiteAddress(NamedTuple):
    """An address by which people reach a site.

    Attributes:
        scheme: `https`, or `http`.
        host: With its port, where that is not the scheme's own.
        base: The path before those of the site, without a slash at its end; "" if there is none.
    """

    scheme: str
    host: str
    base: str = ""


_PORTS: Final = {"https": 443, "http": 80}


def address_of(url: str) -> SiteAddress:
    """Return the address of a site from its URL, such as `https://labs.example.com` or `https://example.com/labs`.

    Raises:
        ValueError: It is none.
    """
    found = urlsplit(url)
    if found.scheme not in _PORTS or not found.hostname or "@" in found.netloc or found.query or found.fragment:
        raise ValueError(f"{url[:80]!r} is not a URL like https://labs.example.com")
    name = f"[{found.hostname}]" if ":" in found.hostname else found.hostname
    host = name if found.port in {None, _PORTS[found.scheme]} else f"{name}:{found.port}"
    return SiteAddress(found.scheme, host, found.path.rstrip("/"))


def addresses_of(urls: str) -> tuple[SiteAddress, ...]:
    """Return the addresses of a site from URLs that commas separate.

    Raises:
        ValueError: One is none.
    """
    return tuple(address_of(url.strip()) for url in urls.split(",") if url.strip())


def address_used(
    addresses: Sequence[SiteAddress], headers: Mapping[str, str], host: str, path: str
) -> SiteAddress | None:
    """Return the address that a browser used; None if it was none of them, such as a port that kubectl forwards.

    `Origin`, which no proxy rewrites, decides where there is one. Else `X-Forwarded-Host` and `Host` choose among the
    addresses, and the first one counts where they are others. A path that a proxy has left as it is counts before.

    Args:
        addresses: Those of the site, at least one.
        headers: Those of the request.
        host: As the request names it.
        path: Of the request.
    """
    addresses = [each for each in addresses if each.base and path.startswith(f"{each.base}/")] or addresses
    if origin := headers.get("Origin"):
        return next((each for each in addresses if (each.scheme, each.host) == _split(origin)), None)
    for name in (headers.get("X-Forwarded-Host", ""), host):
        if found := next((each for each in addresses if each.host == name.lower()), None):
            return found
    return addresses[0]


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

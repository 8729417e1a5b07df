"""At which address of a site a browser has made a request, whatever the proxy in front of it makes of that.

A proxy may rewrite `Host` (nginx does, unless it is told not to), end TLS, and take a part of the path away. If the
addresses of a site are known, what a request says of itself only tells which of them a browser used.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit


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
    addresses: Sequence[SiteAddress], headers: Mapping[str, str], host: str, left: str = ""
) -> SiteAddress | None:
    """Return the address that a browser used; None if it was none of them, such as a port that kubectl forwards.

    `Origin`, which no proxy rewrites, decides where there is one. Else `X-Forwarded-Host` and `Host` choose among the
    addresses, and the first one counts where they are others.

    Args:
        addresses: Those of the site, at least one.
        headers: Those of the request.
        host: As the request names it.
        left: The base that a proxy has left in the path, which that of the address is; "" if there is none left.
    """
    addresses = [each for each in addresses if left and each.base == left] or addresses
    if origin := headers.get("Origin"):
        return next((each for each in addresses if f"{each.scheme}://{each.host}" == origin.lower()), None)
    for name in (headers.get("X-Forwarded-Host", ""), host):
        if found := next((each for each in addresses if each.host == name.lower()), None):
            return found
    return addresses[0]

"""The origin of a workbench: whom its cookie lets in, which requests are its own pages', and which headers pass.

What a workbench shows is its user's, and may be hostile to who else looks at it. Nothing of the portal, or of a hub, is
passed on to it; and no page of another origin, a sibling neither, acts in a workbench in its visitor's name.
"""

from collections.abc import Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final

import msgspec

COOKIE: Final = "vkprovider-workbench"
SESSION_S_MAX: Final = 8 * 3600
"""The longest session in a workbench; the end of its visitor's own, if that is not renewed, ends it before."""
_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_WITHHELD: Final = frozenset({"authorization", "cookie", "content-length", "expect", "forwarded", "host"})
_WITHHELD_PREFIXES: Final = ("x-forwarded-", "x-auth-request-", "x-remote-", "x-real-", "sec-websocket-")
_COOKIES_OF_OTHERS: Final = ("__host-", "__secure-", "vkprovider", "jupyterhub")
_KEPT_BACK: Final = frozenset(
    {"set-cookie", "strict-transport-security", "alt-svc", "content-length", "date", "server"}
)


class BenchSession(msgspec.Struct, frozen=True):
    """Somebody who was let into a workbench.

    Attributes:
        namespace, request: The lab, and the request that it was made for.
        user: Whose lab it is.
        class_: Its class, if that gives the right; "" for the lab's own user.
        username, groups: Who it is for the cluster.
        expires_at: In Unix seconds.
    """

    namespace: str
    request: str
    user: str
    class_: str
    username: str
    groups: tuple[str, ...]
    expires_at: float


def cookie_of(scheme: str) -> str:
    """Return the name of the cookie: one that no sibling can set, where browsers have such."""
    return f"__Host-{COOKIE}" if scheme == "https" else COOKIE


def may_pass(method: str, headers: Mapping[str, str], *, own: bool) -> bool:
    """Return whether a request to a workbench is made by its own pages, or leads a browser to it.

    Args:
        method: The method.
        headers: Those of the request.
        own: Whether a page of this origin made it, or nobody's page.
    """
    if own:
        return True
    leads = headers.get("Sec-Fetch-Mode") == "navigate" and headers.get("Sec-Fetch-Dest") == "document"
    return method == "GET" and leads and "Upgrade" not in headers


def sent_on(headers: Iterable[tuple[str, str]], host: str, scheme: str, access: str) -> list[tuple[str, str]]:
    """Return the headers with which a request goes to the workbench.

    Args:
        headers: Those of the request.
        host: That was asked for.
        scheme: Of its address.
        access: What the portal proves itself by.
    """
    pairs = list(headers)
    kept = [(name, text) for name, text in pairs if _goes(name.lower(), pairs)]
    cookies = [own for name, text in pairs if name.lower() == "cookie" and (own := own_cookies(text))]
    forwarded = [("X-Forwarded-Host", host), ("X-Forwarded-Proto", scheme), ("Authorization", f"token {access}")]
    return [("Host", host), *kept, *(("Cookie", each) for each in cookies), *forwarded]


def own_cookies(text: str) -> str:
    """Return the cookies of a request that are a workbench's own.

    >>> own_cookies('_xsrf=1; __Host-vkprovider-0="a"; jupyterhub-session-id=b; theme=dark')
    '_xsrf=1; theme=dark'
    """
    pairs = (each.strip() for each in text.split(";"))
    return "; ".join(each for each in pairs if each and not each.lower().startswith(_COOKIES_OF_OTHERS))


def sent_back(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the headers with which an answer of a workbench goes to a browser; its cookies are of its host alone."""
    pairs = list(headers)
    dropped = _HOP | _KEPT_BACK | _named(pairs)
    kept = [(name, text) for name, text in pairs if name.lower() not in dropped]
    cookies = (own for name, text in pairs if name.lower() == "set-cookie" for own in _host_only(text))
    return [*kept, *(("Set-Cookie", each) for each in cookies)]


def _host_only(text: str) -> Iterable[str]:
    """Yield a cookie without its domain; none that could be taken for another program's, or that cannot be read."""
    try:
        jar = SimpleCookie(text)
    except CookieError:
        return
    for name, morsel in jar.items():
        if not name.lower().startswith(_COOKIES_OF_OTHERS):
            morsel["domain"] = ""
            yield morsel.OutputString()


def _goes(name: str, pairs: list[tuple[str, str]]) -> bool:
    return name not in _HOP | _WITHHELD | _named(pairs) and not name.startswith(_WITHHELD_PREFIXES)


def _named(pairs: list[tuple[str, str]]) -> frozenset[str]:
    """Return the headers that `Connection` names."""
    told = (text for name, text in pairs if name.lower() == "connection")
    return frozenset(each.strip().lower() for text in told for each in text.split(","))

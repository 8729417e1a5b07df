"""A browser without scripts: it keeps cookies, says where its forms come from, and sends the token of each."""

import re
from types import TracebackType
from typing import Final, Self

import httpx

_COOKIE: Final = re.compile(r"([^=;\s]+)=([^;]*)")
_CSRF: Final = re.compile(r'name="csrf" (?:value|content)="([^"]+)"')


class Browsing:
    """One person's session at one replica.

    Attributes:
        cookies: What the browser keeps.
        texts: All that was answered, with headers.
    """

    def __init__(self, url: str, cookies: dict[str, str] | None = None) -> None:
        self.url = url
        self.cookies: dict[str, str] = dict(cookies or {})
        self.texts: list[str] = []
        self.csrf = ""
        self._http = httpx.AsyncClient(base_url=url, timeout=60, follow_redirects=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, **more: object
    ) -> httpx.Response:
        """Send a request with the cookies, and keep those of the answer."""
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {"Cookie": cookie, "Accept": "text/html", **(headers or {})}
        answer = await self._http.request(method, path, headers=sent, **more)  # type: ignore[arg-type]  # (httpx's own)
        for line in answer.headers.get_list("set-cookie"):
            found = _COOKIE.match(line)
            assert found is not None
            if "Max-Age=0" in line:
                self.cookies.pop(found[1], None)
            else:
                self.cookies[found[1]] = found[2]
        self.texts += [str(answer.headers), answer.text]
        if (token := _CSRF.search(answer.text)) is not None:
            self.csrf = token[1]
        return answer

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """Follow a link."""
        return await self.ask("GET", path, headers)

    async def post(self, path: str, headers: dict[str, str] | None = None, **fields: str) -> httpx.Response:
        """Send a form of the page that was seen last."""
        given = {"csrf": self.csrf, **fields}
        return await self.ask("POST", path, {"Origin": self.url, **(headers or {})}, data=given)

    async def log_in(self, person: dict[str, str], then: str = "/") -> httpx.Response:
        """Log in with the token of a header."""
        await self.get(f"/login?next={then}")
        return await self.post("/login", token=person["Authorization"].removeprefix("Bearer "), next=then)

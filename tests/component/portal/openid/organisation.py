"""A portal whose users log in at the issuer of the tests, and their browsers without scripts."""

import os
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.component.portal.asking import Setting, setting
from tests.component.portal.harness import PortalWorld, Running
from tests.component.portal.openid.people import PUBLIC
from tests.component.portal.people import USER_ROLE
from tests.component.portal.site.browsing import Browsing
from tests.support.issuer import Issuer
from tests.support.page import Page
from vkprovider.portal.web.visitors import COOKIE

KEY: Final = b64encode(os.urandom(32)).decode()
NAME: Final = "Example College"
PREFIX: Final = "oidc:"
CALLBACK: Final = "/login/organisation/callback"
BUTTON: Final = "#login-organisation button, a#login-organisation"
"""What leads to the issuer: the button of a form, or a link."""
KEPT_S: Final = 10.0
"""For how long an API server goes by what it has found out about a token, whatever becomes of that."""


def settings_of(issuer: Issuer, **more: str) -> dict[str, str]:
    """Return the settings of a portal that lets people log in at an issuer, with a public client."""
    return {
        "VKPROVIDER_PORTAL_COOKIE_KEY": KEY,
        "VKPROVIDER_PORTAL_USERNAME_PREFIX": PREFIX,
        "VKPROVIDER_PORTAL_OIDC_ISSUER": issuer.url,
        "VKPROVIDER_PORTAL_OIDC_CLIENT_ID": PUBLIC,
        "VKPROVIDER_PORTAL_OIDC_NAME": NAME,
        "VKPROVIDER_PORTAL_OIDC_CA_FILE": str(issuer.ca_file),
        **more,
    }


def url_of(running: Running) -> str:
    """Return the address of a replica."""
    return f"http://127.0.0.1:{running.page.port}"


class MemberBrowser(Browsing):
    """A browser without scripts, at a replica of the portal and at the issuer.

    Attributes:
        issuer: Where the person logs in.
        there: The browser at the issuer, with the cookies of that.
    """

    def __init__(self, url: str, issuer: Issuer, cookies: dict[str, str] | None = None) -> None:
        super().__init__(url, cookies)
        self.issuer = issuer
        self.there = issuer.browser()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.there.aclose()
        await super().__aexit__(kind, error, trace)

    @asynccontextmanager
    async def at(self, url: str) -> AsyncIterator["MemberBrowser"]:
        """Yield a browser with the same cookies at a replica, as a further tab is."""
        async with MemberBrowser(url, self.issuer, self.cookies) as other:
            other.csrf = self.csrf
            yield other

    @property
    def cookie(self) -> str:
        """The header of all cookies."""
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    @property
    def has_session(self) -> bool:
        """Whether the portal has given it the cookies of a session."""
        return any(name.startswith(f"{COOKIE}-0") for name in self.cookies)

    async def led(self, then: str = "/") -> str:
        """Press the button of the login; return the address of the issuer to which it leads."""
        answer = await self.get(f"/login/organisation?next={then}")
        assert answer.status_code == 303, answer.text
        return str(answer.headers["Location"])

    async def back(self, address: str) -> httpx.Response:
        """Follow the issuer's way back to the portal."""
        assert address.startswith(f"{self.url}{CALLBACK}?"), address
        return await self.get(address.removeprefix(self.url))

    async def log_in_as(self, name: str, then: str = "/") -> httpx.Response:
        """Log in at the issuer; return the answer to the way back."""
        return await self.back(await self.issuer.log_in(self.there, await self.led(then), name))

    async def enter(self, name: str, then: str = "/labs/alice") -> None:
        """Log in at the issuer, and open a page, as whoever has it open."""
        answer = await self.log_in_as(name, then)
        assert self.has_session, answer.text
        page = await self.get(then)
        assert page.status_code == 200, page.text

    async def renew(self) -> httpx.Response:
        """Ask for a renewal as the script of a page does."""
        return await self.ask("POST", "/login/renew", {"Origin": self.url, "X-CSRF-Token": self.csrf})

    async def who(self, path: str = "/labs/alice") -> str:
        """Return whom a page names as logged in; "" if it leads to the login."""
        answer = await self.get(path)
        return answer.text.partition('class="who" title="')[2].partition('"')[0]


def query_of(address: str) -> dict[str, str]:
    """Return the parameters of an address, each once."""
    asked = parse_qs(urlsplit(address).query, keep_blank_values=True)
    assert all(len(values) == 1 for values in asked.values()), address
    return {name: values[0] for name, values in asked.items()}


def leads_to(answer: httpx.Response, path: str) -> bool:
    """Return whether an answer leads on to a path: by its status, or by a page that goes there at once."""
    if answer.is_redirect:
        return str(answer.headers["Location"]) == path
    return answer.status_code == 200 and f"url={path}" in answer.text


@dataclass
class Organisation:
    """A portal of learners in the group `ccna` of the issuer.

    Attributes:
        made: The replica, with a definition.
        issuer: Where they log in.
        settings: Of replicas.
    """

    made: Setting
    issuer: Issuer
    settings: dict[str, str]

    @property
    def url(self) -> str:
        """The address of the replica."""
        return self.made.client.url

    def browser(self) -> MemberBrowser:
        """Return a browser that knows nothing."""
        return MemberBrowser(self.url, self.issuer)

    async def replica(self) -> str:
        """Start a further replica; return its address."""
        return url_of(await self.made.world.replica(**self.settings))  # type: ignore[arg-type]  # (settings alone)

    async def log_in(self, page: Page, name: str, then: str) -> None:
        """Log in by the button in a browser, and wait for the page that was wanted."""
        await page.open(f"/login?next={then}")
        await page.press(BUTTON)
        await self.issuer.fill_form(page, name)
        await page.until(lambda driver: driver.current_url == page.url + then, f"{name} is at {then}")


@asynccontextmanager
async def organisation(world: PortalWorld, issuer: Issuer, **more: str) -> AsyncIterator[Organisation]:
    """Run a replica whose learners log in at an issuer; `more` are further settings."""
    settings = settings_of(issuer, **more)
    async with setting(world, **settings) as made:  # type: ignore[arg-type]  # (settings alone)
        await made.people.allow_group(f"{PREFIX}ccna", USER_ROLE)
        yield Organisation(made, issuer, settings)

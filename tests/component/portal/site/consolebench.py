"""A class's lablet with real devices of a simulator, a provider and a portal in this loop, and people who browse."""

import asyncio
import json
import os
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import aiohttp

from tests.component.controllers import harness as provider
from tests.component.controllers.consolesite import Site, open_site
from tests.component.controllers.looking import eventually
from tests.component.controllers.running import SHORT, Groups
from tests.component.portal.harness import PortalWorld, Running, open_world
from tests.component.portal.people import INSTRUCTOR_ROLE, USER_ROLE, People
from tests.component.portal.site.browsing import Browsing
from tests.support.apiserver import ApiServer

KEY = b64encode(os.urandom(32)).decode()


class Screen:
    """A terminal of a page, as its script is: it says how much it has shown, unless it is told not to."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.out = ""
        self.got_bytes = 0
        self.acks = True
        self.messages: list[dict[str, Any]] = []
        self.code: int | None = None
        self._changed = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.socket.close()
        await asyncio.wait([self._reading])

    async def _read(self) -> None:
        async for message in self.socket:
            if message.type is aiohttp.WSMsgType.BINARY:
                self.got_bytes += len(message.data)
                self.out = (self.out + message.data.decode(errors="replace"))[-1_000_000:]
                if self.acks:
                    await self.ack()
            else:
                self.messages.append(json.loads(message.data))
            self._changed.set()
        self.code = self.socket.close_code
        self._changed.set()

    async def ack(self) -> None:
        await self.socket.send_str(json.dumps({"shown": self.got_bytes}))

    async def type(self, keys: str) -> None:
        await self.socket.send_bytes(keys.encode())

    async def shows(self, text: str, within_s: float = 60.0) -> None:
        """Wait until the text has come, and forget all before it."""
        try:
            async with asyncio.timeout(within_s):
                while text not in self.out:
                    self._changed.clear()
                    assert self.code is None, f"ended: {self.messages}"
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"{text!r} did not come; there is {self.out[-300:]!r}, {self.messages}") from None
        self.out = self.out.partition(text)[2]

    @property
    def typist(self) -> dict[str, Any]:
        """What the page was told last of who types."""
        return next(message for message in reversed(self.messages) if message["type"] == "typist")

    async def hears(self, what: str, holds: Callable[[dict[str, Any]], bool], within_s: float = 60.0) -> None:
        """Wait until the page is told of who types as a condition has it."""
        try:
            async with asyncio.timeout(within_s):
                while not any(message["type"] == "typist" for message in self.messages) or not holds(self.typist):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not told that {what}; there is {self.messages}") from None

    async def ends(self, within_s: float = 60.0) -> tuple[int | None, str, str]:
        """Wait for the end; return the code, and the last message's word and sentence."""
        async with asyncio.timeout(within_s):
            await asyncio.wait([self._reading])
        last = self.messages[-1]
        return self.code, last["why"], last["text"]


@dataclass
class Bench:
    """A lablet of a class, with the devices r1 (IOS), h0 and h1 (Linux)."""

    site: Site
    portal: PortalWorld
    running: Running
    people: People
    http: aiohttp.ClientSession
    portal_env: dict[str, str]

    async def another_replica(self) -> Self:
        """Start another replica of the portal, which knows the lablet; return the bench at it."""
        running = await self.portal.replica(**self.portal_env)  # type: ignore[arg-type]  # (settings alone)
        other = replace(self, running=running)
        await eventually(other.knows_lablet, "the other replica knows the lablet")
        return other

    async def knows_lablet(self) -> bool:
        return self.running.replica.lablets.pod(self.site.lablet.namespace, self.site.lablet.name) is not None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.running.page.port}"

    @property
    def lablet(self) -> str:
        return f"/classes/{self.site.lablet.namespace}/lablets/{self.site.lablet.name}"

    async def teacher(self, name: str) -> dict[str, str]:
        """Make an instructor of the class; return the header with the token."""
        header = await self.people.person(name)
        await self.people.allow(name, INSTRUCTOR_ROLE, self.site.lablet.namespace)
        return header

    async def cookie(self, header: dict[str, str], url: str = "") -> str:
        """Log in; return the header with the cookies."""
        async with Browsing(url or self.url) as browser:
            answer = await browser.log_in(header)
            assert answer.status_code == 303, answer.text
            return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())

    async def dial(
        self, cookie: str, device: str, mode: str = "type", *, lab: str = "", **headers: str
    ) -> aiohttp.ClientWebSocketResponse:
        sent = {"Origin": self.url, **({"Cookie": cookie} if cookie else {}), **headers}
        where = f"{self.url}{lab or self.lablet}/consoles/{device}/stream?as={mode}"
        return await self.http.ws_connect(where, headers=sent)

    async def screen(self, cookie: str, device: str, mode: str = "type", *, lab: str = "") -> Screen:
        """Open a console as a page does; `lab` is the path of the lab's page, if that is not the instructor's."""
        return Screen(await self.dial(cookie, device, mode, lab=lab))


@asynccontextmanager
async def console_bench(
    server: ApiServer,
    folder: Path,
    intervals: Groups = SHORT,
    console_baud: int = 0,
    of_provider: Mapping[str, str] | None = None,
    ports: Literal["open", "closed"] = "closed",
    /,
    **env: str,
) -> AsyncIterator[Bench]:
    """Open it; `env` are settings of the portal, `of_provider` the provider's; `ports` are those of tags."""
    (folder / "portal").mkdir()
    async with (
        provider.open_world(server, folder) as world,
        open_world(server, folder / "portal") as portal,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http,
    ):
        site = await open_site(
            world, patty=ports == "open", intervals=intervals, console_baud=console_baud, **(of_provider or {})
        )
        people = People(portal.admin)
        await people.open()
        given = {"VKPROVIDER_PORTAL_USERNAME_PREFIX": people.prefix, "VKPROVIDER_PORTAL_COOKIE_KEY": KEY, **env}
        running = await portal.replica(**given)  # type: ignore[arg-type]  # (settings alone)
        bench = Bench(site, portal, running, people, http, given)
        await eventually(bench.knows_lablet, "the portal knows the lablet")
        try:
            yield bench
        finally:
            await people.close()


__all__ = ["KEY", "USER_ROLE", "Bench", "Screen", "console_bench"]

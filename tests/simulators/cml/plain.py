"""A plain HTTP client that is logged in, for what Cisco's client does not show."""

import asyncio
import io
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.simulators.cml.cisco import PASSWORD, TOPOLOGY
from tests.support.cmlapi.simulator import CmlSimulator


class Plain:
    """Sends requests to a simulator."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.session = session
        self.token = ""

    async def login(self, password: str = PASSWORD) -> None:
        status, token = await self.call(
            "POST", "/api/v0/authenticate", json={"username": "admin", "password": password}
        )
        assert status == 200, token
        self.token = token

    async def call(self, method: str, path: str, *, timeout_s: float = 60.0, **options: Any) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        async with self.session.request(
            method, self.url + path, headers=headers, timeout=timeout, ssl=False, **options
        ) as response:
            body = await response.read()
            if response.content_type == "application/json" and body:
                return response.status, await response.json()
            return response.status, body.decode()

    async def api(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        return await self.call(method, f"/api/v0{path}", **options)

    async def sim(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        return await self.call(method, f"/sim{path}", json=body)

    async def load(self, topology: str = TOPOLOGY) -> str:
        status, answer = await self.api("POST", "/import", data=io.BytesIO(topology.encode()))
        assert status == 200, answer
        return str(answer["id"])

    async def states(self, lab: str) -> set[str]:
        _, states = await self.api("GET", f"/labs/{lab}/lab_element_state")
        return set(states["nodes"].values())

    async def until(self, lab: str, *states: str) -> None:
        await eventually(lambda: self.states(lab), set(states).__eq__)


async def eventually(look: Callable[[], Any], good: Callable[[Any], bool] = bool, *, within_s: float = 60.0) -> Any:
    """Wait for a condition; return what was seen."""
    deadline = time.monotonic() + within_s
    while True:
        seen = look()
        if asyncio.iscoroutine(seen):
            seen = await seen
        if good(seen):
            return seen
        assert time.monotonic() < deadline, f"still {seen!r}"
        await asyncio.sleep(0.01)


@asynccontextmanager
async def plain(simulator: CmlSimulator | str) -> AsyncIterator[Plain]:
    """Log in to a simulator, with a session that does not repeat GET and PUT by itself when a connection breaks."""
    async with aiohttp.ClientSession() as session:
        session._retry_connection = False
        client = Plain(simulator if isinstance(simulator, str) else simulator.url, session)
        await client.login()
        yield client

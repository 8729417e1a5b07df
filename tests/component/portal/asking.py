"""Who asks the routes of the portal: a replica, a definition, a user and a hub, on the real API server."""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx
from httpx_sse import aconnect_sse
from openapi_core import OpenAPI

from tests.component.controllers.looking import eventually, when
from tests.component.portal.harness import PortalWorld, Running
from tests.component.portal.people import HUB_ROLE, USER_ROLE, People
from tests.support.lds_protocol import Answered, Asked, judge_answer
from vkprovider.portal.api.bodies import openapi_document

SPAWNER: Final = "/nublado/spawner/v1"
CANARY: Final = "canary-5f1c-value-of-a-secret"
Json = dict[str, Any]


class Client:
    """Asks one replica, and has each answer judged by the document of the routes."""

    def __init__(self, running: Running, dialect: str) -> None:
        self.url = f"http://127.0.0.1:{running.page.port}"
        self._protocol = OpenAPI.from_dict(openapi_document(dialect))
        self.texts: list[str] = []

    async def ask(self, method: str, path: str, headers: dict[str, str], body: object = None) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        async with httpx.AsyncClient(timeout=120) as http:
            answer = await http.request(
                method,
                f"{self.url}{SPAWNER}{path}",
                headers={**headers, "Content-Type": "application/json"},
                content=content,
            )
        asked = Asked(method, f"{SPAWNER}{path}", headers, content)
        judge_answer(self._protocol, asked, Answered(answer.status_code, answer.content, dict(answer.headers)))
        self.texts += [answer.text, str(answer.headers)]
        return answer

    async def follow(self, user: str, headers: dict[str, str]) -> list[tuple[str, str]]:
        """Return all events of a lab until the stream ends."""
        path = f"{self.url}{SPAWNER}/labs/{user}/events"
        async with (
            httpx.AsyncClient(timeout=120) as http,
            aconnect_sse(http, "GET", path, headers=headers) as source,
        ):
            assert source.response.status_code == 200
            found = [(each.event, each.data) async for each in source.aiter_sse()]
        self.texts.append(str(found))
        return found


class Setting:
    """A replica, a definition, a user and a hub."""

    def __init__(self, world: PortalWorld, people: People, running: Running, dialect: str) -> None:
        self.world = world
        self.people = people
        self.running = running
        self.client = Client(running, dialect)
        self.definition = ""
        self.family = ""
        self.alice: dict[str, str] = {}
        self.hub: dict[str, str] = {}

    def body(self, **options: object) -> Json:
        chosen = options or {"image_list": [f"{self.family}:1.0.0"], "size": ["small"], "enable_debug": ["false"]}
        return {"options": chosen, "env": {"HUB_TOKEN": CANARY}}

    async def known(self, status: str) -> None:
        """Wait until the replica shows a status of the lab."""

        async def look() -> bool:
            answer = await self.client.ask("GET", "/labs/alice", self.hub)
            return (answer.json().get("status") if answer.status_code == 200 else "missing") == status

        await eventually(look, f"the lab is {status}")


@contextlib.asynccontextmanager
async def setting(
    world: PortalWorld, dialect: str = "sqr066", config: Json | None = None, family: str = "", **env: str
) -> AsyncIterator[Setting]:
    people = People(world.admin)
    await people.open()
    given = {"VKPROVIDER_PORTAL_DIALECT": dialect, "VKPROVIDER_PORTAL_USERNAME_PREFIX": people.prefix, **env}
    running = await world.replica(config=config, **given)  # type: ignore[arg-type]  # (settings alone)
    made = Setting(world, people, running, dialect)
    made.family = family or f"net-{people.namespace}"
    made.definition = await world.define(family=made.family)
    made.alice = await people.person("alice", USER_ROLE)
    made.hub = await people.person("hub", HUB_ROLE)
    await when(lambda: running.replica.choices.menu().images, "the menu is known")
    try:
        yield made
    finally:
        await people.close()

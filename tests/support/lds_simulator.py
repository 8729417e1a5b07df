"""A client of the simulated LDS that holds every answer against the protocol, and a place where its events arrive."""

import asyncio
import datetime as dt
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

import aiohttp
import yaml
from aiohttp import web
from openapi_schema_validator import OAS31Validator

from tests.support import lds_protocol
from tests.support.lds_protocol import Answered, Asked

FORM: Final = "exams/ospf basics v1"
TOKEN: Final = "clients-of-the-lds"
EVENT_TOKEN: Final = "events-of-the-lds"
_DOCUMENT: Final = yaml.safe_load(resources.files("vkprovider.labs.lds").joinpath("openapi.yaml").read_text("utf-8"))
_EVENT: Final = OAS31Validator(
    {"$ref": "#/components/schemas/SessionEvent", "components": _DOCUMENT["components"]},
    format_checker=OAS31Validator.FORMAT_CHECKER,
)


@dataclass(frozen=True)
class Got:
    """An answer."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self) -> tuple[int, str]:
        """Status and code of a refusal."""
        return self.status, self.body["code"]


class LdsClient:
    """Asks an LDS, and judges its answers; also the requests, but for those of `wrong`."""

    def __init__(self, url: str, http: aiohttp.ClientSession, token: str = TOKEN) -> None:
        self.url = url
        self.http = http
        self.token = token

    async def ask(self, method: str, path: str, body: object = None, **query: str) -> Got:
        asked, answered, got = await self._send(method, f"/api/v1{path}", body, query)
        lds_protocol.judge(asked, answered)
        return got

    async def grade(self, body: object) -> Got:
        asked, answered, got = await self._send("POST", "/grade", body, {})
        lds_protocol.judge(asked, answered)
        return got

    async def wrong(self, method: str, path: str, body: object = None, **query: str) -> Got:
        """Ask what the protocol does not allow."""
        asked, answered, got = await self._send(method, f"/api/v1{path}", body, query)
        lds_protocol.PROTOCOL.validate_response(lds_protocol._Request(asked), lds_protocol._Response(answered))
        return got

    async def sim(self, method: str, path: str, body: object = None) -> Any:
        _, _, got = await self._send(method, f"/sim{path}", body, {})
        assert got.status < 300, got
        return got.body

    async def create(self, username: str = "alice", *, minutes: float = 60, **more: object) -> Got:
        return await self.ask("POST", "/sessions", new_session(username, minutes=minutes, **more))

    async def state(self, session: str) -> str:
        return str((await self.ask("GET", f"/sessions/{session}")).body["state"])

    async def _send(self, method: str, path: str, body: object, query: dict[str, str]) -> tuple[Asked, Answered, Got]:
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        headers |= {"Content-Type": "application/json"} if raw else {}
        async with self.http.request(method, self.url + path, params=query, data=raw, headers=headers) as response:
            answer = await response.read()
            got = Got(response.status, json.loads(answer) if answer else None, dict(response.headers))
            asked = Asked(method, response.url.raw_path_qs, headers, raw)
            return asked, Answered(response.status, answer, got.headers), got


def new_session(username: str = "alice", *, minutes: float = 60, **more: object) -> dict[str, object]:
    now = dt.datetime.now(dt.UTC)
    return {
        "username": username,
        "timeslot_start": now.isoformat(),
        "timeslot_end": (now + dt.timedelta(minutes=minutes)).isoformat(),
        "form_qualified_name": FORM,
        **{name: value for name, value in more.items() if value is not None},
    }


@asynccontextmanager
async def lds_client(url: str, token: str = TOKEN) -> AsyncIterator[LdsClient]:
    """Ask an LDS, without repeating GET and PUT when a connection breaks."""
    async with aiohttp.ClientSession() as http:
        http._retry_connection = False
        yield LdsClient(url, http, token)


@dataclass(frozen=True)
class Arrived:
    """An event that arrived: in structured form, whatever it came in."""

    event: dict[str, Any]
    content_type: str
    authorization: str
    signature: str
    body: bytes


@dataclass
class Sink:
    """Takes events; answers with the next of `answers`, and with 204 when they are used up."""

    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    arrived: list[Arrived] = field(default_factory=list)
    url: str = ""
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until(self, good: Callable[[list[Arrived]], bool], *, within_s: float = 30) -> list[Arrived]:
        async with asyncio.timeout(within_s), self._changed:
            await self._changed.wait_for(lambda: good(self.arrived))
        return list(self.arrived)

    async def take(self, count: int = 1) -> list[Arrived]:
        return await self.until(lambda arrived: len(arrived) >= count)

    async def serve(self, request: web.Request) -> web.Response:
        raw = await request.read()
        content_type = request.headers["Content-Type"]
        event = json.loads(raw)
        if "batch" in content_type:
            [event] = event
        elif content_type == "application/json":
            event = {
                **{name[3:].lower(): value for name, value in request.headers.items() if name.lower()[:3] == "ce-"},
                "datacontenttype": content_type,
                "data": event,
            }
        _EVENT.validate(event)
        authorization, signature = (request.headers.get(name, "") for name in ("Authorization", "X-Hub-Signature-256"))
        self.arrived.append(Arrived(event, content_type, authorization, signature, raw))
        async with self._changed:
            self._changed.notify_all()
        status, headers = self.answers.pop(0) if self.answers else (204, {})
        return web.Response(status=status, headers=headers)


@asynccontextmanager
async def sink(*answers: int | tuple[int, dict[str, str]]) -> AsyncIterator[Sink]:
    """Listen for events."""
    made = Sink([(answer, {}) if isinstance(answer, int) else answer for answer in answers])
    application = web.Application()
    application.router.add_post("/events", made.serve)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/events"
    try:
        yield made
    finally:
        await runner.cleanup()

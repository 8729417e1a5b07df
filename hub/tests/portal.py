"""A small portal in the test's own loop, for what a real one does too seldom: cuts, silence, lines out of order.

It keeps labs in memory and speaks both dialects. `/user/NAME/…` stands for the lab's page; it tells what the lab was
created with, as JupyterHub's own test server does.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

HUB_TOKEN = "token-of-the-hub"
STEPS = (
    ("info", "Your lab is asked for"),
    ("progress", "20.0"),
    ("info", "The lab is imported"),
    ("progress", "80"),
    ("info", "All devices booted"),
)
_ENDS = ("complete", "failed")


def user_token(name: str) -> str:
    return f"token-of-{name}"


@dataclass
class Operation:
    """What a stream tells of one operation."""

    told: list[tuple[str, str]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, event: str, data: str) -> None:
        self.told.append((event, data))
        self.changed.set()
        self.changed = asyncio.Event()

    @property
    def ended(self) -> bool:
        return bool(self.told) and self.told[-1][0] in _ENDS


@dataclass
class Lab:
    """A lab of a user."""

    status: str
    operation: Operation
    body: dict[str, Any]
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class Portal:
    """The portal. Tests set what it shall do wrong.

    Attributes:
        steps: What a creation tells, before `complete`.
        step_s: Seconds for each of them.
        hold: Creations wait for it before they complete, if it is given.
        fails: Why creations fail; None if they do not.
        refusal: Status and body of the answer to each creation, if it is given.
        silent: Every request gets 503.
        foreign: Status and text with which something before the portal answers every request, if it is given.
        cuts: After how many messages the next streams are cut, one number each.
        ids: Whether messages have ids.
        raw: What each stream begins with.
    """

    dialect: str = "sqr066"
    steps: tuple[tuple[str, str], ...] = STEPS
    step_s: float = 0.01
    end_s: float = 0.02
    hold: asyncio.Event | None = None
    fails: str | None = None
    refusal: tuple[int, Any] | None = None
    stream_refusal: int | None = None
    silent: bool = False
    foreign: tuple[int, str] | None = None
    cuts: list[int] = field(default_factory=list)
    ids: bool = True
    raw: bytes = b": the portal is here\n\n"
    url: str = ""
    labs: dict[str, Lab] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    creations: int = 0
    last_ids: list[str] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    ended: dict[str, Operation] = field(default_factory=dict)

    def count(self, method: str, end: str = "") -> int:
        return sum(1 for asked, path, _ in self.asked if asked == method and path.endswith(end))

    def begin(self, name: str, status: str = "running") -> Lab:
        """Put a lab there that no hub asked for."""
        operation = Operation()
        if status == "running":
            operation.tell("complete", "complete")
        lab = self.labs[name] = Lab(status, operation, {})
        return lab

    def end(self, name: str, wait: Awaitable[object]) -> None:
        """Delete a lab, which has gone after a wait."""
        lab = self.labs[name]
        lab.status, lab.operation = "terminating", Operation()
        lab.operation.tell("info", "Your lab is deleted")
        self._spawn(self._ending(name, lab, wait))

    async def _ending(self, name: str, lab: Lab, wait: Awaitable[object]) -> None:
        await wait
        self.labs.pop(name, None)
        self.ended[name] = lab.operation
        lab.operation.tell("complete", "complete")

    async def _creating(self, name: str, lab: Lab) -> None:
        operation = lab.operation
        for event, data in self.steps:
            await asyncio.sleep(self.step_s)
            operation.tell(event, data)
        if self.hold is not None:
            await self.hold.wait()
        if self.labs.get(name) is not lab or lab.operation is not operation:
            return
        if self.fails is not None:
            operation.tell("error", self.fails)
            lab.status = "failed"
            operation.tell("failed", "failed")
        else:
            lab.status = "running"
            operation.tell("complete", "complete")

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _refuse(self, code: int, kind: str, text: str) -> web.Response:
        return web.json_response({"detail": [{"msg": text, "type": kind, "loc": ["path", "username"]}]}, status=code)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.asked.append((request.method, request.path, token))
        if self.silent:
            return web.Response(status=503, text="<html>no upstream</html>")
        if self.foreign is not None:
            status, text = self.foreign
            headers = {"Location": "https://login.example.com/"} if text == "" else {}
            return web.Response(status=status, text=text, content_type="text/html", headers=headers)
        if "/nublado/" not in request.path:
            return await handler(request)  # type: ignore[no-any-return]
        hub_only = request.method == "DELETE" or request.path.rpartition("/")[0].endswith("/labs")
        if token != (HUB_TOKEN if hub_only else user_token(request.match_info["name"])):
            return self._refuse(403, "permission_denied", "You may not do that.")
        return await handler(request)  # type: ignore[no-any-return]

    async def create(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        body = await request.json()
        self.bodies.append(body)
        if self.refusal is not None:
            code, answer = self.refusal
            return web.json_response(answer, status=code)
        lab = self.labs.get(name)
        if lab is not None and lab.status != "failed":
            kind = "lab_exists" if lab.status == "running" else "operation_in_progress"
            return self._refuse(409, kind, "There is a lab already.")
        self.creations += 1
        lab = self.labs[name] = Lab("pending", Operation(), body)
        self._spawn(self._creating(name, lab))
        location = f"/nublado/spawner/v1/labs/{name}"
        return web.Response(status=201 if self.dialect == "nublado" else 303, headers={"Location": location})

    async def delete(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        lab = self.labs.get(name)
        if lab is None:
            return self._refuse(404, "unknown_user", "There is no lab.")
        if lab.status == "terminating":
            return self._refuse(409, "operation_in_progress", "The lab is being deleted.")
        self.end(name, asyncio.sleep(self.end_s))
        if self.dialect != "nublado":
            return web.Response(status=202)
        while name in self.labs:  # noqa: ASYNC110 (a model)
            await asyncio.sleep(0.01)
        return web.Response(status=204)

    async def status(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        lab = self.labs.get(name)
        if lab is None:
            return self._refuse(404, "unknown_user", "There is no lab.")
        return web.json_response({"username": name, "status": lab.status, "pod": "present", **lab.extra})

    async def form(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        text = f'<label>Lab <input name="image_list" value="ospf"></label><!-- {name} -->'
        return web.Response(text=text, content_type="text/html")

    async def events(self, request: web.Request) -> web.StreamResponse:
        if self.stream_refusal is not None:
            return self._refuse(self.stream_refusal, "permission_denied", "You may not see that.")
        name = request.match_info["name"]
        lab = self.labs.get(name)
        operation = lab.operation if lab is not None else self.ended.pop(name, None)
        if operation is None:
            return self._refuse(404, "unknown_user", "There is no lab.")
        last = request.headers.get("Last-Event-ID", "")
        self.last_ids.append(last)
        cut = self.cuts.pop(0) if self.cuts else None
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        await answer.prepare(request)
        await answer.write(self.raw)
        at, sent = int(last or 0), 0
        while True:
            changed = operation.changed
            while at < len(operation.told):
                if sent == cut:
                    if request.transport is not None:
                        request.transport.abort()
                    return answer
                await answer.write(self._message(at, *operation.told[at]))
                at, sent = at + 1, sent + 1
            if operation.ended:
                return answer
            await changed.wait()

    def _message(self, at: int, event: str, data: str) -> bytes:
        head = f"id: {at + 1}\n" if self.ids else ""
        if self.dialect == "nublado":
            if event == "progress":
                return b"event: ping\ndata: 2026-03-01\n\n"
            data = json.dumps({"message": data, "progress": 30} if event == "info" else {"message": data})
        return f"{head}event: {event}\ndata: {data}\n\n".encode()

    async def page(self, request: web.Request) -> web.Response:
        lab = self.labs.get(request.match_info["name"])
        if lab is None:
            return web.Response(status=404)
        tail = request.match_info["tail"]
        if tail == "env":
            return web.json_response(lab.body["env"])
        if tail == "args":
            return web.json_response(["lab"])
        return web.Response(text=request.rel_url.raw_path)

    @asynccontextmanager
    async def served(self, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator["Portal"]:
        """Serve it on a port of this machine. Labs outlive that."""
        app = web.Application(middlewares=[self._guard])
        prefix = "/nublado/spawner/v1"
        app.add_routes(
            [
                web.post(f"{prefix}/labs/{{name}}/create", self.create),
                web.get(f"{prefix}/labs/{{name}}/events", self.events),
                web.get(f"{prefix}/labs/{{name}}", self.status),
                web.delete(f"{prefix}/labs/{{name}}", self.delete),
                web.get(f"{prefix}/lab-form/{{name}}", self.form),
                web.get("/{base:.*}user/{name}/{tail:.*}", self.page),
            ]
        )
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
        await site.start()
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            for task in list(self.tasks):
                task.cancel()
            await runner.cleanup()

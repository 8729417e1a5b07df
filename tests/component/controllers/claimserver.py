"""The part of an API server that keeps one ConfigMap, over loopback, and what can go wrong with its answers."""

import json
from typing import Any, Self

from aiohttp import web

from tests.support.scripted import status_body
from vkprovider.controllers.context import Context
from vkprovider.kube.client import KubeClient
from vkprovider.kube.events import EventRecorder

KEY = "allocations.json"


class ClaimServer:
    """One ConfigMap with optimistic locking.

    Attributes:
        found: The ConfigMap; None if there is none.
        writes: How many were taken.
        lose: How many answers to writes that were taken get lost.
    """

    def __init__(self) -> None:
        self.found: dict[str, Any] | None = None
        self.writes = 0
        self.lose = 0
        self._version = 0

    async def start(self) -> Self:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{tail:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def stop(self) -> None:
        await self._runner.cleanup()

    @property
    def text(self) -> str:
        """The document as it is written."""
        assert self.found is not None
        text: str = self.found["data"][KEY]
        return text

    @text.setter
    def text(self, text: str) -> None:
        assert self.found is not None
        self.found["data"] = {KEY: text}
        self._stamp(self.found)

    @property
    def document(self) -> dict[str, Any]:
        """The document; writing to it is what an editor of the ConfigMap does."""
        found: dict[str, Any] = json.loads(self.text)
        return found

    @document.setter
    def document(self, found: dict[str, Any]) -> None:
        self.text = json.dumps(found)

    def _stamp(self, found: dict[str, Any]) -> None:
        self._version += 1
        found["metadata"]["resourceVersion"] = str(self._version)

    async def _serve(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            return self._answer(404, "not found") if self.found is None else web.json_response(self.found)
        body = await request.json()
        if request.method == "POST" and self.found is not None:
            return self._answer(409, "it exists", "AlreadyExists")
        if request.method == "PUT":
            if self.found is None:
                return self._answer(404, "not found")
            if body["metadata"]["resourceVersion"] != self.found["metadata"]["resourceVersion"]:
                return self._answer(409, "it has been modified", "Conflict")
        self._stamp(body)
        self.found = body
        self.writes += 1
        if self.lose:
            self.lose -= 1
            return self._answer(504, "the answer is lost")
        return web.json_response(body)

    def _answer(self, code: int, message: str, reason: str = "") -> web.Response:
        return web.Response(status=code, body=status_body(code, message, reason))


def context(kube: KubeClient) -> Context:
    """Make a replica's context."""
    events = EventRecorder(kube, component="vkprovider", instance="test")
    return Context(kube=kube, events=events, installation="inst", replica="r1", namespace="labs")

"""A client of the portal that does what the spawner of Nublado does, with the libraries that it uses."""

import json
from typing import Any, Final

import httpx
from httpx_sse import aconnect_sse

_STOP_S: Final = 300
Json = dict[str, Any]


class SpawnError(Exception):
    """A lab could not be started."""


class NubladoSpawner:
    """The calls of one user's spawner in a hub.

    Attributes:
        events: What `progress` of a hub would yield: progress, and a message with its severity.
    """

    def __init__(self, base: str, user: str, headers: dict[str, str], hub: dict[str, str]) -> None:
        """Create it.

        Args:
            base: The URL of the routes.
            user: Whose labs it spawns.
            headers: The headers of that user.
            hub: The headers of the hub.
        """
        self._http = httpx.AsyncClient(base_url=base, timeout=_STOP_S)
        self._lab = f"/labs/{user}"
        self._form = f"/lab-form/{user}"
        self._headers = headers
        self._hub = hub
        self.events: list[tuple[int, str]] = []

    async def close(self) -> None:
        await self._http.aclose()

    async def options_form(self) -> str:
        answer = await self._http.get(self._form, headers=self._headers)
        answer.raise_for_status()
        return answer.text

    async def start(self, options: Json, env: Json) -> str:
        """Start a lab; return its URL."""
        self.events = []
        answer = await self._create(options, env)
        if answer.status_code == 409:
            self.events.append((0, "[warning] Deleting existing orphaned lab"))
            await self.stop()
            answer = await self._create(options, env)
        if answer.status_code != 201:
            raise SpawnError(answer.text)
        await self._follow()
        return await self.get_url()

    async def _create(self, options: Json, env: Json) -> httpx.Response:
        body = {"options": options, "env": env}
        return await self._http.post(f"{self._lab}/create", json=body, headers=self._headers)

    async def _follow(self) -> None:
        progress = 0
        async with aconnect_sse(self._http, "GET", f"{self._lab}/events", headers=self._headers) as source:
            source.response.raise_for_status()
            async for event in source.aiter_sse():
                if event.event == "ping":
                    continue
                severity = event.event if event.event in {"info", "error", "complete", "failed"} else "unknown"
                try:
                    data = json.loads(event.data)
                    message, progress = str(data["message"]), int(data.get("progress", progress))
                except (ValueError, KeyError, TypeError):
                    message = event.data
                if severity == "complete":
                    progress = 75
                self.events.append((progress, f"[{severity}] {message}"))
                if severity == "failed":
                    raise SpawnError(message)
                if severity == "complete":
                    return
        raise SpawnError("the stream ended without an end")

    async def get_url(self) -> str:
        answer = await self._http.get(self._lab, headers=self._hub)
        answer.raise_for_status()
        url = answer.json().get("internal_url")
        if not url:
            raise SpawnError("the lab has no URL")
        return str(url)

    async def stop(self) -> None:
        answer = await self._http.delete(self._lab, headers=self._hub)
        if answer.status_code != 404:
            answer.raise_for_status()

    async def poll(self) -> int | None:
        answer = await self._http.get(self._lab, headers=self._hub)
        if answer.status_code == 404:
            return 0
        answer.raise_for_status()
        return {"failed": 1, "terminating": 0, "terminated": 0}.get(answer.json()["status"])

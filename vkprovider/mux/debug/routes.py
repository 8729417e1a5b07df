"""The paths of the debug page, who asks, and whether a backend accepts connections."""

import asyncio
import base64
import contextlib
import hmac
import time
from collections.abc import Iterable
from typing import Any, Final

from aiohttp import web

from vkprovider.mux.debug import views
from vkprovider.mux.events import Events
from vkprovider.mux.index import MuxIndex
from vkprovider.mux.memory import MuxMemory
from vkprovider.mux.settings import DebugWebSettings, MuxSettings
from vkprovider.platform.errors import shorten
from vkprovider.platform.http.access import AccessControl
from vkprovider.platform.http.answers import NotAllowed, QueryInvalid, Refused
from vkprovider.platform.http.served import served, strict_headers
from vkprovider.platform.rights import Right, User
from vkprovider.platform.runtime.parts import Route

SLOW_S: Final = 2.0
"""How long a wrong password is not answered."""


class PasswordMissing(Refused):
    """Neither the password of the debug page was sent, nor a token."""

    status_code = 401
    remedy = "Send the password of the debug page of muxes with any user name, or a token of the cluster."

    def directions(self) -> dict[str, str]:
        """Return the headers by which a browser asks for the password."""
        return {"WWW-Authenticate": 'Basic realm="vkprovider-mux", charset="UTF-8"'}


class DebugCaller:
    """Somebody who is known, and what they may see."""

    def __init__(self, access: AccessControl, user: User | None) -> None:
        """Create it.

        Args:
            access: Asks for rights.
            user: The user of a token; None for who knows the password.
        """
        self._access = access
        self._user = user

    @property
    def sees_all(self) -> bool:
        """Whether every mux is visible."""
        return self._user is None

    async def visible(self, keys: Iterable[str]) -> list[str]:
        """Return the muxes among these that may be seen, in the order of their names.

        Raises:
            Refused: 503: the API server cannot be asked.
        """
        if self._user is None:
            return sorted(keys)
        by_namespace: dict[str, list[str]] = {}
        for key in sorted(keys):
            by_namespace.setdefault(key.partition("/")[0], []).append(key)
        user, found = self._user, []

        async def may_get(namespace: str, name: str = "") -> bool:
            return await self._access.may(user, Right("get", "services", namespace, name))

        sees_all = await may_get("")  # most may see all, or all of a namespace: one question for each mux is too many
        for namespace, within in by_namespace.items():
            if sees_all or await may_get(namespace):
                found += within
            else:
                found += [key for key in within if await may_get(*key.split("/"))]
        return found


class DebugCallers:
    """Finds out who asks."""

    def __init__(self, access: AccessControl, password: str | None) -> None:
        """Create it.

        Args:
            access: Asks for the user of a token.
            password: The password of the page; None if there is none.
        """
        self._access = access
        self._password = password

    async def known(self, request: web.Request) -> DebugCaller:
        """Return who asks.

        Raises:
            Refused: 401: nobody that is known; 503: the API server cannot be asked.
        """
        header = request.headers.get("Authorization", "")
        scheme = header.partition(" ")[0].lower()
        if scheme == "bearer":
            return DebugCaller(self._access, await self._access.user(request))
        if scheme == "basic" and self._password is not None:
            if _password_of(header, self._password):
                return DebugCaller(self._access, None)
            await asyncio.sleep(SLOW_S)
            raise PasswordMissing("the password is wrong")
        ways = "a token of the cluster as `Authorization: Bearer …`"
        raise PasswordMissing(f"send {'the password, with any user name, or ' if self._password else ''}{ways}")


def _password_of(header: str, expected: str) -> bool:
    """Return whether a header of Basic authentication has the password, in a time that tells nothing of it."""
    try:
        _, colon, sent = base64.b64decode(header.partition(" ")[2], validate=True).partition(b":")
    except ValueError:
        return False
    return bool(colon) and hmac.compare_digest(sent, expected.encode())


TIMEOUT_S: Final = 3.0
AT_ONCE: Final = 4
"""Probes at once, of all callers."""


class BackendProbe:
    """Connects, and closes the connection at once."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def test(self, host: str, port: int) -> dict[str, Any]:
        """Return whether a connection was accepted, and how long that took."""
        async with self._turns:
            began = time.monotonic()
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    _, writer = await asyncio.open_connection(host, port)
            except TimeoutError:
                return {"success": False, "error": f"no answer within {TIMEOUT_S:g} s"}
            except OSError as error:
                return {"success": False, "error": error.strerror or str(error)}
            took_ms = round((time.monotonic() - began) * 1000, 1)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return {"success": True, "took_ms": took_ms}


_PORT_MAX: Final = 65535
_QUOTED_CHARS: Final = 60
_HEADERS: Final = {
    **strict_headers(views.STYLE_SOURCE),
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Frame-Options": "DENY",
}


class DebugPage:
    """The handlers."""

    def __init__(
        self,
        settings: DebugWebSettings,
        muxes: MuxSettings,
        replica: str,
        index: MuxIndex,
        memory: MuxMemory,
        events: Events,
        callers: DebugCallers,
    ) -> None:
        """Create them.

        Args:
            settings: What the page does.
            muxes: How muxes are served.
            replica: The name of this replica.
            index: All muxes.
            memory: The muxes that this replica serves.
            events: The last Events.
            callers: Finds out who asks.
        """
        self._settings = settings
        self._muxes = muxes
        self._replica = replica
        self._index = index
        self._memory = memory
        self._events = events
        self._callers = callers
        self._probe = BackendProbe()

    def routes(self) -> tuple[Route, ...]:
        """Return the paths; only that for probes if the page is off."""
        alive = Route("GET", "/healthz", served(self._alive, _HEADERS))
        if not self._settings.enabled:
            return (alive,)
        return (
            alive,
            Route("GET", "/", served(self._page, _HEADERS)),
            Route("GET", "/api/state", served(self._state, _HEADERS)),
            Route("GET", "/api/topology", served(self._topology, _HEADERS)),
            Route("GET", "/api/config", served(self._config, _HEADERS)),
            Route("GET", "/api/test-tcp", served(self._test_tcp, _HEADERS)),
        )

    async def _alive(self, _: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "ok"})

    async def _page(self, request: web.Request) -> web.StreamResponse:
        caller = await self._callers.known(request)
        visible = await caller.visible(self._index.muxes)
        topology = views.topology(self._index, self._memory, visible)
        text = views.page(self._replica, self._state_for(caller, visible), topology)
        return web.Response(text=text, content_type="text/html")

    async def _state(self, request: web.Request) -> web.StreamResponse:
        caller = await self._callers.known(request)
        return web.json_response(self._state_for(caller, await caller.visible(self._index.muxes)))

    def _state_for(self, caller: DebugCaller, visible: list[str]) -> dict[str, Any]:
        return views.state(self._index, self._memory, self._events, visible, sees_all=caller.sees_all)

    async def _topology(self, request: web.Request) -> web.StreamResponse:
        caller = await self._callers.known(request)
        visible = await caller.visible(self._index.muxes)
        return web.json_response(views.topology(self._index, self._memory, visible))

    async def _config(self, request: web.Request) -> web.StreamResponse:
        await self._callers.known(request)
        return web.json_response(
            {
                "actions_enabled": self._settings.actions,
                "dry_run": self._muxes.dry_run,
                "endpoints": self._muxes.endpoints,
                "prefix": self._muxes.prefix,
                "replica": self._replica,
            }
        )

    async def _test_tcp(self, request: web.Request) -> web.StreamResponse:
        caller = await self._callers.known(request)
        if not self._settings.actions:
            raise NotAllowed("actions are off: DEBUG_WEB_ACTIONS_ENABLED")
        host, text = request.query.get("host", ""), request.query.get("port", "")
        port = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(_PORT_MAX)) else 0
        if not host:
            raise QueryInvalid("parameter host is missing: an address of a mux, or of one of its backends")
        if not 1 <= port <= _PORT_MAX:
            raise QueryInvalid(f"parameter port is {shorten(text, _QUOTED_CHARS)!r}, not a number within 1-{_PORT_MAX}")
        visible = await caller.visible(self._index.muxes)
        wanted = request.query.get("resource", "")
        seen = [key for key in visible if wanted in {"", key}]
        if (host, port) not in views.targets(views.topology(self._index, self._memory, seen)):
            raise NotAllowed("no mux that you may see, and this replica serves, leads to this address and port by TCP")
        result = await self._probe.test(host, port)
        return web.json_response({"host": host, "port": port, "resource": wanted, **result})

"""`/exec`, `/attach` and `/portForward`: sessions of clients, passed on to the devices."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final

import structlog
from aiohttp import web

from tunnels.errors import ConnectionLost
from vkprovider.labs.kubelet.listeners import MOVED, NodeListener
from vkprovider.labs.kubelet.server import Call, Handler, Pods, Routes
from vkprovider.labs.kubelet.sessions import Sessions
from vkprovider.labs.kubelet.spi import Channel, Devices, Exit, ForwardedConnection
from vkprovider.labs.kubelet.streams.commands import Command, accept_command
from vkprovider.labs.kubelet.streams.forwards import PortForward, accept_forward
from vkprovider.labs.kubelet.streams.limits import Limits
from vkprovider.platform.errors import InputError, OutsideError

_log: Final = structlog.get_logger(__name__)
_WORDS_MAX: Final = 100
_GOODBYE_S: Final = 2.0
"""How long the devices' side has to end a session whose Node has left."""


class Consoles:
    """The handlers."""

    def __init__(self, pods: Pods, sessions: Sessions, devices: Devices, limits: Limits) -> None:
        """Create them.

        Args:
            pods: Of the Nodes.
            sessions: The open ones.
            devices: What sessions reach.
            limits: Of each session.
        """
        self._pods = pods
        self._sessions = sessions
        self._devices = devices
        self._limits = limits

    def routes(self) -> Routes:
        """Return the handlers by method and path."""
        found: dict[tuple[str, str], Handler] = {}
        for method in ("GET", "POST"):
            found[method, "/exec/{namespace}/{pod}/{container}"] = self._exec
            found[method, "/attach/{namespace}/{pod}/{container}"] = self._attach
            found[method, "/portForward/{namespace}/{pod}"] = self._forward
        return found

    async def _exec(self, request: web.Request, call: Call) -> web.StreamResponse:
        pod, target = self._pods.target(request, call)
        words = request.query.getall("command", [])
        if not words or len(words) > _WORDS_MAX:
            raise web.HTTPBadRequest(text=f"give a command of 1 … {_WORDS_MAX} words\n")
        with self._sessions.console("exec", request, call, pod, target.container):
            command = await accept_command(request, self._limits)
            async with command:
                await _serve(command, self._devices.execute(target, words, command), call.listener)
            return command.response

    async def _attach(self, request: web.Request, call: Call) -> web.StreamResponse:
        pod, target = self._pods.target(request, call)
        with self._sessions.console("attach", request, call, pod, target.container):
            command = await accept_command(request, self._limits)
            async with command:
                await _serve(command, self._devices.attach(target, command), call.listener)
            return command.response

    async def _forward(self, request: web.Request, call: Call) -> web.StreamResponse:
        pod = self._pods.find(request, call)
        with self._sessions.console("portForward", request, call, pod, ""):
            forward = await accept_forward(request, self._limits)
            async with forward:
                await self._connect_all(forward, pod.metadata.namespace, pod.metadata.name, call.listener)
            return forward.response

    async def _connect_all(self, forward: PortForward, namespace: str, pod: str, listener: NodeListener) -> None:
        """Serve the connections of a session until it ends, or the Node leaves."""
        loop = asyncio.get_running_loop()
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as scope, asyncio.TaskGroup() as group:
                with listener.until_left(lambda: scope.reschedule(loop.time())):
                    while (connection := await forward.accept()) is not None:
                        group.create_task(self._connect(connection, namespace, pod))

    async def _connect(self, connection: ForwardedConnection, namespace: str, pod: str) -> None:
        try:
            channel = await self._devices.dial(namespace, pod, connection.port)
        except InputError as error:
            await connection.fail(f"{error.reason}: {error.message}")
            return
        except OutsideError as error:  # as a connection that is refused: the session goes on
            _log.info("a port cannot be reached", pod=f"{namespace}/{pod}", port=connection.port, error=str(error))
            await connection.close()
            return
        try:
            await _pump(connection, channel)
        finally:
            await channel.close()
            await connection.close()


async def _serve(command: Command, running: Awaitable[Exit], listener: NodeListener) -> None:
    """Run a session, and tell its client how it ended."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as scope:
            with listener.until_left(lambda: scope.reschedule(loop.time() + _GOODBYE_S)):
                status = await running
    except TimeoutError:
        status = Exit(1, MOVED, "InternalError")
    except InputError as error:
        status = Exit(1, error.message, error.reason)
    except OutsideError as error:
        status = Exit(1, error.message, "InternalError")
    except ConnectionLost:
        return
    await command.exit(status)


async def _pump(connection: ForwardedConnection, channel: Channel) -> None:
    """Pass bytes on in both directions, until both have ended or one is lost."""

    async def there() -> None:
        while data := await connection.read():
            await channel.write(data)
        await channel.end()

    async def back() -> None:
        while data := await channel.read():
            await connection.write(data)
        await connection.half_close()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(there())
            group.create_task(back())
    except* (ConnectionLost, OutsideError) as lost:
        _log.debug("a forwarded connection is lost", port=connection.port, error=repr(lost.exceptions[0]))

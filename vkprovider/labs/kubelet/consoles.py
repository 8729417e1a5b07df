"""`/exec`, `/attach` and `/portForward`: sessions, how many are open, and who has them.

Of the user the kubelet API sees what the API server shows: its own client certificate. Whoever calls directly is seen
by name. The API server's audit log has the user in both cases.
"""

import asyncio
from collections import Counter as Tally
from collections import OrderedDict
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import structlog
from aiohttp import web

from tunnels.base import ConnectionLost
from vkprovider.lablet.reasons import Happened
from vkprovider.labs.kubelet.listeners import MOVED, NodeListener
from vkprovider.labs.kubelet.server import Call, Handler, NodePods, Routes, failure
from vkprovider.labs.kubelet.spi import ByteChannel, Devices, Exit, ForwardedConnection
from vkprovider.labs.kubelet.streams.commands import Command, accept_command
from vkprovider.labs.kubelet.streams.forwards import PortForward, accept_forward
from vkprovider.labs.kubelet.streams.inlets import SessionLimits
from vkprovider.platform.errors import InputError, OutsideError
from vkprovider.platform.http.connections import uncount
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.objects import Pod
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)

_audit: Final = structlog.get_logger("vkprovider.audit")
_SEEN_MAX: Final = 20_000
_STUCK_S: Final = 4 * 3600.0
"""How long a session may wait for its reader, as in a kubelet (`streamingConnectionIdleTimeout`)."""
_OF_POD_MAX: Final = 64
"""Sessions of one Pod, at most: those of a class that watches one learner, and no more of all."""
_WORDS_CHARS_MAX: Final = 200


class OpenSessions:
    """The open sessions of a replica.

    Attributes:
        open: How many, by kind: `logs`, `attach`, `exec`, `portForward`.
        total: How many there were.
    """

    def __init__(self, ctx: Context, sessions_max: int) -> None:
        """Create it.

        Args:
            ctx: The replica.
            sessions_max: How many may be open.
        """
        self._ctx = ctx
        self._max = sessions_max
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._of_pods: Tally[str] = Tally()
        self.open: Tally[str] = Tally()
        self.total: Tally[str] = Tally()

    @contextmanager
    def counted(self, kind: str, request: web.Request, pod: Pod) -> Iterator[None]:
        """Count a session while the block runs; its connection is not one that may be closed for its silence.

        Raises:
            web.HTTPException: 500: there are too many, of all Pods or of one: no learner takes the place of others.
        """
        uid = pod.metadata.uid
        if self._of_pods[uid] >= _OF_POD_MAX:
            raise failure(f"{_OF_POD_MAX} sessions of pod {pod.key} are open already: end one, and try again")
        if self.open.total() >= self._max:
            raise failure(
                "as many sessions are open on this replica as VKPROVIDER_KUBELET_SESSIONS_MAX allows "
                f"({self._max}): try again later"
            )
        uncount(request, stuck_s=_STUCK_S)
        self._of_pods[uid] += 1
        self.open[kind] += 1
        self.total[kind] += 1
        try:
            yield
        finally:
            self.open[kind] -= 1
            self._of_pods[uid] -= 1
            if not self._of_pods[uid]:
                del self._of_pods[uid]

    @contextmanager
    def console(self, kind: str, request: web.Request, call: Call, pod: Pod, container: str) -> Iterator[None]:
        """Count a session that reaches devices, report it on the Pod, and log who had it for how long.

        Raises:
            web.HTTPException: 500: there are too many.
        """
        began = self._ctx.now()
        about = {
            "kind": kind,
            "user": call.user.username,
            "node": call.listener.node,
            "pod": pod.key,
            "container": container,
            "forwarded_for": _word(request, "X-Forwarded-For"),
            "kubectl_session": _word(request, "Kubectl-Session"),
            "client": _word(request, "User-Agent"),
        }
        with self.counted(kind, request, pod):
            self._report(call.user.username, pod, f"{kind} {container}".strip())
            _audit.info("a session begins", **about)
            try:
                yield
            finally:
                _audit.info("a session ends", **about, lasted_s=round(self._ctx.now() - began, 1))

    def _report(self, user: str, pod: Pod, what: str) -> None:
        """Emit an Event at the first session of a user with a Pod that this replica sees."""
        key = pod.metadata.uid, user
        if key in self._seen:
            self._seen.move_to_end(key)
            return
        self._seen[key] = None
        if len(self._seen) > _SEEN_MAX:
            self._seen.popitem(last=False)
        meta = pod.metadata
        ref = ObjectRef("v1", "Pod", meta.namespace, meta.name, meta.uid)
        note = f"{user} has begun a session ({what}); who that is for is in the API server's audit log"
        self._ctx.events.emit(ref, "Normal", Happened.CONSOLE_OPENED, note)


def _word(request: web.Request, header: str) -> str:
    return request.headers.get(header, "")[:_WORDS_CHARS_MAX]


_WORDS_MAX: Final = 100
_GOODBYE_S: Final = 2.0
"""How long the devices' side has to end a session whose Node has left."""


class ConsoleHandlers:
    """The handlers."""

    def __init__(self, pods: NodePods, sessions: OpenSessions, devices: Devices, limits: SessionLimits) -> None:
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


async def _pump(connection: ForwardedConnection, channel: ByteChannel) -> None:
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

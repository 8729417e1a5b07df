"""The console of a device through the API server, with the credentials of the person at it and no others."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from vkprovider.lablet import names
from vkprovider.platform.errors import DeadlineExceeded, Unavailable
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.http.websockets import KubeWebSocket
from vkprovider.portal.web.consoles.frames import ConsoleEnd, Mode
from vkprovider.portal.web.consoles.words import end_of

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _ERROR = range(4)
"""The first byte of a message: its channel (`k8s.io/kubernetes`, `wsstream`)."""
_TYPED_BYTES_MAX: Final = 32 * 1024
"""The longest message with keys: the buffer of the reference kubelet."""

_COMMAND_S_MAX: Final = 120.0
_OUTPUT_BYTES_MAX: Final = 4 * 1024 * 1024


class ConsoleTarget(NamedTuple):
    """A console.

    Attributes:
        namespace, pod: The lablet.
        container: Its container that is the lablet as a whole.
        device: The label of the device, or the name of its container.
    """

    namespace: str
    pod: str
    container: str
    device: str

    def path(self) -> str:
        """Return the path of `exec`."""
        return f"/api/v1/namespaces/{quote(self.namespace, safe='')}/pods/{quote(self.pod, safe='')}/exec"

    def command(self, words: Sequence[str], *, stdin: bool, tty: bool) -> list[tuple[str, str]]:
        """Return the query by which words are executed in the container of the lablet as a whole."""
        wants = {"stdin": stdin, "stdout": True, "tty": tty, "stderr": not tty}
        flags = [(name, "true") for name, wanted in wants.items() if wanted]
        return [("container", self.container), *(("command", word) for word in words), *flags]


class UpstreamConsole:
    """An open session of `exec`."""

    def __init__(self, socket: KubeWebSocket, device: str) -> None:
        """Take over a WebSocket."""
        self._socket = socket
        self._device = device
        self._status = b""

    async def read(self) -> bytes:
        """Return what the device prints next; none at the end."""
        while (message := await self._socket.receive()) is not None:
            if not message:
                continue
            channel, data = message[0], message[1:]
            if channel in {_STDOUT, _STDERR} and data:
                return data
            if channel == _ERROR:
                self._status += data
        return b""

    async def write(self, keys: bytes) -> None:
        """Press keys.

        Raises:
            Unavailable: The connection is lost.
        """
        for start in range(0, len(keys), _TYPED_BYTES_MAX):
            await self._socket.send(bytes((_STDIN,)) + keys[start : start + _TYPED_BYTES_MAX])

    @property
    def end(self) -> ConsoleEnd:
        """Why it has ended, after `read` has returned nothing."""
        return end_of(self._status, self._device)


@contextlib.asynccontextmanager
async def upstream(kube: KubeClient, target: ConsoleTarget, mode: Mode) -> AsyncIterator[UpstreamConsole]:
    """Open a console while the block runs.

    Who watches sends no input at all, as `kubectl lablet console --watch` does not, so that nothing can be typed.

    Args:
        kube: A client with the credentials of the person.
        target: The console.
        mode: Whether they type, watch, or take over.
    """
    words = names.console_command(target.device, take_over=mode is Mode.TAKE_OVER)
    query = target.command(words, stdin=mode is not Mode.WATCH, tty=True)
    socket = await kube.websocket(target.path(), query, PROTOCOLS)
    try:
        yield UpstreamConsole(socket, target.device)
    finally:
        await socket.close()


async def printed(kube: KubeClient, target: ConsoleTarget, command: Sequence[str]) -> tuple[bytes, ConsoleEnd]:
    """Run a command of the lablet as a whole, such as `config r1`; return what it prints, and how it ended.

    Raises:
        OutsideError: The API server refuses, or does not answer, or the output is too long.
    """
    query = target.command(command, stdin=False, tty=False)
    socket = await kube.websocket(target.path(), query, PROTOCOLS)
    session, output = UpstreamConsole(socket, target.device), bytearray()
    try:
        async with asyncio.timeout(_COMMAND_S_MAX):
            while data := await session.read():
                output += data
                if len(output) > _OUTPUT_BYTES_MAX:
                    raise Unavailable(f"{target.device} prints more than {_OUTPUT_BYTES_MAX} bytes")
    except TimeoutError:
        raise DeadlineExceeded(f"{target.device} did not answer within {_COMMAND_S_MAX:.0f} s") from None
    finally:
        await socket.close()
    return bytes(output), session.end

"""What answers at the ports inside a simulated device: an SSH server at 22, and HTTP or an echo anywhere else."""

import asyncio
import functools
import importlib.util
from typing import Any, Final

from vkpsim.cml.consoles.shell import Shell
from vkpsim.cml.world.model import Node

SSH: Final = 22


def has_ssh() -> bool:
    """Return whether there is a package that can serve SSH."""
    return importlib.util.find_spec("asyncssh") is not None


class SshServer:
    """An SSH server of a device; anybody may log in, and reaches what the device answers at its console."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._acceptor: Any = None
        self._connections: set[Any] = set()

    async def open(self, host: str, port: int) -> None:
        """Listen."""
        import asyncssh  # noqa: PLC0415 (a package of the tests, which the simulator does without)

        connections = self._connections
        methods = {
            "begin_auth": lambda _self, _user: False,
            "connection_made": lambda _self, connection: connections.add(connection),
        }
        self._acceptor = await asyncssh.listen(
            host,
            port,
            server_factory=type("OpenToAll", (asyncssh.SSHServer,), methods),
            process_factory=self._serve,
            server_host_keys=[_host_key()],
        )

    def close(self) -> None:
        """Stop listening and break the connections."""
        self._acceptor.close()
        for connection in self._connections:
            connection.abort()

    async def _serve(self, process: Any) -> None:
        shell = Shell(self._node, 0)
        if process.command:
            process.stdout.write("".join(f"{line}\n" for line in shell.answer(process.command)))
        else:
            process.stdout.write(shell.prompt)
            async for line in process.stdin:
                process.stdout.write("".join(f"{text}\n" for text in shell.answer(line.strip())) + shell.prompt)
        process.exit(0)


@functools.cache
def _host_key() -> Any:
    import asyncssh  # noqa: PLC0415 (as above)

    return asyncssh.generate_private_key("ssh-ed25519")


async def serve_inside(node: Node, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer HTTP with the node's label, and repeat whatever else comes in."""
    while raw := await reader.readline():
        if b" HTTP/1." in raw:
            while (await reader.readline()).strip():
                pass
            body = f"{node.label}:{port}\n"
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write((head + body).encode())
            await writer.drain()
            return
        writer.write(raw)
        await writer.drain()

"""A TCP service that echoes, a client that checks what comes back, and a socket that hears nothing any more."""

import asyncio
import ctypes
import hashlib
import socket
import struct
from typing import Final

PATIENCE_S: Final = 120.0
SO_ATTACH_FILTER: Final = 26


def port_of(server: asyncio.Server) -> int:
    """Return where a server listens."""
    port: int = server.sockets[0].getsockname()[1]
    return port


def digest(data: bytes) -> bytes:
    """Return what `there_and_back` returns if nothing is lost."""
    return hashlib.sha256(data).digest()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve a connection: send back what comes, and close after the client's half-close."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def there_and_back(port: int, data: bytes) -> bytes:
    """Send bytes, half-close, and return the digest of what comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = hashlib.sha256()

    async def read() -> None:
        while received := await reader.read(65536):
            found.update(received)

    reading = asyncio.create_task(read())
    for start in range(0, len(data), 65536):
        writer.write(data[start : start + 65536])
        await writer.drain()
    writer.write_eof()
    async with asyncio.timeout(PATIENCE_S):
        await reading
    writer.close()
    return found.digest()


def deafen(sock: socket.socket) -> None:
    """Let the kernel drop all that comes to a socket, as if its host had lost its power: no FIN, no RST, no ACK."""
    drop = ctypes.create_string_buffer(struct.pack("=HBBI", 0x06, 0, 0, 0))  # BPF_RET | BPF_K, of no byte
    program = struct.pack("@HP", 1, ctypes.addressof(drop))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)

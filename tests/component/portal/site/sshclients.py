"""Clients of others at the port for ssh of a portal: OpenSSH, and what it prints."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

_OPTIONS: Final = (
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "LogLevel=ERROR",
    "PubkeyAuthentication=no",
    "NumberOfPasswordPrompts=1",
)
LINE_S: Final = 60.0


def program(name: str) -> str:
    """Return the path of a client; without it the test is skipped."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}")
    return found


class Client:
    """A client that runs.

    Attributes:
        out: What it has printed, errors too, and nobody has waited for.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.out = ""
        self._more = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while data := await self.process.stdout.read(65536):
            self.out += data.decode(errors="replace")
            self._more.set()

    async def type(self, keys: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(keys.encode())
        await self.process.stdin.drain()

    async def shows(self, text: str, within_s: float = LINE_S) -> None:
        """Wait until the text has come, and forget all before it."""
        try:
            async with asyncio.timeout(within_s):
                while text not in self.out:
                    assert not self._reading.done(), f"ended without {text!r}: {self.out[-600:]!r}"
                    self._more.clear()
                    await asyncio.wait(
                        (self._reading, waiting := asyncio.ensure_future(self._more.wait())),
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                    waiting.cancel()
        except TimeoutError:
            raise AssertionError(f"{text!r} did not come; there is {self.out[-600:]!r}") from None
        self.out = self.out.partition(text)[2]

    async def ends(self, within_s: float = LINE_S) -> tuple[int, str]:
        """Wait for its end; return the exit status, and what it has printed since."""
        async with asyncio.timeout(within_s):
            status = await self.process.wait()
            await self._reading
        return status, self.out


@contextlib.asynccontextmanager
async def started(*command: str, env: dict[str, str] | None = None) -> AsyncIterator[Client]:
    """Run a client while the block runs."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **(env or {})},
        start_new_session=True,
    )
    client = Client(process)
    try:
        yield client
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await client.ends()


class OpenSsh:
    """OpenSSH, with a password that it asks a program for."""

    def __init__(self, folder: Path, port: int, password: str) -> None:
        """Write that program into a folder."""
        self.port = port
        asking = folder / "askpass"
        asking.write_text(f"#!/bin/sh\necho '{password}'\n")
        asking.chmod(0o700)
        self._env = {"SSH_ASKPASS": str(asking), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}

    def run(self, login: str, *options: str, command: str = "") -> contextlib.AbstractAsyncContextManager[Client]:
        """Run it as somebody."""
        # The first value of an option counts.
        given = [*options, *(f"-o{each}" for each in _OPTIONS), "-p", str(self.port), f"{login}@127.0.0.1"]
        return started(program("ssh"), "-F", "none", *given, *([command] if command else []), env=self._env)

    def copy(self, name: str, *words: str) -> contextlib.AbstractAsyncContextManager[Client]:
        """Run sftp or scp."""
        given = [*(f"-o{each}" for each in _OPTIONS), "-P", str(self.port)]
        return started(program(name), "-F", "none", *given, *words, env=self._env)

"""A real MQTT broker, a process of its own, with the access rules that are shipped."""

import asyncio
import contextlib
import os
import random
import shutil
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

ACL: Final = Path(__file__).parents[2] / "manifests" / "mosquitto" / "aclfile"
GET_IT: Final = "apt-get install mosquitto, or: make test INSTALL=1"
CALLER: Final = "vkprovider"
PASSWORD: Final = "secret of the broker"

_LISTENING: Final = (61_000, 65_536)
"""Above Linux' `ip_local_port_range`: one of these stays free until a test listens on it."""
_PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


def mosquitto_or_skip() -> str:
    """Return the broker's program; without it the test is skipped, but in CI it fails."""
    found = shutil.which("mosquitto", path=_PATH)
    if found is None:
        why = f"no mosquitto; get it: {GET_IT}"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return found


def free_port() -> int:
    """Return a port on which nothing listens, of those that the kernel gives to no outgoing connection."""
    while True:
        port = random.SystemRandom().randrange(*_LISTENING)
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port


@dataclass
class Mosquitto:
    """A broker for `CALLER` and some agents, all with the same password.

    Attributes:
        folder: For its files.
        agents: Users besides the caller.
        lines: Further lines of its configuration.
        persistent: Whether it saves what it holds.
        acl: Its access rules.
        by_certificate: Whether it knows its clients by certificates instead of passwords.
        port: Where it listens.
    """

    folder: Path
    agents: tuple[str, ...] = ("w1", "w2")
    lines: tuple[str, ...] = ()
    persistent: bool = False
    acl: Path = ACL
    by_certificate: bool = False
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start it, and wait until it listens."""
        program = mosquitto_or_skip()
        passwords = self.folder / "passwd"
        if not passwords.exists():
            passwords.touch(mode=0o600)
            for user in (CALLER, *self.agents):
                await self._make_user(passwords, user)
        config = self.folder / "mosquitto.conf"
        config.write_text(
            "\n".join(
                (
                    f"listener {self.port} 127.0.0.1",
                    *(("user root",) if os.geteuid() == 0 else ()),
                    "allow_anonymous false",
                    *(() if self.by_certificate else (f"password_file {passwords}",)),
                    f"acl_file {self.acl}",
                    "max_packet_size 262144",
                    "set_tcp_nodelay true",
                    f"persistence {str(self.persistent).lower()}",
                    f"persistence_location {self.folder}/",
                    "log_dest stderr",
                    *self.lines,
                    "",
                )
            )
        )
        with (self.folder / "mosquitto.log").open("ab") as log:
            self._process = subprocess.Popen([program, "-c", str(config)], stdout=log, stderr=log)  # noqa: ASYNC220, S603 (returns at once; our own program)
        await self._listens()

    async def stop(self, *, kill: bool = False) -> None:
        """End it, with or without a chance to save what it holds."""
        process, self._process = self._process, None
        if process is not None:
            process.kill() if kill else process.terminate()
            await asyncio.to_thread(process.wait, 20)

    def log(self) -> str:
        return (self.folder / "mosquitto.log").read_text(errors="replace")

    async def _make_user(self, passwords: Path, user: str) -> None:
        program = shutil.which("mosquitto_passwd", path=_PATH) or "mosquitto_passwd"
        made = await asyncio.create_subprocess_exec(program, "-b", str(passwords), user, PASSWORD)
        assert await made.wait() == 0

    async def _listens(self) -> None:
        async with asyncio.timeout(30):
            while True:
                assert self._process is not None
                assert self._process.poll() is None, self.log()
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                    writer.close()
                    await writer.wait_closed()
                    return
                await asyncio.sleep(0.05)

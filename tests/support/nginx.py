"""A real nginx in front of a server, with its stock settings."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.support.mosquitto import free_port

GET_IT: Final = "apt-get install nginx-light, or: make test INSTALL=1"
_PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
_CONFIGURATION: Final = """
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location {below} {{
      proxy_pass {url};
      {settings}
    }}
  }}
}}
"""


def nginx_or_skip() -> str:
    """Return the program; without it the test is skipped, but in CI it fails."""
    found = shutil.which("nginx", path=_PATH)
    if found is None:
        why = f"no nginx; get it: {GET_IT}"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return found


@contextlib.asynccontextmanager
async def proxied(folder: Path, url: str, settings: str = "", *, below: str = "/", port: int = 0) -> AsyncIterator[str]:
    """Run an nginx in front of a server; yield its own URL.

    Args:
        folder: For its files.
        url: The server; with a path, even `/`, that takes the place of `below`.
        settings: What differs from the stock settings.
        below: The path of what it passes on.
        port: Its own; any by default.
    """
    program, port = nginx_or_skip(), port or free_port()
    log = folder / "error.log"
    command = (program, "-p", str(folder), "-e", str(log), "-c", _configured(folder, port, url, settings, below))
    async with running_proxy(command, port, log):
        yield f"http://127.0.0.1:{port}"


@contextlib.asynccontextmanager
async def running_proxy(command: Sequence[str], port: int, log: Path) -> AsyncIterator[None]:
    """Run a proxy in the foreground, from when it listens until the end.

    Args:
        command: Its command line.
        port: That it listens on.
        log: Where it says why it does not.
    """
    process = await asyncio.create_subprocess_exec(*command)
    try:
        async with asyncio.timeout(30):
            while not await _listens(port):
                assert process.returncode is None, _text(log)
                await asyncio.sleep(0.05)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _configured(folder: Path, port: int, url: str, settings: str, below: str) -> str:
    folder.mkdir()
    file = folder / "nginx.conf"
    file.write_text(_CONFIGURATION.format(folder=folder, port=port, url=url, settings=settings, below=below))
    return str(file)


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True

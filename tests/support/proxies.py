"""Apache httpd and HAProxy in front of a server, as their packages set them up; the third one is in `nginx`."""

import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.mosquitto import free_port
from tests.support.nginx import running_proxy
from tests.support.relay import haproxy_or_skip
from vkpsandbox.controlplane.relay import find_haproxy

GET_APACHE: Final = "apt-get install apache2-bin, or: make test INSTALL=1"
_PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
_MODULES: Final = ("/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/local/lib/httpd/modules")
_APACHE: Final = """
ServerRoot {folder}
ServerName 127.0.0.1
PidFile {folder}/pid
ErrorLog {folder}/error.log
DefaultRuntimeDir {folder}
Listen 127.0.0.1:{port}
{load}
ProxyPreserveHost {preserved}
ProxyPass {below} {url}{parameters}
"""
_LOADED: Final = ("mpm_event", "authz_core", "proxy", "proxy_http", "proxy_wstunnel")
_HAPROXY: Final = """
global
  maxconn 200
defaults
  mode http
  timeout connect 5s
  timeout client 50s
  timeout server 50s
frontend front
  bind 127.0.0.1:{port}
  {settings}
  default_backend portal
backend portal
  server portal {host}
"""
"""The time-outs are those of Debian's package."""


def apache_or_skip() -> tuple[str, Path]:
    """Return the program and the folder of its modules; without them the test is skipped, but in CI it fails."""
    program = shutil.which("apache2", path=_PATH) or shutil.which("httpd", path=_PATH)
    modules = next((path for path in map(Path, _MODULES) if path.is_dir()), None)
    if program is None or modules is None:
        why = f"no Apache httpd; get it: {GET_APACHE}"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return program, modules


@contextlib.asynccontextmanager
async def apache(
    folder: Path, url: str, parameters: str = "", *, below: str = "/", port: int = 0, preserved: bool = False
) -> AsyncIterator[str]:
    """Run an Apache httpd in front of a server; yield its own URL.

    Args:
        folder: For its files.
        url: The server, with the path that takes the place of `below`.
        parameters: Of ProxyPass.
        below: The path of what it passes on.
        port: Its own; any by default.
        preserved: Whether Host stays as it is.
    """
    (program, modules), port = apache_or_skip(), port or free_port()
    load = "\n".join(f"LoadModule {name}_module {modules}/mod_{name}.so" for name in _LOADED)
    said = f" {parameters}" if parameters else ""
    host = "On" if preserved else "Off"
    text = _APACHE.format(folder=folder, port=port, load=load, below=below, url=url, parameters=said, preserved=host)
    file = _written(folder / "httpd.conf", text)
    async with running_proxy((program, "-D", "FOREGROUND", "-f", file), port, folder / "error.log"):
        yield f"http://127.0.0.1:{port}"


@contextlib.asynccontextmanager
async def haproxy(folder: Path, host: str, settings: str = "", *, port: int = 0) -> AsyncIterator[str]:
    """Run an HAProxy in front of a server; yield its own URL.

    Args:
        folder: For its files.
        host: The server, with its port.
        settings: Rules of its frontend.
        port: Its own; any by default.
    """
    haproxy_or_skip()
    port = port or free_port()
    file = _written(folder / "haproxy.cfg", _HAPROXY.format(port=port, host=host, settings=settings))
    async with running_proxy((find_haproxy(), "-db", "-f", file), port, folder / "none"):
        yield f"http://127.0.0.1:{port}"


def _written(file: Path, text: str) -> str:
    file.parent.mkdir()
    file.write_text(text)
    return str(file)

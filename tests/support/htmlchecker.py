"""The checker of HTML: one Java for a whole run of tests, started by the first page that is judged.

All processes of a run ask the same one over loopback. Each holds the end of a pipe for as long as it lives; when the
last one has ended, in whatever way, the shell that keeps Java reads the end of the pipe, and ends Java.
"""

import errno
import fcntl
import json
import os
import tempfile
import urllib.request
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import which
from typing import Final

import pytest

from tests.support.waiting import until
from vkpsandbox.processes.ports import free_ports

_KEEPER: Final = """
"$@" >"$PLACE/log" 2>&1 &
cat "$PLACE/users"
kill $!
wait $!
rm -r "$PLACE"
"""
_OPTIONS: Final = ("-Xss8m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_MAIN: Final = ("-Dnu.validator.servlet.bind-address=127.0.0.1", "nu.validator.servlet.Main")
_PATIENCE_S: Final = 100.0
"""It reads its schemas for some five seconds, on a busy machine for twenty."""


def check(pages: dict[str, str], jar: Path) -> list[str]:
    """Return what is wrong in some pages, each line with the name of its page.

    Args:
        pages: HTML by name.
        jar: The checker.
    """
    url = _url(jar)
    return [f"{name}:{wrong}" for name, text in pages.items() for wrong in _ask(url, text)]


def _ask(url: str, text: str) -> list[str]:
    request = urllib.request.Request(  # noqa: S310 (http, on loopback)
        f"{url}/?out=json&level=error", text.encode(), {"Content-Type": "text/html; charset=utf-8"}
    )
    with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:  # noqa: S310 (as above)
        messages = json.load(answer)["messages"]
    return [f"{each.get('lastLine')}: {each['message']}: {each.get('extract')}" for each in messages]


@cache
def _url(jar: Path) -> str:
    """Return where the checker of this run answers; it is started if it does not yet."""
    java = which("java")
    if java is None:
        pytest.skip("no java in PATH, which the checker of HTML runs on")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"alone-{os.getpid()}")
    place = Path(tempfile.gettempdir()) / f"vkprovider-html-{run}"
    place.mkdir(mode=0o700, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _joined(place):
            _start(place, [java, *_OPTIONS, "-cp", str(jar), *_MAIN])
    url = (place / "url").read_text()
    until(lambda: _answers(url), _PATIENCE_S, f"the checker of HTML does not answer; what it says: {place}/log")
    return url


def _joined(place: Path) -> bool:
    """Hold the pipe of a checker that is kept, until this process ends; return whether there is one."""
    try:
        os.open(place / "users", os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.ENXIO}:
            raise
        return False
    return True


def _start(place: Path, command: list[str]) -> None:
    [port] = free_ports(1)
    (place / "url").write_text(f"http://127.0.0.1:{port}")
    with suppress(FileExistsError):
        os.mkfifo(place / "users")
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    words = ["sh", "-c", _KEEPER, "keeper", *command, str(port)]
    os.posix_spawn("/bin/sh", words, {**os.environ, "PLACE": str(place)}, file_actions=nothing, setsid=True)
    os.open(place / "users", os.O_WRONLY)  # waits for the keeper


def _answers(url: str) -> bool:
    try:
        _ask(url, "<!doctype html><html lang=en><title>Ready</title><p>Ready")
    except OSError:
        return False
    return True

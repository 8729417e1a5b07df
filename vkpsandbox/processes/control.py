"""Requests to a supervisor through its control socket, and a check whether one lives."""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from vkpsandbox.errors import SandboxError
from vkpsandbox.paths import Layout

LONGEST_PATH: Final = 100
"""A socket's path has at most 107 characters on Linux (unix(7)), 103 on macOS."""


def supervised(layout: Layout) -> bool:
    """Return whether a supervisor lives: it holds the lock for as long as it does."""
    try:
        with layout.lock.open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


@contextlib.contextmanager
def socket_path(layout: Layout) -> Iterator[str]:
    """Return the socket's path, shortened through an open directory if it is too long for a socket."""
    path = str(layout.socket)
    if len(path) <= LONGEST_PATH:
        yield path
        return
    descriptor = os.open(layout.directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{layout.socket.name}"
    finally:
        os.close(descriptor)


def request(layout: Layout, op: str, *, timeout_s: float = 30, **arguments: Any) -> dict[str, Any]:
    """Send a request to the supervisor and return its answer; `supervisor` documents both.

    Raises:
        SandboxError: If there is no supervisor, it does not answer in time, or it refuses.
    """
    message = msgspec.json.encode({"op": op, **arguments}) + b"\n"
    try:
        with socket_path(layout) as path, socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(path)
            connection.sendall(message)
            answer = connection.makefile("rb").readline()
    except TimeoutError as error:
        raise SandboxError(
            f"the supervisor of {layout.directory} did not answer `{op}` in {timeout_s:.0f} s"
        ) from error
    except OSError as error:
        raise SandboxError(
            f"no supervisor answers in {layout.directory} ({error.strerror}): the sandbox does not run; "
            "`vkprovider sandbox up` starts one"
        ) from error
    if not answer:
        raise SandboxError(f"the supervisor of {layout.directory} ended while it was asked to `{op}`")
    decoded: dict[str, Any] = msgspec.json.decode(answer)
    if "error" in decoded:
        raise SandboxError(f"{op}: {decoded['error']}")
    return decoded

"""Reach a device through a port of its lablet, as a learner does."""

import contextlib
import json
import re
import socket
import time
from typing import Any, Final
from urllib.parse import urlsplit

from vkprovider.lablet import names
from vkpsandbox import Worker
from vkpsandbox.demo.terminal import DemoError

CONNECT_S: Final = 2.0
_ANSWERS_S: Final = 10.0
_QUIET_S: Final = 3.0
_POLL_S: Final = 0.2


def ports(pod: dict[str, Any]) -> dict[str, int]:
    """Return the serial ports of a Pod's devices, by label, as it reports them."""
    text = pod["metadata"].get("annotations", {}).get(names.ANNOTATION_PORT_MAPPINGS, "{}")
    found = json.loads(text).values()
    return {info["device_label"]: info["allocated_port"] for info in found if info["protocol"] == "serial"}


def host_of(worker: Worker) -> str:
    """Return the address of a simulated worker's ports; "" if it has no address of its own and opens none."""
    host = urlsplit(worker.url).hostname or ""
    return "" if host == "127.0.0.1" else host


def answer_of(host: str, port: int) -> str:
    """Press Return at a console and return its output; "" if it does not answer in time."""
    end = time.monotonic() + _ANSWERS_S
    while time.monotonic() < end:
        # PATty polls: a port opens a moment after the device runs.
        with contextlib.suppress(OSError):
            if said := type_at(host, port, ""):
                return said
        time.sleep(_POLL_S)
    return ""


def type_at(host: str, port: int, line: str) -> str:
    """Type a line at a console, and leave; return what it printed until it was quiet.

    Raises:
        OSError: It cannot be reached.
    """
    said = b""
    with socket.create_connection((host, port), timeout=CONNECT_S) as connection:
        connection.sendall(f"{line}\r\n".encode())
        connection.settimeout(_QUIET_S)
        with contextlib.suppress(TimeoutError):
            while not said.rstrip().endswith((b"#", b">", b":", b"$")) and (part := connection.recv(4096)):
                said += part
    return said.decode(errors="replace").strip()


def prompt_of(session: socket.socket, name: str) -> str:
    """Press Return at a console and return its prompt, which must have this name.

    Raises:
        DemoError: Another device answers, or none.
    """
    said = b""
    with contextlib.suppress(OSError):
        session.sendall(b"\r\n")
        while part := session.recv(4096):
            said += part
            if re.search(rb"(^|\s)" + name.encode() + rb"[>#]\s*$", said):
                return f"{name}{said.rstrip()[-1:].decode()}"
    raise DemoError(f"{name} does not answer, but {said.decode(errors='replace').strip()!r}")

"""Find free ports and loopback addresses."""

import contextlib
import errno
import random
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from vkpsandbox.errors import SandboxError

LOWEST: Final = 10240
"""Lower ports are often needed by programs that cannot choose."""

HIGHEST: Final = 32767
"""The default of Linux starts outgoing connections at 32768."""


def candidate_ports(first_outgoing: int) -> range:
    """Return the ports for listeners: those below the range of outgoing connections.

    A listener that is down for a while must find its port again. Among outgoing ports a client that keeps dialling it
    would sooner or later get that very port, and be connected to itself.
    """
    return range(LOWEST, max(LOWEST + 1000, min(HIGHEST + 1, first_outgoing)))


def free_ports(count: int, host: str = "127.0.0.1", candidates: Iterable[int] | None = None) -> list[int]:
    """Return `count` different free TCP ports of an address.

    Args:
        count: How many.
        host: The address.
        candidates: Which to try, in this order; by default those of `candidate_ports`, shuffled, so that two sandboxes
            starting at once do not choose alike.

    Raises:
        SandboxError: If there are not enough.
    """
    taken: list[int] = []
    with contextlib.ExitStack() as held:
        for port in candidates or _shuffled(candidate_ports(_first_outgoing())):
            listener = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            try:
                listener.bind((host, port))
            except OSError as error:
                listener.close()
                if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                    continue
                raise SandboxError(f"cannot listen on {host}: {error}") from error
            taken.append(port)
            if len(taken) == count:
                return taken
    raise SandboxError(f"{host} has fewer than {count} free ports: end what listens there")


def can_listen(host: str) -> bool:
    """Return whether this machine lets a program listen on an address (macOS: only 127.0.0.1, unless configured)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        try:
            listener.bind((host, 0))
        except OSError:
            return False
    return True


def worker_listen_address(number: int) -> str:
    """Return the loopback address of worker `number` (from 1): 127.0.0.11 for the first."""
    high, low = divmod(10 + number, 256)
    return f"127.0.{high}.{low}"


def worker_public_address(number: int) -> str:
    """Return the address worker `number` shows to learners: documentation (RFC 5737), then benchmarking (RFC 2544)."""
    if number < 255:  # noqa: PLR2004 (the last host of a /24)
        return f"198.51.100.{number}"
    high, low = divmod(number, 256)
    return f"198.18.{high}.{low}"


def _first_outgoing() -> int:
    """Return the lowest port the kernel gives to outgoing connections."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return HIGHEST + 1


def _shuffled(ports: range) -> list[int]:
    """Return the ports in random order."""
    return random.sample(ports, len(ports))

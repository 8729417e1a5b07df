"""Find free ports and loopback addresses."""

import contextlib
import errno
import fcntl
import json
import os
import random
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from vkpsandbox.errors import SandboxError

LOWEST: Final = 10240
"""Lower ports are often needed by programs that cannot choose."""

HIGHEST: Final = 32767
"""The default of Linux starts outgoing connections at 32768."""

CLAIM_S: Final = 180
"""How long nobody else is given a port: from when it is chosen until its program listens."""

RANGE_CLAIM_S: Final = 3600
"""Likewise for ports of a range, which are opened one by one, as labs come."""

CML_PORTS: Final = (8443, 9443, 10443)
"""What the simulated workers listen on that have addresses of their own: the first that no program has everywhere."""


def candidate_ports(first_outgoing: int) -> range:
    """Return the ports for listeners: those below the range of outgoing connections.

    A listener that is down for a while must find its port again. Among outgoing ports a client that keeps dialling it
    would sooner or later get that very port, and be connected to itself.
    """
    return range(LOWEST, max(LOWEST + 1000, min(HIGHEST + 1, first_outgoing)))


def free_ports(
    count: int, host: str = "127.0.0.1", candidates: Iterable[int] | None = None, claim_s: float = CLAIM_S
) -> list[int]:
    """Return `count` different free TCP ports of an address, which no other sandbox of this user is given for a while.

    Args:
        count: How many.
        host: The address.
        candidates: Which to try, in this order; by default those of `candidate_ports`, shuffled, so that two sandboxes
            starting at once do not choose alike.
        claim_s: For how long.

    Raises:
        SandboxError: If there are not enough.
    """
    taken: list[int] = []
    with _claims(claim_s) as claims, contextlib.ExitStack() as held:
        for port in candidates or _shuffled(candidate_ports(_first_outgoing())):
            if str(port) in claims:
                continue
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
                claims.update(str(port) for port in taken)
                return taken
    raise SandboxError(f"{host} has fewer than {count} free ports: end what listens there")


def free_range(count: int, host: str = "127.0.0.1") -> tuple[int, int]:
    """Return the first and the last of so many free neighbouring TCP ports of an address.

    Raises:
        SandboxError: If there are none.
    """
    possible = candidate_ports(_first_outgoing())
    for first in _shuffled(possible[: len(possible) - count]):
        with contextlib.suppress(SandboxError):
            free_ports(count, host, range(first, first + count), RANGE_CLAIM_S)
            return first, first + count - 1
    raise SandboxError(f"{host} has no {count} free ports beside one another: end what listens there")


def worker_endpoints(
    count: int, networks: Iterable[int] | None = None, ports: Sequence[int] = CML_PORTS
) -> list[tuple[str, int]]:
    """Return the loopback address and port on which each worker of a sandbox serves its API.

    The addresses are the sandbox's own, 127.N.0.11 for its first worker, because a worker also opens the ports that its
    labs request, and those of two sandboxes would be the same. That N is free shows at the ports that sandboxes share.
    Where a program can listen on 127.0.0.1 only (macOS, unless configured), workers share it, on ports of their own.

    Args:
        count: How many workers.
        networks: The N to try, in this order; by default all, from one on that depends on the process, because two
            sandboxes that start at the same moment both find every N free.
        ports: The ports of which to choose.
    """
    free = [port for port in ports if _can_listen(_listen_address(255, 0), port)] or [ports[0]]
    for network in networks or _networks(os.getpid()):
        addresses = [_listen_address(network, number) for number in range(1, count + 1)]
        if all(_can_listen(address, port) for address in addresses for port in free):  # another sandbox may use any
            return [(address, free[0]) for address in addresses]
    return [("127.0.0.1", port) for port in free_ports(count)]


def worker_public_address(number: int) -> str:
    """Return the address worker `number` shows to learners: documentation (RFC 5737), then benchmarking (RFC 2544)."""
    if number < 255:  # noqa: PLR2004 (the last host of a /24)
        return f"198.51.100.{number}"
    high, low = divmod(number, 256)
    return f"198.18.{high}.{low}"


@contextlib.contextmanager
def _claims(claim_s: float) -> Iterator[set[str]]:
    """Yield the ports that are claimed, for nobody else at the time; what is added is claimed for `claim_s` seconds."""
    with (Path(tempfile.gettempdir()) / f"vkprovider-ports-{os.getuid()}.json").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        now = time.time()
        try:
            ends = {port: float(end) for port, end in json.load(file).items() if now < end <= now + RANGE_CLAIM_S}
        except (ValueError, TypeError, AttributeError):  # it is new, or its writer was killed
            ends = {}
        claims = set(ends)
        yield claims
        ends.update(dict.fromkeys(claims - set(ends), now + claim_s))
        file.truncate(0)
        file.write(json.dumps(ends))


def _networks(start: int) -> Iterator[int]:
    """Yield every N from 1 to 254 once, beginning with one that differs for neighbouring `start`."""
    return ((start + step) % 254 + 1 for step in range(254))


def _listen_address(network: int, number: int) -> str:
    """Return the address of worker `number` in 127.`network`.0.0/16; no sandbox has network 255, or a worker 0."""
    high, low = divmod(10 + number, 256)
    return f"127.{network}.{high}.{low}"


def _can_listen(host: str, port: int) -> bool:
    """Return whether this machine lets a program listen there."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError:
            return False
    return True


def _first_outgoing() -> int:
    """Return the lowest port the kernel gives to outgoing connections."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return HIGHEST + 1


def _shuffled(numbers: range) -> list[int]:
    """Return the numbers in random order."""
    return random.sample(numbers, len(numbers))

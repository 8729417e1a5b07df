"""The link between the host and an ordinary Node: a pair of interfaces that is gone with the Node's namespace.

The API server listens on the host's end, and so do the simulated workers, each at its own address: Pods reach both
as they reach machines outside of a cluster, and no other machine does.
"""

import random
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from vkpsandbox.errors import SandboxError
from vkpsandbox.node.needs import find_program
from vkpsandbox.paths import Layout
from vkpsandbox.processes.record import OrdinaryNode

_INTERFACES: Final = Path("/sys/class/net")


def run(*words: str, accept: Iterable[str] = (), timeout_s: float = 30.0) -> str:
    """Run a program of the system and return its output.

    Args:
        words: The program and its arguments.
        accept: What it may say when it fails: that a thing is already there, or gone.
        timeout_s: When it is killed.

    Raises:
        SandboxError: It fails otherwise.
    """
    try:
        done = subprocess.run(  # noqa: S603 (the sandbox's own command lines)
            [find_program(words[0]), *words[1:]], capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"{' '.join(words)}: {error}") from error
    if done.returncode and not any(each in done.stderr for each in accept):
        raise SandboxError(f"{' '.join(words)} failed: {done.stderr.strip()}")
    return done.stdout


def claim(layout: Layout) -> OrdinaryNode:
    """Make the link of a new Node, with a number that no other one has: the kernel lets one interface have a name.

    Raises:
        SandboxError: There is no number left, or no interface can be made.
    """
    for number in random.sample(range(1, 255), 254):
        node = OrdinaryNode(number)
        if not (_INTERFACES / node.interface).exists():
            link(layout, node)
            return node
    raise SandboxError("254 sandboxes of this machine have an ordinary Node: end one")


def link(layout: Layout, node: OrdinaryNode) -> None:
    """Make the pair of interfaces, unless it is there, and set up the host's end.

    Raises:
        SandboxError: It cannot be made.
    """
    here = node.interface
    run("ip", "link", "add", here, "type", "veth", "peer", "name", node.inner, accept=["File exists"])
    run("ip", "link", "set", here, "alias", _alias(layout))
    run("ip", "address", "replace", f"{node.host}/25", "dev", here)
    run("ip", "link", "set", here, "up")
    # Any address of that range is the host's: a worker listens on one.
    run("ip", "route", "replace", "local", node.workers, "dev", here)
    run("ip", "route", "replace", node.pods, "via", node.address, "dev", here, "onlink")


def unlink(layout: Layout) -> None:
    """Remove what is left of the link of a sandbox's Node.

    Raises:
        SandboxError: It cannot be removed.
    """
    for file in _INTERFACES.glob("vkp*/ifalias"):
        try:
            mine = file.read_text().strip() == _alias(layout)
        except OSError:  # it is gone already
            continue
        if mine:
            run("ip", "link", "delete", file.parent.name, accept=["Cannot find device"])


def _alias(layout: Layout) -> str:
    """Return the note by which an interface is found again; the kernel lets one have 255 characters."""
    return f"vkprovider {layout.directory}"[-255:]

"""The namespaces of an ordinary Node, which `holder` makes: how to run a program inside, and what is left of them.

The namespaces are nowhere but in processes. When the first process inside ends, the kernel kills all others of its
process namespace; with the last one the mounts are gone, and the interfaces. What the kernel keeps is removed by
`vacate`: folders of cgroups, without processes then.
"""

import contextlib
import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from vkpsandbox.errors import SandboxError
from vkpsandbox.node import network
from vkpsandbox.paths import Layout
from vkpsandbox.processes.process import ProcessSpec
from vkpsandbox.processes.record import OrdinaryNode

PROCESS: Final = "node"
"""The process that holds the namespaces."""
CGROUPS: Final = Path("/sys/fs/cgroup")
_PATIENCE_S: Final = 10.0
_POLL_S: Final = 0.02
_ENTER: Final = 'exec nsenter --target "$(cat "$0")" --net --mount --pid -- "$@"'


def room_process(layout: Layout, node: OrdinaryNode) -> ProcessSpec:
    """Return the command line of the process that holds the namespaces."""
    argv = [sys.executable, "-P", "-m", "vkpsandbox.node.holder", str(layout.directory), str(node.number)]
    return ProcessSpec(name=PROCESS, argv=argv, url=node.address)


def inside(layout: Layout, argv: Sequence[str]) -> list[str]:
    """Return the command line that runs a program inside; it fails while there is no inside."""
    return ["sh", "-c", _ENTER, str(pid_file(layout)), *argv]


def entering(pid: int) -> tuple[str, ...]:
    """Return what goes before a command that runs inside, by the first process there."""
    return ("nsenter", f"--target={pid}", "--net", "--mount", "--pid")


def pid_of(layout: Layout) -> int | None:
    """Return the first process inside, as the host counts it; None while there is none."""
    try:
        pid = int(pid_file(layout).read_text())
    except (OSError, ValueError):
        return None
    return pid if Path(f"/proc/{pid}/root/run").exists() else None


def cgroup_of(layout: Layout) -> str:
    """Return the cgroup of all Pods, from the root of each hierarchy."""
    return f"vkprovider-{hashlib.sha256(str(layout.directory).encode()).hexdigest()[:12]}"


def vacate(layout: Layout) -> None:
    """Remove the interface and the cgroups that a Node whose processes have ended leaves, if any.

    Raises:
        SandboxError: Something stays.
    """
    network.unlink(layout)
    for top in cgroups(layout):
        deadline = time.monotonic() + _PATIENCE_S
        while top.is_dir():
            # A process that is being reaped keeps its folder for a moment.
            for folder in sorted((each for each in top.rglob("*") if each.is_dir()), reverse=True):
                with contextlib.suppress(OSError):
                    folder.rmdir()
            try:
                top.rmdir()
            except OSError as error:
                if time.monotonic() > deadline:
                    raise SandboxError(f"the cgroup {top} cannot be removed: {error}") from error
                time.sleep(_POLL_S)


@contextlib.contextmanager
def vacated(layout: Layout) -> Iterator[None]:
    """Remove what a Node left if the block fails, which has ended the processes then.

    Raises:
        SandboxError: Something stays.
    """
    try:
        yield
    except BaseException:
        vacate(layout)
        raise


def pid_file(layout: Layout) -> Path:
    """Return the file with the first process inside, as the host counts it."""
    return layout.node / "pid"


def cgroups(layout: Layout) -> list[Path]:
    """Return the folder of the Node in each hierarchy: of version 1 there are several, of version 2 there is one."""
    name = cgroup_of(layout)
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS / name]
    return [each / name for each in CGROUPS.iterdir() if each.is_dir() and not each.is_symlink()]

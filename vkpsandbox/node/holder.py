"""Hold the namespaces of an ordinary Node until the end: `python -m vkpsandbox.node.holder DIRECTORY NUMBER`.

Inside, /run is empty at first, and /var/lib and /var/log are folders of the sandbox, so that containerd, CNI and the
kubelet have their default paths and leave the machine's alone. Settings of the machine that the kubelet insists on are
files of the sandbox, too.
"""

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from vkpsandbox.errors import SandboxError
from vkpsandbox.node import network
from vkpsandbox.node.needs import find_program
from vkpsandbox.node.network import run
from vkpsandbox.node.room import CGROUPS, cgroups, entering, pid_file
from vkpsandbox.paths import Layout
from vkpsandbox.processes.child import die_with_parent
from vkpsandbox.processes.process import write_atomically
from vkpsandbox.processes.record import OrdinaryNode

_CPUSET: Final = ("cpuset.cpus", "cpuset.mems")
_SYSCTLS: Final = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}
"""What the kubelet would set for the whole machine (k8s.io/component-helpers/node/util/sysctl)."""
_PATIENCE_S: Final = 10.0
_POLL_S: Final = 0.02
_FIRST: Final = ("env", "--ignore-signal=CHLD", "sleep", "infinity")
"""The first process inside, which leaves no zombies: the kernel reaps children of one that ignores SIGCHLD."""


def hold(layout: Layout, node: OrdinaryNode) -> int:
    """Make the namespaces, furnish them, and wait for the end of the first process inside; return its exit code.

    Raises:
        SandboxError: They cannot be made.
    """
    pid_file(layout).unlink(missing_ok=True)
    network.link(layout, node)
    _make_cgroups(layout)
    unshare = (find_program("unshare"), "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    with subprocess.Popen([*unshare, *_FIRST], preexec_fn=die_with_parent()) as holder:  # noqa: S603, PLW1509 (fixed arguments; one thread)
        try:
            pid = _first_inside(holder)
            _connect(node, pid)
            _mount(layout, pid)
        except BaseException:
            holder.kill()
            raise
        write_atomically(pid_file(layout), str(pid).encode())
        return holder.wait()


def _first_inside(holder: subprocess.Popen[bytes]) -> int:
    """Return the child of unshare, once it has begun what it is for."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline and holder.poll() is None:
        children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()
        if children and Path(f"/proc/{children[0]}/comm").read_text().strip() == "sleep":
            return int(children[0])
        time.sleep(_POLL_S)
    raise SandboxError("unshare made no namespaces: see the log of the process `node`")


def _connect(node: OrdinaryNode, pid: int) -> None:
    """Move the inner end of the link inside and set up the network there."""
    run("ip", "link", "set", node.inner, "netns", str(pid))
    there = entering(pid)
    for words in (
        ("ip", "link", "set", "lo", "up"),
        ("ip", "address", "add", f"{node.address}/25", "dev", node.inner),
        ("ip", "link", "set", node.inner, "up"),
        ("ip", "route", "add", "default", "via", node.host),
        ("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"),
    ):
        run(*there, *words)


def _mount(layout: Layout, pid: int) -> None:
    """Put folders of the sandbox in the place of those of the machine."""
    there = entering(pid)
    run(*there, "mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for name, place in (("lib", "/var/lib"), ("log", "/var/log")):
        folder = layout.node / name
        folder.mkdir(exist_ok=True)
        run(*there, "mount", "--bind", str(folder), place)
        # As an init system leaves them: a CSI driver is a Pod that mounts for others.
        run(*there, "mount", "--make-rshared", place)
    for place, value in _SYSCTLS.items():
        file = layout.node / place.replace("/", ".")
        file.write_text(f"{value}\n")
        run(*there, "mount", "--bind", str(file), f"/proc/sys/{place}")


def _make_cgroups(layout: Layout) -> None:
    """Make the folders; the kubelet wants them, and makes the ones below."""
    for folder in cgroups(layout):
        folder.mkdir(exist_ok=True)
        for name in _CPUSET:  # of version 1: a new folder has no processor
            file = folder / name
            if folder.parent.name == "cpuset" and not file.read_text().strip():
                file.write_text((folder.parent / name).read_text())
        control = folder / "cgroup.subtree_control"
        if folder.parent == CGROUPS and control.exists():
            wanted = (folder / "cgroup.controllers").read_text().split()
            control.write_text(" ".join(f"+{each}" for each in wanted))


def main(directory: str, number: str) -> int:
    """Hold the namespaces of a sandbox's Node; return the exit code."""
    layout = Layout(Path(directory))
    try:
        return hold(layout, OrdinaryNode(int(number)))
    except SandboxError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

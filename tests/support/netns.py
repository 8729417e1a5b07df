"""Network namespaces that end with this process: a process holds each, and what is in one is gone with it."""

import os
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from vkpsandbox.processes.child import die_with_parent

TOOLS: Final = ("ip", "nft", "nsenter", "unshare", "sysctl")
_BORN_S: Final = 10.0


def missing() -> str:
    """Return the reason why there can be no namespaces with rules here; "" if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if absent := [tool for tool in TOOLS if not shutil.which(tool)]:
        return f"{', '.join(absent)} not in PATH: install iproute2, nftables, util-linux and procps"
    tried = subprocess.run(["unshare", "--net", "nft", "list", "ruleset"], capture_output=True, text=True, check=False)  # noqa: S607 (from PATH)
    return f"nftables in a network namespace: {tried.stderr.strip()}" if tried.returncode else ""


class Namespace:
    """A network namespace, which is gone when its processes are."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._holder = self._started(["unshare", "--net", "sleep", "infinity"], {})
        deadline = time.monotonic() + _BORN_S
        while Path(self.path).readlink() == Path("/proc/self/ns/net").readlink():
            assert time.monotonic() < deadline, "unshare made no namespace"
            time.sleep(0.01)
        self("ip", "link", "set", "lo", "up")

    @property
    def path(self) -> str:
        """The file that is this namespace."""
        return f"/proc/{self._holder.pid}/ns/net"

    @property
    def pid(self) -> int:
        """The process that holds it."""
        return self._holder.pid

    def __call__(self, *command: str, given: str = "", timeout_s: float = 120.0) -> str:
        """Run a command in it and return its output."""
        words = ["nsenter", f"--net={self.path}", *command]
        done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=timeout_s, check=False)  # noqa: S603 (of the test)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def start(self, *command: str, log: Path) -> subprocess.Popen[str]:
        """Start a program in it that ends with the stack; its input and output are pipes, and errors go to a file."""
        errors = self._stack.enter_context(log.open("w"))
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        return self._started(["nsenter", f"--net={self.path}", *command], pipes)

    def link(self, other: "Namespace | None", mine: str, its: str) -> None:
        """Join it to another one, or to the host's, by a link whose ends have the two addresses."""
        name, far = (f"v{self.pid}-{'h' if other is None else other.pid}"[:15], f"w{self.pid}"[:15])
        there = str(os.getpid()) if other is None else str(other.pid)
        self("ip", "link", "add", name, "type", "veth", "peer", "name", far, "netns", there)
        self("ip", "address", "add", mine, "dev", name)
        self("ip", "link", "set", name, "up")
        for words in (("address", "add", its, "dev", far), ("link", "set", far, "up")):
            if other is None:
                subprocess.run(["ip", *words], check=True)  # noqa: S603, S607 (of the test)
            else:
                other("ip", *words)

    def _started(self, words: list[str], pipes: dict[str, object]) -> subprocess.Popen[str]:
        process: subprocess.Popen[str] = subprocess.Popen(words, text=True, preexec_fn=die_with_parent(), **pipes)  # type: ignore[call-overload]  # noqa: S603, PLW1509 (one thread at that time)
        self._stack.callback(_end, process)
        return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()

"""What a machine lacks for an ordinary Node, in one sentence."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from vkpsandbox.errors import SandboxError
from vkpsandbox.paths import Layout, cache_home

PACKAGES: Final[Mapping[str, str]] = {
    "catatonit": "catatonit",
    "containerd": "containerd",
    "ctr": "containerd",
    "ip": "iproute2",
    "ipset": "ipset",
    "iptables": "iptables",
    "nft": "nftables",
    "nsenter": "util-linux",
    "runc": "runc",
    "unshare": "util-linux",
}
"""Program: the package that has it, on Debian."""
PLUGINS: Final = ("host-local", "loopback", "ptp")
_PLUGINS_PACKAGE: Final = "containernetworking-plugins"
_PLUGIN_FOLDERS: Final = (Path("/opt/cni/bin"), Path("/usr/lib/cni"), Path("/usr/libexec/cni"))
_FURTHER: Final = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/libexec/podman", "/usr/lib/podman")
"""Where programs stand that are no user's commands."""
HIDDEN: Final = tuple(Path(folder) for folder in ("/run", "/var/lib", "/var/log", "/var/run"))
"""Folders of the machine in whose place the Node has its own."""


def search_path() -> str:
    """Return the folders in which programs of a Node are looked for, as a PATH."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), *_FURTHER))


def find_program(name: str) -> str:
    """Return the path of a program of the system.

    Raises:
        SandboxError: It is not installed.
    """
    found = shutil.which(name, path=search_path())
    if not found:
        raise SandboxError(f"there is no {name}: apt-get install {PACKAGES[name]}")
    return found


def find_plugins() -> Path | None:
    """Return the folder of the CNI plugins; None if no folder has all that are needed."""
    return next((each for each in _PLUGIN_FOLDERS if all((each / name).is_file() for name in PLUGINS)), None)


def missing() -> str:
    """Return what this machine lacks for an ordinary Node, in one sentence; "" if it lacks nothing."""
    if sys.platform != "linux":
        return "an ordinary Node needs Linux"
    if os.geteuid() != 0:
        return "an ordinary Node needs root, for namespaces and containers: run the command by sudo"
    absent = {name: package for name, package in PACKAGES.items() if not shutil.which(name, path=search_path())}
    packages = set(absent.values()) | (set() if find_plugins() else {_PLUGINS_PACKAGE})
    if packages:
        return f"an ordinary Node needs programs of the system: apt-get install {' '.join(sorted(packages))}"
    tried = subprocess.run(  # noqa: S603 (a probe without input)
        [find_program("unshare"), "--net", find_program("nft"), "list", "ruleset"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    said = tried.stderr.strip().partition("\n")[0]
    return f"an ordinary Node needs nftables in a network namespace: {said}" if tried.returncode else ""


def require(layout: Layout) -> None:
    """Raise the reason why a sandbox cannot have an ordinary Node.

    Raises:
        SandboxError: The machine lacks something, or the Node could not see the sandbox's files.
    """
    if said := missing():
        raise SandboxError(said)
    for folder in (layout.directory, cache_home().resolve()):
        if hiding := next((each for each in HIDDEN if folder.is_relative_to(each.resolve())), None):
            raise SandboxError(
                f"an ordinary Node has a {hiding} of its own and cannot see {folder}: choose another one"
            )

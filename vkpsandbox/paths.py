"""Where a sandbox keeps its files, and where built programs are cached (XDG base directories)."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vkpsandbox.errors import SandboxError

STARTS_VARIABLE: Final = "VKPROVIDER_SANDBOX_STARTS"
"""Environment variable that names a file; each control plane that starts adds a line: the test of pytest that runs."""

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
"""Part of Nodes' labels, of a context's name and of a path."""


def cache_home() -> Path:
    """Return the directory of this program's caches."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vkprovider"


def state_home() -> Path:
    """Return the directory of this program's state."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "vkprovider"


def sandboxes_home() -> Path:
    """Return the directory of the sandboxes that were given no directory of their own."""
    return state_home() / "sandboxes"


@dataclass(frozen=True)
class Layout:
    """The files below a sandbox's directory; `ENTRIES` is all that `down` removes there."""

    directory: Path

    ENTRIES = (
        "audit-policy.yaml",
        "audit.log",
        "class",
        "control.sock",
        "etcd",
        "flexvolume",
        "hub",
        "kubeconfig",
        "kubectl-cache",
        "kubeconfigs",
        "lock",
        "logs",
        "mux",
        "node",
        "pki",
        "portal.kubeconfig",
        "processes.json",
        "processes.json.new",
        "provider.kubeconfig",
        "sandbox.json",
        "sandbox.json.new",
        "supervisor.json",
        "supervisor.json.new",
        "workers",
    )

    @property
    def record(self) -> Path:
        """The record that `up` wrote; it marks a sandbox's directory (`record.Record`)."""
        return self.directory / "sandbox.json"

    @property
    def plan(self) -> Path:
        """The processes the supervisor starts first (a list of `process.ProcessSpec`)."""
        return self.directory / "supervisor.json"

    @property
    def processes(self) -> Path:
        """The process table, kept by the supervisor (a list of `process.ProcessStatus`)."""
        return self.directory / "processes.json"

    @property
    def lock(self) -> Path:
        """Locked for as long as the supervisor lives."""
        return self.directory / "lock"

    @property
    def socket(self) -> Path:
        """The supervisor's control socket."""
        return self.directory / "control.sock"

    @property
    def logs(self) -> Path:
        """One log per process."""
        return self.directory / "logs"

    def log(self, process: str) -> Path:
        """Return the log of one process."""
        return self.logs / f"{process}.log"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.directory / "pki"

    @property
    def etcd(self) -> Path:
        """The data of etcd."""
        return self.directory / "etcd"

    @property
    def flexvolume(self) -> Path:
        """The directory in which the controller-manager looks for volume drivers."""
        return self.directory / "flexvolume"

    @property
    def workers(self) -> Path:
        """State files and access logs of the simulators."""
        return self.directory / "workers"

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.directory / "kubeconfig"

    @property
    def provider_kubeconfig(self) -> Path:
        """The provider's kubeconfig: its ServiceAccount, never the admin."""
        return self.directory / "provider.kubeconfig"

    @property
    def portal_kubeconfig(self) -> Path:
        """The portal's kubeconfig: its ServiceAccount, never the admin."""
        return self.directory / "portal.kubeconfig"

    @property
    def mux(self) -> Path:
        """What the program that serves muxes, the relay and its HAProxy need."""
        return self.directory / "mux"

    @property
    def node(self) -> Path:
        """What an ordinary Node has: its configuration, images and containers."""
        return self.directory / "node"

    def component_kubeconfig(self, component: str) -> Path:
        """Return the kubeconfig of a control-plane component."""
        return self.directory / "kubeconfigs" / component

    @property
    def kubectl_cache(self) -> Path:
        """The discovery cache of kubectl; its own, because a reused port must not find an old one."""
        return self.directory / "kubectl-cache"

    @property
    def hub(self) -> Path:
        """What the JupyterHub of `vkprovider demo --hub` has."""
        return self.directory / "hub"

    @property
    def classroom(self) -> Path:
        """What the instructor of `vkprovider demo --class` has."""
        return self.directory / "class"

    @property
    def audit_policy(self) -> Path:
        """What the API server writes to its audit log."""
        return self.directory / "audit-policy.yaml"

    @property
    def audit_log(self) -> Path:
        """The audit log, JSON lines."""
        return self.directory / "audit.log"


def layout_of(name: str, directory: Path | None) -> Layout:
    """Return the files of a sandbox: in `directory`, or in the default place for its name.

    Raises:
        SandboxError: The name cannot be that of a sandbox.
    """
    if not _NAME.fullmatch(name):
        raise SandboxError(f"{name[:80]!r} cannot be a sandbox's name: lower-case letters, digits and - within them")
    return Layout((directory or sandboxes_home() / name).absolute().resolve())

"""The record of a sandbox, kept in its directory so that other commands find it."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

import msgspec

from vkpsandbox.errors import SandboxError
from vkpsandbox.paths import Layout
from vkpsandbox.processes.control import supervised
from vkpsandbox.processes.process import write_atomically
from vkpsandbox.processes.strays import end_marked


class Worker(NamedTuple):
    """A simulated CML worker.

    Attributes:
        name: Of its CMLWorker; its node is `vnode.<name>`, its process `cml-<name>`.
        url: Where the simulator answers, or `null://<name>`.
        address: What learners see; nothing dials it.
        username: Of the CML account.
        password: Of the CML account.
        port: Where the simulator listens, 0 for the null backend.
        access_log: The simulator's requests, JSON lines; empty for the null backend.
    """

    name: str
    url: str
    address: str
    username: str
    password: str
    port: int
    access_log: str

    @property
    def process(self) -> str:
        """The name of its process, also of its Secret."""
        return f"cml-{self.name}"

    @property
    def agent(self) -> str:
        """The name of its agent's process, where there is one."""
        return f"agent-{self.name}"

    @property
    def node(self) -> str:
        """The name of its node."""
        return f"vnode.{self.name}"


class Broker(NamedTuple):
    """An MQTT broker, on the loopback interface.

    Attributes:
        program: Path of mosquitto.
        port: Where it listens.
        accounts: Passwords by user name.
    """

    program: str
    port: int
    accounts: dict[str, str]

    @property
    def url(self) -> str:
        """Where replicas and agents reach it."""
        return f"mqtt://127.0.0.1:{self.port}"

    @property
    def process(self) -> str:
        """The name of its process."""
        return "mosquitto"


class Lds(NamedTuple):
    """A simulated Lab Delivery System.

    Attributes:
        url: Where it answers.
        token: The bearer token of its clients.
        events_secret: The bearer token of its events.
        access_log: Its requests, JSON lines.
    """

    url: str
    token: str
    events_secret: str
    access_log: str

    @property
    def process(self) -> str:
        """The name of its process."""
        return "lds"


_MOST_WORKERS: Final = 126
"""Beside an ordinary Node: the addresses of its range."""


class OrdinaryNode(NamedTuple):
    """A Node that runs containers, with an end of a link to the host; all its addresses are for benchmarks (RFC 2544).

    Attributes:
        number: From 1 to 254, that no other one on this machine has.
    """

    number: int

    @property
    def name(self) -> str:
        """Its name in the cluster."""
        return "node-1"

    @property
    def interface(self) -> str:
        """The host's end of the link."""
        return f"vkp{self.number}"

    @property
    def inner(self) -> str:
        """The Node's end."""
        return f"vkp{self.number}n"

    @property
    def host(self) -> str:
        """The address of the host's end, where the API server listens."""
        return f"198.18.{self.number}.1"

    @property
    def address(self) -> str:
        """The address of the Node."""
        return f"198.18.{self.number}.2"

    @property
    def workers(self) -> str:
        """The addresses of simulated workers, which are the host's."""
        return f"198.18.{self.number}.128/25"

    @property
    def pods(self) -> str:
        """The addresses of Pods."""
        return f"198.19.{self.number}.0/24"

    def worker_endpoints(self, count: int) -> list[tuple[str, int]]:
        """Return the address and the port on which each worker serves its API.

        Raises:
            SandboxError: There are more workers than addresses.
        """
        if count > _MOST_WORKERS:
            raise SandboxError(f"beside an ordinary Node there is room for {_MOST_WORKERS} workers")
        return [(f"198.18.{self.number}.{128 + each}", 8443) for each in range(1, count + 1)]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A sandbox as `up` made it.

    Attributes:
        name: Its name; its objects carry the label `vkprovider.io/sandbox=<name>`.
        kubectl: The kubectl of this version.
        context: The context of its kubeconfig.
        foreign: Whether the cluster is the user's own (`--kubeconfig`).
        audit: Whether there is an audit log.
        workers: Its simulated workers.
        lds: Its simulated Lab Delivery System, if it has one.
        broker: Its MQTT broker, if its workers are reached by MQTT.
        tokens: Tokens of its agents by their workers' names, if its workers are reached by HTTP.
        node: Its ordinary Node, if it has one.
    """

    name: str
    kubectl: str
    context: str
    foreign: bool
    audit: bool
    workers: list[Worker] = []
    lds: Lds | None = None
    broker: Broker | None = None
    tokens: dict[str, str] = {}
    node: OrdinaryNode | None = None

    @property
    def tunnel(self) -> Literal["direct", "mqtt", "http"]:
        """How its workers are reached."""
        if self.broker is not None:
            return "mqtt"
        return "http" if self.tokens else "direct"

    def save(self, layout: Layout) -> None:
        """Write it to the sandbox's directory."""
        write_atomically(layout.record, msgspec.json.encode(self))

    @staticmethod
    def load(layout: Layout) -> "Record":
        """Read it from a sandbox's directory.

        Raises:
            SandboxError: If that directory holds no sandbox.
        """
        try:
            return msgspec.json.decode(layout.record.read_bytes(), type=Record)
        except FileNotFoundError as error:
            raise SandboxError(
                f"there is no sandbox in {layout.directory}: `vkprovider sandbox up` makes one (see --name, --dir)"
            ) from error
        except msgspec.MsgspecError as error:
            raise SandboxError(
                f"{layout.record} is damaged ({error}): `vkprovider sandbox down` removes the rest of that sandbox"
            ) from error


@contextlib.contextmanager
def claimed(layout: Layout) -> Iterator[None]:
    """Claim a directory for one `up`: remove an ended sandbox, create the folders for logs and workers.

    Raises:
        SandboxError: If it holds other things, or a sandbox that runs or is being started.
    """
    if layout.directory.is_dir() and not layout.record.exists():
        others = sorted(entry.name for entry in layout.directory.iterdir() if entry.name not in Layout.ENTRIES)
        if others:
            raise SandboxError(
                f"{layout.directory} is not empty and no sandbox ({', '.join(others[:5])}): name another with --dir"
            )
    layout.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(layout.directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SandboxError(f"a sandbox is being started in {layout.directory}: --name makes another one") from error
        if supervised(layout):
            raise SandboxError(
                f"a sandbox runs already in {layout.directory}: --name makes another one, and this one is ended by\n\n"
                f"  vkprovider sandbox down --dir={layout.directory}"
            )
        end_marked(layout.directory)
        remove_files(layout)
        for subdirectory in (layout.logs, layout.workers):
            subdirectory.mkdir()
        yield
    finally:
        os.close(descriptor)


def remove_files(layout: Layout) -> None:
    """Remove what a sandbox leaves in its directory, and nothing else."""
    for entry in Layout.ENTRIES:
        path = layout.directory / entry
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

"""Sessions of kubectl that last: ten minutes without a byte, and a Node that moves to another replica meanwhile."""

import contextlib
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.cluster import Cluster
from tests.support.desks import PATIENCE_S, Desk, Running, echo, echoing
from tests.support.kubectlsessions import WITHOUT_WEBSOCKETS
from tests.support.ptys import Pty
from tests.support.replicas import Replicas
from tests.support.sandboxes import started
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until
from vkprovider.labs.kubelet.listeners import MOVED
from vkpsandbox import Sandbox

IDLE_S: Final = 600.0
WAYS: Final = {"websocket": {}, "spdy": WITHOUT_WEBSOCKETS}
DEVICES: Final = {"websocket": ("r1", "h1", 7), "spdy": ("r2", "h2", 8)}
"""Of the sessions by each way: the router that is attached to, the host with a console and a log, its port."""
LABELS: Final = {"r1": "iosv", "r2": "iosv", "h1": "alpine", "h2": "alpine"}
TAGS: Final = {"h1": ["pat:2001:7"], "h2": ["pat:2002:8"]}
LONGEST_S: Final = 2 * IDLE_S


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox of its own: one worker, and two replicas for it."""
    directory = tmp_path_factory.mktemp("kubelet")
    with started(
        "kubelet",
        directory,
        workers=1,
        replicas=2,
        worker_args=[["--boot-seconds=0.3-1", "--port-range=12100-12199"]],
        worker_spec={"portRange": {"start": 12100, "end": 12199}},
    ) as made:
        yield made


def works(desk: Desk, router: str) -> bool:
    """Tell whether the next command works."""
    ran = desk.run("exec", "kept", "-c", router, "--", "show version")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.startswith("Cisco IOS Software")


@dataclass(frozen=True)
class Sessions:
    """One session of each kind, by one way."""

    router: str
    terminal: Pty
    console: Running
    log: Running
    forward: Running
    connection: socket.socket

    def work(self, word: str) -> None:
        """Use each."""
        self.terminal.type("\r")
        self.terminal.shows(f"{self.router}>", PATIENCE_S)
        self.console.type(f"echo {word}\r")
        self.console.shows(f"\n{word}\n")
        self.log.shows(f"\n{word}\n")
        echo(self.connection, word)

    def end(self, message: str) -> None:
        """Wait until each has ended, with a message of the replica if it could say one.

        Without one kubectl says what it thinks, which by SPDY is that the session has come to its end.
        """
        codes = self.terminal.ends(PATIENCE_S), self.console.ends(), self.log.ends(), self.forward.ends()
        print(self.router, codes, [self.terminal.shown, self.console.text(), self.log.text(), self.forward.text()])  # noqa: T201 (what users see)
        if message:
            assert codes == (1, 1, 0, 1)
            for text in (self.terminal.shown, self.console.text(), self.log.text()):
                assert message in text
        assert "lost connection to pod" in self.forward.text()
        with contextlib.suppress(ConnectionError):
            assert self.connection.recv(100) == b""


@contextmanager
def opened(desk: Desk, router: str, host: str, port: int) -> Iterator[Sessions]:
    """Open one session of each kind."""
    with ExitStack() as stack:
        terminal = stack.enter_context(desk.terminal("attach", "-it", "kept", "-c", router))
        terminal.shows("Escape character", PATIENCE_S)
        console = stack.enter_context(desk.running("exec", "-i", "kept", "-c", host, "--", "console"))
        log = stack.enter_context(desk.running("logs", "-f", "kept", "-c", host))
        forward, local = stack.enter_context(desk.forwarding("kept", port))
        connection = stack.enter_context(echoing(local))
        yield Sessions(router, terminal, console, log, forward, connection)


@pytest.fixture
def desks(cluster: Cluster, tmp_path: Path) -> Iterator[dict[str, Desk]]:
    """One for each way: a Pod that runs, and a kubectl."""
    cluster.define(definition("kept", topology(LABELS, TAGS)))
    cluster.apply(pod("kept", "kept", devices=list(LABELS), typed=True))
    cluster.wait_ready("default", 1, within_s=PATIENCE_S)
    desks = {way: Desk(cluster, tmp_path, changes=changes) for way, changes in WAYS.items()}
    until(lambda: works(desks["spdy"], "r1"), PATIENCE_S)
    yield desks
    cluster.kubectl("delete", "pod/kept", "--wait=false")
    cluster.wait_gone("default")


@pytest.mark.timeout(LONGEST_S)
def test_ten_minutes_without_a_byte(desks: dict[str, Desk]) -> None:
    with ExitStack() as stack:
        sessions = [stack.enter_context(opened(desk, *DEVICES[way])) for way, desk in desks.items()]
        for one in sessions:
            one.work("before")
        time.sleep(IDLE_S)
        for one in sessions:
            one.work("after")
            one.terminal.type("\x1d")
            assert one.terminal.ends() == 0


@pytest.mark.parametrize("how", ["drained", "paused", "killed"])
def test_the_owner_leaves(cluster: Cluster, desks: dict[str, Desk], how: str) -> None:
    replicas = Replicas(cluster)
    [worker] = cluster.workers
    until(lambda: len(replicas.members()) == len(replicas.processes) == 2, PATIENCE_S)
    before = replicas.owners()[worker.node]
    owner = next(process for process in replicas.processes if replicas.identity(process) == before)

    def moved() -> bool:
        assert replicas.owners()[worker.node] not in {"", before}
        return all(works(desk, DEVICES[way][0]) for way, desk in desks.items())

    with ExitStack() as stack:
        sessions = [stack.enter_context(opened(desk, *DEVICES[way])) for way, desk in desks.items()]
        for one in sessions:
            one.work("before")
        if how == "drained":
            cluster.sandbox.stop(owner, grace_s=30)
        else:
            cluster.sandbox.kill(owner, signal.SIGSTOP if how == "paused" else signal.SIGKILL)
        until(moved, PATIENCE_S)
        if how == "paused":
            cluster.sandbox.kill(owner, signal.SIGCONT)
        for one in sessions:
            one.end(MOVED if how != "killed" else "")

"""Where a user of kubectl sits: programs that run for a while beside a test, each with or without a terminal."""

import os
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.cluster import Cluster
from tests.support.ptys import Pty
from tests.support.waiting import until

PATIENCE_S: Final = 120.0


@dataclass(frozen=True)
class Running:
    """A program without a terminal.

    Attributes:
        said: File with all that it has printed.
    """

    process: subprocess.Popen[bytes]
    said: Path

    def text(self) -> str:
        """Return what it has printed."""
        return self.said.read_text(errors="replace").replace("\r", "")

    def type(self, text: str) -> None:
        """Write to its stdin."""
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def shows(self, text: str) -> None:
        """Wait until it has printed something."""

        def look() -> bool:
            assert text in self.text(), self.text()
            return True

        until(look, PATIENCE_S)

    def ends(self) -> int:
        """Wait until it has ended; return its exit code."""
        return self.process.wait(PATIENCE_S)


@dataclass(frozen=True)
class Desk:
    """A user's kubectl.

    Attributes:
        folder: Where what it prints is kept.
        namespace: The user's.
        changes: Of the environment.
    """

    cluster: Cluster
    folder: Path
    namespace: str = "default"
    changes: Mapping[str, str] = field(default_factory=dict)

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run kubectl to its end."""
        command, environ = self._command(words)
        return subprocess.run(  # noqa: S603 (kubectl)
            command, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    @contextmanager
    def running(self, *words: str) -> Iterator[Running]:
        """Run kubectl while the block runs."""
        command, environ = self._command(words)
        said = self.folder / f"{'-'.join(words[:2]).replace('/', '-')}-{len(list(self.folder.iterdir()))}.txt"
        with said.open("wb") as out:
            process = subprocess.Popen(  # noqa: S603 (kubectl)
                command, stdin=subprocess.PIPE, stdout=out, stderr=out, env=environ
            )
        try:
            yield Running(process, said)
        finally:
            process.kill()
            process.communicate()

    def terminal(self, *words: str) -> Pty:
        """Run kubectl at a terminal while the block runs."""
        return Pty(*self._command(words))

    @contextmanager
    def forwarding(self, pod: str, port: int) -> Iterator[tuple[Running, int]]:
        """Forward a port while the block runs; yields kubectl and the local port."""
        with self.running("port-forward", f"pod/{pod}", f":{port}") as forward:
            forward.shows(f" -> {port}\n")
            [local] = re.findall(r"127\.0\.0\.1:(\d+) -> ", forward.text())
            yield forward, int(local)

    def _command(self, words: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
        sandbox = self.cluster.sandbox
        layout = sandbox.layout
        given = {"KUBECONFIG": str(layout.kubeconfig), "KUBECACHEDIR": str(layout.kubectl_cache), "TERM": "xterm"}
        command = [str(sandbox.programs / "kubectl"), words[0], f"--namespace={self.namespace}", *words[1:]]
        return command, {**os.environ, **given, **self.changes}


def echoing(port: int) -> socket.socket:
    """Connect to a local port behind which a device echoes, as soon as it does: PATty opens it in a moment."""

    def connect() -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S / 4)
        try:
            echo(connection, "hello")
        except (AssertionError, OSError) as error:
            connection.close()
            raise AssertionError(f"nothing echoes: {error!r}") from None
        return connection

    return until(connect, PATIENCE_S, every_s=0.5)


def echo(connection: socket.socket, text: str) -> None:
    """Send a line, and assert that it comes back."""
    connection.sendall(f"{text}\n".encode())
    assert connection.recv(1000) == f"{text}\n".encode()

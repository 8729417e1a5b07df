"""The desk of an instructor: a directory, a kubeconfig, a terminal, and a clock on which the class begins at ten."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Final

import yaml

from vkpsandbox import Sandbox
from vkpsandbox.controlplane.kubeconfig import read_cluster, write_kubeconfig
from vkpsandbox.controlplane.pki import token_of
from vkpsandbox.demo.stage import DemoError
from vkpsandbox.processes.process import environment

_DEADLINE_S: Final = 300.0
_BEGINS: Final = 10
"""The hour in which the class begins."""


class Desk:
    """What an instructor types, as it is typed, and the files of the class.

    Attributes:
        home: The directory.
        ends: When it is 16:00 on the clock.
    """

    def __init__(self, sandbox: Sandbox, user: str, namespace: str) -> None:
        """Make the directory, and a kubeconfig that says who the user is, and nothing of rights."""
        self.home = sandbox.layout.classroom
        self.home.mkdir()
        self.kubeconfig = self.home / "kubeconfig"
        credentials, cluster = {"token": token_of(sandbox.layout.pki, user)}, read_cluster(sandbox.kubeconfig)
        write_kubeconfig(self.kubeconfig, name=user, cluster=cluster, user=credentials, namespace=namespace)
        now = datetime.now(UTC)
        ahead_h = _BEGINS - now.hour
        self.ends = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(hours=16 - ahead_h)
        path = [str(sandbox.programs), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        changes = {
            "PATH": os.pathsep.join(path),
            "KUBECACHEDIR": str(sandbox.layout.kubectl_cache),
            "PYTHONSAFEPATH": "1",
            "TZ": f"HERE{-ahead_h}",
        }
        self._environ = environment(os.environ, changes, sandbox.directory)

    def lay_out(self, examples: Path, learners: Sequence[str]) -> None:
        """Write the files that an instructor begins with: a lab as CML exports it, a pool, and a list of names."""
        definition = yaml.safe_load((examples / "netlab.yaml").read_text())
        (self.home / "netlab.yaml").write_text(definition["spec"]["source"]["inline"])
        pool = (examples / "pool.yaml").read_text()
        (self.home / "pool.yaml").write_text(pool.replace("replicas: 24\n", f"replicas: {len(learners)}\n"))
        (self.home / "names.csv").write_text("\n".join(learners) + "\n")

    def run(self, command: str, *, kubeconfig: Path | None = None, types: str = "") -> str:
        """Run one command of a shell and return what it printed.

        Args:
            command: As on the command line.
            kubeconfig: Another one than the instructor's.
            types: What is typed while it runs.

        Raises:
            DemoError: If it fails.
        """
        with self._started(command, kubeconfig or self.kubeconfig, types, subprocess.PIPE) as process:
            try:
                said, _ = process.communicate(timeout=_DEADLINE_S)
            except subprocess.TimeoutExpired as error:
                raise DemoError(f"`{command}` took more than {_DEADLINE_S:.0f} s") from error
        if process.returncode:
            raise DemoError(f"`{command}` ended with {process.returncode}: {said.strip()}")
        return str(said)

    @contextlib.contextmanager
    def watching(self, command: str) -> Iterator[Callable[[], str]]:
        """Run a command until the end of the block, which is Ctrl-C to it; give what returns what it has printed."""
        path = self.home / "screen.txt"
        with path.open("w") as screen, self._started(command, self.kubeconfig, "", screen) as process:
            yield path.read_text
            os.killpg(process.pid, signal.SIGINT)
            process.wait(_DEADLINE_S)

    @contextlib.contextmanager
    def _started(
        self, command: str, kubeconfig: Path, types: str, output: int | IO[str]
    ) -> Iterator[subprocess.Popen[str]]:
        """Start a command at a terminal, and have its output; it has ended after the block."""
        keyboard, its = pty.openpty()
        try:
            os.write(keyboard, types.encode())
            with subprocess.Popen(  # noqa: S603 (the demo's own commands)
                ["/bin/sh", "-c", command],
                stdin=its,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self.home,
                env={**self._environ, "KUBECONFIG": str(kubeconfig)},
                start_new_session=True,
            ) as process:
                try:
                    yield process
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
        finally:
            os.close(keyboard)
            os.close(its)

"""A person at a terminal: what a demo shows as typed is what runs; and one who asks by HTTP."""

import contextlib
import http.client
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from urllib.parse import urlsplit

from vkprovider.platform.errors import VkproviderError
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.kubeconfig import read_cluster, write_kubeconfig
from vkpsandbox.processes.process import environment

_DEADLINE_S: Final = 300.0
_ANSWER_S: Final = 90.0


class DemoError(VkproviderError):
    """A check of the demo failed; the message says which, and what to look at."""


class Terminal:
    """A shell in a directory, with the rights of a kubeconfig.

    Attributes:
        home: The directory.
    """

    def __init__(
        self, sandbox: Sandbox, kubeconfig: Path, home: Path, environ: Mapping[str, str | None] | None = None
    ) -> None:
        """Make the directory; `environ` is what else the shell knows."""
        self.home = home
        home.mkdir(exist_ok=True)
        path = [str(sandbox.programs), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        changes = {
            "PATH": os.pathsep.join(path),
            "KUBECACHEDIR": str(sandbox.layout.kubectl_cache),
            "KUBECONFIG": str(kubeconfig),
            "PYTHONSAFEPATH": "1",
            **(environ or {}),
        }
        self._environ = environment(os.environ, changes, sandbox.directory)

    def run(self, command: str, *, types: str = "", codes: Collection[int] = (0,)) -> str:
        """Run one command of a shell and return what it printed.

        Args:
            command: As on the command line.
            types: What is typed while it runs.
            codes: How it may end.

        Raises:
            DemoError: If it ends otherwise, or not in time.
        """
        with self._started(command, subprocess.PIPE) as (process, keyboard):
            os.write(keyboard, types.encode())
            try:
                said, _ = process.communicate(timeout=_DEADLINE_S)
            except subprocess.TimeoutExpired as error:
                raise DemoError(f"`{command}` took more than {_DEADLINE_S:.0f} s") from error
        if process.returncode not in codes:
            raise DemoError(f"`{command}` ended with {process.returncode}: {said.strip()}")
        return str(said)

    @contextlib.contextmanager
    def watching(self, command: str) -> Iterator["Screen"]:
        """Run a command until the end of the block, which is Ctrl-C to it."""
        path = self.home / "screen.txt"
        with path.open("w") as screen, self._started(command, screen) as (process, keyboard):
            yield Screen(path, keyboard)
            os.killpg(process.pid, signal.SIGINT)
            process.wait(_DEADLINE_S)

    @contextlib.contextmanager
    def _started(self, command: str, output: int | IO[str]) -> Iterator[tuple[subprocess.Popen[str], int]]:
        """Start a command at a terminal; give its process, which has ended after the block, and its keyboard."""
        keyboard, its = pty.openpty()
        try:
            with subprocess.Popen(  # noqa: S603 (the demo's own commands)
                ["/bin/sh", "-c", command],
                stdin=its,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self.home,
                env=self._environ,
                start_new_session=True,
            ) as process:
                try:
                    yield process, keyboard
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
        finally:
            os.close(keyboard)
            os.close(its)


class Screen(NamedTuple):
    """What a running command has printed, and its keyboard."""

    path: Path
    keyboard: int

    @property
    def text(self) -> str:
        """All that it has printed."""
        return self.path.read_text(errors="replace")

    def lacks(self, words: str) -> list[str]:
        """List the words, if they have not been printed yet."""
        return [] if words in self.text else [f"{words!r} on the screen: {self.text.strip()!r}"]

    def type(self, text: str) -> None:
        """Type at the command."""
        os.write(self.keyboard, text.encode())


def person(sandbox: Sandbox, name: str, token: str, *, namespace: str = "", **environ: str) -> Terminal:
    """Return the terminal of somebody with a token, in a directory of their own with a kubeconfig.

    Args:
        sandbox: Whose cluster the kubeconfig names.
        name: Of the person.
        token: Theirs; the kubeconfig says who they are, and nothing of rights.
        namespace: Of their kubeconfig.
        environ: What else their shell knows.
    """
    home = sandbox.layout.classroom
    cluster = read_cluster(sandbox.kubeconfig)
    write_kubeconfig(home / "kubeconfig", name=name, cluster=cluster, user={"token": token}, namespace=namespace)
    return Terminal(sandbox, home / "kubeconfig", home, environ)


class Caller:
    """Asks an API by HTTP, with a bearer token if there is one.

    Attributes:
        url: What all paths are below.
        token: The token.
    """

    def __init__(self, url: str, token: str = "") -> None:
        self.url, self.token = url, token

    def expect(self, wanted: HTTPStatus, method: str, path: str, body: object = None) -> Any:
        """Send a request; return the answer, if it is JSON.

        Raises:
            DemoError: The status is another one, or there is no answer.
        """
        with self._answered(method, path, body) as answer:
            text = answer.read()
        if answer.status != wanted:
            raise DemoError(f"{method} {path} is answered {answer.status} instead of {wanted}: {text.decode()}")
        return json.loads(text) if text.startswith((b"{", b"[")) else None

    def events(self, path: str) -> Iterator[tuple[str, str]]:
        """Yield the kind and the text of each event of a stream until it ends.

        Raises:
            DemoError: There is none.
        """
        with self._answered("GET", path, None) as answer:
            if answer.status != HTTPStatus.OK:
                raise DemoError(f"GET {path} is answered {answer.status}: {answer.read().decode()}")
            fields: dict[str, str] = {}
            for raw in answer:
                name, _, value = raw.decode().rstrip("\r\n").partition(":")
                if name:
                    fields[name] = value.strip()
                elif "event" in fields:  # an empty line ends an event
                    yield fields["event"], fields.get("data", "")
                    fields = {}

    @contextlib.contextmanager
    def _answered(self, method: str, path: str, body: object) -> Iterator[http.client.HTTPResponse]:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=_ANSWER_S)
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            connection.request(method, parts.path + path, None if body is None else json.dumps(body), headers)
            yield connection.getresponse()
        except OSError as error:
            raise DemoError(f"{method} {self.url}{path}: {error}") from error
        finally:
            connection.close()

"""The demo of the portal: a learner asks for a lab by HTTP, watches it start, types on a device, and gives it back."""

import http.client
import json
import os
import pty
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from vkpsandbox import Sandbox
from vkpsandbox.controlplane.content import NAMESPACE
from vkpsandbox.controlplane.kubeconfig import read_cluster, write_kubeconfig
from vkpsandbox.controlplane.portal import HUB, LEARNERS, process_name
from vkpsandbox.demo.labs import Labs
from vkpsandbox.demo.pods import names as names_of
from vkpsandbox.demo.stage import DemoError, Narrator, Play, display

LEARNER: Final = "alice"
MENU: Final = Path(__file__).with_name("door.yaml")
BASE: Final = "/nublado/spawner/v1"
_WISH: Final = {"options": {"image_type": "recommended", "size": "small"}, "env": {}}
_DEADLINE_S: Final = 30.0
_STREAM_S: Final = 90.0
_SOON_S: Final = 30.0
_OPEN: Final = b"Escape character"
"""What a console says once it is open."""
_LEAVE: Final = b"\x1d"
"""Ctrl-], which leaves a console."""


class Said(NamedTuple):
    """An event of a stream."""

    kind: str
    text: str


class Visitor:
    """Asks the portal in the name of a ServiceAccount."""

    def __init__(self, url: str, token: str) -> None:
        self.token = token
        self._host = urlsplit(url).netloc

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request; return the status, and the answer if it is JSON."""
        with self._answered(method, path, body, _DEADLINE_S) as answer:
            text = answer.read()
        return answer.status, json.loads(text) if text.startswith((b"{", b"[")) else None

    def events(self, path: str) -> Iterator[Said]:
        """Yield the events of a stream until it ends.

        Raises:
            DemoError: There is none.
        """
        with self._answered("GET", path, None, _STREAM_S) as answer:
            if answer.status != HTTPStatus.OK:
                raise DemoError(f"GET {path}: {answer.status} {answer.read().decode()}")
            kind, data = "", ""
            for raw in answer:
                field, _, value = raw.decode().rstrip("\r\n").partition(":")
                match field:
                    case "event":
                        kind = value.strip()
                    case "data":
                        data = value.strip()
                    case "" if kind:  # an empty line ends an event
                        yield Said(kind, data)
                        kind, data = "", ""

    @contextmanager
    def _answered(self, method: str, path: str, body: object, within_s: float) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(self._host, timeout=within_s)
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            yield connection.getresponse()
        finally:
            connection.close()


def lab_on_request() -> Play:
    """Return the demo of the portal."""

    def perform(sandbox: Sandbox, _: Path, narrator: Narrator) -> None:
        visit = Visit(sandbox, narrator)
        visit.offer()
        visit.create()
        visit.follow()
        visit.work()
        visit.extend()
        visit.delete()

    def again(sandbox: Sandbox, _: Path) -> str:
        url = sandbox.process(process_name(1)).url
        return f"Ask for a lab with a token of a ServiceAccount in namespace {LEARNERS}, at\n\n  {url}{BASE}/"

    title = "A lab on request: a learner asks the portal, without any right to create Pods."
    settings = {"portals": 1, "worker_args": [["--boot-seconds=1-2", "--patty-poll-seconds=0.5"]]}
    return Play(title, (), settings, perform, again)


class Visit:
    """The steps on a sandbox that is up."""

    def __init__(self, sandbox: Sandbox, narrator: Narrator) -> None:
        self._sandbox, self._tell = sandbox, narrator
        self._url = sandbox.process(process_name(1)).url
        self._labs = Labs(sandbox.workers)
        sandbox.kubectl("create", "serviceaccount", LEARNER, f"--namespace={LEARNERS}")
        self._learner = Visitor(self._url, self._token(LEARNER, LEARNERS))
        self._hub = Visitor(self._url, self._token(HUB, NAMESPACE))
        self._path = f"{BASE}/labs/{LEARNER}"
        self._namespace = self._pod = ""

    def offer(self) -> None:
        """Put a lab on the menu; show what the learner may do in the cluster: nothing."""
        self._tell.head(
            "2. Put a lab on the menu",
            "An author labels a definition; the learner has a token of the cluster, and no right in it.",
        )
        self._tell.typed(f"kubectl apply -f {display(MENU)}")
        self._sandbox.kubectl("apply", "-f", str(MENU))
        self._tell.typed(f"TOKEN=$(kubectl -n {LEARNERS} create token {LEARNER})")
        self._tell.wait(self._not_offered, _SOON_S, "the lab on the menu")
        may = ("auth", "can-i", "create", "pods", "--all-namespaces")
        self._tell.typed(f"kubectl --token=$TOKEN {' '.join(may)}")
        said = self._as_learner(*may).stdout.strip()
        self._tell.printed(said)
        if said != "no":
            raise DemoError(f"{LEARNER} may create Pods: {said}")

    def create(self) -> None:
        """Ask for a lab; a second time in vain."""
        self._tell.head("3. Ask for a lab", "The answer comes at once; the portal alone makes the Pod.")
        self._curl("POST", f"{self._path}/create", _WISH)
        status, answer = self._learner.ask("POST", f"{self._path}/create", _WISH)
        if status != HTTPStatus.SEE_OTHER:
            raise DemoError(f"the portal answers {status}: {answer}")
        self._tell.printed(f"{status} See Other")
        status, answer = self._learner.ask("POST", f"{self._path}/create", _WISH)
        if status != HTTPStatus.CONFLICT:
            raise DemoError(f"a second lab was not refused: {status} {answer}")
        self._tell.say(f"   a second time: {status} {answer['detail'][0]['msg']}")

    def follow(self) -> None:
        """Follow the events until the lab is ready; find its Pod."""
        self._tell.head("4. Watch it start", "Every line comes from the objects; any replica tells the same story.")
        self._stream(self._learner, "complete")
        found = self._objects("pods", "--all-namespaces", "-l", "vkprovider.io/portal")
        if len(found) != 1 or len(self._labs.read()) != 1:
            raise DemoError(f"the Pods are {names_of(found)}, the labs {self._labs.read()}")
        self._namespace, self._pod = (found[0]["metadata"][field] for field in ("namespace", "name"))

    def work(self) -> None:
        """Type on a device with the learner's own token."""
        self._tell.head("5. Work on a device", f"In {self._namespace}, and nowhere else, {LEARNER} may open consoles.")
        command = ("exec", "-it", self._pod, f"--namespace={self._namespace}", "--", "console", "r1")
        self._tell.typed(f"kubectl --token=$TOKEN {' '.join(command)}")
        self._tell.printed(self._converse("show version", "Cisco IOS", *command))
        remove = ("delete", f"pod/{self._pod}", f"--namespace={self._namespace}")
        self._tell.typed(f"kubectl --token=$TOKEN {' '.join(remove)}")
        refused = self._as_learner(*remove, check=False)
        if refused.returncode == 0:
            raise DemoError(f"{LEARNER} deleted a Pod")
        self._tell.say("   refused: the lab is the portal's to delete")

    def extend(self) -> None:
        """Ask for more time."""
        self._tell.head("6. Ask for more time", "A lab has one end, which everybody can read.")
        self._curl("POST", f"{self._path}/extend", {})
        status, answer = self._learner.ask("POST", f"{self._path}/extend", {})
        if status != HTTPStatus.OK:
            raise DemoError(f"the portal answers {status}: {answer}")
        self._tell.printed(json.dumps(answer))

    def delete(self) -> None:
        """Delete the lab as a hub does; wait until nothing is left."""
        self._tell.head("7. Give it back", "A hub, such as JupyterHub, deletes labs, and creates none.")
        self._curl("DELETE", self._path)
        status, answer = self._hub.ask("DELETE", self._path)
        if status != HTTPStatus.ACCEPTED:
            raise DemoError(f"the portal answers {status}: {answer}")
        self._tell.printed(f"{status} Accepted")
        self._stream(self._learner, "complete")
        self._tell.wait(self._left, _SOON_S, "no namespace and no lab")
        self._tell.say(f"   the namespace {self._namespace} is gone, and every CML is empty")

    # ------------------------------------------------------------------------------------------ what they share
    def _stream(self, visitor: Visitor, last: str) -> None:
        """Show a stream, whose last event must be of this kind."""
        self._curl("GET", f"{self._path}/events")
        progress, kind = "", ""
        for kind, text in visitor.events(f"{self._path}/events"):
            if kind == "progress":
                progress = f"{float(text):3.0f} %"
            else:
                self._tell.say(f"   {progress:>5} {kind}: {text}")
        if kind != last:
            raise DemoError(f"the stream ends with {kind!r}, not with {last!r}")

    def _curl(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        """Show a request as a command."""
        data = "" if body is None else f" -d '{json.dumps(body)}'"
        how = "" if method == "GET" else f" -X {method}"
        self._tell.typed(f'curl{how} -H "Authorization: Bearer $TOKEN"{data} {self._url}{path}')

    def _token(self, account: str, namespace: str) -> str:
        return self._sandbox.kubectl("create", "token", account, f"--namespace={namespace}").stdout.strip()

    def _as_learner(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run kubectl with the learner's token alone."""
        answers_no = arguments[:2] == ("auth", "can-i")  # which it says by its exit code, too
        with self._own_kubeconfig() as where:
            return self._sandbox.kubectl(where, *arguments, check=check and not answers_no)

    @contextmanager
    def _own_kubeconfig(self) -> Iterator[str]:
        """Write a kubeconfig with the learner's token alone; give the option that names it."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kubeconfig"
            cluster = read_cluster(self._sandbox.kubeconfig)
            write_kubeconfig(path, name=LEARNER, cluster=cluster, user={"token": self._learner.token})
            yield f"--kubeconfig={path}"

    def _converse(self, line: str, sign: str, *arguments: str) -> str:
        """Type a line at a console and leave it; return what the device said.

        Raises:
            DemoError: The answer has no such sign.
        """
        ours, its = pty.openpty()
        said = b""
        with self._own_kubeconfig() as where:
            argv = [str(self._sandbox.programs / "kubectl"), where, *arguments]
            with subprocess.Popen(argv, stdin=its, stdout=its, stderr=its, start_new_session=True) as process:  # noqa: S603 (kubectl)
                said += _read_until(ours, _OPEN)  # what is typed before is kubectl's, not the device's
                os.write(ours, f"\r{line}\r".encode())
                said += _read_until(ours, sign.encode())
                os.write(ours, _LEAVE)
                process.kill()
        os.close(ours)
        os.close(its)
        if sign.encode() not in said:
            raise DemoError(f"the device does not answer with {sign!r}: {said!r}")
        lines = said.decode(errors="replace").splitlines()
        return "\n".join(each for each in lines if each.strip())

    def _objects(self, *what: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._sandbox.kubectl("get", *what, "-o", "json").stdout)["items"]
        return found

    def _not_offered(self) -> list[str]:
        """Complain if the form of the learner has no lab, or the definition is not ready."""
        there = names_of(self._objects("runtimeclasses"))
        _, images = self._hub.ask("GET", f"{BASE}/images")
        offered = bool(images and images["all"])
        return [] if offered and "netlab" in there else ["netlab"]

    def _left(self) -> list[str]:
        return names_of(self._objects("namespaces", "-l", "vkprovider.io/portal")) + self._labs.left()


def _read_until(terminal: int, sign: bytes) -> bytes:
    """Return what a terminal prints, until it has a sign, or time is over."""
    said = b""
    deadline = time.monotonic() + _DEADLINE_S
    while sign not in said and (left_s := deadline - time.monotonic()) > 0:
        if select.select([terminal], [], [], left_s)[0]:
            said += os.read(terminal, 4096)
    return said

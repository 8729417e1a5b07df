"""The demo of a mux: many lablets behind one address, each checked by what its device answers there."""

import contextlib
import json
import re
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.exposure import LIVE, Access
from vkprovider.platform.messages import count
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.relay import find_haproxy
from vkpsandbox.demo import reach
from vkpsandbox.demo.pods import names as names_of
from vkpsandbox.demo.stage import DemoError, Narrator, Play, display

LABLETS: Final = Path(__file__).with_name("behind.yaml")
REPLICAS: Final = 30
NODES: Final = 3
HOST: Final = "127.0.0.1"
"""Where the relay of the sandbox listens."""
PROVIDER: Final = "provider-1"
_LIVE_S: Final = 60.0
_SOON_S: Final = 30.0
_BACK_S: Final = 60.0
_CONNECT_S: Final = 2.0
_answers: Final = msgspec.json.Decoder(dict[str, Access])


def behind_one_address() -> Play:
    """Return the demo of a mux.

    Raises:
        SandboxError: There is no HAProxy.
    """
    find_haproxy()

    def perform(sandbox: Sandbox, _: Path, narrator: Narrator) -> None:
        tour = Tour(sandbox, narrator)
        tour.deploy()
        with tour.connect() as session:
            tour.kill(session)
            tour.delete(session)

    def again(_: Sandbox, __: Path) -> str:
        return "Look at a lablet's number, and use it, with\n\n  kubectl lablet ports lab-0; telnet 127.0.0.1 PORT"

    title = f"One address for many labs: {count(REPLICAS, 'lablet')} on {count(NODES, 'worker')} behind a mux."
    settings = {"mux": True, "worker_args": [["--boot-seconds=1-2", "--patty-poll-seconds=0.5"]]}
    return Play(title, (), settings, perform, again)


class Tour:
    """The steps on a sandbox that is up."""

    def __init__(self, sandbox: Sandbox, narrator: Narrator) -> None:
        self._sandbox, self._tell = sandbox, narrator

    def deploy(self) -> None:
        """Deploy the lablets; wait until each has a number, and check that its own device answers there."""
        self._tell.head(
            f"2. Deploy {count(REPLICAS, 'lablet')} that lend their consoles to the mux",
            "Learners and firewalls see one address, not every worker's; each console has a number there.",
        )
        self._tell.typed(f"kubectl apply -f - # {display(LABLETS)} for lab-0 to lab-{REPLICAS - 1}")
        template = LABLETS.read_text()
        lablets = [f"lab-{number}" for number in range(REPLICAS)]
        definition, manifest = template.split("---\n")
        self._sandbox.kubectl("apply", "-f", "-", input="---\n".join(definition.replace("NAME", n) for n in lablets))

        def undefined() -> list[str]:
            there = self._sandbox.kubectl("get", "runtimeclasses", "-o", "name").stdout.split()
            return [name for name in lablets if not any(entry.endswith(f"/{name}") for entry in there)]

        self._tell.wait(undefined, _SOON_S, "a RuntimeClass for each definition")
        self._sandbox.kubectl("apply", "-f", "-", input="---\n".join(manifest.replace("NAME", n) for n in lablets))
        took = self._tell.wait(self._without_number, _LIVE_S, "a number for each lablet")
        self._tell.say(f"   each has a number after {took:.1f} s")
        pods = self._pods()
        rows = [("POD", "NODE", "DEVICE", "VIA", "STATE")]
        for pod in pods:
            (device,), access = reach.consoles(pod), access_of(pod)
            rows.append((pod["metadata"]["name"], pod["spec"]["nodeName"], device, access.text, access.state))
        self._tell.table(rows)
        if len(used := {pod["spec"]["nodeName"] for pod in pods}) != NODES:
            raise DemoError(f"the lablets are on {sorted(used)}, not on {count(NODES, 'worker')}")
        if len({access_of(pod).port for pod in pods}) != REPLICAS:
            raise DemoError("two lablets have one number")
        self._tell.wait(lambda: list(filter(None, map(self._misled, pods))), _SOON_S, "each device at its number")
        self._tell.say(f"   all {REPLICAS} numbers were dialled: each device answers with the name of its Pod")

    def connect(self) -> socket.socket:
        """Open a session with the device of the first lablet."""
        self._tell.head("3. Use a console", "The relay carries the connection; the device answers with its own name.")
        port = self._number(0)
        self._tell.typed(f"telnet {HOST} {port}")
        session = socket.create_connection((HOST, port), timeout=_CONNECT_S)
        self._tell.say(f"   {ask(session, 'lab-0')}")
        return session

    def kill(self, session: socket.socket) -> None:
        """Kill the provider; check that session and number stay, also when it is back."""
        self._tell.head("4. Kill the provider", "It decides who may have a number, and carries no connection.")
        before = self._numbers()
        pid = self._sandbox.process(PROVIDER).pid
        self._tell.typed(f"kill -9 {pid}")
        self._sandbox.kill(PROVIDER)
        self._tell.say(f"   the session goes on: {ask(session, 'lab-0')}")
        if wrong := self._misled(self._pods()[1]):
            raise DemoError(f"without the provider a new connection fails: {wrong}")
        self._tell.say("   a new one works, too")
        self._tell.typed(f"vkprovider sandbox start {PROVIDER} --name {self._sandbox.name}")
        started = datetime.now(UTC)
        self._sandbox.start(PROVIDER)
        self._tell.wait(lambda: self._not_renewed(started), _BACK_S, "the Leases of all nodes")
        if (after := self._numbers()) != before:
            raise DemoError(f"the numbers are {after}, and were {before}")
        self._tell.say(f"   it is back, all numbers are as before, and the session goes on: {ask(session, 'lab-0')}")

    def delete(self, session: socket.socket) -> None:
        """Delete the last lablet; check that its number is refused and that the session stays."""
        last = REPLICAS - 1
        self._tell.head(f"5. Delete lab-{last}", "Its number is refused, and rests before anybody else gets it.")
        port = self._number(last)
        command = ("delete", "pod", f"lab-{last}", "--wait=false")
        self._tell.typed(f"kubectl {' '.join(command)}")
        self._sandbox.kubectl(*command)
        took = self._tell.wait(lambda: answers(port), _SOON_S, f"refusal at {HOST}:{port}")
        self._tell.typed(f"telnet {HOST} {port}")
        self._tell.say(f"   refused, {took:.1f} s after the command")
        self._tell.say(f"   the other session goes on: {ask(session, 'lab-0')}")

    # ------------------------------------------------------------------------------------------ what they share
    def _pods(self) -> list[dict[str, Any]]:
        """List the lablets in the order of the numbers in their names."""
        found = json.loads(self._sandbox.kubectl("get", "pods", "-l", "app=behind", "-o", "json").stdout)["items"]
        return sorted(found, key=lambda pod: int(pod["metadata"]["name"].rpartition("-")[2]))

    def _without_number(self) -> list[str]:
        pods = self._pods()
        waiting = [f"{pod['metadata']['name']} {access_of(pod).text}" for pod in pods if access_of(pod).state != LIVE]
        return waiting + ["a lablet that does not exist yet"] * (REPLICAS - len(pods))

    def _numbers(self) -> dict[str, int]:
        return {pod["metadata"]["name"]: access_of(pod).port for pod in self._pods()}

    def _number(self, replica: int) -> int:
        return self._numbers()[f"lab-{replica}"]

    def _misled(self, pod: dict[str, Any]) -> str:
        """Dial a lablet's number; return the answer, or "" if it is that of its own device."""
        name, port = pod["metadata"]["name"], access_of(pod).port
        try:
            with socket.create_connection((HOST, port), timeout=_CONNECT_S) as session:
                ask(session, name)
        except (OSError, DemoError) as error:
            return f"{name} at {HOST}:{port}: {error}"
        return ""

    def _not_renewed(self, since: datetime) -> list[str]:
        """List the Nodes whose Lease the provider has not renewed since a time; they stay Ready for a while without."""
        leases = ("get", "leases", "--namespace=kube-node-lease", "-o", "json")
        found = json.loads(self._sandbox.kubectl(*leases).stdout)["items"]
        return names_of(each for each in found if datetime.fromisoformat(each["spec"]["renewTime"]) < since)


def access_of(pod: dict[str, Any]) -> Access:
    """Return the mux's answer about the only port of a Pod, as the Pod reports it."""
    text = pod["metadata"].get("annotations", {}).get(names.ANNOTATION_ACCESS, "{}")
    return next(iter(_answers.decode(text).values()), Access("pending"))


def ask(session: socket.socket, name: str) -> str:
    """Press Return at a console and return its prompt, which must have this name.

    Raises:
        DemoError: Another device answers, or none.
    """
    said = b""
    with contextlib.suppress(OSError):
        session.sendall(b"\r\n")
        while part := session.recv(4096):
            said += part
            if re.search(rb"(^|\s)" + name.encode() + rb"[>#]\s*$", said):
                return f"{name}{said.rstrip()[-1:].decode()}"
    raise DemoError(f"{name} does not answer, but {said.decode(errors='replace').strip()!r}")


def answers(port: int) -> list[str]:
    """Return a complaint if a number of the mux is not refused."""
    try:
        with socket.create_connection((HOST, port), timeout=_CONNECT_S) as session:
            return [] if session.recv(1) == b"" else [f"{HOST}:{port} answers"]
    except TimeoutError:
        return [f"{HOST}:{port} accepts"]
    except OSError:
        return []

"""The demo of a mux: many lablets behind one address, each checked by what its device answers there."""

import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.exposure import LIVE, Access
from vkprovider.platform.messages import count
from vkpsandbox.controlplane.relay import find_haproxy
from vkpsandbox.demo import consoles
from vkpsandbox.demo.stage import BOOTS, Part, Play, Stage, display
from vkpsandbox.demo.terminal import DemoError

LABLETS: Final = Path(__file__).with_name("mux.yaml")
REPLICAS: Final = 30
NODES: Final = 3
HOST: Final = "127.0.0.1"
"""Where the relay of the sandbox listens."""
PROVIDER: Final = "provider-1"
_answers: Final = msgspec.json.Decoder(dict[str, Access])


def behind_one_address() -> Play:
    """Return the demo of a mux.

    Raises:
        SandboxError: There is no HAProxy.
    """
    find_haproxy()
    return Play(
        f"One address for many labs: {count(REPLICAS, 'lablet')} on {count(NODES, 'worker')} behind a mux.",
        {"workers": NODES, "mux": True, "worker_args": [BOOTS]},
        lambda stage: Lent(stage).parts(),
        lambda _: "Look at a lablet's number, and use it, with\n\n  kubectl lablet ports lab-0; telnet 127.0.0.1 PORT",
    )


class Lent:
    """Lablets that lend their consoles to a mux."""

    _session: socket.socket
    """With the device of the first lablet, from `connect` on."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def parts(self) -> list[Part]:
        """Return what is shown."""
        return Part.of(self.deploy, self.connect, self.kill, self.delete)

    def deploy(self) -> None:
        """Deploy 30 lablets that lend their consoles to the mux.

        Learners and firewalls see one address, not every worker's; each console has a number there.
        """
        stage = self._stage
        stage.typed(f"kubectl apply -f - # {display(LABLETS)} for lab-0 to lab-{REPLICAS - 1}")
        lablets = [f"lab-{number}" for number in range(REPLICAS)]
        definition, manifest = LABLETS.read_text().split("---\n")
        apply = ("apply", "-f", "-")
        stage.sandbox.kubectl(*apply, input="---\n".join(definition.replace("NAME", name) for name in lablets))
        stage.wait(lambda: stage.lacks("runtimeclasses", lablets), "a RuntimeClass for each definition")
        stage.sandbox.kubectl(*apply, input="---\n".join(manifest.replace("NAME", name) for name in lablets))
        took_s = stage.wait(self._without_number, "a number for each lablet")
        stage.say(f"   each has a number after {took_s:.1f} s")
        pods = self._pods()
        rows = [("POD", "NODE", "DEVICE", "VIA", "STATE")]
        for pod in pods:
            (device,), access = consoles.ports(pod), access_of(pod)
            rows.append((pod["metadata"]["name"], pod["spec"]["nodeName"], device, access.text, access.state))
        stage.table(rows)
        if len(used := {pod["spec"]["nodeName"] for pod in pods}) != NODES:
            raise DemoError(f"the lablets are on {sorted(used)}, not on {count(NODES, 'worker')}")
        if len({access_of(pod).port for pod in pods}) != REPLICAS:
            raise DemoError("two lablets have one number")
        stage.wait(lambda: list(filter(None, map(misled, pods))), "each device at its number")
        stage.say(f"   all {REPLICAS} numbers were dialled: each device answers with the name of its Pod")

    def connect(self) -> None:
        """Use a console.

        The relay carries the connection; the device answers with its own name.
        """
        port = self._numbers()["lab-0"]
        self._stage.typed(f"telnet {HOST} {port}")
        session = socket.create_connection((HOST, port), timeout=consoles.CONNECT_S)
        self._session = self._stage.closing.enter_context(session)
        self._stage.say(f"   {self._answer()}")

    def kill(self) -> None:
        """Kill the provider.

        It decides who may have a number, and carries no connection.
        """
        stage, before = self._stage, self._numbers()
        stage.typed(f"kill -9 {stage.sandbox.process(PROVIDER).pid}")
        stage.sandbox.kill(PROVIDER)
        stage.say(f"   the session goes on: {self._answer()}")
        if wrong := misled(self._pods()[1]):
            raise DemoError(f"without the provider a new connection fails: {wrong}")
        stage.say("   a new one works, too")
        stage.typed(f"vkprovider sandbox start {PROVIDER} --name {stage.sandbox.name}")
        started = datetime.now(UTC)
        stage.sandbox.start(PROVIDER)
        stage.wait(lambda: self._not_renewed(started), "the Leases of all nodes")
        if (after := self._numbers()) != before:
            raise DemoError(f"the numbers are {after}, and were {before}")
        stage.say(f"   it is back, all numbers are as before, and the session goes on: {self._answer()}")

    def delete(self) -> None:
        """Delete lab-29.

        Its number is refused, and rests before anybody else gets it.
        """
        stage, last = self._stage, f"lab-{REPLICAS - 1}"
        port = self._numbers()[last]
        stage.run(f"kubectl delete pod {last} --wait=false")
        took_s = stage.wait(lambda: unrefused(port), f"refusal at {HOST}:{port}")
        stage.typed(f"telnet {HOST} {port}")
        stage.say(f"   refused, {took_s:.1f} s after the command")
        stage.say(f"   the other session goes on: {self._answer()}")

    # ------------------------------------------------------------------------------------------ what they share
    def _answer(self) -> str:
        return consoles.prompt_of(self._session, "lab-0")

    def _pods(self) -> list[dict[str, Any]]:
        """List the lablets in the order of the numbers in their names."""
        found = self._stage.get("pods", "-l", "app=behind")
        return sorted(found, key=lambda pod: int(pod["metadata"]["name"].rpartition("-")[2]))

    def _without_number(self) -> list[str]:
        pods = self._pods()
        waiting = [f"{pod['metadata']['name']} {access_of(pod).text}" for pod in pods if access_of(pod).state != LIVE]
        return waiting + ["a lablet that does not exist yet"] * (REPLICAS - len(pods))

    def _numbers(self) -> dict[str, int]:
        return {pod["metadata"]["name"]: access_of(pod).port for pod in self._pods()}

    def _not_renewed(self, since: datetime) -> list[str]:
        """List the Nodes whose Lease the provider has not renewed since a time; they stay Ready for a while without."""
        found = self._stage.get("leases", "--namespace=kube-node-lease")
        late = (each for each in found if datetime.fromisoformat(each["spec"]["renewTime"]) < since)
        return [each["metadata"]["name"] for each in late]


def access_of(pod: dict[str, Any]) -> Access:
    """Return the mux's answer about the only port of a Pod, as the Pod reports it."""
    text = pod["metadata"].get("annotations", {}).get(names.ANNOTATION_ACCESS, "{}")
    return next(iter(_answers.decode(text).values()), Access("pending"))


def misled(pod: dict[str, Any]) -> str:
    """Dial a lablet's number; return the answer, or "" if it is that of its own device."""
    name, port = pod["metadata"]["name"], access_of(pod).port
    try:
        with socket.create_connection((HOST, port), timeout=consoles.CONNECT_S) as session:
            consoles.prompt_of(session, name)
    except (OSError, DemoError) as error:
        return f"{name} at {HOST}:{port}: {error}"
    return ""


def unrefused(port: int) -> list[str]:
    """Return a complaint if a number of the mux is not refused."""
    try:
        with socket.create_connection((HOST, port), timeout=consoles.CONNECT_S) as session:
            return [] if session.recv(1) == b"" else [f"{HOST}:{port} answers"]
    except TimeoutError:
        return [f"{HOST}:{port} accepts"]
    except OSError:
        return []

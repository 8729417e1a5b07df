"""A sandbox whose workers only agents reach, with a proxy on the way of each process to the broker."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from tests.support.mosquitto import CALLER, mosquitto_or_skip
from tests.support.proxy import Proxy
from tests.support.simulator import Simulator
from tunnels.wire import codec, messages
from vkprovider.shipped import find_manifests
from vkpsandbox import Sandbox, start
from vkpsandbox.controlplane import programs, tunnels
from vkpsandbox.processes.record import Broker, Record

LEASE_TTL: Final = {"LEADER_LEASE_TTL": "6"}
"""So that a replica that is paused loses its nodes while the broker still counts it as connected."""
_MANY: Final = 1000
ROUTES: Final = {
    "import": "^POST .*/import$",
    "start": "^PUT .*/start$",
    "stop": "^PUT .*/stop$",
    "wipe": "^PUT .*/wipe$",
}


@dataclass
class Site:
    """The sandbox and its ways.

    Attributes:
        sandbox: The sandbox; its processes are also `mosquitto` and `agent-NAME`.
        broker: The broker.
        links: The proxies between the broker and each other process, by its name.
    """

    sandbox: Sandbox
    broker: Broker
    links: dict[str, Proxy]

    def keep(self, *, persistent: bool) -> None:
        """Let the broker save what it holds, or not, from its next start on."""
        config = self.sandbox.layout.workers / "mosquitto.conf"
        kept = [line for line in config.read_text().splitlines() if not line.startswith("persistence")]
        folder = f"persistence_location {self.sandbox.layout.workers}/"
        config.write_text("\n".join((*kept, f"persistence {str(persistent).lower()}", folder, "")))


@contextlib.contextmanager
def tunnelled(directory: Path, *, workers: int, replicas: int) -> Iterator[Site]:
    """Start it: broker, agents and replicas, each of these behind a proxy of its own."""
    mosquitto_or_skip()
    made = Sandbox.up(
        "tunnels",
        directory=directory,
        workers=workers,
        provider=False,
        worker_args=[["--boot-seconds=0.3-1"]],
        worker_spec={"tunnel": "mqtt"},
        tied=True,
    )
    with made as sandbox, contextlib.ExitStack() as stack:
        layout = sandbox.layout
        broker = tunnels.plan_broker(sandbox.workers)
        record = Record.load(layout)
        site = Site(sandbox, broker, {})

        def through(process: str) -> Record:
            link = site.links[process] = stack.enter_context(Proxy("127.0.0.1", broker.port))
            return msgspec.structs.replace(record, broker=broker._replace(port=link.port))

        start.add_process(layout, tunnels.broker_process(layout, broker, find_manifests()))
        for worker in sandbox.workers:
            start.add_process(layout, tunnels.agent_process(layout, through(worker.agent), worker, ()))
        for number in range(1, replicas + 1):
            settings = {**tunnels.replica_settings(through(f"provider-{number}")), **LEASE_TTL}
            start.add_process(layout, programs.provider_process(sandbox.provider_kubeconfig, number, settings))
        yield site


class Slow:
    """Steps that a worker takes its time for: it begins them when it is asked to, and answers as soon as it is done.

    Args:
        worker: The worker.
        step: One of `ROUTES`.
        seconds: How long it waits before it does it.
    """

    def __init__(self, worker: Simulator, step: str, seconds: float) -> None:
        self._worker = worker
        self._route = ROUTES[step]
        self._mark = worker.last_request()
        worker.fault("delay", self._route, delay_s=seconds, count=_MANY)

    def arrived(self) -> int:
        """Count the requests for it so far."""
        [left] = [fault["count"] for fault in self._worker.admin("GET", "/faults") if fault["route"] == self._route]
        return _MANY - int(left)

    def done(self) -> int:
        """Count those that were carried out and answered, whoever listened."""
        return sum(bool(re.search(self._route, line(entry))) for entry in self._worker.access_log(self._mark))


def line(entry: dict[str, Any]) -> str:
    """Give method and path of a request."""
    return f"{entry['method']} {entry['path']}"


@dataclass
class Witness:
    """Reads what agents refuse, with the rights of a replica, as a context manager.

    Attributes:
        codes: Of all refusals so far.
    """

    broker: Broker
    codes: list[str] = field(default_factory=list)
    _client: Any = None

    def __enter__(self) -> Self:
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id="witness")
        self._client.username_pw_set(CALLER, self.broker.accounts[CALLER])
        self._client.on_message = self._heard
        self._client.on_connect = lambda client, *_: client.subscribe("vkprovider/+/up/#")
        self._client.connect("127.0.0.1", self.broker.port)
        self._client.loop_start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _heard(self, _client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        said = codec.from_agent(bytes(message.payload))
        if isinstance(said, messages.Refusal):
            self.codes.append(said.code)

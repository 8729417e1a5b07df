"""A sandbox whose workers only agents reach, with proxies on the ways."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec

from tests.support.mosquitto import mosquitto_or_skip
from tests.support.proxy import Proxy
from tests.support.simulator import Simulator
from vkprovider.platform.shipped import find_manifests
from vkpsandbox import Sandbox, start
from vkpsandbox.controlplane import programs, tunnels
from vkpsandbox.processes.record import Record

LEASE_TTL: Final = {"LEADER_LEASE_TTL": "6"}
"""So that a replica that is paused loses its nodes while the broker still counts it as connected."""
_MANY: Final = 1000
ROUTES: Final = {
    "import": "^POST .*/import$",
    "start": "^PUT .*/start$",
    "stop": "^PUT .*/stop$",
    "wipe": "^PUT .*/wipe$",
}


class Link(Protocol):
    """The way of a process to those at the other end of the tunnel."""

    def cut(self) -> None:
        """Let nothing through any more; what is held arrives when it is healed."""

    def heal(self) -> None:
        """Let everything through again."""


@dataclass
class AgentLinks:
    """The ways of an agent to the pages of all replicas."""

    sandbox: Sandbox
    agent: str
    proxies: list[Proxy]

    def cut(self) -> None:
        pid = self.sandbox.process(self.agent).pid
        for proxy in self.proxies:
            proxy.cut(pid)

    def heal(self) -> None:
        for proxy in self.proxies:
            proxy.heal()


@dataclass
class Site:
    """The sandbox and its ways.

    Attributes:
        sandbox: The sandbox; its processes are also `agent-NAME`, and `mosquitto` if there is a broker.
        tunnel: The word in `spec.tunnel`.
        links: The way of each replica and agent, by its process's name.
    """

    sandbox: Sandbox
    tunnel: Literal["mqtt", "http"]
    links: dict[str, Link]

    def keep(self, *, persistent: bool) -> None:
        """Let the broker save what it holds, or not, from its next start on."""
        config = self.sandbox.layout.workers / "mosquitto.conf"
        kept = [line for line in config.read_text().splitlines() if not line.startswith("persistence")]
        folder = f"persistence_location {self.sandbox.layout.workers}/"
        config.write_text("\n".join((*kept, f"persistence {str(persistent).lower()}", folder, "")))

    def log_of(self, process: str) -> str:
        """Return what a process has logged."""
        return self.sandbox.layout.log(process).read_text()


@contextlib.contextmanager
def tunnelled(directory: Path, tunnel: Literal["mqtt", "http"], *, workers: int, replicas: int) -> Iterator[Site]:
    """Start it: agents and replicas, with proxies between them or, by MQTT, between each of them and a broker."""
    if tunnel == "mqtt":
        mosquitto_or_skip()
    made = Sandbox.up(
        "tunnels",
        directory=directory,
        workers=workers,
        provider=False,
        worker_args=[["--boot-seconds=0.3-1"]],
        worker_spec={"tunnel": tunnel},
        tied=True,
    )
    with made as sandbox, contextlib.ExitStack() as stack:
        site = Site(sandbox, tunnel, {})
        if tunnel == "mqtt":
            _by_broker(site, stack, replicas)
        else:
            _by_pages(site, stack, replicas)
        yield site


def _by_broker(site: Site, stack: contextlib.ExitStack, replicas: int) -> None:
    sandbox, layout = site.sandbox, site.sandbox.layout
    broker, record = tunnels.plan_broker(sandbox.workers), Record.load(layout)

    def through(process: str) -> Record:
        link = site.links[process] = stack.enter_context(Proxy("127.0.0.1", broker.port))
        return msgspec.structs.replace(record, broker=broker._replace(port=link.port))

    start.add_process(layout, tunnels.broker_process(layout, broker, find_manifests()))
    for worker in sandbox.workers:
        start.add_process(layout, tunnels.agent_process(layout, through(worker.agent), worker, ()))
    for number in range(1, replicas + 1):
        settings = {**tunnels.replica_settings(through(f"provider-{number}")), **LEASE_TTL}
        start.add_process(layout, programs.provider_process(sandbox.provider_kubeconfig, number, settings))


def _by_pages(site: Site, stack: contextlib.ExitStack, replicas: int) -> None:
    """Start it; no replica advertises a url of its own, so that agents dial the proxies only."""
    sandbox, layout = site.sandbox, site.sandbox.layout
    record = msgspec.structs.replace(Record.load(layout), tokens=tunnels.plan_tokens(sandbox.workers))
    settings = {**tunnels.replica_settings(record), **LEASE_TTL}
    reached, proxies = [], []
    for number in range(1, replicas + 1):
        provider = programs.provider_process(sandbox.provider_kubeconfig, number, settings)
        proxy = stack.enter_context(Proxy("127.0.0.1", int(provider.url.rpartition(":")[2])))
        site.links[provider.name] = proxy
        proxies.append(proxy)
        reached.append(msgspec.structs.replace(provider, url=f"http://127.0.0.1:{proxy.port}"))
        start.add_process(layout, provider)
    for worker in sandbox.workers:
        site.links[worker.agent] = AgentLinks(sandbox, worker.agent, proxies)
        start.add_process(layout, tunnels.agent_process(layout, record, worker, reached))


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

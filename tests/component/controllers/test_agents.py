"""Workers that only an agent reaches, by MQTT and by HTTP, from the agent's first hello to its end (R004-027…042)."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest

from tests.component.controllers.harness import PASSWORD, World
from tests.component.controllers.looking import condition, imports, is_ready, labs, requests, when
from tests.component.controllers.running import SHORT, WITH_PASSES, Groups, Running
from tests.support import topologies
from tests.support.apiserver import GROUP
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.extra import own_address
from tests.support.mosquitto import CALLER, Mosquitto, free_port
from tests.support.mosquitto import PASSWORD as BROKER_PASSWORD
from tests.support.terminals import Terminal
from tests.support.tunnels import eventually
from tests.support.websockets import Balancer
from tunnels.agent.core import Habits, new_boot
from tunnels.agent.epochs import EpochFile
from tunnels.link.carrier import Address
from tunnels.protocol.presence import AgentState
from vkprovider.agent.process import agent_carrier, make_agent, open_streams, open_upstream, serve
from vkprovider.agent.settings import AgentSettings, DialSettings
from vkprovider.carriers.settings import MqttSettings
from vkprovider.cli.checkup.gather import Doctor
from vkprovider.cli.doctor import broker_from
from vkprovider.doctor.findings import Level
from vkprovider.labs.kubelet.spi import Exit, LogOptions, Target
from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.wiring.main import page_of
from vkprovider.platform.http.page import Page
from vkprovider.platform.shipped import find_manifests
from vkpsim.http.access_log import Entry

CAPACITY = {"cpu": "64", "memory": "256Gi", "labs": 200, "labNodes": 400}
SPEC = {"capacity": CAPACITY, "portRange": {"start": 2000, "end": 2999}}


class Way(Protocol):
    """How replicas and agents meet."""

    tunnel: str

    def settings(self) -> dict[str, str]:
        """Return the settings of one more replica."""

    async def serve(self, running: Running, settings: dict[str, str]) -> None:
        """Let agents come to a replica that runs."""

    def dial(self, account: str) -> tuple[MqttSettings, DialSettings]:
        """Return the settings of an agent with the credentials of an account."""

    async def close(self) -> None:
        """End it."""


class ByMqtt:
    """A broker, reached by both."""

    tunnel = "mqtt"

    def __init__(self, mosquitto: Mosquitto) -> None:
        self.mosquitto = mosquitto

    def settings(self) -> dict[str, str]:
        account = {"VKPROVIDER_TUNNEL_MQTT_USERNAME": CALLER, "VKPROVIDER_TUNNEL_MQTT_PASSWORD": BROKER_PASSWORD}
        return {"VKPROVIDER_TUNNEL_MQTT_URL": self.url, **account}

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.mosquitto.port}"

    async def serve(self, running: Running, settings: dict[str, str]) -> None: ...

    def dial(self, account: str) -> tuple[MqttSettings, DialSettings]:
        given = {"url": self.url, "username": account, "password": BROKER_PASSWORD}
        return MqttSettings.model_validate(given), DialSettings()

    async def close(self) -> None:
        await self.mosquitto.stop()


class ByHttp:
    """The pages of the replicas, and a proxy in front of them all, which agents dial first."""

    tunnel = "http"

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.ports: list[int] = []
        self.pages: list[Page] = []
        self.proxy = Balancer(lambda: self.ports)
        self._running = asyncio.create_task(self.proxy.run(), name="proxy")

    def settings(self) -> dict[str, str]:
        port = free_port()
        self.ports.append(port)
        return {
            "VKPROVIDER_TUNNEL_HTTP_TOKENS": " ".join(f"{name}:{self.token(name)}" for name in self.names),
            "VKPROVIDER_TUNNEL_HTTP_ADVERTISED_URL": f"http://127.0.0.1:{port}",
            "VKPROVIDER_HTTP_HOST": "127.0.0.1",
            "VKPROVIDER_HTTP_PORT": str(port),
        }

    async def serve(self, running: Running, settings: dict[str, str]) -> None:
        page = page_of(Settings.from_environment(settings))
        await page.start()
        page.serve(running.replica.process)
        self.pages.append(page)

    def dial(self, account: str) -> tuple[MqttSettings, DialSettings]:
        return MqttSettings(), DialSettings.model_validate({"url": self.proxy.url, "token": self.token(account)})

    def token(self, name: str) -> str:
        return f"the-token-of-{name}"

    async def close(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, *(page.stop() for page in self.pages), return_exceptions=True)


@dataclass
class Place:
    """A lab with two workers behind NAT: simulators that only their agents may dial.

    Attributes:
        world: The cluster.
        way: How replicas and agents meet.
        names: Of the workers, and of their agents' accounts.
        simulators: By the worker's name.
    """

    world: World
    folder: Path
    way: Way
    names: tuple[str, ...]
    simulators: dict[str, CmlSimulator] = field(default_factory=dict)
    _agents: list[asyncio.Task[None]] = field(default_factory=list)

    async def replica(self, intervals: Groups = SHORT, **env: str) -> Running:
        """Start a replica that agents reach."""
        settings = self.way.settings()
        running = await self.world.replica(intervals, **settings, **env)
        await self.way.serve(running, settings)
        return running

    def agent(self, name: str, *, account: str = "", keeps_credentials: bool = True) -> asyncio.Task[None]:
        """Start a process' worth of an agent; cancelling it is its orderly end."""
        credentials = self.folder / "credentials"
        credentials.write_text(f"admin\n{PASSWORD}\n")
        settings = AgentSettings(
            name=name,
            url=self.simulators[name].url,
            address=own_address(name),
            credentials_file=str(credentials) if keeps_credentials else "",
            insecure_skip_verify=True,
            observe_s=0.1,
        )
        mqtt, dial = self.way.dial(account or name)

        async def run() -> None:
            upstream, streams = open_upstream(settings), open_streams(settings)
            carrier = agent_carrier(mqtt, dial, Address(name, new_boot()))
            habits = Habits(heartbeat_s=0.5, hello_s=0.1, name_taken_s=0.5)
            epochs = EpochFile(self.folder / f"{name}.epoch")
            agent = make_agent(settings, upstream, streams, carrier, epochs, habits)
            try:
                await serve(agent, upstream)
            finally:
                await upstream.close()
                await streams.close()

        task = asyncio.create_task(run(), name=f"agent {name}")
        self._agents.append(task)
        return task

    async def worker(self, name: str, **spec: object) -> None:
        """Create a CMLWorker for an agent."""
        body = {"apiVersion": "vkprovider.io/v1alpha1", "kind": "CMLWorker", "metadata": {"name": name}}
        await self.world.admin.create(
            f"{GROUP}/cmlworkers",
            {**body, "spec": {"tunnel": self.way.tunnel, "address": own_address(name), **SPEC, **spec}},
        )

    async def reason(self, name: str, reason: str) -> str:
        """Wait for the reason of a CMLWorker's condition Ready, and return its message."""
        found = await self.world.cmlworker(name, lambda seen: condition(seen, "Ready").get("reason") == reason)
        return str(condition(found, "Ready")["message"])

    async def close(self) -> None:
        for task in self._agents:
            task.cancel()
        await asyncio.gather(*self._agents, return_exceptions=True)


async def started_way(tunnel: str, folder: Path, names: tuple[str, ...]) -> Way:
    if tunnel == "http":
        return ByHttp(names)
    await asyncio.to_thread(folder.mkdir)
    mosquitto = Mosquitto(folder, agents=names)
    await mosquitto.start()
    return ByMqtt(mosquitto)


@pytest.fixture(params=["mqtt", "http"])
async def place(request: pytest.FixtureRequest, world: World, tmp_path: Path) -> AsyncIterator[Place]:
    names = (world.name("behind"), world.name("behind"))
    way = await started_way(request.param, tmp_path / "mosquitto", names)
    simulators = {name: await world.simulator() for name in names}
    place = Place(world, tmp_path, way, names, simulators)
    yield place
    await place.close()
    await world.close()
    await way.close()


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_lablets_live_and_end_through_an_agent(place: Place) -> None:
    world, name = place.world, place.names[0]
    simulator = place.simulators[name]
    await place.replica()
    await place.worker(name)
    place.agent(name)
    node = await world.node(name, is_ready)
    assert node["metadata"]["labels"]["vkprovider.io/tunnel"] == place.way.tunnel
    definition = await world.define()
    lablets = [await world.pod(definition, name) for _ in range(3)]
    for lablet in lablets:
        await lablet.ready()
    assert len(imports(simulator)) == 3
    for lablet in lablets:
        await lablet.delete()
    for lablet in lablets:
        await lablet.gone()
    assert not labs(simulator)
    assert len(requests(simulator, "POST", "/authenticate")) == 1, "only the agent logs in, and once"


async def test_an_agent_that_knows_a_later_owner_than_the_cluster_is_led_on(place: Place) -> None:
    """As after a restore of etcd: the Lease counts on from what the backup says, and the agent from its file."""
    world, name = place.world, place.names[0]
    await place.replica()
    await place.worker(name)
    agent = place.agent(name)
    await world.node(name, is_ready)
    heard = EpochFile(place.folder / f"{name}.epoch")
    await when(heard.read, "the agent has heard its owner")
    before = (await world.lease(name))["leaseTransitions"]
    await ended(agent)
    heard.keep(heard.read() + 4)
    place.agent(name)
    lablet = await world.pod(await world.define(), name)
    await lablet.ready()
    assert (await world.lease(name))["leaseTransitions"] == before + 5


async def test_an_unknown_agent_awaits_approval(place: Place) -> None:
    world, name = place.world, place.names[0]
    await place.replica()
    place.agent(name)
    assert "kubectl lablet approve" in await place.reason(name, "AwaitingApproval")
    await world.node(name, lambda node: node["spec"].get("unschedulable") and not is_ready(node))
    definition = await world.define()
    lablet = await world.pod(definition, name)
    await lablet.waits("AwaitingApproval")
    await world.admin.delete(f"{GROUP}/cmlworkers/{name}")
    assert "kubectl lablet approve" in await place.reason(name, "AwaitingApproval"), "as long as the agent is there"
    approved = {"metadata": {"annotations": {"vkprovider.io/approved": "true"}}, "spec": {"capacity": CAPACITY}}
    await world.admin.patch(f"{GROUP}/cmlworkers/{name}", approved)
    await world.node(name, lambda node: is_ready(node) and not node["spec"].get("unschedulable"))
    await lablet.ready()


async def test_an_agent_whose_worker_was_refused_is_tried_again(place: Place) -> None:
    running = await place.replica(WITH_PASSES)
    refusal = running.api.fault("^POST .*/cmlworkers", status=403)
    place.agent(place.names[0])
    await place.reason(place.names[0], "AwaitingApproval")
    assert refusal.met


@pytest.mark.parametrize("policy", ["deny", "allow"])
async def test_policies_for_unknown_agents(place: Place, policy: str) -> None:
    world, (name, other) = place.world, place.names
    await place.replica(VKPROVIDER_TUNNEL_REGISTER=policy)
    place.agent(name)
    if policy == "allow":
        assert "vkprovider.io/approved" not in (await world.cmlworker(name))["metadata"].get("annotations", {})
        return
    await place.worker(other)
    place.agent(other)
    await world.node(other, is_ready)  # what came later was dealt with
    assert await world.admin.get(f"{GROUP}/cmlworkers/{name}") is None


async def test_an_agent_that_ends_and_comes_back(place: Place) -> None:
    world, (name, other) = place.world, place.names
    await place.replica()
    agents = {}
    for each in place.names:
        await place.worker(each)
        agents[each] = place.agent(each)
        await world.node(each, is_ready)
    lablet = await world.pod(await world.define(), name)
    await lablet.ready()
    await ended(agents[name])
    assert "has left" in await place.reason(name, "AgentAway")
    await world.node(name, lambda node: condition(node, "Ready")["reason"] == "AgentAway")
    assert is_ready(await world.node(other))
    assert len(labs(place.simulators[name])) == 1
    place.agent(name)
    await world.node(name, is_ready)
    await lablet.ready()
    assert len(imports(place.simulators[name])) == 1


async def test_two_agents_of_one_name_are_both_named(place: Place) -> None:
    """On the CMLWorker, written once however often the second one comes again, as long as it is there."""
    world, name = place.world, place.names[0]
    running = await place.replica()
    await place.worker(name)
    place.agent(name)
    await world.node(name, is_ready)
    second = place.agent(name)
    event = await world.until_event("AgentConflict", name)
    said = await turned_away(world, name, "AgentConflict")
    assert event["message"] == said
    view = running.replica.tunnels.hubs[place.way.tunnel].view(name)
    assert said == f"two agents bear the name {name}: process {view.boot} is used, process {view.rival} is refused"
    assert is_ready(await world.node(name))
    versions = []
    for _ in range(2):
        looks = looks_at(place, name)
        await eventually(lambda looks=looks: looks_at(place, name) >= looks + 3)  # type: ignore[misc]
        versions.append((await world.cmlworker(name))["metadata"]["resourceVersion"])
    assert versions[0] == versions[1]
    await ended(second)
    await world.cmlworker(name, lambda seen: not condition(seen, "AgentTurnedAway")["status"])
    assert is_ready(await world.node(name))


def looks_at(place: Place, name: str) -> int:
    """Return how often a worker was asked for its labs."""
    return len(requests(place.simulators[name], "GET", "/labs"))


async def turned_away(world: World, name: str, reason: str) -> str:
    """Wait for the condition AgentTurnedAway of a CMLWorker, and return its message."""
    found = await world.cmlworker(name, lambda seen: condition(seen, "AgentTurnedAway").get("reason") == reason)
    return str(condition(found, "AgentTurnedAway")["message"])


async def test_an_agent_of_another_tunnel_than_the_workers_is_not_used(place: Place) -> None:
    world, name = place.world, place.names[0]
    await place.replica()
    await place.worker(name, tunnel="direct", url=f"null://{name}", credentialsSecretName="none")
    agent = place.agent(name)
    event = await world.until_event("AgentRefused", name)
    assert "spec.tunnel is direct" in event["message"]
    assert await turned_away(world, name, "AgentRefused") == event["message"]
    await ended(agent)
    await world.cmlworker(name, lambda seen: not condition(seen, "AgentTurnedAway")["status"])


async def test_an_agent_cannot_take_the_name_of_another(place: Place) -> None:
    """The broker's access rules bind an account to its own topics, the page a token to its own name."""
    world, (name, other) = place.world, place.names
    running = await place.replica()
    await place.worker(name)
    place.agent(name, account=other)
    await place.worker(other)
    place.agent(other)
    await world.node(other, is_ready)
    assert "no agent" in await place.reason(name, "AgentAway")
    if place.way.tunnel == "http":
        assert running.replica.http_refusals["AgentUnknown"] >= 1


async def keep_password(world: World, name: str, host: str = "") -> None:
    """Store CML's password in a Secret of the worker's name."""
    meta = {"name": name, "namespace": "vkprovider-system-logins", "labels": {"vkprovider.io/used-for": "worker"}}
    secret = {"metadata": meta, "stringData": {"username": "admin", "password": PASSWORD}}
    if host:
        meta["annotations"] = {"vkprovider.io/host": host}
    await world.admin.create("/api/v1/namespaces/vkprovider-system-logins/secrets", secret)


async def test_the_password_may_stand_in_the_cluster_instead(place: Place) -> None:
    world, name = place.world, place.names[0]
    await place.replica()
    await keep_password(world, name)
    place.agent(name, keeps_credentials=False)
    await place.worker(name, credentialsSecretName=name)
    assert f"agent://{name}" in await place.reason(name, "SecretNotAllowed")
    allowed = {"metadata": {"annotations": {"vkprovider.io/host": f"agent://{name}"}}}
    await world.admin.patch(f"/api/v1/namespaces/vkprovider-system-logins/secrets/{name}", allowed)
    await world.node(name, is_ready)


async def test_the_doctor_asks_workers_through_their_agents(place: Place) -> None:
    """It can by MQTT; by HTTP agents dial replicas only, and it says so."""
    world, name = place.world, place.names[0]
    running = await place.replica()
    await place.worker(name)
    place.agent(name)
    await world.node(name, is_ready)
    broker = broker_from(place.way.settings())
    manifest = (find_manifests() / "base" / "rbac.yaml").read_text()
    doctor = Doctor(running.ctx.kube, context="t", namespace=running.ctx.namespace, manifest=manifest, broker=broker)
    before = len(requests(place.simulators[name], "GET", "/system_information"))
    report = await doctor.examine()
    found = {finding.object: finding for finding in report.findings}
    if isinstance(place.way, ByMqtt):
        assert found[f"Broker/127.0.0.1:{place.way.mosquitto.port}"].message.startswith("1 of 1 worker answered")
        assert len(requests(place.simulators[name], "GET", "/system_information")) > before
    else:
        assert name in found["Tunnel/http"].message
    assert report.cml[name]
    assert not [f for f in report.findings if f.object == f"CMLWorker/{name}" and f.level is Level.FAULT]


@pytest.mark.parametrize("place", ["mqtt"], indirect=True)
async def test_a_broker_that_is_restarted_costs_nothing(place: Place) -> None:
    world, name = place.world, place.names[0]
    assert isinstance(place.way, ByMqtt)
    await place.replica()
    await place.worker(name)
    place.agent(name)
    await world.node(name, is_ready)
    definition = await world.define()
    lablets = [await world.pod(definition, name) for _ in range(4)]
    await place.way.mosquitto.stop(kill=True)
    await place.way.mosquitto.start()
    for lablet in lablets:
        await lablet.ready()
    assert len(imports(place.simulators[name])) == 4


async def test_a_replica_that_is_told_to_end_does_so_with_agents_connected(place: Place) -> None:
    running = await place.replica()
    for name in place.names:
        await place.worker(name)
        place.agent(name)
        await place.world.node(name, is_ready)
    lablet = await place.world.pod(await place.world.define(), place.names[0])
    await lablet.ready()
    async with asyncio.timeout(30):
        await running.stop()
        await place.way.close()


async def test_another_replica_goes_on_after_a_crash(place: Place) -> None:
    world, name = place.world, place.names[0]
    first = await place.replica(LEADER_LEASE_TTL="6")
    await place.worker(name)
    place.agent(name)
    await world.node(name, is_ready)
    definition = await world.define()
    lablet = await world.pod(definition, name)
    await lablet.ready()
    second = await place.replica(LEADER_LEASE_TTL="6")
    await first.crash()
    await world.lease(name, lambda spec: spec.get("holderIdentity") == second.name)
    await lablet.delete()
    await lablet.gone()
    assert not labs(place.simulators[name])


@pytest.mark.parametrize("place", ["http"], indirect=True)
async def test_every_replica_has_a_connection_of_its_own(place: Place) -> None:
    """Also one that comes later; and one that owns the Node next needs no other one for it."""
    world, name = place.world, place.names[0]
    replicas = [await place.replica(), await place.replica()]
    await place.worker(name)
    place.agent(name)
    await world.node(name, is_ready)
    replicas.append(await place.replica())
    for running in replicas:
        hub = running.replica.tunnels.hubs["http"]
        await eventually(lambda hub=hub: hub.view(name).state is AgentState.THERE)  # type: ignore[misc]
    owner = (await world.lease(name, lambda spec: spec.get("holderIdentity")))["holderIdentity"]
    lablet = await world.pod(await world.define(), name)
    await lablet.ready()
    await next(running for running in replicas if running.name == owner).stop()
    await world.lease(name, lambda spec: spec.get("holderIdentity") not in {"", owner})
    await lablet.delete()
    await lablet.gone()
    assert not labs(place.simulators[name])


async def test_a_console_is_reached_through_an_agent(place: Place) -> None:
    world, name = place.world, place.names[0]
    running = await place.replica()
    await place.worker(name)
    place.agent(name)
    await world.node(name, is_ready)
    definition = await world.define(topologies.topology({"r1": "iosv"}))
    lablet = await world.pod(definition, name, devices=["r1"])
    await lablet.ready()
    devices, target = running.replica.devices, Target(lablet.namespace, lablet.name, lablet.uid, "r1")
    person, command = Terminal(), Terminal(tty=False, stdin=False)
    session = asyncio.create_task(devices.attach(target, person))
    await person.shows("Escape character is '^]'.")
    person.type("\r")
    await person.shows("r1>")
    person.type("show version\r")
    await person.shows("Cisco IOS Software")
    await person.shows("r1>")
    person.type("\x1d")
    assert await asyncio.wait_for(session, 60) == Exit(0)
    assert await devices.execute(target, ["show", "tech-support"], command) == Exit(0)
    assert command.out.splitlines() == [f"line {number} of 120: r1" for number in range(1, 121)]
    log = [line.text async for line in devices.log(target, LogOptions())]
    assert "r1>show version" in log


UNPROMPTED: Groups = {**SHORT, "workers": {**SHORT["workers"], "watched_s": 3600.0, "resync_s": 3600.0}}
"""Without the looks in case a report was missed: what is seen of a watched worker was reported."""
BOOT_S = 15.0


async def test_a_worker_that_its_agent_watches_is_not_polled(place: Place) -> None:
    """Another one is: its password stands in the cluster, so that its agent cannot look."""
    world, (watched, polled) = place.world, place.names
    for name in place.names:
        place.simulators[name] = await world.simulator(boot_seconds=(BOOT_S, BOOT_S))
    await place.replica(UNPROMPTED)
    await place.worker(watched)
    place.agent(watched)
    await keep_password(world, polled, f"agent://{polled}")
    await place.worker(polled, credentialsSecretName=polled)
    place.agent(polled, keeps_credentials=False)
    definition = await world.define()
    for name in place.names:
        await world.node(name, is_ready)
    lablets = {name: await world.pod(definition, name) for name in place.names}
    for lablet in lablets.values():
        await lablet.ready()
    across = {name: len(from_afar(place, name)) for name in place.names}
    for name, kind in ((watched, "watched"), (polled, "polled")):
        late_s = lateness_s(place, name)
        sys.stdout.write(f"{place.way.tunnel}: {kind}: {across[name]} requests, the boot seen after {late_s:.2f} s\n")
    assert across[watched] * 10 <= across[polled]
    await lablets[watched].delete()
    await lablets[watched].gone()


def from_afar(place: Place, name: str) -> list[Entry]:
    """Return what replicas have asked a worker."""
    return [entry for entry in place.simulators[name].log.entries if entry.agent]


def lateness_s(place: Place, name: str) -> float:
    """Return how many seconds after the only lab's boot its devices were asked for, at most."""
    [start] = requests(place.simulators[name], "PUT", "/start")
    booted_s = start.arrived_s + BOOT_S
    looks = (entry.arrived_s for entry in from_afar(place, name) if entry.path.endswith("/nodes"))
    return next(at_s for at_s in looks if at_s >= booted_s) - booted_s


async def test_usage_comes_with_the_heartbeats(place: Place) -> None:
    """R004-047: `stats: On` asks nothing across the tunnel once the agent has said it."""
    world, name = place.world, place.names[0]
    running = await place.replica(WITH_PASSES)
    await place.worker(name, capacity=None, stats="On")
    place.agent(name)
    node = await world.node(name, is_ready)
    assert node["status"]["capacity"].items() >= {"cpu": "256", "memory": "1Ti"}.items()
    await eventually(lambda: running.replica.tunnels.facts(place.way.tunnel, name).usage)
    asked = [entry for entry in from_afar(place, name) if entry.path.endswith("/system_stats")]
    seen = running.replica.fleet.items[name].seen
    for _ in range(3):
        at = seen.usage_at
        await eventually(lambda at=at: seen.usage_at > at)  # type: ignore[misc]
    assert [entry for entry in from_afar(place, name) if entry.path.endswith("/system_stats")] == asked
    assert is_ready(await world.node(name))

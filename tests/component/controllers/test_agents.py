"""Workers that only an agent reaches: through a real broker, from the agent's first hello to its end (R004-027…042)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.component.controllers.harness import PASSWORD, World
from tests.component.controllers.looking import condition, imports, is_ready, labs, requests
from tests.component.controllers.running import SHORT, Running
from tests.support.apiserver import GROUP
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.mosquitto import CALLER, Mosquitto
from tests.support.mosquitto import PASSWORD as BROKER_PASSWORD
from tunnels.agent.core import Agent, Habits, new_boot
from tunnels.agent.epochs import EpochFile
from tunnels.link.carrier import Address
from vkprovider.agent.process import facts_of, open_upstream
from vkprovider.agent.upstream import AGENT_API
from vkprovider.app.tunnels import agent_carrier
from vkprovider.settings.tunnels import AgentSettings, MqttSettings

CAPACITY = {"cpu": "64", "memory": "256Gi", "labs": 200, "labNodes": 400}
SPEC = {"tunnel": "mqtt", "address": "198.51.100.7", "capacity": CAPACITY, "portRange": {"start": 2000, "end": 2999}}


@dataclass
class Place:
    """A lab with two workers behind NAT: simulators that only their agents may dial.

    Attributes:
        world: The cluster.
        mosquitto: The broker, reached by both.
        names: Of the workers, and of their agents' accounts.
        simulators: By the worker's name.
    """

    world: World
    folder: Path
    mosquitto: Mosquitto
    names: tuple[str, ...]
    simulators: dict[str, CmlSimulator] = field(default_factory=dict)
    _agents: list[asyncio.Task[None]] = field(default_factory=list)

    async def replica(self, **env: str) -> Running:
        """Start a replica that uses the broker."""
        account = {"VKPROVIDER_TUNNEL_MQTT_USERNAME": CALLER, "VKPROVIDER_TUNNEL_MQTT_PASSWORD": BROKER_PASSWORD}
        return await self.world.replica(SHORT, VKPROVIDER_TUNNEL_MQTT_URL=self.url, **account, **env)

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.mosquitto.port}"

    def agent(self, name: str, *, account: str = "", keeps_credentials: bool = True) -> asyncio.Task[None]:
        """Start a process' worth of an agent; cancelling it is its orderly end."""
        credentials = self.folder / "credentials"
        credentials.write_text(f"admin\n{PASSWORD}\n")
        settings = AgentSettings(
            name=name,
            url=self.simulators[name].url,
            address="198.51.100.7",
            credentials_file=str(credentials) if keeps_credentials else "",
            insecure_skip_verify=True,
        )
        mqtt = MqttSettings.model_validate({"url": self.url, "username": account or name, "password": BROKER_PASSWORD})

        async def run() -> None:
            upstream = open_upstream(settings)
            agent = Agent(
                name,
                agent_carrier(mqtt, Address(name, new_boot())),
                upstream,
                allow=AGENT_API,
                facts=lambda: facts_of(settings),
                epochs=EpochFile(self.folder / f"{name}.epoch"),
                habits=Habits(heartbeat_s=0.5, hello_s=0.1, name_taken_s=0.5),
            )
            try:
                await agent.run()
            finally:
                await upstream.close()

        task = asyncio.create_task(run(), name=f"agent {name}")
        self._agents.append(task)
        return task

    async def worker(self, name: str, **spec: object) -> None:
        """Create a CMLWorker for an agent."""
        body = {"apiVersion": "vkprovider.io/v1alpha1", "kind": "CMLWorker", "metadata": {"name": name}}
        await self.world.admin.create(f"{GROUP}/cmlworkers", {**body, "spec": {**SPEC, **spec}})

    async def reason(self, name: str, reason: str) -> str:
        """Wait for the reason of a CMLWorker's condition Ready, and return its message."""
        found = await self.world.cmlworker(name, lambda seen: condition(seen, "Ready").get("reason") == reason)
        return str(condition(found, "Ready")["message"])

    async def close(self) -> None:
        for task in self._agents:
            task.cancel()
        await asyncio.gather(*self._agents, return_exceptions=True)


@pytest.fixture
async def place(world: World, tmp_path: Path) -> AsyncIterator[Place]:
    folder = tmp_path / "mosquitto"
    await asyncio.to_thread(folder.mkdir)
    names = (world.name("behind"), world.name("behind"))
    mosquitto = Mosquitto(folder, agents=names)
    await mosquitto.start()
    simulators = {name: await world.simulator() for name in names}
    place = Place(world, tmp_path, mosquitto, names, simulators)
    yield place
    await place.close()
    await world.close()
    await mosquitto.stop()


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
    assert node["metadata"]["labels"]["vkprovider.io/tunnel"] == "mqtt"
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
    world, name = place.world, place.names[0]
    await place.replica()
    await place.worker(name)
    place.agent(name)
    await world.node(name, is_ready)
    place.agent(name)
    event = await world.until_event("AgentConflict", name)
    assert "is used" in event["message"]
    assert is_ready(await world.node(name))


async def test_an_agent_of_another_tunnel_than_the_workers_is_not_used(place: Place) -> None:
    world, name = place.world, place.names[0]
    await place.replica()
    await place.worker(name, tunnel="direct", url=f"null://{name}", credentialsSecretName="none")
    place.agent(name)
    event = await world.until_event("AgentRefused", name)
    assert "spec.tunnel is direct" in event["message"]


async def test_an_agent_cannot_take_the_name_of_another(place: Place) -> None:
    """The broker's access rules bind an account to its own topics."""
    world, (name, other) = place.world, place.names
    await place.replica()
    await place.worker(name)
    place.agent(name, account=other)
    await place.worker(other)
    place.agent(other)
    await world.node(other, is_ready)
    assert "no agent" in await place.reason(name, "AgentAway")


async def test_the_password_may_stand_in_the_cluster_instead(place: Place) -> None:
    world, name = place.world, place.names[0]
    await place.replica()
    await world.admin.create(
        "/api/v1/namespaces/vkprovider-system/secrets",
        {
            "metadata": {
                "name": name,
                "namespace": "vkprovider-system",
                "labels": {"vkprovider.io/used-for": "worker"},
            },
            "stringData": {"username": "admin", "password": PASSWORD},
        },
    )
    place.agent(name, keeps_credentials=False)
    await place.worker(name, credentialsSecretName=name)
    assert f"agent://{name}" in await place.reason(name, "SecretNotAllowed")
    allowed = {"metadata": {"annotations": {"vkprovider.io/host": f"agent://{name}"}}}
    await world.admin.patch(f"/api/v1/namespaces/vkprovider-system/secrets/{name}", allowed)
    await world.node(name, is_ready)


async def test_a_broker_that_is_restarted_costs_nothing(place: Place) -> None:
    world, name = place.world, place.names[0]
    await place.replica()
    await place.worker(name)
    place.agent(name)
    await world.node(name, is_ready)
    definition = await world.define()
    lablets = [await world.pod(definition, name) for _ in range(4)]
    await place.mosquitto.stop(kill=True)
    await place.mosquitto.start()
    for lablet in lablets:
        await lablet.ready()
    assert len(imports(place.simulators[name])) == 4


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

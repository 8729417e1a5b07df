"""What would fail at a learner's Pod is said on the LabletDefinition before there is one (condition Impeded, Event)."""

from typing import Any

import pytest
import yaml

from tests.component.controllers.harness import World
from tests.component.controllers.looking import condition, is_ready
from tests.component.controllers.running import WITH_PASSES
from tests.support.apiserver import RUNTIME_CLASSES, SECRETS, SYSTEM
from tests.support.topologies import topology

LINK = {"id": "l0", "n1": "n0", "i1": "i0", "n2": "n99", "i2": "i1"}


async def impeded(world: World, name: str, reason: str) -> str:
    """Wait until a definition that is Ready says why its lablets cannot work, in an Event, too; return the message."""
    found = await world.definition(name, lambda found: condition(found, "Impeded")["reason"] == reason)
    assert is_ready(found)
    message: str = condition(found, "Impeded")["message"]
    event = await world.until_event(reason, name)
    assert (event["type"], event["message"]) == ("Warning", message)
    return message


async def unimpeded(world: World, name: str) -> dict[str, Any]:
    return await world.definition(name, lambda found: is_ready(found) and not condition(found, "Impeded")["status"])


async def test_tags_that_look_like_port_tags(world: World) -> None:
    await world.replica()
    name = await world.define(topology({"h0": "alpine"}, {"h0": ["pat:abc:22", "mine"]}))
    message = await impeded(world, name, "TagUnclear")
    assert message == "tag 'pat:abc:22' of 'h0' requests no port: write pat:PORT:INSIDE, or pat:udp:PORT:INSIDE"
    await world.change_definition(name, source={"inline": topology({"h0": "alpine"}, {"h0": ["pat:5:22", "mine"]})})
    await unimpeded(world, name)


async def test_a_lab_larger_than_any_worker(world: World) -> None:
    """It goes with the first worker that is large enough."""
    await world.replica()
    environment = world.name("env")
    await world.worker(environment=environment)
    name = await world.define(environment=environment, resources={"cpu": "2000"})
    assert (await impeded(world, name, "TooLarge")).endswith("cpu 2000 > 64")
    await world.worker(environment=environment, capacity={"cpu": "4000", "memory": "256Gi", "labNodes": 400})
    await unimpeded(world, name)


async def test_devices_secret_that_is_missing_or_not_meant_for_devices(world: World) -> None:
    await world.replica(WITH_PASSES)  # nobody may watch Secrets
    secret = world.name("devices")
    name = await world.define(deviceSecretName=secret)
    assert "does not exist; create it" in await impeded(world, name, "DeviceSecretInvalid")
    meta = {"name": secret, "namespace": SYSTEM}
    await world.admin.create(SECRETS, {"metadata": meta, "stringData": {"username": "a", "password": "b"}})
    assert "kubectl" in await impeded(world, name, "SecretNotAllowed")
    labels = {"vkprovider.io/used-for": "devices"}
    await world.admin.patch(f"{SECRETS}/{secret}", {"metadata": {"labels": labels}})
    await unimpeded(world, name)


@pytest.mark.parametrize(
    ("inline", "reason", "message"),
    [
        (
            yaml.safe_dump(yaml.safe_load(topology({"h0": "alpine", "h1": "alpine"})) | {"links": [LINK]}),
            "TopologyInvalid",
            "links[0].n2 'n99' is not the id of a node; there are n0, n1",
        ),
        (
            topology({"h0": "alpine"}, {"h0": [f"serial:{port}" for port in range(60)]}),
            "TooManyPorts",
            "needs 60 external ports; the limit is 50 per lablet (PORTS_PER_INSTANCE_MAX)",
        ),
    ],
    ids=["a link to nothing", "more ports than a lablet may have"],
)
async def test_content_that_no_lablet_could_run_is_refused(
    world: World, inline: str, reason: str, message: str
) -> None:
    """Without a RuntimeClass no Pod of it is admitted, so that none holds a worker's room."""
    await world.replica()
    name = await world.define(inline, ready=False)
    found = await world.definition(name, lambda found: condition(found, "Ready")["status"] == "False")
    assert (condition(found, "Ready")["reason"], condition(found, "Ready")["message"]) == (reason, message)
    assert await world.admin.get(f"{RUNTIME_CLASSES}/{name}") is None


async def test_other_content_under_the_same_version_is_said(world: World) -> None:
    await world.replica()
    name = await world.define()
    before = (await world.definition(name))["status"]["versions"][0]["digest"][:8]
    await world.change_definition(name, source={"inline": topology({"h0": "alpine", "h1": "alpine"})})
    event = await world.until_event("ContentReplaced", name)
    found = await world.definition(name)
    after = found["status"]["versions"][0]["digest"][:8]
    assert event["type"] == "Warning"
    assert f"version 1.0.0 has other content now (digest {after}, before {before})" in event["message"]
    assert condition(found, "Ready")["message"] == f"versions kept: 1.0.0 (digest {after})"
    await world.change_definition(name, version="2.0.0", source={"inline": topology({"h0": "alpine"})})
    await world.definition(name, lambda found: len(found["status"]["versions"]) == 2)
    assert len(await world.events("ContentReplaced", name)) == 1

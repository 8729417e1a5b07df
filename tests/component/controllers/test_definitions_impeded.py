"""What would fail at a learner's Pod is said on the LabletDefinition before there is one (condition Impeded, Event)."""

from typing import Any

import pytest
import yaml

from tests.component.controllers.harness import World
from tests.component.controllers.looking import condition, is_ready
from tests.component.controllers.running import WITH_PASSES
from tests.support.apiserver import LOGINS, RUNTIME_CLASSES, SECRETS
from tests.support.topologies import topology

LINK = {"id": "l0", "n1": "n0", "i1": "i0", "n2": "n99", "i2": "i1"}
NUMBERED = {
    "lab": {"version": "0.2.2", "title": "t"},
    "nodes": [{"id": f"n{n}", "label": f"h{n}", "node_definition": "alpine"} for n in range(2)],
    "links": [{"id": "l0", "n1": "n0", "i1": 0, "n2": "n1", "i2": 0}],
}
"""A lab as a generator writes it: nodes without interfaces, which links name by numbers."""


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
    await world.change_definition(name, source={"inline": topology({"h0": "alpine"}, {"h0": ["vnc:5", "mine"]})})
    await unimpeded(world, name)


async def test_pat_tag_without_a_connector(world: World) -> None:
    await world.replica()
    kinds, tags = {"h0": "alpine", "h1": "alpine", "nat": "external_connector"}, {"h0": ["pat:5:22"], "h1": ["vnc:6"]}
    name = await world.define(topology(kinds, tags))
    message = await impeded(world, name, "PatUnreachable")
    assert message == "CML passes no `pat:` port on to 'h0': no link joins it with an external connector"
    joined = yaml.safe_load(topology(kinds, tags))
    joined["links"] = [{"id": "l0", "n1": "n2", "i1": "i2", "n2": "n0", "i2": "i0"}]
    await world.change_definition(name, source={"inline": yaml.safe_dump(joined)})
    await unimpeded(world, name)


async def test_what_cmls_schema_does_not_allow(world: World) -> None:
    """A newer CML may allow it, so Pods may try."""
    await world.replica()
    document = yaml.safe_load(topology({"h0": "alpine"}))
    document["lab"]["version"] = "0.3.0"
    document["nodes"][0] |= {"x": 99999, "colour": "red"}
    name = await world.define(yaml.safe_dump(document))
    message = await impeded(world, name, "ImportDoubtful")
    assert message == (
        "nodes[0] has a field that CML does not know: colour; "
        "nodes[0].x of 'h0' must be a whole number from -15000 to 15000"
    )


async def test_a_lab_larger_than_any_worker(world: World) -> None:
    """It goes with the first worker that is large enough."""
    await world.replica()
    environment = world.name("env")
    await world.worker(environment=environment)
    name = await world.define(environment=environment, resources={"cpu": "2000"})
    assert (await impeded(world, name, "TooLarge")).endswith("cpu 2000 > 64")
    await world.worker(environment=environment, capacity={"cpu": "4000", "memory": "256Gi", "labNodes": 400})
    await unimpeded(world, name)


async def test_topology_that_is_newer_than_every_worker(world: World) -> None:
    """With a worker that imports it, lablets go there and nowhere else; the RuntimeClass selects it."""
    await world.replica()
    environment = world.name("env")
    old = await world.worker((await world.simulator(version="2.9.1+build.7")).url, environment=environment)
    text = topology({"h0": "alpine"})
    name = await world.define(text.replace("version: 0.1.0", "version: 0.3.1"), environment=environment)
    message = await impeded(world, name, "TopologyTooNew")
    assert message.endswith(f"the newest worker of environment {environment} has CML 2.9.1")
    new = await world.worker((await world.simulator(version="2.10.1+build.2")).url, environment=environment)
    await unimpeded(world, name)
    key = "vkprovider.io/topology-0.3.1"
    labels = [(await world.node(worker))["metadata"]["labels"][key] for worker in (old, new)]
    assert labels == ["false", "true"]
    found = await world.admin.get(f"{RUNTIME_CLASSES}/{name}")
    assert found is not None
    assert found["scheduling"]["nodeSelector"][key] == "true"
    await world.change_definition(name, version="2.0.0", keepVersions=1, source={"inline": text})
    await world.admin.until(
        f"{RUNTIME_CLASSES}/{name}", lambda found: key not in found["scheduling"]["nodeSelector"], "free to go anywhere"
    )


async def test_devices_secret_that_is_missing_or_not_meant_for_devices(world: World) -> None:
    await world.replica(WITH_PASSES)  # nobody may watch Secrets
    secret = world.name("devices")
    name = await world.define(deviceSecretName=secret)
    assert "does not exist; create it" in await impeded(world, name, "DeviceSecretInvalid")
    meta = {"name": secret, "namespace": LOGINS}
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
            yaml.safe_dump(NUMBERED),
            "TopologyInvalid",
            "links[0].i1 must be a text, not 0; and 1 more",
        ),
        (
            topology({"h0": "alpine"}, {"h0": [f"serial:{port}" for port in range(60)]}),
            "TooManyPorts",
            "needs 60 external ports; the limit is 50 per lablet (PORTS_PER_INSTANCE_MAX)",
        ),
    ],
    ids=["a link to nothing", "ids that are numbers", "more ports than a lablet may have"],
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


async def test_price_of_a_node_definition_that_only_cml_knows(world: World) -> None:
    """It comes with the first worker that may be asked for it, and by its CMLWorker to every replica."""
    await world.replica()
    await world.replica()
    text = topology({"r1": "iosxrv", "h0": "alpine"})
    name = await world.define(text, ready=False)
    found = await world.definition(name, lambda found: condition(found, "Ready")["reason"] == "ResourcesUnknown")
    assert "node definition 'iosxrv' is unknown" in condition(found, "Ready")["message"]
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, stats="On")
    found = await world.definition(name, is_ready)
    figures = simulator.simulation.world.definitions["iosxrv"]
    assert (figures.cpus, figures.ram_mib) == (1, 3072)
    assert (found["status"]["resources"]["cpu"], found["status"]["resources"]["memory"]) == ("2", "3584Mi")
    told = (await world.cmlworker(worker))["status"]["nodeDefinitions"]
    assert {"name": "iosxrv", "cpus": figures.cpus, "ram": figures.ram_mib} in told
    assert "iosv" not in {one["name"] for one in told}
    lablet = await world.pod(name, worker)
    await lablet.ready()
    asked = [entry for entry in simulator.log.entries if entry.path.endswith("/node_definitions")]
    assert len(asked) == 1, "once in ten minutes"

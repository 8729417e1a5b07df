"""What learners leave behind: merged for one learner, set aside for the next one, and bounded."""

from typing import Any

import click
import msgspec
import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import Running
from tests.support.apiserver import CONFIG_MAPS
from tests.support.topologies import topology
from vkprovider.cli.lablet import configs
from vkprovider.cli.shared.page.archives import StoredArchives
from vkprovider.lablet import names
from vkprovider.lablet.archives import Leftovers
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet import leftovers
from vkprovider.labs.pure.lablet.leftovers import ANNOTATION_KEPT_AT, ANNOTATION_POD
from vkprovider.platform.objects import ConfigMap

NAME = names.ANNOTATION_SHOWN_NAME
TWO = topology({"r1": "iosv", "r2": "iosv"})
CONFIGS = CONFIG_MAPS + f"?labelSelector={names.LABEL_COMPONENT}={names.COMPONENT_CONFIGS}"


async def lend(world: World) -> Lablet:
    simulator = await world.simulator()
    lablet = await world.pod(await world.define(TWO), await world.worker(simulator.url))
    await lablet.ready()
    await lablet.claim(lambda row: row.get("labId"))
    return lablet


async def keep(running: Running, lablet: Lablet, *labels: str, username: str, responses: Any = None) -> None:
    """Archive the configurations of these devices, and the answers."""
    worker = running.replica.fleet.items[lablet.worker]
    claim: Claim = worker.claims.claims[lablet.uid]
    devices = await worker.labs.list_devices(claim.lab_id)
    chosen = tuple(device for device in devices if device.label in labels)
    await running.replica.archive.keep(worker, claim, chosen, username=username, responses=responses)


async def test_what_one_learner_leaves_in_several_steps_is_kept_together(world: World) -> None:
    running = await world.replica()
    lablet = await lend(world)
    await keep(running, lablet, "r1", username="alice")
    await keep(running, lablet, "r2", username="alice", responses={"q1": "42"})
    left = await running.replica.archive.find(lablet.uid)
    assert left is not None
    assert (left.username, set(left.configs), left.responses) == ("alice", {"r1", "r2"}, {"q1": "42"})
    assert len(await world.admin.items(CONFIGS)) == 1


async def test_what_an_earlier_learner_left_is_set_aside(world: World) -> None:
    running = await world.replica()
    lablet = await lend(world)
    await keep(running, lablet, "r1", username="alice", responses={"q1": "alice's"})
    world.ahead_s += 60
    await keep(running, lablet, "r2", username="bob")
    left = await running.replica.archive.find(lablet.uid)
    assert left is not None
    assert (left.username, set(left.configs), left.responses) == ("bob", {"r2"}, None)
    stored = [leftovers.read(msgspec.convert(item, ConfigMap)) for item in await world.admin.items(CONFIGS)]
    [earlier] = [found for found in stored if found.username == "alice"]
    assert (set(earlier.configs), earlier.responses) == ({"r1"}, {"q1": "alice's"})


async def test_what_has_no_configuration_is_not_asked_for_one(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    devices = {"r1": "iosv", "sw": "unmanaged_switch", "ext": "external_connector"}
    lablet = await world.pod(await world.define(topology(devices)), await world.worker(simulator.url))
    await lablet.ready()
    await lablet.annotate(desired_state="STOPPED")
    left = await eventually(lambda: running.replica.archive.find(lablet.uid), "nothing is kept")
    assert left is not None
    assert (set(left.configs), left.faults) == ({"r1"}, {})


async def found(running: Running, what: str, namespace: str, learner: str | None = None) -> Leftovers:
    """Find what `kubectl lablet configs` shows."""
    ctx = running.ctx
    return await configs._find(ctx.kube, namespace, what, learner, StoredArchives(ctx.api.config_maps, namespace))


async def test_what_a_learner_left_is_not_hidden_by_a_lab_that_nobody_had(world: World) -> None:
    running = await world.replica()
    lablet = await lend(world)
    await keep(running, lablet, "r1", username="alice")
    world.ahead_s += 60
    await keep(running, lablet, "r1", "r2", username="")
    left = await running.replica.archive.find(lablet.uid)
    assert left is not None
    assert (left.username, set(left.configs)) == ("alice", {"r1"})
    for what in (lablet.name, lablet.uid):
        assert (await found(running, what, lablet.namespace)).username == "alice"
    stored = [leftovers.read(msgspec.convert(item, ConfigMap)) for item in await world.admin.items(CONFIGS)]
    assert {(one.username, len(one.configs)) for one in stored} == {("alice", 1), ("", 2)}, "and nothing is lost"


async def test_what_an_older_version_hid_is_found(world: World) -> None:
    """It stored an empty lab under the Pod's UID, and the learner's work beside it, without naming the learners."""
    running = await world.replica()
    lablet = await lend(world)
    for username, ahead_s, name in (("alice", 0, "aside"), ("", 60, "")):
        left = Leftovers(lablet.namespace, lablet.name, lablet.uid, "netlab", "1", username=username, at=1000 + ahead_s)
        aside = leftovers.earlier_name_of(left) if name else ""
        body = leftovers.build(left, namespace="vkprovider-system", installation="i", name=aside)
        for annotation in (names.ANNOTATION_LEARNER, leftovers.ANNOTATION_ENTRY):
            del body["metadata"]["annotations"][annotation]
        await world.admin.create(CONFIG_MAPS, body)
    for what in (lablet.name, lablet.uid):
        assert (await found(running, what, lablet.namespace)).username == "alice"
    assert (await found(running, "", lablet.namespace, "alice")).at == 1000


async def test_archives_are_found_by_learner(world: World) -> None:
    running = await world.replica()
    lablet = await lend(world)
    for username, label in (("alice", "r1"), ("bob", "r2"), ("alice", "r2")):
        world.ahead_s += 60
        await keep(running, lablet, label, username=username)
    assert set((await found(running, "", lablet.namespace, "alice")).configs) == {"r2"}, "what alice left last"
    assert (await found(running, "bob", lablet.namespace)).username == "bob", "a name is a Pod's, else a learner's"
    with pytest.raises(click.ClickException, match="nor of a learner bob"):
        await found(running, "bob", "other")
    for what in ("", lablet.name, lablet.uid):
        assert set((await found(running, what, lablet.namespace, "bob")).configs) == {"r2"}
    for what, namespace, learner in (
        ("", lablet.namespace, "carol"),
        ("", "other", "bob"),
        ("x", lablet.namespace, "bob"),
    ):
        with pytest.raises(click.ClickException, match=f"nothing is kept of {learner} in "):
            await found(running, what, namespace, learner)


async def test_pool_lablet_that_nobody_had_again_shows_what_its_learner_left(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    pool = {"vkprovider.io/pool": "warm"}
    lablet = await world.pod(await world.define(TWO), await world.worker(simulator.url), labels=pool)
    await lablet.ready()
    note = {"vkprovider.io/username": "alice", "vkprovider.io/lent-by": "warm", NAME: "Berg, Alice"}
    await world.admin.patch(lablet.path, {"metadata": {"annotations": note, "labels": {"vkprovider.io/pool": None}}})
    await lablet.claim(lambda row: row.get("learner") == "alice")
    await lablet.annotate(**{"desired-state": "COLLECTING"})
    back = await lablet.until(lambda pod: pod["metadata"]["labels"].get("vkprovider.io/pool"), "not back in its pool")
    assert NAME not in back["metadata"]["annotations"], "the next learner has another one"
    await lablet.ready()
    world.ahead_s += 60
    await lablet.delete()
    await lablet.gone()
    assert (await found(running, lablet.name, lablet.namespace)).username == "alice"
    stored = [leftovers.read(msgspec.convert(item, ConfigMap)) for item in await world.admin.items(CONFIGS)]
    assert [(one.username, one.shown) for one in stored] == [("alice", "Berg, Alice")]
    [entry], _ = await running.replica.archive.page(lablet.namespace, size=9, after="")
    assert (entry.learner, entry.shown) == ("alice", "Berg, Alice")


async def test_damaged_leftovers_are_replaced(world: World) -> None:
    running = await world.replica()
    lablet = await lend(world)
    await keep(running, lablet, "r1", username="alice")
    await world.admin.patch(f"{CONFIG_MAPS}/{leftovers.name_of(lablet.uid)}", {"binaryData": {leftovers.KEY: "AAAA"}})
    assert await running.replica.archive.find(lablet.uid) is None
    await keep(running, lablet, "r2", username="alice")
    left = await running.replica.archive.find(lablet.uid)
    assert left is not None
    assert set(left.configs) == {"r2"}


async def test_oldest_leftovers_of_a_namespace_that_has_too_many_bytes_go_with_an_event(world: World) -> None:
    running = await world.replica(VKPROVIDER_KEPT_BYTES_MAX=str(2**20))
    packed, now = "A" * (200 * 1024), running.ctx.now_unix
    for number, (team, age_s) in enumerate([(world.namespace, 5), (world.namespace, 30), ("b", 60), ("c", 60)]):
        annotations = {ANNOTATION_KEPT_AT: str(now - age_s), ANNOTATION_POD: f"{team}/pod-{number}"}
        labels = {names.LABEL_COMPONENT: names.COMPONENT_CONFIGS}
        metadata = {"name": f"left-{number}", "labels": labels, "annotations": annotations}
        await world.admin.create(CONFIG_MAPS, {"metadata": metadata, "binaryData": {leftovers.KEY: packed}})
    await running.replica.archive.sweep()
    kept = {item["metadata"]["name"] for item in await world.admin.items(CONFIGS)}
    assert kept == {"left-0", "left-2", "left-3"}, "a namespace may use a quarter"
    await world.until_event("KeptDropped", "pod-1")

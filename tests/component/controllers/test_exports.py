"""A lab as a file from a replica that does not own its Node: the claim from the API server, the lab from CML."""

import msgspec
import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually, imports, when
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import Replica
from vkprovider.lablet import names
from vkprovider.labs.controllers.lablet.exports import Exports, LabOfLablet
from vkprovider.platform.errors import NotFound, OutsideError, Unavailable
from vkpsim.http.faults import Fault


async def found_by(exports: Exports, key: str) -> LabOfLablet:
    found = await eventually(lambda: exports.find(key), f"no lab is found by {key}")
    assert found is not None
    return found


async def elsewhere(world: World, lablet: Lablet) -> Replica:
    """Start a second replica; it knows the Pod and owns no Node."""
    second = (await world.replica()).replica
    await found_by(second.exports, lablet.uid)
    assert not second.fleet.items
    return second


async def test_replica_that_is_not_the_owner_finds_a_lab_and_downloads_it(world: World) -> None:
    owner = (await world.replica()).replica
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    lab = str((await lablet.claim(lambda row: row.get("labId")))["labId"])
    exports = (await elsewhere(world, lablet)).exports
    found = await found_by(exports, lab)
    assert (found.worker, found.claim.pod_uid, found.claim.lab_id) == (worker, lablet.uid, lab)
    text = await exports.fetch(found)
    assert imports(simulator)[0].title in text.decode()
    assert text == await owner.exports.fetch(await found_by(owner.exports, lab))
    assert await exports.find("no-such-lab") is None


async def test_reports_of_pods_do_not_say_whose_a_lab_is(world: World) -> None:
    owner = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    one, other = [await world.pod(definition, worker) for _ in range(2)]
    for lablet in (one, other):
        await lablet.ready()
        await lablet.claim(lambda row: row.get("labId"))
    second = await elsewhere(world, one)
    exports, pods = second.exports, second.ctx.api.pods.within(world.namespace).metadata_only
    lab = str((await one.claim())["labId"])
    owner.api.fault("^PATCH .*/pods/", status=500, count=None)  # it would write the reports again
    for lablet, reported in ((one, "of-a-foreign-lab"), (other, lab)):
        await pods.patch_status(lablet.name, {"metadata": {"annotations": {names.ANNOTATION_LAB_ID: reported}}})
    await when(lambda: lab_ids(exports) == {one.uid: "of-a-foreign-lab", other.uid: lab}, "the reports are not seen")
    assert (await found_by(exports, lab)).claim.pod_uid == one.uid
    assert (await found_by(exports, other.uid)).claim.lab_id != lab
    assert await exports.find("of-a-foreign-lab") is None


def lab_ids(exports: Exports) -> dict[str, str]:
    """Return what the Pods report, as a replica knows them."""
    found = (pod.metadata for pod in exports.pods.values())
    return {meta.uid: meta.annotations.get(names.ANNOTATION_LAB_ID, "") for meta in found}


async def test_download_says_why_there_is_none(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    await lablet.claim(lambda row: row.get("labId"))
    exports = (await elsewhere(world, lablet)).exports
    found = await found_by(exports, lablet.uid)
    unborn = LabOfLablet(worker, msgspec.structs.replace(found.claim, lab_id=""))
    with pytest.raises(Unavailable, match=f"Pod {lablet.name} has only just been imported"):
        await exports.fetch(unborn)
    with pytest.raises(NotFound, match="CMLWorker nobody does not exist"):
        await exports.fetch(LabOfLablet("nobody", found.claim))
    simulator.faults.add(Fault(kind="drop"), simulator.now())
    with pytest.raises(OutsideError):
        await exports.fetch(found)

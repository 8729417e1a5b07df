"""A lablet from bound to gone: what the API server shows, and what CML is asked for."""

from tests.component.controllers.harness import World, imports, is_ready, labs, requests


async def test_bound_pod_becomes_ready_on_a_null_worker(world: World) -> None:
    await world.replica()
    worker, definition = await world.worker(), await world.define()
    lablet = await world.pod(definition, worker)
    pod = await lablet.ready()
    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["podIP"] == "198.51.100.7"
    await lablet.delete()
    await lablet.gone()


async def test_claim_is_written_before_the_import_and_the_lab_imported_once(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    pod = await lablet.ready()
    [imported] = imports(simulator)
    claims = [
        asked
        for asked in running.api.matching(r"^(POST|PUT) .*/configmaps")
        if lablet.uid.encode() in asked.body and asked.status < 300
    ]
    assert claims[0].answered_s <= imported.arrived_s
    assert imported.title.endswith(lablet.uid)
    assert pod["metadata"]["annotations"]["vkprovider.io/lab-id"] == imported.lab
    assert pod["metadata"]["annotations"]["vkprovider.io/state"] == "READY"
    assert len(requests(simulator, "PUT", "/start")) == 1


async def test_graceful_deletion_stops_wipes_and_deletes_the_lab_before_the_pod_goes(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    await lablet.delete()
    await lablet.gone()
    assert labs(simulator) == {}
    [stop], [wipe] = requests(simulator, "PUT", "/stop"), requests(simulator, "PUT", "/wipe")
    [delete] = [entry for entry in requests(simulator, "DELETE", "") if "/labs/" in entry.path]
    assert stop.arrived_s < wipe.arrived_s < delete.arrived_s
    node = await world.node(worker)
    assert is_ready(node)

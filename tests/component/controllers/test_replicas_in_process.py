"""Several replicas in one loop: who acts for which node, what a loss leaves to the next, who must not act."""

import asyncio
import itertools
from collections import Counter

import structlog

from tests.component.controllers.harness import World
from tests.component.controllers.looking import condition, imports, is_ready, requests, when
from tests.component.controllers.running import MORTAL, SHORT, Running
from tests.support.apiserver import MEMBERS, NODE_LEASES
from vkprovider.platform.leases import UNCLAIMED_S
from vkpsim.http.faults import Fault


def nodes_of(running: Running) -> set[str]:
    return set(running.replica.ownership.epochs)


def planned_for(running: Running) -> set[str]:
    planned = running.replica.ownership.plan.planned
    return {worker for worker, replica in planned.items() if replica == running.name}


async def test_nodes_are_shared_within_one_and_handed_over_gracefully(world: World) -> None:
    first = await world.replica()
    simulator = await world.simulator()
    definition = await world.define()
    workers = [await world.worker(simulator.url if n == 0 else "") for n in range(4)]
    lablets = [await world.pod(definition, worker) for worker in workers]
    for lablet in lablets:
        await lablet.ready()
    epochs = {worker: (await world.lease(worker))["leaseTransitions"] for worker in workers}
    second = await world.replica()
    await when(lambda: (len(nodes_of(first)), len(nodes_of(second))) == (2, 2), "two nodes each")
    for worker in workers:
        owner = second if worker in nodes_of(second) else first
        spec = await world.lease(worker, lambda spec, name=owner.name: spec.get("holderIdentity") == name)  # type: ignore[misc]
        assert spec["leaseTransitions"] == epochs[worker] + (owner is second)
    for lablet in lablets:
        assert is_ready(await lablet.ready())
    assert len(imports(simulator)) == 1
    assert len(requests(simulator, "PUT", "/start")) == 1


async def test_replica_that_ends_hands_back_its_nodes_and_its_membership(world: World) -> None:
    first = await world.replica()
    worker = await world.worker()
    await first.stop()
    assert not (await world.lease(worker)).get("holderIdentity")
    assert await world.admin.get(f"{MEMBERS}/vkprovider-replica-{first.name}") is None
    second = await world.replica()
    await world.lease(worker, lambda spec: spec.get("holderIdentity") == second.name)


async def test_node_that_its_planned_owner_does_not_claim_is_taken_by_another(world: World) -> None:
    """R004-035: a replica whose writes of node Leases fail lives on, and is planned for nodes."""
    first, second = await world.replica(), await world.replica()
    for running in (first, second):
        await when(lambda each=running: each.replica.ownership.plan.settled.is_set(), "both take part")  # type: ignore[misc]
    refused = first.api.fault(r"^(POST|PUT|PATCH) .*/kube-node-lease/leases", status=500, count=None)
    workers = {await world.worker(ready=False) for _ in range(4)}
    owned: set[str] = set()  # it hands them over again, because the other lives, and takes them again

    def has_owned_all() -> bool:
        owned.update(nodes_of(second))
        return owned == workers

    await when(has_owned_all, "it takes the nodes that were planned for the other, too")
    assert refused.met
    assert nodes_of(first) == set()
    plans = [running.replica.ownership.plan for running in (first, second)]
    assert all(first.name in plan.planned.values() for plan in plans), "it lives, so nodes are planned for it"


async def test_node_that_its_planned_owner_does_not_claim_is_tried_for_by_the_others_in_order_of_load(
    world: World,
) -> None:
    """R004-036, R004-037: of a hundred levels of load, each that a replica has is a tenth of a second of patience."""
    rivals = [await world.replica(VKPROVIDER_WORKLOAD_LEVELS="100") for _ in range(3)]
    workers = {await world.worker() for _ in range(6)}
    await when(lambda: [len(nodes_of(each)) for each in rivals] == [2, 2, 2], "two nodes each")
    idle = await world.replica()
    idle.api.fault(r"^(POST|PUT|PATCH) .*/kube-node-lease/leases", status=500, count=None)
    await when(lambda: sorted(len(nodes_of(each)) for each in rivals) == [1, 2, 2], "one node is handed over")
    since_s = idle.ctx.now()
    light, *loaded = sorted(rivals, key=lambda each: len(nodes_of(each)))
    [free] = workers.difference(*map(nodes_of, rivals))
    await world.lease(free, lambda spec: not spec.get("holderIdentity"))  # handing over ends with this write
    writes = rf"^(PUT|PATCH) .*/kube-node-lease/leases/vnode\.{free}$"
    refused = light.api.fault(writes, status=500, count=None)

    def tried() -> int:
        return sum(len(each.api.matching(writes)) for each in loaded)

    before = tried()
    await when(lambda: refused.met, "the least loaded one tries first")
    assert tried() == before
    assert idle.ctx.now() - since_s >= UNCLAIMED_S + 1.5, "one node of six is level 16 of 100"
    await when(lambda: tried() > before, "then another one tries")
    assert idle.ctx.now() - since_s >= UNCLAIMED_S + 3.2, "two nodes of six are level 33 of 100"


async def test_nodes_of_a_lost_replica_are_taken_over_and_its_work_goes_on(world: World) -> None:
    first = await world.replica(MORTAL)
    simulator = await world.simulator(boot_seconds=(7.0, 7.0))
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.waits("StartingNodes")
    epoch = (await world.lease(worker))["leaseTransitions"]
    second = await world.replica(MORTAL)
    await first.crash()
    spec = await world.lease(worker, lambda spec: spec.get("holderIdentity") == second.name)
    assert spec["leaseTransitions"] == epoch + 1
    await world.admin.until_gone(f"{MEMBERS}/vkprovider-replica-{first.name}")
    await world.until_event("TakenOver", worker)
    await lablet.ready()
    assert (len(imports(simulator)), len(requests(simulator, "PUT", "/start"))) == (1, 1)


async def test_replica_without_the_api_server_fences_itself_and_resumes(world: World) -> None:
    running = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    epoch = (await world.lease(worker))["leaseTransitions"]
    running.api.cut()
    await when(lambda: running.replica.ownership.is_fenced, "it is fenced")
    asked = len(simulator.log.entries)
    await lablet.delete()
    running.api.heal()
    await lablet.gone()
    assert len(simulator.log.entries) > asked
    assert (await world.lease(worker))["leaseTransitions"] == epoch, "it resumes the node that nobody took"


async def test_turn_that_a_fence_refused_is_repeated_when_the_replica_may_act_again(world: World) -> None:
    """A machine that was suspended may be past the fence before anything has seen it."""
    running = await world.replica(MORTAL)
    worker, definition = await world.worker(), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    refused, passed = running.replica.ownership.fenced_total, asyncio.Event()
    renewal = running.api.fault("^PUT .*/vkprovider-replica-", first=lambda _: passed.wait(), count=None)
    await when(lambda: renewal.met, "the last renewal before the suspension is under way")
    world.slept_s = 60.0
    await lablet.delete()
    await when(lambda: running.replica.ownership.fenced_total > refused, "the lablet's turn is refused")
    passed.set()
    async with asyncio.timeout(30):
        await lablet.gone()


async def test_replica_that_resumes_before_others_count_it_as_gone_keeps_its_nodes(world: World) -> None:
    """Whom it would plan for while it is fenced: only others."""
    first, second = await world.replica({**SHORT, "replica": {"lease_ttl_s": 8.0}}), await world.replica()
    for _ in range(4):
        await world.worker()
    await when(lambda: (len(nodes_of(first)), len(nodes_of(second))) == (2, 2), "two nodes each")
    before = dict(first.replica.ownership.epochs)
    first.api.fault("^PUT .*/vkprovider-replica-", status=503, count=None)
    await when(lambda: not planned_for(first), "it plans while it is fenced")
    assert not first.replica.membership.leads()
    first.api.heal()
    await when(lambda: before.keys() == planned_for(first), "it takes part again")
    assert await first.replica.queues.workers.drain(10)
    assert first.replica.ownership.epochs == before


async def test_turn_that_outlasts_its_ownership_does_not_forget_what_is_known_since(world: World) -> None:
    running = await world.replica()
    worker, definition = await world.worker(), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    index = running.replica.index
    before = index.items[lablet.uid]
    index.given_up(worker)
    index.forget(before)
    assert index.items[lablet.uid] is not before


async def test_fenced_replica_does_not_touch_the_worker(world: World) -> None:
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    second = await world.replica(MORTAL)
    first.api.cut()
    await world.lease(worker, lambda spec: spec.get("holderIdentity") == second.name)
    await lablet.delete()
    await lablet.gone()
    by = Counter(entry.agent for entry in requests(simulator, "PUT", "/stop"))
    assert len(by) == 1
    assert second.name in next(iter(by))
    first.api.heal()
    await when(lambda: not first.replica.ownership.is_fenced, "it may act again")
    await when(lambda: first.replica.ownership.plan.planned == {worker: second.name}, "it knows whose the node is")
    assert (nodes_of(first), nodes_of(second)) == (set(), {worker})


async def test_lost_answers_of_lease_writes_lose_no_node(world: World) -> None:
    running = await world.replica(MORTAL)
    running.api.fault(r"^POST .*/vkprovider-system/leases", lose=True)
    running.api.fault(r"^POST .*/kube-node-lease/leases", lose=True)
    worker = await world.worker()
    running.api.fault(r"^PUT .*/vkprovider-system/leases", lose=True, count=2)
    conflict = running.api.fault(r"^PUT .*/vkprovider-system/leases", status=409)
    await when(lambda: conflict.met, "a renewal meets a conflict")
    await world.node(worker, is_ready)
    assert nodes_of(running) == {worker}


async def test_node_lease_that_others_delete_is_written_again(world: World) -> None:
    running = await world.replica(MORTAL)
    worker = await world.worker()
    await world.admin.delete(f"{NODE_LEASES}/vnode.{worker}")
    await world.lease(worker, lambda spec: spec.get("holderIdentity") == running.name)
    await when(lambda: nodes_of(running) == {worker}, "the node is ours again")


async def test_membership_that_others_end_is_joined_again_and_an_unclaimed_node_resumed(world: World) -> None:
    running = await world.replica(MORTAL)
    worker = await world.worker()
    path = f"{MEMBERS}/vkprovider-replica-{running.name}"
    old = await world.admin.until(path, bool)
    await world.admin.delete(path)
    await world.admin.until(path, lambda new: new["metadata"]["uid"] != old["metadata"]["uid"])
    await when(lambda: nodes_of(running) == {worker}, "the node is ours again")
    await world.node(worker, is_ready)


async def test_namesake_waits_until_the_first_has_ended(world: World) -> None:
    """The same LABLET_CONTROLLER_INSTANCE_ID for all of a Deployment, or in two terminals."""
    first = await world.replica(MORTAL)
    worker = await world.worker()
    before = await world.lease(worker)
    with structlog.testing.capture_logs() as logged:
        second = await world.replica(MORTAL, name=first.name)
        taken = second.api.fault(r"^POST .*/vkprovider-system/leases", count=None)
        await when(lambda: taken.met >= 4, "the second one has tried to join again and again")
    assert "another process has the name of this replica" in str(logged)
    assert nodes_of(second) == set()
    assert second.api.matching(r"^(POST|PUT|PATCH) .*/kube-node-lease/") == []
    assert (await world.lease(worker))["leaseTransitions"] == before["leaseTransitions"]
    await first.crash()
    await when(lambda: nodes_of(second) == {worker}, "the second one has joined")
    await world.node(worker, is_ready)


async def test_container_that_restarts_under_its_name_goes_on_at_once_in_a_new_epoch(world: World) -> None:
    """Two replicas and five nodes: a plan made without its old nodes would give them to the other one."""
    other = await world.replica()
    workers = [await world.worker() for _ in range(5)]
    host = f"pod-{world.run}-7"
    first = await world.replica(process=f"{host}-aaaa")
    await when(lambda: (len(nodes_of(first)), len(nodes_of(other))) == (2, 3), "each has its share")
    mine, before = nodes_of(first), {worker: await world.lease(worker) for worker in workers}
    await first.crash()
    again = await world.replica(name=first.name, process=f"{host}-bbbb")
    await when(lambda: nodes_of(again) == mine, "it has its nodes again")
    for worker in workers:
        epoch = before[worker]["leaseTransitions"] + (worker in mine)
        await world.lease(worker, lambda spec, epoch=epoch: spec["leaseTransitions"] == epoch)  # type: ignore[misc]
        assert (await world.lease(worker))["holderIdentity"] == before[worker]["holderIdentity"]
        await world.node(worker, is_ready)


async def test_membership_of_one_that_died_without_a_node_is_ended(world: World) -> None:
    running = await world.replica(MORTAL)
    labels = {"vkprovider.io/replica": "true"}
    ghost = {"metadata": {"name": "vkprovider-replica-ghost", "labels": labels}}
    await world.admin.create(MEMBERS, {**ghost, "spec": {"holderIdentity": "ghost"}})
    await world.admin.until_gone(f"{MEMBERS}/vkprovider-replica-ghost")
    assert await world.admin.get(f"{MEMBERS}/vkprovider-replica-{running.name}")


async def test_rolling_restart_takes_no_lablet_out_of_ready(world: World) -> None:
    running = [await world.replica() for _ in range(3)]
    simulators = [await world.simulator() for _ in range(3)]
    workers, definition = [await world.worker(simulator.url) for simulator in simulators], await world.define()
    lablets = [await world.pod(definition, worker) for worker in workers for _ in range(2)]
    since = {lablet.name: condition(await lablet.ready(), "Ready")["lastTransitionTime"] for lablet in lablets}
    for _ in range(3):
        leaver = running.pop(0)
        await leaver.stop()
        assert await world.admin.get(f"{MEMBERS}/vkprovider-replica-{leaver.name}") is None, "it left without a word"
        living = {one.name for one in running}
        for worker in workers:
            await world.lease(worker, lambda spec, living=living: spec.get("holderIdentity") in living)  # type: ignore[misc]
        running.append(await world.replica())
        await when(lambda: [len(nodes_of(one)) for one in running] == [1, 1, 1], "each has its share")
    after = {lablet.name: condition(await lablet.ready(), "Ready")["lastTransitionTime"] for lablet in lablets}
    assert after == since, "a lablet was not Ready for a while"
    assert [len(imports(simulator)) for simulator in simulators] == [2, 2, 2]
    assert [len(requests(simulator, "PUT", "/start")) for simulator in simulators] == [2, 2, 2]


async def test_handover_waits_for_a_slow_step(world: World) -> None:
    first = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    simulator.faults.add(Fault(kind="delay", route="^POST .*/import", delay_s=3.0), simulator.now())
    lablet = await world.pod(definition, worker)
    await when(lambda: first.replica.counters.steps.get("IMPORT"), "the import begins")
    await first.stop()
    await world.replica()
    await lablet.ready()
    assert len(imports(simulator)) == 1


async def test_handover_is_called_off_when_its_taker_ends_meanwhile(world: World) -> None:
    """Nobody would take what is released then, for as long as the others leave it to a replica that is gone."""
    first = await world.replica()
    simulators = [await world.simulator() for _ in range(2)]
    workers, definition = [await world.worker(each.url) for each in simulators], await world.define()
    for simulator in simulators:
        simulator.faults.add(Fault(kind="delay", route="^POST .*/import", delay_s=8.0), simulator.now())
    lablets = [await world.pod(definition, worker) for worker in workers]
    await when(lambda: first.replica.counters.steps.get("IMPORT", 0) > 1, "both imports begin")
    second = await world.replica()
    known = first.replica.fleet.items
    await when(lambda: any(each.parked for each in known.values()), "a handover waits for the import")
    await second.stop()
    for lablet in lablets:
        await lablet.ready()
    assert not any(each.parked for each in known.values())
    assert nodes_of(first) == set(workers)
    for worker in workers:
        assert (await world.lease(worker))["leaseTransitions"] == 0


async def test_requests_for_a_node_that_get_no_answer_are_repeated_at_a_steady_pace(world: World) -> None:
    """A back-off that grew meanwhile would leave the Node without an owner when the answers come again."""
    only = await world.replica()
    await when(only.replica.ownership.plan.settled.is_set, "it takes part")
    only.api.fault(r"^POST .*/kube-node-lease/leases", count=None, drop=True)
    worker = await world.worker(ready=False)
    moments: list[float] = []

    def tried() -> bool:
        asked = len(only.api.matching(r"^POST .*/kube-node-lease/leases"))
        moments.extend([only.ctx.now()] * (asked - len(moments)))
        return asked >= 9  # a back-off would wait for up to 26 s by then

    await when(tried, "it tries nine times")
    gaps = [after - before for before, after in itertools.pairwise(moments)]
    assert max(gaps) < 3.0, gaps
    only.api.heal()
    await world.lease(worker, lambda spec: spec.get("holderIdentity") == only.name)

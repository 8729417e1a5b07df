"""What is written, how often, by which replica, and what never (R003-012, 018, 059, 061, 066, 072, 073, 075)."""

import asyncio
from typing import Any

from tests.component.controllers.looking import when
from tests.component.mux.harness import PREFIX, MuxWorld

PORTS = [{"name": "http", "port": 8080, "protocol": "TCP"}]


def endpoints(*addresses: str) -> dict[str, Any]:
    return {"endpoints": [{"addresses": [each], "conditions": {"ready": True}} for each in addresses]}


def pods_of(mux: dict[str, Any]) -> int:
    """Return the number of backends that a mux shows."""
    return int(mux["metadata"]["annotations"][f"{PREFIX}/summary"].split(" | ")[2].split()[0])


async def test_a_changed_backend_is_one_write_of_one_slice(world: MuxWorld) -> None:
    running = await world.replica()
    await world.mux()
    for name in ("a", "b"):
        await world.channel(name, "http:auto", backends=())
    changing = await world.slice("a", ("10.1.0.1",), ports=PORTS)
    await world.slice("b", ("10.1.0.2",), ports=PORTS)
    await world.until_forwards({20000: {"10.1.0.1:8080"}, 20001: {"10.1.0.2:8080"}})
    await when(lambda: running.replica.memory.annotated_at, "it is annotated")
    await asyncio.sleep(1)  # what follows from that has come by then
    before = len(running.writes)
    for last in range(3, 8):
        await world.admin.patch(changing, endpoints(f"10.1.0.{last}"))
        await world.until_forwards({20000: {f"10.1.0.{last}:8080"}, 20001: {"10.1.0.2:8080"}})
    await asyncio.sleep(1)
    written = [line for line in running.writes[before:] if "/events" not in line]
    assert len(written) == 5, written
    assert {line.split("?")[0].rpartition("/")[0] for line in written} == {
        f"PATCH /apis/discovery.k8s.io/v1/namespaces/{world.edge}/endpointslices"
    }
    shuffled = await world.admin.patch(changing, endpoints("10.1.0.9", "10.1.0.8"))
    await world.until_forwards({20000: {"10.1.0.8:8080", "10.1.0.9:8080"}, 20001: {"10.1.0.2:8080"}})
    before = len(running.writes)
    await world.admin.patch(changing, {"endpoints": shuffled["endpoints"][::-1]})
    await asyncio.sleep(1)
    assert running.writes[before:] == []


async def test_annotations_follow_in_one_patch_and_not_more_often_than_the_timeout(world: MuxWorld) -> None:
    running = await world.replica(DAEMON_QUEUE_TIMEOUT="2")
    await world.mux()
    await world.channel("a", "http:auto", backends=())
    path = await world.slice("a", ("10.1.0.1",), ports=PORTS)
    await when(lambda: running.replica.memory.annotated_at, "it is annotated")
    began = asyncio.get_running_loop().time()
    for last in range(20):
        await world.admin.patch(path, endpoints("10.1.0.1", *[f"10.1.1.{n}" for n in range(last)]))
        await asyncio.sleep(0.2)
    await world.admin.until(
        world.path("mux"),
        lambda found: "| 20 pod(s) |" in found["metadata"]["annotations"].get(f"{PREFIX}/summary", ""),
    )
    passed_s = asyncio.get_running_loop().time() - began
    patches = [
        each for each in running.api.matching("^PATCH .*services/mux$") if f"{PREFIX}/summary" in each.body.decode()
    ]
    assert 2 <= len(patches) <= passed_s / 2 + 2


async def test_a_changed_backend_does_not_wait_for_the_annotations(world: MuxWorld) -> None:
    running = await world.replica(DAEMON_QUEUE_TIMEOUT="0.1")
    await world.mux()
    await world.channel("a", "http:auto", backends=())
    path = await world.slice("a", ("10.1.0.1",), ports=PORTS)
    await when(lambda: running.replica.memory.annotated_at, "it is annotated")
    answer, ended = asyncio.Event(), asyncio.Event()

    async def hold(_: object) -> None:
        try:
            await answer.wait()
        finally:
            ended.set()

    slow = running.api.fault("^PATCH .*/services/mux$", first=hold)
    await world.admin.patch(path, endpoints("10.1.0.1", "10.1.0.2"))
    await when(lambda: slow.met, "the annotations are sent")
    await world.admin.patch(path, endpoints("10.1.0.3"))
    await world.until_forwards({20000: {"10.1.0.3:8080"}})
    assert not ended.is_set()
    assert pods_of(await world.admin.get(world.path("mux")) or {}) == 1  # as before both changes
    await world.admin.patch(path, endpoints("10.1.0.3", "10.1.0.4", "10.1.0.5"))
    answer.set()
    await world.admin.until(world.path("mux"), lambda found: pods_of(found) == 3)


async def test_a_quiet_mux_writes_nothing_but_leases(world: MuxWorld) -> None:
    running = await world.replica(DAEMON_QUEUE_TIMEOUT="0.2", RECONCILE_INTERVAL="0.2")
    await world.mux()
    await world.address("203.0.113.10")
    await world.channel("a", "http:auto")
    await world.until_told("a", "http:80->20000")
    await world.channel("b", "http:20000")
    await world.until_event("MuxPortConflict", "b")
    await asyncio.sleep(1)
    runs, before = running.replica.queue.runs_total, len(running.writes)
    await when(lambda: running.replica.queue.runs_total > runs + 10, "it has looked ten times")
    assert running.writes[before:] == []


async def test_drift_is_put_right_by_the_next_look(world: MuxWorld) -> None:
    await world.replica(DAEMON_QUEUE_TIMEOUT="0.5")
    await world.mux()
    await world.channel("a", "http:auto")
    await world.until_told("a", "http:80->20000")
    [own] = await world.own_slices()
    path = f"/apis/discovery.k8s.io/v1/namespaces/{world.edge}/endpointslices/{own['metadata']['name']}"
    await world.admin.patch(path, endpoints("10.9.9.9"))
    await world.until_forwards({20000: {"10.1.0.10:8080"}})
    await world.admin.delete(path)
    await world.until_forwards({20000: {"10.1.0.10:8080"}})
    await world.annotate(world.path("a"), ports="http:80->1")
    await world.until_told("a", "http:80->20000")
    await world.annotate(world.path("mux"), summary="mine")
    await world.admin.until(
        world.path("mux"), lambda found: found["metadata"]["annotations"][f"{PREFIX}/summary"] != "mine"
    )
    await world.admin.patch(world.path("mux"), {"spec": {"ports": [{"name": "mine", "port": 7}]}})
    await world.until_ports(20000)


async def test_three_muxes_are_shared_by_two_replicas_and_taken_over(world: MuxWorld) -> None:
    first, second = await world.replica(LEADER_LEASE_TTL="3"), await world.replica(LEADER_LEASE_TTL="3")
    both = (first, second)
    for name in ("mux-a", "mux-b", "mux-c", "mux-d"):
        await world.mux(name)
        await world.channel(f"of-{name}", "http:auto", mux=f"{PREFIX}/{name}.{world.edge}")
        await world.until_told(f"of-{name}", "http:80->20000")
    owned = [each.replica.ownership.epochs for each in both]
    await when(lambda: [len(epochs) for epochs in owned] == [2, 2], "each has two")
    assert not {*owned[0]} & {*owned[1]}
    await first.crash()
    await when(lambda: len(owned[1]) == 4, "the other one has all")
    for name in ("mux-a", "mux-b", "mux-c", "mux-d"):
        await world.channel(f"late-{name}", "http:auto", mux=f"{PREFIX}/{name}.{world.edge}")
        await world.until_told(f"late-{name}", "http:80->20001")


async def test_a_dry_run_logs_and_writes_nothing(world: MuxWorld) -> None:
    dry = await world.replica(DRYRUN_MODE="true", DAEMON_QUEUE_TIMEOUT="0.5")
    before = await world.mux()
    await world.channel("a", "http:auto")
    await world.channel("b", "http:none")
    seen = dry.replica.memory.seen
    await when(lambda: [1 for each in seen.values() if each.plan.mapped and each.plan.refused], "it has decided")
    assert dry.writes == []
    assert await world.store() is None
    after = await world.admin.get(world.path("mux"))
    assert after is not None
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    await world.replica()  # which a dry run keeps nothing from
    await world.until_told("a", "http:80->20000")
    assert dry.writes == []


async def test_nothing_of_others_is_written(world: MuxWorld) -> None:
    """The fields of the program, by field manager, on every object that it touches (R003-075)."""
    await world.replica()
    await world.mux()
    await world.address("203.0.113.10")
    await world.channel("a", "http:auto")
    await world.admin.until(world.path("a"), lambda found: found["status"]["loadBalancer"])
    await world.admin.until(world.path("mux"), lambda found: f"{PREFIX}/summary" in found["metadata"]["annotations"])

    async def owned(path: str) -> set[str]:
        found = await world.admin.get(path)
        assert found is not None
        fields = [each for each in found["metadata"]["managedFields"] if each["manager"] == "vkprovider-mux"]
        return {name for each in fields for name in leaves(each["fieldsV1"])}

    notes = {f"f:metadata f:annotations f:{PREFIX}/{name}" for name in ("channels", "topology", "summary")}
    assert await owned(world.path("mux")) == {
        *notes,
        "f:metadata f:finalizers",
        f'f:metadata f:finalizers v:"{PREFIX}/finalizer"',
        "f:spec f:ports",
    }
    assert await owned(world.path("a")) == {
        f"f:metadata f:annotations f:{PREFIX}/ports",
        "f:status f:loadBalancer f:ingress",
    }


def leaves(fields: dict[str, Any], above: tuple[str, ...] = ()) -> list[str]:
    """Return the paths of owned fields, down to where a field is owned as a whole, ports by their list."""
    if above[-2:] == ("f:spec", "f:ports") or not fields:
        return [" ".join(above)]
    return [
        leaf
        for name, below in fields.items()
        for leaf in (
            [" ".join(above)]
            if name == "." and above[-1] == "f:finalizers"
            else []
            if name == "."
            else leaves(below, (*above, name))
        )
    ]

"""Exposed lablets as virtual channels: slices of the provider's namespace, and the answers to them."""

import asyncio

import msgspec

from tests.component.mux.harness import ENDPOINT_SLICES, PREFIX, MuxWorld
from tests.component.mux.lending import expose, exposed, until_answer
from vkprovider.lablet import exposure, names
from vkprovider.mux.pure.endpoints import Backends
from vkprovider.mux.pure.facts import MuxRef, Owner, ServicePort
from vkprovider.mux.pure.slices import MuxObject, Source, wanted_slices
from vkprovider.mux.pure.state import DISCARD, DRAIN_S


async def test_a_lablet_gets_a_number_and_an_answer(world: MuxWorld) -> None:
    await world.replica()
    await world.mux(allowed_namespaces="")  # lablets need none
    path = await expose(world, exposed(world, "ann", "ann", 10011))
    assert await until_answer(world, path, "pending") == {
        "state": "pending",
        "port": 20000,
        "why": "the mux has no address yet",
    }
    await world.address("203.0.113.10")
    assert await until_answer(world, path, "live") == {"state": "live", "address": "203.0.113.10", "port": 20000}
    await world.until_forwards({20000: {"198.51.100.1:10011"}})
    [own] = await world.own_slices()
    assert own["metadata"]["namespace"] == world.edge
    event = await world.until_event("MuxOpenToAll", "mux")
    assert "loadBalancerSourceRanges" in event["message"]
    assert await world.rows() == {f"{world.team}/ann/pc-serial": 20000}


async def test_another_learner_on_the_same_worker_port_gets_another_number(world: MuxWorld) -> None:
    """A worker with room for one lablet: A ends, the mux is away, B starts: A's number never answers for B."""
    first = await world.replica()
    await world.mux()
    await world.address("203.0.113.10")
    path = await expose(world, exposed(world, "seat", "a", 10011))
    await until_answer(world, path, "live")
    await first.stop()
    await world.admin.delete(path)
    path = await expose(world, exposed(world, "seat", "b", 10011))
    await world.replica()
    assert (await until_answer(world, path, "live"))["port"] == 20001
    await world.until_forwards({20001: {"198.51.100.1:10011"}})
    await world.until_ports(20001)


async def test_the_same_learner_keeps_the_number_over_a_new_pod(world: MuxWorld) -> None:
    await world.replica()
    await world.mux()
    await world.address("203.0.113.10")
    old = await expose(world, exposed(world, "seat", "a", 10011))
    await until_answer(world, old, "live")
    other = await expose(world, exposed(world, "other", "x", 10021))
    await until_answer(world, other, "live")
    await world.admin.delete(old)
    await world.until_ports(20001)
    new = await expose(world, exposed(world, "seat", "a", 10031))
    assert (await until_answer(world, new, "live"))["port"] == 20000
    await world.until_forwards({20000: {"198.51.100.1:10031"}, 20001: {"198.51.100.1:10021"}})


async def test_a_udp_port_leads_to_nobody_for_a_while_before_it_goes(world: MuxWorld) -> None:
    ports = exposure.ports_of([("PC_serial", "TCP", 10011), ("data", "UDP", 10012)])
    first = await world.replica()
    await world.mux()
    await world.address("203.0.113.10")
    path = await expose(world, msgspec.structs.replace(exposed(world, "seat", "a", 10011), ports=ports))
    await until_answer(world, path, "live")
    [(number, name)] = [(port, name) for (port, protocol), name in (await world.ports()).items() if protocol == "UDP"]
    await world.admin.delete(path)
    await world.until_forwards({number: {f"{DISCARD['IPv4']}:{number}"}})
    await world.until_ports(number)
    assert await world.ports() == {(number, "UDP"): name}
    await first.stop()
    await world.replica(wall_ahead_s=DRAIN_S - 2)  # the next pass is after two seconds, by itself
    await world.until_ports(101)
    assert await world.own_slices() == []


async def test_a_mux_that_is_deleted_stays_until_its_open_udp_flows_have_ended(world: MuxWorld) -> None:
    ports = exposure.ports_of([("PC_serial", "TCP", 10011), ("data", "UDP", 10012)])
    first = await world.replica(LEADER_LEASE_TTL="3")
    await world.mux()
    await world.address("203.0.113.10")
    path = await expose(world, msgspec.structs.replace(exposed(world, "seat", "a", 10011), ports=ports))
    await until_answer(world, path, "live")
    [number] = [port for port, protocol in await world.ports() if protocol == "UDP"]
    before = await world.rows()
    await world.admin.delete(world.path("mux"))
    await world.until_forwards({number: {f"{DISCARD['IPv4']}:{number}"}})
    assert await until_answer(world, path, "refused")
    began = asyncio.get_running_loop().time()
    await asyncio.sleep(DRAIN_S / 2)
    await first.crash()
    await world.replica(LEADER_LEASE_TTL="3")
    await world.admin.until_gone(world.path("mux"))
    took_s = asyncio.get_running_loop().time() - began
    assert DRAIN_S - 2 <= took_s <= DRAIN_S * 4 / 3, "the next replica goes on where this one was"
    assert await world.own_slices() == []
    assert await world.rows() == before


async def test_a_mux_goes_at_once_with_its_namespace_and_no_pass_fails(world: MuxWorld) -> None:
    """Backends go with the namespace, and `DISCARD` cannot be created there; what kube-proxy does is in the faults."""
    ports = exposure.ports_of([("data", "UDP", 10012)])
    running = await world.replica()
    await world.mux()
    path = await expose(world, msgspec.structs.replace(exposed(world, "seat", "a", 10011), ports=ports))
    await world.until_forwards({20000: {"198.51.100.1:10012"}})
    failed = running.replica.queue.failures_total
    began = asyncio.get_running_loop().time()
    await world.delete_namespace()
    await world.admin.until_gone(world.path("mux"))
    assert asyncio.get_running_loop().time() - began < DRAIN_S / 2
    assert running.replica.queue.failures_total == failed
    await world.admin.delete(path)


async def test_a_mux_that_serves_again_before_it_has_drained_begins_to_drain_afresh(world: MuxWorld) -> None:
    ports = exposure.ports_of([("data", "UDP", 10012)])
    running = await world.replica()
    await world.mux()
    path = await expose(world, msgspec.structs.replace(exposed(world, "seat", "a", 10011), ports=ports))
    await world.until_forwards({20000: {"198.51.100.1:10012"}})
    await world.annotate(world.path("mux"), multiplexer=None)
    await world.until_forwards({20000: {f"{DISCARD['IPv4']}:20000"}})
    assert list(running.replica.memory.ends_since) == [f"{world.edge}/mux"]
    await world.annotate(world.path("mux"), multiplexer="true")
    await world.until_forwards({20000: {"198.51.100.1:10012"}})
    assert not running.replica.memory.ends_since
    await world.admin.delete(path)


async def test_the_api_server_takes_the_address_that_no_machine_has(world: MuxWorld) -> None:
    await world.replica()
    service = await world.mux()
    owner = Owner("a", "pod", "ann")
    sources = [
        Source("", family, Backends((ServicePort("data", 20000, "UDP"),), ready=(address,)))
        for family, address in DISCARD.items()
    ]
    mux = MuxObject(MuxRef(world.edge, "other"), service["metadata"]["uid"], PREFIX)
    bodies = wanted_slices(mux, {owner: sources}).values()
    for body in bodies:
        await world.admin.create(f"{ENDPOINT_SLICES}/namespaces/{world.edge}/endpointslices", body)
    assert {each["addressType"] for each in await world.own_slices("other")} == {"IPv4", "IPv6"}


async def test_a_slice_of_another_namespace_is_not_believed(world: MuxWorld) -> None:
    await world.replica()
    await world.mux()
    await world.address("203.0.113.10")
    forged = await expose(world, exposed(world, "forged", "x", 22), namespace=world.team)
    real = await expose(world, exposed(world, "ann", "ann", 10011))
    await until_answer(world, real, "live")
    await world.until_forwards({20000: {"198.51.100.1:10011"}})
    found = await world.admin.get(forged)
    assert found is not None
    assert names.ANNOTATION_MUX_ANSWER not in found["metadata"]["annotations"]


async def test_refused_lablets_are_told_why(world: MuxWorld) -> None:
    await world.replica(RECONCILE_INTERVAL="0.5")
    lost = await expose(world, exposed(world, "lost", "a", 10011))
    answer = await until_answer(world, lost, "refused")
    assert answer["why"].startswith("MuxNotFound: ")
    await world.mux(port_range="20000-20000")
    await world.address("203.0.113.10")
    await until_answer(world, lost, "live")
    second = await expose(world, exposed(world, "second", "b", 10021))
    answer = await until_answer(world, second, "refused")
    assert answer["why"].startswith("InvalidPortMapping: no available port")
    await world.until_forwards({20000: {"198.51.100.1:10011"}})
    await world.admin.delete(world.path("mux"))
    await world.admin.until_gone(world.path("mux"))
    await until_answer(world, lost, "refused")
    assert await world.own_slices() == []


async def test_an_answer_changes_nothing_but_the_answer(world: MuxWorld) -> None:
    running = await world.replica()
    await world.mux()
    await world.address("203.0.113.10")
    path = await expose(world, exposed(world, "ann", "ann", 10011))
    await until_answer(world, path, "live")
    patches = [each for each in running.api.asked if each.method == "PATCH" and each.path == path]
    assert patches
    for each in patches:
        test, add = each.json
        assert (test["op"], test["path"]) == ("test", "/metadata/uid")
        assert (add["op"], add["path"]) == ("add", "/metadata/annotations/vkprovider.io~1mux-answer")
    assert PREFIX in (await world.own_slices())[0]["metadata"]["annotations"].popitem()[0]

"""A mux that cannot decide gives and moves no port, and leads to nothing that its channels do not lend any more."""

import pytest

from tests.component.controllers.looking import eventually
from tests.component.mux.harness import RBAC, Json, MuxWorld
from tests.component.mux.lending import expose, exposed, until_answer
from tests.component.mux.test_mux_store import store_path

PORTS = [{"name": "http", "port": 8080, "protocol": "TCP"}]


async def cannot_decide(world: MuxWorld, why: str) -> str:
    """Keep the mux from deciding; return the reason that it tells."""
    if why == "damaged":
        await world.admin.patch(store_path(world), {"data": {"allocations.json": "{"}})
        return "PortAllocationStoreInvalid"
    if why == "selector":
        await world.admin.patch(world.path("mux"), {"spec": {"selector": {"app": "x"}}})
        return "NotSupported"
    await world.unbind_store(world.edge)
    return "MuxWriteRefused"


@pytest.mark.parametrize("form", ["slices", "endpoints"])
@pytest.mark.parametrize("why", ["damaged", "selector", "forbidden"])
async def test_what_is_lent_no_more_is_withdrawn_and_nothing_else(world: MuxWorld, why: str, form: str) -> None:
    """The next learner of a seat has the worker's port of the last one, whose number must not lead there."""
    if form == "endpoints":
        await bind_endpoints(world)
    await world.replica(DAEMON_QUEUE_TIMEOUT="0.5", VKPROVIDER_MUX_ENDPOINTS=form)
    await world.mux()
    await world.address("203.0.113.10")
    await world.channel("api", "http:30080", backends=())
    changing = await world.slice("api", ("10.1.0.1", "10.1.0.2"), ports=PORTS)
    await world.channel("old", "http:30081", backends=("10.1.0.3",))
    ann = await expose(world, exposed(world, "seat", "ann", 10011))
    number = (await until_answer(world, ann, "live"))["port"]
    bob = await expose(world, exposed(world, "other", "bob", 10021))
    kept = (await until_answer(world, bob, "live"))["port"]
    reason = await cannot_decide(world, why)
    await world.until_event(reason, "mux")
    await world.admin.delete(ann)
    await expose(world, exposed(world, "seat", "cid", 10011))
    await world.admin.delete(world.path("old"))
    one = {"addresses": ["10.1.0.1"], "conditions": {"ready": True}}
    await world.admin.patch(changing, {"endpoints": [one]})
    numbers = await world.ports()
    await until_leads(world, form, {30080: {"10.1.0.1:8080"}, kept: {"198.51.100.1:10021"}})
    assert await world.ports() == numbers, "no port is given or taken away"
    assert (number, "TCP") in numbers
    two = {"addresses": ["10.1.0.2"], "conditions": {"ready": True}}
    await world.admin.patch(changing, {"endpoints": [one, two]})
    if why == "forbidden":
        await world.bind_store(world.edge)
        await until_leads(
            world,
            form,
            {30080: {"10.1.0.1:8080", "10.1.0.2:8080"}, kept: {"198.51.100.1:10021"}, 20002: {"198.51.100.1:10011"}},
        )
    if form == "endpoints":
        await world.admin.delete(f"{RBAC}/clusterrolebindings/vkprovider-mux-endpoints")


async def until_leads(world: MuxWorld, form: str, expected: dict[int, set[str]]) -> None:
    """Wait until exactly these outside ports lead to exactly these backends."""
    if form == "slices":
        await world.until_forwards(expected)
        return
    path = f"/api/v1/namespaces/{world.edge}/endpoints/mux"

    async def look() -> bool:
        names = {name: port for (port, _), name in (await world.ports()).items()}
        found = await world.admin.get(path) or {}
        to: dict[int, set[str]] = {}
        for subset in found.get("subsets") or ():
            for port in subset["ports"]:
                for address in subset.get("addresses") or ():
                    to.setdefault(names.get(port["name"], 0), set()).add(f"{address['ip']}:{port['port']}")
        return to == expected

    await eventually(look, f"{expected}")


async def bind_endpoints(world: MuxWorld) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "vkprovider-mux-endpoints"}
    subjects = [{"kind": "ServiceAccount", "name": "vkprovider-mux", "namespace": "vkprovider-system"}]
    body: Json = {"metadata": {"name": "vkprovider-mux-endpoints"}, "roleRef": role, "subjects": subjects}
    await world.admin.create(f"{RBAC}/clusterrolebindings", body)

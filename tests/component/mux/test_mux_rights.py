"""Rights used are rights granted, by the audit log of the API server (R003-076-078)."""

from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.component.mux.harness import ACCOUNT, RBAC, MuxWorld, install, open_world
from tests.component.mux.lending import expose, exposed, until_answer
from tests.component.mux.test_mux_backends import PORTS, WORKER, pod, worker
from tests.support import apiserver as real
from tools import rights
from vkprovider.doctor.rights import SHIPPED_NAMESPACE, rights_of
from vkprovider.shipped import find_manifests


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[real.ApiServer]:
    with real.running(tmp_path_factory.mktemp("audited"), audit=True) as server:
        install(server)
        yield server


async def test_no_right_is_granted_that_is_not_used_and_none_used_beyond(
    audited: real.ApiServer, tmp_path: Path
) -> None:
    async with open_world(audited, tmp_path) as world:
        await live(world)
    manifest = (find_manifests() / "components" / "mux" / "rbac.yaml").read_text()
    lines = audited.audit_log.read_bytes().splitlines()
    offered = rights.offers(manifest)
    uses = rights.uses_of(rights_of(manifest, SHIPPED_NAMESPACE), offered, lines, ACCOUNT)
    assert uses.granted
    assert len(offered) == 7
    assert not uses.unused, uses.table()
    assert not uses.beyond, uses.table()


async def live(world: MuxWorld) -> None:
    """Have everything done once that the program does."""
    running = await world.replica(RECONCILE_INTERVAL="0.5", DAEMON_QUEUE_TIMEOUT="0.5")
    await worker(world)
    await world.mux()
    await world.address("203.0.113.10")
    await world.channel("api", "http:auto", backends=("10.1.0.1",))
    await world.until_forwards({20000: {"10.1.0.1:8080"}})
    await world.slice("api", (WORKER,), ports=PORTS, target=await pod(world, "ours", world.team, WORKER))
    await world.until_forwards({20000: {"10.1.0.1:8080", f"{WORKER}:8080"}})
    path = await expose(world, exposed(world, "ann", "ann", 10011))
    await until_answer(world, path, "live")
    [changing] = [each for each in await world.own_slices("api", world.team) if each["endpoints"][0].get("targetRef")]
    base = f"/apis/discovery.k8s.io/v1/namespaces/{world.team}/endpointslices/{changing['metadata']['name']}"
    await world.admin.patch(base, {"endpoints": [{"addresses": ["10.1.0.9"], "conditions": {"ready": True}}]})
    await world.until_forwards({20000: {"10.1.0.1:8080", "10.1.0.9:8080"}, 20001: {"198.51.100.1:10011"}})
    await world.admin.delete(world.path("api"))
    await world.until_ports(20001)
    token = world.server.token("vkprovider", "--audience=mux.vkprovider.io")
    url = f"http://127.0.0.1:{running.page.port}/api/state"
    async with aiohttp.ClientSession() as http, http.get(url, headers={"Authorization": f"Bearer {token}"}) as answer:
        assert answer.status == 200
    await running.stop()
    binding = {
        "metadata": {"name": "vkprovider-mux-endpoints"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "vkprovider-mux-endpoints"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "vkprovider-system"}],
    }
    await world.admin.create(f"{RBAC}/clusterrolebindings", binding)
    running = await world.replica(RECONCILE_INTERVAL="0.5", VKPROVIDER_MUX_ENDPOINTS="endpoints")
    endpoints = f"/api/v1/namespaces/{world.edge}/endpoints/mux"
    await world.admin.until(endpoints, bool)
    await world.channel("b", "http:auto")
    await world.admin.until(endpoints, lambda found: len(found.get("subsets") or ()) == 2)
    await world.admin.delete(world.path("mux"))
    await world.admin.until_gone(endpoints)
    await world.admin.until_gone(world.path("mux"))
    await world.until_event("MuxNotFound", "b")
    await running.stop()

"""Rights used are rights granted, of mux, portal and relay, by the audit log of an API server."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import msgspec
import pytest
import yaml

from tests.component.controllers.looking import eventually
from tests.component.mux import harness as muxes
from tests.component.mux.lending import expose, exposed, until_answer
from tests.component.mux.test_mux_backends import PORTS, WORKER, pod, worker
from tests.component.portal import harness as portals
from tests.component.portal.asking import Client
from tests.component.portal.harness import SOON, PortalWorld, Running
from tests.component.portal.people import HUB_ROLE, INSTRUCTOR_ROLE, RBAC, People
from tests.component.portal.test_portal_classes import until
from tests.component.portal.test_portal_warm import config, until_warm
from tests.component.portal.wishes import ask
from tests.component.relay.conftest import install, kubeconfig_of
from tests.component.relay.test_relay import alice_led
from tests.support import apiserver as real
from tests.support.apiserver import Admin
from tests.support.relay import MuxObjects, RelaySide, haproxy_or_skip
from tools import rights
from vkprovider.classroom.links import account_for, new_code
from vkprovider.classroom.pods import LabletPod
from vkprovider.doctor.rights import SHIPPED_NAMESPACE, rights_of
from vkprovider.lablet import names
from vkprovider.platform.shipped import find_manifests
from vkprovider.portal.web.links import LinkTokens
from vkpsandbox.processes.ports import free_range

COMPONENTS = find_manifests() / "components"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[real.ApiServer]:
    """An API server of these tests' own: its audit log has what these programs did here, and nothing of other tests."""
    with real.running(tmp_path_factory.mktemp("audited"), audit=True) as server:
        muxes.install(server)
        portals.install(server)
        install(server)
        yield server


def lines_of(server: real.ApiServer) -> list[bytes]:
    return server.audit_log.read_bytes().splitlines()


# ------------------------------------------------------------------------------------------ mux


async def test_the_mux_uses_each_right_and_no_other(audited: real.ApiServer, tmp_path: Path) -> None:
    """R003-076, 077, 078."""
    async with muxes.open_world(audited, tmp_path) as world:
        await live(world)
    manifest = (COMPONENTS / "mux" / "rbac.yaml").read_text()
    offered = rights.offers(manifest)
    uses = rights.uses_of(rights_of(manifest, SHIPPED_NAMESPACE), offered, lines_of(audited), muxes.ACCOUNT)
    assert uses.granted
    assert len(offered) == 7
    assert not uses.unused, uses.table()
    assert not uses.beyond, uses.table()


async def live(world: muxes.MuxWorld) -> None:
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
        "subjects": [{"kind": "ServiceAccount", "name": muxes.ACCOUNT, "namespace": "vkprovider-system"}],
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


# ------------------------------------------------------------------------------------------ portal


async def show_instructors(world: PortalWorld, people: People, running: Running, family: str) -> None:
    """Have the instructors of a class change while there is a lab of it."""
    await world.admin.create("/api/v1/namespaces", {"metadata": {"name": "friday"}})
    await people.allow("teacher", INSTRUCTOR_ROLE, "friday")
    await ask(world, running, "eve", family, class_="friday")
    await until(world, "eve", ["teacher"])
    helper = await people.allow("helper", INSTRUCTOR_ROLE, "friday")
    await until(world, "eve", ["helper", "teacher"])
    await world.admin.delete(helper)
    await world.admin.delete(f"{RBAC}/namespaces/friday/rolebindings")
    await until(world, "eve", None)


async def open_a_link(world: PortalWorld, running: Running) -> None:
    """Have the portal get a token of the account of a link; the namespace of the class is there."""
    place = "/api/v1/namespaces/friday"
    await world.admin.patch(place, {"metadata": {"labels": {names.LABEL_LINKS: names.LINKS_ALLOWED}}})
    accounts = f"{place}/serviceaccounts"
    await world.admin.create(accounts, {"metadata": {"name": "default"}})
    spec = {"containers": [{"name": "lab", "image": "lab:1"}]}
    meta = {"name": "one", "annotations": {names.ANNOTATION_USERNAME: "eve"}}
    made = await world.admin.create(f"{place}/pods", {"metadata": meta, "spec": spec})
    code = new_code("friday", "eve")
    await world.admin.create(accounts, account_for(code, msgspec.convert(made, LabletPod)))
    tokens = LinkTokens(running.replica.ctx.kube)

    async def is_open() -> bool:
        return await tokens.of("friday", code.account, code.digest) is not None

    await eventually(is_open, "links are allowed")
    await world.admin.delete(f"{place}/pods/one", grace_s=0)


async def test_the_portal_uses_each_right_and_no_other(
    audited: real.ApiServer, tmp_path: Path
) -> None:  # R002-003, 006
    async with portals.open_world(audited, tmp_path) as world:
        world.takes_over_s = SOON
        people = People(world.admin)
        await people.open()
        hub = await people.person("hub", HUB_ROLE)
        family = f"warm-{world.run}"
        running = await world.replica(config=config(family, 1))
        dying = await world.replica(config=config(family, 1))
        await world.define(family)
        await until_warm(running, 1)
        await ask(world, running, "alice", family)  # takes the warm one
        world.stage.boots = False
        await ask(world, running, "bob", family)
        await world.admin.until(world.pod("bob"), lambda pod: pod["spec"].get("nodeName"))
        await world.stage.ready(world.pod("bob"), state="False", phase="Failed")
        await world.until_phase("bob", "failed")
        await ask(world, running, "bob", family)  # replaces the failed one
        held = asyncio.Event()
        dying.api.fault(r"^POST .*/pods$", first=lambda _: held.wait())  # what the other replica finds undone
        await ask(world, dying, "dora", family)

        async def asked() -> bool:
            return bool(dying.api.matching(r"^POST .*/pods$"))

        await eventually(asked, "its Pod is about to be made")
        await dying.crash()

        async def told() -> bool:
            events = await world.admin.items(f"{world.namespace('dora')}/events")
            return any(event["reason"] == "UserLabTakenOver" for event in events)

        await eventually(told, "the other replica goes on, and keeps the lock while the lab boots")
        await world.stranger("nublado-carol")
        with pytest.raises(Exception, match="carol"):
            await ask(world, running, "carol", family)
        world.stage.boots = True
        await world.until_phase("bob", "complete")
        assert (await Client(running, "sqr066").ask("GET", "/labs", hub)).status_code == 200
        await show_instructors(world, people, running, family)
        await open_a_link(world, running)
        await running.replica.requests.delete("bob", "hub")
        await world.until_gone("bob")
        await people.close()
    manifest = (COMPONENTS / "portal" / "rbac.yaml").read_text()
    offered = rights.offers(manifest)
    uses = rights.uses_of(rights_of(manifest, SHIPPED_NAMESPACE), offered, lines_of(audited), portals.ACCOUNT)
    assert uses.granted
    # No audit log shows what is bound, and an Event is patched when it is repeated within ten minutes.
    unused = {(right.verb, right.resource) for right in uses.unused}
    assert unused <= {("bind", "clusterroles"), ("patch", "events")}, uses.table()
    assert not uses.beyond, uses.table()


# ------------------------------------------------------------------------------------------ relay


async def test_the_relay_uses_each_right_and_no_other(audited: real.ApiServer, tmp_path: Path) -> None:
    haproxy_or_skip()
    side = RelaySide(tmp_path, kubeconfig_of(audited, tmp_path / "relay"), free_range(4))
    async with Admin(audited) as admin:
        mux = MuxObjects(admin)
        try:
            async with alice_led(side, mux):
                pass
        finally:
            side.end()  # the end of a watch is what is logged of it
        await mux.wipe()
    [role] = [
        item for item in yaml.safe_load_all((COMPONENTS / "relay" / "rbac.yaml").read_text()) if item["kind"] == "Role"
    ]
    granted = {
        (verb, resource, name)
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }

    def used() -> set[tuple[str, str, str]]:
        found = set()
        for event in map(json.loads, lines_of(audited)):
            if event["user"]["username"] == "system:serviceaccount:vkprovider-relay:vkprovider-relay":
                about = event["objectRef"]
                assert about["namespace"] == SHIPPED_NAMESPACE
                found.add((event["verb"], about["resource"], about.get("name", "")))
        return found

    async def complete() -> bool:
        return await asyncio.to_thread(used) == granted

    await eventually(complete, f"used is what is granted: {granted}")

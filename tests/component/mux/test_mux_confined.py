"""What a thief of the mux's token can write: what is the mux's own. By that token, on the real API server."""

import contextlib
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.component.controllers.looking import eventually
from tests.component.mux.harness import ACCOUNT, ENDPOINT_SLICES, PREFIX, RBAC, Json, MuxWorld
from tests.component.mux.lending import expose, exposed, until_answer
from tests.support.apiserver import MEMBERS, Refused

MINE = {"app.kubernetes.io/managed-by": "svc-lb-mux"}
STORE = {"app.kubernetes.io/name": "svc-lb-mux", "app.kubernetes.io/component": "mux-state"}
POLICY = "vkprovider-confine-mux"


class Thief:
    """A client with the token of the mux's account."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def send(self, method: str, path: str, body: object = None) -> None:
        """Send one request.

        Raises:
            Refused: By the API server.
        """
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        async with self._http.request(method, path, json=body, headers={"Content-Type": kind}) as answer:
            if answer.status >= 400:
                raise Refused(answer.status, await answer.json())

    async def refused(self, words: str, method: str, path: str, body: object = None) -> None:
        """Send one request that the policy refuses with these words."""
        with pytest.raises(Refused, match=words) as refused:
            await self.send(method, path, body)
        assert POLICY in str(refused.value)
        assert refused.value.status == 403


@pytest.fixture
async def thief(world: MuxWorld) -> AsyncIterator[Thief]:
    headers = {"Authorization": f"Bearer {world.server.token(ACCOUNT)}"}
    connector = aiohttp.TCPConnector(ssl=world.server.client_tls())
    async with aiohttp.ClientSession(world.server.url, headers=headers, connector=connector) as http:
        thief = Thief(http)

        async def confined() -> bool:
            """Whether the policy is in force yet: it takes the API server a moment."""
            try:
                await thief.send("POST", f"{MEMBERS}?dryRun=All", {"metadata": {"name": "probe"}, "spec": {}})
            except Refused as refused:
                return POLICY in str(refused)
            return False

        await eventually(confined, "the policy")
        yield thief


def config_maps(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps{name and f'/{name}'}"


def slices(namespace: str, name: str = "") -> str:
    return f"{ENDPOINT_SLICES}/namespaces/{namespace}/endpointslices{name and f'/{name}'}"


async def test_config_maps_but_its_own_stay(world: MuxWorld, thief: Thief) -> None:
    for namespace in ("kube-system", "vkprovider-system", world.edge):
        if namespace != world.edge:
            await world.bind_store(namespace)
        name = f"settings-{world.run}"
        await world.admin.create(config_maps(namespace), {"metadata": {"name": name}, "data": {"a": "b"}})
        path = config_maps(namespace, name)
        for change in ({"data": {"a": "c"}}, {"metadata": {"labels": STORE}}):
            await thief.refused("The mux may write ConfigMaps labelled", "PATCH", path, change)
        new = {"metadata": {"name": f"new-{world.run}"}, "data": {}}
        await thief.refused("app.kubernetes.io/name=svc-lb-mux", "POST", config_maps(namespace), new)
        await world.admin.delete(path)
        if namespace != world.edge:
            await world.unbind_store(namespace)
    await thief.send("POST", config_maps(world.edge), {"metadata": {"name": "own", "labels": STORE}})
    own = config_maps(world.edge, "own")
    await thief.send("PATCH", own, {"data": {"a": "b"}})
    for key in STORE:
        await thief.refused("ConfigMaps labelled", "PATCH", own, {"metadata": {"labels": {key: None}}})


async def test_no_config_map_is_read_where_no_admin_said_so(world: MuxWorld, thief: Thief) -> None:
    for namespace in ("kube-system", "vkprovider-system", world.team):
        with pytest.raises(Refused, match=r"403 .*cannot get"):
            await thief.send("GET", config_maps(namespace, "settings"))
    with pytest.raises(Refused, match="404 "):
        await thief.send("GET", config_maps(world.edge, "settings"))


async def test_a_mux_in_a_namespace_without_the_binding_says_so_and_goes_on_with_it(world: MuxWorld) -> None:
    await world.unbind_store(world.edge)
    await world.replica(DAEMON_QUEUE_TIMEOUT="0.5")
    await world.mux()
    await world.channel("api", "http:auto")
    event = await world.until_event("MuxWriteRefused", "mux")
    assert event["message"].startswith(f"bind ClusterRole vkprovider-mux-store in namespace {world.edge}")
    assert 'cannot get resource "configmaps"' in event["message"]
    assert set(await world.ports()) == {(101, "TCP")}
    await world.bind_store(world.edge)
    await world.until_told("api", "http:80->20000")


async def test_a_store_without_its_labels_stops_the_mux_and_says_which(world: MuxWorld) -> None:
    await world.replica(DAEMON_QUEUE_TIMEOUT="0.5")
    await world.mux()
    await world.channel("api", "http:auto")
    await world.until_told("api", "http:80->20000")
    path = config_maps(world.edge, "mux-port-allocations")
    await world.admin.patch(path, {"metadata": {"labels": None}})
    await world.channel("late", "http:auto")
    event = await world.until_event("MuxWriteRefused", "mux")
    assert "app.kubernetes.io/component=mux-state" in event["message"]
    assert set(await world.ports()) == {(20000, "TCP")}
    await world.admin.patch(path, {"metadata": {"labels": STORE}})
    await world.until_told("late", "http:80->20001")


async def test_leases_but_its_own_stay(world: MuxWorld, thief: Thief) -> None:
    theirs = f"vkprovider-replica-{world.run}"
    await world.admin.create(MEMBERS, {"metadata": {"name": theirs}, "spec": {"holderIdentity": "p"}})
    found = await world.admin.get(f"{MEMBERS}/{theirs}")
    assert found is not None
    found["spec"]["holderIdentity"] = "thief"
    await thief.refused("names begin with vkprovider-mux", "PUT", f"{MEMBERS}/{theirs}", found)
    await thief.refused("Of Leases the mux may", "DELETE", f"{MEMBERS}/{theirs}")
    for name in ("vkprovider", "vkprovider-muxer", "other"):
        await thief.refused("Of Leases", "POST", MEMBERS, {"metadata": {"name": name}, "spec": {}})
    await thief.refused("Of Leases", "POST", MEMBERS, {"metadata": {"generateName": "vkprovider-"}, "spec": {}})


async def test_slices_but_its_own_stay(world: MuxWorld, thief: Thief) -> None:
    theirs = await world.slice("api", ("10.1.0.1",))
    words = "Of Endpoints and EndpointSlices the mux may write its own only"
    for change in (
        {"endpoints": [{"addresses": ["10.6.6.6"]}]},
        {"metadata": {"labels": MINE}},
        {"metadata": {"annotations": {"vkprovider.io/mux-answer": "{}"}}},
    ):
        await thief.refused(words, "PATCH", theirs, change)
    await thief.refused(words, "DELETE", theirs)
    for labels in ({}, {"kubernetes.io/service-name": "api"}, {"app.kubernetes.io/managed-by": "else"}):
        new = {"metadata": {"name": "new", "labels": labels}, "addressType": "IPv4", "endpoints": []}
        await thief.refused(words, "POST", slices(world.team), new)
    own = {"metadata": {"name": "own", "labels": MINE}, "addressType": "IPv4", "endpoints": []}
    await thief.send("POST", slices(world.edge), own)
    lost: Json = {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}
    await thief.refused(words, "PATCH", slices(world.edge, "own"), lost)
    lent = {"metadata": {"labels": {"vkprovider.io/component": "exposed-lablet"}}}
    await thief.refused("and nothing else", "PATCH", slices(world.edge, "own"), lent)
    await thief.send("DELETE", slices(world.edge, "own"))


async def test_of_the_slice_of_a_lablet_the_answer_alone_is_written(world: MuxWorld, thief: Thief) -> None:
    await world.replica()
    await world.mux()
    await world.address("203.0.113.10")
    path = await expose(world, exposed(world, "ann", "ann", 10011))
    await until_answer(world, path, "live")
    for change in (
        {"endpoints": [{"addresses": ["198.51.100.9"]}]},
        {"ports": [{"name": "pc-serial", "protocol": "TCP", "port": 22}]},
        {"metadata": {"annotations": {"vkprovider.io/exposed": "{}"}}},
        {"metadata": {"labels": {"vkprovider.io/component": None}}},
        {"metadata": {"labels": MINE}},
        {"metadata": {"ownerReferences": None}},
        {"metadata": {"finalizers": ["example.com/x"]}},
    ):
        await thief.refused("mux-answer and nothing else", "PATCH", path, change)
    await thief.refused("and nothing else", "DELETE", path)
    await thief.send("PATCH", path, {"metadata": {"annotations": {"vkprovider.io/mux-answer": "{}"}}})


async def test_endpoints_but_its_own_stay_where_it_may_write_any(world: MuxWorld, thief: Thief) -> None:
    binding = f"{RBAC}/clusterrolebindings"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "vkprovider-mux-endpoints"}
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "vkprovider-system"}
    await world.admin.create(binding, {"metadata": {"name": "here"}, "roleRef": role, "subjects": [account]})
    try:
        path = f"/api/v1/namespaces/{world.edge}/endpoints"
        await world.admin.create(path, {"metadata": {"name": "theirs"}})

        async def allowed() -> bool:
            """Whether the binding is in force yet: it takes the API server a moment."""
            with contextlib.suppress(Refused):
                await thief.send("POST", path, {"metadata": {"name": "own", "labels": MINE}})
                return True
            return False

        await eventually(allowed, "the right")
        words = "Of Endpoints and EndpointSlices"
        subsets = [{"addresses": [{"ip": "10.6.6.6"}], "ports": [{"port": 80}]}]
        await thief.refused(words, "PATCH", f"{path}/theirs", {"subsets": subsets})
        await thief.refused(words, "PATCH", f"{path}/theirs", {"metadata": {"labels": MINE}})
        await thief.refused(words, "DELETE", f"{path}/theirs")
        await thief.refused(words, "POST", path, {"metadata": {"name": "new"}})
        await thief.send("DELETE", f"{path}/own")
    finally:
        await world.admin.delete(f"{binding}/here")


async def test_services_that_are_neither_mux_nor_channel_stay(world: MuxWorld, thief: Thief) -> None:
    words = "Of Services the mux may change those"
    plain = {"metadata": {"name": "plain"}, "spec": {"selector": {"app": "a"}, "ports": [{"name": "a", "port": 80}]}}
    await world.admin.create(world.services(world.team), plain)
    path = world.path("plain")
    for change in (
        {"spec": {"ports": [{"name": "a", "port": 81}]}},
        {"metadata": {"annotations": {f"{PREFIX}/ports": "a:80->1"}}},
        {"metadata": {"annotations": {f"{PREFIX}/multiplexer": "true"}}},
        {"metadata": {"finalizers": [f"{PREFIX}/finalizer"]}},
        {"spec": {"type": "LoadBalancer", "loadBalancerClass": f"{PREFIX}/mux"}},
    ):
        await thief.refused(words, "PATCH", path, change)
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.66"}]}}}
    lone = {"metadata": {"name": "lone"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
    await world.admin.create(world.services(world.team), lone)
    await thief.refused(words, "PATCH", f"{world.path('lone')}/status", status)
    await world.mux()
    await thief.refused(words, "PATCH", f"{world.path('mux')}/status", status)


async def test_of_muxes_and_channels_only_what_it_reports_changes(world: MuxWorld, thief: Thief) -> None:
    await world.mux(spec={"loadBalancerSourceRanges": ["192.0.2.0/24"]})
    await world.channel("api", "http:auto")
    spec = "Of the spec of a Service the mux may change the ports only"
    metadata = "Of the metadata of a Service the mux may change its finalizer"
    fields = ("loadBalancerClass", "loadBalancerSourceRanges", "externalTrafficPolicy", "allocateLoadBalancerNodePorts")
    balanced = dict.fromkeys(fields)
    for name in ("mux", "api"):
        path = world.path(name)
        for change in (
            {"selector": {"app": "thief"}},
            {"externalIPs": ["203.0.113.66"]},
            {"type": "ExternalName", "externalName": "thief.example.com", **balanced},
            {"type": "ClusterIP", **balanced},
            {"loadBalancerSourceRanges": ["0.0.0.0/0"]},
            {"loadBalancerIP": "203.0.113.66"},
            {"externalTrafficPolicy": "Local"},
            {"sessionAffinity": "ClientIP"},
            {"publishNotReadyAddresses": True},
        ):
            await thief.refused(spec, "PATCH", path, {"spec": change})
        for changed in (
            {"labels": {"a": "b"}},
            {"annotations": {f"{PREFIX}/allowed-namespaces": "all"}},
            {"annotations": {f"{PREFIX}/external-ports": "http:22"}},
            {"annotations": {"external-dns.alpha.kubernetes.io/hostname": "bank.example.com"}},
            {"finalizers": ["example.com/other"]},
            {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}]},
        ):
            await thief.refused(metadata, "PATCH", path, {"metadata": changed})
    await thief.refused(spec, "PATCH", world.path("api"), {"spec": {"ports": [{"name": "http", "port": 81}]}})
    await thief.send("PATCH", world.path("mux"), {"spec": {"ports": [{"name": "a", "port": 20000}]}})
    await thief.send("PATCH", world.path("mux"), {"metadata": {"finalizers": [f"{PREFIX}/finalizer"]}})
    await thief.send("PATCH", world.path("mux"), {"metadata": {"finalizers": None}})


async def test_the_finalizer_of_another_program_makes_no_mux_of_a_service(world: MuxWorld, thief: Thief) -> None:
    """Many end as the mux's own; an annotation of the same prefix, which mux and admin write, makes it the mux's."""
    plain = {"type": "ClusterIP", "ports": [{"name": "http", "port": 80}]}
    for name, theirs, notes in (
        ("theirs", "other.example/finalizer", {}),
        ("noted", "other.example/finalizer", {"third.example/ports": "x"}),
    ):
        meta = {"name": name, "finalizers": [theirs], "annotations": notes}
        await world.admin.create(world.services(world.team), {"metadata": meta, "spec": plain})
        path = world.path(name)
        words = "those that are marked as muxes"
        await thief.refused(words, "PATCH", path, {"spec": {"ports": [{"name": "http", "port": 22}]}})
        await thief.refused(words, "PATCH", path, {"metadata": {"finalizers": None}})
        await thief.refused(words, "PATCH", path, {"metadata": {"annotations": {"other.example/ports": "x"}}})
        await world.admin.patch(path, {"metadata": {"finalizers": None}})
    await world.mux()
    await world.channel("api", "http:auto")
    metadata = "Of the metadata of a Service the mux may change its finalizer"
    for name in ("mux", "api"):
        path = world.path(name)
        await world.admin.patch(path, {"metadata": {"finalizers": ["other.example/finalizer"]}})
        await thief.refused(metadata, "PATCH", path, {"metadata": {"finalizers": None}})
        await thief.refused(metadata, "PATCH", path, {"metadata": {"annotations": {"other.example/summary": "x"}}})
        await world.admin.patch(path, {"metadata": {"finalizers": None}})
    await thief.refused(metadata, "PATCH", world.path("api"), {"metadata": {"finalizers": [f"{PREFIX}/finalizer"]}})
    await thief.send("PATCH", world.path("api"), {"metadata": {"annotations": {f"{PREFIX}/ports": "http:80->20000"}}})


async def test_a_mux_whose_annotations_are_all_gone_is_released(world: MuxWorld, thief: Thief) -> None:
    await world.mux()
    path = world.path("mux")
    await thief.send("PATCH", path, {"metadata": {"finalizers": [f"{PREFIX}/finalizer"]}})
    await world.admin.patch(path, {"metadata": {"annotations": None}})
    await thief.send("PATCH", path, {"metadata": {"finalizers": None}})


async def test_a_mux_of_another_prefix_is_marked_served_and_released(world: MuxWorld, thief: Thief) -> None:
    notes = {"labs.example.com/multiplexer": "true", "labs.example.com/port-range": "20000-20099"}
    spec = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": [{"name": "a", "port": 101}]}
    meta = {"name": "mux-other", "annotations": notes}
    await world.admin.create(world.services(world.edge), {"metadata": meta, "spec": spec})
    path = world.path("mux-other")
    await thief.send("PATCH", path, {"metadata": {"finalizers": ["labs.example.com/finalizer"]}})
    await world.admin.patch(path, {"metadata": {"annotations": {"labs.example.com/multiplexer": None}}})
    cleared = {"finalizers": None, "annotations": {"labs.example.com/summary": None}}
    await thief.send("PATCH", path, {"metadata": cleared})

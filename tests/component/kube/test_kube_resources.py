"""The typed handles: what they ask the API server for, and what they make of its answers."""

from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from tests.component.kube.apiserver import PODS, ApiServer, Handler, pod, refuse
from vkprovider.api.errors import Conflict, Fenced, Forbidden, Gone, Invalid, NotFound, Unavailable
from vkprovider.kube.api import Api
from vkprovider.kube.client import KubeClient

CONFIG_MAP = "/api/v1/namespaces/home/configmaps/a"
GROUP = "/apis/vkprovider.io/v1alpha1"


@pytest.fixture
def api(kube: KubeClient) -> Api:
    return Api(kube, "home")


def answer(body: object) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response(body)

    return handler


def test_where_each_kind_is_served(api: Api) -> None:
    assert {name: handle.path for name, handle in vars(api).items()} == {
        "config_maps": "/api/v1/namespaces/home/configmaps",
        "secrets": "/api/v1/namespaces/home/secrets",
        "member_leases": "/apis/coordination.k8s.io/v1/namespaces/home/leases",
        "node_leases": "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
        "pods": PODS,
        "nodes": "/api/v1/nodes",
        "runtime_classes": "/apis/node.k8s.io/v1/runtimeclasses",
        "workers": f"{GROUP}/cmlworkers",
        "definitions": f"{GROUP}/labletdefinitions",
    }
    assert api.pods.within("labs").path == "/api/v1/namespaces/labs/pods"


async def test_get_decodes_an_object(server: ApiServer, api: Api) -> None:
    server.next(answer({"metadata": {"name": "a"}, "data": {"key": "value"}}), when=f"GET {CONFIG_MAP}")
    found = await api.config_maps.get("a")
    assert found is not None
    assert found.data == {"key": "value"}


async def test_get_returns_none_for_what_does_not_exist_and_raises_for_the_rest(server: ApiServer, api: Api) -> None:
    server.next(refuse(404, 'configmaps "a" not found'))
    assert await api.config_maps.get("a") is None
    server.next(refuse(403, "no"))
    with pytest.raises(Forbidden):
        await api.config_maps.get("a")
    server.next(refuse(503, "later"))
    with pytest.raises(Unavailable):
        await api.config_maps.get("a")


async def test_an_answer_that_cannot_be_decoded_is_an_error_of_the_tree(server: ApiServer, api: Api) -> None:
    server.next(answer({"metadata": {"name": "a"}, "data": ["no mapping"]}))
    with pytest.raises(Unavailable, match="configmaps/a: the answer cannot be decoded"):
        await api.config_maps.get("a")
    server.next(answer({"kind": "Status"}))
    with pytest.raises(Unavailable, match="not a list"):
        await api.config_maps.list()


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_a_name_that_addresses_something_else_is_never_sent(server: ApiServer, api: Api, name: str) -> None:
    """Deleting the object "" would delete the collection."""
    for act in (api.config_maps.get, api.config_maps.delete):
        with pytest.raises(Invalid, match="is not the name of an object"):
            await act(name)
    assert not server.seen


async def test_names_are_escaped(server: ApiServer, api: Api) -> None:
    paths = []

    async def handler(request: web.Request) -> web.Response:
        paths.append(request.raw_path)
        return web.json_response({"metadata": {"name": "a"}})

    server.next(handler)
    await api.config_maps.get("a/b?c")
    assert paths == ["/api/v1/namespaces/home/configmaps/a%2Fb%3Fc"]


async def test_list_reads_every_page(server: ApiServer, api: Api) -> None:
    for number in range(5):
        await server.put(pod(f"p{number}"))
    pods = await api.pods.list(labels="app=netlab", fields="spec.nodeName!=", page_size=2)
    assert [found.metadata.name for found in pods] == ["p0", "p1", "p2", "p3", "p4"]
    selectors = {"labelSelector": "app=netlab", "fieldSelector": "spec.nodeName!=", "limit": "2"}
    assert [seen.query for seen in server.lists()] == [
        selectors,
        {**selectors, "continue": "2"},
        {**selectors, "continue": "4"},
    ]


async def test_pages_are_read_one_at_a_time(server: ApiServer, api: Api) -> None:
    for number in range(5):
        await server.put(pod(f"p{number}"))
    async for page in api.pods.pages(page_size=2):
        assert len(page) == 2
        break
    assert len(server.lists()) == 1


async def test_a_list_that_fails_half_way_is_not_a_shorter_list(server: ApiServer, api: Api) -> None:
    for number in range(3):
        await server.put(pod(f"p{number}"))
    server.next(refuse(410, "the continue token is too old"), when="continue=2")
    with pytest.raises(Gone):
        await api.pods.list(page_size=2)


async def test_an_item_that_cannot_be_decoded_fails_the_list(server: ApiServer, api: Api) -> None:
    await server.put(pod("good"))
    await server.put({"metadata": {"name": "bad", "namespace": "default"}, "spec": 7})
    with pytest.raises(Unavailable):
        await api.pods.list()


async def test_create_and_replace_return_what_the_server_made_of_the_object(server: ApiServer, api: Api) -> None:
    body = {"metadata": {"name": "a", "resourceVersion": "7"}, "data": {"key": "value"}}
    server.next(answer({**body, "metadata": {"name": "a", "uid": "u1"}}))
    created = await api.config_maps.create(body)
    replaced = await api.config_maps.replace(body)
    assert (created.metadata.uid, replaced.metadata.resource_version) == ("u1", "7")
    assert [(seen.method, seen.path, seen.json) for seen in server.seen] == [
        ("POST", "/api/v1/namespaces/home/configmaps", body),
        ("PUT", CONFIG_MAP, body),
    ]


async def test_patches(server: ApiServer, api: Api) -> None:
    body = {"metadata": {"name": "a"}, "status": {"phase": "Running"}}
    await api.definitions.patch("a", body)
    await api.definitions.patch_status("a", body, resource_version="7")
    await api.nodes.patch_status("a", body, strategic=True, uid="u1")
    held = [{"name": "a"}, {"name": "a", "resourceVersion": "7"}, {"name": "a", "uid": "u1"}]
    assert [(s.method, s.path, s.headers["Content-Type"], s.json) for s in server.seen] == [
        ("PATCH", f"{GROUP}/labletdefinitions/a", "application/merge-patch+json", {**body, "metadata": held[0]}),
        ("PATCH", f"{GROUP}/labletdefinitions/a/status", "application/merge-patch+json", {**body, "metadata": held[1]}),
        ("PATCH", "/api/v1/nodes/a/status", "application/strategic-merge-patch+json", {**body, "metadata": held[2]}),
    ]


async def test_a_patch_of_another_object_of_that_name_is_a_conflict(server: ApiServer, api: Api) -> None:
    immutable = 'Pod "a" is invalid: metadata.uid: Invalid value: "u1": field is immutable'
    server.next(refuse(422, immutable), times=2)
    with pytest.raises(Conflict):
        await api.nodes.patch("a", {}, uid="u1")
    with pytest.raises(Invalid):
        await api.nodes.patch("a", {"metadata": {"uid": "u1"}})
    server.next(refuse(422, 'Pod "a" is invalid: spec.taints: Required value'))
    with pytest.raises(Invalid):
        await api.nodes.patch("a", {}, uid="u1")


async def test_deletion(server: ApiServer, api: Api) -> None:
    assert await api.pods.within("default").delete("a", uid="u1", resource_version="7", grace_s=0)
    options = server.seen[0].json
    assert options["preconditions"] == {"uid": "u1", "resourceVersion": "7"}
    assert options["gracePeriodSeconds"] == 0
    server.next(refuse(404, "not found"))
    assert not await api.nodes.delete("a")
    server.next(refuse(409, "the UID in the precondition does not match"))
    with pytest.raises(Conflict):
        await api.nodes.delete("a", uid="u1")


async def test_metadata_only_asks_for_no_more(server: ApiServer, api: Api) -> None:
    handle = api.pods.within("default").metadata_only
    server.next(answer({"metadata": {"name": "a", "resourceVersion": "8"}}))
    assert (await handle.patch_status("a", {"metadata": {}})).metadata.resource_version == "8"
    assert server.seen[0].headers["Accept"] == "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    await server.put(pod("p"))
    assert [found.metadata.name for found in await api.pods.metadata_only.list()] == ["p"]
    assert server.seen[1].headers["Accept"] == "application/json"  # the API server refuses it for lists


async def test_unstructured_keeps_every_field(server: ApiServer, api: Api) -> None:
    stored = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "managedFields": [{}]},
        "immutable": True,
    }
    server.next(answer(stored))
    found = await api.config_maps.unstructured.get("a")
    assert found == stored
    await api.config_maps.unstructured.replace(found)
    assert server.seen[1].json == stored


async def test_the_guard_stops_every_verb(server: ApiServer, api: Api) -> None:
    def guard() -> None:
        raise Fenced("another replica owns the node")

    body = {"metadata": {"name": "a"}}
    acts: list[Callable[[], Awaitable[object]]] = [
        lambda: api.nodes.get("a", guard=guard),
        lambda: api.nodes.create(body, guard=guard),
        lambda: api.nodes.replace(body, guard=guard),
        lambda: api.nodes.patch("a", body, guard=guard),
        lambda: api.nodes.patch_status("a", body, guard=guard),
        lambda: api.nodes.delete("a", guard=guard),
        lambda: api.nodes.list(guard=guard),
    ]
    for act in acts:
        with pytest.raises(Fenced):
            await act()
    assert not server.seen


async def test_writing_to_what_does_not_exist_is_an_error(server: ApiServer, api: Api) -> None:
    server.next(refuse(404, "not found"), times=2)
    with pytest.raises(NotFound):
        await api.config_maps.replace({"metadata": {"name": "a"}})
    with pytest.raises(NotFound):
        await api.nodes.patch("a", {})

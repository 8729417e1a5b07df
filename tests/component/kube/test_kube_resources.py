"""The typed handles on the real API server: what they ask for, and what they make of its answers."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tests.component.kube.pods import Pods
from tests.support.apiserver import GROUP
from tests.support.faultyapi import FaultyApi
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Conflict, Fenced, Forbidden, Gone, Invalid, NotFound, Unavailable
from vkprovider.platform.kube.api import Api
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.objects import Pod

PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


@pytest.fixture
def handles(client: KubeClient, pods: Pods) -> Api:
    return Api(client, pods.namespace, "logins")


@pytest.fixture
def found(handles: Api, pods: Pods) -> Resource[Pod]:
    """The handle of the namespace's Pods."""
    return handles.pods.within(pods.namespace)


def config_map(name: str = "a", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_where_each_kind_is_served(handles: Api, pods: Pods) -> None:
    home = f"namespaces/{pods.namespace}"
    assert {name: handle.path for name, handle in vars(handles).items()} == {
        "config_maps": f"/api/v1/{home}/configmaps",
        "secrets": "/api/v1/namespaces/logins/secrets",
        "endpoint_slices": f"/apis/discovery.k8s.io/v1/{home}/endpointslices",
        "member_leases": f"/apis/coordination.k8s.io/v1/{home}/leases",
        "node_leases": "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
        "pods": "/api/v1/pods",
        "env_pods": "/api/v1/pods",
        "nodes": "/api/v1/nodes",
        "runtime_classes": "/apis/node.k8s.io/v1/runtimeclasses",
        "workers": f"{GROUP}/cmlworkers",
        "definitions": f"{GROUP}/labletdefinitions",
        "namespaces": "/api/v1/namespaces",
        "service_accounts": "/api/v1/serviceaccounts",
        "roles": "/apis/rbac.authorization.k8s.io/v1/roles",
        "role_bindings": "/apis/rbac.authorization.k8s.io/v1/rolebindings",
        "self_reviews": "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    }
    assert handles.pods.within("labs").path == "/api/v1/namespaces/labs/pods"


async def test_every_kind_is_served_there(handles: Api) -> None:
    for name, handle in vars(handles).items():
        if name == "self_reviews":
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            assert await handle.create(body)  # it can only be created
        else:
            assert isinstance(await handle.list(), list)


async def test_create_get_and_replace_return_the_object(api: FaultyApi, handles: Api) -> None:
    created = await handles.config_maps.create(config_map(key="value"))
    got = await handles.config_maps.get("a")
    assert got is not None
    assert (created.metadata.uid, got.data) == (got.metadata.uid, {"key": "value"})
    body = config_map(key="other")
    body["metadata"]["resourceVersion"] = got.metadata.resource_version
    replaced = await handles.config_maps.replace(body)
    assert (replaced.metadata.uid, replaced.data) == (got.metadata.uid, {"key": "other"})
    assert int(replaced.metadata.resource_version) > int(got.metadata.resource_version)
    with pytest.raises(Conflict):
        await handles.config_maps.replace(body)
    with pytest.raises(Conflict):
        await handles.config_maps.create(body | {"metadata": {"name": "a"}})
    path = handles.config_maps.path
    assert [(asked.method, asked.path) for asked in api.asked] == [
        ("POST", path),
        ("GET", f"{path}/a"),
        ("PUT", f"{path}/a"),
        ("PUT", f"{path}/a"),
        ("POST", path),
    ]


async def test_get_returns_none_for_what_does_not_exist_and_raises_for_the_rest(api: FaultyApi, handles: Api) -> None:
    assert await handles.config_maps.get("a") is None
    api.fault("GET", status=403)
    with pytest.raises(Forbidden):
        await handles.config_maps.get("a")
    api.fault("GET", status=503)
    with pytest.raises(Unavailable):
        await handles.config_maps.get("a")


async def test_an_answer_that_cannot_be_decoded_is_an_error_of_the_tree(api: FaultyApi, handles: Api) -> None:
    await handles.config_maps.create(config_map())
    api.fault("GET", alter=lambda body: msgspec.json.encode(msgspec.json.decode(body) | {"data": ["no mapping"]}))
    with pytest.raises(Unavailable, match="configmaps/a: the answer cannot be decoded"):
        await handles.config_maps.get("a")
    api.fault("GET", answer=b'{"kind": "Status"}')
    with pytest.raises(Unavailable, match="not a list"):
        await handles.config_maps.list()


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_a_name_that_addresses_something_else_is_never_sent(api: FaultyApi, handles: Api, name: str) -> None:
    """Deleting the object "" would delete the collection."""
    for act in (handles.config_maps.get, handles.config_maps.delete):
        with pytest.raises(Invalid, match="is not the name of an object"):
            await act(name)
    assert not api.asked


async def test_names_are_escaped(api: FaultyApi, handles: Api) -> None:
    assert await handles.config_maps.get("a/b?c") is None
    assert [asked.raw_path for asked in api.asked] == [f"{handles.config_maps.path}/a%2Fb%3Fc"]


async def test_list_reads_every_page(pods: Pods, found: Resource[Pod]) -> None:
    await pods.add(*(f"p{number}" for number in range(5)), nodeName="n1")
    await pods.add("unbound", nodeName="")
    await pods.add("other", nodeName="n1")
    for name in pods.found:
        if name != "other":
            await pods.change(name, app="netlab")
    listed = await found.list(labels="app=netlab", fields="spec.nodeName!=", page_size=2)
    assert [pod.metadata.name for pod in listed] == ["p0", "p1", "p2", "p3", "p4"]
    selectors = {"labelSelector": "app=netlab", "fieldSelector": "spec.nodeName!=", "limit": "2"}
    queries = [asked.params for asked in pods.lists()]
    assert ["continue" in query for query in queries] == [False, True, True]
    assert all(query | selectors == query for query in queries)


async def test_pages_are_read_one_at_a_time(pods: Pods, found: Resource[Pod]) -> None:
    await pods.add(*(f"p{number}" for number in range(5)))
    async for page in found.pages(page_size=2):
        assert len(page) == 2
        break
    assert len(pods.lists()) == 1


async def test_a_list_that_fails_half_way_is_not_a_shorter_list(pods: Pods, found: Resource[Pod]) -> None:
    await pods.add("a", "b", "c")
    pods.api.fault("continue=", status=410)
    with pytest.raises(Gone):
        await found.list(page_size=2)


async def test_an_item_that_cannot_be_decoded_fails_the_list(pods: Pods, found: Resource[Pod]) -> None:
    await pods.add("good", "bad")

    def spoil(body: bytes) -> bytes:
        answer = json.loads(body)
        answer["items"][0]["spec"] = 7
        return json.dumps(answer).encode()

    pods.api.fault("limit=", alter=spoil)
    with pytest.raises(Unavailable):
        await found.list()


async def test_patches(pods: Pods, api: FaultyApi, found: Resource[Pod]) -> None:
    await pods.add("a")
    uid, version = pods.uid("a"), pods.version("a")
    changed = await found.patch("a", {"metadata": {"annotations": {"x": "y"}}})
    assert changed.metadata.annotations == {"x": "y"}
    with pytest.raises(Conflict):
        await found.patch_status("a", {"status": {"phase": "Running"}}, resource_version=version)
    phase = await found.patch_status(
        "a", {"status": {"phase": "Running"}}, resource_version=changed.metadata.resource_version
    )
    assert phase.metadata.resource_version != changed.metadata.resource_version
    for kind in ("X", "Y"):
        condition = {"type": kind, "status": "True"}
        await found.patch_status("a", {"status": {"conditions": [condition]}}, strategic=True, uid=uid)
    stored = await pods.admin.request("GET", f"{pods.path}/a")
    assert stored["status"]["phase"] == "Running"
    assert {entry["type"] for entry in stored["status"]["conditions"]} == {"X", "Y"}, "merged by type"
    merge, strategic = "application/merge-patch+json", "application/strategic-merge-patch+json"
    assert [(asked.path.removeprefix(pods.path), asked.headers["Content-Type"]) for asked in api.asked] == [
        ("/a", merge),
        ("/a/status", merge),
        ("/a/status", merge),
        *[("/a/status", strategic)] * 2,
    ]
    held = [asked.json["metadata"] for asked in api.asked[2:4]]
    assert held == [
        {"resourceVersion": changed.metadata.resource_version},
        {"uid": uid},
    ]


async def test_a_patch_of_another_object_of_that_name_is_a_conflict(
    pods: Pods, api: FaultyApi, found: Resource[Pod]
) -> None:
    await pods.add("a")
    former = pods.uid("a")
    await pods.remove("a")
    await pods.add("a")
    with pytest.raises(Conflict):
        await found.patch("a", {"metadata": {"labels": {"x": "y"}}}, uid=former)
    # The API server may report it as a field that cannot change (validation before precondition).
    api.fault("PATCH", status=422, message='Pod "a" is invalid: metadata.uid: Invalid value: "u1": field is immutable')
    with pytest.raises(Conflict):
        await found.patch("a", {}, uid="u1")
    with pytest.raises(Invalid):
        await found.patch("a", {"spec": {"containers": [{"name": "lab", "image": ""}]}}, uid=pods.uid("a"))


async def test_deletion(pods: Pods, api: FaultyApi, found: Resource[Pod]) -> None:
    await pods.add("a")
    version = pods.version("a")
    await pods.change("a")
    with pytest.raises(Conflict):
        await found.delete("a", uid="u1", grace_s=0)
    with pytest.raises(Conflict):
        await found.delete("a", uid=pods.uid("a"), resource_version=version, grace_s=0)
    assert await found.delete("a", uid=pods.uid("a"), resource_version=pods.version("a"), grace_s=0)
    options = api.asked[-1].json
    assert options["preconditions"] == {"uid": pods.uid("a"), "resourceVersion": pods.version("a")}
    assert options["gracePeriodSeconds"] == 0
    assert not await found.delete("a")
    assert await pods.admin.get(f"{pods.path}/a") is None


async def test_metadata_only_asks_for_no_more(pods: Pods, api: FaultyApi, found: Resource[Pod]) -> None:
    await pods.add("p")
    bodies: list[bytes] = []

    def keep(body: bytes) -> bytes:
        bodies.append(body)
        return body

    api.fault("PATCH", alter=keep)
    patched = await found.metadata_only.patch_status("p", {"status": {"phase": "Running"}})
    assert int(patched.metadata.resource_version) > int(pods.version("p"))
    assert json.loads(bodies[0])["kind"] == "PartialObjectMetadata"
    assert api.asked[0].headers["Accept"] == PARTIAL
    api.fault("GET", alter=keep)
    assert [pod.metadata.name for pod in await found.metadata_only.list()] == ["p"]
    assert json.loads(bodies[1])["kind"] == "PartialObjectMetadataList"


async def test_one_page_leads_to_the_next(pods: Pods, found: Resource[Pod]) -> None:
    for name in ("a", "b", "c"):
        await pods.add(name)
    first, after = await found.page(labels="", page_size=2, after="")
    rest, end = await found.page(labels="", page_size=2, after=after)
    assert ([pod.metadata.name for pod in first], [pod.metadata.name for pod in rest]) == (["a", "b"], ["c"])
    assert (bool(after), end) == (True, "")
    with pytest.raises(Invalid):
        await found.page(labels="", page_size=2, after="nonsense")


async def test_unstructured_keeps_every_field(handles: Api) -> None:
    stored = await handles.config_maps.unstructured.create(config_map() | {"binaryData": {"x": "AAEC"}})
    found = await handles.config_maps.unstructured.get("a")
    assert found == stored
    assert "managedFields" in found["metadata"]
    found["metadata"]["labels"] = {wellknown.LABEL_MANAGED_BY: "test"}
    replaced = await handles.config_maps.unstructured.replace(found)
    assert (replaced["binaryData"], replaced["metadata"]["labels"]) == ({"x": "AAEC"}, found["metadata"]["labels"])


async def test_the_guard_stops_every_verb(api: FaultyApi, handles: Api) -> None:
    def guard() -> None:
        raise Fenced("another replica owns the node")

    body = {"metadata": {"name": "a"}}
    acts: list[Callable[[], Awaitable[object]]] = [
        lambda: handles.nodes.get("a", guard=guard),
        lambda: handles.nodes.create(body, guard=guard),
        lambda: handles.nodes.replace(body, guard=guard),
        lambda: handles.nodes.patch("a", body, guard=guard),
        lambda: handles.nodes.patch_status("a", body, guard=guard),
        lambda: handles.nodes.delete("a", guard=guard),
        lambda: handles.nodes.list(guard=guard),
    ]
    for act in acts:
        with pytest.raises(Fenced):
            await act()
    assert not api.asked


async def test_writing_to_what_does_not_exist_is_an_error(handles: Api) -> None:
    with pytest.raises(NotFound):
        await handles.config_maps.replace(config_map() | {"metadata": {"name": "a", "resourceVersion": "7"}})
    with pytest.raises(NotFound):
        await handles.config_maps.patch("a", {})

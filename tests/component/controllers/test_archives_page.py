"""What learners left, on the page: for whom it is, what is selected, and nothing of another namespace."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import Running
from tests.component.controllers.test_archive import keep
from tests.support.apiserver import CONFIG_MAPS
from tests.support.topologies import topology
from vkprovider.lablet.archives import Leftovers, Verdict
from vkprovider.labs.pure.lablet import leftovers

TWO = topology({"r1": "iosv", "r2": "iosv"})
RULES = [{"apiGroups": ["vkprovider.io"], "resources": ["lablets/archive"], "verbs": ["get"]}]
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"


class Caller:
    """A ServiceAccount of a namespace that asks the page."""

    def __init__(self, url: str, token: str, http: aiohttp.ClientSession) -> None:
        self._url, self._token, self._http = url, token, http

    async def get(self, path: str, status: int = 200) -> Any:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        async with self._http.get(self._url + path, headers=headers) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()


async def account(world: World, name: str, *, may: bool) -> str:
    """Make a ServiceAccount, and return a token of it for the page."""
    accounts = f"/api/v1/namespaces/{world.namespace}/serviceaccounts"
    await world.admin.create(accounts, {"metadata": {"name": name}})
    if may:
        within = f"{RBAC}/{world.namespace}"
        subject = {"kind": "ServiceAccount", "name": name, "namespace": world.namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        await world.admin.create(f"{within}/roles", {"metadata": {"name": name}, "rules": RULES})
        binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
        await world.admin.create(f"{within}/rolebindings", binding)
    spec = {"audiences": ["vkprovider.io"], "expirationSeconds": 600}
    made = await world.admin.create(f"{accounts}/{name}/token", {"spec": spec})
    return str(made["status"]["token"])


@pytest.fixture
async def running(world: World) -> Running:
    return await world.replica()


@pytest.fixture
async def caller(world: World, running: Running) -> AsyncIterator[Caller]:
    """May read what learners of the world's namespace left."""
    token = await account(world, "desk", may=True)
    async with running.page() as url, aiohttp.ClientSession() as http:
        yield Caller(url, token, http)


async def lend(world: World, **labels: str) -> Lablet:
    simulator = await world.simulator()
    lablet = await world.pod(await world.define(TWO), await world.worker(simulator.url), labels=labels)
    await lablet.ready()
    await lablet.claim(lambda row: row.get("labId"))
    return lablet


async def store(world: World, namespace: str, number: int, **fields: Any) -> str:
    """Store what a learner left, and return its id."""
    uid = f"{number:08d}-0000-4000-8000-000000000000"
    left = Leftovers(namespace, f"p-{number}", uid, "netlab", "1.0.0", **{"hidden": (), **fields})
    body = leftovers.build(left, namespace="vkprovider-system", installation="i")
    await world.admin.create(CONFIG_MAPS, body)
    return uid


def now_s() -> int:
    return int(datetime.now(UTC).timestamp())


async def test_what_a_learner_left_is_listed_and_read(world: World, running: Running, caller: Caller) -> None:
    lablet = await lend(world, **{"class": "friday"})
    await lablet.annotate(username="alice")
    await lablet.claim(lambda row: row.get("learner") == "alice")
    await lablet.annotate(**{"desired-state": "STOPPED"})
    await eventually(lambda: running.replica.archive.find(lablet.uid), "nothing is kept")
    path = f"/namespaces/{world.namespace}/archives"
    listed = await caller.get(path)
    [entry] = listed["items"]
    assert (entry["id"], entry["pod"], entry["learner"]) == (lablet.uid, lablet.name, "alice")
    assert (entry["labels"]["class"], listed["continue"]) == ("friday", "")
    assert "configs" not in entry, "the work itself is read one by one"
    left = await caller.get(f"{path}/{lablet.uid}")
    assert (left["username"], set(left["configs"])) == ("alice", {"r1", "r2"})


async def test_what_an_earlier_learner_left_has_an_id_of_its_own(
    world: World, running: Running, caller: Caller
) -> None:
    lablet = await lend(world)
    await keep(running, lablet, "r1", username="alice")
    world.ahead_s += 60
    await keep(running, lablet, "r2", username="bob")
    path = f"/namespaces/{world.namespace}/archives"
    ids = {entry["learner"]: entry["id"] for entry in (await caller.get(path))["items"]}
    assert ids["bob"] == lablet.uid
    assert (await caller.get(f"{path}/{ids['alice']}"))["username"] == "alice"


async def test_entries_are_selected_and_come_in_pages(world: World, caller: Caller) -> None:
    path, at = f"/namespaces/{world.namespace}/archives", now_s()
    passed = Verdict(passed=True, message="score 9 of 10")
    friday, monday = {"class": "friday"}, {"class": "monday"}
    first = await store(world, world.namespace, 1, username="alice", at=at + 10, labels=friday, grade=passed)
    second = await store(world, world.namespace, 2, username="bob", at=at + 20, labels=friday)
    third = await store(world, world.namespace, 3, username="alice", at=at + 30, labels=monday)

    async def ids(query: str) -> list[str]:
        return [entry["id"] for entry in (await caller.get(f"{path}?{query}"))["items"]]

    since = (datetime.fromtimestamp(at + 20, UTC)).isoformat().replace("+00:00", "Z")
    assert await ids("") == [first, second, third]
    assert await ids("learner=alice") == [first, third]
    assert await ids(f"since={since}") == [second, third]
    assert await ids("labelSelector=" + quote("class in (friday, x),class!=monday")) == [first, second]
    [entry] = (await caller.get(f"{path}?learner=alice&labelSelector=class%3Dfriday"))["items"]
    assert entry["grade"] == {"passed": True, "message": "score 9 of 10"}
    found, after = [], ""
    while True:
        page = await caller.get(f"{path}?limit=1&continue={quote(after)}")
        found += [entry["id"] for entry in page["items"]]
        if not (after := page["continue"]):
            break
        assert len(page["items"]) == 1
    assert found == [first, second, third]
    for query in ("since=monday", "limit=0", "limit=-1", "labelSelector=%3D", "lerner=alice", "continue=nonsense"):
        refused = await caller.get(f"{path}?{query}", 400)
        assert refused["reason"] == "QueryInvalid"
        assert query.partition("=")[0] in refused["message"]


async def test_nothing_of_another_namespace(world: World, caller: Caller) -> None:
    path, at = f"/namespaces/{world.namespace}/archives", now_s() + 10
    mine = await store(world, world.namespace, 1, username="alice", at=at)
    other = await store(world, f"{world.namespace}-b", 2, username="bob", at=at)
    assert [entry["id"] for entry in (await caller.get(path))["items"]] == [mine]
    for id_ in (other, "00000009-0000-4000-8000-000000000000", "x", f"{mine}-1"):
        assert (await caller.get(f"{path}/{id_}", 404))["reason"] == "ArchiveUnknown"
    for theirs in (f"/namespaces/{world.namespace}-b/archives", f"/namespaces/{world.namespace}-b/archives/{other}"):
        refused = await caller.get(theirs, 403)
        assert "--clusterrole=vkprovider-archive" in refused["message"]
        assert "bob" not in str(refused)


async def test_who_may_not_learns_nothing(world: World, running: Running) -> None:
    path = f"/namespaces/{world.namespace}/archives"
    mine = await store(world, world.namespace, 1, username="alice", at=now_s() + 10)
    token = await account(world, "stranger", may=False)
    async with running.page() as url, aiohttp.ClientSession() as http:
        stranger = Caller(url, token, http)
        refused = [await stranger.get(f"{path}{end}", 403) for end in ("", f"/{mine}", "/x")]
        assert len({answer["message"] for answer in refused}) == 1, "not even whether there is something"
        assert (await Caller(url, "", http).get(path, 401))["reason"] == "TokenMissing"


async def test_nothing_of_a_namespace_that_is_gone(world: World, caller: Caller) -> None:
    path = f"/namespaces/{world.namespace}/archives"
    before = int((datetime.now(UTC) - timedelta(days=1)).timestamp())
    id_ = await store(world, world.namespace, 1, username="alice", at=before)
    assert (await caller.get(path))["items"] == []
    await caller.get(f"{path}/{id_}", 404)


async def test_any_number_of_labels_of_a_pod_can_be_kept(world: World, caller: Caller) -> None:
    many = {f"{'k' * 50}{number}": "v" * 60 for number in range(3000)}
    await store(world, world.namespace, 1, username="alice", at=now_s() + 10, labels={**many, "class": "friday"})
    listed = await caller.get(f"/namespaces/{world.namespace}/archives?labelSelector=class%3Dfriday")
    assert [entry["learner"] for entry in listed["items"]] == ["alice"]

"""Who may do what at the page of the portal, with real tokens and rights (R002-004, 005, 009-012, 025, 036, 037)."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from tests.component.controllers.looking import eventually, when
from tests.component.portal.page.harness import SPAWNER, PageWorld, Running
from tests.component.portal.people import HUB_ROLE, RBAC, USER_ROLE
from tests.support.apiserver import SYSTEM
from tests.support.faultyapi import Asked
from vkprovider.platform import wellknown
from vkprovider.portal.api import callers
from vkprovider.portal.pure import portalnames

SECRET = "a-secret-that-only-the-ingress-knows"
BY_HEADERS = {"VKPROVIDER_PORTAL_CALLERS": "headers", "VKPROVIDER_PORTAL_INGRESS_SECRET": SECRET}
OPTIONS = {"options": {"image_tag": "1.0", "size": "small"}, "env": {"TOKEN": "canary-value"}}
Json = dict[str, Any]


async def ask(
    running: Running, method: str, path: str, headers: dict[str, str] | None = None, body: object = None
) -> httpx.Response:
    async with httpx.AsyncClient(timeout=60) as http:
        return await http.request(method, f"{running.url}{SPAWNER}{path}", headers=headers, json=body)


def routes(user: str) -> list[tuple[str, str, object]]:
    return [
        ("GET", "/labs", None),
        ("GET", f"/labs/{user}", None),
        ("DELETE", f"/labs/{user}", None),
        ("POST", f"/labs/{user}/create", OPTIONS),
        ("GET", f"/labs/{user}/events", None),
        ("POST", f"/labs/{user}/extend", {}),
        ("GET", f"/lab-form/{user}", None),
        ("GET", "/user-status", None),
        ("GET", "/images", None),
        ("GET", "/prepulls", None),
    ]


def detail(answer: httpx.Response) -> Json:
    found = answer.json()["detail"]
    assert len(found) == 1
    only: Json = found[0]
    return only


async def test_a_replica_that_has_not_listed_all_labs_says_of_none_that_it_is_not_there(world: PageWorld) -> None:
    """A console's page would not ask again after a 404."""
    user = world.user("alice")
    alice = await world.person(user, USER_ROLE)
    await world.pod(user, await world.lab(user))
    read = asyncio.Event()
    running = await world.replica(late=(r"GET /api/v1/namespaces\?.*limit=", read))
    first = await ask(running, "GET", "/user-status", alice)
    assert (first.status_code, first.headers["Retry-After"]) == (503, "5")
    assert "does not know all labs yet" in first.text
    read.set()
    await when(lambda: not running.process.unready(), "it is ready")
    assert (await ask(running, "GET", "/user-status", alice)).json()["username"] == user


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer made-up"}, {"Authorization": "Basic YTpi"}])
async def test_nobody_unknown_gets_anything(world: PageWorld, headers: dict[str, str]) -> None:
    running = await world.replica()
    for method, path, body in routes("alice"):
        answer = await ask(running, method, path, headers, body)
        assert answer.status_code == 401, path
        assert detail(answer)["type"] == "invalid_token"
        assert "WWW-Authenticate" in answer.headers
        assert answer.headers["Cache-Control"] == "no-store"
    async with httpx.AsyncClient() as http:
        assert (await http.get(f"{running.url}/nublado/openapi.json")).status_code == 200


async def test_the_description_has_each_route_and_no_other(world: PageWorld) -> None:
    running = await world.replica()
    async with httpx.AsyncClient() as http:
        document = (await http.get(f"{running.url}/nublado/openapi.json")).json()
    verbs = {"get", "post", "delete", "put", "patch"}
    described = {
        (verb.upper(), path.removeprefix("/nublado/spawner/v1"))
        for path, of in document["paths"].items()
        for verb in verbs & of.keys()
    }
    itself = ("GET", "/nublado/openapi.json")
    pools = {
        (method, f"/labs/{{username}}/dask-pool{rest}")
        for method in ("GET", "POST", "DELETE")
        for rest in ("", "/{pool}")
    }
    assert described == {(method, path) for method, path, _ in routes("{username}")} | pools | {itself}


async def test_who_is_known_without_a_right_gets_the_same_answer_whether_a_lab_exists(world: PageWorld) -> None:
    running, user = await world.replica(), world.user("alice")
    await world.lab(user)
    await when(lambda: running.index.lab(user), "the lab is known")
    stranger = await world.person("mallory")
    for (method, path, body), (_, other, _) in zip(routes(user), routes("nobody"), strict=True):
        first, second = [await ask(running, method, each, stranger, body) for each in (path, other)]
        assert first.status_code == second.status_code == 403, path
        assert first.content == second.content
        assert detail(first)["type"] == "permission_denied"
        assert f"{world.people.prefix}mallory', here user 'mallory'" in detail(first)["msg"], "who is it taken for?"


async def test_a_hub_sees_and_deletes_but_creates_for_nobody(world: PageWorld) -> None:
    running, user = await world.replica(), world.user("alice")
    hub = await world.person("hub", HUB_ROLE)
    await world.lab(user)
    await when(lambda: running.index.lab(user), "the lab is known")
    statuses = {}
    for method, path, body in routes(user):
        if method != "DELETE":
            statuses[path.removeprefix(f"/labs/{user}")] = (await ask(running, method, path, hub, body)).status_code
    forbidden = {"/create", "/events", "/extend", f"/lab-form/{user}", "/user-status"}
    assert {path for path, status in statuses.items() if status == 403} == forbidden
    assert {statuses[path] for path in ("/labs", "", "/images", "/prepulls")} == {200}
    for whose in ("hub", user, "nobody"):
        answer = await ask(running, "POST", f"/labs/{whose}/create", hub, OPTIONS)
        assert answer.status_code == 403
    assert (await ask(running, "GET", "/labs/nobody", hub)).status_code == 404
    assert await world.admin.get("/api/v1/namespaces/nublado-nobody") is None


async def test_polls_of_a_hub_cost_no_request_for_each_user(world: PageWorld) -> None:
    running = await world.replica()
    hub = await world.person("hub", HUB_ROLE)
    assert (await ask(running, "GET", "/labs", hub)).status_code == 200
    before = len(running.api.asked)
    for number in range(30):
        assert (await ask(running, "GET", f"/labs/user-{number}", hub)).status_code == 404
    asked = [each.line for each in running.api.asked[before:] if "/leases" not in each.line]
    assert len(asked) <= 2, "the rights of the hub were asked for again, and who it is"


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may ask for more names after a while: on a busy machine the requests of a test take long."""
    monkeypatch.setattr(callers, "_NAMES_PER_S", 0.0001)


async def asked_often(running: Running, method: str, paths: Iterable[str], headers: dict[str, str]) -> Counter[int]:
    """Send requests at once; return how often each status was answered."""
    async with httpx.AsyncClient(timeout=60, headers=headers) as http:
        asked = (http.request(method, f"{running.url}{SPAWNER}{path}") for path in paths)
        return Counter(answer.status_code for answer in await asyncio.gather(*asked))


@pytest.mark.usefixtures("unhurried")
async def test_a_stranger_who_asks_for_many_names_leaves_reviews_for_others(world: PageWorld) -> None:
    """Each name takes a review, and reviews are limited for all callers together."""
    running, user = await world.replica(), world.user("alice")
    stranger, token = await world.person("mallory"), await world.person(user, USER_ROLE)
    statuses = await asked_often(running, "GET", (f"/labs/user-{number}" for number in range(120)), stranger)
    assert statuses == {403: 100, 429: 20}
    assert (await ask(running, "GET", "/user-status", token)).status_code == 404


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize(("method", "path"), [("POST", "extend"), ("GET", "events")])
async def test_how_often_somebody_may_ask_does_not_tell_whether_there_is_a_lab(
    world: PageWorld, method: str, path: str
) -> None:
    running, user = await world.replica(), world.user("alice")
    await world.lab(user, class_="monday")
    await when(lambda: running.index.lab(user), "the lab is known")
    for number, whose in enumerate((user, "nobody")):
        stranger = await world.person(f"mallory-{number}")
        statuses = await asked_often(running, method, [f"/labs/{whose}/{path}"] * 120, stranger)
        assert statuses == {403: 100, 429: 20}, whose


async def test_a_role_may_name_the_users_whose_labs_it_manages(world: PageWorld) -> None:
    running = await world.replica()
    helper = await world.person("helper")
    roles = f"{RBAC}/namespaces/{SYSTEM}"
    name = f"helper-{world.run}"
    rule = {"apiGroups": [wellknown.GROUP], "resources": ["userlabs"], "verbs": ["manage"], "resourceNames": ["ann"]}
    await world.admin.create(f"{roles}/roles", {"metadata": {"name": name}, "rules": [rule]})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "helper", "namespace": world.people.namespace}],
    }
    await world.admin.create(f"{roles}/rolebindings", binding)

    async def allowed() -> bool:
        return (await ask(running, "GET", "/labs/ann", helper)).status_code == 404

    try:
        await eventually(allowed, "the right counts")
        assert (await ask(running, "GET", "/labs/bob", helper)).status_code == 403
        assert (await ask(running, "GET", "/labs", helper)).status_code == 403
    finally:
        await world.admin.delete(f"{roles}/rolebindings/{name}")
        await world.admin.delete(f"{roles}/roles/{name}")


async def test_a_user_reaches_the_own_lab_alone(world: PageWorld) -> None:
    running, alice, bob = await world.replica(), world.user("alice"), world.user("bob")
    token = await world.person(alice, USER_ROLE)
    for user in (alice, bob):
        await world.lab(user)
        await when(lambda user=user: running.index.lab(user), "the lab is known")  # type: ignore[misc]
    for method, path, body in routes(bob):
        if path != "/user-status":
            assert (await ask(running, method, path, token, body)).status_code == 403, path
    answer = await ask(running, "GET", "/user-status", token)
    assert (answer.status_code, answer.json()["username"]) == (200, alice)
    for method, path in (("GET", "/labs"), ("GET", f"/labs/{alice}"), ("DELETE", f"/labs/{alice}")):
        assert (await ask(running, method, path, token)).status_code == 403, path


async def test_the_verb_use_alone_opens_the_routes_of_users(world: PageWorld) -> None:
    running, user = await world.replica(), world.user("alice")
    token = await world.person(user)
    assert (await ask(running, "GET", "/user-status", token)).status_code == 403
    await world.people.allow(user, USER_ROLE)

    async def allowed() -> bool:
        return (await ask(running, "GET", "/user-status", token)).status_code == 404

    await eventually(allowed, "a refusal is remembered for a few seconds alone")


async def teacher_of(world: PageWorld, running: Running, class_: str, user: str) -> dict[str, str]:
    """Make the teacher of a class, in which a user has a lab; return headers with the token once the right counts."""
    token = await world.person("teacher")
    await world.admin.create("/api/v1/namespaces", {"metadata": {"name": class_}})
    rules = [{"apiGroups": [wellknown.GROUP], "resources": ["userlabs"], "verbs": ["teach"]}]
    roles = f"{RBAC}/namespaces/{class_}"
    await world.admin.create(f"{roles}/roles", {"metadata": {"name": "teacher"}, "rules": rules})
    binding = {
        "metadata": {"name": "teacher"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "teacher"},
        "subjects": [{"kind": "ServiceAccount", "name": "teacher", "namespace": world.people.namespace}],
    }
    await world.admin.create(f"{roles}/rolebindings", binding)

    async def allowed() -> bool:
        return (await ask(running, "GET", f"/labs/{user}", token)).status_code == 200

    await eventually(allowed, "the right counts")
    return token


async def test_a_teacher_looks_after_the_labs_of_the_own_class(world: PageWorld) -> None:
    running = await world.replica()
    mine, other, none = (world.user(name) for name in ("ann", "ben", "cat"))
    class_ = f"class-{world.run}"
    for user, of in ((mine, class_), (other, "another"), (none, "")):
        await world.lab(user, class_=of)
        await when(lambda user=user: running.index.lab(user), "the lab is known")  # type: ignore[misc]
    token = await teacher_of(world, running, class_, mine)
    for path, body in ((f"/labs/{mine}/create", OPTIONS), (f"/lab-form/{mine}", None), ("/labs", None)):
        method = "POST" if body else "GET"
        assert (await ask(running, method, path, token, body)).status_code == 403, path
    assert (await ask(running, "POST", f"/labs/{mine}/extend", token, {})).status_code != 403
    for user in (other, none, "nobody"):
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/events"), ("POST", "/extend")):
            answer = await ask(running, method, f"/labs/{user}{path}", token, {} if method == "POST" else None)
            assert answer.status_code == 403, (user, path)


@pytest.mark.parametrize(("method", "path"), [("DELETE", ""), ("POST", "/extend")])
async def test_a_lab_that_changes_class_while_the_right_is_reviewed_stays_as_it_is(
    world: PageWorld, method: str, path: str
) -> None:
    """The right is to labs of the class, and the lab that is there now is of another one."""
    running = await world.replica()
    class_ = f"moving-{world.run}"
    first, moving = world.user("ann"), world.user("ben")
    await world.lab(first, class_=class_)
    pod = await world.pod(moving, await world.lab(moving, class_=class_))
    await when(lambda: all(map(running.index.lab, (first, moving))), "the labs are known")
    await when(lambda: (lab := running.index.lab(moving)) and lab.own_pod, "the Pod is known")
    token = await teacher_of(world, running, class_, first)
    [namespace] = [
        f"/api/v1/namespaces/{lab.record.namespace}" for lab in running.index.of_class(class_) if lab.own_pod
    ]
    before = await world.admin.get(pod)

    async def moves(asked: Asked) -> None:
        if asked.json["spec"]["resourceAttributes"]["verb"] == "teach":
            await world.admin.patch(namespace, {"metadata": {"labels": {portalnames.LABEL_CLASS: "another"}}})
            await when(lambda: running.index.of_class("another"), "the lab is of another class")

    running.api.fault("subjectaccessreviews", count=None, first=moves)
    answer = await ask(running, method, f"/labs/{moving}{path}", token, {} if path else None)
    assert answer.status_code == 404
    assert running.index.of_class("another")
    assert (await world.admin.get(namespace))["metadata"]["annotations"].get(portalnames.ANNOTATION_ENDING) is None  # type: ignore[index]
    assert await world.admin.get(pod) == before


# ------------------------------------------------------------------ headers of an ingress


async def test_headers_count_only_from_the_ingress_and_only_if_the_setting_says_so(world: PageWorld) -> None:
    user = world.user("alice")
    await world.person(user, USER_ROLE)
    spoofed = {"X-Auth-Request-User": user, "X-Auth-Request-Token": "t"}
    proven = {**spoofed, "X-Portal-Ingress-Secret": SECRET}
    by_token = await world.replica()
    assert (await ask(by_token, "GET", "/user-status", proven)).status_code == 401
    by_headers = await world.replica(BY_HEADERS)
    assert (await ask(by_headers, "GET", "/user-status", proven)).status_code == 404
    for wrong in (
        spoofed,
        {**spoofed, "X-Portal-Ingress-Secret": ""},
        {**spoofed, "X-Portal-Ingress-Secret": SECRET[:-1]},
        {**spoofed, "X-Portal-Ingress-Secret": f"{SECRET}x"},
        {**spoofed, "Authorization": f"Bearer {SECRET}"},
        {"X-Portal-Ingress-Secret": SECRET},
        {"X-Portal-Ingress-Secret": SECRET, "X-Auth-Request-User": ""},
    ):
        for method, path, body in routes(user):
            assert (await ask(by_headers, method, path, wrong, body)).status_code == 401, (wrong, path)
    other = {**proven, "X-Auth-Request-User": "somebody-without-the-right"}
    assert (await ask(by_headers, "GET", "/user-status", other)).status_code == 403


async def test_an_ingress_makes_nobody_an_admin_of_the_cluster(world: PageWorld) -> None:
    running = await world.replica({**BY_HEADERS, "VKPROVIDER_PORTAL_USERNAME_PREFIX": ""})
    proof = {"X-Portal-Ingress-Secret": SECRET}
    for headers, status in (
        ({"X-Auth-Request-User": "mallory", "X-Auth-Request-Groups": "a, system:masters"}, 403),
        ({"X-Auth-Request-User": "system:admin"}, 401),
        ({"X-Auth-Request-User": f"system:serviceaccount:{SYSTEM}:vkprovider"}, 401),
    ):
        assert (await ask(running, "GET", "/labs", {**proof, **headers})).status_code == status, headers


async def test_groups_of_the_ingress_count(world: PageWorld) -> None:
    running = await world.replica({**BY_HEADERS, "VKPROVIDER_PORTAL_USERNAME_PREFIX": ""})
    binding = {
        "metadata": {"name": f"{world.people.namespace}-group"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER_ROLE},
        "subjects": [{"kind": "Group", "name": f"students-{world.run}", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    path = f"{RBAC}/namespaces/{SYSTEM}/rolebindings"
    await world.admin.create(path, binding)
    headers = {
        "X-Portal-Ingress-Secret": SECRET,
        "X-Auth-Request-User": "ann",
        "X-Auth-Request-Groups": f"x,students-{world.run}",
    }

    async def allowed() -> bool:
        return (await ask(running, "GET", "/user-status", headers)).status_code == 404

    try:
        await eventually(allowed, "the right of the group counts")
    finally:
        await world.admin.delete(f"{path}/{world.people.namespace}-group")


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ({"Origin": "https://evil.example", "Content-Type": "text/plain"}, True),
        ({"Origin": "https://evil.example", "Content-Type": "application/json"}, True),
        ({"Origin": "null", "Content-Type": "text/plain"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, True),
        ({"Sec-Fetch-Site": "same-site"}, True),
        ({"Content-Type": "text/plain"}, True),
        ({"Content-Type": "application/x-www-form-urlencoded"}, True),
        ({"Sec-Fetch-Site": "same-origin"}, False),
        ({"Origin": "OWN"}, False),
        ({"Content-Type": "application/json"}, False),
        ({}, False),
    ],
)
async def test_behind_an_ingress_no_other_site_changes_anything(
    world: PageWorld,
    said: dict[str, str],
    refused: bool,  # noqa: FBT001 (a column of the table)
) -> None:
    """The ingress lets each request of a browser pass that has its cookie; programs name no origin, and are heard."""
    running, user = await world.replica(BY_HEADERS), world.user("alice")
    await world.person(user, USER_ROLE)
    proven = {"X-Auth-Request-User": user, "X-Portal-Ingress-Secret": SECRET}
    headers = {**proven, **{name: running.url if text == "OWN" else text for name, text in said.items()}}
    for method, path in (("POST", "extend"), ("POST", "create"), ("DELETE", "")):
        async with httpx.AsyncClient(timeout=60) as http:
            url = f"{running.url}{SPAWNER}/labs/{user}/{path}".rstrip("/")
            body = b"" if method == "DELETE" or not said else b"{}"
            answer = await http.request(method, url, headers=headers, content=body)
        assert ("another site" in answer.text) is refused, (method, path, answer.text)
        assert answer.status_code == 403 or not refused

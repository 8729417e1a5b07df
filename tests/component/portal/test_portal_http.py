"""The routes of the portal, answered by whole replicas, on the real API server (R002-012 to R002-037, C41, C42)."""

import asyncio
import base64
import json
from urllib.parse import quote

import httpx
import pytest
from httpx_sse import aconnect_sse

from tests.component.controllers.looking import eventually, when
from tests.component.portal.asking import CANARY, SPAWNER, Client, setting
from tests.component.portal.harness import SOON, PortalWorld
from tests.component.portal.nublado import NubladoSpawner, SpawnError
from tests.component.portal.people import INSTRUCTOR_ROLE, LEARNER_ROLE, RBAC, USER_ROLE, People
from tests.support.apiserver import NODES, SYSTEM
from vkprovider.platform import wellknown
from vkprovider.portal.pure.portalnames import user_key


async def test_a_lab_from_the_form_to_its_end(world: PortalWorld) -> None:
    async with setting(world) as has:
        client, alice, hub = has.client, has.alice, has.hub
        form = await client.ask("GET", "/lab-form/alice", alice)
        assert f'value="{has.family}:1.0.0"' in form.text
        assert (await client.ask("GET", "/user-status", alice)).status_code == 404
        assert (await client.ask("GET", "/labs/alice", hub)).status_code == 404
        assert (await client.ask("DELETE", "/labs/alice", hub)).status_code == 404
        world.stage.boots = False
        answer = await client.ask("POST", "/labs/alice/create", alice, has.body())
        assert answer.status_code == 303
        assert answer.headers["Location"] == f"{SPAWNER}/labs/alice"
        await has.known("pending")
        following = asyncio.create_task(client.follow("alice", alice))
        assert (await client.ask("GET", "/labs", hub)).json() == []
        second = await client.ask("POST", "/labs/alice/create", alice, has.body())
        assert (second.status_code, second.json()["detail"][0]["type"]) == (409, "operation_in_progress")
        world.stage.boots = True
        events = await following
        assert events[0][0] == "progress"
        assert events[1][0] == "info"
        assert events[-2:] == [("progress", "100"), ("complete", "complete")]
        await has.known("running")
        status = (await client.ask("GET", "/user-status", alice)).json()
        assert status == (await client.ask("GET", "/labs/alice", hub)).json()
        assert (status["username"], status["pod"], status["env"]) == ("alice", "present", ["HUB_TOKEN"])
        assert status["options"]["size"] == "small"
        assert status["events"][-1] == {"event": "complete", "data": "complete", "sent": False}
        assert status["ends"].startswith("ends ")
        assert (status["last_activity"], status["exposed"]) == (None, False)
        assert (await client.ask("GET", "/labs", hub)).json() == ["alice"]
        third = await client.ask("POST", "/labs/alice/create", alice, has.body())
        assert (third.status_code, third.json()["detail"][0]["type"]) == (409, "lab_exists")
        extended = await client.ask("POST", "/labs/alice/extend", alice, {"seconds": 600})
        assert extended.json()["ends_at"] > status["ends_at"]
        assert (await client.ask("POST", "/labs/alice/extend", alice)).status_code == 200
        world.stage.stops = False
        assert (await client.ask("DELETE", "/labs/alice", hub)).status_code == 202
        await has.known("terminating")
        following = asyncio.create_task(client.follow("alice", alice))
        await when(lambda: has.running.replica.index.listeners_total, "somebody listens")
        world.stage.stops = True
        assert (await following)[-2:] == [("progress", "100"), ("complete", "complete")]
        await world.until_gone("alice")
        await has.known("missing")


async def test_images_and_prepulls(world: PortalWorld) -> None:
    async with setting(world) as has:
        images = (await has.client.ask("GET", "/images", has.hub)).json()
        assert set(images) == {"recommended", "latest-release", "all"}, "there is no weekly or daily one"
        assert f"{has.family}:1.0.0" in [each["reference"] for each in images["all"]]
        prepulls = (await has.client.ask("GET", "/prepulls", has.hub)).json()
        assert set(prepulls) == {"config", "images", "nodes"}
    async with setting(world, "nublado") as has:
        images = (await has.client.ask("GET", "/images", has.hub)).json()
        assert set(images) == {"recommended", "latest_release", "all"}


async def test_prepulls_know_what_a_node_shows_and_nothing_else(world: PortalWorld) -> None:
    """`status.images` is there with `images: On` of the CMLWorker; without it the images are unknown, never missing."""
    name = f"vnode.images-{world.run}"
    labels = {"vkprovider.io/component": "vnode", "vkprovider.io/env": "default"}
    body = {"metadata": {"name": name, "labels": labels}, "spec": {}}
    ready = {"type": "Ready", "status": "True", "reason": "WorkerReady", "message": ""}
    await world.admin.create(NODES, body)
    await world.admin.patch(f"{NODES}/{name}/status", {"status": {"conditions": [ready]}})
    try:
        async with setting(world) as has:

            async def cached(images: list[str] | None) -> list[str] | None:
                """What `prepulls` says of the Node, once the portal knows that it shows these image definitions."""
                shown = None if images is None else [{"names": [each]} for each in images]
                after = await world.admin.patch(f"{NODES}/{name}/status", {"status": {"images": shown}})
                version = after["metadata"]["resourceVersion"]
                nodes = has.running.replica.objects.nodes.items
                await when(
                    lambda: name in nodes and nodes[name].metadata.resource_version == version, "the portal knows it"
                )
                prepulls = (await has.client.ask("GET", "/prepulls", has.hub)).json()
                [node] = [each for each in prepulls["nodes"] if each["name"] == name]
                found: list[str] | None = node["cached"]
                return found

            reference = f"{has.family}:1.0.0"
            assert await cached(None) is None
            assert reference in (await cached(["cml/alpine-sim", "cml/iosv-sim"]) or ())
            assert await cached(["docker.io/library/busybox:1"]) is None, "these are no image definitions"
    finally:
        await world.admin.delete(f"{NODES}/{name}")


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"{", 422, "json_invalid"),
        (b"\xff", 422, "json_invalid"),
        (b'{"options": {"size": "\xff"}}', 422, "json_invalid"),
        (b'{"options": ' + b"[" * 100_000, 422, "json_invalid"),
        ([], 422, "value_error"),
        ({}, 422, "value_error"),
        ({"options": {}}, 422, "value_error"),
        ({"options": {"image_tag": ["1", "2"]}}, 422, "value_error"),
        ({"options": {"image_tag": "9.9.9"}}, 400, "unknown_image"),
        ({"options": {"image_list": "no-reference"}}, 422, "invalid_docker_reference"),
        ({"options": {"image_type": "recommended", "size": "colossal"}}, 422, "invalid_lab_size"),
        ({"options": {"image_type": "odd"}}, 422, "value_error"),
    ],
)
async def test_what_is_wrong_with_a_request_is_said(world: PortalWorld, body: object, status: int, kind: str) -> None:
    async with setting(world) as has:
        answer = await has.client.ask("POST", "/labs/alice/create", has.alice, body)
        assert (answer.status_code, answer.json()["detail"][0]["type"]) == (status, kind)
        assert answer.json()["detail"][0]["loc"][0] == "body"
        assert await world.admin.get(world.namespace("alice")) is None


async def test_a_quota_is_kept(world: PortalWorld) -> None:
    async with setting(world, config={"quotas": {"default": {"spawn": False}}}) as has:
        answer = await has.client.ask("POST", "/labs/alice/create", has.alice, has.body())
        assert (answer.status_code, answer.json()["detail"][0]["type"]) == (403, "permission_denied")
        assert "quota" in (await has.client.ask("GET", "/lab-form/alice", has.alice)).text


async def test_only_what_a_user_may_use_is_on_the_menu(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_REQUIRE_USE="true") as has:
        client, alice, name = has.client, has.alice, f"{has.family}-small"
        offered = f'value="{has.family}:1.0.0"'
        assert offered not in (await client.ask("GET", "/lab-form/alice", alice)).text
        refused = await client.ask("POST", "/labs/alice/create", alice, has.body())
        assert (refused.status_code, refused.json()["detail"][0]["type"]) == (400, "unknown_image")
        assert await world.admin.get(world.namespace("alice")) is None
        rule = {
            "apiGroups": [wellknown.GROUP],
            "resources": ["labletdefinitions"],
            "verbs": ["use"],
            "resourceNames": [name],
        }
        roles = f"{RBAC}/namespaces/{SYSTEM}/roles"
        await world.admin.create(roles, {"metadata": {"name": name}, "rules": [rule]})
        await world.admin.create(
            f"{RBAC}/namespaces/{SYSTEM}/rolebindings",
            {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": "alice", "namespace": has.people.namespace}],
            },
        )

        async def shown() -> bool:
            return offered in (await client.ask("GET", "/lab-form/alice", alice)).text

        await eventually(shown, "a refusal is forgotten, and the definition is offered")
        assert (await client.ask("POST", "/labs/alice/create", alice, has.body())).status_code == 303
        await has.known("running")


async def test_no_value_of_an_environment_is_said_anywhere(
    world: PortalWorld, capfd: pytest.CaptureFixture[str]
) -> None:
    """Secret values stand in the Secret alone, the token nowhere; answers, Events, logs, other objects have neither."""
    async with setting(world) as has:
        client, alice, hub = has.client, has.alice, has.hub
        options = {"image_list": f"{has.family}:1.0.0"}
        for wrong in (
            {"options": options, "env": CANARY},
            {"options": options, "env": [CANARY]},
            {"options": options, "env": {"A": {"x": CANARY}}},
            {"options": options, "env": {"A": [CANARY]}},
            {"options": options, "env": {"A": CANARY * 20_000}},
            {"options": options, "env": {"A": CANARY + "\0"}},
            {"options": options, "env": {"not a name": CANARY}},
            {"options": {"image_tag": "9.9.9"}, "env": {"A": CANARY}},
            f'{{"options": {{}}, "env": {{"A": "{CANARY}"'.encode(),
            f'{{"env": {{"A": {CANARY}}}}}'.encode(),
        ):
            answer = await client.ask("POST", "/labs/alice/create", alice, wrong)
            assert 400 <= answer.status_code < 500, wrong
        created = await client.ask("POST", "/labs/alice/create", alice, has.body())
        assert created.status_code == 303
        await client.follow("alice", alice)
        await has.known("running")
        await client.ask("POST", "/labs/alice/create", alice, has.body())
        for path, headers in (
            ("/labs", hub),
            ("/labs/alice", hub),
            ("/user-status", alice),
            ("/lab-form/alice", alice),
        ):
            await client.ask("GET", path, headers)
        token = alice["Authorization"].removeprefix("Bearer ")
        found = []
        for kind in ("pods", "configmaps", "events", "serviceaccounts"):
            found += await world.admin.items(f"{world.namespace('alice')}/{kind}")
            found += await world.admin.items(f"/api/v1/namespaces/{SYSTEM}/{kind}")
        found += await world.admin.items("/api/v1/namespaces")
        found += await world.admin.items("/apis/rbac.authorization.k8s.io/v1/namespaces/nublado-alice/rolebindings")
        found += await world.admin.items(f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases")
        secret = await world.admin.get(f"{world.namespace('alice')}/secrets/nb-alice")
        assert secret is not None
        assert base64.b64decode(secret["data"]["HUB_TOKEN"]).decode() == CANARY
        assert set(secret["data"]) == {"HUB_TOKEN"}, "the learner's own token is stored nowhere"
        assert (await client.ask("DELETE", "/labs/alice", hub)).status_code == 202
        await world.until_gone("alice")
        async with httpx.AsyncClient() as http:
            client.texts += [(await http.get(f"{client.url}/{path}")).text for path in ("metrics", "health")]
    out, err = capfd.readouterr()
    assert "lab requested" in out + err
    for text in (*client.texts, json.dumps(found), out, err):
        for secret_text in (CANARY, base64.b64encode(CANARY.encode()).decode(), token):
            assert secret_text not in text


async def test_the_spawner_of_nublado_starts_polls_and_stops(world: PortalWorld) -> None:
    async with setting(world, "nublado") as has:
        spawner = NubladoSpawner(f"{has.client.url}{SPAWNER}", "alice", has.alice, has.hub)
        options = {"image_class": ["recommended"], "size": ["small"]}
        assert "<fieldset>" in await spawner.options_form()
        assert await spawner.poll() == 0
        world.stage.boots = False
        starting = asyncio.create_task(spawner.start(options, {"JUPYTERHUB_SERVICE_PREFIX": "/user/alice"}))

        async def bound() -> bool:
            pod = await world.admin.get(world.pod("alice"))
            return pod is not None and bool(pod["spec"].get("nodeName"))

        await eventually(bound, "the Pod has its Node")
        assert await spawner.poll() is None
        await world.stage.report(world.pod("alice"), {"vkprovider.io/lab-url": "https://cml.test/lab/1"})
        world.stage.boots = True
        assert await starting == "https://cml.test/lab/1"
        assert await spawner.poll() is None
        progress = [each for each, _ in spawner.events]
        assert progress == sorted(progress) or progress[-1] == 75
        assert spawner.events[-1] == (75, "[complete] complete")
        assert not [text for _, text in spawner.events if "unknown" in text]
        await spawner.stop()
        assert await world.admin.get(world.namespace("alice")) is None
        assert await spawner.poll() == 0
        await spawner.stop()
        await spawner.close()


async def test_the_spawner_of_nublado_replaces_an_orphan_and_hears_of_a_failure(world: PortalWorld) -> None:
    async with setting(world, "nublado") as has:
        spawner = NubladoSpawner(f"{has.client.url}{SPAWNER}", "alice", has.alice, has.hub)
        created = await has.client.ask("POST", "/labs/alice/create", has.alice, has.body())
        assert created.status_code == 201
        await has.known("running")
        with pytest.raises(SpawnError, match="no URL"):
            await spawner.start({"image_class": "recommended"}, {})
        assert spawner.events[0][1] == "[warning] Deleting existing orphaned lab"
        answers = await asyncio.gather(*(has.client.ask("DELETE", "/labs/alice", has.hub) for _ in range(5)))
        assert {answer.status_code for answer in answers} <= {204, 404}
        assert 204 in {answer.status_code for answer in answers}
        world.stage.boots = False
        starting = asyncio.create_task(spawner.start({"image_class": "recommended"}, {}))
        await world.stage.fails(world.pod("alice"))
        with pytest.raises(SpawnError):
            await starting
        assert spawner.events[-1][1].startswith("[failed]")
        assert any(text.startswith("[error]") for _, text in spawner.events)
        assert await spawner.poll() == 1
        await spawner.close()


async def test_a_request_that_names_two_images_is_refused_by_nublado_alone(world: PortalWorld) -> None:
    both = {"image_class": "recommended", "image_tag": "1.0.0"}
    async with setting(world, "nublado") as has:
        answer = await has.client.ask("POST", "/labs/alice/create", has.alice, has.body(**both))
        assert answer.status_code == 422
    async with setting(world) as has:
        answer = await has.client.ask("POST", "/labs/alice/create", has.alice, has.body(**both))
        assert answer.status_code == 303


async def test_another_replica_tells_the_end_of_what_a_dead_one_began(world: PortalWorld) -> None:
    """R002-077: any replica answers, and goes on with it."""
    world.takes_over_s = SOON
    async with setting(world) as has:
        other = await world.replica(VKPROVIDER_PORTAL_USERNAME_PREFIX=has.people.prefix)
        there = Client(other, "sqr066")
        world.stage.boots = False
        assert (await has.client.ask("POST", "/labs/alice/create", has.alice, has.body())).status_code == 303
        following = asyncio.create_task(there.follow("alice", has.alice))
        await when(lambda: other.replica.index.listeners_total, "somebody listens")
        await has.running.crash()
        world.stage.boots = True
        events = await following
        assert events[-1] == ("complete", "complete")
        assert len([each for each in events if each[0] == "complete"]) == 1
        assert (await there.ask("DELETE", "/labs/alice", has.hub)).status_code == 202
        await world.until_gone("alice")


async def test_a_warm_lab_is_told_from_the_request_on(world: PortalWorld) -> None:
    family = f"warm-of-{world.run}"
    async with setting(world, config={"images": {"family": family}, "warm": {family: 1}}, family=family) as has:
        index = has.running.replica.index
        await when(lambda: [lab for lab in index.warm() if lab.ready_at], "a warm lab is ready")
        await asyncio.sleep(6)  # it is clearly older than the request
        assert (await has.client.ask("POST", "/labs/alice/create", has.alice, has.body())).status_code == 303
        events = await has.client.follow("alice", has.alice)
        lines = [text for kind, text in events if kind in {"info", "error"}]
        assert lines[0].startswith("Lab asked for")
        assert "The lab's objects are created" not in lines
        assert events[-1] == ("complete", "complete")


async def test_a_teacher_looks_after_the_labs_of_the_class_that_their_users_name(world: PortalWorld) -> None:
    async with setting(world) as has:
        client, class_ = has.client, f"class-of-{has.people.namespace}"
        await world.admin.create("/api/v1/namespaces", {"metadata": {"name": class_}})
        teacher = await has.people.person("teacher")
        await has.people.allow("teacher", INSTRUCTOR_ROLE, class_)
        other = await has.people.person("other")
        await has.people.allow("other", INSTRUCTOR_ROLE)

        async def statuses(who: dict[str, str]) -> tuple[int, int]:
            shown = await client.ask("GET", "/labs/alice", who)
            extended = await client.ask("POST", "/labs/alice/extend", who, {"seconds": 60})
            return shown.status_code, extended.status_code

        assert await statuses(teacher) == (403, 403), "there is no lab"
        await has.people.allow("alice", LEARNER_ROLE, class_)
        chosen = {"image_list": f"{has.family}:1.0.0", "class": class_}
        assert (await client.ask("POST", "/labs/alice/create", has.alice, has.body(**chosen))).status_code == 303
        await has.known("running")
        assert await statuses(teacher) == (200, 200)
        assert await statuses(other) == (403, 403)
        assert (await client.follow("alice", teacher))[-1] == ("complete", "complete")
        assert (await client.ask("DELETE", "/labs/alice", other)).status_code == 403
        assert (await client.ask("DELETE", "/labs/alice", teacher)).status_code == 202
        await world.until_gone("alice")
        world.stage.boots = False
        assert (await client.ask("POST", "/labs/alice/create", has.alice, has.body(**chosen))).status_code == 303
        await world.stage.fails(world.pod("alice"))
        await has.known("failed")
        world.stage.boots = True
        chosen.pop("class")
        assert (await client.ask("POST", "/labs/alice/create", has.alice, has.body(**chosen))).status_code == 303
        await has.known("running")
        assert await statuses(teacher) == (403, 403), "the lab is of no class any more"


@pytest.mark.parametrize("user", ["ann.lee@example.org", "\u00c4nn /x%y", "A", "x" * 300, "nublado-alice"])
async def test_a_user_may_have_any_name(world: PortalWorld, user: str) -> None:
    """Such as the ingress names; the path has it percent-encoded (R002-053)."""
    people = People(world.admin)
    await people.open()
    secret = "a-secret-that-only-the-ingress-knows"
    running = await world.replica(VKPROVIDER_PORTAL_CALLERS="headers", VKPROVIDER_PORTAL_INGRESS_SECRET=secret)
    binding = await people.allow_group(f"group-of-{people.namespace}", USER_ROLE)
    family = await world.define()
    await when(lambda: running.replica.choices.menu().images, "the menu is known")
    client = Client(running, "sqr066")
    named = {
        "X-Portal-Ingress-Secret": secret,
        "X-Auth-Request-User": user,
        "X-Auth-Request-Groups": binding,
        "X-Auth-Request-Token": "token-of-the-ingress",
    }
    path = f"{client.url}{SPAWNER}/labs/{quote(user, safe='')}"
    body = {"options": {"image_list": f"{family}:1.0.0"}}
    encoded = httpx.Headers({key.encode(): text.encode() for key, text in named.items()})
    async with httpx.AsyncClient(timeout=60) as http:
        for site in ("cross-site", "same-site"):
            refused = await http.post(
                f"{path}/create", json=body, headers=[*encoded.raw, (b"Sec-Fetch-Site", site.encode())]
            )
            assert refused.status_code == 403
        created = await http.post(f"{path}/create", json=body, headers=encoded)
        assert created.status_code == 303, created.text
        assert f"{client.url}{created.headers['Location']}" == path
        async with aconnect_sse(http, "GET", f"{path}/events", headers=encoded) as source:
            assert [each.event async for each in source.aiter_sse()][-1] == "complete"
        status = await http.get(f"{client.url}{SPAWNER}/user-status", headers=encoded)
        assert (status.json()["username"], status.json()["status"]) == (user, "running")
    secret_of = await world.admin.get(f"{world.namespace(user)}/secrets/nb-{user_key(user)}")
    assert secret_of is not None
    assert not secret_of.get("data"), "the token of the ingress is stored nowhere"
    await people.close()


async def test_a_class_asks_in_the_same_second(world: PortalWorld) -> None:
    """No learner is told to try again because too many are new to the replica."""
    async with setting(world) as has:
        tokens = await asyncio.gather(*(has.people.person(f"learner-{number}") for number in range(80)))
        answers = await asyncio.gather(*(has.client.ask("GET", "/user-status", token) for token in tokens))
        assert {answer.status_code for answer in answers} == {403}

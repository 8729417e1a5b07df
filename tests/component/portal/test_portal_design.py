"""The design of SQR-066 where no other test shows it: fields, statuses, events and the order of writes."""

import re
from typing import Any

import httpx
import pytest

from tests.component.controllers.looking import eventually, when
from tests.component.portal.asking import SPAWNER, setting
from tests.component.portal.harness import MARK, PortalWorld
from tests.support.apiserver import GROUP, NODES, RUNTIME_CLASSES, SYSTEM

STATUS_FIELDS = {"username", "status", "pod", "options", "env", "uid", "gid", "groups", "quotas", "events"}
IMAGE_FIELDS = {"reference", "tag", "aliases", "name", "digest", "prepulled"}
Json = dict[str, Any]


async def test_a_status_has_the_fields_of_the_design(world: PortalWorld) -> None:
    """R002-014 to R002-017, R002-020, R002-021, R002-037: options come back plain, amounts are bytes and a number."""
    async with setting(world) as has:
        overhead = {"overhead": {"podFixed": {"cpu": "1500m", "memory": "2Gi"}}}
        await world.admin.patch(f"{RUNTIME_CLASSES}/{has.definition}-small", overhead)
        options = {
            "image_list": [f"{has.family}:1.0.0"],
            "size": ["small"],
            "enable_debug": ["true"],
            "reset_user_env": ["false"],
            "duration": ["3600"],
        }
        created = await has.client.ask("POST", "/labs/alice/create", has.alice, has.body(**options))
        assert (created.status_code, created.content) == (303, b"")
        await has.known("running")
        status = (await has.client.ask("GET", "/labs/alice", has.hub)).json()
        assert set(status) == STATUS_FIELDS | {"ends", "ends_at", "exposed", "last_activity"}
        assert status["options"] == {
            "image_list": f"{has.family}:1.0.0",
            "size": "small",
            "enable_debug": True,
            "reset_user_env": False,
            "duration": 3600,
        }
        amounts = {"cpu": 1.5, "memory": 2 * 2**30}
        assert status["quotas"] == {"limits": amounts, "requests": amounts}
        assert (status["uid"], status["gid"], status["groups"]) == (None, None, []), "this token says none"
        assert all(set(each) == {"event", "data", "sent"} for each in status["events"])
        assert {each["event"] for each in status["events"]} == {"progress", "info", "complete"}
        shares = [float(each["data"]) for each in status["events"] if each["event"] == "progress"]
        assert shares == sorted(shares)
        assert 0 <= shares[0] <= shares[-1] == 100
        # R002-027: a stream that begins after the end has the saved events, and ends.
        told = await has.client.follow("alice", has.alice)
        assert told == [(each["event"], each["data"]) for each in status["events"]]


async def test_the_amounts_of_a_lab_without_a_pod_are_those_of_its_size(world: PortalWorld) -> None:
    """R002-014, R002-015: as the example of the design shows them for a lab whose `pod` is `missing`."""
    async with setting(world) as has:
        has.running.api.fault(r"^POST .*/pods$", status=403, message="exceeded quota: labs", count=None)
        assert (await has.client.ask("POST", "/labs/alice/create", has.alice, has.body())).status_code == 303
        await has.known("failed")
        status = (await has.client.ask("GET", "/labs/alice", has.hub)).json()
        amounts = {"cpu": 1, "memory": 2**30}
        assert (status["pod"], status["quotas"]) == ("missing", {"limits": amounts, "requests": amounts})


async def test_a_failed_lab_is_replaced_with_its_pod_and_its_events(world: PortalWorld) -> None:
    """R002-013, R002-015, R002-017, R002-018, R002-023, R002-029, R002-030: the Pod that is there goes first."""
    async with setting(world) as has:
        client, alice = has.client, has.alice
        world.stage.boots = False
        assert (await client.ask("POST", "/labs/alice/create", alice, has.body())).status_code == 303
        await world.stage.fails(world.pod("alice"))
        await has.known("failed")
        failed = (await client.ask("GET", "/labs/alice", has.hub)).json()
        assert failed["pod"] == "present"
        assert [each["event"] for each in failed["events"]][-2:] == ["error", "failed"]
        assert (await client.follow("alice", alice))[-1] == ("failed", "failed")
        assert (await client.ask("GET", "/labs", has.hub)).json() == []
        world.stage.boots = True
        before = len(has.running.writes)
        assert (await client.ask("POST", "/labs/alice/create", alice, has.body())).status_code == 303
        events = await client.follow("alice", alice)
        assert events[-1] == ("complete", "complete")
        assert not {kind for kind, _ in events} & {"error", "failed"}, "nothing is told of the lab before"
        # A step may be repeated.
        pods = dict.fromkeys(line for line in has.running.writes[before:] if re.search(r"/pods(/nb-alice)?$", line))
        base = world.namespace("alice")
        assert list(pods) == [f"DELETE {base}/pods/nb-alice", f"POST {base}/pods"]


async def test_a_deletion_in_vain_leaves_a_failed_lab_that_says_why(world: PortalWorld) -> None:
    """R002-028, R002-032 to R002-034: also without the user, who hears of it."""
    async with setting(world, VKPROVIDER_PORTAL_DELETE_TIMEOUT_SECONDS="3") as has:
        client = has.client
        assert (await client.ask("POST", "/labs/alice/create", has.alice, has.body())).status_code == 303
        await has.known("running")
        world.stage.stops = False
        answer = await client.ask("DELETE", "/labs/alice", has.hub)
        assert (answer.status_code, answer.content) == (202, b"")
        events = await client.follow("alice", has.alice)
        assert events[-1] == ("failed", "failed")
        assert events[0][0] != "complete", "nothing is told of the creation"
        [why] = [text for kind, text in events if kind == "error"]
        assert "not gone within" in why
        await has.known("failed")
        failed = (await client.ask("GET", "/user-status", has.alice)).json()
        assert failed["pod"] == "present"
        assert {"event": "error", "data": why, "sent": False} in failed["events"]
        world.stage.stops = True
        await world.until_gone("alice")
        await has.known("missing")


@pytest.mark.parametrize("dialect", ["sqr066", "nublado"])
@pytest.mark.parametrize(
    "options",
    [
        {"image_type": "recommended", "size": "small"},
        {"image_class": ["latest-release"], "size": ["small"]},
        {"image_tag": "1.0.0", "size": "small"},
    ],
)
async def test_a_bot_needs_two_options(world: PortalWorld, dialect: str, options: Json) -> None:
    """R002-007, R002-050 to R002-052, C42: without a hub, in either dialect, by either name of the key."""
    family = f"bots-of-{world.run}"
    config = {"images": {"family": family, "recommendedTag": "1.0.0"}}
    async with setting(world, dialect, config=config, family=family) as has:
        created = await has.client.ask("POST", "/labs/alice/create", has.alice, {"options": options})
        assert created.status_code == {"sqr066": 303, "nublado": 201}[dialect]
        assert created.headers["Location"] == f"{SPAWNER}/labs/alice"
        await has.known("running")


async def test_a_tag_counts_before_an_image_type(world: PortalWorld) -> None:
    """R002-051."""
    async with setting(world) as has:
        both = {"image_type": "latest-weekly", "image_tag": "1.0.0", "size": "small"}
        assert (await has.client.ask("POST", "/labs/alice/create", has.alice, has.body(**both))).status_code == 303
        await has.known("running")
        neither = await has.client.ask("POST", "/labs/alice/create", has.alice, has.body(size="small"))
        assert neither.status_code == 422


async def test_images_and_prepulls_have_the_fields_of_the_design(world: PortalWorld) -> None:
    """R002-067 to R002-074, C44: what Nodes have, what they lack, and why one does not count."""
    family = f"images-of-{world.run}"
    config = {"images": {"family": family, "recommendedTag": "1.0.0", "numWeeklies": 4, "pins": ["1.0.0"]}}
    labels = {"vkprovider.io/component": "vnode", "vkprovider.io/env": "default"}
    has_it, lacks_it, cordoned = (f"vnode.{each}-{world.run}" for each in ("has", "lacks", "cordoned"))
    ready = {"type": "Ready", "status": "True", "reason": "WorkerReady", "message": ""}
    for name, image in ((has_it, "alpine-sim"), (lacks_it, "iosv-sim"), (cordoned, "iosv-sim")):
        body = {"metadata": {"name": name, "labels": labels}, "spec": {"unschedulable": name == cordoned}}
        await world.admin.create(NODES, body)
        shown = {"conditions": [ready], "images": [{"names": [f"cml/{image}"]}]}
        await world.admin.patch(f"{NODES}/{name}/status", {"status": shown})
    try:
        async with setting(world, config=config, family=family) as has:
            client, hub, reference = has.client, has.hub, f"{family}:1.0.0"
            nodes = has.running.replica.objects.nodes.items
            made = {has_it, lacks_it, cordoned}
            await when(lambda: made <= {name for name in nodes if nodes[name].status.images}, "the Nodes are known")
            devices = {"devices": [{"label": "h0", "imageDefinition": "alpine-sim"}]}
            await world.admin.patch(f"{GROUP}/labletdefinitions/{has.definition}-small/status", {"status": devices})
            other = await world.define()  # its lab has no device, so that every Node has what it needs
            menu = has.running.replica.choices.menu
            await when(lambda: menu().images[0].sizes["small"].image_definitions, "the devices are known")
            images = (await client.ask("GET", "/images", hub)).json()
            for image in (images["recommended"], images["latest-release"], *images["all"]):
                assert set(image) == IMAGE_FIELDS
            assert (images["recommended"]["reference"], images["recommended"]["tag"]) == (reference, "1.0.0")
            assert images["recommended"]["prepulled"] is False

            found = (await client.ask("GET", "/prepulls", hub)).json()
            assert {"recommended_tag", "num_releases", "num_weeklies", "num_dailies", "pins"} <= set(found["config"])
            assert found["config"]["num_weeklies"] == 4
            [pending] = found["images"]["pending"]
            assert set(pending) == {"reference", "tag", "name", "digest", "nodes", "missing"}
            assert (pending["reference"], pending["nodes"], pending["missing"]) == (reference, [has_it], [lacks_it])
            by_name = {node["name"]: node for node in found["nodes"]}
            assert by_name[has_it] == {"name": has_it, "eligible": True, "cached": [reference, f"{other}:1.0.0"]}
            assert by_name[lacks_it] == {"name": lacks_it, "eligible": True, "cached": [f"{other}:1.0.0"]}
            assert set(by_name[cordoned]) == {"name", "eligible", "comment", "cached"}
            assert (by_name[cordoned]["eligible"], by_name[cordoned]["comment"]) == (False, "cordoned")
            form = (await client.ask("GET", "/lab-form/alice", has.alice)).text
            assert _outside_dropdown(form) == [f"{other}:1.0.0", "use_image_from_dropdown"]
            assert f'<option value="{reference}">' in form

            await world.admin.patch(
                f"{NODES}/{lacks_it}/status", {"status": {"images": [{"names": ["cml/alpine-sim"]}]}}
            )

            async def prepulled() -> bool:
                shown = (await client.ask("GET", "/prepulls", hub)).json()["images"]
                return not shown["pending"] and len(shown["prepulled"]) == 2

            await eventually(prepulled, "both have it")
            form = (await client.ask("GET", "/lab-form/alice", has.alice)).text
            assert _outside_dropdown(form) == [reference, f"{other}:1.0.0", "use_image_from_dropdown"]
    finally:
        for name in (has_it, lacks_it, cordoned):
            await world.admin.delete(f"{NODES}/{name}")


async def test_what_a_namespace_without_a_record_has_goes_before_a_lab_is_made_in_it(world: PortalWorld) -> None:
    """R002-024, R002-080: the Pod is stopped, the Secret is another one; nothing of it reaches the new lab."""
    async with setting(world) as has:
        labels = {MARK: SYSTEM, "vkprovider.io/user": "alice"}
        base = world.namespace("alice")
        await world.stranger("nublado-alice", labels, {"vkprovider.io/user": "alice"})
        for kind in ("serviceaccounts", "secrets", "pods"):
            spec = {"spec": {"serviceAccountName": "nb-alice", "containers": [{"name": "lab", "image": "old:1"}]}}
            body = {"metadata": {"name": "nb-alice", "labels": labels}, **(spec if kind == "pods" else {})}
            await world.admin.create(f"{base}/{kind}", body)
        await has.known("failed")
        created = await has.client.ask("POST", "/labs/alice/create", has.alice, has.body())
        assert created.status_code == 303
        await has.known("running")
        # A step may be repeated.
        pods = dict.fromkeys(line for line in has.running.writes if re.search(r"/pods(/nb-alice)?$", line))
        assert list(pods) == [f"DELETE {base}/pods/nb-alice", f"POST {base}/pods"]
        assert set((await world.admin.get(f"{base}/secrets/nb-alice") or {})["data"]) == {"HUB_TOKEN"}


async def test_a_lab_has_no_pools_of_dask_and_says_so(world: PortalWorld) -> None:
    """R002-038, R002-082: decided, and told in the form of all refusals to who may see the lab."""
    async with setting(world) as has:
        for method in ("GET", "POST", "DELETE"):
            for path in ("/labs/alice/dask-pool", "/labs/alice/dask-pool/a"):
                answer = await has.client.ask(method, path, has.alice)
                assert answer.status_code == 404
                [why] = answer.json()["detail"]
                assert why["type"] == "not_supported"
                assert why["msg"].startswith("this portal makes no Dask pools: the children of a lab are its lablet")
                assert (await has.client.ask(method, path.replace("alice", "bob"), has.alice)).status_code == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_menus_are_read_alone(world: PortalWorld, method: str) -> None:
    """R002-075."""
    async with setting(world) as has, httpx.AsyncClient() as http:
        for path in ("images", "prepulls", "labs", "user-status", "lab-form/alice", "labs/alice/events"):
            answer = await http.request(method, f"{has.client.url}{SPAWNER}/{path}", headers=has.hub, json={})
            assert answer.status_code in {404, 405}, path


async def test_every_object_has_the_marks_of_argo_cd_and_the_prefix(world: PortalWorld) -> None:
    """R002-053, R002-065."""
    async with setting(world) as has:
        assert (await has.client.ask("POST", "/labs/alice/create", has.alice, has.body())).status_code == 303
        await has.known("running")
        base, rbac = world.namespace("alice"), "/apis/rbac.authorization.k8s.io/v1/namespaces/nublado-alice"
        found = [await world.admin.get(base) or {}]
        for path in (f"{base}/pods", f"{base}/configmaps", f"{base}/secrets", f"{base}/serviceaccounts"):
            found += await world.admin.items(path)
        found += await world.admin.items(f"{rbac}/rolebindings")
        ours = [each for each in found if each["metadata"]["name"] not in {"default", "kube-root-ca.crt"}]
        assert len(ours) == 7
        for each in ours:
            meta = each["metadata"]
            assert re.match(r"nublado-alice$|nb-alice(-|$)", meta["name"])
            assert meta["annotations"]["argocd.argoproj.io/compare-options"] == "IgnoreExtraneous"
            assert meta["annotations"]["argocd.argoproj.io/sync-options"] == "Prune=false"
            assert meta["labels"]["argocd.argoproj.io/instance"] == "nublado-users"


def _outside_dropdown(form: str) -> list[str]:
    return re.findall(r'<input type="radio" name="image_list"[^>]* value="([^"]*)"', form)

"""A workbench beside a lab, from the request to its end, with the rights and the policy of the portal.

R002-055, 059 to 063, 066 and 081.
"""

import base64
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from tests.component.controllers.looking import eventually
from tests.component.portal.allowing import workbenches_allowed
from tests.component.portal.harness import Json, PortalWorld, Running
from tests.component.portal.wishes import ask
from tests.support.apiserver import MEMBERS, SYSTEM
from tests.support.extra import cmlworker

IMAGE: Final = "registry.example.com/workbench:1"
NAME: Final = "nb-alice-workbench"
COPIED: Final = f"/api/v1/namespaces/{SYSTEM}/secrets"
KEY: Final = base64.b64encode(bytes(32)).decode()
NET: Final = "/apis/networking.k8s.io/v1"
SLICES: Final = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


def config(family: str, **more: Any) -> Json:
    kind: Json = {"image": IMAGE, "egress": [{"cidr": "192.0.2.0/24"}], **more}
    return {"workbenches": {"pyats": kind}, "workbenchOf": {"images": {family: "pyats"}}}


@pytest.fixture
async def benches(world: PortalWorld) -> AsyncIterator[PortalWorld]:
    """A world where workbenches are allowed."""
    async with workbenches_allowed(world.server, world.admin, [IMAGE]):
        yield world
    await world.admin.delete(COPIED + "/vkprovider-workbench")
    for lease in await world.admin.items(MEMBERS):
        if "-provisioned-" in lease["metadata"]["name"]:
            await world.admin.delete(f"{MEMBERS}/{lease['metadata']['name']}")


async def until_bench(world: PortalWorld, user: str = "alice") -> Json:
    async def look() -> Json | None:
        return await world.admin.get(f"{world.namespace(user)}/pods/nb-{user}-workbench")

    found = await eventually(look, f"{user} has a workbench")
    assert found is not None
    return found


async def part(world: PortalWorld, path: str) -> Json:
    found = await world.admin.get(f"{world.namespace('alice')}/{path}")
    assert found is not None, path
    return found


async def test_a_workbench_is_made_with_its_lab_and_ends_with_it(benches: PortalWorld) -> None:
    world, family = benches, f"bench-{benches.run}"
    secret = {"metadata": {"name": "vkprovider-workbench"}, "stringData": {"netrc": "hush", "other": "hidden"}}
    await world.admin.create(COPIED, secret)
    running = await world.replica(config=config(family, secrets=["netrc"]), VKPROVIDER_PORTAL_COOKIE_KEY=KEY)
    await world.define(family)
    await ask(world, running, "alice", family, env={"PASSWORD": "hush"})
    await world.until_phase("alice", "complete")
    pod = await until_bench(world)
    assert pod["metadata"]["labels"]["vkprovider.io/workbench"] == "true"
    [box] = pod["spec"]["containers"]
    assert box["image"] == IMAGE
    assert (await part(world, "configmaps/nb-alice-nss"))["data"]["passwd"].endswith(
        "alice:x:1000:1000::/home/alice:/bin/bash\n"
    )
    copied = (await part(world, f"secrets/{NAME}"))["data"]
    assert set(copied) == {"netrc", "access"}
    assert base64.b64decode(copied["netrc"]) == b"hush"
    binding = await world.admin.get(f"/apis/rbac.authorization.k8s.io/v1/namespaces/nublado-alice/rolebindings/{NAME}")
    assert binding is not None
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": "nublado-alice"}]
    policy = await world.admin.get(f"{NET}/namespaces/nublado-alice/networkpolicies/{NAME}")
    slices = await world.admin.get(f"{SLICES}/kubernetes")
    assert policy is not None
    assert slices is not None
    [address] = slices["endpoints"][0]["addresses"]
    blocks = [peer["ipBlock"]["cidr"] for rule in policy["spec"]["egress"] for peer in rule["to"] if "ipBlock" in peer]
    assert blocks == [f"{address}/32", "192.0.2.0/24"]
    level = (await world.admin.get(world.namespace("alice")) or {})["metadata"]["labels"]
    assert level["pod-security.kubernetes.io/enforce"] == "restricted"
    lablet = await world.admin.get(world.pod("alice"))
    assert lablet is not None
    assert lablet["spec"]["runtimeClassName"] == f"{family}-small", "which the level lets in as well"

    await world.until_unlocked()
    before = running.writes
    await running.replica.requests.delete("alice", "hub")
    await world.until_gone("alice")
    deleted = [line for line in running.writes[len(before) :] if line.startswith("DELETE /api/v1/namespaces/nublado")]
    assert list(dict.fromkeys(deleted)) == [  # a step may be repeated
        f"DELETE /api/v1/namespaces/nublado-alice/pods/{NAME}",
        "DELETE /api/v1/namespaces/nublado-alice/pods/nb-alice",
        "DELETE /api/v1/namespaces/nublado-alice",
    ]


async def test_what_was_deleted_or_evicted_is_made_again_and_a_user_is_provisioned_once(benches: PortalWorld) -> None:
    world, family = benches, f"bench-{benches.run}"
    running = await world.replica(config=config(family, init={"image": IMAGE, "command": ["make-home"]}))
    await world.define(family)
    await ask(world, running, "alice", family)
    await world.until_phase("alice", "complete")
    first = await until_bench(world)
    assert [each["name"] for each in first["spec"]["initContainers"]] == ["provision"]
    path = f"{world.namespace('alice')}/pods/{NAME}"
    await world.admin.until(path, lambda found: "vkprovider.io/provisioned" in found["metadata"].get("annotations", {}))
    lease = await world.admin.get(f"{MEMBERS}/vkprovider-portal-provisioned-alice")
    assert lease is not None
    assert lease["metadata"]["annotations"] == {"vkprovider.io/provisioned-pyats": "true"}
    await world.admin.delete(path, grace_s=0)
    again = await world.admin.until(path, lambda found: found["metadata"]["uid"] != first["metadata"]["uid"])
    assert again is not None
    assert "initContainers" not in again["spec"]
    await world.admin.patch(f"{path}/status", {"status": {"phase": "Failed", "reason": "Evicted"}})
    await world.admin.until(path, lambda found: found["metadata"]["uid"] != again["metadata"]["uid"])
    await running.replica.requests.delete("alice", "hub")
    await world.until_gone("alice")
    await ask(world, running, "alice", family)
    await world.until_phase("alice", "complete")
    assert "initContainers" not in (await until_bench(world))["spec"], "in a new namespace, too"


async def test_the_end_of_the_time_takes_the_workbench_away_while_the_lab_is_collected(benches: PortalWorld) -> None:
    world, family, ahead = benches, f"bench-{benches.run}", [0.0]
    running = await world.replica(config=config(family), wall_ahead_s=lambda: ahead[0])
    await world.define(family)
    await ask(world, running, "alice", family)
    await world.until_phase("alice", "complete")
    await until_bench(world)
    ahead[0] = 4 * 3600.0
    await world.admin.until_gone(f"{world.namespace('alice')}/pods/{NAME}")
    lablet = await world.admin.get(world.pod("alice"))
    assert lablet is not None
    assert not lablet["metadata"].get("deletionTimestamp")


async def told(world: PortalWorld, words: str) -> None:
    async def said() -> bool:
        events = await world.admin.items(f"{world.namespace('alice')}/events")
        return any(each["reason"] == "WorkbenchRefused" and words in each["message"] for each in events)

    await eventually(said, f"an Event says {words}")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image": "registry.example.com/other:1"}, "The images of workbenches are"),
        ({"secrets": ["none"]}, "the Secret vkprovider-workbench in vkprovider-system has no none"),
    ],
)
async def test_a_workbench_that_cannot_be_made_says_why_and_the_lab_goes_on(
    benches: PortalWorld, change: Json, words: str
) -> None:
    world, family = benches, f"bench-{benches.run}"
    running = await world.replica(config=config(family, **change))
    await world.define(family)
    await ask(world, running, "alice", family)
    await world.until_phase("alice", "complete")
    await told(world, words)
    assert await world.admin.get(f"{world.namespace('alice')}/pods/{NAME}") is None


async def test_what_a_quota_refuses_is_told(benches: PortalWorld) -> None:
    """The test plays the controller of quotas, which writes what is used."""
    world, family = benches, f"bench-{benches.run}"
    running = await world.replica(config=config(family))
    await world.define(family)
    await ask(world, running, "alice", family)
    await world.until_phase("alice", "complete")
    await until_bench(world)
    quota = f"{world.namespace('alice')}/resourcequotas/{NAME}"
    found = await world.admin.get(quota)
    assert found is not None
    assert found["spec"]["hard"]["pods"] == "4"
    await world.admin.patch(f"{quota}/status", {"status": {"hard": {"pods": "1"}, "used": {"pods": "1"}}})
    await world.admin.delete(f"{world.namespace('alice')}/pods/{NAME}", grace_s=0)
    await told(world, "exceeded quota")


async def test_a_policy_follows_workers_that_come(benches: PortalWorld) -> None:
    world, family = benches, f"bench-{benches.run}"
    running = await world.replica(config=config(family))
    await world.define(family)
    await ask(world, running, "alice", family)
    await world.until_phase("alice", "complete")
    await until_bench(world)
    node = {"metadata": {"name": "vnode.bench", "labels": {"vkprovider.io/component": "vnode"}}}
    await world.admin.create("/api/v1/nodes", node)
    try:
        addresses = [{"type": "ExternalIP", "address": "192.0.2.9"}]
        await world.admin.patch("/api/v1/nodes/vnode.bench/status", {"status": {"addresses": addresses}})
        path = f"{NET}/namespaces/nublado-alice/networkpolicies/{NAME}"
        await world.admin.until(path, lambda found: "192.0.2.9/32" in str(found["spec"]["egress"]))
        workers = "/apis/vkprovider.io/v1alpha1/cmlworkers"  # we reach it elsewhere than learners do
        spec = cmlworker("bench", "https://192.0.2.77:8443", address="192.0.2.9")
        await world.admin.create(workers, spec)
        await world.admin.until(path, lambda found: "192.0.2.77/32" in str(found["spec"]["egress"]))
    finally:
        await world.admin.delete("/apis/vkprovider.io/v1alpha1/cmlworkers/bench")
        await world.admin.delete("/api/v1/nodes/vnode.bench")


async def test_without_the_setting_nothing_is_different(world: PortalWorld) -> None:
    running: Running = await world.replica()
    family = await world.define()
    await ask(world, running, "alice", family)
    await world.until_phase("alice", "complete")
    namespace = await world.admin.get(world.namespace("alice"))
    assert namespace is not None
    assert not any("pod-security" in key for key in namespace["metadata"]["labels"])
    assert not any("workbench" in line or "networkpolicies" in line for line in running.writes)
    assert [each["metadata"]["name"] for each in await world.pods()] == ["nb-alice"]

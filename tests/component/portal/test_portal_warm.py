"""Warm labs: enough of them are kept, each is taken once, and who finds none starts cold."""

import asyncio

from tests.component.controllers.looking import eventually
from tests.component.portal.harness import Json, PortalWorld, Running
from tests.component.portal.wishes import ask
from vkprovider.portal.pure.facts import UserLab


def config(family: str, number: int) -> Json:
    return {"images": {"family": family}, "warm": {family: number}}


async def until_warm(running: Running, number: int) -> list[UserLab]:
    """Wait until a replica knows exactly so many warm labs that are Ready."""

    async def look() -> list[UserLab] | None:
        found = running.replica.index.warm()
        return found if len(found) == number and all(lab.ready_at for lab in found) else None

    found = await eventually(look, f"{number} warm labs are ready")
    assert found is not None
    return found


async def test_a_user_gets_a_warm_lab_and_another_one_is_made(world: PortalWorld) -> None:
    family = f"warm-{world.run}"
    running = await world.replica(config=config(family, 1))
    await world.define(family, devices=("r1",))
    [waits] = await until_warm(running, 1)
    pod = await world.admin.get(f"/api/v1/namespaces/{waits.record.namespace}/pods/{waits.pod.metadata.name}")  # type: ignore[union-attr]
    assert pod is not None
    assert "vkprovider.io/username" not in pod["metadata"].get("annotations", {})
    assert [each["name"] for each in pod["spec"]["containers"]] == ["lab", "r1"]
    accepted = await ask(world, running, "alice", family, env={"HUB": "hush"})

    async def complete() -> bool:
        lab = running.replica.index.lab("alice")
        return lab is not None and lab.record.outcome is not None and lab.record.outcome.phase == "complete"

    await eventually(complete, "alice has the lab")
    lab = running.replica.index.lab("alice")
    assert lab is not None
    assert lab.record.namespace == waits.record.namespace
    assert await world.admin.get(world.namespace("alice")) is None
    pod = await world.admin.get(f"/api/v1/namespaces/{lab.record.namespace}/pods/{lab.pod.metadata.name}")  # type: ignore[union-attr]
    assert pod is not None
    assert pod["metadata"]["uid"] == waits.pod.metadata.uid  # type: ignore[union-attr]
    assert pod["metadata"]["annotations"]["vkprovider.io/username"] == "alice"
    assert pod["metadata"]["annotations"]["vkprovider.io/timeslot-end"]
    assert pod["metadata"]["labels"]["vkprovider.io/request"] == accepted.request.id
    base = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{lab.record.namespace}/rolebindings"
    bindings = {each["roleRef"]["name"]: each for each in await world.admin.items(base)}
    assert set(bindings) == {"vkprovider-learner", "vkprovider-parameter-reader"}
    assert bindings["vkprovider-learner"]["subjects"][0]["name"] == "alice"
    env_from = pod["spec"]["containers"][0]["envFrom"]
    assert env_from == [{"configMapRef": {"name": f"{waits.pod.metadata.name}-env"}}], "made before anybody asked"  # type: ignore[union-attr]
    await until_warm(running, 1)
    await running.replica.requests.delete("alice", "alice")
    await world.admin.until_gone(f"/api/v1/namespaces/{lab.record.namespace}")
    await world.until_unlocked()


async def test_no_warm_lab_is_taken_twice(world: PortalWorld) -> None:
    """Two replicas, 50 requests at once, 10 warm labs: ten are taken by one each, forty are made."""
    family = f"warm-{world.run}"
    replicas = [await world.replica(config=config(family, 10), LEADER_LEASE_TTL="30") for _ in range(2)]
    await world.define(family)
    for running in replicas:
        await until_warm(running, 10)
    users = [f"user-{number}" for number in range(50)]
    await asyncio.gather(*(ask(world, replicas[number % 2], user, family) for number, user in enumerate(users)))

    async def complete() -> bool:
        labs = replicas[0].replica.index.labs()
        outcomes = [lab.record.outcome for lab in labs]
        return len(labs) == 50 and all(outcome and outcome.phase == "complete" for outcome in outcomes)

    await eventually(complete, "all have a lab")
    pods = [pod for pod in await world.pods() if pod["metadata"]["labels"].get("vkprovider.io/user")]
    owners = [pod["metadata"]["annotations"]["vkprovider.io/username"] for pod in pods]
    assert sorted(owners) == sorted(users)
    taken = [pod for pod in pods if "-warm-" in pod["metadata"]["namespace"]]
    assert len(taken) == 10
    await world.until_unlocked()


async def test_warm_labs_of_an_old_version_are_replaced(world: PortalWorld) -> None:
    family = f"warm-{world.run}"
    running = await world.replica(config=config(family, 2))
    await world.define(family)
    old = await until_warm(running, 2)
    path = f"/apis/vkprovider.io/v1alpha1/labletdefinitions/{family}-small"
    kept = [{"version": version, "digest": version, "resources": {"cpu": "1"}} for version in ("2.0.0", "1.0.0")]
    await world.admin.patch(f"{path}/status", {"status": {"version": "2.0.0", "versions": kept}})

    async def renewed() -> bool:
        found = running.replica.index.warm()
        images = {lab.record.request.definition for lab in found if lab.record.request is not None}
        return len(found) == 2 and images == {f"{family}-small:2.0.0"} and all(lab.ready_at for lab in found)

    await eventually(renewed, "the warm labs run the new version")
    assert not {lab.record.namespace for lab in old} & set(await world.namespaces())

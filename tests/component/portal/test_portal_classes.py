"""Labs of a class: who may attend it, and that its instructors are those of its labs, on the real API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.component.controllers.looking import eventually, when
from tests.component.portal.asking import Setting, setting
from tests.component.portal.harness import PortalWorld, Running
from tests.component.portal.people import INSTRUCTOR_ROLE, LEARNER_ROLE, RBAC
from tests.component.portal.test_portal_warm import config, until_warm
from tests.component.portal.wishes import ask

Json = dict[str, Any]


@asynccontextmanager
async def classes(has: Setting, *names: str) -> AsyncIterator[tuple[str, ...]]:
    """Make namespaces of classes; their bindings are gone afterwards."""
    found = tuple(f"{name}-of-{has.people.namespace}" for name in names)
    for name in found:
        await has.world.admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
    try:
        yield found
    finally:
        for name in found:
            await has.world.admin.delete(f"{RBAC}/namespaces/{name}/rolebindings")


async def subjects(world: PortalWorld, user: str) -> list[str] | None:
    """Return the people whom the RoleBinding `instructors` of a user's lab names; None without one."""
    [namespace] = [
        each["metadata"]["name"]
        for each in await world.admin.items("/api/v1/namespaces")
        if each["metadata"].get("annotations", {}).get("vkprovider.io/user") == user
    ]
    found = await world.admin.get(f"{RBAC}/namespaces/{namespace}/rolebindings/instructors")
    if found is None:
        return None
    assert found["roleRef"]["name"] == "vkprovider-lab-instructor"
    return sorted(each["name"] for each in found.get("subjects") or [])


async def until(world: PortalWorld, user: str, wanted: list[str] | None) -> None:
    async def look() -> bool:
        return await subjects(world, user) == wanted

    try:
        await eventually(look, f"the instructors of {user}'s lab are {wanted}")
    except AssertionError:
        raise AssertionError(f"{wanted} expected, found {await subjects(world, user)}") from None


async def known(running: Running, user: str, class_: str = "") -> None:
    """Wait until a replica knows a lab."""

    def look() -> bool:
        lab = running.replica.index.lab(user)
        return lab is not None and lab.record.class_ == class_

    await when(look, f"the lab of {user} is known")


async def test_only_who_attends_a_class_gets_a_lab_of_it(world: PortalWorld) -> None:
    async with setting(world) as has, classes(has, "friday") as (friday,):
        wish = has.body(image_list=f"{has.family}:1.0.0", **{"class": friday})
        answer = await has.client.ask("POST", "/labs/alice/create", has.alice, wish)
        assert answer.status_code == 403
        [detail] = answer.json()["detail"]
        assert (detail["type"], detail["loc"]) == ("permission_denied", ["body", "options", "class"])
        assert "vkprovider-class-learner" in detail["msg"]
        assert friday in detail["msg"]
        assert await world.admin.get(world.namespace("alice")) is None
        nowhere = has.body(image_list=f"{has.family}:1.0.0", **{"class": "no-such-class"})
        other = await has.client.ask("POST", "/labs/alice/create", has.alice, nowhere)
        assert other.json()["detail"][0]["msg"].replace("no-such-class", friday) == detail["msg"]
        await has.people.allow("alice", LEARNER_ROLE, friday)

        async def admitted() -> bool:
            return (await has.client.ask("POST", "/labs/alice/create", has.alice, wish)).status_code == 303

        await eventually(admitted, "the right counts")
        await world.until_phase("alice", "complete")
        for path in (world.namespace("alice"), world.pod("alice")):
            found = await world.admin.get(path)
            assert found is not None
            assert found["metadata"]["labels"]["vkprovider.io/class"] == friday


async def test_a_warm_lab_gets_the_class_of_its_user(world: PortalWorld) -> None:
    family = f"warm-{world.run}"
    async with setting(world, family=family, config=config(family, 1)) as has, classes(has, "friday") as (friday,):
        await has.people.allow("teacher", INSTRUCTOR_ROLE, friday)
        await until_warm(has.running, 1)
        await ask(world, has.running, "ann", family, class_=friday)
        await until(world, "ann", ["teacher"])

        async def of_ann() -> list[Json]:
            pods = await world.pods()
            return [each for each in pods if each["metadata"]["labels"].get("vkprovider.io/user") == "ann"]

        [pod] = await eventually(of_ann, "the warm Pod is hers")
        assert "warm-" in pod["metadata"]["namespace"]
        assert pod["metadata"]["labels"]["vkprovider.io/class"] == friday


async def test_the_instructors_of_a_class_are_those_of_its_labs(world: PortalWorld) -> None:
    async with setting(world) as has, classes(has, "friday", "monday") as (friday, monday):
        first = await has.people.allow("teacher", INSTRUCTOR_ROLE, friday)
        await has.people.allow("ms-monday", INSTRUCTOR_ROLE, monday)
        await ask(world, has.running, "ann", has.family, class_=friday)
        await ask(world, has.running, "bob", has.family)
        await until(world, "ann", ["teacher"])
        second = await has.people.allow("helper", INSTRUCTOR_ROLE, friday)
        await until(world, "ann", ["helper", "teacher"])
        await world.admin.delete(second)
        await until(world, "ann", ["teacher"])
        # What somebody else changes is set right, also what changed while no replica looked.
        base = f"{RBAC}/namespaces/nublado-ann/rolebindings/instructors"
        more = {"kind": "User", "name": "stranger", "apiGroup": "rbac.authorization.k8s.io"}
        await world.admin.patch(base, {"subjects": [more]})
        await until(world, "ann", ["teacher"])
        await world.admin.delete(base)
        await until(world, "ann", ["teacher"])
        await has.running.crash()
        await has.people.allow("helper-2", INSTRUCTOR_ROLE, friday)
        await world.replica()
        await until(world, "ann", ["helper-2", "teacher"])
        await world.admin.delete(first)
        await until(world, "ann", ["helper-2"])
        await world.admin.delete(f"{RBAC}/namespaces/{friday}/rolebindings")
        await until(world, "ann", None)
        assert await subjects(world, "bob") is None


async def test_an_instructor_opens_consoles_in_the_labs_of_the_class_alone(world: PortalWorld) -> None:
    async with setting(world) as has, classes(has, "friday", "monday") as (friday, monday):
        teacher = f"{has.people.prefix}teacher"
        bound = await has.people.allow("teacher", INSTRUCTOR_ROLE, friday)
        for user, of in (("ann", friday), ("ben", monday), ("cat", "")):
            await ask(world, has.running, user, has.family, class_=of)
            await world.until_phase(user, "complete")

        async def may(user: str, verb: str = "create", resource: str = "pods/exec") -> bool:
            return await world.admin.may(teacher, verb, resource, f"nublado-{user}")

        await eventually(lambda: may("ann"), "the teacher opens consoles of ann")
        for verb, resource in (("create", "pods/attach"), ("patch", "pods"), ("list", "events"), ("get", "pods/log")):
            assert await may("ann", verb, resource), (verb, resource)
        # A Pod, or a token of an account, that is made there could read the Secret with the learner's token.
        for verb, resource in (
            ("create", "pods"),
            ("create", "serviceaccounts/token"),
            ("get", "secrets"),
            ("create", "configmaps"),
            ("patch", "pods/ephemeralcontainers"),
            ("delete", "pods"),
        ):
            assert not await may("ann", verb, resource), (verb, resource)
        for other in ("ben", "cat"):
            assert not await may(other)
            assert not await may(other, "get", "pods")
        await world.admin.delete(bound)

        async def lost() -> bool:
            return not await may("ann")

        async with asyncio.timeout(60):
            await eventually(lost, "the right is gone with the binding")


async def test_a_lab_that_is_made_again_for_no_class_is_bound_to_nobody_before(world: PortalWorld) -> None:
    async with setting(world) as has, classes(has, "friday") as (friday,):
        await has.people.allow("teacher", INSTRUCTOR_ROLE, friday)
        world.stage.boots = False
        await ask(world, has.running, "ann", has.family, class_=friday)
        await until(world, "ann", ["teacher"])
        await world.stage.fails(world.pod("ann"))
        await world.until_phase("ann", "failed")
        await known(has.running, "ann", friday)
        world.stage.boots = True
        has.running.api.asked.clear()
        await ask(world, has.running, "ann", has.family)
        assert await subjects(world, "ann") is None, "the binding goes before the request is accepted"
        # As long as the label names the class, the replica that leads would bind the same people once more.
        writes = [
            (each.method, each.path.partition("?")[0].rpartition("/")[2])
            for each in has.running.api.asked
            if each.method in {"PATCH", "DELETE"}
        ]
        assert writes.index(("PATCH", "nublado-ann")) < writes.index(("DELETE", "instructors"))
        await world.until_phase("ann", "complete")
        assert await subjects(world, "ann") is None


async def test_who_instructs_no_more_loses_the_labs_that_are_ending(world: PortalWorld) -> None:
    """What empties a Namespace may be late, or kept from it by an API that is away."""
    async with setting(world) as has, classes(has, "friday") as (friday,):
        bound = await has.people.allow("teacher", INSTRUCTOR_ROLE, friday)
        await has.people.allow("helper", INSTRUCTOR_ROLE, friday)
        await ask(world, has.running, "ann", has.family, class_=friday)
        await until(world, "ann", ["helper", "teacher"])
        world.stage.empties = False
        await world.admin.delete(world.namespace("ann"))
        index = has.running.replica.index
        await when(lambda: (lab := index.lab("ann")) is not None and lab.record.deleted, "the lab is ending")
        await world.admin.delete(bound)
        await until(world, "ann", ["helper"])
        await world.admin.delete(f"{RBAC}/namespaces/{friday}/rolebindings")
        await until(world, "ann", None)


@pytest.mark.parametrize("kind", ["User", "Group", "ServiceAccount"])
async def test_whom_a_class_names_its_labs_name_in_the_same_way(world: PortalWorld, kind: str) -> None:
    async with setting(world) as has, classes(has, "friday") as (friday,):
        group = "" if kind == "ServiceAccount" else "rbac.authorization.k8s.io"
        subject = {"kind": kind, "name": "the-teachers", **({"apiGroup": group} if group else {"namespace": "schools"})}
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": INSTRUCTOR_ROLE}
        for name in ("one", "two"):  # twice the same
            body = {"metadata": {"name": name}, "roleRef": ref, "subjects": [subject]}
            await world.admin.create(f"{RBAC}/namespaces/{friday}/rolebindings", body)
        of_role = {
            "metadata": {"name": "three"},
            "roleRef": {**ref, "kind": "Role"},
            "subjects": [{**subject, "name": "x"}],
        }
        await world.admin.create(f"{RBAC}/namespaces/{friday}/rolebindings", of_role)
        await ask(world, has.running, "ann", has.family, class_=friday)
        await until(world, "ann", ["the-teachers"])
        found = await world.admin.get(f"{RBAC}/namespaces/nublado-ann/rolebindings/instructors")
        assert found is not None
        assert found["subjects"] == [subject]

"""Which definitions an instructor writes, on a real API server: those of the own class, and no others."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.component.cli.desk import Desk
from tests.component.cli.instructor import RBAC, Instructor
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually, is_ready
from tests.support.apiserver import GROUP
from tests.support.topologies import pod, topology

DEFINITIONS = f"{GROUP}/labletdefinitions"
OWNER = "vkprovider.io/owner-namespace"
LAB = topology({"r1": "alpine"})


def definition(name: str, owner: str = "", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "vkprovider.io/v1alpha1",
        "kind": "LabletDefinition",
        "metadata": {"name": name, "labels": {OWNER: owner} if owner else {}},
        "spec": {"version": "1.0.0", "source": {"inline": LAB}, **spec},
    }


def waits_for(pod: dict[str, Any]) -> str:
    """Why the lab of a Pod waits; "" if it does not."""
    states = [status.get("state", {}) for status in pod.get("status", {}).get("containerStatuses", [])]
    return next((state["waiting"].get("reason", "") for state in states if "waiting" in state), "")


class Class:
    """An instructor of the world's namespace, after the grant, and files of definitions.

    Attributes:
        namespace: That of the class.
    """

    def __init__(self, world: World, instructor: Instructor, folder: Path) -> None:
        self.world, self.instructor, self.folder = world, instructor, folder
        self.namespace = world.namespace

    async def create(self, name: str, owner: str = "", **spec: Any) -> str:
        """Create a definition as the instructor."""
        return await self.instructor.kubectl("create", "-f", self.file(definition(name, owner, **spec)))

    async def patch(self, name: str, **change: Any) -> str:
        """Change a definition as the instructor."""
        body = json.dumps(change)
        return await self.instructor.kubectl("patch", "labletdefinition", name, "--type=merge", "-p", body)

    async def given(self, name: str, owner: str = "", **spec: Any) -> None:
        """Create a definition as an administrator."""
        await self.world.admin.create(DEFINITIONS, definition(name, owner, **spec))

    def file(self, body: dict[str, Any]) -> str:
        path = self.folder / f"{body['metadata']['name']}.json"
        path.write_text(json.dumps(body))
        return str(path)


@pytest.fixture
async def friday(world: World, instructor: Instructor, tmp_path: Path) -> Class:
    """The policy is known to the API server a moment after it was made."""
    await instructor.grant()
    made = Class(world, instructor, tmp_path)

    async def refused() -> bool:
        return "names the namespace that owns it" in await made.create("probe")

    await eventually(refused, "the policy limits an instructor")
    return made


async def test_an_instructor_writes_the_definitions_of_the_class(friday: Class) -> None:
    assert "created" in await friday.create("mine", friday.namespace)
    assert "patched" in await friday.patch("mine", spec={"version": "1.0.1"})
    own = {"configMap": {"namespace": friday.namespace, "name": "x"}, "inline": None}
    assert "patched" in await friday.patch("mine", spec={"source": own})
    assert "deleted" in await friday.instructor.kubectl("delete", "labletdefinition", "mine", "--wait=false")


async def test_another_class_and_the_admins_keep_theirs(friday: Class) -> None:
    await friday.given("others", "monday")
    await friday.given("admins")
    change = {"spec": {"version": "6.6.6"}}
    for name, says in (("others", "belongs to the namespace monday"), ("admins", "belongs to the administrators")):
        for words in (
            ["--type=merge", "-p", json.dumps(change)],
            ["-p", json.dumps({"metadata": {"labels": {OWNER: friday.namespace}}}), "--type=merge"],
        ):
            assert says in await friday.instructor.kubectl("patch", "labletdefinition", name, *words)
        assert says in await friday.instructor.kubectl("delete", "labletdefinition", name, "--wait=false")
        assert says in await friday.instructor.kubectl(
            "annotate", "labletdefinition", name, "vkprovider.io/abandon=true"
        )
        replaced = friday.file(definition(name, friday.namespace))
        assert says in await friday.instructor.kubectl("replace", "-f", replaced)
        left = await friday.world.admin.get(f"{DEFINITIONS}/{name}")
        assert left is not None
        assert (left["spec"]["version"], left["metadata"].get("deletionTimestamp")) == ("1.0.0", None)
    assert "kubectl lablet grant USER -n monday" in await friday.create("new", "monday")
    assert "cannot deletecollection" in await friday.instructor.kubectl("delete", "--raw", DEFINITIONS)


async def test_the_owner_stays(friday: Class) -> None:
    await friday.create("mine", friday.namespace)
    for owner in ("monday", None, ""):
        assert f"stays {friday.namespace}" in await friday.patch("mine", metadata={"labels": {OWNER: owner}})


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"source": {"configMap": {"namespace": "monday", "name": "exam"}}}, "is in the namespace that owns"),
        ({"source": {"objectStore": {"key": "exam.zip"}}}, "only an author"),
        ({"formQualifiedName": "Exam of Monday"}, "only an author"),
        ({"deviceSecretName": "monday"}, "only an author"),
        ({"resources": {"cpu": "1m", "labNodes": 0}}, "only an author"),
        ({"environment": "exam"}, "only an author"),
        ({"lds": {"affinity": "eu"}}, "only an author"),
        ({"expose": {"mux": "labs.edge"}}, "a mux of your namespace"),
        ({"expose": {"mux": "labs"}}, "a mux of your namespace"),
        ({"expose": {"mux": "labs.not-{class}"}}, "a mux of your namespace"),
    ],
)
async def test_what_reaches_beyond_the_class_takes_an_author(friday: Class, spec: dict[str, Any], says: str) -> None:
    """What an admin has set stays possible, and the rest of such a definition can be changed."""
    spec = json.loads(json.dumps(spec).replace("{class}", friday.namespace))
    assert says in await friday.create("mine", friday.namespace, **spec)
    await friday.create("mine", friday.namespace)
    change = {**spec, "source": {"inline": None, **spec["source"]}} if "source" in spec else spec
    assert says in await friday.patch("mine", spec=change)
    await friday.given("set", friday.namespace, **spec)
    assert "patched" in await friday.patch("set", spec={"version": "1.0.1"})


async def test_a_mux_of_the_class_a_default_and_what_is_withdrawn_take_no_author(friday: Class) -> None:
    own = {"expose": {"mux": f"labs.{friday.namespace}"}, "environment": "default", "lds": {"enabled": False}}
    assert "created" in await friday.create("mine", friday.namespace, **own)
    assert "a mux of your namespace" in await friday.patch("mine", spec={"expose": {"mux": "labs.edge"}})
    await friday.given("set", friday.namespace, expose={"mux": "labs.edge", "ports": ["r1:serial"]}, environment="exam")
    assert "a mux of your namespace" in await friday.patch("set", spec={"expose": {"ports": None}})
    assert "only an author" in await friday.patch("set", spec={"environment": "other"})
    assert "patched" in await friday.patch("set", spec={"expose": None, "environment": "default"})


@pytest.mark.parametrize("spec", [{"resources": {"labNodes": 0}}, {"deviceSecretName": "monday"}])
async def test_what_an_author_gives_goes_with_the_topology_that_it_was_given_for(
    friday: Class, spec: dict[str, Any]
) -> None:
    """Another topology would be charged as little, or show the Secret."""
    await friday.given("set", friday.namespace, **spec)
    [field] = spec
    own = {"configMap": {"namespace": friday.namespace, "name": "x"}, "inline": None}
    for source in ({"inline": LAB + "# larger"}, own):
        assert "make a definition of another name" in await friday.patch("set", spec={"source": source})
    assert "patched" in await friday.patch("set", spec={"version": "1.0.1"})
    assert "patched" in await friday.patch("set", spec={"source": own, field: None})


async def test_a_topology_is_read_by_its_class_alone(world: World, friday: Class, desk: Desk, tmp_path: Path) -> None:
    """By no way that the API has for another instructor; once it is shared, by all."""
    monday = Instructor(world, desk, tmp_path, name="colleague", namespace="default")
    await monday.begin()
    await monday.grant()
    await world.replica()
    name, file = world.name("exam"), tmp_path / "exam.yaml"
    file.write_text(LAB + "\n# the solution is 42\n")
    define = ("lablet", "define", str(file), "--name", name)
    try:
        assert f"{name} of namespace {friday.namespace}: 1 device, makes 1.0.0" in await friday.instructor.kubectl(
            *define, "--dry-run"
        )
        assert "version 1.0.0 made" in await friday.instructor.kubectl(*define)
        assert "is as it was" in await friday.instructor.kubectl(*define)
        file.write_text(file.read_text() + "# and 43\n")
        assert "--version 1.0.1" in await friday.instructor.kubectl(*define)
        assert "version 1.0.1 changed" in await friday.instructor.kubectl(*define, "--version", "1.0.1")
        made = await world.admin.get(f"{DEFINITIONS}/{name}")
        assert made is not None
        kept = made["spec"]["source"]["configMap"]
        assert (kept["namespace"], "inline" in made["spec"]["source"]) == (friday.namespace, False)
        held = await world.admin.get(f"/api/v1/namespaces/{friday.namespace}/configmaps/{kept['name']}")
        assert held is not None
        assert held["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"], "it ends with the definition"

        everything = await monday.kubectl("get", "labletdefinitions", "-o", "yaml")
        assert f"name: {name}" in everything
        assert "solution" not in everything
        for words in (
            ["get", "configmap", kept["name"], "-n", friday.namespace],
            ["get", "configmaps", "-A"],
            ["get", "configmaps", "-n", "vkprovider-system"],
            ["patch", "labletdefinition", name, "--type=merge", "-p", '{"spec": {"version": "2"}}'],
        ):
            assert "forbidden" in await monday.kubectl(*words), words
        assert f"belongs to the class of namespace {friday.namespace}" in await monday.kubectl(*define)
        stolen = definition("stolen", "default", source={"configMap": kept})
        assert "is in the namespace that owns" in await monday.kubectl("create", "-f", friday.file(stolen))

        accounts, pods = (f"/api/v1/namespaces/default/{kind}" for kind in ("serviceaccounts", "pods"))
        if await world.admin.get(f"{accounts}/default") is None:
            await world.admin.create(accounts, {"metadata": {"name": "default"}})
        stray = pod(f"p-{name}", name)
        stray["spec"]["nodeName"] = f"vnode.{await world.worker()}"
        await world.admin.create(pods, stray)
        path = f"{pods}/{stray['metadata']['name']}"
        await world.admin.until(path, lambda found: waits_for(found) == "DefinitionNotShared")

        assert "version 1.0.1 changed" in await friday.instructor.kubectl(*define, "--shared")
        await world.admin.until(path, is_ready)
        await world.admin.delete(path)
        await world.admin.until_gone(path)
        assert "the solution is 42" in await monday.kubectl("get", "labletdefinition", name, "-o", "yaml")
    finally:
        await monday.end()


async def test_a_definition_of_an_admin_is_inline_as_before(world: World, desk: Desk, tmp_path: Path) -> None:
    await world.replica()
    name, file = world.name("course"), tmp_path / "course.yaml"
    file.write_text(LAB)
    await desk.succeeds("define", str(file), "--name", name)
    made = await world.admin.get(f"{DEFINITIONS}/{name}")
    assert made is not None
    assert made["spec"]["source"] == {"inline": LAB}
    assert OWNER not in made["metadata"].get("labels", {})


async def test_others_are_not_limited(friday: Class, desk: Desk) -> None:
    """Authors, and a role that was made by hand before there were instructors, write as before."""
    path = f"{RBAC}/clusterroles"
    by_hand = {"apiGroups": ["vkprovider.io"], "resources": ["labletdefinitions"]}
    verbs = ["get", "create", "update", "patch", "delete"]
    await friday.world.admin.create(
        path, {"metadata": {"name": "vkprovider-instructor-by-hand"}, "rules": [{**by_hand, "verbs": verbs}]}
    )
    try:
        for user, role in (("ann", "vkprovider-author"), ("hand", "vkprovider-instructor-by-hand")):
            name = f"vkprovider-instructor-test-{user}"
            await desk.kubectl("create", "clusterrolebinding", name, f"--clusterrole={role}", f"--user={user}")
            file = friday.file(definition(f"of-{user}", resources={"cpu": "1"}))

            async def created(user: str = user, file: str = file) -> bool:
                return "created" in (await desk.kubectl("create", "-f", file, f"--as={user}")).out

            await eventually(created, f"{user} may create a definition")
            gone = await desk.kubectl("delete", "labletdefinition", f"of-{user}", f"--as={user}", "--wait=false")
            assert "deleted" in gone.out
    finally:
        await friday.world.admin.delete(f"{path}/vkprovider-instructor-by-hand")

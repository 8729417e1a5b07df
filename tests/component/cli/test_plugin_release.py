"""`kubectl lablet assign` and `release` on a real API server, and what `kubectl debug` is told."""

from pathlib import Path

import pytest

from tests.component.cli.desk import Desk
from tests.component.cli.instructor import Instructor
from tests.component.controllers.harness import World
from tests.component.controllers.looking import is_ready

POOL = "vkprovider.io/pool"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"


async def let_in(world: World) -> dict[str, str]:
    """Return the user who is let into each Pod."""
    found = await world.admin.items(f"{RBAC}/{world.namespace}/rolebindings")
    assigned = [each for each in found if each["metadata"]["name"].startswith("vkprovider-assigned:")]
    return {each["metadata"]["name"].partition(":")[2]: each["subjects"][0]["name"] for each in assigned}


@pytest.fixture
async def site(world: World) -> tuple[str, str]:
    """A definition and a worker."""
    await world.replica()
    worker = await world.worker()
    return await world.define(), worker


async def test_a_pools_lablet_is_lent_and_comes_back(world: World, desk: Desk, site: tuple[str, str]) -> None:
    lablet = await world.pod(*site, labels={POOL: "evening"})
    await lablet.ready()
    nobody = await desk.lablet("release", lablet.name)
    assert (nobody.code, nobody.out) == (1, "")
    assert f"has no learner; to delete it: kubectl delete pod {lablet.name}" in nobody.err

    said = await desk.succeeds("assign", lablet.name, "alice", "--until", "90m")
    assert said.startswith(f"pod/{lablet.name} assigned to alice until ")
    assert await let_in(world) == {lablet.name: "alice"}
    twice = await desk.lablet("assign", lablet.name, "bob")
    assert "is assigned to alice; end that session first: kubectl lablet release" in twice.err
    await lablet.until(lambda pod: pod["metadata"]["annotations"].get("vkprovider.io/learner") == "alice")

    released = await desk.lablet("release", lablet.name)
    assert (released.code, released.out) == (0, f"pod/{lablet.name} is warm again in pool evening\n")
    assert all(stage.startswith(f"pod/{lablet.name} ") for stage in released.err.splitlines())
    pod = await lablet.until(is_ready)
    assert pod["metadata"]["labels"][POOL] == "evening"
    assert "vkprovider.io/username" not in pod["metadata"]["annotations"]
    assert await let_in(world) == {}, "the provider has shut alice out"
    assert await world.admin.items(f"{RBAC}/{world.namespace}/roles") == []


async def test_any_other_lablet_ends_and_its_pod_goes(world: World, desk: Desk, site: tuple[str, str]) -> None:
    one = await world.pod(*site, annotations={"vkprovider.io/username": "alice"}, labels={"class": "a"})
    two = await world.pod(*site, annotations={"vkprovider.io/username": "bob"}, labels={"class": "a"})
    for lablet in (one, two):
        await lablet.ready()
    said = await desk.succeeds("release", "-l", "class=a")
    assert sorted(said.splitlines()) == sorted(
        f"pod/{lablet.name} has ended (Succeeded) and was deleted" for lablet in (one, two)
    )
    for lablet in (one, two):
        await lablet.gone()


async def test_debug_is_refused_with_the_command_to_use(world: World, desk: Desk, site: tuple[str, str]) -> None:
    lablet = await world.pod(*site)
    await lablet.ready()
    refused = await desk.kubectl("debug", lablet.name, "--image=busybox", "--attach=false")
    assert refused.code == 1
    assert f"kubectl lablet console {lablet.name} DEVICE" in " ".join(refused.err.split())
    assert "ephemeralContainers" not in (await lablet.ready())["spec"]


async def test_names_that_the_cluster_knows_otherwise(
    world: World, desk: Desk, instructor: Instructor, site: tuple[str, str], tmp_path: Path
) -> None:
    """An instructor assigns, with a prefix that an admin has named, and is told of each name that nobody has."""
    one, two, three = [await world.pod(*site, labels={POOL: "evening"}) for _ in range(3)]
    for lablet in (one, two, three):
        await lablet.ready()
    await instructor.grant("--username-prefix", "oidc:")
    here = f"--kubeconfig={instructor.kubeconfig}"
    await desk.succeeds("assign", one.name, "bob", here)
    again = await desk.lablet("assign", one.name, "bob", here)
    assert (again.code, again.out, again.err) == (0, f"pod/{one.name} assigned to bob\n", "")
    timed = await desk.lablet("assign", one.name, "bob", "--until", "90m", here)
    assert (timed.code, timed.out) == (0, f"pod/{one.name} assigned to bob\n")
    assert f"was assigned to bob before; to move its end: kubectl lablet extend {one.name} --until " in timed.err
    like = await desk.lablet("assign", two.name, "Bob", here)
    assert (like.code, like.out) == (2, "")
    assert "bob and Bob differ in case only, and are different people to the cluster; mend the name, or" in like.err
    await desk.succeeds("assign", two.name, "Bob", "--yes", here)
    assert await let_in(world) == {one.name: "oidc:bob", two.name: "oidc:Bob"}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "vkprovider-class-learner"}
    users = [
        {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"oidc:{each}"} for each in ("ann", "bob")
    ]
    body = {"metadata": {"name": "lablets-learners"}, "roleRef": ref, "subjects": users}
    await world.admin.create(f"{RBAC}/{world.namespace}/rolebindings", body)
    other = await desk.lablet("assign", three.name, "anna", here)
    assert (other.code, other.out) == (0, f"pod/{three.name} assigned to anna\n")
    assert f"anna: nobody of that name attends the class {world.namespace}" in other.err
    assert "bound to ann, bob. The lablet opens for whoever is oidc:anna to the cluster" in other.err
    # A namespace that was forgotten.
    path = f"/apis/vkprovider.io/v1alpha1/labletdefinitions/{site[0]}"
    await world.admin.patch(path, {"metadata": {"labels": {"vkprovider.io/owner-namespace": world.namespace}}})
    forgotten = await desk.lablet("list", "-n", "default", here)
    assert forgotten.code == 1
    assert "default is the namespace of a context that names none, and no class: name yours with -n" in forgotten.err
    assert f"You teach {world.namespace}: add -n {world.namespace}" in forgotten.err
    assert "kubectl lablet grant" not in forgotten.err
    twice = tmp_path / "names"
    twice.write_text("eve\nEve\n")
    listed = await desk.lablet("assign", "deployment/warm", "--from-file", str(twice), here)
    assert "eve and Eve differ in case only" in listed.err
    await world.admin.delete(f"{RBAC}/{world.namespace}/rolebindings/lablets-learners")

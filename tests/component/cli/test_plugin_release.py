"""`kubectl lablet assign` and `release` on a real API server, and what `kubectl debug` is told."""

import pytest

from tests.component.cli.desk import Desk
from tests.component.controllers.harness import World
from tests.component.controllers.looking import is_ready

POOL = "vkprovider.io/pool"


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
    twice = await desk.lablet("assign", lablet.name, "bob")
    assert "is assigned to alice; end that session first: kubectl lablet release" in twice.err
    await lablet.until(lambda pod: pod["metadata"]["annotations"].get("vkprovider.io/learner") == "alice")

    released = await desk.lablet("release", lablet.name)
    assert (released.code, released.out) == (0, f"pod/{lablet.name} is warm again in pool evening\n")
    assert all(stage.startswith(f"pod/{lablet.name} ") for stage in released.err.splitlines())
    pod = await lablet.until(is_ready)
    assert pod["metadata"]["labels"][POOL] == "evening"
    assert "vkprovider.io/username" not in pod["metadata"]["annotations"]


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

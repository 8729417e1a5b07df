"""`kubectl lablet share` by the real kubectl and an instructor's rights: who is let in, and a provider that ends it."""

from urllib.parse import quote

from tests.component.cli.desk import Desk
from tests.component.cli.instructor import RBAC, Instructor
from tests.component.cli.test_plugin_links import PORTAL, accounts, is_of, opens, site
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from vkprovider.lablet import names

POOL = "vkprovider.io/pool"
__all__ = ["site"]


async def bound(world: World, pod: str) -> list[str]:
    """Return whom the binding of an assignment names."""
    path = f"{RBAC}/namespaces/{world.namespace}/rolebindings/{quote(names.assignment_name(pod), safe='')}"
    found = await world.admin.get(path)
    return [each["name"] for each in found["subjects"]] if found is not None else []


async def test_a_second_person_is_let_in_until_the_learners_time_is_over(
    world: World, desk: Desk, instructor: Instructor, site: tuple[str, str]
) -> None:
    one = await world.pod(*site, labels={POOL: "evening"})
    await one.ready()
    await instructor.grant("--links")
    here = f"--kubeconfig={instructor.kubeconfig}"
    free = await desk.lablet("share", one.name, "bob", here)
    assert (free.code, "has no learner who could share it" in free.err) == (1, True)
    await desk.succeeds("assign", one.name, "alice", here)
    await one.until(is_of("alice"))
    own = await desk.lablet("share", "alice", "alice", here)
    assert (own.code, "is the lablet of alice" in own.err) == (1, True)

    said = await desk.lablet("share", "alice", "bob", here)
    assert (said.code, said.out, said.err) == (0, f"pod/{one.name}: bob watches in the lab of alice\n", "")
    assert await bound(world, one.name) == ["alice", "bob"]
    said = await desk.lablet("share", one.name, "bob", "--type", here)
    assert said.out == f"pod/{one.name}: bob works in the lab of alice\n"
    found = await world.admin.get(f"/api/v1/namespaces/{world.namespace}/pods/{one.name}")
    assert found is not None
    assert found["metadata"]["annotations"][names.ANNOTATION_GUESTS] == '{"bob":"type"}'
    assert (await desk.lablet("share", "alice", "bob", "--end", "--type", here)).code == 2
    nobody = await desk.lablet("share", "alice", "carol", "--end", here)
    assert (nobody.code, "carol is no guest" in nobody.err) == (1, True)
    assert await desk.succeeds("share", "alice", "bob", "--end", here)
    assert await bound(world, one.name) == ["alice"]

    async def linked() -> str:
        made = await desk.lablet("share", "alice", "bob", "--link", "--portal", PORTAL, here)
        assert made.code == 0, made.err
        return "" if "no links were made" in made.err else made.out.splitlines()[-1]

    address = await eventually(linked, "links are allowed")
    account = (await accounts(world))["bob"]
    assert opens(address, account)
    assert await bound(world, one.name) == ["alice", "bob", account["metadata"]["name"]]
    again = (await desk.succeeds("share", "alice", "bob", "--link", "--portal", PORTAL, here)).splitlines()[-1]
    account = (await accounts(world))["bob"]
    assert (opens(again, account), opens(address, account)) == (True, False), "another one in its place"

    await desk.succeeds("release", one.name)

    async def over() -> bool:
        left = await world.admin.get(f"/api/v1/namespaces/{world.namespace}/pods/{one.name}")
        notes = left["metadata"]["annotations"] if left is not None else {}
        return names.ANNOTATION_GUESTS not in notes and await accounts(world) == {} and not await bound(world, one.name)

    await eventually(over, "the provider has shut the guest out, too")

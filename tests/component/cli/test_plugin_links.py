"""`kubectl lablet assign --links`, `links` and `grant --links` by the real kubectl, and a provider that ends links."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.component.cli.desk import Desk
from tests.component.cli.instructor import Instructor
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.support.ptys import Pty
from vkprovider.classroom.links import account_of, read_code
from vkprovider.lablet import names
from vkprovider.platform.kube.resources import PartialObject

POOL = "vkprovider.io/pool"
PORTAL = "https://labs.example.com"


@pytest.fixture
async def site(world: World) -> tuple[str, str]:
    """A definition and a worker."""
    await world.replica()
    worker = await world.worker()
    return await world.define(), worker


async def allow_links(world: World) -> str:
    """Let links be given in the namespace of a test; return its path."""
    place = f"/api/v1/namespaces/{world.namespace}"
    await world.admin.patch(place, {"metadata": {"labels": {names.LABEL_LINKS: names.LINKS_ALLOWED}}})
    return place


async def accounts(world: World) -> dict[str, dict[str, Any]]:
    """Return the accounts of links, by learner."""
    found = await world.admin.items(f"/api/v1/namespaces/{world.namespace}/serviceaccounts")
    links = [each for each in found if each["metadata"]["name"].startswith(names.LINK_PREFIX)]
    return {each["metadata"]["annotations"][names.ANNOTATION_USERNAME]: each for each in links}


def opens(address: str, account: dict[str, Any]) -> bool:
    """Return whether an account is that of an address."""
    base, mark, text = address.partition("#")
    code = read_code(text)
    assert (base, mark) == (f"{PORTAL}/link", "#")
    assert code is not None
    return account_of(msgspec.convert(account, PartialObject)).is_opened_by(code.digest)


async def test_an_instructor_gives_links_renews_them_and_takes_them_back(
    world: World, desk: Desk, instructor: Instructor, site: tuple[str, str]
) -> None:
    one = await world.pod(*site, labels={POOL: "evening"})
    await one.ready()
    await instructor.grant()
    here = f"--kubeconfig={instructor.kubeconfig}"
    nowhere = await desk.lablet("assign", one.name, "alice", "--links", here)
    assert (nowhere.code, nowhere.out) == (2, "")
    assert "name it with --portal or VKPROVIDER_PORTAL_URL" in nowhere.err
    plain = await desk.lablet("assign", one.name, "alice", "--links", "--portal", "http://labs.example.com", here)
    assert plain.code == 2
    refused = await desk.lablet("assign", one.name, "alice", "--links", "--portal", PORTAL, here)
    assert (refused.code, refused.out) == (0, f"pod/{one.name} assigned to alice\n")
    assert "Warning: no links were made" in refused.err
    assert f"kubectl lablet grant USER -n {world.namespace} --links" in refused.err

    said = await instructor.grant("--links")
    assert f"namespace/{world.namespace} labelled: instructors of {world.namespace} may give learners links" in said

    async def given() -> str:
        made = await desk.lablet("assign", one.name, "alice", "--links", "--portal", f"{PORTAL}/", here)
        assert made.code == 0, made.err
        return "" if "no links were made" in made.err else made.out

    out = await eventually(given, "links are allowed")
    assigned, address = out.splitlines()
    assert assigned == f"pod/{one.name} assigned to alice"
    assert opens(address, (await accounts(world))["alice"])
    again = await desk.lablet("assign", one.name, "alice", "--links", "--portal", PORTAL, here)
    assert again.out == f"{assigned}\n", "it is printed once"
    assert "alice has a link already; for another one: kubectl lablet links --renew" in again.err

    listed = await desk.lablet("links", here)
    assert listed.rows[0] == ["LEARNER", "STATE", "NAME", "SINCE"]
    assert listed.rows[1][:3] == ["alice", "open", one.name]
    whose = await desk.lablet("links", "--renew", "--portal", PORTAL, here)
    assert (whose.code, "whose links?" in whose.err.lower()) == (2, True)
    nobody = await desk.lablet("links", "--revoke", "-u", "bob", here)
    assert nobody.code == 1
    assert "bob has no link" in nobody.err
    [row] = (await desk.lablet("links", "--renew", "-u", "alice", "--portal", PORTAL, "-o", "json", here)).json["items"]
    account = (await accounts(world))["alice"]
    assert (opens(row["link"], account), opens(address, account)) == (True, False)
    assert "link" not in (await desk.lablet("links", here)).out.lower().partition("\n")[0]
    taken = await desk.succeeds("links", "--revoke", "--all", here)
    assert taken == "the link of alice opens nothing any more\n"
    assert await accounts(world) == {}
    assert (await desk.succeeds("links", here)) == ""
    without = await desk.lablet("assign", one.name, "alice", "--portal", PORTAL, here)
    assert (without.out, without.err) == (f"{assigned}\n", ""), "the address of the portal alone makes no link"
    assert await accounts(world) == {}


def is_of(learner: str) -> Callable[[dict[str, Any]], bool]:
    """Return whether the provider says that a Pod is a learner's."""
    return lambda it: it["metadata"]["annotations"].get(names.ANNOTATION_LEARNER) == learner


async def test_a_link_ends_with_the_learners_time(world: World, desk: Desk, site: tuple[str, str]) -> None:
    """The provider deletes it when the lablet goes back to its pool, and `release` when the Pod goes."""
    pooled = await world.pod(*site, labels={POOL: "evening"})
    other = await world.pod(*site)
    for lablet in (pooled, other):
        await lablet.ready()
    await allow_links(world)
    for lablet, learner in ((pooled, "alice"), (other, "bob")):
        await desk.succeeds("assign", lablet.name, learner, "--links", "--portal", PORTAL)
        await lablet.until(is_of(learner))
    assert set(await accounts(world)) == {"alice", "bob"}
    await desk.succeeds("release", pooled.name)

    async def over() -> bool:
        return set(await accounts(world)) == {"bob"}

    await eventually(over, "the provider has ended the link")
    await desk.succeeds("release", other.name)
    assert await accounts(world) == {}


async def test_a_terminal_shows_a_link_that_is_printed_once_whole(
    world: World, desk: Desk, site: tuple[str, str]
) -> None:
    one = await world.pod(*site)
    await one.ready()
    await allow_links(world)
    await desk.succeeds("assign", one.name, "alice", "--links", "--portal", PORTAL)

    def renewed() -> tuple[int, str]:
        command = ["kubectl", "lablet", "links", "--renew", "-u", "alice", "--portal", PORTAL]
        with Pty(command, {**desk.environ, "TERM": "xterm"}, columns=80) as pty:
            return pty.ends(90), pty.shown

    code, shown = await asyncio.to_thread(renewed)
    assert code == 0, shown
    [address] = [word for word in shown.split() if word.startswith(PORTAL)]
    assert opens(address, (await accounts(world))["alice"])


async def test_a_link_that_waits_for_a_lablet_is_not_made_again_and_that_is_said(
    world: World, desk: Desk, site: tuple[str, str]
) -> None:
    """Nor is that of somebody else, to whom the lablet has passed."""
    one, two = [await world.pod(*site) for _ in range(2)]
    place = await allow_links(world)
    for lablet, learner in ((one, "alice"), (two, "bob")):
        await lablet.ready()
        await desk.succeeds("assign", lablet.name, learner, "--links", "--portal", PORTAL)
    await one.delete(grace_s=0)
    await one.gone()
    before = await accounts(world)
    renewed = await desk.lablet("links", "--renew", "--all", "--portal", PORTAL, "-o", "json")
    assert renewed.code == 1
    assert {row["learner"]: bool(row["link"]) for row in renewed.json["items"]} == {"alice": False, "bob": True}
    assert "no link was made for alice: the lablet that it led to is gone" in renewed.err
    assert "kubectl lablet links --revoke -u LEARNER" in renewed.err
    after = await accounts(world)
    assert {who: after[who]["metadata"]["uid"] == before[who]["metadata"]["uid"] for who in after} == {
        "alice": True,
        "bob": False,
    }
    note = {names.ANNOTATION_LINK_POD: f"{two.name}/{two.uid}"}
    await world.admin.patch(
        f"{place}/serviceaccounts/{after['alice']['metadata']['name']}", {"metadata": {"annotations": note}}
    )
    passed = await desk.lablet("links", "--renew", "-u", "alice", "--portal", PORTAL)
    assert (passed.code, "no link was made for alice" in passed.err) == (1, True)
    assert (await accounts(world))["bob"]["metadata"]["uid"] == after["bob"]["metadata"]["uid"], "his stays"


async def test_links_of_guests_are_listed_with_whose_lablet_they_open(
    world: World, desk: Desk, site: tuple[str, str]
) -> None:
    one = await world.pod(*site)
    await one.ready()
    await allow_links(world)
    for words in (("assign", one.name, "alice", "--links"), ("share", one.name, "zoe", "--link")):
        await desk.succeeds(*words, "--portal", PORTAL)
    listed = await desk.lablet("links")
    assert listed.rows[0] == ["LEARNER", "GUEST OF", "STATE", "NAME", "SINCE"]
    assert [row[:-1] for row in listed.rows[1:]] == [
        ["alice", "<none>", "open", one.name],
        ["zoe", "alice", "open", one.name],
    ]
    guests = await desk.lablet("links", "--renew", "-u", "zoe", "--portal", PORTAL)
    assert (guests.code, "zoe has no link" in guests.err) == (1, True), "hers is made by share"
    assert [row[0] for row in (await desk.lablet("links", "-u", "zoe")).rows[1:]] == ["zoe"]

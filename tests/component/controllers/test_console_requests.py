"""`kubectl exec POD -c lab -- hand-in` and `-- reset`: what a learner without a right to change the Pod asks for."""

import asyncio
from typing import Any

import pytest

from tests.component.controllers.consolesite import Site
from tests.component.controllers.harness import World
from tests.component.controllers.looking import is_ready
from tests.support.terminals import Terminal
from tests.support.topologies import topology
from vkprovider.labs.kubelet.spi import Exit
from vkprovider.platform.errors import InputError, OutsideError

QUESTION = "All that was typed on them is lost. [y/N]: "


def notes(pod: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = pod["metadata"]["annotations"]
    return {key.removeprefix("vkprovider.io/"): text for key, text in found.items()}


def last_end(pod: dict[str, Any]) -> str:
    return str(pod["status"]["containerStatuses"][0]["lastState"].get("terminated", {}).get("reason", ""))


async def site_of(world: World, **annotations: str) -> Site:
    simulator = await world.simulator()
    running = await world.replica()
    worker = await world.worker(simulator.url)
    given = {f"vkprovider.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    definition = await world.define(topology({"r1": "iosv"}))
    lablet = await world.pod(definition, worker, devices=["r1"], typed=True, annotations=given)
    await lablet.ready()
    return Site(world, running, simulator, worker, lablet)


async def answered(site: Site, word: str, *keys: str) -> tuple[Exit, Terminal]:
    """Ask with a terminal, and type an answer."""
    person = Terminal()
    asking = asyncio.create_task(site.devices.execute(site.target("lab"), [word], person))
    await person.shows("[y/N]: ")
    for key in keys:
        person.type(key)
    async with asyncio.timeout(60):
        return await asking, person


async def refused(site: Site, *words: str, container: str = "lab") -> str:
    with pytest.raises(InputError) as refusal:
        await site.run(container, *words)
    return f"{refusal.value.reason}: {refusal.value.message}"


async def test_a_reset_asks_and_wipes(world: World) -> None:
    site = await site_of(world, username="alice")
    [before] = site.node("r1").boots
    said = await refused(site, "reset")
    assert said.startswith(f"NotConfirmed: Wipe all devices of {site.lablet.name} and start them again?")
    assert f"add --yes, or `kubectl exec -it {site.lablet.name} -c lab -- reset` asks" in said
    for keys in (("n", "\r"), ("\r",), ("\x03",), ("\x1d",), ("y", "\x7f", "n\r"), ("yesterday\r",)):
        status, person = await answered(site, "reset", *keys)
        assert (status.code, "Nothing was done." in person.out) == (1, True), keys
    assert "reset" not in notes(await site.lablet.ready())
    status, person = await answered(site, "reset", "Yes", "\r")
    assert (status, "Reset: the devices are being wiped" in person.out) == (Exit(0), True)
    assert "Yes\r\n" in person.out, "what is typed is shown"
    await site.lablet.until(lambda pod: is_ready(pod) and last_end(pod) == "Reset", "started again")
    assert before not in site.node("r1").boots, "wiped"
    assert notes(await site.lablet.ready())["username"] == "alice"
    assert await refused(site, "reset", "now") == "CommandInvalid: write `reset` or `reset --yes`"
    _, typed = await site.run("r1", "reset", "--yes")
    assert "Invalid input" in typed.out, "in the container of a device the word is typed there"


async def test_a_stopped_lab_starts_again_by_a_reset(world: World) -> None:
    site = await site_of(world, username="alice")
    await site.lablet.annotate(desired_state="stopped")
    await site.lablet.until(lambda pod: notes(pod).get("state") == "STOPPED", "stopped")
    status, said = await site.run("lab", "reset", "--yes")
    assert (status, said.out) == (Exit(0), "Reset: the devices are being wiped, and start again.\n")
    assert "desired-state" not in notes(await site.lablet.ready())


async def test_to_hand_in_ends_the_time_and_survives_the_replica(world: World) -> None:
    site = await site_of(world, username="alice")
    await site.lablet.claim(lambda row: row.get("readyAt"))
    status, person = await answered(site, "hand-in", "y", "\n")
    assert status == Exit(0)
    assert "Handed in: the work of alice is being collected." in person.out
    await site.running.crash()
    again = await world.replica()
    over = await site.lablet.until(lambda pod: pod["status"]["phase"] == "Succeeded", "ended")
    assert "collected" in over["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
    late = Site(world, again, site.simulator, site.worker, site.lablet)
    for word in ("hand-in", "reset"):
        with pytest.raises((InputError, OutsideError)):
            await late.run("lab", word, "--yes")


@pytest.mark.parametrize("words", [("hand-in",), ("reset",), ("device", "wipe", "r1")])
async def test_an_answer_that_comes_when_the_lablet_is_the_next_learners_does_nothing(
    world: World, words: tuple[str, ...]
) -> None:
    site = await site_of(world, username="alice", lent_by="warm")
    person = Terminal()
    asking = asyncio.create_task(site.devices.execute(site.target("lab"), [*words], person))
    await person.shows("[y/N]: ")
    await site.lablet.annotate(desired_state="COLLECTING")
    await site.lablet.until(lambda pod: pod["metadata"]["labels"].get("vkprovider.io/pool"), "not back in its pool")
    lent = {"vkprovider.io/username": "bob", "vkprovider.io/lent-by": "warm"}
    await world.admin.patch(
        site.lablet.path, {"metadata": {"annotations": lent, "labels": {"vkprovider.io/pool": None}}}
    )
    await site.lablet.claim(lambda row: row.get("noted") == "bob")
    person.type("y\r")
    with pytest.raises(InputError, match=r"NothingToDo: the time of alice with .* is over: Nothing was done"):
        await asking
    assert not {"reset", "desired-state", "device-requests"} & notes(await site.lablet.ready()).keys()


async def test_what_nobody_has_is_not_handed_in(world: World) -> None:
    site = await site_of(world)
    said = await refused(site, "hand-in", "--yes")
    assert said == f"NothingToDo: nobody has the lablet {site.lablet.name}: there is nothing to hand in"
    assert "desired-state" not in notes(await site.lablet.ready())


async def test_a_message_is_shown_in_the_consoles_that_are_open(world: World) -> None:
    """To whom it is addressed: at the consoles of that lablet, once, and not in those of another."""
    site = await site_of(world, username="alice", message="2026-11-26T17:00:00Z Before.")
    other = await world.pod(await world.define(topology({"r1": "iosv"})), site.worker, devices=["r1"], typed=True)
    await other.ready()
    elsewhere = Site(world, site.running, site.simulator, site.worker, other)
    here, there = Terminal(), Terminal()
    sessions = [site.attach(here), elsewhere.attach(there)]
    for person in (here, there):
        await person.shows("Escape character")
    await site.lablet.annotate(message="2026-11-26T17:01:00Z Begin with r1.")
    await here.shows("[message: Begin with r1.]")
    await site.lablet.annotate(message=None)
    await site.lablet.annotate(message="2026-11-26T17:02:00Z Now \x1b[31mr2.")
    await here.shows("[message: Now ")
    assert "Before." not in here.out
    assert "\x1b" not in here.out.partition("]")[0]
    assert "message" not in there.out
    for person, session in zip((here, there), sessions, strict=True):
        person.type("\x1d")
        await session

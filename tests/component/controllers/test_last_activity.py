"""`vkprovider.io/last-activity`: input at a console, or the start of a session, at most once a minute."""

import asyncio
import time
from typing import Any

from tests.component.controllers.consolesite import Site, eventually_no_sockets, open_site, until_open
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.component.controllers.running import SHORT, Running
from tests.component.controllers.test_sessions_flow import TOKEN, lend, said
from tests.support.terminals import Terminal
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.times import unix
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

LAST = "vkprovider.io/last-activity"
LEARNER = "vkprovider.io/learner"


def of(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["annotations"].get(LAST, ""))


def writes(running: Running, site: Site) -> int:
    """Return how many writes the replica has sent for the Pod."""
    return len(running.api.matching(rf"^PATCH .*/pods/{site.lablet.name}"))


async def type_(person: Terminal, word: str) -> None:
    person.type(f"echo {word}\r")
    await person.shows(f"\r\n{word}\r\n")


async def shown(site: Site) -> str:
    found = await site.world.admin.get(site.lablet.path)
    assert found is not None
    return of(found)


async def test_input_is_reported_once_a_minute_and_an_open_console_is_not(world: World) -> None:
    site = await open_site(world)
    before = writes(site.running, site)
    person, watcher = Terminal(), Terminal(stdin=False)
    sessions = [site.attach(person), site.attach(watcher)]
    await person.shows("Escape character")
    await watcher.shows("You watch.")
    await site.log("r1")
    assert await shown(site) == ""
    assert writes(site.running, site) == before
    began = int(time.time())
    person.type("\r")
    pod = await site.lablet.until(of)
    assert began <= (unix(of(pod)) or 0) <= time.time()
    assert of(pod).endswith("Z")
    assert writes(site.running, site) == before + 1, "that, and nothing else"
    for word in ("one", "two", "three"):
        await type_(person, word)
    watcher.type("nothing")
    await site.run("h0", "uname -a")
    assert await shown(site) == of(pod)
    assert writes(site.running, site) == before + 1
    world.ahead_s = 61.0
    await asyncio.sleep(0)
    assert writes(site.running, site) == before + 1, "time alone writes nothing"
    await type_(person, "later")
    again = await site.lablet.until(lambda found: of(found) > of(pod))
    assert (unix(of(again)) or 0) - (unix(of(pod)) or 0) >= 60
    assert writes(site.running, site) == before + 2
    for each in (person, watcher):
        each.leave()
    await asyncio.wait_for(asyncio.gather(*sessions), 60)
    await eventually_no_sockets(site)


async def test_a_command_is_activity_and_a_port_is_not(world: World) -> None:
    site = await open_site(world, patty=True)
    channel = await until_open(site, 22)
    before = writes(site.running, site)
    await channel.write(b"SSH-2.0-a\r\n")
    await channel.read()
    await channel.close()
    assert await shown(site) == ""
    assert (await site.run("r1", "show version"))[0].code == 0
    await site.lablet.until(of)
    assert writes(site.running, site) == before + 1


async def test_the_next_owner_goes_on_from_the_report(world: World) -> None:
    """Within the minute it writes nothing, though it has noted nothing; after it, it does."""
    site = await open_site(world)
    assert (await site.run("r1", "show version"))[0].code == 0
    first = of(await site.lablet.until(of))
    other = await world.replica({**SHORT, "consoles": {"exec_timeout_s": 3.0}})
    await site.running.stop()
    there = Site(world, other, site.simulator, site.worker, site.lablet)

    async def works() -> bool:
        try:
            return (await there.run("r1", "show version"))[0].code == 0
        except OutsideError:
            return False

    await eventually(works, "the command on the new owner")
    before = writes(other, site)
    assert (await there.run("r1", "show version"))[0].code == 0
    assert await shown(site) == first
    assert writes(other, site) == before
    world.ahead_s = 61.0
    assert (await there.run("r1", "show version"))[0].code == 0
    await site.lablet.until(lambda found: of(found) > first)


async def test_the_next_learner_has_not_opened_it_yet(world: World) -> None:
    site = await open_site(world)
    assert (await site.run("r1", "show version"))[0].code == 0
    await site.lablet.until(of)
    await site.lablet.annotate(username="alice")
    taken = await site.lablet.until(lambda pod: pod["metadata"]["annotations"].get(LEARNER) == "alice")
    assert of(taken) == "", "in the same write"
    assert (await site.run("r1", "show version"))[0].code == 0
    await site.lablet.until(of)


async def test_the_report_that_somebody_removes_comes_again(world: World) -> None:
    site = await open_site(world)
    assert (await site.run("r1", "show version"))[0].code == 0
    first = of(await site.lablet.until(of))
    await site.lablet.annotate(last_activity=None)
    assert of(await site.lablet.until(of)) == first


async def test_the_start_of_a_session_is_activity(world: World) -> None:
    lds = await world.stack.enter_async_context(LdsSimulator(LdsSettings(token=TOKEN)))
    running = await world.replica(LDS_API_URL=lds.url, LDS_API_TOKEN=TOKEN)
    lablet = await lend(world)
    [session] = lds.world.sessions.values()
    assert of(await lablet.ready()) == "", "a session that nobody has begun"
    began = int(time.time())
    await eventually(lambda: _true(running.replica.inbox.known(session.id)), "the session is known")
    await running.replica.inbox.accept(said(lablet, session.id, "started"))
    pod = await lablet.until(lambda found: found["metadata"]["annotations"]["vkprovider.io/state"] == "RUNNING")
    assert began <= (unix(of(pod)) or 0) <= time.time(), "in the same write"


async def _true(value: object) -> object:
    return value

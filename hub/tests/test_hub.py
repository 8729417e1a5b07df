"""A real JupyterHub with a real proxy and real logins, as a cluster has them; the portal is small, and goes away."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest
import trustme

from hub.tests.portal import HUB_TOKEN, Portal
from hub.tests.realhub import Learner, RealHub

pytestmark = pytest.mark.timeout(240)
AWAY_S = 60


async def until(condition: Callable[[], Awaitable[bool]], within_s: float = 30) -> float:
    """Return after how many seconds it was so."""
    began = time.monotonic()
    async with asyncio.timeout(within_s):
        while not await condition():  # noqa: ASYNC110 (another process has to change)
            await asyncio.sleep(0.1)
    return time.monotonic() - began


@pytest.fixture
async def portal() -> AsyncIterator[Portal]:
    async with Portal().served() as portal:
        yield portal


@pytest.fixture
async def hub(portal: Portal, tmp_path: Path) -> AsyncIterator[RealHub]:
    async with RealHub(tmp_path, portal.url, HUB_TOKEN).running() as hub:
        yield hub


@pytest.mark.parametrize("tls", [False, True])
async def test_from_the_login_to_the_labs_page(tmp_path: Path, *, tls: bool) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    hold = asyncio.Event()
    portal = Portal(hold=hold)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(portal.served(tls=context if tls else None))
        hub = RealHub(tmp_path, portal.url, HUB_TOKEN, tmp_path / "ca.crt" if tls else None)
        await stack.enter_async_context(hub.running())
        learner = await stack.enter_async_context(Learner.of(hub, "anna"))
        code, _, form = await learner.get("/hub/spawn")
        assert code == 200
        assert "<!-- anna -->" in form
        code, path, _ = await learner.post("/hub/spawn", {"image_list": "ospf"})
        assert (code, path) == (200, "/hub/spawn-pending/anna")
        async with learner.session.get(f"{hub.url}/hub/api/users/anna/server/progress") as stream:
            events = (json.loads(line[6:]) async for line in stream.content if line[:5] == b"data:")
            assert [(await anext(events))["message"] for _ in range(4)] == [
                "Server requested",
                "Your lab is asked for",
                "The lab is imported",
                "All devices booted",
            ]
            hold.set()  # they came before the lab was ready, not in one lump at the end: jupyterhub#4043
            assert [event async for event in events][-1]["ready"] is True
        code, path, page = await learner.get("/user/anna/")
        assert (code, path, page) == (200, "/user/anna/", "/user/anna/")
        assert portal.bodies[0]["options"] == {"image_list": ["ospf"]}


async def test_a_hub_that_is_killed_while_the_portal_is_away_stops_no_lab(tmp_path: Path) -> None:
    portal = Portal(hold=asyncio.Event())
    async with AsyncExitStack() as stack:
        serving = await stack.enter_async_context(AsyncExitStack())
        await serving.enter_async_context(portal.served())
        port = int(portal.url.rpartition(":")[2])
        hub = await stack.enter_async_context(RealHub(tmp_path, portal.url, HUB_TOKEN).running())
        names = ["runs", "ends", "starts", "lost"]
        learners = {name: await stack.enter_async_context(Learner.of(hub, name)) for name in names}
        portal.hold = None
        for name in ("runs", "ends"):
            await learners[name].post("/hub/spawn", {"image_list": "ospf"})
            await until(partial(hub.ready, name))
        portal.hold = asyncio.Event()
        await learners["starts"].post("/hub/spawn", {"image_list": "ospf"})

        async def asked_for() -> bool:
            return "starts" in portal.labs

        await until(asked_for)
        portal.silent = True
        await learners["lost"].post("/hub/spawn", {"image_list": "ospf"})

        async def asked_in_vain() -> bool:
            return portal.count("POST", "/labs/lost/create") > 0

        await until(asked_in_vain)
        await hub.kill()
        await serving.aclose()  # the portal is away; http_timeout is 3 s
        del portal.labs["ends"]
        await hub.start()
        await asyncio.sleep(AWAY_S)
        assert [bool((await hub.user(name))["servers"]) for name in names] == [True] * 4
        portal.labs["starts"].status = "running"
        portal.silent = False
        await stack.enter_async_context(portal.served(port))

        async def states_are_right() -> bool:
            without = ["ends", "lost"]
            assert not any([await hub.ready(name) for name in without]), "what is no lab is taken for one"
            gone = [not (await hub.user(name))["servers"] for name in without]
            return await hub.ready("runs") and await hub.ready("starts") and all(gone)

        assert await until(states_are_right) <= 10
        assert portal.count("DELETE") == 0
        assert set(portal.labs) == {"runs", "starts"}
        assert (await learners["runs"].get("/user/runs/"))[::2] == (200, "/user/runs/")


async def test_fifty_learners_log_in_and_start_at_once(hub: RealHub, portal: Portal) -> None:
    names = [f"learner{number}" for number in range(50)]

    async def goes_in(name: str) -> None:
        async with Learner.of(hub, name) as learner:
            code, _, text = await learner.post("/hub/spawn", {"image_list": "ospf"})
            assert code == 200, text
            await until(partial(hub.ready, name), 150)
            assert (await learner.get(f"/user/{name}/"))[0] == 200

    began = time.monotonic()
    await asyncio.gather(*map(goes_in, names))
    print(f"50 learners from the login to the page in {time.monotonic() - began:.1f} s")  # noqa: T201 (a figure)
    assert portal.creations == len(names)
    assert {lab.status for lab in portal.labs.values()} == {"running"}


async def test_a_refusal_is_on_the_page(hub: RealHub, portal: Portal) -> None:
    text = "Your quota allows labs of size small. Choose a smaller one."
    portal.refusal = 403, {"detail": [{"msg": text, "type": "insufficient_quota", "loc": ["body", "options", "size"]}]}
    async with Learner.of(hub, "bert") as learner:
        _, path, page = await learner.post("/hub/spawn", {"image_list": "ospf"})

        async def told() -> bool:
            return text in page or text in (await learner.get("/hub/spawn-pending/bert"))[2]

        await until(told)
        assert 'name="image_list"' in (await learner.get("/hub/spawn/bert"))[2]
        assert path in ("/hub/spawn-pending/bert", "/hub/spawn")
        assert await hub.ready("bert") is False
    assert portal.count("DELETE") == 0

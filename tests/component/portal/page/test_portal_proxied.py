"""Streams behind a real nginx with its stock settings, and many streams of which half are cut without a word."""

import asyncio
import contextlib
import resource
from pathlib import Path
from typing import Final

import pytest

from tests.component.controllers.looking import when
from tests.component.portal.page.harness import SPAWNER, PageWorld, listening
from tests.component.portal.people import USER_ROLE
from tests.support.apiserver import until
from tests.support.nginx import proxied
from tests.support.tcp import deafen
from vkprovider.portal.api import streams
from vkprovider.portal.api.streams import StreamTimes

TIMEOUT_S: Final = 20
PAUSE_S: Final = 30
STREAMS: Final = 1000
GONE_S: Final = 60


@pytest.mark.parametrize("dialect", ["sqr066", "nublado"])
async def test_nginx_passes_each_event_on_at_once(world: PageWorld, tmp_path: Path, dialect: str) -> None:
    """Nothing arrives in one lump: each event is read before the next one is made, or `until` waits in vain."""
    running, user = await world.replica({"VKPROVIDER_PORTAL_DIALECT": dialect}), world.user("alice")
    alice = await world.person(user, USER_ROLE)
    request = await world.lab(user)
    pod = await world.pod(user, request)
    async with proxied(tmp_path / "nginx", running.url) as url, listening(url, user, alice) as listener:
        await listener.until("info", "asked for")
        for number in range(3):
            await world.event(pod, f"Reason{number}", "m")
            await listener.until("info", f"Reason{number}")
        await world.over(user, request)
        assert (await listener.rest())[-1].event == "complete"


async def test_a_long_boot_survives_the_timeout_of_nginx(world: PageWorld, tmp_path: Path) -> None:
    """A boot of 90 s against nginx's 60 s, in short: a pause of 30 s against `proxy_read_timeout 20s`."""
    running, user = await world.replica(), world.user("bob")
    bob = await world.person(user, USER_ROLE)
    request = await world.lab(user)
    async with (
        proxied(tmp_path / "nginx", running.url, f"proxy_read_timeout {TIMEOUT_S}s;") as url,
        listening(url, user, bob) as listener,
    ):
        await listener.until("info", "asked for")
        following = asyncio.create_task(listener.rest())
        done, _ = await asyncio.wait([following], timeout=PAUSE_S)
        assert not done
        await world.over(user, request)
        assert (await following)[-1].event == "complete"


async def test_streams_that_are_cut_without_a_word_are_gone_in_a_minute(
    world: PageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    monkeypatch.setattr(streams, "OF_USER_MAX", STREAMS)
    times = StreamTimes(heartbeat_s=2.0, settle_s=0.3, review_s=2.0)
    running, user = await world.replica(times=times), world.user("carol")
    carol = await world.person(user, USER_ROLE)
    request = await world.lab(user)
    await when(lambda: running.index.lab(user), "the lab is known")
    path = f"{SPAWNER}/labs/{user}/events"
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {carol['Authorization']}\r\n\r\n"
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for _ in range(STREAMS):
            reader, writer = await asyncio.open_connection("127.0.0.1", running.page.port)
            stack.callback(writer.transport.abort)
            writer.write(head.encode())
            clients.append((reader, writer))
        await when(lambda: len(running.streams) == STREAMS, f"{STREAMS} streams are open")
        for reader, _ in clients:
            await reader.readuntil(b"asked for")
        for _, writer in clients[::2]:
            deafen(writer.get_extra_info("socket"))

        async def half() -> bool:
            return len(running.streams) == STREAMS // 2

        await until(half, within_s=GONE_S, every_s=0.5)
        await world.over(user, request)
        for reader, _ in clients[1::2]:
            await reader.readuntil(b"event: complete")

"""The screen of a device, as a client of others sees it, and one that asks for less."""

import asyncio
import json
import struct
from collections.abc import AsyncIterator

import pytest

from tests.simulators.cml.cisco import PASSWORD
from tests.simulators.cml.plain import eventually, plain
from tests.simulators.cml.test_sim_patty import free_ports, load, patty_of
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.judges import run_judge
from tests.support.rfb import ASK, ASK_CHANGES, BLOCK_BYTES, HELLO, click, hello_bytes
from vkpsim.cml.consoles.patty import PattySettings
from vkpsim.cml.consoles.screen import BARS, HEIGHT, WHITE, WIDTH, Screen, bar_at, colour_of
from vkpsim.cml.simulation import Settings


@pytest.fixture
async def port() -> AsyncIterator[int]:
    patty = PattySettings(first_port=1024, last_port=65000, poll_s=0.02)
    settings = Settings(password=PASSWORD, boot_seconds=(0.1, 0.1))
    async with CmlSimulator(settings, patty=patty) as simulator, plain(simulator) as client:
        [port] = free_ports(1)
        lab = await load(client, {"h0": [f"vnc:{port}"]})
        await client.api("PUT", f"/labs/{lab}/start")
        await eventually(lambda: patty_of(simulator).ports, {port}.__eq__)
        yield port


async def test_asyncvnc_sees_the_pattern_its_click_and_its_keys(port: int) -> None:
    printed = await asyncio.to_thread(run_judge, "asyncvnc-1.3.0", "tests/simulators/cml/vnc_session.py", str(port))
    seen = json.loads(printed.splitlines()[-1])
    assert seen["size"] == ["h0", WIDTH, HEIGHT]
    assert seen["bars"] == list(BARS)
    assert seen["clicked"] == [bar_at(99), WHITE, WHITE, bar_at(120)]
    assert seen["typed"] == [colour_of(ord("a")), colour_of(ord("B")), bar_at(50)]


class Viewer:
    """One that is connected in this process, without a network."""

    def __init__(self, screen: Screen) -> None:
        self.reader = asyncio.StreamReader()
        self.got = bytearray()
        self.serving = asyncio.create_task(screen.serve(self.reader, self._take))

    async def _take(self, data: bytes) -> None:
        self.got += data

    async def sent(self, data: bytes, count: int) -> bytes:
        """Send a message; return so many bytes that come to it."""
        self.reader.feed_data(data)
        await eventually(lambda: len(self.got), lambda length: length >= count)
        taken = bytes(self.got[:count])
        del self.got[:count]
        return taken


async def test_all_see_what_one_draws_each_in_its_own_format() -> None:
    screen = Screen("h0")
    full, narrow = Viewer(screen), Viewer(screen)
    for viewer in (full, narrow):
        await viewer.sent(HELLO, hello_bytes("h0"))
    narrow.reader.feed_data(struct.pack(">B3xBBBBHHHBBB3x", 0, 16, 16, 1, 1, 31, 63, 31, 11, 5, 0))
    whole = await narrow.sent(ASK, 16 + 2 * WIDTH * HEIGHT)
    assert whole[16:18] == struct.pack(">H", 23 << 11 | 47 << 5 | 23), "the first bar, with five and six bits a part"
    full.reader.feed_data(ASK_CHANGES)
    narrow.reader.feed_data(ASK_CHANGES + click(3, 3))
    seen = await full.sent(b"", BLOCK_BYTES)
    assert seen == struct.pack(">BxHHHHHi", 0, 1, 0, 0, 20, 20, 0) + b"\xff\xff\xff\0" * 400
    assert (await narrow.sent(b"", 16 + 2 * 400))[16:] == b"\xff\xff" * 400
    full.reader.feed_data(ASK_CHANGES)
    narrow.reader.feed_data(click(3, 3))
    assert (await full.sent(b"", BLOCK_BYTES))[16:20] == b"\xc0\xc0\xc0\0", "another click takes it back"
    for viewer in (full, narrow):
        viewer.reader.feed_eof()
        await viewer.serving


@pytest.mark.parametrize("said", [b"RFB 003.003\n", HELLO + b"\x63"])
async def test_what_is_not_rfb_ends_it(said: bytes) -> None:
    viewer = Viewer(Screen("h0"))
    viewer.reader.feed_data(said)
    async with asyncio.timeout(10):
        await viewer.serving

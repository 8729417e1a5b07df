"""Screens of devices by `exec -- screen`, as the kubelet API asks for them: bytes are held up, and never dropped."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.component.controllers.consolesite import Site, open_site, until_open
from tests.component.controllers.harness import open_world
from tests.component.controllers.looking import eventually
from tests.support.apiserver import ApiServer
from tests.support.rfb import ASK, ASK_CHANGES, BLOCK_BYTES, HELLO, WHOLE_BYTES, click, hello_bytes, key, pixel
from tests.support.terminals import Terminal
from vkprovider.labs.kubelet.spi import Exit
from vkprovider.platform.errors import InputError, Unavailable
from vkpsim.cml.consoles.screen import BARS, WHITE, colour_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
WHOLE = 40
"""So many pictures, 10 MB, are more than fits into what is between a screen and its viewer."""


class Viewer(Terminal):
    """A session of `kubectl exec -i` whose bytes are those of VNC; it may read slowly."""

    def __init__(self) -> None:
        super().__init__(tty=False)
        self.got = bytearray()
        self.reads = asyncio.Event()
        self.reads.set()

    def send(self, data: bytes) -> None:
        self._keys.append(data)
        self._changed.set()

    async def write(self, data: bytes) -> None:
        await self.reads.wait()
        self.got += data

    async def take(self, count: int) -> bytes:
        async def is_there() -> bool:
            return len(self.got) >= count

        await eventually(is_there, f"{count} bytes have come")
        taken = bytes(self.got[:count])
        del self.got[:count]
        return taken


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(apiserver: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with open_world(apiserver, tmp_path_factory.mktemp("screens")) as world:
        site = await open_site(world, patty=True)
        await (await until_open(site, 5900)).close()
        yield site


async def watched(site: Site, device: str = "h0") -> tuple[Viewer, asyncio.Task[Exit]]:
    viewer = Viewer()
    session = asyncio.create_task(site.devices.execute(site.target("lab"), ["screen", device], viewer))
    viewer.send(HELLO)
    assert (await viewer.take(hello_bytes("h0"))).startswith(b"RFB 003.008\n")
    return viewer, session


async def test_a_picture_a_click_and_a_key_for_all_who_look(site: Site) -> None:
    (one, first), (other, second) = await watched(site), await watched(site)
    one.send(ASK)
    assert pixel(await one.take(WHOLE_BYTES)) == BARS[0]
    other.send(ASK_CHANGES)
    one.send(ASK_CHANGES + click(45, 45))
    for viewer in (one, other):
        assert pixel(await viewer.take(BLOCK_BYTES)) == WHITE
    one.send(ASK_CHANGES)
    other.send(key(ord("k")))
    assert pixel(await one.take(BLOCK_BYTES)) == colour_of(ord("k"))
    for viewer, session in ((one, first), (other, second)):
        viewer.half_close()
        assert await asyncio.wait_for(session, 60) == Exit(0)


async def test_a_viewer_that_reads_nothing_holds_the_device_up_and_loses_nothing(site: Site) -> None:
    viewer, session = await watched(site)
    viewer.reads.clear()
    viewer.send(ASK * WHOLE)
    patty = site.simulator.patty
    assert patty is not None

    async def waits() -> bool:
        return any(
            writer.transport.get_write_buffer_size() for each in patty._open.values() for writer in each._writers
        )

    await eventually(waits, "the screen cannot send on")
    viewer.reads.set()
    whole = await viewer.take(WHOLE * WHOLE_BYTES)
    assert whole == whole[:WHOLE_BYTES] * WHOLE
    viewer.leave()
    assert (await asyncio.wait_for(session, 60)).code == 0


@pytest.mark.parametrize(
    ("words", "tty", "said"),
    [
        (("screen", "r1"), False, r"NoScreen: device r1 of pod .* has no screen here: .* no tag `vnc:PORT`"),
        (("screen", "sw"), False, "NoConsole: CML has no console for sw"),
        (("screen", "r9"), False, "NotADevice: device 'r9'"),
        (("screen", "h0"), True, "CommandInvalid: write `screen DEVICE`"),
        (("screen",), False, "CommandInvalid: write `screen DEVICE`"),
    ],
)
async def test_what_is_no_screen_is_refused_with_a_sentence(
    site: Site,
    words: tuple[str, ...],
    tty: bool,  # noqa: FBT001 (a column)
    said: str,
) -> None:
    with pytest.raises(InputError, match=said):
        await site.run("lab", *words, stdin=True, tty=tty)


async def test_a_screen_ends_with_its_device(site: Site) -> None:
    _, session = await watched(site)
    site.simulator.simulation.world.crash(site.simulator.now(), site.node("h0"))
    with pytest.raises(Unavailable, match="the screen of h0 has ended: its device stopped, or the way to it broke"):
        await asyncio.wait_for(session, 60)

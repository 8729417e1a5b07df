"""Consoles, screens and ports of CML's host, over each way to a worker."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.mosquitto import CALLER, Mosquitto
from tests.support.tunnels import Heard, agent_over, broker, eventually, hub_over, running
from tests.support.websockets import Caller, dialing_agent, started
from tunnels.base import AllowList, ByteChannel, ConnectionLost
from tunnels.link.hub import TunnelTransport
from vkprovider.agent.process import open_streams, open_upstream
from vkprovider.agent.settings import AgentSettings
from vkprovider.agent.upstream import AGENT_API
from vkprovider.cml.factory import open_labs, session_over
from vkprovider.cml.operations import LABS_API, STREAMS_API
from vkprovider.cml.spi import Credentials, Labs
from vkprovider.cml.worker import CmlLabs
from vkprovider.platform.errors import Fenced, Forbidden, NotFound, Unavailable
from vkpsim.cml.consoles.patty import PattySettings
from vkpsim.cml.simulation import Settings

TOPOLOGY = """
lab: {version: 0.1.0, title: t}
nodes:
- {id: n0, label: h0, node_definition: alpine, x: 0, y: 0, interfaces: [], tags: ['pat:%d:80', 'pat:%d:80']}
- {id: n1, label: sw, node_definition: unmanaged_switch, x: 0, y: 0, interfaces: []}
links: []
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


@dataclass
class Site:
    """A simulator with a lab, and the way to it.

    Attributes:
        ports: Of CML's host: one that the agent may dial, one that it may not.
        fence: Raised by the guard, if set.
    """

    labs: Labs
    simulator: CmlSimulator
    lab: str
    nodes: dict[str, str]
    ports: list[int]
    way: str
    fence: list[Exception] = field(default_factory=list)


async def read_credentials() -> Credentials:
    return Credentials("admin", "right")


@pytest.fixture(params=["direct", "mqtt", "http"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    low, high = sorted(free_ports(2))
    fence: list[Exception] = []

    def guard() -> None:
        if fence:
            raise fence[0]

    async with AsyncExitStack() as stack:
        settings = Settings(password="right", boot_seconds=(0.0, 0.0))
        patty = PattySettings(first_port=1024, last_port=65535, poll_s=0.02)
        sim = await stack.enter_async_context(CmlSimulator(settings, patty=patty))
        if request.param == "direct":
            labs: Labs = open_labs(sim.url, read_credentials, guard=guard)
        else:
            agent_settings = AgentSettings(url=sim.url, ports=f"1024-{low}")
            upstream, streams = open_upstream(agent_settings), open_streams(agent_settings)
            stack.push_async_callback(upstream.close)
            stack.push_async_callback(streams.close)
            heard = Heard()
            if request.param == "mqtt":
                mosquitto = Mosquitto(tmp_path)
                await mosquitto.start()
                stack.push_async_callback(mosquitto.stop)
                hub = hub_over(broker(mosquitto, CALLER), heard)
                agent = agent_over(broker(mosquitto, "w1"), upstream, allow=AGENT_API, streams=streams)
                await stack.enter_async_context(running(hub.run, agent.run))
            else:
                caller = Caller()
                agent, _ = dialing_agent([caller.url], upstream, allow=AGENT_API, streams=streams)
                await stack.enter_async_context(started(caller))
                await stack.enter_async_context(running(agent.run))
                hub, heard = caller.hub, caller.heard
            await heard.until(lambda: heard.views)
            allow = AllowList((*LABS_API.entries, *STREAMS_API.entries))
            way = TunnelTransport(hub, "w1", allow=allow, guard=guard, epoch=lambda: 1)
            labs = CmlLabs(session_over(way, sim.url, read_credentials), sim.url, way)
        stack.push_async_callback(labs.close)
        lab = (await labs.import_lab(TOPOLOGY % (low, high), "t")).id
        await labs.start_lab(lab)
        nodes = {device.label: device.id for device in await labs.list_devices(lab)}
        yield Site(labs, sim, lab, nodes, [low, high], request.param, fence)


async def until(channel: ByteChannel, expected: bytes) -> bytes:
    """Read until the output ends with something."""
    said = b""
    async with asyncio.timeout(60):
        while not said.endswith(expected):
            said += await channel.read()
    return said


async def opened(open_it: Callable[[], Awaitable[ByteChannel]]) -> ByteChannel:
    """Open a channel, as soon as the port is there."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await open_it()
            except Unavailable:
                await asyncio.sleep(0.05)


async def test_a_console_echoes_each_key_and_its_log_has_the_lines(site: Site) -> None:
    consoles = site.labs.consoles
    one = await consoles.open_console(site.lab, site.nodes["h0"])
    other = await consoles.open_console(site.lab, site.nodes["h0"])
    await until(one, b"h0:~# ")
    for key in "echo café".encode():
        await one.write(bytes([key]))
    assert await until(one, "echo café".encode())
    await one.write(b"\r")
    assert await until(one, b"h0:~# ") == "\r\ncafé\r\nh0:~# ".encode()
    assert (await until(other, "café\r\nh0:~# ".encode())).count(b"h0:~# ") == 2
    assert (await consoles.read_log(site.lab, site.nodes["h0"], lines=1)).endswith("|café")
    assert (await consoles.read_log(site.lab, site.nodes["h0"])).startswith("|0|h0: power on")
    await one.end()
    await one.close()
    with pytest.raises(ConnectionLost):
        await one.write(b"x")
    await site.labs.stop_lab(site.lab)
    async with asyncio.timeout(60):
        while await other.read():
            pass
    await other.close()


async def test_a_device_without_a_console_has_none(site: Site) -> None:
    with pytest.raises(NotFound, match=site.nodes["sw"]):
        await site.labs.consoles.open_console(site.lab, site.nodes["sw"])


async def test_a_screen_greets_as_vnc_does(site: Site) -> None:
    screen = await site.labs.consoles.open_screen(site.lab, site.nodes["h0"])
    assert await screen.read() == b"RFB 003.008\n"
    await screen.close()


async def test_a_port_carries_both_directions_and_each_ends_by_itself(site: Site) -> None:
    port = site.ports[0]
    channel = await opened(lambda: site.labs.consoles.open_port(port))
    data = b"".join(b"line %d\n" % number for number in range(20_000))
    writing = asyncio.ensure_future(channel.write(data))
    got = b""
    async with asyncio.timeout(60):
        while len(got) < len(data):
            got += await channel.read()
        await writing
        await channel.write(b"the last one\n")
        await channel.end()
        while part := await channel.read():
            got += part
    assert got == data + b"the last one\n"
    await channel.close()


async def test_a_peer_that_leaves_ends_the_connection_at_the_other_end(site: Site) -> None:
    port = site.ports[0]
    channel = await opened(lambda: site.labs.consoles.open_port(port))
    await channel.write(b"hello\n")
    assert await channel.read() == b"hello\n"
    assert site.simulator.patty is not None
    listener = next(found for (tag, _), found in site.simulator.patty._open.items() if tag.port == port)
    assert listener._writers
    await channel.close()
    await eventually(lambda: not listener._writers)


async def test_a_closed_port_is_unavailable_and_one_beyond_the_range_is_refused(site: Site) -> None:
    with pytest.raises(Unavailable, match=r"port 1025: .*refused"):
        await site.labs.consoles.open_port(1025)
    if site.way != "direct":
        with pytest.raises(Forbidden, match=f"port {site.ports[1]} of 127.0.0.1 is none that may be dialled"):
            await site.labs.consoles.open_port(site.ports[1])


async def test_the_guard_is_asked_before_anything_connects(site: Site) -> None:
    port = site.ports[0]
    await (await opened(lambda: site.labs.consoles.open_port(port))).close()
    site.fence.append(Fenced("not ours any more"))
    with pytest.raises(Fenced):
        await site.labs.consoles.open_port(port)
    with pytest.raises(Fenced):
        await site.labs.consoles.open_console(site.lab, site.nodes["h0"])


async def test_cpu_is_by_node(site: Site) -> None:
    assert site.nodes["h0"] in await site.labs.consoles.cpu_percent(site.lab)

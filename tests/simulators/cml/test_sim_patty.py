"""Tags of running nodes really open ports."""

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator

import pytest

from tests.simulators.cml.cisco import PASSWORD
from tests.simulators.cml.plain import Plain, eventually, plain
from tests.support.cmlapi.simulator import CmlSimulator
from vkpsim.cml.consoles import inside
from vkpsim.cml.consoles.patty import Patty, PattySettings
from vkpsim.cml.simulation import Settings


@pytest.fixture
async def simulator() -> AsyncIterator[CmlSimulator]:
    settings = Settings(password=PASSWORD, boot_seconds=(0.1, 0.1))
    patty = PattySettings(first_port=1024, last_port=65000, poll_s=0.02)
    async with CmlSimulator(settings, patty=patty) as simulator:
        yield simulator


def patty_of(simulator: CmlSimulator) -> Patty:
    assert simulator.patty is not None
    return simulator.patty


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


async def load(client: Plain, tags: dict[str, list[str]]) -> str:
    lab = await client.load()
    _, nodes = await client.api("GET", f"/labs/{lab}/nodes?data=true")
    for node in nodes:
        await client.api("PATCH", f"/labs/{lab}/nodes/{node['id']}", json={"tags": tags.get(node["label"], [])})
    return lab


async def talk(port: int, *lines: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for line in lines:
        writer.write(line)
    writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()


async def test_ports_open_with_their_nodes_and_close_with_them(simulator: CmlSimulator) -> None:
    serial, vnc, pat, second = free_ports(4)
    async with plain(simulator) as client:
        tags = {"h0": [f"serial:{serial}", f"vnc:{vnc}", f"pat:{pat}:80"], "r1": [f"serial:{second}:1", "serial:80"]}
        lab = await load(client, tags)
        await asyncio.sleep(0.1)
        assert patty_of(simulator).ports == set()
        await client.api("PUT", f"/labs/{lab}/start")
        await eventually(lambda: patty_of(simulator).ports, {serial, vnc, pat, second}.__eq__)
        said = await talk(serial, b"echo hello\r\n")
        assert said.startswith(b"h0: power on\r\n")
        assert said.endswith(b"h0:~# echo hello\r\nhello\r\nh0:~# ")
        assert (await talk(second)).startswith(b"r1: power on\r\n")
        assert await talk(vnc) == b"RFB 003.008\n"
        assert (await talk(pat, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")).endswith(b"\r\n\r\nh0:80\n")
        assert await talk(pat, b"anything\n") == b"anything\n"
        _, log = await client.api("GET", f"/labs/{lab}/nodes/{await self_id(client, lab)}/consoles/0/log?lines=1")
        assert log.endswith("|hello")
        reader, writer = await asyncio.open_connection("127.0.0.1", serial)
        await client.api("PUT", f"/labs/{lab}/stop")
        await asyncio.wait_for(read_to_the_end(reader), 30)
        writer.close()
        await eventually(lambda: not patty_of(simulator).ports)
        with pytest.raises(ConnectionRefusedError):
            await talk(serial)


async def read_to_the_end(reader: asyncio.StreamReader) -> None:
    try:
        await reader.read()
    except ConnectionResetError:
        return


async def self_id(client: Plain, lab: str) -> str:
    return str((await client.api("GET", f"/labs/{lab}/find/node/label/h0"))[1])


async def test_tags_may_change_while_the_node_runs(simulator: CmlSimulator) -> None:
    first, second = free_ports(2)
    async with plain(simulator) as client:
        lab = await load(client, {"h0": [f"serial:{first}"]})
        await client.api("PUT", f"/labs/{lab}/start")
        await eventually(lambda: patty_of(simulator).ports, {first}.__eq__)
        node = await self_id(client, lab)
        await client.api("PATCH", f"/labs/{lab}/nodes/{node}", json={"tags": [f"serial:{second}"]})
        await eventually(lambda: patty_of(simulator).ports, {second}.__eq__)
        assert (await talk(second)).endswith(b"h0:~# ")


async def test_a_clash_is_only_logged_and_who_ran_first_keeps_the_port(
    simulator: CmlSimulator, capsys: pytest.CaptureFixture[str]
) -> None:
    [port] = free_ports(1)
    async with plain(simulator) as client:
        first = await load(client, {"h0": [f"serial:{port}"]})
        second = await load(client, {"r1": [f"serial:{port}"]})
        await client.api("PUT", f"/labs/{first}/start")
        await eventually(lambda: patty_of(simulator).ports)
        assert (await client.api("PUT", f"/labs/{second}/start"))[0] == 204
        await client.until(second, "BOOTED")
        await eventually(lambda: capsys.readouterr().out, lambda text: "node h0 has it" in text)
        assert (await talk(port)).endswith(b"h0:~# ")
        await client.api("PUT", f"/labs/{first}/stop")

        async def who() -> bytes:
            try:
                return await talk(port)
            except ConnectionError:
                return b""

        await eventually(who, lambda said: said.startswith(b"r1: power on"))


async def test_a_port_that_somebody_else_has_is_only_logged(
    simulator: CmlSimulator, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with plain(simulator) as client:
            lab = await load(client, {"h0": [f"serial:{port}"]})
            await client.api("PUT", f"/labs/{lab}/start")
            await client.until(lab, "BOOTED")
            await eventually(lambda: capsys.readouterr().out, lambda text: "port not opened" in text)
    await eventually(lambda: patty_of(simulator).ports, {port}.__eq__)


async def test_datagrams_reach_the_device(simulator: CmlSimulator) -> None:
    [port] = free_ports(1)
    async with plain(simulator) as client:
        lab = await load(client, {"h0": [f"pat:udp:{port}:53"]})
        await client.api("PUT", f"/labs/{lab}/start")
        await eventually(lambda: patty_of(simulator).ports)
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.settimeout(0)
            await loop.sock_sendto(sender, b"ping", ("127.0.0.1", port))
            assert await asyncio.wait_for(loop.sock_recv(sender, 100), 30) == b"ping"


async def test_a_device_serves_ssh_to_a_real_client(simulator: CmlSimulator) -> None:
    ssh = shutil.which("ssh")
    if ssh is None or not inside.has_ssh():
        pytest.skip("needs ssh, and the package asyncssh")
    [port] = free_ports(1)
    async with plain(simulator) as client:
        lab = await load(client, {"h0": [f"pat:{port}:22"]})
        await client.api("PUT", f"/labs/{lab}/start")
        await eventually(lambda: patty_of(simulator).ports)
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "BatchMode=yes")
        command = [ssh, "-F", "none", *(f"-o{option}" for option in options), "-p", str(port), "cisco@127.0.0.1"]
        running = await asyncio.create_subprocess_exec(*command, "uname -a", stdout=asyncio.subprocess.PIPE)
        out, _ = await asyncio.wait_for(running.communicate(), 60)
    assert (running.returncode, out.split()[:2]) == (0, [b"Linux", b"h0"])

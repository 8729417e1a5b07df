"""The simulator as a process: its state file survives its end, its command line does what it says."""

import asyncio
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.simulators.cml.cisco import PASSWORD
from tests.simulators.cml.plain import eventually, plain
from tests.support.cmlapi.simulator import CmlSimulator
from vkpsim.cml.simulation import Settings


@asynccontextmanager
async def process(*options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run `vkprovider sim cml`; yield the process and its address."""
    command = [sys.executable, "-m", "vkprovider", "sim", "cml", "--password", PASSWORD, *options]
    running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert running.stdout is not None
    try:
        line = await asyncio.wait_for(running.stdout.readline(), 30)
        assert line.startswith(b"CML simulator 2.9.1+build.7 at http"), line
        yield running, line.decode().split(" at ")[1].strip()
    finally:
        if running.returncode is None:
            running.terminate()
        await asyncio.wait_for(running.communicate(), 30)


async def test_labs_states_and_tokens_survive_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    options = ("--listen", "127.0.0.1:0", "--state", str(path), "--boot-seconds", "0.3")

    def stored(lab: str) -> bool:
        found = json.loads(path.read_text())["labs"].get(lab)  # the file follows what is answered
        return found is not None and len(next(iter(found["nodes"].values()))["boots"]) > 0

    async with process(*options) as (running, url), plain(url) as client:
        booted, starting, idle = [await client.load() for _ in range(3)]
        await client.api("PUT", f"/labs/{booted}/start")
        await client.until(booted, "BOOTED")
        await client.api("PUT", f"/labs/{starting}/start")
        token = client.token
        before = (await client.api("GET", f"/labs/{idle}/download"))[1]
        await eventually(lambda: stored(starting))
        running.send_signal(signal.SIGKILL)
        await running.wait()
    async with process(*options) as (_, url), plain(url) as client:
        client.token = token
        assert set((await client.api("GET", "/labs"))[1]) == {booted, starting, idle}
        assert await client.states(booted) == {"BOOTED"}
        assert await client.states(idle) == {"DEFINED_ON_CORE"}
        assert (await client.api("GET", f"/labs/{idle}/download"))[1] == before
        await client.until(starting, "BOOTED")


async def test_an_orderly_end_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    async with CmlSimulator(Settings(password=PASSWORD), state=path) as simulator, plain(simulator) as client:
        lab = await client.load()
    async with CmlSimulator(Settings(password=PASSWORD), state=path) as simulator, plain(simulator) as client:
        assert (await client.api("GET", "/labs"))[1] == [lab]
        await client.api("DELETE", f"/labs/{lab}")
    async with CmlSimulator(Settings(password=PASSWORD), state=path) as simulator, plain(simulator) as client:
        assert (await client.api("GET", "/labs"))[1] == []


async def test_an_invalid_state_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"labs": 7}')
    with pytest.raises(ValueError, match="not a state file"):
        await CmlSimulator(Settings(password=PASSWORD), state=path).__aenter__()
    assert path.read_text() == '{"labs": 7}'


async def test_a_state_file_that_cannot_be_written_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone"):
        await CmlSimulator(Settings(password=PASSWORD), state=tmp_path / "gone" / "state.json").__aenter__()


async def test_the_command_line_serves_tls_tags_faults_and_a_log(tmp_path: Path) -> None:
    plan, log = tmp_path / "faults.json", tmp_path / "access.jsonl"
    plan.write_text('[{"kind": "status", "route": "/users$", "status": 502}]')
    options = ["--listen", "127.0.0.1:0", "--tls", "--access-log", str(log), "--faults", str(plan), "--seed", "1"]
    options += ["--boot-seconds", "0.1-0.2", "--boot", "iosv=0.1", "--latency-ms", "1", "--licence-nodes", "5"]
    options += ["--console-baud", "9600"]
    options += ["--cpus", "4", "--memory-gib", "8", "--patty", "--port-range", "1024-65535"]
    async with process(*options, "--patty-poll-seconds", "0.05") as (running, url), plain(url) as client:
        assert url.startswith("https://127.0.0.1:")
        assert (await client.api("GET", "/users"))[0] == 502
        stats = (await client.api("GET", "/system_stats"))[1]["all"]
        assert (stats["cpu"]["count"], stats["memory"]["total"]) == (4, 8 * 1024**3)
        lab = await client.load()
        node = (await client.api("GET", f"/labs/{lab}/find/node/label/h0"))[1]
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        await client.api("PATCH", f"/labs/{lab}/nodes/{node}", json={"tags": [f"serial:{port}"]})
        await client.api("PUT", f"/labs/{lab}/start")
        await client.until(lab, "BOOTED")

        async def prompt() -> bytes:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionError:
                return b""
            try:
                return await reader.readline()
            finally:
                writer.close()

        assert await eventually(prompt) == b"h0: power on\r\n"
        running.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(running.wait(), 30) == 0
    assert '"title":"two-hosts"' in log.read_text()


async def test_a_taken_port_is_reported_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [sys.executable, "-m", "vkprovider", "sim", "cml", "--password", PASSWORD]
        command += ["--listen", f"127.0.0.1:{taken.getsockname()[1]}"]
        running = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        _, said = await asyncio.wait_for(running.communicate(), 30)
    assert running.returncode == 1
    assert b"address already in use" in said
    assert b"Traceback" not in said

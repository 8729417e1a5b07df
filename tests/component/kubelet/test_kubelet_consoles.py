"""kubectl, the real API server, our kubelet API and simulated devices: what a user types, and what is left of it."""

import asyncio
import contextlib
import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
import structlog

from tests.component.controllers.consolesite import Site, open_site
from tests.component.controllers.harness import World, open_world
from tests.component.controllers.looking import eventually, is_ready, when
from tests.component.kubelet.credentials import Credentials, client
from tests.component.kubelet.kubectl import left_over
from tests.support.apiserver import ApiServer
from vkpsandbox.controlplane.build import find_kubectl

pytestmark = pytest.mark.asyncio(loop_scope="module")
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
PATIENCE_S = 90.0


@dataclass(frozen=True)
class Place:
    """A lablet that runs, and kubectl."""

    site: Site
    server: ApiServer
    cache: str

    async def start(self, *words: str, environ: Mapping[str, str] | None = None) -> asyncio.subprocess.Process:
        environment = {**os.environ, "KUBECACHEDIR": self.cache, **(environ or {})}
        where = (f"--kubeconfig={self.server.kubeconfig}", f"--namespace={self.site.lablet.namespace}")
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            str(find_kubectl()), *where, *words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )

    async def run(
        self, *words: str, stdin: bytes = b"", environ: Mapping[str, str] | None = None
    ) -> tuple[int, str, str]:
        """Run kubectl; return its exit code, and what it printed."""
        process = await self.start(*words, environ=environ)
        async with asyncio.timeout(PATIENCE_S):
            out, err = await process.communicate(stdin)
        return process.returncode or 0, out.decode(), err.decode()

    async def settled(self) -> None:
        """Wait until nothing is open."""
        sessions = self.site.running.replica.kubelet.sessions
        await when(lambda: sessions.open.total() == 0, "sessions end")
        await when(lambda: not left_over(), "their tasks end")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(apiserver: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with open_world(apiserver, tmp_path_factory.mktemp("consoles")) as world:
        yield Place(await open_site(world, patty=True), apiserver, str(tmp_path_factory.mktemp("cache")))


@pytest_asyncio.fixture(loop_scope="module")
async def place(shared: Place) -> AsyncIterator[Place]:
    """Each test leaves nothing open."""
    yield shared
    await shared.settled()


@pytest.mark.parametrize("environ", [{}, SPDY], ids=["websocket", "spdy"])
async def test_a_command_at_a_devices_prompt(place: Place, environ: Mapping[str, str]) -> None:
    name = place.site.lablet.name
    code, out, err = await place.run("exec", name, "-c", "r1", "--", "show", "version", environ=environ)
    assert (code, err) == (0, "")
    assert out.startswith("Cisco IOS Software, IOSv Software (simulated)")
    code, out, err = await place.run("exec", name, "-c", "lab", "--", "show version", environ=environ)
    assert (code, out) == (1, "")
    assert "container lab is not a device" in err


@pytest.mark.parametrize("environ", [{}, SPDY], ids=["websocket", "spdy"])
async def test_input_that_no_device_gets_is_an_error(place: Place, environ: Mapping[str, str]) -> None:
    name = place.site.lablet.name
    for size in (5, 300_000):
        code, _, err = await place.run(
            "exec", "-i", name, "-c", "h0", "--", "tee", "f", stdin=b"x" * size, environ=environ
        )
        assert (code, "kubectl attach -i" in err) == (1, True), err
    assert not [line for line in place.site.node("h0").typed if "tee" in line.text]
    code, out, err = await place.run("exec", "-i", name, "-c", "h0", "--", "echo", "no-input", environ=environ)
    assert (code, out, err) == (0, "no-input\n", "")


async def test_a_copy_that_fails_says_so(place: Place, tmp_path: Path) -> None:
    name, file = place.site.lablet.name, tmp_path / "README"
    file.write_text("hello\n")
    before = [len(place.site.node(label).typed) for label in ("r1", "h0")]
    for device in ("r1", "h0"):
        code, _, err = await place.run("cp", str(file), f"{name}:/README", "-c", device)
        assert (code, f"kubectl port-forward {name} 2222:22" in err) == (1, True), err
        code, _, err = await place.run("cp", f"{name}:/etc/hostname", str(tmp_path / "copy"), "-c", device)
        assert (code, f"kubectl port-forward {name} 2222:22" in err) == (1, True), err
    assert [len(place.site.node(label).typed) for label in ("r1", "h0")] == before
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("environ", [{}, SPDY], ids=["websocket", "spdy"])
async def test_a_console(place: Place, environ: Mapping[str, str]) -> None:
    name = place.site.lablet.name
    process = await place.start("exec", "-i", name, "-c", "r1", "--", "console", environ=environ)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(b"\recho hello there\r")
        said = b""
        async with asyncio.timeout(PATIENCE_S):
            while b"\nhello there\n" not in said and (data := await process.stdout.read(1000)):
                said += data.replace(b"\r", b"")
        assert b"\nhello there\n" in said
    finally:
        process.terminate()
        await process.communicate()


async def test_the_log_of_a_device_goes_on_while_it_is_followed(place: Place) -> None:
    name = place.site.lablet.name
    code, whole, _ = await place.run("logs", name, "-c", "h0")
    assert code == 0
    assert whole.splitlines()
    code, last, _ = await place.run("logs", name, "-c", "h0", "--tail=1", "--timestamps")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[0-9:]{8}\.\d{9}Z .*\n", last)
    following = await place.start("logs", name, "-c", "h0", "-f", "--tail=0")
    assert following.stdout is not None
    sessions = place.site.running.replica.kubelet.sessions
    await when(lambda: sessions.open["logs"] == 1, "it is followed")
    code, _, _ = await place.run("exec", name, "-c", "h0", "--", "echo marker-17")
    assert code == 0
    async with asyncio.timeout(PATIENCE_S):
        while "marker-17" not in (await following.stdout.readline()).decode():
            pass
    following.terminate()
    await following.communicate()


@contextlib.asynccontextmanager
async def forwarding(place: Place, remote: int, environ: Mapping[str, str]) -> AsyncIterator[int]:
    """Forward a port; yield the local one."""
    process = await place.start("port-forward", f"pod/{place.site.lablet.name}", f":{remote}", environ=environ)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            line = (await process.stdout.readline()).decode()
        found = re.match(r"Forwarding from 127\.0\.0\.1:(\d+) ->", line)
        assert found is not None, line
        yield int(found[1])
    finally:
        process.terminate()
        await process.communicate()


@pytest.mark.parametrize("environ", [{}, SPDY], ids=["websocket", "spdy"])
async def test_a_port_of_a_device(place: Place, environ: Mapping[str, str]) -> None:
    allocated = await place.site.port("r1_serial")
    async with forwarding(place, allocated, environ) as port, asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\r")
        assert await reader.readuntil(b"r1>")
        writer.close()


async def test_a_port_that_a_lablet_lacks_is_named(place: Place) -> None:
    process = await place.start("port-forward", f"pod/{place.site.lablet.name}", ":9")
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        line = (await process.stdout.readline()).decode()
        port = int(line.split("127.0.0.1:")[1].split(" ")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x")
        await reader.read()
        writer.close()
        _, err = await process.communicate()
    assert b"UnknownPort" in err


async def test_what_a_session_leaves_behind(place: Place) -> None:
    name = place.site.lablet.name
    with structlog.testing.capture_logs() as said:
        await place.run("exec", name, "-c", "h0", "--", "uname -a")
        await place.settled()
    audit = [line for line in said if line["event"].startswith("a session ")]
    assert [line["event"] for line in audit] == ["a session begins", "a session ends"]
    assert {line["user"] for line in audit} == {"kube-apiserver-kubelet-client"}
    assert {(line["kind"], line["pod"], line["container"]) for line in audit} == {
        ("exec", f"{place.site.lablet.namespace}/{name}", "h0")
    }
    assert audit[1]["lasted_s"] >= 0
    assert "uname" not in json.dumps(audit), "what is typed may be secret"
    world: World = place.site.world
    event = await world.until_event("ConsoleOpened", name)
    assert event["message"].startswith("kube-apiserver-kubelet-client has begun a session")
    assert event["count"] == 1


async def test_what_devices_use(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    node = await place.site.world.node(place.site.worker, is_ready)
    world = place.site.world
    tls = Credentials(place.server, world.admin, world.namespace, tmp_path_factory.mktemp("tls")).apiserver()
    async with client(node, tls) as call:
        key = f'{{container="r1",namespace="{world.namespace}",pod="{place.site.lablet.name}"}}'

        async def known() -> bool:
            text = (await call("/metrics/resource")).text
            [found] = re.findall(rf"^container_memory_working_set_bytes{re.escape(key)} (\S+)", text, re.MULTILINE)
            return float(found) >= 2**20

        await eventually(known, "what r1 uses")
        summary = json.loads((await call("/stats/summary")).text)
    [pod] = summary["pods"]
    assert pod["podRef"]["name"] == place.site.lablet.name
    assert {"r1", "h0", "lab"} <= {container["name"] for container in pod["containers"]}
    assert summary["node"]["memory"]["workingSetBytes"] >= 2**20

"""What the simulator answers to plain HTTP: unknown paths, sizes, many labs, the access log."""

import asyncio
import io
import json
import time
from pathlib import Path

import aiohttp
import pytest

from tests.simulators.cml.cisco import PASSWORD, TOPOLOGY
from tests.simulators.cml.plain import eventually, plain
from tests.support.cmlapi.simulator import CmlSimulator
from vkpsim.cml.simulation import Settings


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v0/nonsense"),
        ("GET", "/api/v0/"),
        ("GET", "/"),
        ("POST", "/api/v0/labs/x/nonsense"),
        ("DELETE", "/api/v0/labs"),
        ("GET", "/api/v0/authentication"),
        ("GET", "/api/v1/labs"),
    ],
)
async def test_unknown_paths_are_404_with_an_error_body(simulator: CmlSimulator, method: str, path: str) -> None:
    async with plain(simulator) as client:
        status, body = await client.call(method, path)
        assert (status, body["code"], set(body)) == (404, 404, {"code", "description"})


async def test_without_a_token_only_the_open_paths_answer(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        for token in ("", "nonsense", client.token + "x"):
            client.token = token
            status, body = await client.api("GET", "/labs")
            assert (status, body["code"]) == (401, 401)
            assert (await client.api("GET", "/system_information"))[0] == 200
            assert (await client.api("GET", "/system/maintenance_mode"))[0] == 200
        status, body = await client.api("POST", "/authenticate", json={"username": "admin", "password": "no"})
        assert (status, body["code"]) == (403, 403)
        status, body = await client.api("POST", "/auth_extended", json={"username": "admin", "password": PASSWORD})
        assert (status, body["username"], body["admin"]) == (200, "admin", True)


async def test_bodies_have_their_limits(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        big = TOPOLOGY + "# " + "x" * (3 * 1024 * 1024)
        assert await client.load(big)
        assert (await client.api("POST", "/import", data=io.BytesIO(b"x" * (21 * 1024 * 1024))))[0] == 413
        lab = await client.load()
        notes = io.BytesIO(b'{"notes":"' + b"x" * (3 * 1024 * 1024) + b'"}')
        status, body = await client.api("PATCH", f"/labs/{lab}", data=notes)
        assert (status, body["code"]) == (413, 413)


async def test_an_unforeseen_error_is_a_500_as_in_cml(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        lab = await client.load()
        simulator.simulation.world.labs[lab].nodes["broken"] = None  # type: ignore[assignment]
        status, body = await client.api("GET", f"/labs/{lab}/topology")
        assert status == 500
        assert body["description"].startswith(f"The API at /api/v0/labs/{lab}/topology encountered")


async def test_all_nodes_of_many_labs_in_one_answer(simulator: CmlSimulator) -> None:
    node = "- {{id: n{0}, label: r{0}, node_definition: alpine, x: 0, y: 0, interfaces: []}}\n"
    topology = "lab: {version: 0.1.0, title: big}\nlinks: []\nnodes:\n" + "".join(node.format(n) for n in range(20))
    async with plain(simulator) as client:
        labs = [await client.load(topology) for _ in range(100)]
        await client.api("PUT", f"/labs/{labs[0]}/start")
        await client.until(labs[0], "BOOTED")
        query = "?operational=true&exclude_configurations=true"
        status, nodes = await client.api("GET", f"/nodes{query}")
        assert (status, len(nodes)) == (200, 2000)
        running = [node for node in nodes if node["operational"]]
        assert {node["lab_id"] for node in running} == {labs[0]}
        assert {(node["operational"]["ram"], node["operational"]["cpus"]) for node in running} == {(512, 1)}
        assert not any("configuration" in node for node in nodes)
        assert all("configuration" in node for node in (await client.api("GET", "/nodes"))[1])


def up(simulator: CmlSimulator, lab: str) -> bool:
    """Look at a lab without a request."""
    simulator.simulation.world.advance(simulator.now())
    return simulator.simulation.world.labs[lab].up


async def test_the_access_log_records_arrivals_answers_and_convergence(tmp_path: Path) -> None:
    file = tmp_path / "access.jsonl"
    settings = Settings(password=PASSWORD, boot_seconds=(1.0, 1.0))
    began = time.monotonic()
    async with CmlSimulator(settings, access_log=file, latency_ms=20) as simulator, plain(simulator) as client:
        lab, other = await client.load(), await client.load()
        await client.api("GET", f"/labs/{lab}/check_if_converged")
        await client.sim("POST", "/licence", {"quota": 0})  # no device boots until the nodes were listed
        await client.api("PUT", f"/labs/{lab}/start")
        await client.api("GET", "/nodes")
        await client.sim("POST", "/licence", {"quota": 10})
        await client.until(lab, "BOOTED")
        await client.api("GET", "/nodes")
        await client.api("PUT", f"/labs/{other}/start")
        await eventually(lambda: up(simulator, other))
        await client.api("GET", "/nodes")
        assert (await client.sim("GET", "/access-log?since=3"))[1][0]["number"] == 4
        listed = (await client.sim("GET", "/access-log"))[1]
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    assert entries == listed
    assert [entry["number"] for entry in entries] == list(range(1, len(entries) + 1))
    for entry in entries:
        assert began < entry["arrived_s"] < entry["answered_s"] < time.monotonic()
        assert entry["answered_s"] - entry["arrived_s"] >= 0.02
        assert abs((entry["answered_unix_s"] - entry["answered_s"]) - (time.time() - time.monotonic())) < 1
    imports = [entry for entry in entries if entry["path"] == "/api/v0/import"]
    assert [(entry["lab"], entry["title"]) for entry in imports] == [(lab, "two-hosts"), (other, "two-hosts")]
    shown = [(entry["path"].removeprefix("/api/v0"), entry["converged"]) for entry in entries if "converged" in entry]
    assert shown == [(f"/labs/{lab}/lab_element_state", [lab]), ("/nodes", [other])]
    assert {entry.get("user", "admin") for entry in entries} == {"admin"}


async def test_a_console_over_a_web_socket(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        lab = await client.load()
        await client.api("PUT", f"/labs/{lab}/start")
        await client.until(lab, "BOOTED")
        _, keys = await client.api("GET", "/keys/console?show_all=true")
        key = next(key for key, entry in keys.items() if entry["label"] == "h0")
        url = f"{simulator.url}/ws/dispatch/frontend/console"
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await client.session.ws_connect(f"{url}?uuid=nonsense")
        async with client.session.ws_connect(f"{url}?uuid={key}") as socket:
            assert (await socket.receive_bytes()).endswith(b"Press RETURN to get started\r\nh0:~# ")
            await socket.send_str("echo he")
            assert await socket.receive_bytes() == b"echo he"
            await socket.send_str("llo\r")
            assert await socket.receive_bytes() == b"llo\r\nhello\r\nh0:~# "
            await client.api("PUT", f"/labs/{lab}/stop")
            closing = await asyncio.wait_for(socket.receive(), 30)
            while closing.type is aiohttp.WSMsgType.BINARY:
                closing = await asyncio.wait_for(socket.receive(), 30)
            assert closing.type is aiohttp.WSMsgType.CLOSE

"""unicon, by which pyATS talks to devices, connects to simulated consoles and configures them."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Final

import pytest
import yaml

from tests.simulators.cml.cisco import PASSWORD
from tests.simulators.cml.plain import eventually, plain
from tests.simulators.cml.test_sim_patty import free_ports, patty_of
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.judges import run_judge
from vkpsim.cml.consoles.patty import PattySettings
from vkpsim.cml.simulation import Settings

SYSTEMS: Final = {
    "iosv": "ios",
    "csr1000v": "iosxe",
    "ioll2-xe": "iosxe",
    "nxosv9000": "nxos",
    "iosxrv9000": "iosxr",
    "frr": "ios",
    "asav": "asa",
    "alpine": "linux",
    "ubuntu": "linux",
}
"""Node definitions, with unicon's names of their systems; the testbed adds their platforms."""
SESSION: Final = "tests/simulators/cml/unicon_session.py"


@pytest.fixture
async def simulator() -> AsyncIterator[CmlSimulator]:
    patty = PattySettings(first_port=1024, last_port=65000, poll_s=0.02)
    async with CmlSimulator(Settings(password=PASSWORD, boot_seconds=(0.1, 0.1)), patty=patty) as simulator:
        yield simulator


def topology(ports: dict[str, int]) -> str:
    nodes = [
        f"- {{id: {name}, label: {name}, node_definition: {name}, x: 0, y: 0, tags: ['serial:{port}']}}"
        for name, port in ports.items()
    ]
    return "lab: {version: 0.3.0, title: consoles}\nlinks: []\nnodes:\n" + "\n".join(nodes)


async def test_unicon_connects_pages_and_configures(simulator: CmlSimulator) -> None:
    ports = dict(zip(SYSTEMS, free_ports(len(SYSTEMS)), strict=True))
    async with plain(simulator) as client:
        lab = await client.load(topology(ports))
        _, text = await client.api("GET", f"/labs/{lab}/pyats_testbed")
        testbed = yaml.safe_load(text)["devices"]
        assert {name: testbed[name]["os"] for name in ports} == SYSTEMS
        devices = [
            {"os": SYSTEMS[name], "platform": testbed[name]["platform"], "host": name, "port": port}
            for name, port in ports.items()
        ]
        await client.api("PUT", f"/labs/{lab}/start")
        await client.until(lab, "BOOTED")
        await eventually(lambda: patty_of(simulator).ports, set(ports.values()).__eq__)
        printed = await asyncio.to_thread(run_judge, "unicon-26.9", SESSION, json.dumps(devices))
        found = json.loads(printed.splitlines()[-1])
        assert set(found) == set(SYSTEMS)
        nodes = {node.label: node.id for node in simulator.simulation.world.labs[lab].nodes.values()}
        for name, answers in found.items():
            if SYSTEMS[name] == "linux":
                assert answers["filtered"].startswith(f"Linux {name} ")
                continue
            assert "ersion" in answers["filtered"]
            assert len(answers["filtered"].splitlines()) == 1
            assert [line.split()[1] for line in answers["long"].splitlines()] == [str(n) for n in range(1, 121)]
            configured = ["interface Loopback7", "description by unicon", "exit", "banner motd by unicon"]
            lines = [line.strip() for line in answers["running"].splitlines()]
            assert [line for line in configured if line != "exit"] == lines[-4:-1]
            await client.api("PUT", f"/labs/{lab}/nodes/{nodes[name]}/extract_configuration")
            _, node = await client.api("GET", f"/labs/{lab}/nodes/{nodes[name]}")
            assert "interface Loopback7\ndescription by unicon\n" in node["configuration"]

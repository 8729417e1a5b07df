"""The contract suite runs against the simulator, and says what differs when one step does."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from tests.component.cml.contract import Contract, connected
from tests.support.cmlapi.simulator import CmlSimulator
from vkpsim.cml.simulation import Settings
from vkpsim.http.faults import Fault


@pytest.fixture
async def sim() -> AsyncIterator[CmlSimulator]:
    async with CmlSimulator(Settings(password="right", boot_seconds=(0.05, 0.05))) as server:
        yield server


async def differing(sim: CmlSimulator, boot_s: float = 60.0) -> list[str]:
    """Run the suite; return the steps that differed."""
    async with connected(sim.url, "admin", "right") as labs:
        contract = Contract(labs, lambda _: None, boot_s)
        good = await contract.run()
    found = [f"{result.step}: {result.detail}" for result in contract.results if not result.ok]
    assert good == (not found)
    return found


@pytest.mark.parametrize("version", ["2.8.1+build.14", "2.9.1+build.7", "2.10.0+build.13"])
async def test_the_simulator_keeps_the_contract(version: str) -> None:
    settings = Settings(password="right", version=version, boot_seconds=(0.05, 0.05))
    async with CmlSimulator(settings) as sim:
        assert await differing(sim) == []
        assert sim.simulation.world.labs == {}


@pytest.mark.parametrize(
    ("route", "kind", "count", "step"),
    [
        ("PUT .*/start$", "status", None, "the devices boot: "),
        ("GET .*/download$", "status", None, "the lab is downloaded: "),
        ("PUT .*/wipe$", "status", 2, "a running lab is not wiped: "),
        ("GET .*/labs/11111111", "status", None, "a lab that does not exist is NotFound"),
    ],
)
async def test_the_step_that_differs_is_named_and_the_lab_is_gone(
    sim: CmlSimulator, route: str, kind: str, count: int | None, step: str
) -> None:
    foreign = await another_lab(sim)
    sim.faults.add(Fault(route=route, kind=kind, status=500, count=count), sim.now())  # type: ignore[arg-type]
    found = await differing(sim)
    assert found[0].startswith(step)
    assert "500" in found[0] or "Unavailable" in found[0]
    assert set(sim.simulation.world.labs) == {foreign}


async def test_an_import_without_an_answer_leaves_no_lab(sim: CmlSimulator) -> None:
    sim.faults.add(Fault(route="POST .*/import", kind="lost_answer"), sim.now())
    [found] = await differing(sim)
    assert found.startswith("a topology is imported under a title: ")
    assert [entry.path for entry in sim.log.since(0) if entry.method == "DELETE"]
    assert sim.simulation.world.labs == {}


async def test_devices_that_never_boot_are_named() -> None:
    async with CmlSimulator(Settings(password="right", boot_seconds=(999, 999))) as sim:
        [found] = await differing(sim, boot_s=0.2)
        assert "not BOOTED within 0.2 s: a is STARTED, b is STARTED" in found
        assert sim.simulation.world.labs == {}


async def test_a_wrong_password_differs_at_the_login(sim: CmlSimulator) -> None:
    sim.simulation.accounts.set_password(next(iter(sim.simulation.accounts.users.values())), "changed")
    found = await differing(sim)
    assert found[0].startswith("labs are listed after a login: Unauthorized")


def test_the_command_says_what_it_needs() -> None:
    env = {key: value for key, value in os.environ.items() if not key.startswith("CML_")}
    done = run_command(env)
    assert done.returncode != 0
    assert "set CML_URL and CML_PASSWORD" in done.stderr


async def test_the_command_prints_each_step_and_exits_by_the_outcome(sim: CmlSimulator) -> None:
    env = {**os.environ, "CML_URL": sim.url, "CML_PASSWORD": "right"}
    done = await asyncio.to_thread(run_command, env)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "ok       the version is told without a login: 2.9.1+build.7"
    assert len(lines) == 20
    sim.faults.add(Fault(route="GET .*/download$", kind="status", status=500), sim.now())
    done = await asyncio.to_thread(run_command, env)
    assert done.returncode == 1
    assert "DIFFERS  the lab is downloaded: Unavailable: " in done.stdout


def run_command(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.component.cml.contract"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 (our own)


async def another_lab(sim: CmlSimulator) -> str:
    """Import a lab of another user of the controller."""
    async with connected(sim.url, "admin", "right") as labs:
        return (await labs.import_lab("lab: {version: 0.1.0, title: of another user}\nnodes: []\nlinks: []\n")).id

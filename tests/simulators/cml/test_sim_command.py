"""The command `vkprovider sim cml`: what it refuses, and how."""

from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from vkprovider.cli.main import main
from vkpsim.cml.admin import table
from vkpsim.cml.server import CmlSimulator
from vkpsim.cml.simulation import Settings
from vkpsim.http.faults import Kind
from vkpsim.http.orders import GateOrders

PASSWORD = ("--password", "a-secret")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["sim", "cml", *arguments], env={"VKPROVIDER_SIM_PASSWORD": ""})
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--password"),
        ((*PASSWORD, "--listen", "8443"), "expected HOST:PORT"),
        ((*PASSWORD, "--port-range", "5000"), "expected FIRST-LAST"),
        ((*PASSWORD, "--port-range", "5000-2000"), "expected FIRST-LAST"),
        ((*PASSWORD, "--port-range", "2000-70000"), "expected FIRST-LAST"),
        ((*PASSWORD, "--boot-seconds", "20-5"), "not a range of seconds"),
        ((*PASSWORD, "--boot-seconds", "soon"), "not a range of seconds"),
        ((*PASSWORD, "--boot", "alpine"), "expected DEFINITION=A[-B]"),
        ((*PASSWORD, "--version", "latest"), "not a CML version"),
        ((*PASSWORD, "--cert", __file__), "belong together"),
    ],
)
def test_mistakes_are_reported_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    code, output = run(*arguments)
    assert (code != 0, said in output, "Traceback" in output) == (True, True, False), output


def test_the_help_names_every_fault_and_every_order() -> None:
    code, output = run("--help")
    assert code == 0
    simulator = CmlSimulator(Settings(password="a-secret"))
    orders = {path for _, path, _ in (*GateOrders(simulator.endpoint, simulator.listener).table, *table(simulator))}
    assert len(orders) == 10
    assert [order for order in orders if order not in output] == []
    assert [kind for kind in get_args(Kind) if f"\n    {kind} " not in output] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"kind": "nonsense"}]', "Invalid enum value 'nonsense'"),
        ('[{"kind": "drop", "route": "("}]', "route '(' is not a regular expression"),
        ("[", "Input data was truncated"),
    ],
)
def test_an_invalid_plan_of_faults_is_reported(tmp_path: Path, text: str, said: str) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(text)
    code, output = run(*PASSWORD, "--faults", str(plan))
    assert (code, f"{plan}: " in output, said in output, "Traceback" in output) == (1, True, True, False), output

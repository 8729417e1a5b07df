"""The command `vkprovider sim lds`: what it refuses, and how."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from vkprovider.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--listen", "8081"), "expected HOST:PORT"),
        (("--grade", "checks"), "needs checks"),
        (("--grade", "mood"), "is not one of"),
        (("--event-mode", "binary", "--sign-events", "--event-token", "x"), "not in binary mode"),
        (("--sign-events",), "only with a token"),
        (("--cert", __file__), "belong together"),
        (("--capacity", "-1"), "-1"),
    ],
)
def test_mistakes_are_reported_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(main, ["sim", "lds", *arguments])
    assert (result.exit_code != 0, said in result.output, "Traceback" in result.output) == (True, True, False), (
        result.output
    )


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--faults", '[{"kind": "nonsense"}]', "Invalid enum value 'nonsense'"),
        ("--event-faults", '[{"kind": "lose", "type": "("}]', "missing )"),
        ("--grade-checks", '[{"device": "R1"}]', "missing required field `matches`"),
        ("--grade-checks", '[{"matches": "("}]', "matches '(' is not a regular expression"),
    ],
)
def test_a_file_that_is_no_plan_is_told(tmp_path: Path, option: str, text: str, said: str) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(text)
    result = CliRunner().invoke(main, ["sim", "lds", option, str(plan)])
    assert (result.exit_code, said in result.output, str(plan) in result.output) == (1, True, True), result.output

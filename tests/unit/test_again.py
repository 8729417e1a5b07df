"""A run that fails beside others: which tests it runs once more, what it says of them, and how it ends."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CONFTEST = """
from tests.support import again

pytest_addoption = again.add_option
pytest_configure = again.configure
"""
ONCE = """
import os, pathlib

def test_once():
    print("seen beside others")
    known = pathlib.Path(__file__).with_name("known")
    if not known.exists():
        known.touch()
        raise AssertionError("the machine is busy")
    assert "PYTEST_XDIST_WORKER" not in os.environ
"""
ALWAYS = """
import pytest

@pytest.mark.parametrize("text", ["a b", "[c]"])
def test_always(text):
    assert False, "broken"
"""
SETUP = """
import pathlib, pytest

@pytest.fixture
def machine():
    known = pathlib.Path(__file__).with_name("started")
    if not known.exists():
        known.touch()
        raise OSError("does not start")

def test_of_a_machine(machine):
    pass
"""
GOOD = "def test_good(): pass\n"
Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run pytest with a process of xdist on files of these texts; returns the exit code and the lines."""

    def run(*texts: str, most: int = 10) -> tuple[int, list[str]]:
        (tmp_path / "conftest.py").write_text(CONFTEST)
        (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
        for number, text in enumerate(texts):
            (tmp_path / f"test_{number}.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "1", f"--again={most}"]
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environ["PYTHONPATH"] = str(Path(__file__).parents[2])
        how: dict[str, Any] = {"cwd": tmp_path, "env": environ, "capture_output": True, "text": True}
        ended = subprocess.run(command, check=False, **how)  # noqa: S603 (pytest)
        return ended.returncode, ended.stdout.splitlines()

    return run


def test_what_passes_alone_is_named_and_fails_nothing(run: Run) -> None:
    code, lines = run(ONCE, GOOD, SETUP)
    assert code == 0
    both = "test_0.py::test_once", "test_2.py::test_of_a_machine"
    [named] = [line for line in lines if line.startswith("failed beside others, passed alone: ")]
    assert set(named.partition(": ")[2].split(", ")) == set(both)
    assert lines[-1].startswith("1 passed, 2 passed alone in ")
    text = "\n".join(lines)
    assert "the machine is busy" in text
    assert "seen beside others" in text
    assert "FAILED test_" not in text


def test_what_fails_again_fails_the_run(run: Run) -> None:
    code, lines = run(ONCE, ALWAYS, GOOD)
    assert code == 1
    assert "failed beside others, passed alone: test_0.py::test_once" in lines
    assert lines[-1].startswith("2 failed, 1 passed, 1 passed alone in ")
    named = [line for line in lines if line.startswith("FAILED test_1.py::test_always[")]
    # Once by the run of each, and once by the whole.
    assert len(named) == 4


def test_many_failures_are_not_run_again(run: Run) -> None:
    code, lines = run(ONCE, ALWAYS, most=2)
    assert code == 1
    assert "3 faults: too many to run their tests again, one after the other" in lines
    assert lines[-1].startswith("3 failed in ")


def test_tests_that_share_a_set_up_which_fails_are_one_fault(run: Run) -> None:
    shared = SETUP.replace("@pytest.fixture", '@pytest.fixture(scope="module")')
    others = "".join(f"\ndef test_{number}_of_a_machine(machine):\n    pass\n" for number in range(3))
    code, lines = run(shared + others, most=1)
    assert (code, lines[-1].split(" in ")[0]) == (0, "4 passed alone")


def test_a_run_that_is_good_is_left_as_it_is(run: Run) -> None:
    code, lines = run(GOOD)
    assert (code, lines[-1].split(" in ")[0]) == (0, "1 passed")


def test_a_file_that_cannot_be_imported_fails_the_run(run: Run) -> None:
    code, lines = run(GOOD, "import nothing_of_this_name\n")
    assert code == 1
    assert "1 error" in lines[-1]
    assert not any(line.startswith("failed beside others") for line in lines)

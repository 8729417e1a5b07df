"""What a run says at its end: its dearest files, and the skips that no list allows."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.skips import allowed
from vkpsandbox.paths import STARTS_VARIABLE

CONFTEST = """
from tests.support import again, record, skips

def pytest_addoption(parser):
    again.add_option(parser)
    record.add_option(parser)
    skips.add_option(parser)

def pytest_configure(config):
    record.configure(config)
    skips.configure(config)
    again.configure(config)
"""
STARTING = f"""
import os, pathlib, pytest

@pytest.mark.parametrize("number", [1, 2, 3])
def test_starting(number):
    with pathlib.Path(os.environ["{STARTS_VARIABLE}"]).open("a") as starts:
        starts.write(os.environ["PYTEST_CURRENT_TEST"] + "\\n")

def test_other():
    pass
"""
FAILING_FIRST = """
def test_busy():
    test_starting(0)
    assert "PYTEST_XDIST_WORKER" not in os.environ
"""
SKIPPING = """
import pytest

@pytest.mark.skip(reason="there is no browser")
def test_in_a_browser():
    pass

@pytest.mark.xfail(strict=True)
def test_expected():
    assert False
"""
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run pytest with two processes of xdist on these texts; returns the exit code and what it prints."""

    def run(*options: str, **texts: str) -> tuple[int, str]:
        (tmp_path / "conftest.py").write_text(CONFTEST)
        (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment = {**kept, "PYTHONPATH": str(Path.cwd())}
        environment.pop(STARTS_VARIABLE, None)
        done = subprocess.run(  # noqa: S603 (pytest)
            [sys.executable, "-m", "pytest", "-n", "2", *options, str(tmp_path)],
            cwd=tmp_path,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
        )
        return done.returncode, done.stdout

    return run


def test_a_record_counts_functions_cases_and_starts_of_all_processes(run: Run, tmp_path: Path) -> None:
    code, said = run("--record=kept/record.tsv", test_a=STARTING, test_b="def test_alone(): pass\n")
    assert code == 0, said
    assert "3 functions, 3 control planes and API servers started" in said
    rows = [line.split("\t") for line in (tmp_path / "kept" / "record.tsv").read_text().splitlines()]
    assert rows[0] == ["file", "seconds", "functions", "cases", "control planes"]
    assert {row[0]: row[2:] for row in rows[1:]} == {"test_a.py": ["2", "4", "3"], "test_b.py": ["1", "1", "0"]}


def test_what_runs_once_more_starts_something_of_its_own(run: Run, tmp_path: Path) -> None:
    code, said = run("--again=3", "--record=record.tsv", test_a=STARTING + FAILING_FIRST)
    assert code == 0, said
    assert "3 functions, 4 control planes and API servers started, and 1 by what ran once more" in said
    assert (tmp_path / "record.tsv").read_text().splitlines()[1].split("\t")[4] == "4"


def test_a_skip_fails_unless_it_is_listed(run: Run, tmp_path: Path) -> None:
    listed = tmp_path / "skips.txt"
    listed.write_text("# none\n")
    code, said = run(f"--skips={listed}", test_c=SKIPPING)
    assert code == 1
    assert "test_c.py::test_in_a_browser: Skipped: there is no browser" in said
    assert "test_expected:" not in said
    listed.write_text("test_c.py::test_in_a_browser  none is built for this system\n")
    assert run(f"--skips={listed}", test_c=SKIPPING)[0] == 0


def test_a_line_without_a_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="test_c has no reason"):
        allowed("test_c\n")

"""The rings of tests: what runs in which process, and what a cluster test is for."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from tests.conftest import HOME, stays_together

SHOWS: Final = re.compile(r"scheduler|controller|garbage collector|kubelet|kubectl|\bkill(ed|s)?\b|process")
"""What a component test has not."""
FILES: Final = sorted((HOME / "cluster").rglob("test_*.py"))


@pytest.mark.parametrize(
    ("test", "together"),
    [
        ("tests/unit/test_rings.py::test_a[x/y::z]", "tests/unit/test_rings.py"),
        ("tests/component/portal/site/test_rights.py::test_a", "tests/component/portal/site/test_rights.py"),
        ("tests/cluster/test_smoke.py::test_a", "tests/cluster/test_smoke.py"),
        ("tests/cluster/sessions/test_sessions_story.py::test_a", "tests/cluster/sessions"),
    ],
)
def test_all_of_a_sandbox_runs_in_one_process(test: str, together: str) -> None:
    assert stays_together(test) == together


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_cluster_test_says_what_only_it_can_show(path: Path) -> None:
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = said.partition("\n")[0]
    assert SHOWS.search(first), f"name the scheduler, a controller, kubectl, a kill … in the first line: {first!r}"

"""The rings of tests: what runs in which process."""

import pytest

from tests.conftest import stays_together


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

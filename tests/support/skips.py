"""Skips that fail a run: what is skipped where everything is installed is named in a list, with the reason.

The list has a line for each: the beginning of a test's name, a blank, the reason; `#` begins a comment.
"""

from pathlib import Path
from typing import Final

import pytest

OPTION: Final = "--skips"


def add_option(parser: pytest.Parser) -> None:
    """Let a run name the list of skips that it allows."""
    parser.addoption(OPTION, default="", metavar="FILE", help="fail for each skipped test that FILE does not name")


def configure(config: pytest.Config) -> None:
    """Watch for skips, if a list is named, in the process that reports."""
    if (path := config.getoption(OPTION)) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Skips(allowed(Path(path).read_text(encoding="utf-8"))))


def allowed(text: str) -> dict[str, str]:
    """Read a list: the beginning of a test's name, and why it is skipped.

    Raises:
        ValueError: A line has no reason.
    """
    rows = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            test, _, reason = line.partition(" ")
            if not reason.strip():
                raise ValueError(f"{test} has no reason: write it behind a blank")
            rows[test] = reason.strip()
    return rows


class _Skips:
    def __init__(self, allowed: dict[str, str]) -> None:
        self._allowed: Final = allowed
        self._refused: Final[dict[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a skip that the list does not name; an expected failure is none."""
        if report.skipped and not hasattr(report, "wasxfail") and not self._allows(report.nodeid):
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._refused[report.nodeid] = why

    def _allows(self, test: str) -> bool:
        return any(test.startswith(each) for each in self._allowed)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run."""
        if self._refused:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what was skipped."""
        if self._refused:
            terminalreporter.write_sep("=", "skipped, and no list allows it")
            for test, why in self._refused.items():
                terminalreporter.write_line(f"{test}: {why}")

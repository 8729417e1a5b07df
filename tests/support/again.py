"""Tests that failed beside others run once more, alone: what fails under load only is told apart from what fails."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Final

import pytest

OPTION: Final = "--again"
PASSED_ALONE: Final = "passed alone"
_FAILURES: Final = ("failed", "error")


def add_option(parser: pytest.Parser) -> None:
    """Let a run ask for it."""
    text = "run tests that failed once more, one after the other, if they have at most N causes"
    parser.addoption(OPTION, type=int, default=0, metavar="N", help=text)


def configure(config: pytest.Config, *options: str) -> None:
    """Do so at the end of this run, if it is asked for; a process of xdist leaves it to the one that started it.

    Args:
        config: Of this run.
        options: Of pytest, for the runs of single tests.
    """
    if (most := config.getoption(OPTION)) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Again(config, most, options))


class _Again:
    def __init__(self, config: pytest.Config, most: int, options: Sequence[str]) -> None:
        self._config: Final = config
        self._most: Final = most
        self._options: Final = options
        self._passed: Final[dict[str, pytest.TestReport]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Run the tests again, once the processes of xdist have ended, and before anything is summed up."""
        out = self._config.pluginmanager.get_plugin("terminalreporter")
        if out is None or exitstatus != pytest.ExitCode.TESTS_FAILED:
            return
        reports = [report for kind in _FAILURES for report in out.stats.get(kind, [])]
        failed = list(dict.fromkeys(report.nodeid for report in reports))
        causes = {_cause(report) for report in reports}
        out.write_line("")
        if len(causes) > self._most:
            out.write_line(f"{len(causes)} faults: too many to run their tests again, one after the other")
            return
        out.write_sep("=", f"{len(failed)} failed, and run once more, one after the other")
        for test in failed:
            out.flush()
            if self._passes(test):
                self._passed[test] = next(report for report in reports if report.nodeid == test)
        for kind in _FAILURES:
            out.stats[kind] = [each for each in out.stats.get(kind, []) if each.nodeid not in self._passed]
        out.stats[PASSED_ALONE] = list(self._passed.values())
        if len(self._passed) == len(failed):
            session.exitstatus = pytest.ExitCode.OK

    def _passes(self, test: str) -> bool:
        command = [sys.executable, "-m", "pytest", "-q", *self._options, test]
        ended = subprocess.run(command, cwd=self._config.invocation_params.dir, check=False)  # noqa: S603 (pytest)
        return ended.returncode == 0

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show how they failed, and name them."""
        if not self._passed:
            return
        terminalreporter.write_sep("=", "FAILED BESIDE OTHERS, PASSED ALONE")
        for test, report in self._passed.items():
            terminalreporter.write_sep("_", test)
            terminalreporter.write_line(report.longreprtext)
            for title, text in report.sections:
                terminalreporter.write_sep("-", title)
                terminalreporter.write_line(text)
        terminalreporter.write_line(f"failed beside others, {PASSED_ALONE}: {', '.join(self._passed)}")


def _cause(report: pytest.TestReport) -> str:
    """Return what tells one fault from another: tests share a set-up, and fail with the same words where it fails."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return f"{crash.path} {crash.lineno} {crash.message}" if crash and report.when == "setup" else report.nodeid

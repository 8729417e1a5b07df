"""What a run of tests costs: seconds, functions, cases and control planes of each file, and the ten dearest.

A run ends with its ten dearest files. With `--record=FILE` all of them are written there, separated by tabs. Seconds
are those of set-up, call and tear-down, summed over the processes of xdist; a fixture of the session counts for the
file that asks first. A control plane is counted where the sandbox starts an API server, in whichever process that is;
those of tests that run once more, each alone and so with an API server of its own, are told apart.
"""

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from vkpsandbox.paths import STARTS_VARIABLE

OPTION: Final = "--record"
_DEAREST: Final = 10
_HEADING: Final = "file\tseconds\tfunctions\tcases\tcontrol planes\n"


@dataclass(eq=False)
class _File:
    seconds: float = 0.0
    cases: set[str] = field(default_factory=set)

    @property
    def functions(self) -> int:
        return len({case.partition("[")[0] for case in self.cases})


def add_option(parser: pytest.Parser) -> None:
    """Let a run keep its record."""
    parser.addoption(OPTION, default="", metavar="FILE", help="write seconds, cases and control planes of each file")


def configure(config: pytest.Config) -> None:
    """Record the run, in the process that reports; what it starts, and a run within a run, counts for this one."""
    if not hasattr(config, "workerinput") and STARTS_VARIABLE not in os.environ:
        handle, starts = tempfile.mkstemp(prefix="starts-")
        os.close(handle)
        os.environ[STARTS_VARIABLE] = starts
        config.pluginmanager.register(_Recorder(config.getoption(OPTION), Path(starts)))


class _Recorder:
    def __init__(self, path: str, starts: Path) -> None:
        self._path: Final = path
        self._starts: Final = starts
        self._files: Final[defaultdict[str, _File]] = defaultdict(_File)
        self._first = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of one test to its file."""
        file = self._files[report.nodeid.partition("::")[0]]
        file.seconds += report.duration
        file.cases.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Note what was started until now: what failed may run once more after this."""
        self._first = len(self._starts.read_text().splitlines())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the dearest files, and write all of them if that is asked for."""
        starts = self._starts.read_text().splitlines()
        started, again = _control_planes(starts[: self._first]), len(starts) - self._first
        by_seconds = sorted(self._files.items(), key=lambda item: -item[1].seconds)
        terminalreporter.write_sep("=", f"the {_DEAREST} dearest files")
        for name, file in by_seconds[:_DEAREST]:
            counts = f"{len(file.cases):5} cases {started[name]:3} starts"
            terminalreporter.write_line(f"{file.seconds:7.1f} s {counts}  {name}")
        functions = sum(file.functions for file in self._files.values())
        total = f"{functions} functions, {sum(started.values())} control planes and API servers started"
        terminalreporter.write_line(f"{total}, and {again} by what ran once more" if again else total)
        if self._path:
            rows = (
                f"{name}\t{file.seconds:.1f}\t{file.functions}\t{len(file.cases)}\t{started[name]}\n"
                for name, file in by_seconds
            )
            target = Path(self._path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_HEADING + "".join(rows))

    def pytest_unconfigure(self) -> None:
        """Remove the list of starts."""
        os.environ.pop(STARTS_VARIABLE, None)
        self._starts.unlink(missing_ok=True)


def _control_planes(starts: Iterable[str]) -> Counter[str]:
    """Count starts by the file of the test that was running: pytest names it in the environment."""
    return Counter(line.partition("::")[0] for line in starts)

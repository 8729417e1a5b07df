"""Programs that tests start take Ctrl-C, also where the run itself was started with SIGINT ignored."""

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ASKS = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"


def test_a_program_starts_with_the_default() -> None:
    assert subprocess.check_output([sys.executable, "-c", ASKS], text=True) == "True\n"  # noqa: S603 (ourselves)
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def test_it_does_so_in_a_run_that_ignores_interrupts() -> None:
    """As `nohup` and a shell without job control start it."""
    one = f"{Path(__file__).relative_to(ROOT)}::{test_a_program_starts_with_the_default.__name__}"
    run = f"trap '' INT; exec {sys.executable} -m pytest -q {one}"
    ended = subprocess.run(["/bin/sh", "-c", run], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 (ourselves)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 passed" in ended.stdout

"""`python -m tools.changed` prints `tests/simulators` if the simulators, or what judges them, changed: for `make test`.

The product's tests use the simulators, but a change of the product changes no simulator. So the simulators' own tests
run where they may fail: in `make acceptance` always, in `make test` by this rule, in CI as well.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TESTS: Final = "tests/simulators"
WATCHED: Final = (
    "vkpsim",
    TESTS,
    "tests/support/cmlapi",
    "tests/support/judges.py",
    "tests/support/lds_protocol.py",
    "tests/support/lds_simulator.py",
    "vkprovider/labs/lds/openapi.yaml",
    "constraints.txt",
)
"""The simulators, their tests, and what judges them: shapes, the protocol of the LDS, clients of others by version."""

_BASES: Final = (
    ("merge-base", "HEAD", "origin/main"),
    ("merge-base", "HEAD", "main"),
    ("describe", "--tags", "--abbrev=0", "HEAD^"),
    ("rev-parse", "--verify", "HEAD^"),
)
"""Questions to git for a commit to compare with."""


def base(root: Path) -> str:
    """Return what a checkout is compared with: the first of these that it has, and that is not HEAD itself.

    Where its branch left `origin/main`, or `main`; on `main` itself the last release, before the first one the commit
    before. Where there is no history, HEAD: then only what is not committed is a change.
    """
    head = _asked(root, "rev-parse", "HEAD")
    found = (_asked(root, *question) for question in _BASES)
    return next((commit for commit in found if commit not in {"", head}), "HEAD")


def is_changed(root: Path, since: str) -> bool:
    """Return whether one of the watched files differs from a commit, or is new; no checkout of git has changes."""
    differing = _asked(root, "diff", "--name-only", since, "--", *WATCHED)
    return bool(differing or _asked(root, "ls-files", "--others", "--exclude-standard", "--", *WATCHED))


def _asked(root: Path, *question: str) -> str:
    """Return what git prints; nothing if it knows no answer."""
    command = ["git", "-C", str(root), *question]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603 (git)


def main() -> None:
    """Print the folder of tests to run, if any; say on stderr why it is left out."""
    since = base(ROOT)
    if is_changed(ROOT, since):
        print(TESTS)
    else:
        sys.stderr.write(f"{TESTS}: unchanged since {since[:12]}, left out; `make simulators` runs them\n")


if __name__ == "__main__":
    main()

"""The documentation as readers use it: the rows of its tables, and the commands in its ```sh blocks."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
"""Of the checkout."""
WHY = ROOT / "docs" / "why.md"
"""Why is my pod Pending, or not Ready?"""


class Row(NamedTuple):
    """One row of a table of three columns."""

    word: str
    means: str
    remedy: str


def why() -> dict[str, Row]:
    """Read the rows of docs/why.md by the reason they describe; of several with one reason, the first."""
    found: dict[str, Row] = {}
    for line in WHY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == len(Row._fields) and cells[0].startswith("`"):
            found.setdefault(cells[0].strip("`"), Row(cells[0].strip("`"), cells[1], cells[2]))
    return found


def described(reason: str) -> bool:
    """Tell whether docs/why.md has a row for a reason; `OutOfcpu` stands there as `OutOf`."""
    return bool(why().keys() & {reason, "OutOf" if reason.startswith("OutOf") else reason})

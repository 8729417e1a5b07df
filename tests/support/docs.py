"""The documentation as readers use it: the rows of its tables, and the commands in its ```sh blocks."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
"""Of the checkout."""
WHY = ROOT / "docs" / "why.md"
"""Why is my pod Pending, or not Ready?"""
DEADLINE_S = 300.0
"""Of one block; no command in it waits longer when all is well."""


class Row(NamedTuple):
    """One row of a table of three columns."""

    word: str
    means: str
    remedy: str


def why() -> dict[str, list[Row]]:
    """Read the rows of docs/why.md by the reason they describe; a word may mean several things."""
    found: dict[str, list[Row]] = {}
    for line in WHY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == len(Row._fields) and cells[0].startswith("`"):
            word = cells[0].strip("`")
            found.setdefault(word, []).append(Row(word, cells[1], cells[2]))
    return found


def described(reason: str) -> bool:
    """Tell whether docs/why.md has a row for a reason; `OutOfcpu` stands there as `OutOf`."""
    return bool(why().keys() & {reason, "OutOf" if reason.startswith("OutOf") else reason})


class Block(NamedTuple):
    """A ```sh block, which readers copy as it is.

    Attributes:
        heading: Of the section that it stands in.
    """

    page: str
    heading: str
    text: str


def blocks(page: str) -> list[Block]:
    """Find the ```sh blocks of a page, in order; pages are named from the root of the checkout."""
    found: list[Block] = []
    lines: list[str] | None = None
    heading = ""
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if lines is None:
            if line == "```sh":
                lines = []
            elif line.startswith("#"):
                heading = line.lstrip("# ")
        elif line == "```":
            found.append(Block(page, heading, "\n".join(lines) + "\n"))
            lines = None
        else:
            lines.append(line)
    return found


class Reader:
    """Somebody who follows the pages: copies their blocks into a shell, and puts in names of his own.

    Attributes:
        read: The blocks that were run.
    """

    def __init__(self, directory: Path, environ: Mapping[str, str], own: Mapping[str, str]) -> None:
        """Stand in a directory that looks like a checkout.

        Args:
            directory: Files that the commands make go here.
            environ: Of the shell.
            own: What stands in the pages: what is meant here.
        """
        self._directory = directory
        self._environ = dict(environ)
        self._own = own
        self.read: list[Block] = []
        (directory / "manifests").symlink_to(ROOT / "manifests")

    def run(self, page: str, heading: str, **own: str) -> str:
        """Run the blocks of a section; give what they printed.

        Args:
            page: From the root of the checkout.
            heading: Of the section.
            **own: Further substitutions, `cml_1="cml-2"`, made before all others.

        Raises:
            AssertionError: A command failed, or there is no such block.
        """
        section = [block for block in blocks(page) if block.heading == heading]
        assert section, f"{page} has no ```sh block under {heading!r}"
        said = ""
        for block in section:
            text = block.text
            for word, mine in [*((key.replace("_", "-"), value) for key, value in own.items()), *self._own.items()]:
                text = text.replace(word, mine)
            result = subprocess.run(
                ["/bin/sh", "-eux"],
                input=text,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self._directory,
                env=self._environ,
                timeout=DEADLINE_S,
                check=False,
            )
            assert result.returncode == 0, f"{page}, {heading}:\n{result.stdout}"
            self.read.append(block)
            said += result.stdout
        return said

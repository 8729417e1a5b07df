"""Write files that programs of this folder make, or compare them with what stands in the checkout."""

import difflib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

_LINES: Final = 20
"""The most lines that are printed of a difference."""


def run(program: str, arguments: list[str], root: Path, render: Callable[[], Mapping[Path, str]]) -> int:
    """Write the files that differ, or with `--check` only name them; return the exit code.

    Args:
        program: For the usage: `tools.generate`.
        arguments: Of the command line.
        root: Of the checkout.
        render: Makes the files: path below the checkout to text.
    """
    check = arguments == ["--check"]
    if arguments and not check:
        sys.stderr.write(f"usage: python -m {program} [--check]\n")
        return 2
    files = render()
    stale = 0
    for path, text in files.items():
        target = root / path
        found = target.read_text(encoding="utf-8") if target.exists() else ""
        if found == text:
            continue
        stale += 1
        if not check:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            print(f"wrote {path}")
            continue
        difference = difflib.unified_diff(found.splitlines(), text.splitlines(), str(path), "as generated", lineterm="")
        print("\n".join([*list(difference)[:_LINES], f"{path} is not as generated: run `make generate`"]))
    if check and not stale:
        print(f"{len(files)} generated files are up to date")
    return 1 if check and stale else 0

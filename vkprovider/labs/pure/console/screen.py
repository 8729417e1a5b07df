"""The output of a console as a terminal would show it, line by line."""

import re
from typing import Final

_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()*+][0-9A-Za-z]|[@-Z\\^_a-z=>78])|[\x00\x07\x0e\x0f]"
)
"""Escape sequences of ECMA-48 and of xterm, and control characters that show nothing."""


def shown(line: str) -> str:
    """Return a line as a terminal shows it: what was erased or written over is gone.

    >>> shown("--More--" + 8 * chr(8) + "interface" + chr(13))
    'interface'
    """
    plain = _ESCAPES.sub("", line).removesuffix("\r")
    if "\b" not in plain and "\r" not in plain:
        return plain
    cells: list[str] = []
    at = 0
    for char in plain:
        if char == "\b":
            at = max(0, at - 1)
        elif char == "\r":
            at = 0
        else:
            cells[at : at + 1] = [char]
            at += 1
    return "".join(cells).rstrip()


def squeezed(line: str) -> str:
    """Return the visible characters that were sent for a line, also those that were written over."""
    return "".join(char for char in _ESCAPES.sub("", line) if char.isprintable() and not char.isspace())

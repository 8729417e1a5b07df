"""What consoles send, as lines of plain text with the learner before them."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from vkprovider.cli.shared.output.tables import shorten

FIRST_LINES: Final = 5
"""The most lines of the screen, the first piece of a console that others use already."""
LINE_BYTES_MAX: Final = 4096
"""A line that is longer is shown in parts."""
_NAME_LEAST: Final = 4
_TAB: Final = 8
_DIGITS: Final = 4
"""The most digits of a move that are read: no line has more cells."""
_PIECES: Final = re.compile(
    r"\x1b\[(?P<given>[0-?]*)[ -/]*(?P<does>[@-~])"  # of ECMA-48, with parameters
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # of xterm: a title
    r"|\x1b[()*+][0-9A-Za-z]|\x1b[ -~]?"
    r"|(?P<char>.)",
    re.DOTALL,
)


class Pending(msgspec.Struct, frozen=True):
    """What a console has sent after its last whole line.

    Attributes:
        rest: The bytes.
        shown: As what they were shown, while nothing followed.
        unseen: Whether there are bytes that were not shown yet.
        begun: Whether anything has come.
    """

    rest: bytes = b""
    shown: str = ""
    unseen: bool = False
    begun: bool = False


def fed(pending: Pending, data: bytes) -> tuple[Pending, list[str]]:
    """Add further bytes; return the rest that is pending then, and the lines that the bytes end.

    Blank lines are left out, and a line that was shown as it is.
    """
    *whole, rest = (pending.rest + data).split(b"\n")
    if len(rest) > LINE_BYTES_MAX:
        whole, rest = [*whole, rest], b""
    lines, shown = list[str](), pending.shown
    for each in whole:
        text = rendered(each)
        if text and text != shown:
            lines.append(text)
        shown = ""
    if not pending.begun:
        lines = lines[-FIRST_LINES:]
    return Pending(rest, shown, unseen=bool(rest), begun=True), lines


def still(pending: Pending) -> tuple[Pending, list[str]]:
    """Mark a rest that nothing has followed for a moment as shown.

    Return it, and its line if that is new, such as a prompt.
    """
    text = rendered(pending.rest)
    lines = [text] if text and text != pending.shown else []
    return msgspec.structs.replace(pending, shown=text, unseen=False), lines


def rendered(line: bytes) -> str:
    """Return a line as a terminal shows it, printable characters alone: what a learner has erased is gone.

    It knows the cursor's moves within a line, which line editors send; `labs.pure.console.screen` needs none of them. A
    program of the whole screen, such as vi, leaves the row that it wrote last.

    >>> rendered(b"shoq" + bytes([8, 27]) + b"[Kw version" + bytes([13]))
    'show version'
    """
    cells: list[str] = []
    at = 0
    for piece in _PIECES.finditer(line.decode(errors="replace")):
        char = piece["char"]
        if char is None:
            at = _moved(cells, at, piece["does"], piece["given"] or "")
        elif char == "\b":
            at = max(0, at - 1)
        elif char == "\r":
            at = 0
        elif char == "\t":
            width = _TAB - at % _TAB
            cells.extend(" " * (at + width - len(cells)))
            at += width
        elif char.isprintable():
            cells[at : at + 1] = [char]
            at += 1
    return "".join(cells).rstrip()


def _moved(cells: list[str], at: int, does: str | None, given: str) -> int:
    """Erase what a control sequence erases, and return where the cursor is after it."""
    by = int(given[:_DIGITS]) if given.isdecimal() else 0
    match does:
        case "D":
            return max(0, at - (by or 1))
        case "C":
            return min(len(cells), at + (by or 1))
        case "G":
            return min(len(cells), max(0, by - 1))
        case "K" | "J" if by == 0:
            del cells[at:]
        case "K":
            cells[:] = " " * at
        case "J" | "H" | "f":
            cells.clear()
            return 0
        case "P":
            del cells[at : at + (by or 1)]
        case "@":
            cells[at:at] = " " * (by or 1)
        case _:
            pass
    return at


def prefixes(names: Sequence[str], columns: int | None) -> list[str]:
    """Return the beginning of the lines of each learner: as wide as the others, and at most a quarter of a terminal.

    Args:
        names: Of learners.
        columns: How wide the terminal is; None without one.
    """
    width = max(map(len, names), default=0)
    if columns is not None:
        width = min(width, max(_NAME_LEAST, columns // 4))
    return [f"{shorten(name, width):{width}} | " for name in names]

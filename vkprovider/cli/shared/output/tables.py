"""Tables: aligned columns, as wide as they must be; on a terminal, at most as wide as the terminal.

What a program reads is never shortened. A person at a narrow terminal sees long cells with an ellipsis in the middle,
because names of pods and workers differ at their ends as often as at their beginnings; `-o wide` shows all of them.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import click

_GAP: Final = 3
_LEAST: Final = 12
"""Columns are not made narrower than that, or than their heading."""


class Cell(NamedTuple):
    """One cell.

    Attributes:
        colour: A name that click knows; "" for none.
    """

    text: str
    colour: str = ""


def shorten(text: str, width: int) -> str:
    """Replace the middle of a text by an ellipsis, if it is too wide.

    >>> shorten("lablet-of-alice-0", 9)
    'labl…ce-0'
    """
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


class Table:
    """Rows below headings. Later rows go on in the columns of the earlier ones, which never get narrower."""

    def __init__(self, headings: Sequence[str], *, limit: int | None = None, colours: bool = False) -> None:
        """Make a table.

        Args:
            headings: Of its columns.
            limit: How wide it may be; None for any width.
            colours: Whether cells have their colours.
        """
        self._headings = headings
        self._limit = limit
        self._colours = colours
        self._widths = [len(heading) for heading in headings]

    def head(self) -> str:
        """Format the headings."""
        return self._line([Cell(heading) for heading in self._headings])

    def fit(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Make the columns wide enough for rows that are to come."""
        for row in rows:
            self._widths = [max(width, len(cell.text)) for width, cell in zip(self._widths, row, strict=True)]
        if self._limit is None:
            return
        least = [max(_LEAST, len(heading)) for heading in self._headings]
        while sum(self._widths) + _GAP * (len(self._widths) - 1) > self._limit:
            room = [width - bound for width, bound in zip(self._widths, least, strict=True)]
            if max(room) <= 0:
                return
            at = room.index(max(room))
            self._widths[at] -= 1

    def lines(self, rows: Sequence[Sequence[Cell]]) -> list[str]:
        """Format rows."""
        self.fit(rows)
        return [self._line(row) for row in rows]

    def _line(self, cells: Sequence[Cell]) -> str:
        last = len(cells) - 1
        parts = []
        for at, (cell, width) in enumerate(zip(cells, self._widths, strict=True)):
            text = shorten(cell.text, width)
            gap = "" if at == last else " " * (width - len(text) + _GAP)
            parts.append((click.style(text, fg=cell.colour) if self._colours and cell.colour else text) + gap)
        return "".join(parts).rstrip()

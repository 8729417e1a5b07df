"""Rows as CSV for a spreadsheet."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from vkprovider.api.wording import plain

_FORMULAS: Final = ("=", "+", "-", "@")
"""How a cell begins that a spreadsheet computes."""


def sheet(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format rows as CSV for a spreadsheet; no cell is a formula there, because tenants write some of the texts.

    >>> print(sheet(["a", "b"], [["=1+1", 2]]), end="")
    a,b
    '=1+1,2
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> str:
    text = plain("" if value is None else str(value))
    return f"'{text}" if text.startswith(_FORMULAS) else text

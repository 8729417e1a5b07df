"""Rows as CSV for a spreadsheet."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Final

from vkprovider.platform.wording import plain

_FORMULA: Final = re.compile(r"(^|;)(?=[\s\"]*[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""Where a spreadsheet may begin a cell that it computes.

It takes the full-width signs as well, and separates cells by semicolons where the comma is that of decimals; a quote
after one is then that of CSV.
"""


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
    return _FORMULA.sub(r"\1'", text)

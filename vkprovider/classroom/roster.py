"""Lists of a class: learners as an instructor has them, and rows for a spreadsheet. Pure."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Final

from vkprovider.lablet import names
from vkprovider.lablet.inputs import inputs_of
from vkprovider.platform.messages import plain
from vkprovider.platform.objects import Metadata

_HEADINGS: Final = frozenset({"learner", "learners", "name", "user", "username", "e-mail", "email"})
LEARNERS_MAX: Final = 1000
"""The most learners of one list."""


class RosterError(ValueError):
    """A list cannot be used; the text says why, for its author."""


def learners_in(text: str, source: str) -> tuple[str, ...]:
    """Return the learners of a list, each once and in its order.

    Blank lines and those that begin with `#` are left out, and so is a first line with a heading. Commas, semicolons
    and tabs part columns, of which only the first is read.

    Args:
        text: The list.
        source: Where it is from, for messages.

    Raises:
        RosterError: It names nobody, too many, or somebody who cannot have a lablet.
    """
    found: dict[str, int] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        delimiter = next((mark for mark in "\t;," if mark in line), ",")
        try:
            name = next(iter(next(csv.reader(io.StringIO(line), delimiter=delimiter), [])), "").strip()
        except csv.Error as error:
            raise RosterError(f"{source}, line {number}: {error}") from None
        if not found and name.casefold() in _HEADINGS:
            continue
        faults = inputs_of(Metadata("", annotations={names.ANNOTATION_USERNAME: name})).faults
        if not name or faults:
            raise RosterError(f"{source}, line {number}: {'; '.join(faults) or 'the first column is empty'}")
        found.setdefault(name, number)
    if not found:
        raise RosterError(f"{source} names no learners; write one in each line")
    if len(found) > LEARNERS_MAX:
        raise RosterError(f"{source} names {len(found)} learners, more than {LEARNERS_MAX}; part it")
    return tuple(found)


def look_alikes(learners: Iterable[str], others: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Return pairs of names that differ in case only, of which the second one is a learner of the list.

    The cluster takes them for two people, and so do lablets, consoles and grades.

    Args:
        learners: Of the list.
        others: Who has a lablet already.

    >>> look_alikes(["bob", "alice", "Bob"], ["Alice", "bob"])
    [('Alice', 'alice'), ('bob', 'Bob')]
    """
    wanted, first = list(learners), dict[str, str]()
    for name in (*others, *wanted):
        first.setdefault(name.casefold(), name)
    return [(like, name) for name in wanted if (like := first[name.casefold()]) != name]


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

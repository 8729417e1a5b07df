"""What commands print: tables, formats of `-o`, progress, and what a terminal can do.

What a program reads is never shortened. A person at a narrow terminal sees long cells with an ellipsis in the middle,
because names of pods and workers differ at their ends as often as at their beginnings; `-o wide` shows all of them.
What is copied out of a table, as links are, is whole there too: its line goes on in the next one.

JSON and YAML have one shape, whatever is listed:

    {"apiVersion": "cli.vkprovider.io/v1", "kind": "LabletList", "items": [{"kind": "Lablet", "name": "mylab-0", …}]}

Fields are only ever added to `items`; what is unknown is an empty string, never left out. CSV has the same fields.

Progress: on a terminal it is one line that is updated in place; in a pipe, and on a terminal that cannot do that, a
line for each change. Both go to standard error, so that standard output has results alone.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Generic, Literal, NamedTuple, Self, TextIO, TypeVar, cast

import click
import msgspec
import yaml

from vkprovider.classroom.roster import SHEET_MARK, sheet
from vkprovider.platform.messages import plain


def is_live(stream: TextIO) -> bool:
    """Return whether a stream leads to a terminal that can update a line."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colours(stream: TextIO) -> bool:
    """Return whether text in colours is welcome; `NO_COLOR` refuses them (https://no-color.org)."""
    return is_live(stream) and not os.environ.get("NO_COLOR")


def columns(stream: TextIO) -> int | None:
    """Return how wide the terminal is; None if the stream leads to none, or to one that does not say it."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except OSError:
        return None


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

    def __init__(
        self, headings: Sequence[str], *, limit: int | None = None, whole: Sequence[str] = (), colours: bool = False
    ) -> None:
        """Make a table.

        Args:
            headings: Of its columns.
            limit: How wide it may be; None for any width.
            whole: The headings of the columns that are never narrowed, also beyond the limit.
            colours: Whether cells have their colours.
        """
        self._headings = headings
        self._limit = limit
        self._whole = frozenset(whole)
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
        least = [
            width if heading in self._whole else max(_LEAST, len(heading))
            for heading, width in zip(self._headings, self._widths, strict=True)
        ]
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


API_VERSION: Final = "cli.vkprovider.io/v1"
"""The apiVersion of printed objects; no API server knows it."""
NONE: Final = "<none>"
SHOWN_NAME: Final = "SHOWN NAME"
"""The heading of the names by which people know learners."""
Output = Literal["table", "wide", "json", "yaml", "csv", "name"]
Document = Literal["text", "json", "yaml"]

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table.

    Attributes:
        text: Returns the cell of a row; an empty one is shown as `<none>`.
        wide: Only with `-o wide`.
        rare: Left out of a table where every row lacks it.
        whole: Never shortened: what people copy, such as a link that is printed once.
        colour: Returns the name of the cell's colour, "" for none.
    """

    heading: str
    text: Callable[[T], str]
    wide: bool = False
    rare: bool = False
    whole: bool = False
    colour: Callable[[T], str] = lambda _: ""


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """How rows of one kind are printed.

    Attributes:
        kind: Of one row; that of the list is `<kind>List`.
        row: Its type.
        name: Returns what `-o name` prints.
    """

    kind: str
    row: type[T]
    columns: Sequence[Column[T]]
    name: Callable[[T], str]

    def show(self, rows: Sequence[T], output: Output, *, nothing: str, but: Sequence[str] = ()) -> None:
        """Print rows; `nothing` goes to standard error if there are none and a table was requested.

        Args:
            rows: What to print.
            output: How.
            nothing: A sentence.
            but: Headings of columns that are left out.
        """
        match output:
            case "json" | "yaml":
                items = [self.fields(row) for row in rows]
                click.echo(document({"apiVersion": API_VERSION, "kind": f"{self.kind}List", "items": items}, output))
            case "csv":
                headings = [field.encode_name for field in msgspec.structs.fields(self.row)]
                values = (cast("dict[str, Any]", msgspec.to_builtins(row)) for row in rows)
                click.echo(SHEET_MARK + sheet(headings, ([*value.values()] for value in values)), nl=False)
            case "name":
                for row in rows:
                    click.echo(self.name(row))
            case _ if rows:
                but = [*but, *self.lacking(rows)]
                table = self.table(output, but)
                columns = self._columns(output, but)
                lines = table.lines([_cells(row, columns) for row in rows])
                click.echo("\n".join([table.head(), *lines]))
            case _:
                click.echo(nothing, err=True)

    def lacking(self, rows: Sequence[T]) -> list[str]:
        """Return the headings of the columns that a table of some rows leaves out, because all of them lack it."""
        return [column.heading for column in self.columns if column.rare and not any(map(column.text, rows))]

    def table(self, output: Output, but: Sequence[str] = ()) -> Table:
        """Make the table for what standard output is."""
        shown = self._columns(output, but)
        limit = columns(sys.stdout) if output != "wide" else None
        return Table(
            [column.heading for column in shown],
            limit=limit,
            whole=[column.heading for column in shown if column.whole],
            colours=has_colours(sys.stdout),
        )

    def cells(self, row: T, output: Output, but: Sequence[str] = ()) -> list[Cell]:
        """Return the cells of a row."""
        return _cells(row, self._columns(output, but))

    def fields(self, row: T) -> dict[str, Any]:
        """Return a row as JSON and YAML have it, within a list."""
        return {"kind": self.kind, **cast("dict[str, Any]", msgspec.to_builtins(row))}

    def alone(self, row: T, output: Output) -> str:
        """Format a row as a document of its own."""
        if output == "name":
            return self.name(row)
        return document({"apiVersion": API_VERSION, **self.fields(row)}, output)

    def _columns(self, output: Output, but: Sequence[str]) -> list[Column[T]]:
        return [c for c in self.columns if c.heading not in but and (output == "wide" or not c.wide)]


def document(fields: Mapping[str, Any], output: str) -> str:
    """Format a document as JSON or YAML."""
    if output == "yaml":
        return yaml.safe_dump(fields, sort_keys=False, allow_unicode=True).rstrip("\n")
    return msgspec.json.format(msgspec.json.encode(fields), indent=2).decode()


def one(kind: str, outcome: msgspec.Struct, output: str) -> str:
    """Format the outcome of one act as a document."""
    return document({"apiVersion": API_VERSION, "kind": kind, **msgspec.to_builtins(outcome)}, output)


def _cells(row: T, columns: Sequence[Column[T]]) -> list[Cell]:
    return [Cell(plain(column.text(row)) or NONE, column.colour(row)) for column in columns]


_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Shows how far things are; a context manager, which leaves a clean line behind."""

    def __init__(self) -> None:
        self._live = is_live(sys.stderr)
        self._stages: dict[str, str] = {}
        self._began = time.monotonic()
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._clear()

    @property
    def waiting(self) -> int:
        """How many things are on their way."""
        return len(self._stages)

    def stage(self, name: str, text: str) -> None:
        """Show how far a thing is."""
        text = plain(text)
        changed = self._stages.get(name) != text
        self._stages[name] = text
        if self._live:
            self._draw(f"{name} {text}".rstrip())
        elif changed:
            click.echo(f"{name} {text}".rstrip(), err=True)

    def done(self, name: str, text: str) -> None:
        """Print the result of a thing for good."""
        self._leave(name)
        click.echo(text)

    def failed(self, name: str, text: str) -> None:
        """Print the failure of a thing for good."""
        self._leave(name)
        click.echo(f"Error: {text}", err=True)

    def _leave(self, name: str) -> None:
        self._stages.pop(name, None)
        self._clear()

    def _draw(self, text: str) -> None:
        others = len(self._stages) - 1
        text += f", and {others} more" if others > 0 else ""
        seconds = f" ({time.monotonic() - self._began:.0f} s)"
        width = (columns(sys.stderr) or 80) - 1 - len(seconds)
        self._drawn = True
        click.echo(_CLEAR + shorten(" ".join(text.split()), width) + seconds, err=True, nl=False, color=True)

    def _clear(self) -> None:
        if self._drawn:
            self._drawn = False
            click.echo(_CLEAR, err=True, nl=False, color=True)

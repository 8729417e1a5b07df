"""`-o` of every command that lists: a table, a wider one, JSON, YAML, CSV, or names.

JSON and YAML have one shape, whatever is listed:

    {"apiVersion": "cli.vkprovider.io/v1", "kind": "LabletList", "items": [{"kind": "Lablet", "name": "mylab-0", …}]}

Fields are only ever added to `items`; what is unknown is an empty string, never left out. CSV has the same fields.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar, cast

import click
import msgspec
import yaml

from vkprovider.classroom.sheet import sheet
from vkprovider.cli.shared.output import terminal
from vkprovider.cli.shared.output.tables import Cell, Table
from vkprovider.platform.wording import plain

API_VERSION: Final = "cli.vkprovider.io/v1"
"""The apiVersion of printed objects; no API server knows it."""
NONE: Final = "<none>"
Output = Literal["table", "wide", "json", "yaml", "csv", "name"]
Document = Literal["text", "json", "yaml"]

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table.

    Attributes:
        text: Returns the cell of a row; an empty one is shown as `<none>`.
        wide: Only with `-o wide`.
        colour: Returns the name of the cell's colour, "" for none.
    """

    heading: str
    text: Callable[[T], str]
    wide: bool = False
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
                click.echo(sheet(headings, ([*value.values()] for value in values)), nl=False)
            case "name":
                for row in rows:
                    click.echo(self.name(row))
            case _ if rows:
                table = self.table(output, but)
                columns = self._columns(output, but)
                lines = table.lines([_cells(row, columns) for row in rows])
                click.echo("\n".join([table.head(), *lines]))
            case _:
                click.echo(nothing, err=True)

    def table(self, output: Output, but: Sequence[str] = ()) -> Table:
        """Make the table for what standard output is."""
        headings = [column.heading for column in self._columns(output, but)]
        limit = terminal.columns(sys.stdout) if output != "wide" else None
        return Table(headings, limit=limit, colours=terminal.has_colours(sys.stdout))

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

"""Lists of a class: learners as an instructor has them, and rows for a spreadsheet. Pure.

A list is what GitHub Classroom, nbgrader, Moodle, Canvas, Blackboard, Teams or Excel wrote, in English or German, or
names line by line. It is read as a whole: one encoding, one separator, and headings that say which column is the user.
"""

import codecs
import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.inputs import inputs_of
from vkprovider.lablet.shownname import tidied
from vkprovider.platform.messages import listed, plain
from vkprovider.platform.objects import Metadata

LEARNERS_MAX: Final = 1000
"""The most learners of one list."""
_SEPARATORS: Final = "\t;,"
"""What parts columns."""
_SHOWN_MAX: Final = 8


class RosterError(ValueError):
    """A list cannot be used; the text says why, for its author."""


class Learner(msgspec.Struct, frozen=True):
    """Somebody on a list.

    Attributes:
        user: The name by which rights are given, as it is written.
        shown: The name for people, the last name first where the list parts them: `Müller, Anna`; "" if there is none.
        mail: "" if there is none.
    """

    user: str
    shown: str = ""
    mail: str = ""


class Roster(msgspec.Struct, frozen=True):
    """A list.

    Attributes:
        learners: Each once, in the order of the list.
        notes: What its author should know of how it was read.
    """

    learners: tuple[Learner, ...]
    notes: tuple[str, ...] = ()


class _Columns(NamedTuple):
    """Which column is what; None: there is none."""

    user: int
    first: int | None = None
    last: int | None = None
    shown: int | None = None
    mail: int | None = None


def _words(text: str) -> dict[str, int]:
    return {word: rank for rank, line in enumerate(text.split("\n")) for word in line.split()}


_USERS: Final = _words(
    "username benutzername anmeldename user users sisloginid loginid login loginname kennung benutzerkennung\n"
    "account accountname konto netid\n"
    "userprincipalname upn participantidupn teilnehmeridupn\n"
    "identifier\n"
    "id\n"
    "githubusername"
)
"""Headings of the user, without blanks and marks; those of an earlier line are taken before those of a later one."""
_ALONE: Final = frozenset({"learner", "learners", "name", "student", "students", "teilnehmer", "lernende"})
"""Headings of the user in a list of which no other heading says so."""
_MAILS: Final = frozenset({"email", "emailaddress", "emailadresse", "mail", "mailadresse", "studentemail"})
_FIRSTS: Final = frozenset({"firstname", "vorname", "givenname"})
_LASTS: Final = frozenset({"lastname", "nachname", "surname", "familyname", "familienname"})
_SHOWN: Final = frozenset(
    {"name", "fullname", "displayname", "anzeigename", "student", "studentname", "learner", "teilnehmer"}
)
_CANVAS: Final = "sisloginid"
"""The heading of the user in what Canvas writes."""
_NOBODY: Final = frozenset({"", "Points Possible", "Student, Test"})
"""What Canvas writes instead of a student's name in rows that are nobody's; "" is a row of its settings."""
_OTHERS: Final = _words(
    "class klasse course kurs group groups gruppe section team role rolle remark bemerkung seat platz idnumber "
    "studentid sisuserid githubid "
    "matrikelnummer institution department lastaccess firstjoin lastleave duration inmeetingduration availability "
    "childcourseid"
).keys()
_KNOWN: Final = _USERS.keys() | _ALONE | _MAILS | _FIRSTS | _LASTS | _SHOWN | _OTHERS
_SECTION: Final = re.compile(r"\d+\. .+")
"""The line that begins a section of a report, such as `2. Participants`."""
_EXCELS: Final = re.compile(r"\"?sep=([,;\t])", re.IGNORECASE)
"""The first line by which a file tells Excel what parts its columns."""
_OPEN_QUOTE: Final = "unexpected end of data"
"""What `csv` says of a quote that is never closed."""


def decoded(content: bytes) -> tuple[str, str]:
    """Return the text of a file, and what its author should know of how it was read; "" if nothing.

    Files of UTF-8 and UTF-16 say so, or are valid; all else is taken for Windows-1252, in which Excel saves a CSV.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace"), ""
    try:
        return content.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        note = "the file is no UTF-8 and was read as Windows-1252: look at letters such as ä, é and ß"
        return content.decode("cp1252", errors="replace"), note


def read_roster(content: bytes | str, source: str) -> Roster:
    """Read a list.

    Records without text, those that begin with `#`, and those of Canvas that are nobody's are left out. Of a report in
    sections, as Teams writes it, the one counts that has users. Without headings the first column is the user.

    Args:
        content: A file, or a text.
        source: Where it is from, for messages.

    Raises:
        RosterError: It names nobody, too many, or somebody who cannot have a lablet; or no heading says which column is
            the user.
    """
    text, note = decoded(content) if isinstance(content, bytes) else (content.removeprefix("\ufeff"), "")
    records = _of_users(list(_records(unicodedata.normalize("NFC", text), source)), source)
    columns, rest = _columns(records, source)
    found: dict[str, Learner] = {}
    is_bare = len(rest) == len(records) and '"' not in text and not _EXCELS.match(text)
    for number, cells in rest:
        if is_bare and any(mark in cells[0] for mark in _SEPARATORS):
            raise RosterError(
                f"{source}, line {number}: where the user ends in {cells[0]!r} is not clear; write the same mark "
                "between all columns, and a first line with headings, such as username;displayname"
            )
        learner = _learner(cells, columns, f"{source}, line {number}")
        found.setdefault(learner.user, learner)
    if not found:
        raise RosterError(f"{source} names no learners; write one in each line")
    if len(found) > LEARNERS_MAX:
        raise RosterError(f"{source} names {len(found)} learners, more than {LEARNERS_MAX}; part it")
    return Roster(tuple(found.values()), (note,) if note else ())


def as_list(roster: Roster) -> str:
    """Return a list as a text that is read as the same learners, whatever is in their names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(("seat", "username", "displayname", "email"))
    writer.writerows((at, each.user, each.shown, each.mail) for at, each in enumerate(roster.learners))
    return text.getvalue()


def _records(text: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the records that have text, each with the number of its last line."""
    reader = csv.reader(io.StringIO(text), delimiter=_separator(text), strict=True)
    at_first = True
    while True:
        begins = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            why = "a quote that opens here is never closed" if str(error) == _OPEN_QUOTE else error
            raise RosterError(f"{source}, line {begins}: {why}") from None
        if cells is None:
            return
        cells = [cell.strip() for cell in cells]
        if not any(cells) or (begins == 1 and _EXCELS.match(text)):
            continue
        if not cells[0].startswith("#") or (at_first and _numbered(cells)):
            at_first = False
            yield reader.line_num, cells


def _numbered(cells: list[str]) -> bool:
    """Return whether a record that begins with `#` is the headings of numbered lines, and no remark."""
    first = _key(cells[0])
    return (not first or first in _KNOWN) and any(_key(cell) in _KNOWN for cell in cells[1:])


def _of_users(records: list[tuple[int, list[str]]], source: str) -> list[tuple[int, list[str]]]:
    """Return the table of users in a report of several sections; all records if there are no sections.

    Raises:
        RosterError: The report has no such table.
    """
    begins = [at for at, (_, cells) in enumerate(records) if _SECTION.fullmatch(cells[0]) and not any(cells[1:])]
    if not begins or begins[0] != 0 or not any(any(cells[1:]) for _, cells in records):
        return records
    for start, end in pairwise((*begins, len(records))):
        table = records[start + 1 : end]
        known = _KNOWN.intersection(map(_key, table[0][1])) if table else frozenset()
        if len(known) > 1 and known & (_USERS.keys() | _MAILS):
            return table
    sections = listed([records[at][1][0] for at in begins], _SHOWN_MAX)
    raise RosterError(
        f"{source}: none of its sections {sections} has a table with a column of users; keep that table alone, and "
        "call the column username"
    )


def _separator(text: str) -> str:
    """Return the separator of the columns: the one that the list names, else the one in most of its lines.

    Of two in as many lines it is the one that more often has no blank behind it, as marks within a text have, else the
    one that comes first: users have neither. A mark within quotes does not count.

    >>> _separator("anna;Müller, Anna"), _separator("clara,CCNA; evening"), _separator("dora,g1;g2")
    (';', ',', ',')
    """
    if (said := _EXCELS.match(text)) is not None:
        return said[1]
    outside = re.sub(r'"(?:[^"]|"")*"', "", text).splitlines()
    lines = [line for line in outside if not line.startswith("#")]

    def weight(mark: str) -> tuple[int, int, int]:
        having = [line for line in lines if mark in line]
        return len(having), sum(f"{mark} " not in line for line in having), -sum(line.index(mark) for line in having)

    return max(_SEPARATORS, key=weight)


def _columns(records: list[tuple[int, list[str]]], source: str) -> tuple[_Columns, list[tuple[int, list[str]]]]:
    """Return which column is what, and the records without the headings.

    Raises:
        RosterError: There are headings, and none is known to be that of the user.
    """
    if not records:
        return _Columns(0), []
    number, cells = records[0]
    keys = [_key(cell) for cell in cells]
    if not _KNOWN.intersection(keys):
        if _looks_like_headings(cells, [rest for _, rest in records[1:]]):
            raise _unknown(cells, f"{source}, line {number}")
        return _Columns(0), records
    users = sorted((_USERS[key], at) for at, key in enumerate(keys) if key in _USERS)
    mail = _first(keys, _MAILS)
    user = users[0][1] if users else mail
    if user is None and _first(keys, _FIRSTS | _LASTS) is None:
        user = _first(keys, _ALONE)
    if user is None:
        raise _unknown(cells, f"{source}, line {number}")
    shown = next((at for at, key in enumerate(keys) if key in _SHOWN and at != user), None)
    rest = records[1:]
    if keys[user] == _CANVAS and shown is not None:
        rest = [(at, each) for at, each in rest if (each[shown] if shown < len(each) else "") not in _NOBODY]
    return _Columns(user, _first(keys, _FIRSTS), _first(keys, _LASTS), shown, mail), rest


def _key(cell: str) -> str:
    """Return a heading without blanks, marks and capitals."""
    return "".join(char for char in cell.casefold() if char.isalnum())


def _first(keys: Sequence[str], among: frozenset[str]) -> int | None:
    return next((at for at, key in enumerate(keys) if key in among), None)


def _looks_like_headings(cells: list[str], rest: list[list[str]]) -> bool:
    """Return whether a first record is unlike the others: each of them has an address or a number in some column."""
    if len(cells) == 1 or not rest:
        return False
    return any(
        cell and not _is_marked(cell) and all(at < len(others) and _is_marked(others[at]) for others in rest)
        for at, cell in enumerate(cells)
    )


def _is_marked(text: str) -> bool:
    return "@" in text or any(char.isdigit() for char in text)


def _unknown(cells: list[str], where: str) -> RosterError:
    headings = listed([repr(cell) for cell in cells if cell], _SHOWN_MAX)
    return RosterError(
        f"{where}: none of the headings {headings} says which column is the user; call it username, or, if this line "
        "is a learner, write a line of headings above it"
    )


def _learner(cells: list[str], columns: _Columns, where: str) -> Learner:
    """Return the learner of a record.

    Raises:
        RosterError: There is no user in its column, or one who cannot have a lablet.
    """

    def cell(at: int | None) -> str:
        return cells[at] if at is not None and at < len(cells) else ""

    user = cell(columns.user)
    column = f"column {columns.user + 1}"
    if not user:
        raise RosterError(
            f"{where}: {column} is empty, and has the user; read was {listed([each for each in cells if each], 3)}"
        )
    if faults := inputs_of(Metadata("", annotations={names.ANNOTATION_USERNAME: user})).faults:
        raise RosterError(f"{where}, {column}: {'; '.join(faults)}")
    parts = [part for part in (cell(columns.last), cell(columns.first)) if part]
    return Learner(user, tidied(", ".join(parts) or cell(columns.shown)), cell(columns.mail))


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


SHEET_MARK: Final = "\ufeff"
"""What a file of `sheet` begins with: without it Excel takes UTF-8 for Windows-1252."""
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

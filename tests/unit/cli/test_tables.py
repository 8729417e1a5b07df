"""Tables: aligned, whole for programs, no wider than a terminal for people."""

import string

from hypothesis import given
from hypothesis import strategies as st

from vkprovider.cli.shared.output import Cell, Table, shorten
from vkprovider.platform.messages import plain, plain_lines

WORDS = st.text(string.ascii_letters, min_size=1, max_size=200)
ROWS = st.lists(st.lists(WORDS, min_size=3, max_size=3), min_size=1, max_size=5)
HEADINGS = ("NAME", "WORKER", "USER")


def cells(rows: list[list[str]]) -> list[list[Cell]]:
    return [[Cell(text, "green") for text in row] for row in rows]


@given(ROWS)
def test_without_a_limit_everything_is_there(rows: list[list[str]]) -> None:
    table = Table(HEADINGS)
    lines = table.lines(cells(rows))
    assert [line.split() for line in lines] == rows
    starts = [[line.index(text) for text in row[:1]] for line, row in zip(lines, rows, strict=True)]
    assert all(start == [0] for start in starts)
    assert table.head().split() == list(HEADINGS)


@given(ROWS, st.integers(42, 300))
def test_with_a_limit_no_line_is_longer(rows: list[list[str]], limit: int) -> None:
    table = Table(HEADINGS, limit=limit)
    table.fit(cells(rows))
    for line in [table.head(), *table.lines(cells(rows))]:
        assert len(line) <= limit


def test_the_widest_column_gives_way_and_the_others_stay() -> None:
    table = Table(HEADINGS, limit=60)
    [line] = table.lines(cells([["mylab-0", "cml-1", "a-user-with-a-name-that-is-longer-than-all-others"]]))
    name, worker, user = line.split()
    assert (name, worker) == ("mylab-0", "cml-1")
    assert user.startswith("a-user")
    assert user.endswith("others")
    assert "…" in user


def test_what_is_copied_is_whole_at_any_width() -> None:
    """A link is printed once; its line goes on in the next one of the terminal, and the other columns give way."""
    link, longer = (
        "https://labs.example.com/link#friday." + "x" * 43,
        "https://labs.example.com/link#friday." + "y" * 50,
    )
    table = Table(("NAME", "LINK", "USER"), limit=80, whole=["LINK"])
    [first] = table.lines(cells([["mylab-0", link, "a-user-with-a-long-name"]]))
    [later] = table.lines(cells([["mylab-1", longer, "u"]]))
    assert (first.split()[1], later.split()[1]) == (link, longer)
    assert "…" in first.split()[2]


def test_later_rows_go_on_in_the_same_columns() -> None:
    table = Table(HEADINGS)
    first = table.lines(cells([["a-long-name", "w", "u"]]))[0]
    later = table.lines(cells([["a", "w", "u"]]))[0]
    assert first.index("w") == later.index("w")


def test_colours_do_not_move_columns() -> None:
    table = Table(HEADINGS, colours=True)
    [line] = table.lines(cells([["a", "w", "u"]]))
    assert line.count("\x1b[32m") == 3
    assert line.replace("\x1b[32m", "").replace("\x1b[0m", "") == Table(HEADINGS).lines(cells([["a", "w", "u"]]))[0]


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_shown(text: str) -> None:
    shown = plain(text)
    assert shown.isprintable()
    assert len(shown) == len(text)
    assert plain(shown) == shown


@given(st.lists(st.text(), min_size=1))
def test_nothing_that_a_terminal_obeys_is_shown_of_several_lines(texts: list[str]) -> None:
    shown = plain_lines("\r\n".join(texts))
    assert all(part.isprintable() for line in shown.split("\n") for part in line.split("\t"))
    assert shown.count("\n") == len(texts) - 1 + sum(text.count("\n") for text in texts)
    assert plain_lines("a\tb\r\nc\n") == "a\tb\nc\n"


@given(WORDS, st.integers(2, 50))
def test_an_ellipsis_stands_in_the_middle(text: str, width: int) -> None:
    short = shorten(text, width)
    assert len(short) <= width
    if len(text) <= width:
        assert short == text
        return
    head, ellipsis, tail = short.partition("…")
    assert ellipsis
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) - len(tail) in {0, 1}

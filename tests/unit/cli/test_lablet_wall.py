"""What a wall of consoles prints of what each of them sends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.lablet_pod import lablet_pod
from vkprovider.cli.lablet.wall import (
    FIRST_LINES,
    LINE_BYTES_MAX,
    Pending,
    device_of,
    fed,
    named_lanes,
    prefixes,
    rendered,
    still,
)

BEGUN = Pending(begun=True)
CONSOLE = st.binary(max_size=40) | st.lists(
    st.sampled_from([b"r1#", b"\r\n", b"\n", b"\x1b[K", b"\x1b[2J", b"\x1b[5D", b"\x1b", b"\b", b"\t", "é".encode()]),
    max_size=20,
).map(b"".join)


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        (b"r1#show version\r", "r1#show version"),
        (b"\x1b[32mgreen\x1b[0m", "green"),
        (b"\x1b]0;title\x07$ ls\x1b[?2004l", "$ ls"),
        (b" --More-- \b\b\b\b\b\b\b\b\b\b          \b\b\b\b\b\b\b\b\b\bnext", "next"),
        (b"lss\b\x1b[J -l", "ls -l"),
        (b"abc\x1b[2D\x1b[Kx", "ax"),
        (b"ac\x1b[D\x1b[@b", "abc"),
        (b"abbc\x1b[2D\x1b[P", "abc"),
        (b"one\r\x1b[Ktwo", "two"),
        (b"one\x1b[2Jtwo", "two"),
        (b"one\x1b[1;1Htwo", "two"),
        (b"one\x1b[1K", ""),
        (b"a\tb", "a       b"),
        (b"abc\x1b[Gx", "xbc"),
        ("a\N{RIGHT-TO-LEFT OVERRIDE}\x9b2Jb\x00\x07".encode(), "a2Jb"),
        (b"caf\xc3\xa9 \xff", "café \N{REPLACEMENT CHARACTER}"),
        (b"a\x1b[99999999999999999999Cb\x1b[", "ab"),
        (b"", ""),
    ],
)
def test_a_line_is_what_a_terminal_shows(sent: bytes, seen: str) -> None:
    assert rendered(sent) == seen


def test_a_line_comes_when_it_is_whole() -> None:
    pending, lines = fed(BEGUN, b"r1#show cl")
    assert (lines, pending.unseen) == ([], True)
    pending, lines = fed(pending, b"ock\r\n\r\n12:00\r\nr1#")
    assert lines == ["r1#show clock", "12:00"]


def test_a_prompt_that_stands_still_is_shown_once() -> None:
    pending, _ = fed(BEGUN, b"r1#")
    pending, lines = still(pending)
    assert (lines, pending.unseen) == (["r1#"], False)
    assert still(pending)[1] == []
    assert fed(pending, b"\r\n")[1] == []
    pending, lines = fed(pending, b"conf t\r\nr1(config)#")
    assert lines == ["r1#conf t"]
    assert still(pending)[1] == ["r1(config)#"]
    assert fed(fed(pending, b"\n")[0], b"r1(config)#\n")[1] == ["r1(config)#"], "the same again is another line"


def test_a_console_begins_with_the_end_of_its_screen() -> None:
    pending, lines = fed(Pending(), b"".join(b"%d\r\n" % number for number in range(9)))
    assert lines == ["4", "5", "6", "7", "8"]
    assert len(lines) == FIRST_LINES
    assert len(fed(pending, b"x\n" * 9)[1]) == 9


def test_a_device_without_newlines_is_shown_in_parts() -> None:
    pending, lines = fed(BEGUN, b"x" * LINE_BYTES_MAX)
    assert lines == []
    pending, lines = fed(pending, b"y")
    assert (lines, pending.rest) == (["x" * LINE_BYTES_MAX + "y"], b"")


@given(st.lists(CONSOLE, max_size=8))
def test_any_pieces_of_the_same_bytes_are_the_same_lines(pieces: list[bytes]) -> None:
    pending, lines = BEGUN, list[str]()
    for piece in pieces:
        pending, found = fed(pending, piece)
        lines += found
    whole, expected = fed(BEGUN, b"".join(pieces))
    assert (pending.rest, lines) == (whole.rest, expected)


@given(st.lists(CONSOLE, max_size=8), st.data())
def test_no_line_is_lost_or_told_to_the_terminal(pieces: list[bytes], data: st.DataObject) -> None:
    """Nothing but printable characters comes out, and each whole line does, wherever the console paused."""
    pending, lines = BEGUN, list[str]()
    for piece in pieces:
        pending, found = fed(pending, piece)
        lines += found
        if data.draw(st.booleans()):
            pending, found = still(pending)
            lines += found
    assert all(line and line.isprintable() for line in lines)
    left = iter(lines)
    assert all(any(line == expected for line in left) for expected in fed(BEGUN, b"".join(pieces))[1])


@pytest.mark.parametrize(
    ("names", "columns", "expected"),
    [
        (["alice", "bo"], None, ["alice | ", "bo    | "]),
        (["alice", "bo"], 80, ["alice | ", "bo    | "]),
        (["alice@example.com", "bob@example.com"], None, ["alice@example.com | ", "bob@example.com   | "]),
        (["alice@example.com", "bo"], 32, ["alic…com | ", "bo       | "]),
        (["alice@example.com", "bo"], 5, ["al…m | ", "bo   | "]),
        ([], 80, []),
    ],
)
def test_the_learner_stands_before_the_line(names: list[str], columns: int | None, expected: list[str]) -> None:
    assert prefixes(names, columns) == expected


def test_a_lane_has_a_name_of_its_own() -> None:
    alice, bob, again, nobody = (
        lablet_pod(name, notes={"vkprovider.io/username": user} if user else {})
        for name, user in (("p1", "alice"), ("p2", "bob"), ("p3", "bob"), ("p4", ""))
    )
    notes = {"vkprovider.io/username": "zed", "vkprovider.io/shown-name": "Zoe Adams"}
    zoe = lablet_pod("p5", notes=notes)
    assert named_lanes([nobody, again, bob, alice, zoe]) == [
        ("zed (Zoe Adams)", zoe),
        ("alice", alice),
        ("bob p2", bob),
        ("bob p3", again),
        ("p4", nobody),
    ]


@pytest.mark.parametrize(
    ("containers", "device", "found"),
    [
        (("lab", "r1"), None, "r1"),
        (("lab", "r1"), "h0", "h0"),
        (("lab", "r1", "r2"), None, None),
        (("lab",), None, None),
    ],
)
def test_the_only_device_needs_no_name(containers: tuple[str, ...], device: str | None, found: str | None) -> None:
    assert device_of(lablet_pod(containers=containers), device) == found

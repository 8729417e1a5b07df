"""The rows of a class, and what an instructor asks of a lablet: the decisions."""

import csv
import io
import math
from urllib.parse import parse_qsl, urlencode

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.portal.pure.builders import NOW
from vkprovider.classroom.roster import sheet
from vkprovider.lablet import names
from vkprovider.lablet.reasons import Trouble
from vkprovider.lablet.standings import Standing, Tone
from vkprovider.platform import wellknown
from vkprovider.platform.objects import Condition, Container, ContainerStatus, Metadata, Pod, PodSpec, PodStatus
from vkprovider.platform.times import iso
from vkprovider.portal.pure.classes import (
    ACTS,
    SORTS,
    Act,
    CannotBeDoneError,
    Row,
    RowFilter,
    as_csv,
    chosen,
    counted,
    held_up,
    notes_for,
    of_lablet,
    wish_of,
)

NAMES = wellknown.GROUP


def pod(
    name: str = "warm-1",
    *,
    ready: bool = True,
    waits: str = "",
    why: str = "",
    phase: str = "Running",
    off: tuple[str, ...] = (),
    deadline_s: int | None = None,
    started: bool = False,
    deleted: str | None = None,
    **notes: str,
) -> Pod:
    """Return the Pod of a lablet; `notes` are annotations of ours."""
    annotations = {f"{NAMES}/{key.replace('_', '-')}": text for key, text in notes.items()}
    conditions = [Condition("Ready", "True" if ready else "False", waits, why, iso(NOW - 60))]
    conditions.append(Condition(names.CONDITION_LAB_IMPORTED, "True"))
    if started:
        conditions.append(Condition(names.CONDITION_SESSION_STARTED, "True", last_transition_time=iso(NOW - 600)))
    state = {"running": {}} if ready else {"waiting": {"reason": waits, "message": why}}
    statuses = [ContainerStatus("lab", ready, state=state)]
    for device in ("r1", "r2"):
        reason = {"reason": Trouble.DEVICE_STOPPED.value} if device in off else None
        statuses.append(
            ContainerStatus(device, reason is None, state={"waiting": reason} if reason else {"running": {}})
        )
    return Pod(
        Metadata(name, "friday", f"uid-{name}", annotations=annotations, deletion_timestamp=deleted),
        PodSpec(
            [Container("lab", "netlab:1.0"), Container("r1"), Container("r2")],
            node_name="vnode.w1",
            active_deadline_seconds=deadline_s,
        ),
        PodStatus(phase, conditions=conditions, container_statuses=statuses, start_time=iso(NOW - 3600)),
    )


def test_the_row_of_a_lablet() -> None:
    end = iso(NOW + 1800)
    row = of_lablet(
        pod(username="ann", devices="1/2", off=("r2",), started=True, timeslot_end=end, message=f"{iso(NOW)} Hello.")
    )
    assert (row.key, row.learner, row.user, row.pod, row.namespace) == ("pod-warm-1", "ann", "", "warm-1", "friday")
    assert (row.standing, row.tone) == (Standing.READY, Tone.GOOD)
    assert (row.started_at, row.ends_at) == (NOW - 600, NOW + 1800)
    assert (row.devices, row.down) == ("1/2", ("r2",))
    assert (row.reason, row.why, row.message) == ("", "", "Hello.")


def test_what_holds_a_lablet_up_is_named_only_while_it_does() -> None:
    waiting = of_lablet(pod(ready=False, waits="StartingNodes", why="1 of 2", phase="Pending", username="ann"))
    assert (waiting.standing, waiting.reason, waiting.why) == (Standing.BOOTING, "StartingNodes", "1 of 2")
    assert of_lablet(pod(username="ann")).reason == ""
    hostile = of_lablet(pod(username="a\x1b[2Jb", ready=False, waits="X", why="<script>\x07", phase="Pending"))
    assert hostile.learner.isprintable()
    assert hostile.why.isprintable()


def test_the_words_of_the_scheduler_are_not_shown() -> None:
    said = (
        "0/107 nodes are available: 1 node(s) had untolerated taint(s), 106 Insufficient cpu. preemption: 0/107 nodes"
    )
    waiting = of_lablet(pod(ready=False, waits="Unschedulable", why=said, phase="Pending", username="ann"))
    assert (waiting.reason, waiting.why) == ("no room", "No worker has room: CPU")


def test_who_needs_help_stands_first() -> None:
    found = rows(
        ("ann", Standing.READY, "", None),
        ("", Standing.FAILED, "", None),
        ("zoe", Standing.UNREACHABLE, "WorkerUnreachable", None),
    )
    assert [row.learner for row in chosen(found, wish_of({}))] == ["zoe", "ann", ""]
    assert [row.learner for row in chosen(found, wish_of({"sort": "learner"}))] == ["ann", "zoe", ""]


def rows(*given: tuple[str, Standing, str, float | None]) -> list[Row]:
    return [
        Row(key=f"pod-{number}", learner=learner, standing=standing, reason=reason, ends_at=end, pod=f"p{number}")
        for number, (learner, standing, reason, end) in enumerate(given)
    ]


CLASS = rows(
    ("cleo", Standing.READY, "", NOW + 60.0),
    ("Ann", Standing.NEEDS_HELP, "NeedsAttention", None),
    ("", Standing.FREE, "", None),
    ("bob", Standing.BOOTING, "StartingNodes", NOW + 30.0),
    ("dan", Standing.BOOTING, "StartingNodes", NOW + 30.0),
)


@pytest.mark.parametrize(
    ("query", "learners"),
    [
        ({}, ["Ann", "bob", "cleo", "dan", ""]),
        ({"sort": "nonsense", "state": "nonsense"}, ["Ann", "bob", "cleo", "dan", ""]),
        ({"falling": "1"}, ["Ann", "bob", "cleo", "dan", ""]),
        ({"sort": "learner"}, ["Ann", "bob", "cleo", "dan", ""]),
        ({"sort": "learner", "falling": "1"}, ["", "dan", "cleo", "bob", "Ann"]),
        ({"sort": "state"}, ["Ann", "bob", "dan", "cleo", ""]),
        ({"sort": "left"}, ["bob", "dan", "cleo", "Ann", ""]),
        ({"state": "booting"}, ["bob", "dan"]),
        ({"reason": "NeedsAttention"}, ["Ann"]),
        ({"q": "AN"}, ["Ann", "dan"]),
        ({"q": "boot"}, ["bob", "dan"]),
        ({"q": "x" * 1000}, []),
    ],
)
def test_filter_and_order(query: dict[str, str], learners: list[str]) -> None:
    assert [row.learner for row in chosen(CLASS, wish_of(query))] == learners


def test_counts_and_what_holds_labs_up() -> None:
    assert counted(CLASS) == [
        (Standing.NEEDS_HELP, 1),
        (Standing.BOOTING, 2),
        (Standing.READY, 1),
        (Standing.FREE, 1),
    ]
    assert [(held.number, held.reason, held.learners, held.tone) for held in held_up(CLASS)] == [
        (2, "StartingNodes", ("bob", "dan"), Tone.BUSY),
        (1, "NeedsAttention", ("Ann",), Tone.BAD),
    ]
    assert held_up([]) == []


def test_a_link_keeps_what_it_does_not_change() -> None:
    wish = wish_of({"sort": "left", "q": "an n"})
    assert wish.fields(falling=True) == {"sort": "left", "falling": "1", "q": "an n"}
    assert RowFilter().fields() == {}
    assert wish_of(wish.fields(state="booting")) == wish._replace(state="booting")


texts = st.text(max_size=8)
any_row = st.builds(
    Row,
    key=texts,
    learner=texts,
    pod=texts,
    standing=st.sampled_from(Standing),
    reason=texts,
    why=texts,
    down=st.lists(texts, max_size=2).map(tuple),
    started_at=st.none() | st.floats(0, 2e9),
    ends_at=st.none() | st.floats(0, 2e9),
)


@given(st.lists(any_row, max_size=8), st.sampled_from(sorted(SORTS)), st.booleans(), texts)
def test_any_rows_are_sorted_and_none_is_lost(table: list[Row], sort: str, falling: bool, text: str) -> None:  # noqa: FBT001 (drawn)
    everything = chosen(table, RowFilter(sort, falling))
    assert sorted(map(repr, everything)) == sorted(map(repr, table))
    keys = [SORTS[sort](row) for row in everything]
    assert keys == sorted(keys, reverse=falling)
    found = chosen(table, RowFilter(sort, falling, text=text))
    assert [row for row in everything if row in found] == found
    assert sum(number for _, number in counted(table)) == len(table)
    assert sum(held.number for held in held_up(table)) == sum(bool(row.reason) for row in table)


@given(st.lists(any_row, max_size=6))
def test_no_cell_of_the_csv_is_a_formula(table: list[Row]) -> None:
    read = list(csv.reader(io.StringIO(as_csv(table))))
    assert len(read) == len(table) + 1
    for line in read:
        assert len(line) == len(read[0])
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in line)


SIGNS = "=+-@＝＋－＠"  # noqa: RUF001 (spreadsheets in Asia take them)
"""What begins a formula."""


@given(st.text(SIGNS + ' ;,"x', max_size=8), st.sampled_from(SIGNS))
@example("x; ", "=")
@example("x;y;", "+")
@example(";", "@")
@example('"; ', "-")
def test_no_sign_makes_a_formula_whatever_separates_cells(before: str, sign: str) -> None:
    """Where the comma is that of decimals, a spreadsheet begins a cell at each semicolon, and knows no quotes there."""
    texts = [f"{before}{sign}HYPERLINK(1)", f'"{before}{sign}1, 2']
    text = sheet(["learner", "why"], [["ann", texts[0]], ["ben", texts[1]]])
    by_comma = list(csv.reader(io.StringIO(text)))
    assert [row[1].replace("'", "") for row in by_comma] == ["why", *texts]
    by_semicolon = [line.split(";") for line in text.splitlines()]
    cells = [cell.strip(' "') for row in (*by_comma, *by_semicolon) for cell in row]
    assert len(cells) >= 9
    assert not [cell for cell in cells if cell.startswith(tuple(SIGNS))]


def test_what_is_no_formula_stays_as_it_is() -> None:
    assert sheet(["a"], [["x=1; y=2 - 1, a@b"], [5], [None]]) == 'a\n"x=1; y=2 - 1, a@b"\n5\n""\n'


@given(st.text(), st.text())
@example("😀" * 100, "😀" * 100)
@example("\ud800", "")
def test_the_query_of_any_wish_is_short(text: str, reason: str) -> None:
    """A page names its wish to its stream, and nine tabs share the one request line."""
    wish = wish_of({"q": text, "reason": reason, "sort": "started", "falling": "1", "state": "needs help"})
    query = urlencode(wish.fields())
    assert len(query) <= 450
    assert wish_of(dict(parse_qsl(query))) == wish, "the stream means the rows that the page shows"
    ascii_ = wish_of({"q": "x" * 100})
    assert ascii_.text == "x" * 60


def test_a_reason_that_is_cut_still_finds_its_rows() -> None:
    row = of_lablet(pod(ready=False, waits="Long" * 30, why="x", phase="Pending"))
    wish = wish_of({"reason": row.reason})
    assert chosen([row, of_lablet(pod("warm-2"))], wish) == [row]


# ------------------------------------------------------------------------------------------ what is asked

STOPPED = {"desired_state": "STOPPED", "state": "STOPPED"}


@pytest.mark.parametrize(
    ("act", "notes", "written"),
    [
        ("extend", {"timeslot_end": iso(NOW + 60)}, {"timeslot-end": iso(NOW + 660)}),
        ("extend", {"timeslot_end": iso(NOW - 60)}, {"timeslot-end": iso(NOW + 600)}),
        ("stop", {}, {"desired-state": "STOPPED"}),
        ("start", STOPPED, {"desired-state": None}),
        ("reset", {}, {"reset": iso(NOW)}),
        ("reset", STOPPED, {"reset": iso(NOW), "desired-state": None}),
        ("collect", {}, {"desired-state": "COLLECTING"}),
        ("message", {}, {"message": f"{iso(NOW)} Hello."}),
        ("message", {"state": "GRADING"}, {"message": f"{iso(NOW)} Hello."}),
    ],
)
def test_what_is_written(act: Act, notes: dict[str, str], written: dict[str, str | None]) -> None:
    found = notes_for(act, pod(username="ann", **notes), NOW, seconds=600, message="Hello.")  # type: ignore[arg-type]
    assert found == {f"{NAMES}/{name}": value for name, value in written.items()}


@pytest.mark.parametrize(
    ("act", "given", "says"),
    [
        ("extend", {"username": "ann"}, "no end"),
        ("extend", {"timeslot_end": iso(NOW)}, "nobody has"),
        ("extend", {"username": "ann", "timeslot_end": iso(NOW), "deadline_s": 3700}, "activeDeadlineSeconds"),
        ("start", {"username": "ann"}, "was not stopped"),
        ("collect", {}, "nobody has"),
        *((act, {"username": "ann", "phase": "Failed"}, "has ended") for act in ACTS),
        *((act, {"username": "ann", "deleted": iso(NOW)}, "has ended") for act in ACTS),
        *((act, {"username": "ann", "state": "GRADING"}, "handed in") for act in ACTS if act != "message"),
        *((act, {"username": "ann", "desired_state": "COLLECTING"}, "handed in") for act in ACTS if act != "message"),
    ],
)
def test_what_cannot_be_done_says_why(act: Act, given: dict[str, str], says: str) -> None:
    with pytest.raises(CannotBeDoneError, match=says):
        notes_for(act, pod(**given), NOW, seconds=600, message="x")  # type: ignore[arg-type]


def test_the_bounds_of_times() -> None:
    assert math.inf == SORTS["left"](Row(key="", learner="", standing=Standing.FREE))
    assert msgspec.structs.replace(CLASS[0], standing=Standing.FAILED).is_over


@pytest.mark.parametrize("text", ["a" * 99 + " " * 3 + "b", " é " * 80, "x" * 59 + "\u3000y" * 60])
def test_a_wish_that_was_cut_is_the_same_when_it_is_read_again(text: str) -> None:
    """It names the topic of a class, which has one name."""
    wish = wish_of({"q": text})
    assert wish_of(wish.fields()) == wish

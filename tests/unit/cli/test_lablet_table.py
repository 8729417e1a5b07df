"""The table of `kubectl lablet list`."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from vkprovider.classroom.pods import LabletPod
from vkprovider.cli.lablet.lists import LISTING, SORTS, ListRow, age, left, row_of, sorted_rows, summary

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 65, "3h1m"),
        (8 * 3600 + 300, "8h"),
        (2 * 86400, "2d"),
        (2 * 86400 + 3600, "2d1h"),
        (9 * 86400 + 3600, "9d"),
        (3 * 365 * 86400 + 86400, "3y1d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_ages_are_kubectls(seconds: int, text: str) -> None:
    created = (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert age(created, NOW) == text


def test_age_that_is_no_time() -> None:
    assert age("", NOW) == "<unknown>"


def pod(**fields: object) -> LabletPod:
    """Make a Pod of JSON."""
    spec = {
        "containers": [{"name": "lab", "image": "netlab:1.0"}],
        "runtimeClassName": "netlab",
        "nodeSelector": {"vkprovider.io/component": "vnode"},
    }
    base = {"metadata": {"name": "a", "namespace": "n"}, "spec": spec, "status": {}}
    return msgspec.convert({**base, **fields}, LabletPod)


def test_pod_of_which_nothing_is_known_yet() -> None:
    row = row_of(pod())
    assert (row.state, row.version, row.ready, row.worker, row.lab) == ("PENDING", "1.0", False, "", "")
    assert [cell.text for cell in LISTING.cells(row, "wide")] == [
        "n", "<none>", "<none>", "waiting", "<none>", "<none>", "<none>", "<none>", "a", "netlab", "1.0", "<none>",
        "<none>", "<unknown>", "<none>", "<none>", "<none>", "<none>",
    ]  # fmt: skip


def test_content_that_runs_wins_over_the_tag() -> None:
    notes = {"vkprovider.io/content": "1.2.0@sha256:abc", "vkprovider.io/state": "READY", "vkprovider.io/lab-id": "l1"}
    row = row_of(pod(metadata={"name": "a", "namespace": "n", "annotations": notes}))
    assert (row.version, row.state, row.lab) == ("1.2.0", "READY", "l1")


def test_silent_worker_is_the_reason() -> None:
    conditions = [{"type": "Ready", "status": "False", "reason": "WorkerUnreachable", "message": "no answer"}]
    running = [{"name": "lab", "state": {"running": {}}}]
    row = row_of(pod(status={"phase": "Running", "conditions": conditions, "containerStatuses": running}))
    assert (row.ready, row.reason, row.message) == (False, "WorkerUnreachable", "no answer")


@pytest.mark.parametrize(
    ("spec", "lablet"),
    [
        ({"runtimeClassName": "x", "nodeSelector": {"vkprovider.io/component": "vnode"}}, True),
        ({"runtimeClassName": "x", "nodeName": "vnode.w"}, True),
        ({"runtimeClassName": "gvisor"}, False),
        ({"nodeName": "vnode.w"}, False),
    ],
)
def test_what_a_lablet_is(spec: dict[str, object], lablet: bool) -> None:  # noqa: FBT001 (a row of the table)
    assert pod(spec={"containers": [], **spec}).is_lablet is lablet


def test_a_user_who_writes_escape_sequences_moves_no_cursor() -> None:
    row = row_of(pod(metadata={"name": "a", "namespace": "n", "annotations": {"vkprovider.io/username": "a\x1b[2J\n"}}))
    assert all(cell.text.isprintable() for cell in LISTING.cells(row, "wide"))


def learner(name: str, user: str, *, end: str = "", started: str = "", deadline_s: int | None = None) -> ListRow:
    """Make the row of a lablet that is Ready since 11:50."""
    user_notes = {"vkprovider.io/username": user, "vkprovider.io/state": "RUNNING" if started else "READY"}
    notes = {**(user_notes if user else {}), **({"vkprovider.io/timeslot-end": end} if end else {})}
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T11:50:00Z"}]
    if started:
        conditions.append({"type": "vkprovider.io/SessionStarted", "status": "True", "lastTransitionTime": started})
    status = {"phase": "Running", "conditions": conditions, "startTime": "2026-01-31T11:00:00Z"}
    spec: dict[str, object] = {"containers": [], "runtimeClassName": "netlab", "nodeName": "vnode.w"}
    spec["activeDeadlineSeconds"] = deadline_s
    return row_of(pod(metadata={"name": name, "namespace": "n", "annotations": notes}, spec=spec, status=status))


ROWS = [
    learner("a", "", end="2026-01-31T11:00:00Z"),
    learner("b", "carol", end="2026-01-31T12:47:00Z"),
    learner("c", "Alice", started="2026-01-31T11:55:00Z"),
    learner("d", "bob", end="2026-01-31T11:59:00Z"),
    learner("e", "", deadline_s=7200),
]


@pytest.mark.parametrize(
    ("sort", "names"),
    [("learner", "cdbae"), ("state", "dbcae"), ("since", "dbaec"), ("left", "dbeca"), ("name", "abcde")],
)
def test_rows_are_sorted(sort: str, names: str) -> None:
    assert sort in SORTS
    assert "".join(row.name for row in sorted_rows(ROWS, sort, NOW)) == names


def test_what_is_left_of_the_time() -> None:
    """A lablet that nobody has has no end of a timeslot, and the Pod's own deadline counts for all."""
    assert [left(row, NOW) for row in ROWS] == ["", "47m", "", "over", "60m"]
    both = learner("f", "dave", end="2026-01-31T12:47:00Z", deadline_s=4200)
    assert (left(both, NOW), both.until, both.ends) == ("10m", "2026-01-31T12:47:00Z", "2026-01-31T12:10:00Z")


def test_a_summary_counts_how_they_stand() -> None:
    assert summary(ROWS) == "5 lablets: 2 ready, 1 working, 2 free"
    assert summary(ROWS[:1]) == "1 lablet: 1 free"


def test_since_is_the_login_of_who_works() -> None:
    assert [row.since for row in ROWS[1:3]] == ["2026-01-31T11:50:00Z", "2026-01-31T11:55:00Z"]


def test_a_spreadsheet_computes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    LISTING.show([learner("a", '=HYPERLINK("https://evil.example.com")')], "csv", nothing="")
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.startswith("\ufeffnamespace,name,uid,definition")
    assert "\"'=HYPERLINK(" in row

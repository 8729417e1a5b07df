"""The table of `kubectl lablet list`."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from vkprovider.cli.lablet.listing import LISTING, age, row_of
from vkprovider.cli.shared.pods import LabletPod

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
        "n", "a", "netlab", "1.0", "PENDING", "False", "<none>", "<none>", "<unknown>", "<none>", "<none>", "<none>",
        "<none>", "<none>", "<none>",
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

"""The rules by which lines become events of the hub's page (R002-042 … R002-048, C41), and answers become sentences."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from jupyterhub_vkprovider.activity import activity_of
from jupyterhub_vkprovider.dialects import Dialect, Kind, Line, Status, line_of, poll_value, status_of
from jupyterhub_vkprovider.following import Goal, settled
from jupyterhub_vkprovider.refusals import TEXT_CHARS_MAX, refusal_of
from jupyterhub_vkprovider.story import EVENTS_MAX, Event, Story
from jupyterhub_vkprovider.stream import Message

SQR066, NUBLADO = Dialect.SQR066, Dialect.NUBLADO
NOW = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("event", "data", "line"),
    [
        ("info", "The lab is imported", Line(Kind.INFO, "The lab is imported")),
        ("error", "No room", Line(Kind.ERROR, "No room")),
        ("progress", "5.0", Line(Kind.PROGRESS, percent=5)),
        ("progress", "250", Line(Kind.PROGRESS, percent=100)),
        ("progress", "-1", Line(Kind.PROGRESS, percent=0)),
        ("progress", "soon", None),
        ("progress", "nan", None),
        ("progress", "inf", None),
        ("complete", "ignored", Line(Kind.COMPLETE)),
        ("failed", "ignored", Line(Kind.FAILED)),
        ("ping", "2026", None),
        ("message", "x", None),
    ],
)
def test_lines_of_sqr066(event: str, data: str, line: Line | None) -> None:
    assert line_of(Message(event, data), SQR066) == line


@pytest.mark.parametrize(
    ("event", "data", "line"),
    [
        ("info", '{"message": "Created", "progress": 30}', Line(Kind.INFO, "Created", 30)),
        ("info", '{"message": "Created"}', Line(Kind.INFO, "Created")),
        ("info", '{"message": "Created", "progress": "soon"}', Line(Kind.INFO, "Created")),
        ("info", '{"message": "Created", "progress": true}', Line(Kind.INFO, "Created")),
        ("error", "not JSON {", Line(Kind.ERROR, "not JSON {")),
        ("error", "[1]", Line(Kind.ERROR, "[1]")),
        ("complete", '{"message": "complete"}', Line(Kind.COMPLETE)),
        ("complete", '{"message": "Lab created"}', Line(Kind.COMPLETE, "Lab created")),
        ("failed", '{"message": "Lab spawn failed"}', Line(Kind.FAILED, "Lab spawn failed")),
        ("ping", "2026", None),
        ("progress", "5", None),
    ],
)
def test_lines_of_nublado(event: str, data: str, line: Line | None) -> None:
    assert line_of(Message(event, data), NUBLADO) == line


def test_a_percentage_changes_the_number_only_and_the_end_is_100() -> None:  # R002-043
    story = Story()
    for line in (
        Line(Kind.INFO, "one"),
        Line(Kind.PROGRESS, percent=20),
        Line(Kind.PROGRESS, percent=40),
        Line(Kind.ERROR, "two"),
        Line(Kind.INFO, "three", 60),
        Line(Kind.INFO, "four"),
    ):
        story = story.after(line)
    assert story.events == (Event(0, "one"), Event(40, "two"), Event(60, "three"), Event(60, "four"))
    assert not story.done
    for kind in (Kind.COMPLETE, Kind.FAILED):
        ended = story.after(Line(kind, "end"))
        assert ended.events[-1] == Event(100, "end")
        assert (ended.progress, ended.done, len(ended.events)) == (100, True, 5)


def test_a_story_survives_the_hubs_database() -> None:  # R002-048
    story = Story(number=3).after(Line(Kind.INFO, "one", 20)).after(Line(Kind.COMPLETE, "end"))
    restored = Story().restored(json.loads(json.dumps(story.saved())))
    assert (restored.events, restored.progress, restored.done) == (story.events, 100, True)
    assert restored.number != Story().number


@pytest.mark.parametrize("saved", [{}, {"events": 5, "progress": "x"}, {"events": [1, {"progress": "x"}], "done": 1}])
def test_a_state_of_another_spawner_is_an_empty_story(saved: dict[str, object]) -> None:
    restored = Story().restored(saved)
    assert (restored.events, restored.progress, restored.done) == ((), 0, False)


def test_a_long_story_loses_its_beginning_and_tells_nobody_twice() -> None:
    story, heard = Story(), []
    for number in range(3 * EVENTS_MAX):
        read = story.told
        story = story.after(Line(Kind.INFO, str(number)))
        heard += [event.message for event in story.since(read)]
    assert heard == [str(number) for number in range(3 * EVENTS_MAX)]
    assert len(story.events) == EVENTS_MAX


@pytest.mark.parametrize(
    ("status", "sqr066", "nublado"),
    [
        (Status.PENDING, None, None),
        (Status.RUNNING, None, None),
        (Status.TERMINATING, None, 0),
        (Status.ABSENT, 0, 0),
        (Status.FAILED, 2, 1),
    ],
)
def test_poll(status: Status, sqr066: int | None, nublado: int | None) -> None:  # R002-046, C41
    assert (poll_value(status, SQR066), poll_value(status, NUBLADO)) == (sqr066, nublado)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"status": "running"}, Status.RUNNING),
        ({"status": "terminated"}, Status.ABSENT),
        ({"status": "absent"}, None),
        ({"status": ["x"]}, None),
        ({}, None),
        ([], None),
        ("running", None),
    ],
)
def test_status(body: object, status: Status | None) -> None:
    assert status_of(body) is status


def test_a_status_ends_an_operation() -> None:
    def kind(goal: Goal, status: Status | None, times: int = 1) -> Kind | None:
        end = settled(goal, status, times)
        return None if end is None else end.kind

    assert kind(Goal.LAB, Status.RUNNING) is Kind.COMPLETE
    assert kind(Goal.NO_LAB, Status.ABSENT) is Kind.COMPLETE
    for status in (None, Status.PENDING):
        assert kind(Goal.LAB, status, 1000) is None
    for status in (None, Status.PENDING, Status.RUNNING, Status.TERMINATING):
        assert kind(Goal.NO_LAB, status, 1000) is None
    for status, times in ((Status.FAILED, 2), (Status.ABSENT, 5), (Status.TERMINATING, 5)):
        assert kind(Goal.LAB, status, times - 1) is None
        assert kind(Goal.LAB, status, times) is Kind.FAILED
    assert kind(Goal.NO_LAB, Status.FAILED, 2) is Kind.FAILED


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"detail": [{"msg": "Choose a smaller lab.", "type": "insufficient_quota"}]}', "Choose a smaller lab."),
        (b'{"detail": [{"msg": "One"}, {"msg": "Two!"}, {"type": "x"}, 5]}', "One. Two!"),
        (b'{"detail": "Not so"}', "Not so."),
    ],
)
def test_a_refusal_is_a_sentence(body: bytes, text: str) -> None:
    assert refusal_of(403, body).text == text


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"detail": null}', b'{"detail": [{"msg": 5}]}', b"\xff"])
@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 422, 429, 500])
def test_a_refusal_without_words_gets_some(code: int, body: bytes) -> None:
    text = refusal_of(code, body).text
    assert text.endswith(".")
    assert "lab service" in text


def test_a_refusal_is_short() -> None:
    assert len(refusal_of(400, json.dumps({"detail": [{"msg": "x" * 9000}]}).encode()).text) == TEXT_CHARS_MAX


@pytest.mark.parametrize(
    ("code", "kind", "busy"),
    [
        (409, "lab_exists", True),
        (409, "operation_in_progress", True),
        (409, "namespace_conflict", False),
        (403, "lab_exists", False),
    ],
)
def test_what_is_in_the_way_for_a_while(code: int, kind: str, busy: bool) -> None:  # noqa: FBT001 (a table)
    assert refusal_of(code, json.dumps({"detail": [{"msg": "x", "type": kind}]}).encode()).busy is busy


def test_an_open_tab_is_no_activity_and_a_console_is() -> None:
    spawned = NOW - timedelta(hours=1)
    assert activity_of({}, spawned, NOW) is None
    assert activity_of({"last_activity": None, "exposed": False}, spawned, NOW) is None
    typed = {"last_activity": "2026-03-01T09:30:00Z"}
    assert activity_of(typed, spawned, NOW) == NOW - timedelta(minutes=30)
    assert activity_of(typed, None, NOW) == NOW - timedelta(minutes=30)
    assert activity_of(typed, NOW - timedelta(minutes=30), NOW) is None


@pytest.mark.parametrize("off", [timedelta(hours=2), timedelta(hours=-2), timedelta(days=1)])
def test_activity_is_told_by_the_clock_of_the_hub_however_far_it_is_off(off: timedelta) -> None:
    """A hub two hours ahead would take who types for idle, and stop the lab."""
    typed = {"last_activity": "2026-03-01T09:30:00Z"}
    date = format_datetime(NOW, usegmt=True)
    assert activity_of(typed, None, NOW + off, date) == NOW + off - timedelta(minutes=30)
    assert activity_of(typed, None, NOW + timedelta(seconds=5), date) == NOW - timedelta(minutes=30)


def test_an_exposed_lab_is_active_until_its_end() -> None:
    body = {"last_activity": None, "exposed": True}
    assert activity_of(body, NOW - timedelta(hours=1), NOW) == NOW
    assert activity_of(body, NOW - timedelta(seconds=30), NOW) is None


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-03-01T11:30:00+02:00", NOW - timedelta(minutes=30)),
        ("2026-03-01T09:30:00", NOW - timedelta(minutes=30)),
        ("2026-03-01T12:00:00Z", NOW),
        ("yesterday", None),
        (5, None),
    ],
)
def test_times_of_other_machines(text: object, at: datetime | None) -> None:
    assert activity_of({"last_activity": text}, None, NOW) == at

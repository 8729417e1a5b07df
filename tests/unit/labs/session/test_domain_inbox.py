"""Session events folded into rows: however they come, the row is the same (R000-024, R000-025, C11)."""

from itertools import permutations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from vkprovider.lablet import names
from vkprovider.labs.pure.session import inbox
from vkprovider.labs.pure.session.inbox import EventOutcome, SeenEvents, SessionEvent, SessionEvents
from vkprovider.platform.objects import ConfigMap

NOW = 1_800_000_000
EVENTS = st.builds(
    SessionEvent,
    session=st.just("s-1"),
    kind=st.sampled_from(["started", "ended"]),
    at=st.integers(1, NOW),
    source=st.just("https://lds"),
    id=st.text(min_size=1, max_size=3),
)


def event(kind: inbox.Kind = "started", at: int = NOW, session: str = "s-1", id_: str = "e1") -> SessionEvent:
    return SessionEvent(session, kind, at, "https://lds", id_)


def folded(events: list[SessionEvent] | tuple[SessionEvent, ...]) -> SessionEvents:
    row = None
    for item in events:
        row = inbox.fold(row, item, NOW)
    assert row is not None
    return row


@given(st.lists(EVENTS, min_size=1, max_size=5))
def test_order_and_repetition_change_nothing(events: list[SessionEvent]) -> None:
    row = folded(events)
    for order in permutations(events):
        assert folded(order + order) == row
    for kind in ("started", "ended"):
        assert getattr(row, kind) == min((e.at for e in events if e.kind == kind), default=0)


def test_end_before_the_beginning_is_kept() -> None:
    row = folded([event("ended", NOW - 1), event("started", NOW - 60)])
    assert (row.started, row.ended, row.first_seen) == (NOW - 60, NOW - 1, NOW)


@pytest.mark.parametrize(
    ("known", "news", "age_s", "outcome"),
    [
        (True, True, 0, EventOutcome.ACCEPTED),
        (True, False, 10**6, EventOutcome.DUPLICATE),
        (False, True, 0, EventOutcome.UNKNOWN_SESSION),
        (False, False, 599, EventOutcome.UNKNOWN_SESSION),
        (False, False, 600, EventOutcome.STRAY),
    ],
)
def test_answer(*, known: bool, news: bool, age_s: int, outcome: EventOutcome) -> None:
    assert inbox.answer(known=known, news=news, age_s=age_s, retry_s=600) is outcome


def test_senders_come_again_only_where_it_helps() -> None:
    assert {o for o in EventOutcome if o.retry} == {
        EventOutcome.UNKNOWN_SESSION,
        EventOutcome.FULL,
        EventOutcome.FAILED,
    }


def test_rows_go_when_nobody_knows_the_session_for_a_day() -> None:
    row = folded([event()])
    assert not inbox.outdated(row, known=False, now_unix=NOW + inbox.KEEP_S)
    assert inbox.outdated(row, known=False, now_unix=NOW + inbox.KEEP_S + 1)
    assert not inbox.outdated(row, known=True, now_unix=NOW + 10 * inbox.KEEP_S)


def test_senders_of_one_deployment_change_only_its_row() -> None:
    """An LDS that knows the session id of another one ends nothing there, and hides nothing that is said there."""
    theirs = SessionEvent("s-1", "ended", NOW, "https://lds", "e-1", deployment="lds-b")
    ours = SessionEvent("s-1", "ended", NOW, "https://lds", "e-1", deployment="lds-a")
    anybody = SessionEvent("s-1", "started", NOW, "https://lds", "e-1")
    events = (theirs, ours, anybody)
    rows = [inbox.fold(None, event, NOW) for event in events]
    assert len({inbox.object_name(row.key) for row in rows}) == len({event.key for event in events}) == 3
    assert all(inbox.read(stored(row), "i") == row for row in rows)
    both = inbox.merged("s-1", [inbox.fold(None, replace(ours, kind="started", at=NOW - 5), NOW), rows[2]])
    assert (both.started, both.ended) == (NOW - 5, 0)
    assert inbox.merged("s-1", []) == SessionEvents("s-1")


def test_memory_of_events_is_bounded() -> None:
    seen = SeenEvents(3)
    for number in range(5):
        seen.add(("", "s", str(number)))
    seen.add(("", "s", "2"))
    seen.add(("", "s", "5"))
    assert len(seen) == 3
    assert [number for number in range(6) if ("", "s", str(number)) in seen] == [2, 4, 5]


def stored(row: SessionEvents, installation: str = "i") -> ConfigMap:
    made = inbox.body(row, namespace="n", installation=installation, resource_version="7")
    return msgspec.convert(made, ConfigMap)


@given(st.text(min_size=1, max_size=300))
def test_any_session_id_makes_a_legal_name_of_its_own(session: str) -> None:
    name = inbox.object_name(session)
    assert len(name) <= 63
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert name != inbox.object_name(session + "x")


def test_row_survives_being_stored() -> None:
    row = folded([event("ended", NOW - 5)])
    config_map = stored(row)
    assert config_map.metadata.labels[names.LABEL_COMPONENT] == names.COMPONENT_SESSION_EVENTS
    assert inbox.read(config_map, "i") == row


def test_what_is_not_ours_or_damaged_says_nothing() -> None:
    row = folded([event()])
    config_map = stored(row)
    assert inbox.read(stored(row, "other"), "i") is None
    assert inbox.read(msgspec.structs.replace(config_map, data={}), "i") is None
    assert inbox.read(msgspec.structs.replace(config_map, data={inbox.DATA_KEY: '{"session": 1}'}), "i") is None
    other = msgspec.structs.replace(row, session="s-2")
    data = {inbox.DATA_KEY: msgspec.json.encode(other).decode()}
    assert inbox.read(msgspec.structs.replace(config_map, data=data), "i") is None

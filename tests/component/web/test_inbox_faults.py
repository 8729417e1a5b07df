"""The inbox when the API server is no help, or the events are too many (C11)."""

import msgspec
import pytest

from tests.support.scripted import ScriptedServer, refuse
from vkprovider.labs.controllers.session.inbox import Inbox
from vkprovider.labs.pure.session import inbox as rules
from vkprovider.labs.pure.session.inbox import EventOutcome, SessionEvent, SessionEvents
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.events import EventRecorder
from vkprovider.platform.runtime.context import Context

NOW = 1_800_000_000
EVENT = SessionEvent("s-1", "started", NOW - 5, "https://lds", "e-1")


@pytest.fixture
def claimed() -> set[str]:
    """Sessions that claims of this replica name."""
    return set()


@pytest.fixture
def inbox(kube: KubeClient, claimed: set[str]) -> Inbox:
    events = EventRecorder(kube, component="test", instance="r")
    made = Inbox(
        Context(kube, events, "i", "r", "n", wall=lambda: NOW),
        lambda: True,
        changed=lambda _: None,
        claimed=claimed.__contains__,
    )
    made.objects.synced.set()
    return made


async def test_before_everything_is_known_nothing_is_taken(server: ScriptedServer, inbox: Inbox) -> None:
    inbox.objects.synced.clear()
    assert await inbox.accept(EVENT) is EventOutcome.FAILED
    assert server.seen == []


@pytest.mark.parametrize("status", [403, 500, 503])
async def test_what_could_not_be_noted_is_taken_when_it_comes_again(
    server: ScriptedServer, inbox: Inbox, claimed: set[str], status: int
) -> None:
    server.next(refuse(status, "not now"), when="POST")
    assert await inbox.accept(EVENT) is EventOutcome.FAILED
    claimed.add("s-1")
    assert await inbox.accept(EVENT) is EventOutcome.ACCEPTED
    assert await inbox.accept(EVENT) is EventOutcome.DUPLICATE
    assert [seen.method for seen in server.seen] == ["POST", "POST"]
    stored = msgspec.json.decode(server.seen[1].json["data"][rules.DATA_KEY], type=SessionEvents)
    assert stored == SessionEvents("s-1", "https://lds", NOW, started=NOW - 5)


async def test_strays_are_bounded_and_known_sessions_are_not(
    server: ScriptedServer, inbox: Inbox, claimed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "ROWS_MAX", 1)
    inbox.rows["s-0"] = SessionEvents("s-0", "x", NOW, NOW)
    assert await inbox.accept(EVENT) is EventOutcome.FULL
    assert server.seen == []
    claimed.add("s-1")
    assert await inbox.accept(EVENT) is EventOutcome.ACCEPTED


async def test_others_who_never_stop_writing_do_not_hold_us(server: ScriptedServer, inbox: Inbox) -> None:
    server.next(refuse(409, "exists"), when="POST", times=9)
    server.next(refuse(404, "not found"), when="GET", times=9)
    assert await inbox.accept(EVENT) is EventOutcome.FAILED
    assert len(server.seen) <= 10


async def test_events_of_another_deployments_sender_do_not_count(inbox: Inbox) -> None:
    for row in (
        SessionEvents("s-1", "x", NOW, started=NOW - 9),
        SessionEvents("s-1", "x", NOW, started=NOW - 7, ended=NOW - 1, deployment="lds-a"),
        SessionEvents("s-1", "x", NOW, started=NOW - 99, ended=NOW - 98, deployment="lds-b"),
    ):
        inbox.rows[row.key] = row
    assert inbox.of("s-1", "lds-a") == SessionEvents("s-1", started=NOW - 9, ended=NOW - 1)
    assert inbox.of("s-1", "lds-c") == SessionEvents("s-1", started=NOW - 9)


async def test_strays_are_sessions_that_nobody_reports(inbox: Inbox, claimed: set[str]) -> None:
    for number in range(3):
        inbox.rows[f"s-{number}"] = SessionEvents(f"s-{number}", "x", NOW - 100, NOW)
    claimed.add("s-2")
    assert [row.session for row in inbox.strays(60)] == ["s-0", "s-1"]
    assert inbox.strays(101) == []

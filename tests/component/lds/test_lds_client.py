"""The calls of the LDS on the wire: what is asked, what is made of the answers, both judged by the protocol."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.component.lds.conftest import TOKEN, Open, Say, ScriptedLds, given
from vkprovider.labs.lds import client as client_module
from vkprovider.labs.lds.client import LdsClient
from vkprovider.labs.lds.dialect import Lacking
from vkprovider.labs.lds.spi import LabDelivery
from vkprovider.labs.pure.topology.devices import DeviceAccessInfo
from vkprovider.platform.errors import Conflict, Fenced, Invalid, NotFound, Unavailable

START = datetime(2026, 3, 1, 9, 0, tzinfo=timezone(timedelta(hours=1)))
END = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PART = {
    "id": "part-1",
    "form_qualified_name": "exams/net lab/1",
    "state": "PENDING",
    "timeslot_start": "2026-03-01T08:00:00Z",
    "timeslot_end": "2026-03-01T12:00:00Z",
}


def session(session_id: str = "s-1", **changed: Any) -> dict[str, Any]:
    return {
        "id": session_id,
        "username": "ann",
        "state": "PENDING",
        "parts": [PART],
        "client_key": "pod-1",
        "owner": "us",
        **changed,
    }


async def create(client: LabDelivery) -> str:
    made = await client.create_session_with_part("ann", START, END, "exams/net lab/1", client_key="pod-1", owner="us")
    return made.id


async def test_create(lds: ScriptedLds, client: LdsClient) -> None:
    """R000-100, R000-101."""
    lds.say("POST /sessions", Say(201, session(login_url="https://lds/login/s-1?t=secret")))
    made = await client.create_session_with_part("ann", START, END, "exams/net lab/1", client_key="pod-1", owner="us")
    assert (made.id, made.login_url, made.state) == ("s-1", "https://lds/login/s-1?t=secret", "PENDING")
    assert made.parts[0].timeslot_start == START
    [asked] = lds.asked
    assert asked.headers["Authorization"] == f"Bearer {TOKEN}"
    assert json.loads(asked.body) == {
        "username": "ann",
        "timeslot_start": "2026-03-01T08:00:00Z",
        "timeslot_end": "2026-03-01T12:00:00Z",
        "form_qualified_name": "exams/net lab/1",
        "client_key": "pod-1",
        "owner": "us",
    }


async def test_create_again_gives_the_same_session(lds: ScriptedLds, client: LdsClient) -> None:
    """R000-110."""
    lds.say("POST /sessions", Say(201, session()), Say(200, session()))
    assert await create(client) == await create(client) == "s-1"


async def test_create_of_another_wish_under_the_same_key(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("POST /sessions", Say(409, {"code": "ClientKeyConflict", "message": "it is bob's"}))
    with pytest.raises(Conflict, match="LDS a: create_session_with_part: 409 ClientKeyConflict it is bob's"):
        await create(client)


async def test_time_without_a_zone_is_refused(lds: ScriptedLds, client: LdsClient) -> None:
    with pytest.raises(ValueError, match="has no zone"):
        await client.create_session_with_part(
            "ann", START.replace(tzinfo=None), END, "exams/net lab/1", client_key="pod-1", owner="us"
        )
    assert lds.asked == []


async def test_set_devices(lds: ScriptedLds, client: LdsClient) -> None:
    """R000-102, R000-108."""
    lds.say("PUT /sessions/s-1/devices", Say(204))
    device = DeviceAccessInfo("workstation", "vnc", "10.0.1.50", 10012, "vnc://10.0.1.50:10012", "cisco", "cisco")
    bare = DeviceAccessInfo("r1", "telnet", "10.0.1.50", 10013, "telnet://10.0.1.50:10013")
    await client.set_devices("s-1", [device, bare])
    assert json.loads(lds.asked[0].body)["devices"] == [
        {
            "name": "workstation",
            "protocol": "vnc",
            "host": "10.0.1.50",
            "port": 10012,
            "uri": "vnc://10.0.1.50:10012",
            "username": "cisco",
            "password": "cisco",
        },
        {"name": "r1", "protocol": "telnet", "host": "10.0.1.50", "port": 10013, "uri": "telnet://10.0.1.50:10013"},
    ]


async def test_set_devices_of_an_archived_session(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("PUT /sessions/s-1/devices", Say(409, {"code": "SessionArchived", "message": "s-1 is over"}))
    with pytest.raises(Conflict, match="SessionArchived"):
        await client.set_devices("s-1", [])


async def test_get_session_and_login_url(lds: ScriptedLds, client: LdsClient) -> None:
    """R000-103."""
    lds.say("GET /sessions/s-1", Say(200, session(state="RUNNING")))
    lds.say("GET /sessions/s-1/login_url", Say(200, {"login_url": "https://lds/login/s-1?t=secret"}))
    assert (await client.get_session_info("s-1")).state == "RUNNING"
    assert await client.get_login_url("s-1") == "https://lds/login/s-1?t=secret"


async def test_session_in_a_state_that_we_do_not_know(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("GET /sessions/s-1", Say(200, session(state="A_NEW_ONE", colour="blue"), lawful=False))
    found = await client.get_session_info("s-1")
    assert (found.state, found.finished) == ("A_NEW_ONE", False)


async def test_unknown_session(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("GET /sessions/s-1", Say(404, {"code": "UnknownSession", "message": "no session s-1"}))
    with pytest.raises(NotFound, match="no session s-1"):
        await client.get_session_info("s-1")


@pytest.mark.parametrize(
    "answer",
    [
        Say(200, session(state="ARCHIVED")),
        Say(404, {"code": "UnknownSession", "message": "no session s-1"}),
    ],
    ids=["archived", "unknown"],
)
async def test_archive(lds: ScriptedLds, client: LdsClient, answer: Say) -> None:
    """R000-109."""
    lds.say("POST /sessions/s-1/archive", answer)
    await client.archive_session("s-1")
    await client.archive_session("s-1")
    assert lds.lines == ["POST /sessions/s-1/archive"] * 2


async def test_archive_does_not_believe_the_404_of_a_proxy(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("POST /sessions/s-1/archive", Say(404, b"<html>no such page</html>", lawful=False))
    with pytest.raises(Unavailable, match="something other than an LDS"):
        await client.archive_session("s-1")


async def test_refresh_content(lds: ScriptedLds, client: LdsClient) -> None:
    """R000-104."""
    form = "exams/net lab/1"
    answer = {"form_qualified_name": form, "version": "1.2.0", "refreshed_at": "2026-03-01T08:00:00Z"}
    lds.say("POST /content/refresh", Say(200, answer))
    content = await client.refresh_content(form)
    assert (content.version, content.checksum) == ("1.2.0", None)
    assert json.loads(lds.asked[0].body) == {"form_qualified_name": form}


async def test_refresh_of_unknown_content(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("POST /content/refresh", Say(404, {"code": "UnknownForm", "message": "no such form"}))
    with pytest.raises(NotFound, match="no such form"):
        await client.refresh_content("x")


async def test_collect_responses(lds: ScriptedLds, client: LdsClient) -> None:
    """R000-105."""
    answers = [
        {"part_id": "part-1", "item": "q1", "answer": {"text": "42"}, "score": 0.5},
        {"part_id": "part-1", "item": "q2", "answer": None, "answered_at": "2026-03-01T09:00:00Z"},
    ]
    lds.say("GET /sessions/s-1/responses", Say(200, {"session_id": "s-1", "responses": answers}))
    data = await client.collect_responses("s-1")
    assert [(each.item, each.answer, each.score) for each in data.responses] == [
        ("q1", {"text": "42"}, 0.5),
        ("q2", None, None),
    ]


async def test_collect_feedback(lds: ScriptedLds, client: LdsClient) -> None:
    """R000-105; a form's name is not a path."""

    def entry(session_id: str) -> dict[str, Any]:
        return {"session_id": session_id, "form_qualified_name": "a/b &c", "rating": 5, "comment": "good"}

    lds.say("GET /sessions/s-1/feedback", Say(200, {"entries": [entry("s-1")]}))
    lds.say(
        "GET /feedback", Say(200, {"entries": [entry("s-1")], "next": "p 2"}), Say(200, {"entries": [entry("s-2")]})
    )
    assert (await client.collect_user_feedback_by_session("s-1")).entries[0].rating == 5
    data = await client.collect_user_feedback_by_form("a/b &c")
    assert [each.session_id for each in data.entries] == ["s-1", "s-2"]
    assert lds.lines[1:] == [
        "GET /feedback?form_qualified_name=a/b+%26c&limit=500",
        "GET /feedback?form_qualified_name=a/b+%26c&limit=500&cursor=p+2",
    ]


async def test_list_sessions(lds: ScriptedLds, client: LdsClient) -> None:
    """Every page is read, and sessions of other installations are left out."""
    foreign = [session("s-2", owner="them"), session("s-3", owner=None), session("s-4", state="ARCHIVED")]
    lds.say(
        "GET /sessions",
        Say(200, {"sessions": [session("s-1"), *foreign], "next": "2"}),
        Say(200, {"sessions": [session("s-1"), session("s-5")], "next": None}),
    )
    assert [each.id for each in await client.list_sessions(owner="us")] == ["s-1", "s-5"]
    assert lds.lines == ["GET /sessions?owner=us&limit=500", "GET /sessions?owner=us&limit=500&cursor=2"]


async def test_list_sessions_of_a_key(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("GET /sessions", Say(200, {"sessions": [session("s-1"), session("s-2", client_key="pod-2")]}))
    assert [each.id for each in await client.list_sessions(owner="us", client_key="pod-1")] == ["s-1"]
    assert lds.lines == ["GET /sessions?owner=us&client_key=pod-1&limit=500"]


async def test_list_that_does_not_end_is_no_list(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("GET /sessions", Say(200, {"sessions": [session()], "next": "again"}))
    with pytest.raises(Unavailable, match="the pages do not end"):
        await client.list_sessions(owner="us")
    assert len(lds.asked) == 2


@pytest.mark.parametrize(
    ("info", "lacking"),
    [
        (Say(200, {"version": "1", "extensions": []}), "client-key, owner"),
        (Say(200, {"version": "1", "extensions": ["client-key", "of-others"]}), "owner"),
        (Say(404, b"no such page", lawful=False), "client-key, owner"),
    ],
    ids=["none", "one", "no-info"],
)
async def test_sessions_that_cannot_be_told_apart_are_not_listed(
    lds: ScriptedLds, client: LdsClient, info: Say, lacking: str
) -> None:
    """An empty list would say that no session is left over."""
    lds.say("GET /info", info)
    with pytest.raises(Lacking, match=f"it lacks {lacking}"):
        await client.list_sessions(owner="us", client_key="pod-1")
    assert lds.lines == ["GET /info"]


async def test_info_is_asked_once(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("GET /info", Say(200, {"version": "7", "extensions": ["owner"]}))
    lds.say("GET /sessions", Say(200, {"sessions": []}))
    guarded = client.guarded(lambda: None)
    assert (await client.info()).version == (await guarded.info()).version == "7"
    await guarded.list_sessions(owner="us")
    assert lds.lines.count("GET /info") == 1


async def test_base_url_with_a_path(lds: ScriptedLds, connect: Open) -> None:
    lds.say("GET /behind/a%20proxy/api/v1/sessions/s-1", Say(200, session()))
    lds.say("GET /behind/a proxy/api/v1/sessions/s-1", Say(200, session(), lawful=False))
    await connect(f"{lds.url}/behind/a%20proxy/").get_session_info("s-1")
    assert lds.asked[0].target == "/behind/a%20proxy/api/v1/sessions/s-1"
    lds.exchanges.clear()  # the protocol knows no prefix


@pytest.mark.parametrize("session_id", ["", "a/b", "..", "a?b", "a%2Fb", "x" * 65])
async def test_id_that_is_none_leaves_for_nowhere(lds: ScriptedLds, client: LdsClient, session_id: str) -> None:
    with pytest.raises(Invalid):
        await client.archive_session(session_id)
    assert lds.asked == []


async def test_answer_with_an_id_that_is_none(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("POST /sessions", Say(201, session("../../admin"), lawful=False))
    with pytest.raises(Unavailable, match="not an LDS's"):
        await create(client)


async def test_without_a_token_no_header_is_sent(lds: ScriptedLds, connect: Open) -> None:
    lds.say("GET /sessions/s-1", Say(200, session()))
    await connect(token=given(None)).get_session_info("s-1")
    assert "Authorization" not in lds.asked[0].headers
    lds.exchanges.clear()  # the protocol wants one


class Turned:
    """A guard that lets some requests pass."""

    def __init__(self, passes: int) -> None:
        self.passes = passes

    def __call__(self) -> None:
        self.passes -= 1
        if self.passes < 0:
            raise Fenced("another replica's")


async def test_guard_stops_a_request_before_it_leaves(lds: ScriptedLds, client: LdsClient) -> None:
    guarded = client.guarded(Turned(0))
    for call in (
        guarded.get_session_info("s-1"),
        guarded.archive_session("s-1"),
        guarded.set_devices("s-1", []),
        create(guarded),
    ):
        with pytest.raises(Fenced):
            await call
    assert lds.exchanges == []


async def test_guard_stops_a_repetition(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("POST /sessions/s-1/archive", Say(503, {"code": "Down", "message": "down"}))
    with pytest.raises(Fenced):
        await client.guarded(Turned(1)).archive_session("s-1")
    assert len(lds.asked) == 1


async def test_guard_is_of_one_client_alone(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("GET /sessions/s-1", Say(200, session()))
    fenced = client.guarded(Turned(0))
    with pytest.raises(Fenced):
        await fenced.get_session_info("s-1")
    assert client_module._guard.get() is None
    assert (await client.get_session_info("s-1")).id == "s-1"

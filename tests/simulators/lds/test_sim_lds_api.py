"""The simulated LDS over HTTP: every answer is held against the protocol (R000-087 to R000-110)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.simulators.cml.plain import eventually
from tests.support.lds_simulator import FORM, TOKEN, LdsClient, lds_client, new_session
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

DEVICE = {
    "name": "workstation",
    "protocol": "vnc",
    "host": "10.0.1.50",
    "port": 10012,
    "uri": "vnc://10.0.1.50:10012",
    "username": "cisco",
    "password": "cisco",
}


@pytest.fixture
async def simulator() -> AsyncIterator[LdsSimulator]:
    async with LdsSimulator(LdsSettings(token=TOKEN)) as simulator:
        yield simulator


@pytest.fixture
async def lds(simulator: LdsSimulator) -> AsyncIterator[LdsClient]:
    async with lds_client(simulator.url) as client:
        yield client


async def test_the_nine_calls_from_a_new_session_to_an_archived_one(lds: LdsClient) -> None:
    made = await lds.create(client_key="uid-1", owner="cluster-1")
    assert (made.status, made.body["state"], made.body["username"]) == (201, "PENDING", "alice")
    session = made.body["id"]
    assert made.body["parts"][0]["form_qualified_name"] == FORM
    assert (await lds.ask("PUT", f"/sessions/{session}/devices", {"devices": [DEVICE]})).status == 204
    shown = (await lds.ask("GET", f"/sessions/{session}")).body
    assert shown["login_url"] == (await lds.ask("GET", f"/sessions/{session}/login_url")).body["login_url"]
    assert (await lds.sim("POST", f"/sessions/{session}/log-in"))["state"] == "RUNNING"
    await lds.sim("POST", f"/sessions/{session}/answer", {"item": "task-1", "answer": {"cost": 10}, "score": 0.5})
    await lds.sim("POST", f"/sessions/{session}/say", {"rating": 4, "comment": "short"})
    assert (await lds.sim("POST", f"/sessions/{session}/finish"))["state"] == "USER_FINISHED"
    [response] = (await lds.ask("GET", f"/sessions/{session}/responses")).body["responses"]
    assert (response["item"], response["answer"], response["score"]) == ("task-1", {"cost": 10}, 0.5)
    [entry] = (await lds.ask("GET", f"/sessions/{session}/feedback")).body["entries"]
    assert (entry["rating"], entry["comment"]) == (4, "short")
    assert (await lds.ask("GET", "/feedback", form_qualified_name=FORM)).body["entries"] == [entry]
    assert (await lds.ask("GET", "/feedback", form_qualified_name="another")).body["entries"] == []
    for _ in range(2):
        archived = await lds.ask("POST", f"/sessions/{session}/archive")
        assert (archived.status, archived.body["state"]) == (200, "ARCHIVED")
    assert (await lds.ask("GET", f"/sessions/{session}/responses")).body["responses"] == [response]
    assert "login_url" not in (await lds.ask("GET", f"/sessions/{session}")).body
    assert (await lds.ask("GET", f"/sessions/{session}/login_url")).code == (409, "SessionArchived")
    assert (await lds.ask("PUT", f"/sessions/{session}/devices", {"devices": []})).code == (409, "SessionArchived")
    assert (await lds.sim("GET", "/sessions"))[0]["devices"] == [DEVICE]


async def test_the_same_client_key_names_one_live_session(lds: LdsClient) -> None:
    first = await lds.create(client_key="uid-1")
    again = await lds.create(client_key="uid-1")
    assert (again.status, again.body) == (200, first.body)
    assert (await lds.create("bob", client_key="uid-1")).code == (409, "ClientKeyConflict")
    assert (await lds.create(client_key="uid-1", form_qualified_name="other")).code == (409, "ClientKeyConflict")
    await lds.ask("POST", f"/sessions/{first.body['id']}/archive")
    after = await lds.create(client_key="uid-1")
    assert after.status == 201
    assert after.body["id"] != first.body["id"]
    assert (await lds.ask("GET", "/info")).body["extensions"] == ["client-key", "owner", "timeslot"]


async def test_an_lds_without_extensions_ignores_their_fields() -> None:
    settings = LdsSettings(client_keys=False, owners=False, timeslots=False)
    async with LdsSimulator(settings) as simulator, lds_client(simulator.url) as lds:
        made = [await lds.create(client_key="uid-1", owner="cluster-1") for _ in range(2)]
        assert [one.status for one in made] == [201, 201]
        assert not {"client_key", "owner"} & set(made[0].body)
        listed = (await lds.ask("GET", "/sessions", owner="another", client_key="another")).body["sessions"]
        assert [one["id"] for one in listed] == [one.body["id"] for one in made]
        assert (await lds.ask("GET", "/info")).code == (404, "NotFound")
        slot = {"timeslot_start": "2027-01-01T00:00:00Z", "timeslot_end": "2027-01-01T01:00:00Z"}
        assert (await lds.ask("PUT", f"/sessions/{made[0].body['id']}/timeslot", slot)).code == (404, "NotFound")


async def test_a_timeslot_can_be_replaced_until_the_session_is_over(lds: LdsClient) -> None:
    session = (await lds.create()).body["id"]
    path = f"/sessions/{session}/timeslot"
    slot = {"timeslot_start": "2027-01-01T00:00:00Z", "timeslot_end": "2027-01-01T01:00:00Z"}
    for _ in range(2):
        assert (await lds.ask("PUT", path, slot)).status == 204
    [part] = (await lds.ask("GET", f"/sessions/{session}")).body["parts"]
    assert {key: part[key] for key in slot} == slot
    backwards = await lds.ask("PUT", path, {**slot, "timeslot_end": slot["timeslot_start"]})
    assert backwards.status == 422
    assert (await lds.ask("PUT", "/sessions/never-was/timeslot", slot)).code == (404, "UnknownSession")
    await lds.ask("POST", f"/sessions/{session}/archive")
    assert (await lds.ask("PUT", path, slot)).code == (409, "SessionArchived")


async def test_a_lost_answer_leaves_one_session_with_the_key_and_two_without(lds: LdsClient) -> None:
    for key, sessions in (("uid-1", 1), (None, 2)):
        await lds.sim("POST", "/faults", {"kind": "lost_answer", "route": "^POST .*/sessions$", "count": 1})
        with pytest.raises(aiohttp.ClientConnectionError):
            await lds.create(f"user of {key}", client_key=key)
        await lds.create(f"user of {key}", client_key=key)
        found = (await lds.ask("GET", "/sessions")).body["sessions"]
        assert len([one for one in found if one["username"] == f"user of {key}"]) == sessions


async def test_capacity_counts_sessions_that_are_not_archived(lds: LdsClient) -> None:
    await lds.sim("PUT", "/capacity", {"capacity": 2})
    first, second = await lds.create(), await lds.create()
    await lds.sim("POST", f"/sessions/{second.body['id']}/log-in")
    await lds.sim("POST", f"/sessions/{second.body['id']}/finish")
    full = await lds.create()
    assert full.code == (503, "CapacityExhausted")
    assert full.headers["Retry-After"] == "5"
    await lds.ask("POST", f"/sessions/{first.body['id']}/archive")
    assert (await lds.create()).status == 201


async def test_lists_are_filtered_and_come_in_pages(lds: LdsClient) -> None:
    made = [(await lds.create(owner=f"cluster-{number % 2}")).body["id"] for number in range(7)]
    await lds.ask("POST", f"/sessions/{made[6]}/archive")
    found: list[str] = []
    query = {"limit": "2"}
    while True:
        page = (await lds.ask("GET", "/sessions", **query)).body
        assert all("login_url" not in session for session in page["sessions"])
        found += [session["id"] for session in page["sessions"]]
        if not page.get("next"):
            break
        query["cursor"] = page["next"]
    assert found == made[:6]

    async def ids(**query: str) -> list[str]:
        return [session["id"] for session in (await lds.ask("GET", "/sessions", **query)).body["sessions"]]

    assert await ids(owner="cluster-1") == made[1:6:2]
    assert await ids(state="ARCHIVED") == [made[6]]
    assert await ids(owner="nobody") == []


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/sessions/none", None, (404, "UnknownSession")),
        ("POST", "/sessions/none/archive", None, (404, "UnknownSession")),
        ("PUT", "/sessions/none/devices", {"devices": []}, (404, "UnknownSession")),
        ("POST", "/sessions", b"{", (422, "InvalidRequest")),
        ("POST", "/sessions", new_session(username=""), (422, "InvalidRequest")),
        ("POST", "/sessions", new_session(minutes=-1), (422, "InvalidRequest")),
        ("POST", "/sessions", new_session(timeslot_start="2026-01-17T10:30:00"), (422, "InvalidRequest")),
        ("POST", "/sessions", new_session(form_qualified_name=""), (422, "InvalidRequest")),
        ("GET", "/sessions?limit=0", None, (422, "InvalidRequest")),
        ("GET", "/sessions?state=GONE", None, (422, "InvalidRequest")),
        ("GET", "/feedback", None, (422, "InvalidRequest")),
        ("POST", "/content/refresh", {}, (422, "InvalidRequest")),
    ],
)
async def test_wrong_requests_are_refused_in_the_words_of_the_protocol(
    lds: LdsClient, method: str, path: str, body: object, code: tuple[int, str]
) -> None:
    assert (await lds.wrong(method, path, body)).code == code


@pytest.mark.parametrize("wrong", [{"port": 0}, {"port": 70000}, {"protocol": "serial"}, {"name": ""}])
async def test_devices_that_are_none_are_refused(lds: LdsClient, wrong: dict[str, object]) -> None:
    session = (await lds.create()).body["id"]
    refused = await lds.wrong("PUT", f"/sessions/{session}/devices", {"devices": [{**DEVICE, **wrong}]})
    assert refused.code == (422, "InvalidRequest")


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x"])
async def test_without_the_token_nothing_is_told(lds: LdsClient, token: str) -> None:
    lds.token = token
    assert (await lds.wrong("GET", "/sessions")).code == (401, "Unauthorized")
    lds.token = TOKEN
    await lds.sim("PUT", "/token", {"token": "changed"})
    assert (await lds.ask("GET", "/sessions")).code == (401, "Unauthorized")
    lds.token = "changed"
    assert (await lds.ask("GET", "/sessions")).status == 200


async def test_a_lost_token_is_lost_until_it_is_set(lds: LdsClient) -> None:
    await lds.sim("POST", "/faults", {"kind": "lost_token", "count": 1})
    assert [(await lds.ask("GET", "/sessions")).status for _ in range(2)] == [401, 401]
    await lds.sim("PUT", "/token", {"token": TOKEN})
    assert (await lds.ask("GET", "/sessions")).status == 200


async def test_content_is_refreshed_on_demand_and_an_unknown_form_is_told() -> None:
    async with LdsSimulator(LdsSettings(forms=(FORM,))) as simulator, lds_client(simulator.url) as lds:
        first = (await lds.ask("POST", "/content/refresh", {"form_qualified_name": FORM})).body
        await lds.sim("PUT", "/forms", {"name": FORM, "version": "2"})
        second = (await lds.ask("POST", "/content/refresh", {"form_qualified_name": FORM})).body
        assert (first["version"], second["version"]) == ("1", "2")
        assert first["checksum"] != second["checksum"]
        refused = await lds.ask("POST", "/content/refresh", {"form_qualified_name": "gone"})
        assert refused.code == (404, "UnknownForm")
        assert (await lds.create(form_qualified_name="gone")).code == (404, "UnknownForm")
        assert (await lds.ask("GET", "/sessions")).body["sessions"] == []


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"kind": "status", "status": 503}, (503, "InjectedFault")),
        ({"kind": "unauthorized"}, (401, "Unauthorized")),
    ],
)
async def test_faults_are_injected_and_logged(
    simulator: LdsSimulator, lds: LdsClient, fault: dict[str, object], code: tuple[int, str]
) -> None:
    await lds.sim("POST", "/faults", {"route": "^POST .*/sessions$", "count": 1, **fault})
    assert (await lds.create()).code == code
    made = await lds.create()
    log = [(entry.status, entry.fault, entry.session) for entry in simulator.log.entries]
    assert log == [(code[0], fault["kind"], ""), (201, "", made.body["id"])]


async def test_a_dropped_request_is_not_carried_out_and_a_silent_lds_never_answers(
    simulator: LdsSimulator, lds: LdsClient
) -> None:
    await lds.sim("POST", "/faults", {"kind": "drop", "count": 1})
    with pytest.raises(aiohttp.ClientConnectionError):
        await lds.create()
    await lds.sim("POST", "/silence", {"seconds": 60})
    asked = asyncio.create_task(lds.create())
    await eventually(lambda: simulator.endpoint.held)
    await lds.sim("DELETE", "/faults")
    with pytest.raises(aiohttp.ClientConnectionError):
        await asked
    assert (await lds.ask("GET", "/sessions")).body["sessions"] == []


async def test_sessions_survive_an_orderly_end(tmp_path: Path) -> None:
    path = tmp_path / "lds.json"
    async with LdsSimulator(LdsSettings(capacity=3), state=path) as simulator, lds_client(simulator.url) as lds:
        running, gone = (await lds.create(client_key="uid-1")).body, (await lds.create(client_key="uid-2")).body
        await lds.ask("PUT", f"/sessions/{running['id']}/devices", {"devices": [DEVICE]})
        await lds.sim("POST", f"/sessions/{running['id']}/log-in")
        await lds.ask("POST", f"/sessions/{gone['id']}/archive")
        before = await lds.sim("GET", "/sessions")
        url = (await lds.ask("GET", f"/sessions/{running['id']}/login_url")).body["login_url"]
    async with LdsSimulator(LdsSettings(), state=path, base_url=simulator.url) as after, lds_client(after.url) as lds:
        assert await lds.sim("GET", "/sessions") == before
        assert (await lds.ask("GET", f"/sessions/{running['id']}/login_url")).body["login_url"] == url
        assert (await lds.create(client_key="uid-1")).status == 200
        assert (await lds.create(client_key="uid-2")).status == 201
        assert (await lds.create()).status == 201
        assert (await lds.create()).code == (503, "CapacityExhausted"), "the capacity is stored"

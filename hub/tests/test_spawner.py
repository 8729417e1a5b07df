"""The spawner in a real hub, with a portal that does what goes wrong."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from jupyterhub.tests.utils import add_user, api_request, async_requests, get_page, public_url
from jupyterhub.user import User
from jupyterhub_vkprovider.errors import LabError

from hub.tests.portal import HUB_TOKEN, Portal, user_token

CUT_LINES = ["Your lab is asked for", "The lab is imported", "All devices booted", "The lab is ready."]
PREVIOUS = "Your previous lab is ending; the new one starts after that"


async def until(condition: Callable[[], Any], within_s: float = 15) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 (any condition)
            await asyncio.sleep(0.01)


async def spawn(app: Any, user: User, options: dict[str, Any] | None = None) -> Any:
    return await api_request(app, "users", user.name, "server", method="post", data=json.dumps(options or {}))


async def running(app: Any, user: User) -> None:
    answer = await spawn(app, user)
    assert answer.status_code in (201, 202), answer.text
    await until(lambda: user.spawner.ready)


async def stop(app: Any, user: User) -> Any:
    return await api_request(app, "users", user.name, "server", method="delete")


def told(user: User) -> list[str]:
    return [event["message"] for event in user.spawner.get_state()["events"]]


async def test_a_lab_is_created_as_its_owner_and_deleted_as_the_hub(app: Any, user: User, portal: Portal) -> None:
    options = {"image_list": ["ospf:1"], "size": ["small"], "enable_debug": ["true"]}
    answer = await spawn(app, user, options)
    assert answer.status_code in (201, 202)
    await until(lambda: user.spawner.ready)
    (body,) = portal.bodies
    assert body["options"] == options  # R002-041
    env = body["env"]
    assert env["JUPYTERHUB_USER"] == user.name
    assert env["JUPYTERHUB_SERVICE_PREFIX"] == user.spawner.server.base_url
    assert all(isinstance(value, str) for value in env.values())
    assert told(user) == CUT_LINES
    page = await async_requests.get(public_url(app, user))
    assert page.text == user.spawner.server.base_url  # the proxy leads to the lab's page
    assert (await stop(app, user)).status_code in (202, 204)
    await until(lambda: not user.spawner.active)
    assert portal.labs == {}
    for method, path, token in portal.asked:
        if "/user/" in path:
            continue
        owner = path.endswith(("/create", "/events", f"/lab-form/{user.name}"))
        assert token == (user_token(user.name) if owner else HUB_TOKEN), (method, path)  # R002-004, R002-005


async def test_limits_command_and_arguments_of_the_hub_are_ignored(app: Any, user: User, portal: Portal) -> None:
    spawner = user.spawner
    spawner.mem_limit, spawner.mem_guarantee, spawner.cpu_limit, spawner.cpu_guarantee = "1G", "1G", 2, 1  # R002-049
    spawner.cmd, spawner.args = ["never"], ["--never"]
    await running(app, user)
    assert not {"MEM_LIMIT", "MEM_GUARANTEE", "CPU_LIMIT", "CPU_GUARANTEE"} & set(portal.bodies[0]["env"])
    assert "never" not in json.dumps(portal.bodies[0])


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("cuts", [[0], [1], [3], [2, 0, 1], [5]])
async def test_a_cut_stream_goes_on_where_it_was(
    app: Any, user: User, portal: Portal, *, ids: bool, cuts: list[int]
) -> None:
    portal.ids, portal.cuts = ids, cuts.copy()
    await running(app, user)
    assert told(user) == CUT_LINES
    assert portal.creations == 1
    if ids and cuts == [3]:
        assert portal.last_ids == ["", "3"]


@pytest.mark.usefixtures("no_patience")
async def test_a_cut_stream_never_is_a_failure(app: Any, user: User, portal: Portal) -> None:
    portal.hold, portal.cuts = asyncio.Event(), [2]
    assert (await spawn(app, user)).status_code == 202 or user.spawner.pending
    await until(lambda: portal.last_ids)
    portal.silent = True  # the portal is down in the middle of a boot
    await asyncio.sleep(1.5)
    assert user.spawner.pending == "spawn"
    assert not any("ailed" in message for message in told(user))
    portal.silent = False
    portal.hold.set()
    await until(lambda: user.spawner.ready)
    assert told(user) == CUT_LINES


async def test_what_a_stream_may_hold_besides_lines(app: Any, user: User, portal: Portal) -> None:
    portal.raw = b": ping\n\nevent: ping\ndata: 5\n\nevent: progress\ndata: soon\n\ndata: \xff\n\nevent: new\ndata\n\n"
    await running(app, user)
    assert told(user) == CUT_LINES


async def test_a_lab_is_ready_although_its_stream_is_refused(app: Any, user: User, portal: Portal) -> None:
    portal.stream_refusal = 401  # the learner's token expired meanwhile
    await running(app, user)
    assert told(user) == ["The lab is ready."]
    await stop(app, user)
    await until(lambda: not user.spawner.active)
    assert portal.labs == {}


async def test_a_start_waits_for_the_end_of_the_previous_lab_and_says_so(app: Any, user: User, portal: Portal) -> None:
    portal.begin(user.name)
    gone = asyncio.Event()
    portal.end(user.name, gone.wait())
    starting = asyncio.ensure_future(running(app, user))  # jupyterhub#1945
    await until(lambda: told(user) == [PREVIOUS])
    assert portal.creations == 0
    gone.set()
    await starting
    assert portal.creations == 1
    assert told(user) == [PREVIOUS, *CUT_LINES]


@pytest.mark.parametrize("status", ["running", "pending"])
@pytest.mark.usefixtures("no_patience")
async def test_a_lab_that_the_hub_forgot_is_taken_as_it_is(app: Any, user: User, portal: Portal, status: str) -> None:
    lab = portal.begin(user.name, status)
    assert (await spawn(app, user)).status_code in (201, 202)
    await until(lambda: told(user))
    if status == "pending":
        assert user.spawner.pending == "spawn"
        lab.status = "running"
        lab.operation.tell("complete", "")
    await until(lambda: user.spawner.ready)
    assert portal.creations == 0
    assert portal.count("DELETE") == 0
    assert "already" in told(user)[0]


REFUSALS = [
    (403, "insufficient_quota", "Your quota allows labs of size small. Choose a smaller one."),
    (400, "unknown_image", "There is no lab ospf:9. Choose one of the list."),
    (409, "namespace_conflict", "The namespace nublado-x belongs to somebody else. Tell your instructor."),
    (422, "invalid_lab_size", "A lab is small, medium or large."),
    (403, "no_room", "All workers are full. Try again when a lab has ended."),
]


@pytest.mark.parametrize(("code", "kind", "text"), REFUSALS)
async def test_a_refusal_reaches_the_learner_as_a_sentence(
    app: Any, user: User, portal: Portal, code: int, kind: str, text: str
) -> None:
    portal.refusal = code, {"detail": [{"msg": text, "type": kind, "loc": ["body", "options"]}]}
    answer = await spawn(app, user)
    assert (answer.status_code, answer.json()["message"]) == (code, text)
    cookies = await app.login_user(user.name)
    form = await get_page("spawn", app, cookies=cookies)
    posted = await async_requests.post(
        f"{public_url(app)}hub/spawn?_xsrf={cookies['_xsrf']}", cookies=cookies, data={"image_list": "ospf:9"}
    )
    assert form.status_code in (code, 200)
    assert 'name="image_list"' in form.text
    assert text in posted.text  # jupyterhub#4244
    assert 'name="image_list"' in posted.text  # with the form, to choose again


async def test_a_refused_start_deletes_nothing(app: Any, user: User, portal: Portal) -> None:
    portal.begin(user.name)  # of which the hub knows nothing
    portal.refusal = 400, {"detail": [{"msg": "There is no such lab.", "type": "unknown_image"}]}
    assert (await spawn(app, user)).status_code == 400
    await until(lambda: not user.spawner.active)
    assert portal.count("DELETE") == 0
    assert portal.labs[user.name].status == "running"


async def test_a_failed_lab_says_why(app: Any, user: User, portal: Portal) -> None:
    portal.fails = "The lab was refused: no image <b>csr</b>."
    assert (await spawn(app, user)).status_code in (202, 424)
    await until(lambda: not user.spawner.active)
    answer = await api_request(app, "users", user.name, "server/progress", stream=True)
    event = json.loads(answer.text.partition("data: ")[2])
    assert event == {"progress": 100, "failed": True, "message": f"Spawn failed: {portal.fails}"}
    portal.fails = None
    await running(app, user)  # a failed lab is replaced in one call


async def test_without_a_token_a_learner_reads_what_to_do(app: Any, user: User, portal: Portal) -> None:
    async def nothing(_: User) -> None:
        return None

    with mock.patch.object(User, "get_auth_state", nothing):
        answer = await spawn(app, user)
        assert answer.status_code == 403
        assert "log in again" in answer.json()["message"]
        cookies = await app.login_user(user.name)
        page = await get_page("spawn", app, cookies=cookies)
        assert "log in again" in page.text
    assert portal.count("POST") == 0


@pytest.mark.usefixtures("no_patience")
async def test_a_portal_that_is_away_for_a_moment_delays_a_start(app: Any, user: User, portal: Portal) -> None:
    portal.silent = True
    assert (await spawn(app, user)).status_code in (201, 202)
    await until(lambda: told(user))
    assert told(user) == ["The lab service does not answer yet; it is asked again"]
    portal.silent = False
    await until(lambda: user.spawner.ready)
    assert portal.creations == 1


async def test_a_portal_that_stays_away_ends_a_start_in_words(app: Any, user: User, portal: Portal) -> None:
    portal.silent = True
    user.spawner.silence_timeout = 0.1
    answer = await spawn(app, user)
    await until(lambda: not user.spawner.active)
    assert answer.status_code in (202, 424)
    assert portal.count("DELETE") == 0
    cookies = await app.login_user(user.name)
    page = await get_page("spawn", app, cookies=cookies)
    assert page.status_code == 503
    assert "The lab service does not answer. Try again in a minute." in page.text


async def test_a_stop_takes_the_token_that_the_file_has_now(
    app: Any, user: User, portal: Portal, token_file: Path
) -> None:
    await running(app, user)
    token_file.write_text("expired")  # noqa: ASYNC240 (a test)
    assert await user.spawner.poll() is None  # refused: the last known state stays
    assert portal.asked[-1][2] == "expired"
    token_file.unlink()  # noqa: ASYNC240 (a test)
    assert await user.spawner.poll() is None
    token_file.write_text(f"{HUB_TOKEN}\n")  # noqa: ASYNC240 (a test)
    await stop(app, user)
    await until(lambda: not user.spawner.active)
    assert portal.labs == {}


async def test_a_stop_of_no_lab_is_done(app: Any, user: User, portal: Portal) -> None:
    await running(app, user)
    portal.labs.clear()
    await user.spawner.stop()
    assert await user.spawner.poll() == 0


async def test_a_stop_waits_through_cuts_and_silence(app: Any, user: User, portal: Portal) -> None:
    await running(app, user)
    portal.end_s, portal.cuts = 1.5, [1]
    stopping = asyncio.ensure_future(user.spawner.stop())
    await until(lambda: user.name in portal.labs and portal.labs[user.name].status == "terminating")
    portal.silent = True
    await asyncio.sleep(0.5)
    assert not stopping.done()
    portal.silent = False
    await stopping
    assert portal.labs == {}
    assert told(user) == ["Your lab is deleted", "The lab has gone."]  # R002-045


async def test_a_stop_waits_for_another_deletion(app: Any, user: User, portal: Portal) -> None:
    await running(app, user)
    gone = asyncio.Event()
    portal.end(user.name, gone.wait())
    stopping = asyncio.ensure_future(user.spawner.stop())
    await until(lambda: portal.count("DELETE"))
    assert not stopping.done()
    gone.set()
    await stopping
    assert portal.labs == {}


async def test_poll_is_what_the_portal_says_and_silence_changes_nothing(app: Any, user: User, portal: Portal) -> None:
    spawner = user.spawner
    assert await spawner.poll() == 0
    await running(app, user)
    lab = portal.labs[user.name]
    for status, value in (("pending", None), ("running", None), ("terminating", None), ("failed", 2)):
        lab.status = status
        assert await spawner.poll() == value
        portal.silent = True
        assert await spawner.poll() == value
        portal.silent = False
    portal.labs.clear()
    assert await spawner.poll() == 0


@pytest.mark.parametrize(
    "foreign",
    [(404, "default backend - 404"), (200, "<!doctype html><html><body>Log in</body></html>"), (302, "")],
    ids=["ingress", "login", "redirect"],
)
async def test_what_something_before_the_portal_answers_changes_nothing(
    app: Any, user: User, portal: Portal, foreign: tuple[int, str]
) -> None:
    """A route without its portal, or a proxy that asks for a login: no lab ends, and none is taken for begun."""
    await running(app, user)
    portal.foreign = foreign
    assert await user.spawner.poll() is None
    user.spawner.stop_timeout = 0.5
    with pytest.raises(LabError, match="has not ended"):
        await user.spawner.stop()
    assert user.name in portal.labs
    other = add_user(app.db, app, name="another")
    other.spawner.silence_timeout = 0.1
    await spawn(app, other)
    await until(lambda: not other.spawner.active)
    assert portal.creations == 1
    portal.foreign = None
    assert await user.spawner.poll() is None


@pytest.mark.usefixtures("no_patience")
async def test_all_listeners_hear_everything_in_order(app: Any, user: User, portal: Portal) -> None:
    portal.hold = asyncio.Event()
    await spawn(app, user)

    async def listen() -> list[dict[str, Any]]:
        return [event async for event in user.spawner.progress()]

    listeners = [asyncio.ensure_future(listen())]
    await until(lambda: len(told(user)) == 3)
    listeners += [asyncio.ensure_future(listen()) for _ in range(20)]
    await asyncio.sleep(0.1)
    assert not any(listener.done() for listener in listeners)
    portal.hold.set()
    heard = await asyncio.gather(*listeners)
    assert all(one == heard[0] for one in heard)  # R002-047
    assert [(event["progress"], event["message"]) for event in heard[0]] == list(
        zip([0, 20, 80, 100], CUT_LINES, strict=True)
    )
    assert await listen() == heard[0]


@pytest.mark.usefixtures("no_patience")
async def test_listeners_of_a_stopped_start_end(app: Any, user: User, portal: Portal) -> None:
    portal.hold = asyncio.Event()
    await spawn(app, user)

    async def listen() -> int:
        return len([event async for event in user.spawner.progress()])

    await until(lambda: told(user))
    listener = asyncio.ensure_future(listen())
    await asyncio.sleep(0)
    await stop(app, user)
    await until(lambda: not user.spawner.active)
    assert await asyncio.wait_for(listener, 5) > 0
    assert portal.labs == {}


async def test_state_survives_and_can_be_cleared(app: Any, user: User, portal: Portal) -> None:
    await running(app, user)
    state = json.loads(json.dumps(user.spawner.get_state()))
    assert state["done"] is True
    assert state["progress"] == 100
    other = user._new_spawner("")
    other.load_state(state)
    assert other.get_state() == user.spawner.get_state()
    portal.silent = True
    assert await other.poll() is None
    other.clear_state()
    assert (other.get_state()["events"], other.get_state()["done"], other.get_state()["status"]) == ([], False, None)


async def test_a_named_server_is_refused(app: Any, user: User, portal: Portal) -> None:
    with mock.patch.dict(app.tornado_settings, {"allow_named_servers": True}):
        answer = await api_request(app, "users", user.name, "servers", "second", method="post")
    assert answer.status_code == 400
    assert "one lab at a time" in answer.json()["message"]
    assert portal.count("POST") == 0  # R002-008


async def test_activity_is_what_was_typed_not_an_open_tab(app: Any, user: User, portal: Portal) -> None:
    await running(app, user)
    spawned = datetime.now(UTC) - timedelta(hours=3)
    user.spawner.orm_spawner.last_activity = spawned.replace(tzinfo=None)

    async def last() -> datetime:
        answer = await api_request(app, "users", user.name)
        return datetime.fromisoformat(answer.json()["servers"][""]["last_activity"])

    assert (await async_requests.get(public_url(app, user))).status_code == 200
    await app.update_last_activity()
    await user.spawner.poll()
    assert await last() == spawned
    typed = spawned + timedelta(hours=1)
    portal.labs[user.name].extra = {"last_activity": typed.isoformat(), "exposed": False}
    await user.spawner.poll()
    assert await last() == typed
    portal.labs[user.name].extra = {"last_activity": None, "exposed": True}
    await user.spawner.poll()
    assert await last() > typed + timedelta(hours=1)


async def test_nublados_dialect(app: Any, user: User, portal: Portal) -> None:
    portal.dialect = user.spawner.dialect = "nublado"  # C41
    await running(app, user)
    assert told(user)[:3] == CUT_LINES[:3]
    assert user.spawner.get_state()["events"][0]["progress"] == 30
    portal.labs[user.name].extra = {"internal_url": portal.url}
    assert (await user.spawner.get_url()) == portal.url + user.spawner.server.base_url
    await stop(app, user)
    await until(lambda: not user.spawner.active)
    assert portal.labs == {}
    lab = portal.begin(user.name, "terminating")
    user.spawner.dialect = "nublado"
    assert await user.spawner.poll() == 0
    lab.status = "failed"
    assert await user.spawner.poll() == 1


async def test_no_lab_ends_on_doubt(app: Any, user: User, portal: Portal) -> None:
    await running(app, user)
    forgot = user._new_spawner("")  # of a hub that left in the middle of a start: a server, but no state
    forgot.load_state({})
    portal.silent = True
    assert await forgot.poll() is None
    other = add_user(app.db, app, name="never-started")
    assert await other.spawner.poll() == 0


async def test_a_hub_that_begins_waits_for_the_portal(app: Any, user: User, portal: Portal) -> None:
    await running(app, user)
    portal.silent = True
    asked = asyncio.ensure_future(user.spawner.get_url())
    await asyncio.sleep(1.2)
    assert not asked.done()
    portal.silent = False
    assert await asked == user.spawner.server.url


async def test_fifty_users_who_stop_and_start(app: Any, portal: Portal) -> None:
    """The labs end, by another program or a hub that was restarted, while their users start new ones."""
    users = [add_user(app.db, app, name=f"learner-{number}") for number in range(50)]
    gone = asyncio.Event()
    for user in users:
        portal.begin(user.name)
        portal.end(user.name, gone.wait())
    starting = asyncio.gather(*(user.spawner.start() for user in users))
    await until(lambda: all(told(user) == [PREVIOUS] for user in users), 60)
    gone.set()
    await starting
    assert portal.creations == len(users)
    assert [portal.labs[user.name].status for user in users] == ["running"] * len(users)

"""What becomes of a call when the LDS, or what lies before it, fails."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from tests.component.lds.conftest import TOKEN, Open, Say, ScriptedLds, given, of_file
from tests.component.lds.test_lds_client import create, session
from vkprovider.labs.lds.client import CALLS, RETRY, LdsClient
from vkprovider.labs.lds.dialect import Full
from vkprovider.labs.lds.grader import Grading, HttpGrader
from vkprovider.labs.pure.topology.devices import DeviceAccessInfo
from vkprovider.labs.settings.services import GraderSettings
from vkprovider.platform.errors import (
    DeadlineExceeded,
    Forbidden,
    Invalid,
    OutsideError,
    Throttled,
    TlsFailed,
    Unauthorized,
    Unavailable,
)
from vkprovider.rest.client import Retry
from vkprovider.rest.dialect import Unsent, may_have_happened

DOWN = Say(503, {"code": "Down", "message": "down for the night"})
NO_KEYS = Say(200, {"version": "1", "extensions": []})

Call = Callable[[LdsClient], Awaitable[object]]
REPEATED: list[tuple[str, str, Call]] = [
    ("create", "POST /sessions", create),
    ("set_devices", "PUT /sessions/s-1/devices", lambda c: c.set_devices("s-1", [])),
    ("archive", "POST /sessions/s-1/archive", lambda c: c.archive_session("s-1")),
    ("get_session_info", "GET /sessions/s-1", lambda c: c.get_session_info("s-1")),
    ("list", "GET /sessions", lambda c: c.list_sessions(owner="us")),
]


@pytest.mark.parametrize(("request_", "call"), [row[1:] for row in REPEATED], ids=[row[0] for row in REPEATED])
async def test_passing_fault_is_outlived(lds: ScriptedLds, client: LdsClient, request_: str, call: Call) -> None:
    good = {"PUT /sessions/s-1/devices": Say(204), "GET /sessions": Say(200, {"sessions": []})}
    lds.say(request_, Say(fault="drop"), DOWN, good.get(request_, Say(200, session())))
    await call(client)
    assert [line.partition("?")[0] for line in lds.lines].count(request_) == 3, "both faults were met"


@pytest.mark.parametrize(("request_", "call"), [row[1:] for row in REPEATED], ids=[row[0] for row in REPEATED])
async def test_lasting_fault_ends_after_a_few_tries(
    lds: ScriptedLds, client: LdsClient, request_: str, call: Call
) -> None:
    lds.say(request_, DOWN)
    with pytest.raises(Unavailable, match="503 Down down for the night"):
        await call(client)
    assert len(lds.asked) == RETRY.attempts_max


async def test_create_that_may_have_happened_once_is_not_made_certain_by_a_later_refusal(
    lds: ScriptedLds, client: LdsClient
) -> None:
    full = Say(503, {"code": "CapacityExhausted", "message": "full"})
    lds.say("POST /sessions", Say(fault="half"), full)
    with pytest.raises(Unavailable) as caught:
        await create(client)
    assert len(lds.asked) == 2
    assert may_have_happened(caught.value)
    lds.say("POST /sessions", full)
    with pytest.raises(Full) as certain:
        await create(client)
    assert not may_have_happened(certain.value)


@pytest.mark.parametrize("fault", [DOWN, Say(fault="drop"), Say(fault="half")], ids=["503", "drop", "half"])
async def test_create_without_client_keys_is_sent_once(lds: ScriptedLds, client: LdsClient, fault: Say) -> None:
    """Whoever sends it twice makes two sessions (R000-110)."""
    lds.say("GET /info", NO_KEYS)
    lds.say("POST /sessions", fault)
    with pytest.raises(Unavailable) as caught:
        await create(client)
    assert may_have_happened(caught.value)
    assert lds.lines == ["GET /info", "POST /sessions"]


async def test_create_is_not_sent_where_the_extensions_cannot_be_learned(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("GET /info", DOWN)
    with pytest.raises(Unavailable):
        await create(client)
    assert set(lds.lines) == {"GET /info"}


async def test_full(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("POST /sessions", Say(503, {"code": "CapacityExhausted", "message": "500 of 500"}))
    with pytest.raises(Full, match="CapacityExhausted 500 of 500") as caught:
        await create(client)
    assert not may_have_happened(caught.value)
    assert len(lds.asked) == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Say(400, {"code": "Invalid", "message": "no"}), Invalid),
        (Say(401, {"code": "NoToken", "message": "no"}), Unauthorized),
        (Say(403, {"code": "NotYours", "message": "no"}), Forbidden),
        (Say(422, {"code": "Invalid", "message": "no"}), Invalid),
        (Say(429, {"code": "TooMany", "message": "no"}, {"Retry-After": "7"}), Throttled),
        (Say(302, b"", {"Location": "https://login.example.com/?from=secret"}, lawful=False), Invalid),
        (Say(404, b"<html>", {"Content-Type": "text/html"}, lawful=False), Unavailable),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Say) else "",
)
async def test_refusal_is_not_repeated(
    lds: ScriptedLds, client: LdsClient, answer: Say, kind: type[OutsideError]
) -> None:
    lds.say("GET /sessions/s-1", answer)
    with pytest.raises(kind) as caught:
        await client.get_session_info("s-1")
    assert type(caught.value) is kind
    assert len(lds.asked) == 1
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"id": 1}', b'{"id": "s"}', b"\xff", b"<html>secret</html>"],
)
async def test_malformed_answer(lds: ScriptedLds, client: LdsClient, body: bytes) -> None:
    lds.say("GET /sessions/s-1", Say(200, body, {"Content-Type": "application/json"}, lawful=False))
    with pytest.raises(Unavailable, match="LDS a: get_session_info brought an answer that is not an LDS's") as caught:
        await client.get_session_info("s-1")
    assert "secret" not in caught.value.message


async def test_page_of_html_with_status_200(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("POST /sessions/s-1/archive", Say(200, b"<html>log in</html>", {"Content-Type": "text/html"}, lawful=False))
    with pytest.raises(Unavailable, match="something other than an LDS"):
        await client.archive_session("s-1")


async def test_half_of_a_list_is_no_list(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("GET /sessions", Say(200, {"sessions": [session()], "next": "2"}), Say(fault="half"))
    with pytest.raises(Unavailable):
        await client.list_sessions(owner="us")


async def test_no_answer_in_time(lds: ScriptedLds, connect: Open) -> None:
    lds.say("PUT /sessions/s-1/devices", Say(fault="hang"))
    with pytest.raises(DeadlineExceeded, match=r"LDS a: set_devices: .* no response within"):
        await connect(timeout_s=0.3).set_devices("s-1", [])


async def test_deadline_covers_all_repetitions(lds: ScriptedLds, connect: Open) -> None:
    lds.say("GET /sessions/s-1", DOWN, Say(fault="hang"))
    began_s = asyncio.get_running_loop().time()
    with pytest.raises(DeadlineExceeded):
        await connect(timeout_s=1.0).get_session_info("s-1")
    waited_s = asyncio.get_running_loop().time() - began_s
    assert len(lds.asked) == 2
    assert waited_s < 5.0 * RETRY.attempts_max  # not once more for each repetition


async def test_no_retry_is_begun_that_could_not_end(lds: ScriptedLds, connect: Open) -> None:
    """The error is the service's, not that the retry came too late."""
    client = connect(retry=Retry(3, first_s=1000.0, cap_s=1000.0))
    lds.say("GET /sessions/s-1", DOWN)
    with pytest.raises(Unavailable, match="503 Down"):
        await client.get_session_info("s-1")
    assert len(lds.asked) == 1


async def test_refused_connection(connect: Open, unused_tcp_port: int) -> None:
    with pytest.raises(Unsent, match=r"LDS a: info: 127\.0\.0\.1:\d+: Connection refused") as caught:
        await create(connect(f"http://127.0.0.1:{unused_tcp_port}"))
    assert not may_have_happened(caught.value)


async def test_cancelled_call_leaves_the_client_usable(lds: ScriptedLds, client: LdsClient) -> None:
    lds.say("GET /sessions/s-1", Say(fault="hang"), Say(200, session()))
    task = asyncio.create_task(client.get_session_info("s-1"))
    await lds.arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await client.get_session_info("s-1")).id == "s-1"


async def test_token_is_read_anew_for_every_request(lds: ScriptedLds, connect: Open) -> None:
    lds.say("GET /sessions/s-1", Say(401, {"code": "NoToken", "message": "no"}), Say(200, session()))
    client = connect(token=given("one", "two"))
    with pytest.raises(Unauthorized, match="check token_file or LDS_API_TOKEN"):
        await client.get_session_info("s-1")
    await client.get_session_info("s-1")
    assert [each.headers["Authorization"] for each in lds.asked] == ["Bearer one", "Bearer two"]


async def test_token_that_cannot_be_read(lds: ScriptedLds, connect: Open, tmp_path: Path) -> None:
    client = connect(token=of_file(tmp_path / "token"))
    with pytest.raises(Unauthorized, match=r"LDS a: the token cannot be read: .*No such file"):
        await create(client)
    assert lds.asked == []


@pytest.mark.parametrize("content", [b"to\nken", b"\xff\xfe"], ids=["line break", "no text"])
async def test_token_that_no_header_may_hold(lds: ScriptedLds, connect: Open, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    client = connect(token=of_file(tmp_path / "token"))
    with pytest.raises(Unauthorized, match="LDS a: the token"):
        await create(client)
    assert lds.asked == []


async def test_secrets_stay_out_of_errors(lds: ScriptedLds, client: LdsClient) -> None:
    """A server that repeats what was sent, as some do with 422."""
    device = DeviceAccessInfo("pc", "ssh", "10.0.1.50", 10012, "ssh://10.0.1.50:10012", "cisco", "geheim")
    echo = {"code": "Invalid", "message": f"bad: password=geheim, header Bearer {TOKEN}"}
    lds.say("PUT /sessions/s-1/devices", Say(422, echo))
    with pytest.raises(Invalid) as caught:
        await client.set_devices("s-1", [device])
    error: BaseException | None = caught.value
    while error is not None:
        assert "geheim" not in repr(error)
        assert TOKEN not in repr(error)
        error = error.__cause__ or error.__context__


def counts() -> dict[tuple[str, ...], int]:
    return {key: histogram.count for key, histogram in CALLS.took_s.items()}


async def test_calls_are_counted_by_what_came_of_them(lds: ScriptedLds, client: LdsClient) -> None:
    before = counts()
    lds.say("GET /sessions/s-1", DOWN, Say(fault="drop"), Say(200, session()))
    lds.say("POST /sessions/s-1/archive", Say(404, {"code": "UnknownSession", "message": "no"}))
    lds.say("POST /sessions", Say(201, session()))
    await create(client)
    await client.get_session_info("s-1")
    await client.archive_session("s-1")
    # aiohttp itself sends a GET again when a connection that was used before is lost; both end in one answer
    seen = {key for key, number in counts().items() if number != before.get(key, 0)}
    assert seen - {("a", "get_session_info", "lost")} == {
        ("a", "info", "200"),
        ("a", "create_session_with_part", "201"),
        ("a", "get_session_info", "503"),
        ("a", "get_session_info", "200"),
        ("a", "archive_session", "404"),
    }


async def test_outcome_of_each_call_is_reported_once(lds: ScriptedLds, connect: Open) -> None:
    reported: list[OutsideError | None] = []
    client = connect(report=reported.append)
    lds.say("GET /sessions/s-1", DOWN, DOWN, DOWN, Say(200, session()), Say(200, b"{", lawful=False))
    with pytest.raises(Unavailable):
        await client.get_session_info("s-1")
    await client.get_session_info("s-1")
    with pytest.raises(Unavailable):
        await client.get_session_info("s-1")
    assert [type(each) for each in reported] == [Unavailable, type(None), Unavailable]


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            Say(401, b"", lawful=False),
            Unauthorized,
            "grader: grade: the token was refused: check VKPROVIDER_GRADER_TOKEN",
        ),
        (Say(404, b"", lawful=False), Unavailable, "something other than a grader: check VKPROVIDER_GRADER_URL"),
        (Say(302, b"", {"Location": "https://x/?secret"}, lawful=False), Invalid, "to https://x/: correct VKPROVIDER"),
        (Say(200, b"{}", lawful=False), Unavailable, "not a grader's"),
        (Say(202, b"", {"Retry-After": "7"}, lawful=False), Throttled, "needs more time"),
    ],
    ids=["401", "404", "302", "200", "202"],
)
async def test_grader_names_its_own_settings(
    lds: ScriptedLds, answer: Say, kind: type[OutsideError], words: str
) -> None:
    lds.say("POST /grade", answer)
    grader = HttpGrader(GraderSettings(url=f"{lds.url}/grade", token="t", timeout_s=5))
    lablet = {"uid": "u", "name": "a", "namespace": "n", "definition": "d", "content_version": "1"}
    with pytest.raises(kind, match=words) as caught:
        await grader.grade(Grading("g", lablet, {}))
    await grader.close()
    assert type(caught.value) is kind
    assert "secret" not in caught.value.message


async def test_grader_that_is_slower_than_the_setting_allows_is_asked_again(lds: ScriptedLds) -> None:
    lds.say("POST /grade", Say(fault="hang"))
    grader = HttpGrader(GraderSettings(url=f"{lds.url}/grade", token="t", timeout_s=0.2))
    lablet = {"uid": "u", "name": "a", "namespace": "n", "definition": "d", "content_version": "1"}
    began_s = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        await grader.grade(Grading("g", lablet, {}))
    assert time.monotonic() - began_s < 3
    await grader.close()


@asynccontextmanager
async def https(authority: trustme.CA, host: str) -> AsyncIterator[str]:
    """An LDS behind TLS with one session."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(session())

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(host).configure_cert(context)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    yield site.name
    await runner.cleanup()


@pytest.mark.parametrize(("host", "trusted"), [("127.0.0.1", True), ("127.0.0.1", False), ("elsewhere", True)])
async def test_certificate(connect: Open, host: str, *, trusted: bool) -> None:
    authority = trustme.CA()
    bundle = authority.cert_pem.bytes().decode()
    options: dict[str, Any] = {"ca_bundle": bundle} if trusted else {}
    async with https(authority, host) as url:
        client = connect(url, **options)
        if trusted and host == "127.0.0.1":
            assert (await client.get_session_info("s-1")).id == "s-1"
        else:
            with pytest.raises(TlsFailed, match="correct ca_file") as caught:
                await client.get_session_info("s-1")
            assert not may_have_happened(caught.value)
        await client.close()

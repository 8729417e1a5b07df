import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from tests.component.cml.conftest import MiniCml, Reply, Secret, drop, reply
from vkprovider.cml.factory import SLOW_MAX, open_session
from vkprovider.cml.spi import Credentials
from vkprovider.cml.worker import CmlLabs
from vkprovider.platform.errors import (
    Conflict,
    DeadlineExceeded,
    Fenced,
    Forbidden,
    InputError,
    Invalid,
    NotFound,
    OutsideError,
    Throttled,
    Unauthorized,
    Unavailable,
)
from vkprovider.platform.reasons import reason_of
from vkprovider.rest.client import ServiceClient
from vkprovider.rest.operations import Operation
from vkprovider.rest.tokens import Holds

PATIENCE_S = 60.0


@pytest.fixture
def secret() -> Secret:
    return Secret()


@pytest.fixture
async def session(mini: MiniCml, secret: Secret) -> AsyncIterator[ServiceClient]:
    opened = open_session(mini.url, secret.read)
    yield opened
    await opened.close()


@pytest.fixture
def labs(session: ServiceClient, mini: MiniCml) -> CmlLabs:
    return CmlLabs(session, mini.url)


@pytest.fixture
async def hasty(mini: MiniCml, secret: Secret) -> AsyncIterator[CmlLabs]:
    """Labs of a session that waits 0.6 s for everything."""
    opened = CmlLabs(open_session(mini.url, secret.read, timeout_s=lambda _: 0.6), mini.url)
    yield opened
    await opened.close()


async def test_the_handshake_needs_no_login(labs: CmlLabs, mini: MiniCml, secret: Secret) -> None:
    assert await labs.version() == "2.9.1+build.7"
    assert (mini.logins, secret.reads) == (0, 0)


async def test_the_handshake_shows_no_token(labs: CmlLabs, mini: MiniCml) -> None:
    """R000-044: it is the only request to CML's system API; whoever asks gets the same answer."""
    shown = []

    async def information(request: web.Request) -> web.StreamResponse:
        shown.append(request.headers.get("Authorization"))
        return web.json_response({"version": "2.10.0", "ready": True})

    mini.replies["/system_information"] = information
    await labs.list_lab_ids()
    assert mini.logins == 1
    assert await labs.version() == "2.10.0"
    assert shown == [None]


async def test_many_requests_share_one_login(labs: CmlLabs, mini: MiniCml) -> None:
    mini.login_delay_s = 0.05
    assert await asyncio.gather(*(labs.list_lab_ids() for _ in range(20))) == [["lab-1"]] * 20
    assert mini.logins == 1


async def test_a_lost_token_is_renewed_once(labs: CmlLabs, mini: MiniCml) -> None:
    await labs.list_lab_ids()
    mini.token = "revoked"
    mini.login_delay_s = 0.05
    assert await asyncio.gather(*(labs.list_lab_ids() for _ in range(20))) == [["lab-1"]] * 20
    assert mini.logins == 2


async def test_a_token_that_is_given_is_used_until_it_is_refused(mini: MiniCml, secret: Secret) -> None:
    """R000-043: a call is bound to an address and a token."""
    mini.token = "from elsewhere"
    session = open_session(mini.url, secret.read, token="from elsewhere")
    labs = CmlLabs(session, mini.url)
    assert await labs.list_lab_ids() == ["lab-1"]
    assert (mini.logins, secret.reads) == (0, 0)
    mini.token = "revoked"
    assert await labs.list_lab_ids() == ["lab-1"]
    assert mini.logins == 1
    await session.close()


async def test_a_late_401_does_not_renew_again(labs: CmlLabs, mini: MiniCml) -> None:
    await labs.list_lab_ids()
    held = asyncio.Event()

    async def late(_: web.Request) -> web.StreamResponse:
        await held.wait()
        del mini.replies["/labs/slow"]
        return web.json_response({"code": 401, "description": "late"}, status=401)

    mini.replies["/labs/slow"] = late
    slow = asyncio.create_task(labs.get_lab("slow"))
    await mini.wait_for("GET /labs/slow")
    mini.token = "revoked"
    await labs.list_lab_ids()
    held.set()
    with pytest.raises(NotFound):
        await slow
    assert mini.logins == 2


async def test_a_changed_password_needs_no_restart(labs: CmlLabs, mini: MiniCml, secret: Secret) -> None:
    await labs.list_lab_ids()
    mini.password = "new"
    mini.token = "revoked"
    secret.password = "new"
    assert await labs.list_lab_ids() == ["lab-1"]


async def test_a_refused_login_waits_until_the_credentials_change(labs: CmlLabs, mini: MiniCml, secret: Secret) -> None:
    secret.password = "hush-hush"
    for _ in range(5):
        with pytest.raises(Unauthorized, match=r"refused the login: .*Secret") as caught:
            await labs.list_lab_ids()
        assert "hush-hush" not in str(caught.value)
    assert mini.logins == 1
    secret.password = "right"
    assert await labs.list_lab_ids() == ["lab-1"]


async def test_a_refused_login_is_shared(labs: CmlLabs, mini: MiniCml, secret: Secret) -> None:
    secret.password = "wrong"
    mini.login_delay_s = 0.05
    found = await asyncio.gather(*(labs.list_lab_ids() for _ in range(10)), return_exceptions=True)
    assert {type(each) for each in found} == {Unauthorized}
    assert mini.logins == 1


async def test_a_refused_login_is_tried_again_after_a_while(mini: MiniCml, secret: Secret) -> None:
    labs = CmlLabs(open_session(mini.url, secret.read, holds=Holds(refused_s=0.0)), mini.url)
    mini.password = "other"
    with pytest.raises(Unauthorized):
        await labs.list_lab_ids()
    mini.password = "right"
    assert await labs.list_lab_ids() == ["lab-1"]
    await labs.close()


async def test_a_token_refused_at_once_does_not_hammer_the_login(labs: CmlLabs, mini: MiniCml) -> None:
    mini.replies["/labs"] = reply(401, '{"code": 401, "description": "no"}')
    for _ in range(5):
        with pytest.raises(Unauthorized):
            await labs.list_lab_ids()
    assert mini.logins == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (reply(429, "<html>slow down</html>", "text/html", Retry_After="7"), Throttled),
        (reply(502, "<html>bad gateway</html>", "text/html"), Unavailable),
        (reply(404, "<html>nginx</html>", "text/html"), Unavailable),
        (reply(404, '{"code": 404, "description": "Lab not found: x"}'), Unavailable),
        (reply(301, "", Location="https://other"), Invalid),
        (reply(200, "<html>welcome</html>", "text/html"), Unavailable),
        (reply(200, "{}"), Unavailable),
    ],
)
async def test_a_failing_login_is_never_a_missing_lab(
    labs: CmlLabs, mini: MiniCml, answer: Reply, error: type[OutsideError]
) -> None:
    mini.replies["/authenticate"] = answer
    for _ in range(3):
        with pytest.raises(OutsideError) as caught:
            await labs.delete_lab("lab-1")
        assert type(caught.value) is error
        assert getattr(caught.value, "after_s", 7.0) == 7.0
    assert mini.count("POST /authenticate") == 1


@pytest.mark.parametrize(
    ("act", "line"),
    [
        (lambda labs: labs.stop_lab("x"), "PUT /labs/x/stop"),
        (lambda labs: labs.import_lab("lab: {}", "t"), "POST /import"),
    ],
    ids=["stop", "import"],
)
async def test_slow_requests_leave_connections_for_probes(
    labs: CmlLabs, mini: MiniCml, act: Callable[[CmlLabs], Awaitable[object]], line: str
) -> None:
    await labs.list_lab_ids()
    mini.replies[line.partition(" ")[2]] = mini.hang
    acts = [asyncio.ensure_future(act(labs)) for _ in range(20)]
    async with asyncio.timeout(PATIENCE_S):
        while mini.count(line) < SLOW_MAX:
            mini.changed.clear()
            await mini.changed.wait()
    assert await asyncio.wait_for(labs.list_lab_ids(), PATIENCE_S) == ["lab-1"]
    assert mini.count(line) == SLOW_MAX
    for task in acts:
        task.cancel()


async def test_files_of_packets_leave_connections_for_all_else(labs: CmlLabs, mini: MiniCml) -> None:
    await labs.list_lab_ids()
    mini.replies["/pcap/k"] = mini.replies["/labs/x/stop"] = mini.hang
    reads = [asyncio.ensure_future(labs.captures.read("k")) for _ in range(20)]
    stops = [asyncio.ensure_future(labs.stop_lab("x")) for _ in range(20)]
    async with asyncio.timeout(PATIENCE_S):
        while mini.count("GET /pcap/k") + mini.count("PUT /labs/x/stop") < SLOW_MAX:
            mini.changed.clear()
            await mini.changed.wait()
    assert await asyncio.wait_for(labs.list_lab_ids(), PATIENCE_S) == ["lab-1"]
    assert (mini.count("GET /pcap/k"), mini.count("PUT /labs/x/stop")) == (2, SLOW_MAX - 2)
    for task in reads + stops:
        task.cancel()


async def test_time_of_a_slow_request_begins_when_it_is_its_turn(mini: MiniCml, secret: Secret) -> None:
    async def slow(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.5)
        return web.json_response("Lab is stopping")

    mini.replies["/labs/lab-1/stop"] = slow
    patient = CmlLabs(open_session(mini.url, secret.read, timeout_s=lambda _: 3.2), mini.url)
    began = time.monotonic()
    await asyncio.gather(*(patient.stop_lab("lab-1") for _ in range(8 * SLOW_MAX)))
    assert time.monotonic() - began > 3.2, "the last ones waited longer than they may take"
    assert mini.count("PUT /labs/lab-1/stop") == 8 * SLOW_MAX
    await patient.close()


async def test_missing_credentials_pass_through(mini: MiniCml) -> None:
    async def read() -> Credentials:
        raise InputError(reason_of("CredentialsMissing"), "Secret w1 has no key password")

    session = open_session(mini.url, read)
    with pytest.raises(InputError, match="CredentialsMissing"):
        await CmlLabs(session, mini.url).list_lab_ids()
    await session.close()


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (reply(404, '{"code": 404, "description": "Lab not found: lab-1"}'), NotFound, "Lab not found"),
        (reply(404, "<html>404</html>", "text/html"), Unavailable, "something other than CML"),
        (reply(404, "{}"), Unavailable, "something other than CML"),
        (reply(404, '{"code": 404, "description": "URL not found on the server"}'), Unavailable, "not about this"),
        (reply(400, '{"code": 400, "description": "Cannot start lab"}'), Invalid, "Cannot start lab"),
        (reply(403, '{"code": 403, "description": "maintenance"}'), Forbidden, "maintenance"),
        (reply(409, '{"code": 409, "description": "busy"}'), Conflict, "busy"),
        (reply(413, "<html>too large</html>", "text/html"), Invalid, "20 MB"),
        (reply(429, "", Retry_After="3"), Throttled, "429"),
        (reply(500, "<html>" + "x" * 5000, "text/html"), Unavailable, "500"),
        (reply(503, '{"code": 503, "description": "soon"}'), Unavailable, "soon"),
        (reply(200, "<html>welcome</html>", "text/html"), Unavailable, "something other than CML"),
        (reply(308, "", Location="https://other/api"), Invalid, "https://other/api"),
        (drop, Unavailable, "connection"),
    ],
)
async def test_answers_become_our_errors(
    labs: CmlLabs, mini: MiniCml, answer: Reply, error: type[OutsideError], words: str
) -> None:
    mini.replies["/labs/lab-1/start"] = answer
    with pytest.raises(OutsideError, match=words) as caught:
        await labs.start_lab("lab-1")
    assert type(caught.value) is error
    assert len(str(caught.value)) <= 256


@pytest.mark.parametrize("body", ["", "null", "[1]", '{"labs": []}', '["a"', "<html>"])
async def test_an_unreadable_list_is_never_empty(labs: CmlLabs, mini: MiniCml, body: str) -> None:
    mini.replies["/labs"] = reply(200, body)
    with pytest.raises(Unavailable, match="not CML's"):
        await labs.list_lab_ids()


async def test_silence_meets_the_deadline(hasty: CmlLabs, mini: MiniCml) -> None:
    mini.replies["/labs"] = mini.hang
    with pytest.raises(DeadlineExceeded, match="GET /labs"):
        await hasty.list_lab_ids()


async def test_a_silent_login_meets_the_deadline(hasty: CmlLabs, mini: MiniCml) -> None:
    mini.replies["/authenticate"] = mini.hang
    with pytest.raises(DeadlineExceeded):
        await hasty.list_lab_ids()


async def test_a_trickling_answer_meets_the_deadline(hasty: CmlLabs, mini: MiniCml) -> None:
    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while not mini.silent.is_set():
            await response.write(b" ")
            await asyncio.sleep(0.02)
        return response

    mini.replies["/labs"] = trickle
    with pytest.raises(DeadlineExceeded):
        await hasty.list_lab_ids()


async def test_a_refused_connection_is_unavailable(secret: Secret, unused_tcp_port: int) -> None:
    session = open_session(f"http://127.0.0.1:{unused_tcp_port}", secret.read)
    with pytest.raises(Unavailable, match=str(unused_tcp_port)):
        await CmlLabs(session, "http://127.0.0.1").version()
    await session.close()


async def test_an_import_is_sent_once(labs: CmlLabs, mini: MiniCml) -> None:
    await labs.list_lab_ids()
    mini.replies["/import"] = drop
    with pytest.raises(Unavailable):
        await labs.import_lab("lab: {}", "t")
    assert mini.count("POST /import") == 1
    del mini.replies["/import"]
    assert (await labs.import_lab("lab: {}", "t")).id == "lab-2"


async def test_a_cancelled_caller_leaves_the_login_to_others(labs: CmlLabs, mini: MiniCml) -> None:
    mini.login_delay_s = 0.05
    first = asyncio.create_task(labs.list_lab_ids())
    second = asyncio.create_task(labs.list_lab_ids())
    await mini.wait_for("POST /authenticate")
    first.cancel()
    assert await second == ["lab-1"]
    assert mini.logins == 1


async def test_closing_ends_a_login_without_cancelling_its_waiters(
    labs: CmlLabs, session: ServiceClient, mini: MiniCml
) -> None:
    mini.replies["/authenticate"] = mini.hang
    waiting = asyncio.create_task(labs.list_lab_ids())
    await mini.wait_for("POST /authenticate")
    await session.close()
    with pytest.raises(Unavailable, match="closed"):
        await waiting
    with pytest.raises(Unavailable, match="closed"):
        await labs.version()


async def test_r000_044_no_other_path_leaves(session: ServiceClient, mini: MiniCml) -> None:
    await CmlLabs(session, mini.url).list_lab_ids()
    before = list(mini.seen)
    for method, path in [
        ("GET", "/system_stats"),
        ("GET", "/users"),
        ("GET", "/labs/../users"),
        ("DELETE", "/labs"),
        ("PUT", "/labs/x/y"),
        ("PUT", "/licensing/product_license"),
        ("PATCH", "/labs/x/nodes/y"),
        ("PUT", "/labs/x/nodes/y/state/extract"),
        ("GET", "/labs/x/nodes/y/keys/other"),
    ]:
        with pytest.raises(Invalid, match="allow-list"):
            await session.send(Operation("any", method, path, 10.0).to())
    assert mini.seen == before


async def test_a_fenced_replica_sends_nothing(mini: MiniCml, secret: Secret) -> None:
    fenced = False

    def guard() -> None:
        if fenced:
            raise Fenced("ownership lost")

    session = open_session(mini.url, secret.read, guard=guard)
    labs = CmlLabs(session, mini.url)
    await labs.list_lab_ids()
    before = list(mini.seen)
    fenced = True
    for call in (labs.list_lab_ids(), labs.delete_lab("x"), labs.import_lab("lab: {}", "t")):
        with pytest.raises(Fenced):
            await call
    assert mini.seen == before
    fenced = False
    assert await labs.list_lab_ids() == ["lab-1"]
    await session.close()

"""The receiver of events over loopback: who may send, how much, and what is answered (C11)."""

import asyncio
import hashlib
import hmac
import io
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from cloudevents.core.bindings import http
from cloudevents.core.v1.event import CloudEvent
from structlog.testing import capture_logs

from tests.support.bombs import BOMBS, Bomb, thrown
from vkprovider.labs.http import events
from vkprovider.labs.http.events import Receiver
from vkprovider.labs.pure.session.inbox import EventOutcome, SessionEvent

SECRETS = (("", "old-secret"), ("", "new-secret"), ("lds-a", "secret-of-a"))
BEARER = {"Authorization": "Bearer new-secret"}
STRUCTURED = {"Content-Type": "application/cloudevents+json"}
BATCH = {"Content-Type": "application/cloudevents-batch+json"}


def event(session: str = "s-1", id_: str = "e-1", type_: str = "session.started") -> dict[str, Any]:
    return {"specversion": "1.0", "id": id_, "source": "https://lds", "type": type_, "subject": session}


@dataclass
class Board:
    """Takes events as an inbox does, as far as a sender sees it."""

    outcomes: dict[str, EventOutcome] = field(default_factory=dict)
    taken: list[SessionEvent] = field(default_factory=list)
    url: str = ""
    time_s: float = 1e9

    async def accept(self, said: SessionEvent) -> EventOutcome:
        self.taken.append(said)
        return self.outcomes.get(said.session, EventOutcome.ACCEPTED)


@pytest.fixture
async def board(request: pytest.FixtureRequest) -> AsyncIterator[Board]:
    board = Board()
    receiver = Receiver(board.accept, getattr(request, "param", SECRETS), wall=lambda: board.time_s)
    app = web.Application()
    app.router.add_post("/events", receiver.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    board.url = f"http://127.0.0.1:{runner.addresses[0][1]}/events"
    yield board
    await runner.cleanup()


async def post(board: Board, body: object, headers: dict[str, str]) -> tuple[int, dict[str, Any], dict[str, str]]:
    data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
    async with aiohttp.ClientSession() as session, session.post(board.url, data=data, headers=headers) as answer:
        return answer.status, await answer.json(), dict(answer.headers)


@pytest.mark.parametrize("write", [http.to_structured_event, http.to_binary_event])
async def test_events_of_the_specifications_client_are_taken(board: Board, write: Any) -> None:
    attributes = {"id": "e-1", "source": "https://lds", "type": "session.ended", "datacontenttype": "application/json"}
    message = write(CloudEvent(attributes, {"lds_session_id": "s-1"}))
    status, answer, _ = await post(board, message.body, message.headers | BEARER)
    assert (status, answer) == (202, {"outcome": "accepted"})
    [said] = board.taken
    assert (said.session, said.kind, said.key) == ("s-1", "ended", ("", "https://lds", "e-1"))


async def test_secret_of_a_deployment_speaks_for_its_sessions_alone(board: Board) -> None:
    body = json.dumps(event()).encode()
    signed = {"X-Hub-Signature-256": "sha256=" + hmac.new(b"secret-of-a", body, hashlib.sha256).hexdigest()}
    assert (await post(board, body, STRUCTURED | signed))[0] == 202
    assert (await post(board, event(), STRUCTURED | {"Authorization": "Bearer secret-of-a"}))[0] == 202
    assert (await post(board, [event(), event()], BATCH | {"Authorization": "Bearer secret-of-a"}))[0] == 202
    assert (await post(board, event(), STRUCTURED | BEARER))[0] == 202
    assert [said.deployment for said in board.taken] == ["lds-a"] * 4 + [""]
    assert (await post(board, event(), STRUCTURED | {"Authorization": "Bearer lds-a:secret-of-a"}))[0] == 401


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (EventOutcome.ACCEPTED, 202),
        (EventOutcome.DUPLICATE, 202),
        (EventOutcome.STRAY, 202),
        (EventOutcome.UNKNOWN_SESSION, 503),
        (EventOutcome.FULL, 503),
        (EventOutcome.FAILED, 503),
    ],
)
async def test_sender_learns_whether_to_come_again(board: Board, outcome: EventOutcome, status: int) -> None:
    board.outcomes["s-1"] = outcome
    code, answer, headers = await post(board, event(), STRUCTURED | BEARER)
    assert (code, answer["outcome"]) == (status, outcome.value)
    assert ("Retry-After" in headers) == (status == 503)


async def test_other_types_are_no_fault_of_the_sender(board: Board) -> None:
    assert (await post(board, event(type_="session.paused"), STRUCTURED | BEARER))[:2] == (202, {"outcome": "ignored"})
    assert board.taken == []


async def test_batch_is_answered_for_all_its_events(board: Board) -> None:
    board.outcomes["s-2"] = EventOutcome.UNKNOWN_SESSION
    wrong = {"specversion": "1.0"}
    status, answer, _ = await post(board, [event("s-1"), wrong, event("s-2"), event("s-3")], BATCH | BEARER)
    assert status == 503
    assert answer["outcomes"][0] == answer["outcomes"][3] == "accepted"
    assert "id" in answer["outcomes"][1]
    assert answer["outcomes"][2] == "unknown-session"
    board.outcomes.clear()
    status, answer, _ = await post(board, [event("s-1"), wrong], BATCH | BEARER)
    assert (status, answer["reason"]) == (400, "EventInvalid")
    assert [said.session for said in board.taken] == ["s-1", "s-2", "s-3", "s-1"]
    assert (await post(board, [], BATCH | BEARER))[:2] == (202, {"outcomes": []})


def signed(body: bytes, secret: str) -> dict[str, str]:
    return {events.SIGNATURE: "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


@pytest.mark.parametrize("secret", [secret for _, secret in SECRETS])
async def test_any_secret_is_good_as_token_and_as_key(board: Board, secret: str) -> None:
    body = json.dumps(event()).encode()
    assert (await post(board, body, STRUCTURED | {"Authorization": f"bearer {secret}"}))[0] == 202
    assert (await post(board, body, STRUCTURED | signed(body, secret)))[0] == 202
    batch = b"[" + body + b"]"
    assert (await post(board, batch, BATCH | signed(batch, secret)))[0] == 202


async def test_refusals_are_logged_once_in_a_while_by_reason(board: Board) -> None:
    with capture_logs() as logs:
        for _ in range(5):
            assert (await post(board, event(), STRUCTURED | {"Authorization": "Bearer wrong"}))[0] == 401
        assert (await post(board, b"{", STRUCTURED | BEARER))[0] == 400
        board.time_s += 60
        assert (await post(board, event(), STRUCTURED | {"Authorization": "Bearer wrong"}))[0] == 401
    found = [(line["reason"], line["total"]) for line in logs if line["event"] == "events refused"]
    assert found == [("SecretWrong", 1), ("EventInvalid", 1), ("SecretWrong", 6)]


async def test_who_knows_no_secret_is_refused(board: Board) -> None:
    body = json.dumps(event()).encode()
    binary = {f"ce-{key}": value for key, value in event().items()}
    for headers, reason in (
        (STRUCTURED, "SecretMissing"),
        ({}, "SecretMissing"),
        (STRUCTURED | {"Authorization": "Bearer new-secre"}, "SecretWrong"),
        (STRUCTURED | {"Authorization": "Basic new-secret"}, "SecretMissing"),
        (STRUCTURED | {"Authorization": "Bearer x"} | signed(body, "old-secret"), "SecretWrong"),
        (STRUCTURED | signed(body, "guess"), "SignatureWrong"),
        (STRUCTURED | signed(body + b" ", "old-secret"), "SignatureWrong"),
        (STRUCTURED | {events.SIGNATURE: "sha256="}, "SignatureWrong"),
        (binary | signed(body, "old-secret"), "SignatureInsufficient"),
    ):
        status, answer, got = await post(board, body, headers)
        assert (status, answer["reason"]) == (401, reason), headers
        assert got["WWW-Authenticate"].startswith("Bearer")
        assert "secret" not in answer["message"].replace("the events' secret", "")
    assert board.taken == []


@pytest.mark.parametrize("board", [()], indirect=True)
async def test_without_a_secret_nobody_may_send(board: Board) -> None:
    status, answer, _ = await post(board, event(), STRUCTURED | BEARER)
    assert (status, answer["reason"]) == (403, "EventsDisabled")
    assert "VKPROVIDER_EVENTS_SECRET" in answer["message"]


CLOUDEVENT = b"Content-Type: application/cloudevents+json"


async def raw(board: Board, *headers: bytes, body: bytes = b"") -> bytes:
    """The first line of the answer to a request whose body need not come, with headers of any bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(board.url.rsplit(":", 1)[1].partition("/")[0]))
    lines = [b"POST /events HTTP/1.1", b"Host: x", *headers]
    writer.write(b"\r\n".join([*lines, b"", body]))
    async with asyncio.timeout(10):
        line = await reader.readline()
    writer.close()
    return line


@pytest.mark.parametrize("header", [b"Authorization: Bearer \xff\xfe", b"X-Hub-Signature-256: sha256=\xe9"])
async def test_headers_of_any_bytes_are_refused(board: Board, header: bytes) -> None:
    body = json.dumps(event()).encode()
    assert b" 401 " in await raw(board, CLOUDEVENT, header, b"Content-Length: %d" % len(body), body=body)
    assert board.taken == []


@pytest.mark.parametrize(
    ("board", "headers", "status"),
    [
        ((), (CLOUDEVENT, b"X-Hub-Signature-256: x"), b" 403 "),
        (SECRETS, (b"X-Hub-Signature-256: x", b"ce-specversion: 1.0", b"ce-id: 1"), b" 401 "),
    ],
    indirect=["board"],
)
async def test_nothing_is_read_for_a_signature_that_cannot_count(
    board: Board, headers: tuple[bytes, ...], status: bytes
) -> None:
    assert status in await raw(board, *headers, b"Content-Length: 1000000")


async def test_too_much_is_refused_before_it_is_read(board: Board) -> None:
    large = b" " * (events.BODY_BYTES_MAX + 1)
    status, answer, _ = await post(board, large, STRUCTURED | BEARER)
    assert (status, answer["reason"]) == (413, "EventTooLarge")

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * (1 << 17)
            await asyncio.sleep(0)

    async with (
        aiohttp.ClientSession() as session,
        session.post(board.url, data=endless(), headers=STRUCTURED | BEARER) as answered,
    ):
        assert (answered.status, (await answered.json())["reason"]) == (413, "EventTooLarge")


@pytest.mark.parametrize(
    ("body", "headers", "status", "reason"),
    [
        (b"{", STRUCTURED, 400, "EventInvalid"),
        (b"{}", STRUCTURED, 400, "EventInvalid"),
        (b"{}", BATCH, 400, "EventInvalid"),
        (json.dumps(event(session="")).encode(), STRUCTURED, 400, "EventInvalid"),
        (b"{}", {"Content-Type": "application/json"}, 415, "MediaTypeUnsupported"),
        (b"{}", {"Content-Type": "application/cloudevents+avro"}, 415, "MediaTypeUnsupported"),
    ],
)
async def test_what_is_wrong_is_said(
    board: Board, body: bytes, headers: dict[str, str], status: int, reason: str
) -> None:
    code, answer, _ = await post(board, body, headers | BEARER)
    assert (code, answer["code"], answer["reason"]) == (status, status, reason)
    assert answer["message"]


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name)
@pytest.mark.parametrize("said", [(), (b"X-Hub-Signature-256: sha256=" + b"0" * 64,), (b"ce-specversion: 1.0",)])
async def test_a_stranger_s_bomb_costs_nothing(board: Board, bomb: Bomb, said: tuple[bytes, ...]) -> None:
    """Nothing is read of what is no event, and of a signed one no more than a megabyte."""
    began = time.process_time()
    assert await thrown(board.url, bomb, *said) in {400, 401, 413, 415}
    assert time.process_time() - began < 0.05
    assert board.taken == []


@pytest.mark.parametrize("kind", [b"application/cloudevents+json", b"application/cloudevents-batch+json"])
async def test_an_event_without_an_end_is_cut_at_the_limit(board: Board, kind: bytes) -> None:
    [endless] = [bomb for bomb in BOMBS if bomb.name == "endless chunks"]
    event = endless._replace(headers=(b"Content-Type: " + kind, b"Transfer-Encoding: chunked"))
    began = time.process_time()
    assert await thrown(board.url, event, b"X-Hub-Signature-256: sha256=" + b"0" * 64) == 413
    assert time.process_time() - began < 0.05

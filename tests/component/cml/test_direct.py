"""The direct transport itself, beyond the contract of all transports (`tests/component/tunnels`)."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.component.cml.conftest import MiniCml, reply
from tunnels import direct
from tunnels.base import AllowList, ConnectFailed, ConnectionLost, DeadlineExceeded, RequestRefused, Transport
from tunnels.direct import DirectTransport

ALLOW = AllowList([(method, "/x") for method in ("GET", "POST", "PUT")])


class LostError(Exception):
    """What a guard raises here."""


@pytest.fixture
async def transport(mini: MiniCml) -> AsyncIterator[Transport]:
    mini.replies["/x"] = reply(200, '"x"', Retry_After="3", X_Other="y")
    opened = DirectTransport(mini.url, allow=ALLOW, connections_max=2)
    yield opened
    await opened.close()


async def test_what_is_not_allowed_opens_no_connection(unused_tcp_port: int) -> None:
    transport = DirectTransport(f"http://127.0.0.1:{unused_tcp_port}", allow=ALLOW)
    with pytest.raises(RequestRefused):
        await transport.request("GET", "/y", deadline_s=5)
    with pytest.raises(ConnectFailed):
        await transport.request("GET", "/x", deadline_s=5)
    await transport.close()


async def test_an_unknown_host(mini: MiniCml) -> None:
    transport = DirectTransport(mini.url.replace("127.0.0.1", "nowhere.invalid"), allow=ALLOW)
    with pytest.raises(ConnectFailed, match=r"nowhere\.invalid"):
        await transport.request("GET", "/x", deadline_s=5)
    await transport.close()


async def test_the_deadline_covers_waiting_for_a_connection(transport: Transport, mini: MiniCml) -> None:
    mini.replies["/x"] = mini.hang
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(transport.request("GET", "/x", deadline_s=60))
        while mini.count("GET /x") < 2:
            await mini.wait_for("GET /x")
            await asyncio.sleep(0)
        found = await asyncio.gather(
            *(transport.request("GET", "/x", deadline_s=0.2) for _ in range(3)), return_exceptions=True
        )
        mini.silent.set()
    assert {type(each) for each in found} == {DeadlineExceeded}
    assert mini.count("GET /x") == 2


async def test_who_waits_longest_is_next(transport: Transport, mini: MiniCml) -> None:
    async def again_and_again() -> None:
        for _ in range(20):
            await transport.request("GET", "/x", deadline_s=60)

    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(again_and_again())
        group.create_task(transport.request("POST", "/x", deadline_s=60))
    assert mini.seen.index("POST /x") <= 3


async def test_an_endless_answer_ends(transport: Transport, mini: MiniCml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "BODY_BYTES_MAX", 1000)
    mini.replies["/x"] = reply(200, "x" * 2000)
    with pytest.raises(ConnectionLost, match="longer than"):
        await transport.request("GET", "/x", deadline_s=5)


@pytest.mark.parametrize("body", [None, b"body"])
@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
async def test_ownership_lost_while_connecting_stops_the_request(
    mini: MiniCml, method: str, body: bytes | None
) -> None:
    mini.replies["/x"] = reply(200)
    lost = asyncio.Event()

    def guard() -> None:
        if lost.is_set():
            raise LostError

    transport = DirectTransport(mini.url, allow=ALLOW, guard=guard)
    request = asyncio.create_task(transport.request(method, "/x", body=body, deadline_s=5))
    asyncio.get_running_loop().call_soon(lost.set)  # after the first step of the request, which begins to connect
    with pytest.raises(LostError):
        await request
    assert mini.seen == []
    lost.clear()
    assert (await transport.request(method, "/x", body=body, deadline_s=5)).status == 200
    lost.set()
    with pytest.raises(LostError):
        await transport.request(method, "/x", body=body, deadline_s=5)
    assert len(mini.seen) == 1
    await transport.close()


async def test_a_body_is_guarded_when_it_is_written(mini: MiniCml) -> None:
    """A body may leave a step later than the request was begun: it is asked about again."""
    mini.replies["/x"] = reply(200)
    calls = 0

    def guard() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise LostError

    transport = DirectTransport(mini.url, allow=ALLOW, guard=guard)
    with pytest.raises(LostError):
        await transport.request("POST", "/x", body=b"body", deadline_s=5)
    assert mini.seen == []
    assert (await transport.request("POST", "/x", body=b"body", deadline_s=5)).status == 200
    await transport.close()

"""What every `Transport` promises, whichever way it reaches the server. R004-040."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping

import pytest
import trustme
from aiohttp import web

from tests.component.cml.conftest import MiniCml, drop, reply, serving
from tests.component.tunnels.conftest import Opener
from tests.support.mosquitto import free_port
from tunnels.base import CertificateInvalid, ConnectFailed, ConnectionLost, DeadlineExceeded, RequestRefused, Transport
from tunnels.wire import PIECE_BYTES


class LostError(Exception):
    """What a guard raises here."""


@pytest.fixture
async def transport(opener: Opener, mini: MiniCml) -> AsyncIterator[Transport]:
    mini.replies["/x"] = reply(200, '"x"', Retry_After="3", X_Other="y")
    async with opener(mini.url) as opened:
        yield opened


@pytest.mark.parametrize("status", [200, 204, 302, 401, 404, 429, 500, 503])
async def test_every_status_is_an_answer(transport: Transport, mini: MiniCml, status: int) -> None:
    mini.replies["/x"] = reply(status, "" if status == 204 else "said", Location="/y")
    response = await transport.request("GET", "/x", deadline_s=30)
    assert (response.status, response.body) == (status, b"" if status == 204 else b"said")
    assert mini.seen == ["GET /x"]


async def test_few_headers_come_back_in_lower_case(transport: Transport) -> None:
    response = await transport.request("GET", "/x", deadline_s=30)
    assert response.headers["retry-after"] == "3"
    assert set(response.headers) == {"retry-after", "content-type", "date"}


async def test_query_body_and_headers_arrive(transport: Transport, mini: MiniCml) -> None:
    arrived: list[tuple[Mapping[str, str], bytes, str | None, str | None]] = []

    async def note(request: web.Request) -> web.StreamResponse:
        headers = request.headers
        arrived.append((request.query, await request.read(), headers.get("Authorization"), headers.get("Content-Type")))
        return web.Response()

    mini.replies["/x"] = note
    params, headers = {"a": "ä &"}, {"Authorization": "Bearer t"}
    await transport.request("POST", "/x", params=params, body="ü".encode(), headers=headers, deadline_s=30)
    await transport.request("POST", "/x", body=b"{}", headers={"Content-Type": "application/json"}, deadline_s=30)
    assert arrived == [({"a": "ä &"}, "ü".encode(), "Bearer t", None), ({}, b"{}", None, "application/json")]


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 900_000])
async def test_a_body_of_any_length_arrives_whole(transport: Transport, mini: MiniCml, size: int) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        return web.Response(body=await request.read())

    mini.replies["/x"] = echo
    body = bytes(number % 251 for number in range(size))
    response = await transport.request("PUT", "/x", body=body, deadline_s=60)
    assert response.body == body


async def test_each_of_many_requests_gets_its_own_answer(transport: Transport, mini: MiniCml) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        return web.Response(text=request.query["n"])

    mini.replies["/x"] = echo
    found = await asyncio.gather(
        *(transport.request("GET", "/x", params={"n": str(number)}, deadline_s=60) for number in range(60))
    )
    assert [response.body for response in found] == [str(number).encode() for number in range(60)]


async def test_what_is_not_allowed_is_not_sent(transport: Transport, mini: MiniCml) -> None:
    with pytest.raises(RequestRefused):
        await transport.request("GET", "/y", deadline_s=30)
    with pytest.raises(RequestRefused):
        await transport.request("DELETE", "/x", deadline_s=30)
    assert mini.seen == []


async def test_a_hanging_server_costs_the_deadline_and_nobody_else(transport: Transport, mini: MiniCml) -> None:
    async def some_hang(request: web.Request) -> web.StreamResponse:
        return await mini.hang(request) if request.query else web.Response()

    mini.replies["/x"] = some_hang
    assert (await transport.request("GET", "/x", deadline_s=30)).status == 200, "the way there is open"
    hanging = [asyncio.ensure_future(transport.request("GET", "/x", params={"a": "b"}, deadline_s=4)) for _ in range(5)]
    assert (await transport.request("GET", "/x", deadline_s=30)).status == 200
    found = await asyncio.gather(*hanging, return_exceptions=True)
    assert {type(each) for each in found} == {DeadlineExceeded}, "each has reached the server"
    assert mini.count("GET /x") == 7


async def test_no_server_there(opener: Opener) -> None:
    async with opener(f"http://127.0.0.1:{free_port()}") as transport:
        with pytest.raises(ConnectFailed, match="Connection refused"):
            await transport.request("POST", "/x", deadline_s=30)


async def test_a_server_that_hangs_up(transport: Transport, mini: MiniCml) -> None:
    mini.replies["/x"] = drop
    with pytest.raises(ConnectionLost):
        await transport.request("POST", "/x", body=b"x", deadline_s=30)
    assert mini.count("POST /x") == 1


async def test_a_truncated_answer_is_not_an_answer(transport: Transport, mini: MiniCml) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return response

    mini.replies["/x"] = cut
    with pytest.raises(ConnectionLost):
        await transport.request("GET", "/x", deadline_s=30)


async def test_a_certificate_that_nobody_knows(opener: Opener) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    async with serving(MiniCml(), context) as mini, opener(mini.url) as transport:
        with pytest.raises(CertificateInvalid) as caught:
            await transport.request("GET", "/x", deadline_s=30)
        assert caught.value.fault == "untrusted"
        assert mini.seen == []


async def test_a_guard_stops_a_request(opener: Opener, mini: MiniCml) -> None:
    lost = asyncio.Event()

    def guard() -> None:
        if lost.is_set():
            raise LostError

    mini.replies["/x"] = reply(200)
    async with opener(mini.url, guard=guard) as transport:
        assert (await transport.request("POST", "/x", body=b"x", deadline_s=30)).status == 200
        lost.set()
        with pytest.raises(LostError):
            await transport.request("POST", "/x", body=b"x", deadline_s=30)
        assert mini.count("POST /x") == 1


async def test_a_cancelled_request_leaves_the_transport_usable(transport: Transport, mini: MiniCml) -> None:
    async def some_hang(request: web.Request) -> web.StreamResponse:
        return await mini.hang(request) if request.query else web.Response()

    mini.replies["/x"] = some_hang
    hanging = asyncio.ensure_future(transport.request("GET", "/x", params={"a": "b"}, deadline_s=60))
    await mini.wait_for("GET /x")
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    assert (await transport.request("GET", "/x", deadline_s=30)).status == 200


async def test_a_closed_transport_says_so(transport: Transport) -> None:
    await transport.close()
    with pytest.raises(ConnectFailed, match="closed"):
        await transport.request("GET", "/x", deadline_s=30)

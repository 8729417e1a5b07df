"""Agents that dial callers: callers that come, go and restart, wrong tokens, lost connections, what cannot be read."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from typing import cast

import aiohttp
import pytest
import trustme
import uvloop
from aiohttp import web

from tests.component.cml.conftest import MiniCml, reply
from tests.component.tunnels.conftest import ALLOW
from tests.component.tunnels.test_mqtt import Consoles
from tests.support.mosquitto import free_port
from tests.support.tunnels import eventually, running
from tests.support.websockets import TOKEN, Balancer, Caller, dialing_agent, started
from tunnels import wire
from tunnels.base import AllowList, ConnectFailed, StaleEpoch
from tunnels.direct import DirectTransport
from tunnels.link.carrier import Address
from tunnels.link.hub import TunnelTransport
from tunnels.protocol.presence import AgentState
from tunnels.websocket import listening
from tunnels.websocket.dialing import DialCredentials, Dialing
from tunnels.websocket.listening import SOCKETS_OF_A_NAME_MAX
from tunnels.websocket.socket import MESSAGE_BYTES_MAX, PATH, PING_S, QUEUE_BYTES_MAX, Socket
from tunnels.wire import FRAME_BYTES_MAX

HELLO = wire.Hello(1, 60_000)


@pytest.fixture
async def direct(mini: MiniCml) -> AsyncIterator[DirectTransport]:
    mini.replies["/x"] = reply(200, "x")
    transport = DirectTransport(mini.url, allow=ALLOW)
    yield transport
    await transport.close()


@contextlib.asynccontextmanager
async def raw(caller: Caller, agent: str = "w1/raw") -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A WebSocket to a caller, on which a test says what it likes; the welcome was read."""
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session,
        session.ws_connect(caller.url + PATH, params={"agent": agent}) as websocket,
    ):
        await websocket.receive_str(timeout=30)
        yield websocket


def transport_of(websocket: aiohttp.ClientWebSocketResponse) -> asyncio.Transport:
    connection = websocket._response.connection
    assert connection is not None
    return cast("asyncio.Transport", connection.transport)  # uvloop's is not a subclass


def pair(*names: str, own_urls: bool = True) -> tuple[dict[str, Caller], set[str]]:
    """Return callers that name all of a set, which a test may change; it holds all of them."""
    there = set(names)
    callers: dict[str, Caller] = {}

    def known() -> dict[str, str]:
        return {name: callers[name].url if own_urls else "" for name in there}

    callers.update({name: Caller(name, known) for name in names})
    return callers, there


def state(caller: Caller, name: str = "w1") -> AgentState:
    return caller.hub.view(name).state


@pytest.mark.parametrize("own_urls", [True, False])
async def test_every_caller_has_a_websocket_of_its_own(direct: DirectTransport, *, own_urls: bool) -> None:
    """One address suffices: that of a caller that names the others, or of a proxy that leads to any of them."""
    callers, _ = pair("a", "b", "c", own_urls=own_urls)
    balancer = Balancer(lambda: [caller.port for caller in callers.values()])
    agent, carrier = dialing_agent([callers["a"].url if own_urls else balancer.url], direct, allow=ALLOW)
    async with started(*callers.values()), running(balancer.run, agent.run):
        await eventually(lambda: carrier.reached == {"a", "b", "c"})
        for caller in callers.values():
            await caller.heard.until(lambda caller=caller: state(caller) is AgentState.THERE)  # type: ignore[misc]
            assert (await caller.transport(ALLOW).request("GET", "/x", deadline_s=30)).status == 200
        if own_urls:
            assert [len(caller.tokens) for caller in callers.values()] == [1, 1, 1]


async def test_a_restarted_caller_is_dialled_again_and_no_command_is_doubled(
    mini: MiniCml, direct: DirectTransport
) -> None:
    executed: list[str] = []

    async def slowly(request: web.Request) -> web.StreamResponse:
        executed.append(request.query["n"])
        await asyncio.sleep(0.1)
        return web.Response(text=request.query["n"])

    mini.replies["/x"] = slowly
    callers, _ = pair("a", "b")
    agent, _ = dialing_agent([callers["a"].url], direct, allow=ALLOW)
    async with started(*callers.values()), running(agent.run):
        b = callers["b"]
        await b.heard.until(lambda: b.heard.views)
        transport = b.transport(ALLOW)
        asked = [
            asyncio.ensure_future(transport.request("POST", "/x", params={"n": str(number)}, deadline_s=90))
            for number in range(40)
        ]
        await eventually(lambda: len(executed) >= 10)
        await callers["a"].stop()
        await callers["a"].start()
        for guest in list(b.listening._guests):
            await guest.socket._websocket.close()  # a lost connection, under way
        answers = await asyncio.gather(*asked)
        await callers["a"].heard.until(lambda: callers["a"].heard.views)
    assert [answer.body for answer in answers] == [str(number).encode() for number in range(40)]
    assert sorted(map(int, executed)) == list(range(40))


async def test_another_caller_takes_over_without_help(direct: DirectTransport, mini: MiniCml) -> None:
    callers, there = pair("a", "b")
    agent, carrier = dialing_agent([callers["a"].url], direct, allow=ALLOW)
    async with started(*callers.values()), running(agent.run):
        await eventually(lambda: carrier.reached == {"a", "b"})
        await callers["b"].heard.until(lambda: callers["b"].heard.views)
        old, new = callers["a"].transport(ALLOW, epoch=1), callers["b"].transport(ALLOW, epoch=2)
        assert (await old.request("POST", "/x", deadline_s=30)).status == 200
        assert (await new.request("POST", "/x", deadline_s=30)).status == 200
        with pytest.raises(StaleEpoch):
            await old.request("POST", "/x", deadline_s=30)
        there.discard("a")
        await callers["a"].stop()
        assert (await new.request("POST", "/x", deadline_s=30)).status == 200
    assert mini.count("POST /x") == 3


async def test_callers_that_come_and_go_are_dialled_and_dropped(direct: DirectTransport) -> None:
    callers, there = pair("a", "b")
    there.discard("b")
    agent, carrier = dialing_agent([callers["a"].url], direct, allow=ALLOW)
    async with started(callers["a"]), running(agent.run):
        await eventually(lambda: carrier.reached == {"a"})
        async with started(callers["b"]):
            there.add("b")
            await eventually(lambda: carrier.reached == {"a", "b"})
            await callers["b"].heard.until(lambda: callers["b"].heard.views)
        await eventually(lambda: callers["b"].url in carrier._targets)
        there.discard("b")
        await eventually(lambda: not carrier._targets)
        assert carrier.reached == {"a"}


async def test_the_last_known_callers_are_dialled_when_all_are_gone(direct: DirectTransport) -> None:
    callers, _ = pair("a", "b")
    agent, carrier = dialing_agent([callers["a"].url], direct, allow=ALLOW)
    async with running(agent.run):
        async with started(*callers.values()):
            await eventually(lambda: carrier.reached == {"a", "b"})
        await eventually(lambda: not carrier.reached)
        async with started(callers["b"]):  # the agent was not given its address
            await eventually(lambda: carrier.reached == {"b"})


async def test_a_wrong_token_is_named_and_nobody_else_is_disturbed(
    direct: DirectTransport, caplog: pytest.LogCaptureFixture
) -> None:
    caller = Caller()
    agent, _ = dialing_agent([caller.url], direct, allow=ALLOW)
    stranger, refused = dialing_agent([caller.url], direct, allow=ALLOW, name="w2", token="guessed")
    async with started(caller), running(agent.run, stranger.run):
        await caller.heard.until(lambda: caller.heard.views)
        await eventually(lambda: caller.tokens.count("Bearer guessed") >= 2)
        assert (await caller.transport(ALLOW).request("GET", "/x", deadline_s=30)).status == 200
        assert refused.reached == frozenset()
        with pytest.raises(ConnectFailed, match="w2: no agent was there"):
            await caller.transport(ALLOW, "w2").request("GET", "/x", deadline_s=0.5)
    said = [line for line in caplog.messages if "is refused (401)" in line]
    assert len(said) == 1
    assert "guessed" not in said[0]


async def test_what_cannot_be_read_is_counted_and_disturbs_nobody(
    direct: DirectTransport, caplog: pytest.LogCaptureFixture
) -> None:
    caller = Caller()
    agent, _ = dialing_agent([caller.url], direct, allow=ALLOW)
    async with started(caller), running(agent.run):
        await caller.heard.until(lambda: caller.heard.views)
        async with raw(caller, "w2/bad") as bad:
            for frame in (b"", b"\x09", b"\x01nonsense", bytes(FRAME_BYTES_MAX + 1)):
                await bad.send_bytes(frame)
            await bad.send_str("a text")
            await eventually(lambda: caller.hub.counts["refused"] == 5)
            assert not bad.closed
            await bad.send_bytes(bytes(MESSAGE_BYTES_MAX))
            assert (await bad.receive(timeout=30)).type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}
            assert bad.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG
        assert (await caller.transport(ALLOW).request("GET", "/x", deadline_s=30)).status == 200
        assert state(caller) is AgentState.THERE
    assert sum("a frame of 'w2/bad' is refused" in line for line in caplog.messages) == 1


async def test_an_agent_refuses_what_a_caller_may_not_say(direct: DirectTransport) -> None:
    caller = Caller()
    agent, _ = dialing_agent([caller.url], direct, allow=ALLOW)
    async with started(caller), running(agent.run):
        await caller.heard.until(lambda: caller.heard.views)
        peer = f"w1/{caller.hub.view('w1').boot}"
        for frame in (b"", b"\x01nonsense", wire.encode(HELLO), bytes(FRAME_BYTES_MAX + 1)):
            assert caller.listening.send(peer, frame)
        await eventually(lambda: agent.counts["malformed"] == 4)
        assert caller.listening.send(peer, bytes(MESSAGE_BYTES_MAX))  # the WebSocket ends, and is opened again
        await eventually(lambda: len(caller.tokens) >= 2)
        assert (await caller.transport(ALLOW).request("GET", "/x", deadline_s=30)).status == 200


async def test_goodbye_loss_and_return(direct: DirectTransport) -> None:
    caller = Caller()
    async with started(caller):
        first, _ = dialing_agent([caller.url], direct, allow=ALLOW)
        async with running(first.run):
            await caller.heard.until(lambda: state(caller) is AgentState.THERE)
        await caller.heard.until(lambda: state(caller) is AgentState.LEFT)
        assert caller.hub.view("w1").reason == "shut down"
        async with raw(caller) as lost:
            await lost.send_bytes(wire.encode(HELLO))
            await caller.heard.until(lambda: state(caller) is AgentState.THERE)
            transport_of(lost).abort()
            await caller.heard.until(lambda: state(caller) is AgentState.LEFT)
        assert caller.hub.view("w1").reason == "its connection was lost"
        again, _ = dialing_agent([caller.url], direct, allow=ALLOW)
        async with running(again.run):
            await caller.heard.until(lambda: state(caller) is AgentState.THERE)


async def test_an_agent_that_dials_again_replaces_its_dead_websocket() -> None:
    """A caller may not know yet that the first one is dead; a second one counts when the agent says hello on it."""
    caller = Caller()
    async with started(caller), raw(caller) as first:
        await first.send_bytes(wire.encode(HELLO))
        await caller.heard.until(lambda: caller.heard.views)
        async with raw(caller) as second:
            assert caller.listening.send("w1/raw", b"for the first")
            assert await first.receive_bytes(timeout=30) == b"for the first"
            await second.send_bytes(wire.encode(HELLO))
            assert (await first.receive(timeout=30)).type is aiohttp.WSMsgType.CLOSE
            assert caller.listening.send("w1/raw", b"for the second")
            assert await second.receive_bytes(timeout=30) == b"for the second"
            assert state(caller) is AgentState.THERE


async def test_two_agents_of_one_name(direct: DirectTransport) -> None:
    caller = Caller()
    first, _ = dialing_agent([caller.url], direct, allow=ALLOW)
    second, _ = dialing_agent([caller.url], direct, allow=ALLOW)
    async with started(caller), running(first.run):
        await caller.heard.until(lambda: caller.heard.views)
        boot = caller.hub.view("w1").boot
        async with running(second.run):
            await eventually(lambda: second.counts["name_taken"])
            view = caller.hub.view("w1")
            assert (view.boot, view.rival != "") == (boot, True)
            assert (await caller.transport(ALLOW).request("GET", "/x", deadline_s=30)).status == 200
            assert second.counts["relayed"] == 0
        await caller.heard.until(lambda: caller.hub.view("w1").rival == "")


async def test_an_agent_has_few_websockets() -> None:
    caller = Caller()
    async with started(caller), contextlib.AsyncExitStack() as stack:
        for number in range(SOCKETS_OF_A_NAME_MAX):
            await stack.enter_async_context(raw(caller, f"w1/{number}"))
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await stack.enter_async_context(raw(caller, "w1/more"))
        assert caught.value.status == 503
        await stack.enter_async_context(raw(caller, "w2/other"))


async def test_a_websocket_without_a_hello_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "KEPT_S", 0.2)
    caller = Caller()
    async with started(caller), raw(caller) as idle:
        assert (await idle.receive(timeout=30)).type is aiohttp.WSMsgType.CLOSE
        assert state(caller) is AgentState.UNKNOWN
        assert caller.hub.counts["disconnected"] == 0


async def test_a_ping_of_a_peer_that_is_gone_ends_the_websocket() -> None:
    ended: list[str] = []

    async def handle(request: web.Request) -> web.WebSocketResponse:
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        assert request.transport is not None
        ended.append(await Socket(websocket).run(lambda _: request.transport.abort()))  # type: ignore[union-attr]
        return websocket

    app = web.Application()
    app.router.add_get("/", handle)
    runner, port = web.AppRunner(app), free_port()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    async with aiohttp.ClientSession() as session, session.ws_connect(f"http://127.0.0.1:{port}/") as websocket:
        await websocket.send_bytes(b"the last word")
        await websocket.ping()  # before the other end reads: it meets both at once, and the transport closed
        assert (await websocket.receive(timeout=30)).type is aiohttp.WSMsgType.CLOSED
        await eventually(lambda: ended)
    await runner.cleanup()
    assert "closing transport" in ended[0]


async def test_a_peer_that_does_not_read_costs_a_bounded_queue(direct: DirectTransport) -> None:
    caller = Caller()
    agent, _ = dialing_agent([caller.url], direct, allow=ALLOW)
    async with started(caller), running(agent.run), raw(caller, "w2/slow") as slow:
        await slow.send_bytes(wire.encode(HELLO))
        await caller.heard.until(lambda: {name for name, _ in caller.heard.views} == {"w1", "w2"})
        transport = transport_of(slow)
        transport.pause_reading()
        frame, sent = bytes(FRAME_BYTES_MAX), 0
        while caller.listening.send("w2/slow", frame):
            sent += 1
            await asyncio.sleep(0)
        assert sent * FRAME_BYTES_MAX < 2 * QUEUE_BYTES_MAX, "the operating system's buffers hold the rest"
        assert (await caller.transport(ALLOW).request("GET", "/x", deadline_s=30)).status == 200
        transport.abort()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_peer_that_does_not_read_does_not_hold_up_the_end(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """It is cut off after a moment, long before its pings fail."""

    async def whole() -> None:
        caller = Caller()
        async with started(caller), raw(caller, "w1/deaf") as deaf:
            await deaf.send_bytes(wire.encode(HELLO))
            await eventually(lambda: state(caller) is AgentState.THERE)
            transport = transport_of(deaf)
            transport.pause_reading()
            while caller.listening.send("w1/deaf", bytes(FRAME_BYTES_MAX)):  # noqa: ASYNC110 (nothing says when it is full)
                await asyncio.sleep(0)
            assert caller._running is not None
            caller._running.cancel()
            await eventually(lambda: not caller.listening._guests, PING_S / 2)
            await asyncio.wait([caller._running])
            assert caller._running.cancelled()
            transport.abort()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(whole())


async def test_a_console_survives_lost_websockets(direct: DirectTransport) -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.upper())
        writer.close()

    console = await asyncio.start_server(shout, "127.0.0.1", 0, limit=2**20)
    allow = AllowList([("OPEN", "/console/{device}")])
    caller = Caller()
    consoles = Consoles(console.sockets[0].getsockname()[1])
    agent, _ = dialing_agent([caller.url], direct, allow=allow, streams=consoles)
    async with console, started(caller), running(agent.run):
        await caller.heard.until(lambda: caller.heard.views)
        transport = TunnelTransport(caller.hub, "w1", allow=allow, epoch=lambda: 1)
        stream = await transport.open_stream("/console/r1", params={"line": "0"}, deadline_s=30)
        said = b"".join(b"line %d of the console\n" % number for number in range(150_000))
        writing = asyncio.ensure_future(stream.write(said))
        got, lost = b"", 0
        while len(got) < len(said):
            got += await asyncio.wait_for(stream.read(), 60)
            if len(got) > len(said) * (lost + 1) // 4 and caller.listening._guests:
                lost += 1
                await next(iter(caller.listening._guests)).socket._websocket.close()
        assert got == said.upper()
        assert lost >= 2
        await writing
        await stream.close()


async def test_certificates_are_verified(direct: DirectTransport, caplog: pytest.LogCaptureFixture) -> None:
    authority, foreign = trustme.CA(), trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    trusting, wary = ssl.create_default_context(), ssl.create_default_context()
    authority.configure_trust(trusting)
    foreign.configure_trust(wary)
    caller = Caller(tls=server)
    agent, _ = dialing_agent([caller.url], direct, allow=ALLOW, tls=trusting)
    other, unreached = dialing_agent([caller.url], direct, allow=ALLOW, name="w2", tls=wary)
    async with started(caller), running(agent.run, other.run):
        await caller.heard.until(lambda: caller.heard.views)
        body = bytes(300_000)
        assert (await caller.transport(ALLOW).request("POST", "/x", body=body, deadline_s=60)).status == 200
        await eventually(lambda: any("certificate cannot be trusted" in line for line in caplog.messages))
        assert unreached.reached == frozenset()
    assert caller.tokens == [f"Bearer {TOKEN}"]


async def test_why_an_address_leads_nowhere_is_said_in_words(
    mini: MiniCml, direct: DirectTransport, caplog: pytest.LogCaptureFixture
) -> None:
    """Each with what helps; none as the error of a library."""
    server, wary = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    trustme.CA().issue_cert("127.0.0.1").configure_cert(server)
    encrypted, plain, closed = Caller(tls=server), Caller(), free_port()
    async with started(encrypted, plain):
        urls = {
            plain.url.replace("http:", "https:"): "it answers without TLS: give it a certificate",
            encrypted.url.replace("https:", "http:"): "if it serves TLS, dial https://",
            encrypted.url: "its certificate cannot be trusted (unable to get local issuer certificate): put",
            f"https://127.0.0.1:{closed}": "Connection refused",
            mini.url: "the agent's token or certificate is refused (401)",
            "https://no-such-host.invalid": "no-such-host.invalid",
        }
        dialling = [dialing_agent([url], direct, allow=ALLOW, name=f"w{n}", tls=wary)[0] for n, url in enumerate(urls)]
        async with running(*(agent.run for agent in dialling)):
            for url, said in urls.items():
                await eventually(
                    lambda url=url, said=said: any(f"{url}: " in line and said in line for line in caplog.messages)  # type: ignore[misc]
                )
    assert not [line for line in caplog.messages if "SSLContext" in line or "_ssl.c" in line]


async def test_a_caller_to_which_no_address_leads_is_named(
    direct: DirectTransport, caplog: pytest.LogCaptureFixture
) -> None:
    """A proxy that always leads to the same one."""
    callers, _ = pair("a", "b", own_urls=False)
    agent, carrier = dialing_agent([callers["a"].url], direct, allow=ALLOW)
    async with started(*callers.values()), running(agent.run):
        await eventually(lambda: any("leads to a each time, and never to b" in line for line in caplog.messages))
        assert carrier.reached == {"a"}


async def test_a_token_goes_to_no_address_in_plain_text_unless_the_first_one_is_so(direct: DirectTransport) -> None:
    authority = trustme.CA()
    server, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(trusting)
    plain = Caller("plain")
    there = {"plain": plain.url}
    encrypted = Caller("encrypted", lambda: there, tls=server)
    third = Caller("third", tls=server)
    there |= {"encrypted": encrypted.url}
    agent, carrier = dialing_agent([encrypted.url], direct, allow=ALLOW, tls=trusting)
    async with started(plain, encrypted, third), running(agent.run):
        await eventually(lambda: carrier.reached == {"encrypted"})
        there["third"] = third.url
        await eventually(lambda: carrier.reached == {"encrypted", "third"})
        await eventually(lambda: len(encrypted.tokens) > 1)  # it looks for the missing one there
        assert plain.tokens == []


@pytest.mark.parametrize("answer", ["nothing", "not a welcome", "no websocket"])
async def test_what_is_not_a_caller_is_named(
    unused_tcp_port: int, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        if answer == "no websocket":
            return web.Response()
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        if answer == "not a welcome":
            await websocket.send_str('{"caller": "a b"}')
        await websocket.close()
        return websocket

    app = web.Application()
    app.router.add_get(PATH, handle)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    carrier = Dialing([f"http://127.0.0.1:{unused_tcp_port}"], Address("w1", "a"), DialCredentials)
    said = "no caller accepts it (200)" if answer == "no websocket" else "what answers is not a caller"
    with caplog.at_level(logging.WARNING, "tunnels"):
        async with running(lambda: carrier.run(Deaf())):
            await eventually(lambda: any(said in line for line in caplog.messages))
    await runner.cleanup()


async def test_a_host_that_has_no_name_is_named(caplog: pytest.LogCaptureFixture) -> None:
    carrier = Dialing(["http://a..b", "http://127.0.0.1:99999"], Address("w1", "a"), DialCredentials)
    async with running(lambda: carrier.run(Deaf())):
        for url in ("http://a..b: ", "http://127.0.0.1:99999: "):
            await eventually(lambda url=url: any(f"tunnel: {url}" in line for line in caplog.messages))  # type: ignore[misc]


class Deaf:
    """An inbox of nobody."""

    def received(self, peer: str, frame: bytes) -> None: ...

    def connected(self, peer: str) -> None: ...

    def disconnected(self, peer: str) -> None: ...

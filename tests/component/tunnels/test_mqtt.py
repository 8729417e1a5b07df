"""Callers and agents over a real broker: restarts, rights, lost connections, two agents of one name."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from tests.component.cml.conftest import MiniCml, reply
from tests.component.tunnels.conftest import ALLOW
from tests.support.mosquitto import CALLER, PASSWORD, Mosquitto
from tests.support.tunnels import TOPICS, Heard, Version, agent_over, broker, eventually, hub_over, running
from tunnels import wire
from tunnels.agent.core import Agent, new_boot
from tunnels.base import (
    AllowList,
    ByteChannel,
    ConnectFailed,
    ConnectionLost,
    RequestRefused,
    Response,
    StaleEpoch,
    TransportError,
)
from tunnels.direct import DirectTransport
from tunnels.link.carrier import ALL, Address
from tunnels.link.hub import Hub, TunnelTransport
from tunnels.mqtt.broker import Broker
from tunnels.mqtt.carrier import AgentSide, CallerSide, MqttCarrier
from tunnels.protocol.presence import AgentState
from tunnels.wire import FRAME_BYTES_MAX
from vkprovider.carriers.broker import broker_of
from vkprovider.carriers.settings import MqttSettings


@pytest.fixture
async def direct(mini: MiniCml) -> AsyncIterator[DirectTransport]:
    mini.replies["/x"] = reply(200, "x")
    transport = DirectTransport(mini.url, allow=ALLOW)
    yield transport
    await transport.close()


def caller_of(hub: Hub, name: str = "w1", epoch: int = 1) -> TunnelTransport:
    return TunnelTransport(hub, name, allow=ALLOW, epoch=lambda: epoch)


def count(mini: MiniCml, method: str) -> int:
    return mini.count(f"{method} /x")


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_a_restarted_broker_loses_and_doubles_no_command(
    mosquitto: Mosquitto, mini: MiniCml, direct: DirectTransport, version: Version, *, persistent: bool, kill: bool
) -> None:
    if persistent:
        await mosquitto.stop()
        mosquitto.persistent = True
        await mosquitto.start()
    executed: list[str] = []

    async def slowly(request: web.Request) -> web.StreamResponse:
        executed.append(request.query["n"])
        await asyncio.sleep(0.2)
        return web.Response(text=request.query["n"])

    mini.replies["/x"] = slowly
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER, version=version), heard)
    agent = agent_over(broker(mosquitto, "w1", version=version), direct, allow=ALLOW)
    transport = caller_of(hub)
    async with running(hub.run, agent.run):
        await heard.until(lambda: heard.views)
        asked = [
            asyncio.ensure_future(transport.request("POST", "/x", params={"n": str(number)}, deadline_s=90))
            for number in range(40)
        ]
        await eventually(lambda: len(executed) >= 10)
        await mosquitto.stop(kill=kill)
        asked += [
            asyncio.ensure_future(transport.request("POST", "/x", params={"n": str(number)}, deadline_s=90))
            for number in range(40, 60)
        ]
        await mosquitto.start()
        answers = await asyncio.gather(*asked)
    assert [answer.body for answer in answers] == [str(number).encode() for number in range(60)]
    assert sorted(map(int, executed)) == list(range(60))


async def test_nothing_is_retained_or_kept_for_later(mosquitto: Mosquitto, direct: DirectTransport) -> None:
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    agent = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
    async with running(hub.run, agent.run):
        await heard.until(lambda: heard.views)
        await caller_of(hub).request("POST", "/x", deadline_s=30)
    got: list[str] = []
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id="looks")
    client.username_pw_set(CALLER, PASSWORD)
    client.on_message = lambda _c, _d, message: got.append(message.topic)

    def subscribed(*_: object) -> None:
        loop.call_soon_threadsafe(done.set)

    client.on_subscribe = subscribed
    await asyncio.to_thread(client.connect, "127.0.0.1", mosquitto.port)
    client.loop_start()
    client.subscribe("#", qos=1)
    await asyncio.wait_for(done.wait(), 30)
    await asyncio.sleep(0.5)  # what is retained comes right after the acknowledgement
    client.disconnect()
    await asyncio.to_thread(client.loop_stop)
    assert got == []


async def test_wrong_credentials_are_named_and_nobody_else_is_disturbed(
    mosquitto: Mosquitto, direct: DirectTransport
) -> None:
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    agent = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
    stranger = MqttCarrier(
        broker(mosquitto, "w2", password="guessed"),
        AgentSide(TOPICS, Address("w2", new_boot())),
    )
    async with running(hub.run, agent.run, lambda: stranger.run(hub)):
        await heard.until(lambda: heard.views)
        await eventually(lambda: "Not authorized" in stranger.trouble)
        assert "the broker refuses agent-w2-" in stranger.trouble
        assert PASSWORD not in stranger.trouble
        assert "guessed" not in stranger.trouble
        assert (await caller_of(hub).request("GET", "/x", deadline_s=30)).status == 200
        with pytest.raises(ConnectFailed, match="w2: no agent was there"):
            await caller_of(hub, "w2").request("GET", "/x", deadline_s=0.5)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_an_agent_reaches_its_own_topics_only(
    mosquitto: Mosquitto, direct: DirectTransport, version: Version
) -> None:
    """The agent of w2 poses as w1: the broker passes none of its messages on, and shows it none of w1's."""
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER, version=version), heard)
    agent = agent_over(broker(mosquitto, "w1", version=version), direct, allow=ALLOW)
    spied: list[tuple[str, bytes]] = []

    class Spy:
        def received(self, peer: str, frame: bytes) -> None:
            spied.append((peer, frame))

        def connected(self, peer: str) -> None:
            assert peer == ALL

        def disconnected(self, peer: str) -> None:
            assert peer == ALL

    posing = MqttCarrier(broker(mosquitto, "w2", version=version), AgentSide(TOPICS, Address("w1", "posing")))

    class Listens(AgentSide):
        """Subscribes to everything that w1 is told."""

        def client(self) -> Any:
            own = super().client()
            return type(own)(f"{own.identity}-listens", (f"{TOPICS.prefix}/w1/down/+/+", f"{TOPICS.prefix}/#"))

    listening = MqttCarrier(broker(mosquitto, "w2", version=version), Listens(TOPICS, Address("w2", "listening")))
    async with running(hub.run, agent.run, lambda: posing.run(Spy()), lambda: listening.run(Spy())):
        await heard.until(lambda: heard.views)
        await eventually(lambda: posing.counts["connects"])
        await eventually(lambda: listening.counts["connects"])
        boot = hub.view("w1").boot
        assert posing.send(ALL, wire.encode(wire.Hello(1, 1000)))
        assert posing.send(ALL, wire.encode(wire.Goodbye("posing")))
        if version == "5":
            await eventually(lambda: posing.counts["refused"] >= 2)
        assert (await caller_of(hub).request("POST", "/x", deadline_s=30)).status == 200
        assert {peer for peer, _ in spied} <= {ALL}, "only probes, which are for all"
        view = hub.view("w1")
        assert (view.state, view.boot, view.rival) == (AgentState.THERE, boot, "")
        assert hub.counts["refused"] == 0


async def test_what_cannot_be_read_is_counted_and_disturbs_nobody(
    mosquitto: Mosquitto, direct: DirectTransport, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    agent = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
    bad = MqttCarrier(broker(mosquitto, "w2"), AgentSide(TOPICS, Address("w2", "bad")))
    caller = MqttCarrier(broker(mosquitto, CALLER), CallerSide(TOPICS, "bad"))
    async with running(hub.run, agent.run, lambda: bad.run(Heardless()), lambda: caller.run(Heardless())):
        await heard.until(lambda: heard.views)
        await eventually(lambda: bad.counts["connects"])
        await eventually(lambda: caller.counts["connects"])
        for frame in (b"", b"\x09", b"\x01nonsense", bytes(FRAME_BYTES_MAX + 1)):
            assert bad.send(ALL, frame)
            assert caller.send(f"w1/{hub.view('w1').boot}", frame)
        await eventually(lambda: hub.counts["refused"] >= 4)
        await eventually(lambda: agent.counts["malformed"] >= 4)
        assert (await caller_of(hub).request("GET", "/x", deadline_s=30)).status == 200
    assert sum("w2/bad" in line for line in caplog.messages) == 1
    assert sum("'bad' is refused" in line for line in caplog.messages) == 1


class Heardless:
    """An inbox of nobody."""

    def received(self, peer: str, frame: bytes) -> None: ...

    def connected(self, peer: str) -> None: ...

    def disconnected(self, peer: str) -> None: ...


async def test_a_replayed_request_is_not_executed_again(
    mosquitto: Mosquitto, mini: MiniCml, direct: DirectTransport
) -> None:
    """Whoever holds a caller's credentials and repeats what it saw gets the answer, and no second execution."""
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    agent = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
    got: list[wire.AgentMessage] = []

    class Keeps(Heardless):
        def received(self, peer: str, frame: bytes) -> None:
            assert peer.startswith("w1/")
            got.append(wire.from_agent(frame))

    other = MqttCarrier(broker(mosquitto, CALLER), CallerSide(TOPICS, "other"))
    async with running(hub.run, agent.run, lambda: other.run(Keeps())):
        await heard.until(lambda: heard.views)
        await eventually(lambda: other.counts["connects"])
        now_ms = int(asyncio.get_running_loop().time() * 1000)  # the agent's clock: it runs in this process
        request = wire.Request("op-1", 1, now_ms + 60_000, "POST", "/x")
        for _ in range(5):
            assert other.send(f"w1/{hub.view('w1').boot}", wire.encode(request))
        late = wire.Request("op-2", 1, now_ms - 1, "POST", "/x")
        assert other.send(f"w1/{hub.view('w1').boot}", wire.encode(late))
        await eventually(lambda: any(isinstance(message, wire.Refusal) for message in got))
        await heard.until(lambda: count(mini, "POST"))
        await eventually(lambda: any(isinstance(message, wire.Response) for message in got))
    assert count(mini, "POST") == 1
    assert [message.code for message in got if isinstance(message, wire.Refusal)] == ["expired"]


async def test_the_agent_checks_its_own_list(
    mosquitto: Mosquitto, mini: MiniCml, direct: DirectTransport, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    agent = agent_over(broker(mosquitto, "w1"), direct, allow=AllowList([("GET", "/x"), ("PUT", "/x")]))
    async with running(hub.run, agent.run):
        await heard.until(lambda: heard.views)
        with pytest.raises(RequestRefused, match="the agent's allow-list"):
            await caller_of(hub).request("POST", "/x", deadline_s=30)
        with pytest.raises(RequestRefused, match="without an epoch"):
            await caller_of(hub, epoch=0).request("PUT", "/x", deadline_s=30)
        assert (await caller_of(hub, epoch=0).request("GET", "/x", deadline_s=30)).status == 200
    assert mini.seen == ["GET /x"]
    assert agent.refused.keys() == {"not-allowed"}, "one may have been repeated"
    assert len([line for line in caplog.messages if "is refused (not-allowed)" in line]) == 1


async def test_a_former_owner_is_refused_even_by_a_restarted_agent(
    mosquitto: Mosquitto, mini: MiniCml, direct: DirectTransport, tmp_path: Path
) -> None:
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    old, new = caller_of(hub, epoch=4), caller_of(hub, epoch=5)
    async with running(hub.run):
        for _ in range(2):
            agent = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW, epochs=tmp_path / "epoch")
            before = hub.view("w1").boot
            async with running(agent.run):
                await heard.until(lambda before=before: hub.view("w1").boot != before)  # type: ignore[misc]
                if count(mini, "POST") == 0:
                    await old.request("POST", "/x", deadline_s=30)
                    await new.request("POST", "/x", deadline_s=30)
                with pytest.raises(StaleEpoch, match="epoch 4 is over"):
                    await old.request("POST", "/x", deadline_s=30)
    assert count(mini, "POST") == 2


async def test_goodbye_last_will_and_return(mosquitto: Mosquitto, direct: DirectTransport) -> None:
    """R004-049: offline is heard at once, whether the agent says so or the broker does."""
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    async with running(hub.run):
        async with running(agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW, facts=b"{1}").run):
            await heard.until(lambda: hub.view("w1").state is AgentState.THERE)
            assert (hub.view("w1").facts, hub.view("w1").version) == (b"{1}", "1.0")
        await heard.until(lambda: hub.view("w1").state is AgentState.LEFT)
        assert hub.view("w1").reason == "shut down"
        with pytest.raises(ConnectFailed, match="shut down"):
            await caller_of(hub).request("GET", "/x", deadline_s=30)
        async with killed(mosquitto, direct) as dies:
            await heard.until(lambda: hub.view("w1").state is AgentState.THERE)
            dies()
            await heard.until(lambda: hub.view("w1").state is AgentState.LEFT)
            assert "lost" in hub.view("w1").reason
        async with running(agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW, facts=b"{2}").run):
            await heard.until(lambda: hub.view("w1").state is AgentState.THERE)
            assert hub.view("w1").facts == b"{2}"
            assert (await caller_of(hub).request("GET", "/x", deadline_s=30)).status == 200


@contextlib.asynccontextmanager
async def killed(mosquitto: Mosquitto, direct: DirectTransport) -> AsyncIterator[Any]:
    """An agent whose socket closes without a word, as a killed process's does."""
    agent = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
    task = asyncio.ensure_future(agent.run())

    def dies() -> None:
        connection = agent._carrier._connection  # type: ignore[attr-defined]
        connection._drop()
        task.cancel()

    yield dies
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_of_two_agents_of_one_name_the_second_is_refused(mosquitto: Mosquitto, direct: DirectTransport) -> None:
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    first = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
    second = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
    async with running(hub.run, first.run):
        await heard.until(lambda: hub.view("w1").boot)
        boot = hub.view("w1").boot
        async with running(second.run):
            await eventually(lambda: second.counts["name_taken"])
            view = hub.view("w1")
            assert (view.boot, view.rival != "") == (boot, True)
            assert (await caller_of(hub).request("GET", "/x", deadline_s=30)).status == 200
            assert second.counts["relayed"] == 0
        await heard.until(lambda: hub.view("w1").rival == "")
    assert first.counts["name_taken"] == 0


async def test_events_reach_the_owner_and_lost_ones_are_noticed(mosquitto: Mosquitto, direct: DirectTransport) -> None:
    heard, bystander = Heard(), Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    other = hub_over(broker(mosquitto, CALLER), bystander, "replica-1")
    agent = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
    async with running(hub.run, other.run, agent.run):
        await heard.until(lambda: heard.views)
        await bystander.until(lambda: bystander.views)
        agent.push("early", b"")  # there is no owner yet
        await heard.until(lambda: heard.events.count(("w1", "", b"", True)) > 1)  # the first came with the hello
        await caller_of(hub).request("POST", "/x", deadline_s=30)
        heard.events.clear()
        agent.push("lab", b"one")
        agent.push("lab", b"two")
        await heard.until(lambda: len(heard.events) >= 2)
        assert heard.events == [("w1", "lab", b"one", False), ("w1", "lab", b"two", False)]
        await mosquitto.stop()
        agent.push("lab", b"lost")
        await mosquitto.start()
        await heard.until(lambda: ("w1", "", b"", True) in heard.events)
    assert all(kind == "" for _, kind, _, _ in bystander.events), "an event is for the owner"


async def test_tls_is_verified_on_both_sides(mosquitto: Mosquitto, direct: DirectTransport) -> None:
    authority, foreign = trustme.CA(), trustme.CA()
    folder = mosquitto.folder
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "broker.pem")
    for name, by in ((CALLER, authority), ("w1", authority), ("w2", foreign)):
        by.issue_cert(common_name=name).private_key_and_cert_chain_pem.write_to_path(folder / f"{name}.pem")
    await mosquitto.stop()
    mosquitto.lines = (
        f"cafile {folder}/ca.pem",
        f"certfile {folder}/broker.pem",
        f"keyfile {folder}/broker.pem",
        "require_certificate true",
        "use_identity_as_username true",
    )
    mosquitto.by_certificate = True
    await mosquitto.start()
    foreign.cert_pem.write_to_path(folder / "foreign.pem")

    def secured(user: str, ca: str = "ca") -> Broker:
        ca_file, own = str(folder / f"{ca}.pem"), str(folder / f"{user}.pem")
        return Broker("127.0.0.1", mosquitto.port, ca_file=ca_file, certificate_file=own)

    heard = Heard()
    hub = hub_over(secured(CALLER), heard)
    agent = agent_over(secured("w1"), direct, allow=ALLOW)
    stranger = MqttCarrier(secured("w2"), AgentSide(TOPICS, Address("w2", "stranger")))
    trusts_others = MqttCarrier(secured("w1", "foreign"), AgentSide(TOPICS, Address("w1", "x")))
    async with running(hub.run, agent.run, lambda: stranger.run(Heardless()), lambda: trusts_others.run(Heardless())):
        await heard.until(lambda: heard.views)
        assert (await caller_of(hub).request("POST", "/x", body=bytes(300_000), deadline_s=60)).status == 200
        await eventually(lambda: "certificate cannot be trusted" in trusts_others.trouble)
        await eventually(lambda: "not connected" not in stranger.trouble)
    assert stranger.counts["connects"] == trusts_others.counts["connects"] == 0


async def test_a_changed_password_needs_no_restart(mosquitto: Mosquitto, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("the-former-one")
    given = {"url": f"mqtt://127.0.0.1:{mosquitto.port}", "username": CALLER, "password_file": str(file)}
    hub = hub_over(broker_of(MqttSettings.model_validate(given)), Heard())
    carrier = hub._carrier
    assert isinstance(carrier, MqttCarrier)
    async with running(hub.run):
        await eventually(lambda: "refuses" in carrier.trouble)
        file.write_text(PASSWORD)
        await eventually(lambda: carrier.counts["connects"])


async def test_a_broker_that_is_not_there_is_named(unused_tcp_port: int) -> None:
    nowhere = Broker("127.0.0.1", unused_tcp_port, tls=False)
    hub = hub_over(nowhere, Heard())
    carrier = hub._carrier
    assert isinstance(carrier, MqttCarrier)
    async with running(hub.run):
        with pytest.raises(ConnectFailed, match="no agent was there"):
            await caller_of(hub).request("GET", "/x", deadline_s=1)
    assert carrier.trouble == f"127.0.0.1:{unused_tcp_port}: Connection refused"
    assert carrier.counts["dropped"] == 0


async def test_a_restarted_agent_in_the_middle_of_a_command(
    mosquitto: Mosquitto, mini: MiniCml, direct: DirectTransport
) -> None:
    """A read is asked again; of a command nobody knows whether it was carried out, whatever its method."""
    mini.replies["/x"] = mini.hang
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    transport = caller_of(hub)

    async def outcome(method: str) -> Response | TransportError:
        try:
            return await transport.request(method, "/x", deadline_s=90)
        except TransportError as error:
            return error

    async with running(hub.run):
        async with running(agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW).run):
            await heard.until(lambda: heard.views)
            asked = [asyncio.ensure_future(outcome(method)) for method in ("GET", "POST", "PUT")]
            await mini.wait_for("GET /x")
            await mini.wait_for("POST /x")
            await mini.wait_for("PUT /x")
        mini.replies["/x"] = reply(200, "again")
        agent: Agent = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
        async with running(agent.run):
            found = await asyncio.gather(*asked)
    assert isinstance(found[0], Response)
    assert found[0].body == b"again"
    assert [type(each) for each in found[1:]] == [ConnectionLost] * 2
    assert (count(mini, "GET"), count(mini, "POST"), count(mini, "PUT")) == (2, 1, 1)


async def test_an_agent_finishes_the_commands_that_it_has_begun_and_begins_no_other(
    mosquitto: Mosquitto, mini: MiniCml, direct: DirectTransport
) -> None:
    mini.replies["/x"] = mini.hang
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    transport = caller_of(hub)
    async with running(hub.run):
        agent = agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW)
        async with running(agent.run):
            await heard.until(lambda: heard.views)
            asked = asyncio.ensure_future(transport.request("POST", "/x", deadline_s=90))
            await mini.wait_for("POST /x")
            await agent.finish(0.05)
            finishing = asyncio.ensure_future(agent.finish(60))
            late = asyncio.ensure_future(transport.request("PUT", "/x", deadline_s=90))
            read = asyncio.ensure_future(transport.request("GET", "/x", deadline_s=90))
            await mini.wait_for("GET /x")
            assert not finishing.done()
            mini.silent.set()
            await finishing
            assert [(await each).status for each in (asked, read)] == [200, 200]
        assert (count(mini, "POST"), count(mini, "PUT")) == (1, 0)
        async with running(agent_over(broker(mosquitto, "w1"), direct, allow=ALLOW).run):
            assert (await late).status == 200
    assert (count(mini, "POST"), count(mini, "PUT")) == (1, 1)


class Consoles:
    """Opens connections to a loopback server that answers each line in capital letters."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open_stream(
        self, path: str, *, params: Mapping[str, str] | None = None, deadline_s: float
    ) -> ByteChannel:
        assert (path, params, deadline_s > 0) == ("/console/r1", {"line": "0"}, True)
        try:
            return Socket(*await asyncio.open_connection("127.0.0.1", self.port))
        except OSError as error:
            raise ConnectFailed(f"127.0.0.1:{self.port}: {error.strerror}") from error

    async def close(self) -> None: ...


class Socket:
    """A `ByteChannel` over a TCP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def read(self) -> bytes:
        return await self.reader.read(70_000)

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def end(self) -> None:
        self.writer.write_eof()

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


async def test_a_console_survives_a_restart_of_the_broker(mosquitto: Mosquitto, direct: DirectTransport) -> None:
    closed = asyncio.Event()

    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.upper())
        writer.close()
        closed.set()

    console = await asyncio.start_server(shout, "127.0.0.1", 0, limit=2**20)
    port = console.sockets[0].getsockname()[1]
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    allow = AllowList([("OPEN", "/console/{device}")])
    agent = agent_over(broker(mosquitto, "w1"), direct, allow=allow, streams=Consoles(port))
    transport = TunnelTransport(hub, "w1", allow=allow, epoch=lambda: 1)
    async with console, running(hub.run, agent.run):
        await heard.until(lambda: heard.views)
        stream = await transport.open_stream("/console/r1", params={"line": "0"}, deadline_s=30)
        said = b"".join(b"line %d of the console\n" % number for number in range(20_000))
        writing = asyncio.ensure_future(stream.write(said))
        got = b""
        while len(got) < len(said):
            got += await asyncio.wait_for(stream.read(), 60)
            if len(got) > len(said) // 3 and mosquitto.log().count("terminating") == 0:
                await mosquitto.stop()
                await mosquitto.start()
        assert got == said.upper()
        await writing
        await stream.close()
        await asyncio.wait_for(closed.wait(), 60)


async def test_a_stream_that_cannot_be_opened_says_why(
    mosquitto: Mosquitto, direct: DirectTransport, unused_tcp_port: int
) -> None:
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    both = AllowList([("OPEN", "/console/{device}"), ("OPEN", "/screen")])
    agents = AllowList([("OPEN", "/console/{device}")])
    agent = agent_over(broker(mosquitto, "w1"), direct, allow=agents, streams=Consoles(unused_tcp_port))
    transport = TunnelTransport(hub, "w1", allow=both, epoch=lambda: 1)
    async with running(hub.run, agent.run):
        await heard.until(lambda: heard.views)
        with pytest.raises(ConnectFailed, match="Connect call failed"):
            await transport.open_stream("/console/r1", params={"line": "0"}, deadline_s=30)
        with pytest.raises(RequestRefused, match="the agent's allow-list"):
            await transport.open_stream("/screen", deadline_s=30)
        with pytest.raises(RequestRefused, match="on the allow-list"):
            await transport.open_stream("/other", deadline_s=30)

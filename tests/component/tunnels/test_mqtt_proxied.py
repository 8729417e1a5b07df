"""Callers and agents whose broker only a proxy can reach: its name is known to the proxy alone."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from tests.component.cml.conftest import MiniCml, reply
from tests.component.tunnels.conftest import ALLOW
from tests.support.connectproxy import ConnectProxy
from tests.support.mosquitto import CALLER, PASSWORD, Mosquitto
from tests.support.tunnels import Heard, agent_over, hub_over, running
from tunnels.direct import DirectTransport
from tunnels.link.hub import TunnelTransport
from tunnels.mqtt.broker import Broker, BrokerFault, TlsFault
from tunnels.mqtt.connection import BrokerConnection, Client

NAME = "broker.example.test"


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def encrypted(tmp_path: Path, authority: trustme.CA) -> AsyncIterator[Mosquitto]:
    """A broker with a certificate of that name."""
    issued = authority.issue_cert(NAME)
    for path, blob in (("key", issued.private_key_pem), ("cert", issued.cert_chain_pems[0])):
        blob.write_to_path(str(tmp_path / f"{path}.pem"))
    made = Mosquitto(tmp_path, lines=(f"certfile {tmp_path}/cert.pem", f"keyfile {tmp_path}/key.pem"))
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def proxy(encrypted: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ConnectProxy]:
    async with ConnectProxy({NAME: ("127.0.0.1", encrypted.port)}, user="ann:se cret") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//ann:se%20cret@"))
        yield proxy


@pytest.fixture
def there(tmp_path: Path, authority: trustme.CA) -> Broker:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return Broker(NAME, 8883, ca_file=str(tmp_path / "ca.pem"), login=lambda: (CALLER, PASSWORD), connect_s=10)


async def said(broker: Broker) -> str:
    """Return the fault of a connection that does not come about."""
    connection = BrokerConnection(broker, Client("looks", ("x",)), deliver=lambda *_: None, refused=lambda _: None)
    with pytest.raises(BrokerFault) as caught:
        await connection.open()
    await connection.close()
    return str(caught.value)


async def test_replicas_and_agents(proxy: ConnectProxy, there: Broker, mini: MiniCml) -> None:
    mini.replies["/x"] = reply(200, "x")
    upstream = DirectTransport(mini.url, allow=ALLOW)
    heard = Heard()
    hub = hub_over(there, heard)
    agent = agent_over(replace(there, login=lambda: ("w1", PASSWORD)), upstream, allow=ALLOW)
    async with running(hub.run, agent.run):
        await heard.until(lambda: heard.views)
        transport = TunnelTransport(hub, "w1", allow=ALLOW, epoch=lambda: 1)
        assert (await transport.request("GET", "/x", deadline_s=30)).body == b"x"
    await upstream.close()
    assert proxy.asked == [f"CONNECT {NAME}:8883"] * 2


async def test_without_encryption(mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ConnectProxy({NAME: ("127.0.0.1", mosquitto.port)}) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        connection = BrokerConnection(
            Broker(NAME, 1883, tls=False, login=lambda: (CALLER, PASSWORD)),
            Client("looks", ("vkprovider/+/up/+/all",)),
            deliver=lambda *_: None,
            refused=lambda _: None,
        )
        await connection.open()
        await connection.close()
        assert proxy.asked == [f"CONNECT {NAME}:1883"]


async def test_the_certificate_is_the_brokers(proxy: ConnectProxy, there: Broker) -> None:
    with pytest.raises(TlsFault, match="certificate cannot be trusted"):
        await BrokerConnection(
            replace(there, ca_file=None), Client("looks", ("x",)), deliver=lambda *_: None, refused=lambda _: None
        ).open()
    assert proxy.asked == [f"CONNECT {NAME}:8883"]


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("refuses", "its proxy 127.0.0.1:{port} answers 403 Refused"),
        ("knows nobody", "its proxy 127.0.0.1:{port} answers 407 Refused"),
        ("is gone", "no connection to its proxy 127.0.0.1:1: Connection refused"),
        ("is silent", "the broker did not answer through its proxy 127.0.0.1:{port} within 1 s"),
        ("is socks", "proxy socks5://127.0.0.1:1080: only http:// and https:// are supported"),
        ("is https", "proxy https://127.0.0.1:3129: a broker is reached through an http:// proxy only"),
    ],
)
async def test_a_proxy_that_does_not_help_is_named(
    proxy: ConnectProxy, there: Broker, monkeypatch: pytest.MonkeyPatch, what: str, says: str
) -> None:
    match what:
        case "refuses":
            proxy.refusal = 403
        case "knows nobody":
            monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//ann:other-secret@"))
        case "is gone":
            monkeypatch.setenv("HTTPS_PROXY", "http://ann:secret@127.0.0.1:1")
        case "is silent":
            proxy.free.clear()
            there = replace(there, connect_s=1)
        case "is socks":
            monkeypatch.setenv("HTTPS_PROXY", "socks5://ann:secret@127.0.0.1:1080")
        case _:
            monkeypatch.setenv("HTTPS_PROXY", "https://ann:secret@127.0.0.1:3129")
    message = await said(there)
    assert message == f"{NAME}:8883: {says.format(port=proxy.url.rpartition(':')[2])}"


async def test_no_proxy_is_heeded(proxy: ConnectProxy, there: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", ".example.test:8883")
    assert "proxy" not in await said(there)  # nobody else knows the name
    assert proxy.asked == []


async def test_an_address_of_ipv6(proxy: ConnectProxy, there: Broker) -> None:
    proxy.refusal = 503
    assert "answers 503" in await said(replace(there, host="2001:db8::7"))
    assert proxy.asked == ["CONNECT [2001:db8::7]:8883"]

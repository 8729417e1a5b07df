"""Who may dial the page as an agent: tokens, certificates, refusals that are counted, logged once and harm nobody."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import structlog
import trustme
from aiohttp import web

from tests.component.web.test_page import write
from tests.support.tunnels import Heard, eventually, running
from tunnels import wire
from tunnels.link.carrier import Address, Carrier
from tunnels.link.hub import Hub
from tunnels.websocket.dialing import Dialing
from tunnels.websocket.listening import SOCKETS_OF_A_NAME_MAX, Listening
from tunnels.wire import Hello
from vkprovider.agent.process import agent_carrier
from vkprovider.agent.settings import AgentProcessSettings
from vkprovider.labs.http.agents import Agents
from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.wiring.main import page_of
from vkprovider.platform.errors import InputError
from vkprovider.platform.http import connections
from vkprovider.platform.http.connections import listen, runner_of
from vkprovider.platform.http.tls import ServingCertificate

TOKENS = [("cml-7", "token-of-cml-7-a"), ("cml-7", "token-of-cml-7-b"), ("", "token-of-whoever")]
HELLO = wire.encode(Hello(1, 60_000))


@asynccontextmanager
async def served(tls: ssl.SSLContext | None = None, *, off: bool = False) -> AsyncIterator[tuple[str, Hub]]:
    """A page that accepts agents, and the hub that they reach."""
    listening = Listening("replica-0", dict)
    hub = Hub(listening, Heard())
    app = web.Application()
    app.router.add_get("/tunnel", Agents(lambda: TOKENS, None if off else listening).handle)
    runner = runner_of(app)
    await runner.setup()
    listener = await listen(runner, "127.0.0.1", 0, tls)
    port = listener.sockets[0].getsockname()[1]
    async with running(hub.run):
        await asyncio.sleep(0)
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}", hub
    listener.close()
    await runner.cleanup()


async def refusal(url: str, agent: str, token: str = "", tls: ssl.SSLContext | None = None) -> tuple[int, str]:
    """Return status and reason of the refusal of an agent."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession(url) as session,
        session.get("/tunnel", params={"agent": agent}, headers=headers, ssl=tls or True) as answer,
    ):
        return answer.status, (await answer.json())["reason"]


@asynccontextmanager
async def dialled(
    url: str, agent: str, token: str = "", tls: ssl.SSLContext | None = None
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A WebSocket that the page accepts."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{url}/tunnel", params={"agent": agent}, headers=headers, ssl=tls or True) as websocket,
    ):
        assert '"replica-0"' in await websocket.receive_str(timeout=30)
        yield websocket


@pytest.mark.parametrize(
    ("agent", "token"),
    [("cml-7/a", "token-of-cml-7-a"), ("cml-7/a", "token-of-cml-7-b"), ("cml-8/a", "token-of-whoever")],
)
async def test_a_token_proves_a_name(agent: str, token: str) -> None:
    async with served() as (url, hub), dialled(url, agent, token) as websocket:
        await websocket.send_bytes(HELLO)
        await eventually(lambda: hub.view(agent.partition("/")[0]).boot == "a")


async def test_whoever_proves_no_name_is_refused_and_logged_once() -> None:
    with structlog.testing.capture_logs() as logged:
        async with served() as (url, hub):
            for token in ("", "guessed", "token-of-cml-7-a", "token-of-cml-7-a "):
                assert await refusal(url, "cml-8/a", token) == (401, "AgentUnknown")
            for agent in ("", "cml-8", "cml-8/", "CML/a", "cml-8/a/b"):
                assert await refusal(url, agent, "token-of-whoever") == (400, "AgentInvalid")
            assert hub.view("cml-8").boot == ""
    assert [line["agent"] for line in logged] == ["cml-8"]
    assert not any(token in str(logged) for _, token in TOKENS)
    assert "guessed" not in str(logged)


async def test_without_settings_no_agent_is_accepted() -> None:
    async with served(off=True) as (url, _):
        assert await refusal(url, "cml-7/a", "token-of-cml-7-a") == (403, "AgentsDisabled")


async def test_too_many_are_asked_to_come_again() -> None:
    async with served() as (url, _):
        sessions = [aiohttp.ClientSession() for _ in range(SOCKETS_OF_A_NAME_MAX)]
        sockets = [
            await session.ws_connect(
                f"{url}/tunnel",
                params={"agent": f"cml-7/{number}"},
                headers={"Authorization": "Bearer token-of-cml-7-a"},
            )
            for number, session in enumerate(sessions)
        ]
        assert await refusal(url, "cml-7/more", "token-of-cml-7-a") == (503, "TooManyAgents")
        for socket, session in zip(sockets, sessions, strict=True):
            await socket.close()
            await session.close()


async def test_a_crowd_of_strangers_does_not_end_the_websocket_of_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 5)
    async with served() as (url, hub), dialled(url, "cml-7/a", "token-of-cml-7-a") as websocket:
        crowd = [await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2])) for _ in range(12)]
        assert await crowd[0][0].read() == b"", "the page closed it"
        await websocket.send_bytes(HELLO)
        await eventually(lambda: hub.view("cml-7").boot == "a")
        for _, writer in crowd:
            writer.close()


async def test_a_certificate_proves_a_name(tmp_path: Path) -> None:
    authority, foreign = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "agents.pem")
    files = write(tmp_path, authority)
    pair = files["VKPROVIDER_HTTP_TLS_CERT"], files["VKPROVIDER_HTTP_TLS_KEY"]
    page = ServingCertificate(pair, client_ca=str(tmp_path / "agents.pem"))

    def client(by: trustme.CA | None, **names: str) -> ssl.SSLContext:
        context = ssl.create_default_context()
        authority.configure_trust(context)
        if by is not None:
            by.issue_cert(*names.values() if "dns" in names else (), common_name=names.get("common")).configure_cert(
                context
            )
        return context

    async with served(page.context) as (url, hub):
        for number, context in enumerate((client(authority, common="cml-8"), client(authority, dns="cml-8"))):
            async with dialled(url, f"cml-8/{number}", tls=context) as websocket:
                await websocket.send_bytes(HELLO)
                await eventually(lambda: hub.view("cml-8").boot)
            assert await refusal(url, "cml-9/a", tls=context) == (401, "AgentUnknown")
        assert await refusal(url, "cml-8/a", tls=client(None)) == (401, "AgentUnknown")
        async with dialled(url, "cml-7/a", "token-of-cml-7-a", tls=client(None)):
            pass
        with pytest.raises((aiohttp.ClientError, OSError)):
            await refusal(url, "cml-8/a", tls=client(foreign, common="cml-8"))


class Introduces:
    """An agent that says hello, and nothing else."""

    def __init__(self, carrier: Carrier) -> None:
        self.carrier = carrier

    def received(self, peer: str, frame: bytes) -> None: ...

    def connected(self, peer: str) -> None:
        assert self.carrier.send(peer, HELLO)

    def disconnected(self, peer: str) -> None: ...


@pytest.mark.parametrize("by", ["token", "certificate"])
async def test_an_agent_by_its_settings(tmp_path: Path, by: str) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    files = write(tmp_path, authority)
    pair = files["VKPROVIDER_HTTP_TLS_CERT"], files["VKPROVIDER_HTTP_TLS_KEY"]
    issued = authority.issue_cert(common_name="cml-7")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "agent.crt")
    issued.private_key_pem.write_to_path(tmp_path / "agent.key")
    given = {"VKPROVIDER_TUNNEL_HTTP_CA_FILE": str(tmp_path / "ca.pem")}
    if by == "token":
        given["VKPROVIDER_TUNNEL_HTTP_TOKEN"] = "token-of-cml-7-b"
    else:
        given["VKPROVIDER_TUNNEL_HTTP_CERT_FILE"] = str(tmp_path / "agent.crt")
        given["VKPROVIDER_TUNNEL_HTTP_KEY_FILE"] = str(tmp_path / "agent.key")
    page = ServingCertificate(pair, client_ca=str(tmp_path / "ca.pem"))
    async with served(page.context) as (url, hub):
        settings = AgentProcessSettings.from_environment({"VKPROVIDER_TUNNEL_HTTP_URL": url, **given})
        carrier = agent_carrier(settings.mqtt, settings.dial, Address("cml-7", "a"))
        async with running(lambda: carrier.run(Introduces(carrier))):
            await eventually(lambda: hub.view("cml-7").boot == "a")


async def test_token_and_certificates_are_read_again_when_their_files_are_replaced(tmp_path: Path) -> None:
    """The agent has a token that was changed meanwhile, and trusts an authority that the page has left."""
    authority, former = trustme.CA(), trustme.CA()
    former.cert_pem.write_to_path(tmp_path / "ca.pem")
    files = write(tmp_path, authority)
    page = ServingCertificate((files["VKPROVIDER_HTTP_TLS_CERT"], files["VKPROVIDER_HTTP_TLS_KEY"]))
    token = tmp_path / "token"
    token.write_text("the-former-token")
    given = {"CA_FILE": str(tmp_path / "ca.pem"), "TOKEN_FILE": str(token)}
    async with served(page.context) as (url, hub):
        environment = {f"VKPROVIDER_TUNNEL_HTTP_{name}": value for name, value in given.items()}
        settings = AgentProcessSettings.from_environment({"VKPROVIDER_TUNNEL_HTTP_URL": url, **environment})
        carrier = agent_carrier(settings.mqtt, settings.dial, Address("cml-7", "a"))
        assert isinstance(carrier, Dialing)
        async with running(lambda: carrier.run(Introduces(carrier))):
            await eventually(lambda: "certificate" in trouble_of(carrier))
            authority.cert_pem.write_to_path(tmp_path / "ca.pem")
            await eventually(lambda: "refused (401)" in trouble_of(carrier))
            token.write_text("token-of-cml-7-b\n")
            await eventually(lambda: hub.view("cml-7").boot == "a")


async def test_authorities_of_agents_are_read_again_when_their_file_is_replaced(tmp_path: Path) -> None:
    """With a certificate of the page's own, too, which serves while there are no files."""
    former, authority = trustme.CA(), trustme.CA()
    former.cert_pem.write_to_path(tmp_path / "agents.pem")
    page = ServingCertificate(None, hosts=["127.0.0.1"], client_ca=str(tmp_path / "agents.pem"))
    client = ssl.create_default_context()
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    authority.issue_cert(common_name="cml-8").configure_cert(client)
    async with served(page.context) as (url, hub):
        with pytest.raises((aiohttp.ClientError, OSError)):
            await refusal(url, "cml-8/a", tls=client)
        (tmp_path / "agents.pem").write_text("not a certificate")
        with pytest.raises((aiohttp.ClientError, OSError)):
            await refusal(url, "cml-8/a", tls=client)
        authority.cert_pem.write_to_path(tmp_path / "agents.pem")
        async with dialled(url, "cml-8/a", tls=client) as websocket:
            await websocket.send_bytes(HELLO)
            await eventually(lambda: hub.view("cml-8").boot)


def trouble_of(carrier: Dialing) -> str:
    return " ".join(target.trouble for target in carrier._targets.values())


@pytest.mark.parametrize("tls", [True, False])
def test_authorities_that_cannot_be_used_are_named(tmp_path: Path, *, tls: bool) -> None:
    files = write(tmp_path, trustme.CA()) if tls else {}
    settings = {"VKPROVIDER_TUNNEL_HTTP_CLIENT_CA_FILE": str(tmp_path / "none.pem"), **files}
    with pytest.raises(InputError, match="No such file" if tls else "plain HTTP"):
        page_of(Settings.from_environment(settings))

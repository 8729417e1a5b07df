"""An agent's way to CML: it logs in with credentials of its own, which the other end of the tunnel never sees."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

from tests.component.cml.conftest import MiniCml, reply, serving
from tunnels.base import CertificateInvalid, ConnectFailed, RequestRefused
from tunnels.direct import DirectTransport
from vkprovider.agent.process import open_streams, open_upstream
from vkprovider.agent.settings import AgentSettings
from vkprovider.agent.upstream import AGENT_API, LoggedIn, credentials_in
from vkprovider.cml.factory import session_over
from vkprovider.cml.worker import CmlLabs
from vkprovider.platform.errors import InputError, Invalid, Throttled, TlsFailed, Unauthorized


def write(file: Path, text: str) -> None:
    file.write_text(text)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "credentials"
    path.write_text("admin\nright\n")
    return path


@pytest.fixture
async def upstream(mini: MiniCml, file: Path) -> AsyncIterator[LoggedIn]:
    opened = LoggedIn(DirectTransport(mini.url, allow=AGENT_API), mini.url, credentials_in(str(file)))
    yield opened
    await opened.close()


@pytest.fixture
def labs(upstream: LoggedIn) -> CmlLabs:
    return CmlLabs(session_over(upstream, "agent://w1", None), "agent://w1")


async def test_requests_without_a_token_share_one_login(labs: CmlLabs, mini: MiniCml) -> None:
    assert await labs.version() == "2.9.1+build.7"
    assert mini.logins == 0
    assert await asyncio.gather(*(labs.list_lab_ids() for _ in range(20))) == [["lab-1"]] * 20
    assert mini.logins == 1


async def test_a_lost_token_is_renewed(labs: CmlLabs, mini: MiniCml) -> None:
    await labs.list_lab_ids()
    mini.token = "revoked"
    assert await labs.list_lab_ids() == ["lab-1"]
    assert mini.logins == 2


async def test_a_changed_password_needs_no_restart(labs: CmlLabs, mini: MiniCml, file: Path) -> None:
    mini.password = "new"
    with pytest.raises(Unauthorized, match="CML refuses the agent's user name or password"):
        await labs.list_lab_ids()
    write(file, "admin\nnew\n")
    assert await labs.list_lab_ids() == ["lab-1"]


@pytest.mark.parametrize("text", ["", "admin\n", "\npassword\n"])
async def test_an_incomplete_file_is_named(labs: CmlLabs, mini: MiniCml, file: Path, text: str) -> None:
    write(file, text)
    with pytest.raises(Unauthorized, match="does not hold a user name"):
        await labs.list_lab_ids()
    assert mini.logins == 0


async def test_a_missing_file_is_named(mini: MiniCml) -> None:
    upstream = LoggedIn(DirectTransport(mini.url, allow=AGENT_API), mini.url, credentials_in("/nowhere/credentials"))
    labs = CmlLabs(session_over(upstream, "agent://w1", None), "agent://w1")
    with pytest.raises(Unauthorized, match=r"credentials.* cannot be read"):
        await labs.list_lab_ids()
    await labs.close()


async def test_a_token_of_the_other_end_is_passed_on(upstream: LoggedIn, mini: MiniCml) -> None:
    answer = await upstream.request(
        "GET", "/api/v0/labs", headers={"Authorization": f"Bearer {mini.token}"}, deadline_s=5
    )
    assert (answer.status, mini.logins) == (200, 0)
    answer = await upstream.request("GET", "/api/v0/labs", headers={"Authorization": "Bearer wrong"}, deadline_s=5)
    assert (answer.status, mini.logins) == (401, 0)


async def test_too_many_logins_are_reported_as_such(labs: CmlLabs, mini: MiniCml) -> None:
    mini.replies["/authenticate"] = reply(429, "slow down")
    with pytest.raises(Throttled):
        await labs.list_lab_ids()


async def test_without_cml_nothing_was_sent(upstream: LoggedIn, mini: MiniCml) -> None:
    mini.replies["/authenticate"] = reply(503, "starting")
    with pytest.raises(ConnectFailed, match="no login"):
        await upstream.request("POST", "/api/v0/import", body=b"x", deadline_s=5)
    assert mini.seen == ["POST /authenticate"]


async def test_only_labs_and_figures_pass(upstream: LoggedIn, mini: MiniCml) -> None:
    for method, path in (("GET", "/api/v0/users"), ("DELETE", "/api/v0/licensing"), ("GET", "/api/v0/labs/../users")):
        with pytest.raises(RequestRefused):
            await upstream.request(method, path, deadline_s=5)
    assert "users" not in str(mini.seen)


async def test_a_refusal_of_cml_is_passed_on(labs: CmlLabs, mini: MiniCml) -> None:
    mini.replies["/import"] = reply(400, '{"code": 400, "description": "Bad lab"}')
    with pytest.raises(Invalid, match="Bad lab"):
        await labs.import_lab("lab: {}")


async def test_authorities_are_read_again_when_their_file_is_replaced(tmp_path: Path, file: Path) -> None:
    """CML's certificate was renewed by an authority that the agent learns of later."""
    former, authority = trustme.CA(), trustme.CA()
    former.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with serving(MiniCml(), context) as mini:
        settings = AgentSettings(name="w1", url=mini.url, credentials_file=str(file), ca_file=str(tmp_path / "ca.pem"))
        upstream, streams = open_upstream(settings), open_streams(settings)
        labs = CmlLabs(session_over(upstream, "agent://w1", None), "agent://w1")
        console = "/ws/dispatch/frontend/console"
        with pytest.raises(TlsFailed):
            await labs.version()
        with pytest.raises(CertificateInvalid):
            await streams.open_stream(console, deadline_s=30)
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        assert await labs.version() == "2.9.1+build.7"
        with pytest.raises(ConnectFailed, match="answered 401"):
            await streams.open_stream(console, deadline_s=30)
        await upstream.close()
        await streams.close()


def test_authorities_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("not a certificate")
    for name in ("ca.pem", "none.pem"):
        with pytest.raises(InputError, match=f"VKPROVIDER_AGENT_CA_FILE {tmp_path / name}: "):
            open_upstream(AgentSettings(name="w1", url="https://127.0.0.1", ca_file=str(tmp_path / name)))

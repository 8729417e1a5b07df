"""Cisco's client logs in to the simulator: versions, passwords, tokens, TLS (R000-043)."""

import asyncio
import datetime as dt
from pathlib import Path
from typing import Any

import httpx
import pytest
from virl2_client.exceptions import APIError, InitializationError

from tests.simulators.cml.cisco import PASSWORD, connect, drive
from tests.support.cmlapi.simulator import CmlSimulator
from vkpsim.cml.simulation import Settings
from vkpsim.http.tls import self_signed, server_context


def logins(simulator: CmlSimulator) -> int:
    return sum(entry.path == "/api/v0/authenticate" for entry in simulator.log.entries)


async def test_a_wrong_password_is_refused(simulator: CmlSimulator) -> None:
    with pytest.raises(InitializationError, match="Unable to authenticate"):
        await asyncio.to_thread(connect, simulator.url, password="wrong")


@pytest.mark.client_since("2.10")
@pytest.mark.parametrize("version", ["2.8.0+build.6", "2.9.1+build.7", "2.10.0+build.13"])
async def test_supported_versions(version: str) -> None:
    async with CmlSimulator(Settings(password=PASSWORD, version=version)) as simulator:
        assert await drive(simulator, lambda client: client.system_info()["version"]) == version
        paths = [entry.path.removeprefix("/api/v0/") for entry in simulator.log.entries]
    who = "authentication" if "2.10" in version else "authok"
    assert paths == ["system_information", "authenticate", who, "system_information"]


@pytest.mark.client_since("2.10")
async def test_an_older_version_is_refused_by_the_client() -> None:
    async with CmlSimulator(Settings(password=PASSWORD, version="2.7.0+build.4")) as simulator:
        with pytest.raises(InitializationError, match="Unsupported minor version"):
            await asyncio.to_thread(connect, simulator.url)


def test_the_simulator_refuses_an_invalid_version() -> None:
    with pytest.raises(ValueError, match="not a CML version"):
        CmlSimulator(Settings(password=PASSWORD, version="latest"))


async def test_a_lost_token_is_renewed_once(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        assert client.get_lab_list() == []
        for user in simulator.simulation.accounts.users.values():
            simulator.simulation.accounts.end_sessions(user)
        assert client.get_lab_list() == []

    await drive(simulator, scenario)
    assert logins(simulator) == 2


async def test_an_expired_token_is_renewed(simulator: CmlSimulator) -> None:
    simulator.simulation.accounts.session_s = 1

    def scenario(client: Any) -> None:
        simulator._anchor += 60
        assert client.get_lab_list() == []

    await drive(simulator, scenario)
    assert logins(simulator) == 2


@pytest.mark.client_since("2.10")
async def test_a_logout_ends_the_session_and_a_token_alone_cannot_be_renewed(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        token = client.jwtoken
        assert client.logout() is True
        with pytest.raises(APIError, match="401 Unauthorized"):
            connect(simulator.url, username="", password="", jwtoken=token)
        assert client.get_lab_list() == []
        assert client.logout(clear_all_sessions=True) is True

    await drive(simulator, scenario)


@pytest.mark.filterwarnings("ignore:.verify=<str>. is deprecated:DeprecationWarning")  # httpx about the client
async def test_tls_with_a_self_signed_certificate(tmp_path: Path) -> None:
    certificate, key = self_signed("127.0.0.1", dt.datetime.now(dt.UTC))
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(certificate)
    async with CmlSimulator(Settings(password=PASSWORD), tls=server_context(certificate, key)) as simulator:
        assert simulator.url.startswith("https://")
        assert await drive(simulator, lambda client: client.get_lab_list(), allow_http=False) == []
        assert await drive(simulator, lambda client: client.get_lab_list(), ssl_verify=str(trusted)) == []
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await asyncio.to_thread(connect, simulator.url, ssl_verify=True)


async def test_plain_http_must_be_allowed(simulator: CmlSimulator) -> None:
    with pytest.raises(InitializationError, match="must be https"):
        await asyncio.to_thread(connect, simulator.url, allow_http=False)

"""The page before the API server has answered, and its certificate."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from ipaddress import ip_address
from pathlib import Path

import aiohttp
import pytest
import trustme
from cryptography import x509

from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.wiring.main import page_of
from vkprovider.platform.errors import InputError

ENVIRONMENT = {"VKPROVIDER_HTTP_HOST": "127.0.0.1", "LABLET_CONTROLLER_INSTANCE_ID": "replica-a"}


def settings(**more: str) -> Settings:
    return Settings.from_environment(ENVIRONMENT | {"VKPROVIDER_HTTP_PORT": "0"} | more)


async def test_port_that_is_taken_is_named_with_its_setting() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        page = page_of(settings(VKPROVIDER_HTTP_HOST="127.0.0.1", VKPROVIDER_HTTP_PORT=str(port)))
        with pytest.raises(InputError, match=f"127.0.0.1:{port}.* in use.* VKPROVIDER_HTTP_PORT"):
            await page.start()
        await page.stop()


def has_ipv6() -> bool:
    """Return whether this machine has an address of IPv6, as not every container does."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as found:
        found.bind(("::1", 0))
        return True
    return False


async def test_page_without_an_address_is_reached_by_both_families() -> None:
    """As a kubelet reaches it whose Pods have an address of IPv6 first, or none of it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    page = page_of(settings(VKPROVIDER_HTTP_HOST="", VKPROVIDER_HTTP_PORT=str(port)))
    await page.start()
    try:
        for host in ("127.0.0.1", *(("[::1]",) if has_ipv6() else ())):
            async with aiohttp.ClientSession(f"http://{host}:{port}") as session, session.get("/health") as answer:
                assert answer.status == 200
    finally:
        await page.stop()


@pytest.fixture
async def early() -> AsyncIterator[str]:
    page = page_of(settings())
    await page.start()
    yield f"http://127.0.0.1:{page.port}"
    await page.stop()


async def test_a_replica_without_an_api_server_lives_and_is_not_ready(early: str) -> None:
    async with aiohttp.ClientSession(early) as session:
        async with session.get("/health") as answer:
            assert answer.status == 200
            assert await answer.json() == {
                "status": "starting",
                "is_leader": False,
                "instance_id": "replica-a",
                "last_reconciliation": None,
                "instances_managed": 0,
                "instances_running": 0,
                "owned_nodes": [],
            }
        async with session.get("/ready") as answer:
            assert (answer.status, await answer.json()) == (503, {"ready": False, "missing": ["api-server"]})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/info"),
        ("GET", "/metrics"),
        ("GET", "/admin/stats"),
        ("POST", "/admin/trigger-reconcile"),
        ("GET", "/labs/x/download"),
        ("GET", "/labs/x/login"),
        ("POST", "/events"),
        ("GET", "/tunnel"),
    ],
)
async def test_whatever_needs_the_cluster_is_asked_to_come_again(early: str, method: str, path: str) -> None:
    async with aiohttp.ClientSession(early) as session, session.request(method, path) as answer:
        assert (answer.status, (await answer.json())["reason"]) == (503, "Starting")
        assert "Retry-After" in answer.headers


def write(directory: Path, authority: trustme.CA) -> dict[str, str]:
    issued = authority.issue_cert("127.0.0.1")
    certificate, key = directory / "tls.crt", directory / "tls.key"
    for path, data in (
        (certificate, b"".join(c.bytes() for c in issued.cert_chain_pems)),
        (key, issued.private_key_pem.bytes()),
    ):
        fresh = path.with_suffix(".new")
        fresh.write_bytes(data)
        fresh.rename(path)
    return {"VKPROVIDER_HTTP_TLS_CERT": str(certificate), "VKPROVIDER_HTTP_TLS_KEY": str(key)}


async def reachable(port: int, authority: trustme.CA) -> bool:
    context, url = ssl.create_default_context(), f"https://127.0.0.1:{port}/health"
    authority.configure_trust(context)
    try:
        async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as answer:
            return answer.status == 200
    except aiohttp.ClientSSLError:
        return False


async def test_a_renewed_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    page = page_of(settings(**write(tmp_path, old)))
    await page.start()
    try:
        assert await reachable(page.port, old)
        assert not await reachable(page.port, new)
        write(tmp_path, new)
        assert await reachable(page.port, new)
        (tmp_path / "tls.key").write_text("half of")
        assert await reachable(page.port, new)
    finally:
        await page.stop()


async def test_until_there_is_a_certificate_the_replica_serves_its_own(tmp_path: Path) -> None:
    """As in the shipped Deployment, whose Secret is optional and may come later."""
    files = {
        "VKPROVIDER_HTTP_TLS_CERT": str(tmp_path / "tls.crt"),
        "VKPROVIDER_HTTP_TLS_KEY": str(tmp_path / "tls.key"),
    }
    page = page_of(settings(VKPROVIDER_HTTP_TLS_SELF_SIGNED="true", POD_IP="192.0.2.7", **files))
    await page.start()
    authority = trustme.CA()
    try:
        own = x509.load_pem_x509_certificate(await asyncio.to_thread(presented, page.port))
        names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert "vkprovider.vkprovider-system.svc" in names.get_values_for_type(x509.DNSName)
        assert ip_address("192.0.2.7") in names.get_values_for_type(x509.IPAddress)
        assert not await reachable(page.port, authority)
        async with aiohttp.ClientSession() as session:  # as a kubelet's probe: nothing is verified
            async with session.get(f"https://127.0.0.1:{page.port}/health", ssl=False) as answer:
                assert answer.status == 200
            with pytest.raises(aiohttp.ClientError):
                await session.get(f"http://127.0.0.1:{page.port}/health")
        write(tmp_path, authority)
        assert await reachable(page.port, authority)
        (tmp_path / "tls.crt").unlink()
        (tmp_path / "tls.key").unlink()
        assert await reachable(page.port, authority), "what once could be verified stays"
    finally:
        await page.stop()


def presented(port: int) -> bytes:
    """The certificate that a listener shows."""
    return ssl.get_server_certificate(("127.0.0.1", port)).encode()


async def test_a_certificate_of_its_own_needs_no_files() -> None:
    page = page_of(settings(VKPROVIDER_HTTP_TLS_SELF_SIGNED="true"))
    await page.start()
    try:
        assert await asyncio.to_thread(presented, page.port) == await asyncio.to_thread(presented, page.port)
    finally:
        await page.stop()


def test_a_certificate_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path) -> None:
    given = write(tmp_path, trustme.CA())
    (tmp_path / "tls.crt").write_text("no certificate")
    with pytest.raises(InputError, match="VKPROVIDER_HTTP_TLS_CERT"):
        page_of(settings(**given))
    with pytest.raises(ValueError, match="neither"):
        settings(VKPROVIDER_HTTP_TLS_CERT="x")

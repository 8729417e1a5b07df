"""Where `kubectl lablet login` sends a token, and where it does not."""

import asyncio
from contextlib import suppress

import aiohttp
import click
import pytest

from vkprovider.classroom.providerpage import other_scheme
from vkprovider.cli.shared.page.address import anchored, is_verified, safe
from vkprovider.cli.shared.page.options import bare
from vkprovider.platform.objects import Metadata, RoleBinding, RoleRef


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://127.0.0.1:8082/", "http://127.0.0.1:8082"),
        ("http://localhost:8082", "http://localhost:8082"),
        ("http://[::1]:8082", "http://[::1]:8082"),
        ("https://vkprovider.example.com/page", "https://vkprovider.example.com/page"),
    ],
)
def test_url_that_a_token_may_be_sent_to(url: str, base: str) -> None:
    assert safe(url) == base


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://vkprovider.example.com", "would send the token in plain text"),
        ("http://127.0.0.1.example.com", "would send the token in plain text"),
        ("ftp://127.0.0.1", "is not a URL"),
        ("vkprovider", "is not a URL"),
        ("https://", "is not a URL"),
    ],
)
def test_token_is_not_sent_where_anybody_could_read_it(url: str, says: str) -> None:
    with pytest.raises(click.UsageError, match=says):
        safe(url)


@pytest.mark.parametrize(
    ("url", "given", "verified"),
    [
        ("https://127.0.0.1:8082", True, False),
        ("https://127.0.0.1:8082", False, True),
        ("https://localhost", False, True),
        ("https://labs.example.com", True, True),
        ("https://labs.example.com", False, True),
    ],
)
def test_a_certificate_is_verified_but_at_the_user_s_own_port_forward(url: str, *, given: bool, verified: bool) -> None:
    assert is_verified(url, given=given) is verified


@pytest.mark.parametrize(
    ("kind", "role", "url"),
    [
        ("ClusterRole", "vkprovider-instructor", "https://labs.example.com"),
        ("ClusterRole", "view", ""),
        ("Role", "vkprovider-instructor", ""),
    ],
)
def test_an_address_counts_where_only_who_may_give_the_role_writes_it(kind: str, role: str, url: str) -> None:
    notes = {"vkprovider.io/page-url": "https://labs.example.com"}
    assert anchored(RoleBinding(Metadata("vkprovider-instructor", annotations=notes), RoleRef(kind, role))) == url
    assert anchored(None) == ""


@pytest.mark.parametrize(
    ("given", "token"),
    [
        ("", ""),
        ("a.b-c", "a.b-c"),
        ("  a.b\n", "a.b"),
        ("Bearer a.b", "a.b"),
        ("bearer   a.b \n", "a.b"),
        ("BEARER\n", "BEARER"),
    ],
)
def test_what_is_copied_along_with_a_token_is_left_out(given: str, token: str) -> None:
    assert bare(given) == token


def test_a_token_with_blanks_within_is_none() -> None:
    with pytest.raises(click.UsageError, match="blanks or line breaks within"):
        bare("Bearer a b")


async def test_the_other_scheme_is_named() -> None:
    """As a port of either kind answers who speaks the other one."""
    errors: list[Exception] = []

    async def close(writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await writer.drain()
            writer.close()
            await writer.wait_closed()

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await close(writer)

    async def alert(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x15\x03\x01\x00\x02\x02\x46")
        await close(writer)

    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await close(writer)

    for scheme, serve in (("https", speak), ("http", hang_up), ("http", alert)):
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError) as raised:
                await session.get(f"{scheme}://127.0.0.1:{port}/")
        errors.append(raised.value)
    plain, *tls = errors
    assert other_scheme("https://127.0.0.1:1", plain) == "that port speaks http, and not https; try http://127.0.0.1:1"
    assert other_scheme("https://a.example", plain).endswith("name the address that has a certificate")
    for error in tls:
        assert other_scheme("http://127.0.0.1:1", error).endswith("try https://127.0.0.1:1"), error
        assert other_scheme("https://127.0.0.1:1", error) == ""

"""Packages from a real S3 server, a folder and memory; and what is said when they cannot be had."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import obstore
import pytest
from pydantic import ValidationError

from tests.support.connectproxy import ConnectProxy
from tests.support.s3 import ACCESS_KEY, BUCKET, S3, SECRET_KEY, package, s3_server
from vkprovider.labs.content.objects import ObjectStores, open_store
from vkprovider.labs.content.spi import PackageName
from vkprovider.labs.settings.services import ContentSettings
from vkprovider.platform.errors import DeadlineExceeded, Forbidden, InputError, NotFound, Unavailable

MIB = 2**20
DATA = package({"cml.yaml": "lab: {}"})


def s3_place(s3: S3, **fields: str | float) -> ContentSettings:
    known = {"endpoint": s3.url, "access_key": ACCESS_KEY, "secret_key": SECRET_KEY, "url": f"s3://{BUCKET}"}
    return ContentSettings(**{**known, **fields})


@pytest.fixture(params=["s3", "s3-prefix", "folder", "memory"])
def filled(request: pytest.FixtureRequest, s3: S3, tmp_path: Path) -> ObjectStores:
    """A store with `netlab.zip` in it."""
    match request.param:
        case "s3":
            s3.put("netlab.zip", DATA)
            return open_store(s3_place(s3))
        case "s3-prefix":
            s3.put("exams/2026/netlab.zip", DATA)
            return open_store(s3_place(s3, url=f"s3://{BUCKET}/exams/2026"))
        case "folder":
            (tmp_path / "netlab.zip").write_bytes(DATA)
            return open_store(ContentSettings(url=tmp_path.as_uri()))
        case _:
            stores = open_store(ContentSettings(url="memory://"))
            obstore.put(stores.store(), "netlab.zip", DATA)
            return stores


async def test_package_comes_as_it_was_stored(filled: ObjectStores) -> None:
    """R000-073."""
    for _ in range(2):
        assert await filled.get(PackageName("", "netlab.zip"), bytes_max=MIB) == (DATA, "")


async def test_package_that_is_not_there(filled: ObjectStores) -> None:
    """R000-074."""
    with pytest.raises(NotFound) as caught:
        await filled.get(PackageName("", "other.zip"), bytes_max=MIB)
    assert f"{filled.locate(PackageName('', 'other.zip'))} does not exist" in caught.value.message


async def test_package_larger_than_allowed_is_not_read(filled: ObjectStores) -> None:
    with pytest.raises(InputError, match="PackageTooLarge") as caught:
        await filled.get(PackageName("", "netlab.zip"), bytes_max=len(DATA) - 1)
    assert f"netlab.zip has {len(DATA)} bytes, at most {len(DATA) - 1} are allowed" in caught.value.message.replace(
        f" at {filled._place.endpoint}", ""
    )
    assert "VKPROVIDER_PACKAGE_BYTES_MAX" in caught.value.message


async def test_version_of_the_metadata_comes_along(s3: S3) -> None:
    """R000-068."""
    s3.put("versioned.zip", DATA, version="1.2.0")
    assert (await open_store(s3_place(s3)).get(PackageName("", "versioned.zip"), bytes_max=MIB)).version == "1.2.0"


@pytest.mark.parametrize("key", ["Exam CCNP ENCOR v1.1 LAB 1.zip", "a/b/c.zip", "ünïcode+plus&and=%20.zip"])
async def test_keys_are_taken_literally(s3: S3, key: str) -> None:
    s3.put(key, DATA)
    assert (await open_store(s3_place(s3)).get(PackageName("", key), bytes_max=MIB)).data == DATA


async def test_another_bucket_and_one_that_does_not_exist(s3: S3) -> None:
    s3.make_bucket("another")
    s3.put("netlab.zip", b"another", bucket="another")
    stores = open_store(s3_place(s3, url=f"s3://{BUCKET}/prefix"))
    assert (await stores.get(PackageName("another", "netlab.zip"), bytes_max=MIB)).data == b"another"
    with pytest.raises(NotFound, match="NoSuchBucket"):
        await stores.get(PackageName("missing", "netlab.zip"), bytes_max=MIB)


async def test_a_folder_within_the_folder(tmp_path: Path) -> None:
    (tmp_path / "exams").mkdir()
    (tmp_path / "exams" / "netlab.zip").write_bytes(DATA)
    stores = open_store(ContentSettings(url=tmp_path.as_uri()))
    assert (await stores.get(PackageName("exams", "netlab.zip"), bytes_max=MIB)).data == DATA
    with pytest.raises(Unavailable, match=r"missing/netlab.zip cannot be read: \w"):
        await stores.get(PackageName("missing", "netlab.zip"), bytes_max=MIB)


@pytest.mark.parametrize("key", ["../secret", "a/../../secret", "/etc/passwd", "a//b"])
async def test_no_key_leads_out_of_the_folder(tmp_path: Path, key: str) -> None:
    """What the definition's schema refuses already."""
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "packages" / "a").mkdir(parents=True)
    stores = open_store(ContentSettings(url=(tmp_path / "packages").as_uri()))
    with pytest.raises((NotFound, Unavailable)):
        await stores.get(PackageName("", key), bytes_max=MIB)


async def test_folder_that_may_not_be_read_or_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "netlab.zip").mkdir()
    with pytest.raises((NotFound, Unavailable), match=r"netlab\.zip"):
        await open_store(ContentSettings(url=tmp_path.as_uri())).get(PackageName("", "netlab.zip"), bytes_max=MIB)


@pytest.mark.parametrize("url", ["ftp://x/y", "s3:///key", "content", "file:relative", ""])
def test_url_of_no_store(url: str) -> None:
    with pytest.raises(ValidationError, match="VKPROVIDER_CONTENT_STORE"):
        ContentSettings(url=url)


async def test_store_that_is_down_and_comes_back(tmp_path: Path) -> None:
    with s3_server(tmp_path / "first") as first:
        first.put("netlab.zip", DATA)
        stores = open_store(s3_place(first))
        await stores.get(PackageName("", "netlab.zip"), bytes_max=MIB)
        first.stop()
        with pytest.raises(Unavailable) as caught:
            await stores.get(PackageName("", "netlab.zip"), bytes_max=MIB)
        assert f"s3://{BUCKET}/netlab.zip at {first.url} cannot be read" in caught.value.message
        assert SECRET_KEY not in str(caught.value)
        port = int(first.url.rpartition(":")[2])
    with s3_server(tmp_path / "second", port) as second:
        second.put("netlab.zip", DATA)
        assert (await stores.get(PackageName("", "netlab.zip"), bytes_max=MIB)).data == DATA


NAME = "s3.example.test"
"""A name that a proxy alone knows."""
ADDRESS = "192.0.2.7"
"""An address that a proxy alone reaches; the server takes a name for that of a bucket."""


@pytest.fixture
async def proxy(s3: S3, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ConnectProxy]:
    s3.put("netlab.zip", DATA)
    there = ("127.0.0.1", int(s3.url.rpartition(":")[2]))
    async with ConnectProxy({NAME: there, ADDRESS: there}, user="ann:secret") as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//ann:secret@"))
        yield proxy


async def test_a_store_behind_a_proxy(s3: S3, proxy: ConnectProxy) -> None:
    there = s3_place(s3, endpoint=f"http://{ADDRESS}:9000")
    assert (await open_store(there).get(PackageName("", "netlab.zip"), bytes_max=MIB)).data == DATA
    assert proxy.asked == [f"GET {there.endpoint}/{BUCKET}/netlab.zip"]


async def test_tls_to_a_store_goes_through_a_tunnel(proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//ann:secret@"))
    stores = open_store(ContentSettings(endpoint=f"https://{NAME}:9443", timeout_s=10))
    with pytest.raises(Unavailable):  # what answers there speaks no TLS
        await stores.get(PackageName("", "netlab.zip"), bytes_max=MIB)
    assert proxy.asked[0] == f"CONNECT {NAME}:9443"


@pytest.mark.parametrize(
    ("host", "no_proxy"), [("127.0.0.1", ""), (NAME, ".example.test"), (NAME, "*"), (NAME, f"{NAME}:9000")]
)
async def test_a_store_without_a_proxy(
    s3: S3, proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch, host: str, no_proxy: str
) -> None:
    """Loopback, and what NO_PROXY names with a port as well, which obstore by itself leads to the proxy."""
    monkeypatch.setenv("NO_PROXY", no_proxy)
    stores = open_store(s3_place(s3, endpoint=s3.url if host == "127.0.0.1" else f"http://{host}:9000"))
    if host == "127.0.0.1":
        assert (await stores.get(PackageName("", "netlab.zip"), bytes_max=MIB)).data == DATA
    else:
        with pytest.raises(Unavailable):  # nobody else knows the name
            await stores.get(PackageName("", "netlab.zip"), bytes_max=MIB)
    assert proxy.asked == []


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("refuses", r" through the proxy 127\.0\.0\.1:\d+ cannot be read: .* 407 Proxy Authentication Required"),
        ("is gone", r" through the proxy 127\.0\.0\.1:\d+ cannot be read: HTTP error"),
        ("is socks", "proxy socks5://127.0.0.1:1080: only http:// and https:// are supported"),
    ],
)
async def test_a_proxy_that_does_not_help_is_named(
    s3: S3, proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int, what: str, says: str
) -> None:
    place = proxy.url.partition("//")[2]
    other = {
        "refuses": f"http://ann:wrong-secret@{place}",
        "is gone": f"http://ann:secret@127.0.0.1:{unused_tcp_port}",
        "is socks": "socks5://ann:secret@127.0.0.1:1080",
    }
    monkeypatch.setenv("HTTP_PROXY", other[what])
    stores = open_store(s3_place(s3, endpoint=f"http://{NAME}:9000", timeout_s=10))
    with pytest.raises(Unavailable, match=says) as caught:
        await stores.get(PackageName("", "netlab.zip"), bytes_max=MIB)
    assert "secret" not in str(caught.value)


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


async def test_silent_store_meets_the_deadline_and_leaves_the_loop_running(silent: str) -> None:
    stores = open_store(ContentSettings(endpoint=silent, timeout_s=1.0))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    with pytest.raises((DeadlineExceeded, Unavailable), match=r"s3://content/netlab\.zip at"):
        await stores.get(PackageName("", "netlab.zip"), bytes_max=MIB)
    ticking.cancel()
    assert ticks >= 5


class Answering:
    """A server that sends one answer to every request and keeps the requests."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.asked = b""
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += await reader.readuntil(b"\r\n\r\n")
        writer.write(self.answer)
        await writer.drain()
        writer.close()


@pytest.fixture
async def answering(request: pytest.FixtureRequest) -> AsyncIterator[Answering]:
    made = Answering(request.param)
    async with await asyncio.start_server(made.handle, "127.0.0.1", 0) as server:
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield made


DENIED = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
FORBIDDEN = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(DENIED), DENIED)
DATE = b'Last-Modified: Sat, 21 Nov 2026 20:00:00 GMT\r\nETag: "1"\r\nConnection: close\r\n'
CUT = b"HTTP/1.1 200 OK\r\n%sContent-Length: 1000\r\n\r\nonly this" % DATE
ENDLESS = b"HTTP/1.1 200 OK\r\n%sContent-Length: 104857600\r\n\r\n" % DATE


@pytest.mark.parametrize("answering", [FORBIDDEN], indirect=True)
@pytest.mark.parametrize("signed", [True, False])
async def test_refused_keys(answering: Answering, signed: bool) -> None:  # noqa: FBT001 (a parameter of the table)
    keys = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY} if signed else {}
    stores = open_store(ContentSettings(endpoint=answering.url, **keys))
    with pytest.raises(Forbidden) as caught:
        await stores.get(PackageName("", "netlab.zip"), bytes_max=MIB)
    assert "may not be read: AccessDenied" in caught.value.message
    assert (ACCESS_KEY.encode() in answering.asked) is signed
    assert SECRET_KEY not in str(caught.value)
    assert SECRET_KEY not in repr(stores._place)


@pytest.mark.parametrize("answering", [CUT], indirect=True)
async def test_download_that_breaks_off_is_no_package(answering: Answering) -> None:
    stores = open_store(ContentSettings(endpoint=answering.url, timeout_s=5))
    with pytest.raises((Unavailable, DeadlineExceeded)):
        await stores.get(PackageName("", "netlab.zip"), bytes_max=MIB)


@pytest.mark.parametrize("answering", [ENDLESS], indirect=True)
async def test_hundred_megabytes_are_refused_before_they_are_sent(answering: Answering) -> None:
    stores = open_store(ContentSettings(endpoint=answering.url, timeout_s=5))
    with pytest.raises(InputError, match=r"PackageTooLarge: .* has 104857600 bytes"):
        await stores.get(PackageName("", "netlab.zip"), bytes_max=20 * MIB)

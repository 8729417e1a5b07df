"""Packages on their way to definitions: got once, asked for again only where that may help."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.s3 import S3, package, s3_server
from tests.support.topologies import topology
from vkprovider.labs.content.objects import open_store
from vkprovider.labs.content.parsing import shared_parser
from vkprovider.labs.content.spi import PackageName
from vkprovider.labs.controllers.definition.packages import Fetched, PackageRequest, Packages
from vkprovider.labs.settings.services import ContentSettings, PackageSettings
from vkprovider.platform.kube.queue import KeyedQueue

TEXT = topology({"h0": "alpine"})
WANT = PackageRequest("uid", 1, "", "source", PackageName("", "netlab.zip"), "1.0")


class Definition:
    """A definition that asks for its package whenever there is news of it."""

    def __init__(self, place: ContentSettings) -> None:
        self.news = asyncio.Event()
        self.queue: KeyedQueue[str] = KeyedQueue(name="packages", workers=2, backoff_s=(1.0, 60.0))
        limits = PackageSettings(package_bytes_max=10_000)
        self.packages = Packages(open_store(place), shared_parser(), limits, self.queue, lambda _: self.news.set())

    async def until(self, condition: Callable[[Fetched], object], want: PackageRequest = WANT) -> Fetched:
        async with asyncio.timeout(30):
            while not condition(found := self.packages.get("netlab", want)):
                self.news.clear()
                await self.news.wait()
        return found


@asynccontextmanager
async def running(place: ContentSettings) -> AsyncIterator[Definition]:
    definition = Definition(place)
    queue = asyncio.create_task(definition.queue.run(definition.packages.fetch))
    yield definition
    queue.cancel()
    await asyncio.wait([queue])


def final(found: Fetched) -> bool:
    return found.final


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "netlab.zip").write_bytes(package({"cml.yaml": TEXT}))
    return tmp_path


async def test_package_comes_once_and_stays_until_it_is_forgotten(folder: Path) -> None:
    async with running(ContentSettings(url=folder.as_uri())) as definition:
        assert definition.packages.get("netlab", WANT) == Fetched()
        found = await definition.until(final)
        assert found.package is not None
        assert (found.package.version, found.package.text) == ("1.0", TEXT)
        (folder / "netlab.zip").unlink()
        assert definition.packages.get("netlab", WANT) is found
        definition.packages.forget("netlab")
        assert (await definition.until(final)).fault is not None


async def test_other_want_gets_its_own_package(folder: Path) -> None:
    async with running(ContentSettings(url=folder.as_uri())) as definition:
        await definition.until(final)
        (folder / "netlab.zip").write_bytes(package({"cml.yaml": TEXT, "version": "2.0"}))
        found = await definition.until(final, replace(WANT, request="again"))
        assert found.package is not None
        assert found.package.version == "2.0"


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "PackageNotFound"), (b"no zip", "PackageInvalid"), (bytes(10_001), "PackageTooLarge")],
)
async def test_package_that_cannot_be_taken_is_not_asked_for_again(
    folder: Path, content: bytes | None, reason: str
) -> None:
    (folder / "netlab.zip").unlink()
    if content is not None:
        (folder / "netlab.zip").write_bytes(content)
    async with running(ContentSettings(url=folder.as_uri())) as definition:
        found = await definition.until(final)
        assert found.fault is not None
        assert found.fault.reason == reason
        runs = definition.queue.runs_total
        (folder / "netlab.zip").write_bytes(package({"cml.yaml": TEXT}))
        assert definition.packages.get("netlab", WANT) is found
        assert await definition.queue.drain(1)
        assert definition.queue.runs_total == runs


async def test_store_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    with s3_server(tmp_path / "first") as first:
        port = int(first.url.rpartition(":")[2])
    place = ContentSettings(endpoint=first.url, access_key="a", secret_key="b")
    async with running(place) as definition:
        found = await definition.until(lambda found: found.fault)
        assert found.fault is not None
        assert (found.fault.reason, found.final) == ("ContentStoreUnavailable", False)
        with s3_server(tmp_path / "second", port) as second:
            second.put("netlab.zip", package({"cml.yaml": TEXT}))
            found = await definition.until(final)
            assert found.package is not None


async def test_packages_of_many_definitions_arrive(s3: S3) -> None:
    keys = [f"many-{n}.zip" for n in range(5)]
    for key in keys:
        s3.put(key, package({"cml.yaml": TEXT}))
    arrived: dict[str, asyncio.Event] = {key: asyncio.Event() for key in keys}
    place = ContentSettings(endpoint=s3.url, access_key="a", secret_key="b")
    fetches: KeyedQueue[str] = KeyedQueue(name="packages", workers=2)
    parser, limits = shared_parser(), PackageSettings()
    packages = Packages(open_store(place), parser, limits, fetches, lambda name: arrived[name].set())
    queue = asyncio.create_task(fetches.run(packages.fetch))
    waits: list[Awaitable[object]] = []
    for key in keys:
        packages.get(key, replace(WANT, name=PackageName("", key)))
        waits.append(arrived[key].wait())
    async with asyncio.timeout(30):
        await asyncio.gather(*waits)
    assert all(packages.get(key, replace(WANT, name=PackageName("", key))).package for key in keys)
    queue.cancel()
    await asyncio.wait([queue])

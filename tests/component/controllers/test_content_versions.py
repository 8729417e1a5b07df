"""Which stored versions stay and which go, on the real API server and by a clock that the test turns."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.component.controllers.parts import Clock, context
from tests.support.apiserver import CONFIG_MAPS, GROUP, Admin
from tests.support.topologies import definition, topology
from tests.unit.labs.builders import claim
from vkprovider.lablet import names
from vkprovider.lablet.models.definition import parse_definition_spec
from vkprovider.labs.content.parsing import shared_parser
from vkprovider.labs.controllers.definition.versions import Versions
from vkprovider.labs.pure.claims import document
from vkprovider.labs.pure.claims.document import StoredClaims
from vkprovider.labs.pure.definition.package import Package
from vkprovider.labs.pure.topology.resources import SHIPPED
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.objects import ConfigMap, CustomResource

WORKER = "w1"
CONTENT = f"{CONFIG_MAPS}?labelSelector={names.LABEL_COMPONENT}={names.COMPONENT_CONTENT}"


class Shelf:
    """The versions of one definition that no replica reconciles."""

    def __init__(self, admin: Admin, kube: KubeClient, found: dict[str, Any]) -> None:
        self.admin = admin
        self.resource = msgspec.convert(found, CustomResource)
        self.spec = parse_definition_spec(self.resource.spec)
        self.clock = Clock()
        self.clock.now = 0.0
        self.ctx = context(kube, now=self.clock)
        self.versions = self.fresh()
        self._seen: list[ConfigMap] = []

    def fresh(self) -> Versions:
        """Return the versions as a replica knows them that has just begun."""
        return Versions(self.ctx, shared_parser(), lambda: self._seen, SHIPPED, 50)

    async def look(self) -> list[ConfigMap]:
        """See what is stored, as the watch of an informer does."""
        self._seen = msgspec.convert(await self.admin.items(CONTENT), list[ConfigMap])
        return self._seen

    async def on_server(self) -> list[str]:
        return sorted(item.metadata.annotations["vkprovider.io/version"] for item in await self.look())

    async def take(self, version: str, hosts: int = 1) -> tuple[str, bool]:
        """Make a version current; return its digest, and whether that is news."""
        text = topology({f"h{n}": "alpine" for n in range(hosts)})
        await self.look()
        content, news = await self.versions.adopt(self.resource, self.spec, Package(version, text), "")
        return content.digest, news

    async def sorted(self, versions: Versions | None = None) -> tuple[list[str], list[str]]:
        await self.look()
        kept, dropped = await (versions or self.versions).sort(self.resource, self.spec)
        return [c.version for c in kept], [c.version for c in dropped]

    async def drop(self, at_s: float) -> float:
        self.clock.now = at_s
        await self.look()
        _, dropped = await self.versions.sort(self.resource, self.spec)
        return await self.versions.drop(dropped)

    async def claim(self, *digests: str, installation: str = "inst") -> None:
        """Have lablets on a worker that run these contents."""
        rows = {f"pod-{n}": claim(pod_uid=f"pod-{n}", digest=digest) for n, digest in enumerate(digests)}
        data, binary = document.write(StoredClaims(rows), worker=WORKER, installation="inst")
        metadata = {
            "name": names.claims_name(WORKER),
            "labels": {names.LABEL_COMPONENT: names.COMPONENT_CLAIMS},
            "annotations": {wellknown.ANNOTATION_INSTALLATION: installation},
        }
        await self.admin.delete(f"{CONFIG_MAPS}/{names.claims_name(WORKER)}")
        await self.admin.create(CONFIG_MAPS, {"metadata": metadata, "data": data, "binaryData": binary})


@pytest.fixture
async def shelf(admin: Admin, real_kube: KubeClient) -> AsyncIterator[Shelf]:
    path = f"{GROUP}/labletdefinitions"
    yield Shelf(admin, real_kube, await admin.create(path, definition("shelf", keepVersions=2)))
    await admin.delete(f"{path}/shelf")


async def test_version_that_nobody_may_run_goes_when_nobody_does(shelf: Shelf) -> None:
    """R000-082: what runs keeps its content; the last ones stay whether they run or not."""
    digests = [(await shelf.take(f"{n}.0", n))[0] for n in range(1, 5)]
    assert await shelf.sorted() == (["4.0", "3.0"], ["2.0", "1.0"])
    await shelf.claim(digests[0])
    assert await shelf.drop(at_s=100) == 60, "a claim on it may just be on its way"
    assert await shelf.drop(at_s=130) == 30
    assert await shelf.on_server() == ["1.0", "2.0", "3.0", "4.0"]
    await shelf.drop(at_s=161)
    assert await shelf.on_server() == ["1.0", "3.0", "4.0"]
    assert digests[0] in shelf.versions.contents
    await shelf.claim()
    await shelf.drop(at_s=222)
    assert await shelf.on_server() == ["3.0", "4.0"]
    assert set(shelf.versions.contents) == set(digests[2:])


async def test_nothing_goes_while_claims_cannot_be_read(shelf: Shelf) -> None:
    for n in range(1, 4):
        await shelf.take(f"{n}.0", n)
    await shelf.claim(installation="somebody-else")
    await shelf.drop(at_s=100)
    await shelf.drop(at_s=200)
    assert await shelf.on_server() == ["1.0", "2.0", "3.0"]


async def test_version_that_is_named_again_is_not_dropped(shelf: Shelf) -> None:
    for n in range(1, 4):
        await shelf.take(f"{n}.0", n)
    await shelf.drop(at_s=100)
    assert (await shelf.take("1.0", 1))[1]
    assert await shelf.sorted() == (["1.0", "3.0"], ["2.0"])
    await shelf.drop(at_s=161)
    assert await shelf.on_server() == ["1.0", "2.0", "3.0"], "2.0 was named until a moment ago"
    await shelf.drop(at_s=222)
    assert await shelf.on_server() == ["1.0", "3.0"]


async def test_earlier_version_becomes_current_without_another_object(shelf: Shelf) -> None:
    first = await shelf.take("1.0")
    assert first[1]
    await shelf.take("2.0")
    names_before = {item.metadata.name: item.metadata.uid for item in await shelf.look()}
    assert await shelf.take("1.0") == first
    assert await shelf.take("1.0") == (first[0], False)
    assert {item.metadata.name: item.metadata.uid for item in await shelf.look()} == names_before
    kept, _ = await shelf.sorted(shelf.fresh())
    assert kept == ["1.0", "2.0"], "who reads it afresh agrees"


async def test_replica_that_only_follows_sees_an_earlier_version_come_back(shelf: Shelf) -> None:
    following = shelf.fresh()
    await shelf.take("1.0")
    await shelf.take("2.0")
    assert (await shelf.sorted(following))[0] == ["2.0", "1.0"]
    await shelf.take("1.0")
    assert (await shelf.sorted(following))[0] == ["1.0", "2.0"]


async def test_content_that_cannot_be_taken_leaves_everything_as_it_is(shelf: Shelf) -> None:
    """R000-078."""
    await shelf.take("1.0")
    for text, files, reason in (
        ("no topology", {}, "TopologyInvalid"),
        (topology({"h0": "mine"}), {}, "ResourcesUnknown"),
        (topology({"h0": "alpine"}), {"devices.yaml": "- label: h1"}, "PackageInvalid"),
    ):
        with pytest.raises(InputError, match=reason):
            await shelf.versions.adopt(shelf.resource, shelf.spec, Package("2.0", text, files), "")
    assert (await shelf.on_server(), await shelf.sorted()) == (["1.0"], (["1.0"], []))

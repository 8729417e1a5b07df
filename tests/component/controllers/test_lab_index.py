"""Whose a lab is, told from the worker's own answers, on a null worker."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tests.component.cml.conftest import MiniCml, Secret, drop, reply, serving
from vkprovider.cml.factory import open_labs
from vkprovider.cml.null import NullLabs, NullWorker
from vkprovider.cml.spi import Labs
from vkprovider.lablet import names
from vkprovider.labs.controllers.worker.lab_index import LabIndex
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.platform.errors import Unavailable

UID = "0a1b2c3d-0000-4000-8000-000000000001"


@pytest.fixture
def worker() -> NullWorker:
    return NullWorker("w1")


@pytest.fixture
def finder(worker: NullWorker) -> LabIndex:
    return LabIndex("ours", worker.name, NullLabs(worker))


@asynccontextmanager
async def reading(mini: MiniCml) -> AsyncIterator[Labs]:
    """Open a connection for labs, which is closed with the block."""
    labs = open_labs(mini.url, Secret().read)
    try:
        yield labs
    finally:
        await labs.close()


def claim(lab_id: str = "") -> Claim:
    return Claim(UID, "n", "p", "netlab", UID, version="1", digest="d", lab_id=lab_id)


def add(worker: NullWorker, title: str, installation: str = "ours") -> str:
    return worker.add(title, f"lab: {{notes: {names.mark(installation)}}}")


async def scan(finder: LabIndex, worker: NullWorker, *claims: Claim, more: tuple[str, ...] = ()) -> None:
    """Sort what the worker has, and what an older list had."""
    await finder.scan(frozenset(worker.labs) | set(more), {one.pod_uid: one for one in claims})


async def found(finder: LabIndex, claims: Mapping[str, Claim] | None = None) -> list[str]:
    """Return the ids of the labs that may be the claim's."""
    return [known.lab_id for known in await finder.find(claim(), claims or {})]


async def test_marked_lab_without_a_claim_is_told_of_when_two_lists_show_it(
    worker: NullWorker, finder: LabIndex
) -> None:
    saved = add(worker, "a saved copy")
    await scan(finder, worker)
    assert finder.unclaimed == {}
    for _ in range(2):
        await scan(finder, worker)
        assert (finder.unclaimed, finder.foreign) == ({saved: "a saved copy"}, 0)
    del worker.labs[saved]
    await scan(finder, worker)
    assert finder.unclaimed == {}


async def test_lab_that_went_with_its_claim_after_the_list_was_asked_for_is_nobodys(
    worker: NullWorker, finder: LabIndex
) -> None:
    searched = claim()
    lab = add(worker, searched.title)
    assert await found(finder, {UID: searched}) == [lab]  # a successor looks for it, and knows it from then on
    await scan(finder, worker, claim(lab))
    del worker.labs[lab]
    await scan(finder, worker, more=(lab,))
    assert (finder.unclaimed, finder.foreign) == ({}, 0)
    await scan(finder, worker)
    assert (finder.unclaimed, finder.foreign) == ({}, 0)


async def test_lab_that_was_never_looked_at_and_is_gone_is_not_foreign(worker: NullWorker, finder: LabIndex) -> None:
    theirs = add(worker, "homework", "another installation")
    await scan(finder, worker, more=("gone-by-now",))
    assert finder.foreign == 1
    assert set(worker.labs) == {theirs}


async def test_more_labs_than_are_looked_at_in_one_pass_are_foreign_until_they_are(
    worker: NullWorker, finder: LabIndex
) -> None:
    mine = claim()
    lab = add(worker, mine.title)
    for number in range(70):
        add(worker, f"homework {number}", "another installation")
    await scan(finder, worker, claim(lab))
    assert finder.foreign == 70


async def test_ports_of_unclaimed_labs_are_all_known_once_every_lab_was_looked_at() -> None:
    """Lablets with ports wait for it; what cannot be read was looked at, and the next connection knows the rest."""
    async with serving(MiniCml()) as mini, reading(mini) as labs:
        finder = LabIndex("ours", "w1", labs)
        ids = frozenset(f"lab-{number}" for number in range(70))
        for number, lab_id in enumerate(sorted(ids)):
            lab(mini, lab_id, "a saved copy", "ours")
            tags = f'["serial:{2000 + number}"]'
            node = f'[{{"id": "n", "label": "r1", "node_definition": "iosv", "state": "BOOTED", "tags": {tags}}}]'
            mini.replies[f"/labs/{lab_id}/nodes"] = reply(200, node)
        mini.replies["/labs/lab-7"] = reply(403, '{"code": 403, "description": "Access denied"}')
        looked = list[tuple[bool, int]]()
        for _ in range(4):
            await finder.scan(ids, {})
            looked.append((finder.examined, len(finder.ports)))
        assert [examined for examined, _ in looked] == [False, False, True, True]
        assert looked[1][1] < looked[2][1] == looked[3][1] == 69
        read = len(mini.seen)
        finder.reconnect(again := open_labs(mini.url, Secret().read))
        await finder.scan(ids, {})
        assert len(mini.seen) == read
        await finder.scan(ids | {f"new-{number}" for number in range(40)}, {})
        assert not finder.examined
        await again.close()


async def test_no_lab_with_the_title_of_a_claims_lab_is_removed(worker: NullWorker, finder: LabIndex) -> None:
    """A wiped copy looks as if it had never been started."""
    named = add(worker, claim().title)
    fresh, started = add(worker, claim().title), add(worker, claim().title)
    worker.labs[started].state = "STARTED"
    for _ in range(2):
        await scan(finder, worker, claim(named))
    assert set(worker.labs) == {named, fresh, started}
    assert set(finder.unclaimed) == {fresh, started}


def lab(mini: MiniCml, lab_id: str, title: str, installation: str = "another") -> None:
    notes = names.mark(installation)
    text = f'{{"id": "{lab_id}", "lab_title": "{title}", "lab_notes": "{notes}", "state": "STARTED", "node_count": 1}}'
    mini.replies[f"/labs/{lab_id}"] = reply(200, text)
    mini.replies[f"/labs/{lab_id}/nodes"] = reply(200, "[]")


async def test_one_lab_that_cannot_be_read_counts_as_foreign_and_harms_nobody() -> None:
    async with serving(MiniCml()) as mini, reading(mini) as labs:
        finder = LabIndex("ours", "w1", labs)
        lab(mini, "good", "homework")
        mini.replies["/labs/broken"] = reply(500, '{"code": 500, "description": "Internal Server Error"}')
        for _ in range(2):
            await finder.scan(frozenset({"good", "broken"}), {})
            assert (finder.foreign, finder.unclaimed) == (2, {})
        mini.replies["/labs"] = reply(200, '["good", "broken"]')
        with pytest.raises(Unavailable):
            await finder.find(claim(), {})  # it may be the one
        lab(mini, "broken", claim().title, "ours")
        assert await found(finder) == ["broken"]
        assert mini.count("GET /labs/good") == 1, "what was learned beside the broken one stays"


async def test_labs_of_which_nothing_was_heard_were_not_looked_at_until_they_are_silent_again() -> None:
    """The first time it may be the worker that is silent, about labs whose ports nobody knows then."""
    async with serving(MiniCml()) as mini, reading(mini) as labs:
        finder, ids = LabIndex("ours", "w1", labs), frozenset({"lost", "good"})
        lab(mini, "good", "homework")
        mini.replies["/labs"] = reply(200, '["lost", "good"]')
        mini.replies["/labs/lost"] = drop
        with pytest.raises(Unavailable, match="lab lost"):
            await finder.marked(strict=False)
        assert await finder.unknown_to({}, strict=False) == {}
        assert finder.foreign == 0
        finder = LabIndex("ours", "w1", labs)
        looked = list[bool]()
        for _ in range(3):
            await finder.scan(ids, {})
            looked.append(finder.examined)
        assert (looked, finder.foreign) == ([False, True, True], 2)


async def test_lab_that_another_look_has_read_is_known_whatever_becomes_of_the_first() -> None:
    async with serving(MiniCml()) as mini, reading(mini) as labs:
        finder = LabIndex("ours", "w1", labs)
        lab(mini, "late", "homework")
        mini.replies["/labs"] = reply(200, '["late"]')
        at_once, asked, released = mini.replies["/labs/late"], asyncio.Event(), asyncio.Event()

        async def late(request: web.Request) -> web.StreamResponse:
            mini.replies["/labs/late"] = at_once
            asked.set()
            await released.wait()
            return await drop(request)

        mini.replies["/labs/late"] = late
        looking = asyncio.create_task(finder.scan(frozenset({"late"}), {}))
        await asked.wait()
        assert await finder.unknown_to({}, strict=False) == {}
        released.set()
        await looking
        assert (finder.examined, finder.foreign) == (True, 1)
        assert await found(finder) == []


async def test_many_that_look_at_once_read_each_lab_once() -> None:
    async with serving(MiniCml()) as mini, reading(mini) as labs:
        finder = LabIndex("ours", "w1", labs)
        ids = [f"lab-{number}" for number in range(20)]
        for lab_id in ids:
            lab(mini, lab_id, "homework")
        mini.replies["/labs"] = reply(200, str(ids).replace("'", '"'))
        assert await asyncio.gather(*(found(finder) for _ in range(30))) == [[]] * 30
        reads = Counter(line for line in mini.seen if line.startswith("GET /labs/"))
        assert set(reads.values()) == {1}

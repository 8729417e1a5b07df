"""A write of an object that is followed is sent once, until the watch shows what became of it."""

from vkprovider.mux.effects.store import Writes
from vkprovider.platform.kube.resources import PartialObject
from vkprovider.platform.objects import Metadata

NAME = "team/mux-1"
OBJECT = PartialObject(Metadata("mux-1", namespace="team"))


async def test_what_was_written_is_not_written_again_before_the_watch_shows_it() -> None:
    sent: list[str] = []

    async def call() -> None:
        sent.append("create")

    writes = Writes(dry=False)
    for _ in range(2):
        await writes.send_once("create", None, NAME, {}, call)
    assert len(sent) == 1
    writes.seen(None, OBJECT)
    await writes.send_once("create", None, NAME, {}, call)
    assert len(sent) == 2


async def test_what_came_and_went_before_the_answer_is_written_again() -> None:
    sent: list[str] = []
    writes = Writes(dry=False)

    async def call() -> None:
        sent.append("create")
        writes.seen(None, OBJECT)
        writes.seen(OBJECT, None)

    for _ in range(2):
        await writes.send_once("create", None, NAME, {}, call)
    assert len(sent) == 2

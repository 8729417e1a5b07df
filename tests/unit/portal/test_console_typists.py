"""Who types at a console, as the provider's lines and the sessions of a replica show it."""

import asyncio
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.labs.pure.console.writers import LEFT, RETURNED, TAKEN
from vkprovider.portal.web.consoles.frames import Mode
from vkprovider.portal.web.consoles.opening import ConsoleTarget, Opening
from vkprovider.portal.web.consoles.typists import BrowserSession, NoticeReader, TypistNotice, Typists

R1 = ConsoleTarget("team-1", "p-1", "lab", "r1")
NOON = 1_764_331_200.0
LINES = {TAKEN: TypistNotice.TAKEN, RETURNED: TypistNotice.RETURNED, LEFT: TypistNotice.LEFT}


@given(st.lists(st.sampled_from([*LINES]), max_size=5), st.lists(st.integers(0, 700), max_size=20))
def test_a_line_of_the_provider_is_found_wherever_the_output_is_cut(lines: list[str], cuts: list[int]) -> None:
    output = "".join(f"r1>show clock\r\n*12:00:00\r\nr1>\r\n[{line}]\r\n" for line in lines).encode()
    places = [0, *sorted(cut % (len(output) + 1) for cut in cuts), len(output)]
    reader, found = NoticeReader(), list[TypistNotice]()
    for start, end in itertools.pairwise(places):
        if (notice := reader.feed(output[start:end])) is not None:
            found.append(notice)
    assert found[-1:] == [LINES[line] for line in lines[-1:]]
    assert len(found) <= len(lines), "none is found twice"


class Room:
    """The sessions of a replica."""

    def __init__(self) -> None:
        self.now = NOON
        self.typists = Typists(lambda: self.now)

    def told(self, session: BrowserSession) -> tuple[bool, str, str]:
        message = json.loads(self.typists.message(R1, session))
        return message["you"], message["who"], message["since"]


async def test_each_session_is_told_who_types_and_since_when() -> None:
    room = Room()
    async with (
        room.typists.session(R1, Opening("oidc:ann", "ann", Mode.TYPE)) as ann,
        room.typists.session(R1, Opening("oidc:eve", "eve", Mode.WATCH)) as eve,
    ):
        assert room.typists.message(R1, ann) == "", "the provider may refuse it yet"
        assert room.told(eve) == (False, "", "")
        room.typists.note(R1, ann, types=True)
        assert room.told(ann) == (True, "", "2025-11-28T12:00:00Z")
        assert room.told(eve) == (False, "ann", "2025-11-28T12:00:00Z")
        room.now += 60
        async with room.typists.session(R1, Opening("oidc:ben", "ben", Mode.TAKE_OVER)) as ben:
            room.typists.note(R1, ann, types=False)
            assert room.told(ann) == (False, "", "2025-11-28T12:01:00Z"), "of kubectl, or at another replica"
            eve.changed.clear()
            room.typists.note(R1, ben, types=True)
            assert eve.changed.is_set()
            assert room.told(ann) == room.told(eve) == (False, "ben", "2025-11-28T12:01:00Z")
        assert room.told(eve) == (False, "", "")


async def test_who_watches_is_told_that_an_unknown_session_has_left_until_somebody_types_here() -> None:
    room = Room()
    async with (
        room.typists.session(R1, Opening("oidc:eve", "eve", Mode.WATCH)) as eve,
        room.typists.session(R1, Opening("oidc:fay", "fay", Mode.WATCH)),
    ):
        eve.changed.clear()
        room.typists.note_left(eve)
        assert eve.changed.is_set()
        left = {"type": "typist", "you": False, "who": "", "since": "", "left": "2025-11-28T12:00:00Z"}
        assert json.loads(room.typists.message(R1, eve)) == left
        room.now += 60
        async with room.typists.session(R1, Opening("oidc:ann", "ann", Mode.TYPE)) as ann:
            room.typists.note(R1, ann, types=True)
            assert room.told(eve) == (False, "ann", "2025-11-28T12:01:00Z")
            room.typists.note(R1, ann, types=False)
            assert json.loads(room.typists.message(R1, eve))["left"] == "", "somebody took over from ann"


async def test_an_earlier_session_of_the_same_person_gives_way_and_comes_back_by_no_reconnection() -> None:
    room = Room()
    first = Opening("oidc:ann", "ann", Mode.TYPE)
    async with room.typists.session(R1, first) as old:
        pass  # its connection broke
    again = first._replace(again=old.began)
    assert not room.typists.has_moved(R1, again), "nobody came meanwhile"
    room.now += 5
    async with room.typists.session(R1, again) as old:
        room.now += 5
        entering = asyncio.create_task(_within(room, first))
        async with asyncio.timeout(5):
            await old.moved.wait()
    new = await entering
    assert room.typists.has_moved(R1, first._replace(again=old.began)), "another tab of ann's types now"
    assert not room.typists.has_moved(R1, first), "who opens it by hand has it"
    assert not room.typists.has_moved(R1, Opening("oidc:ben", "ben", Mode.TYPE, again=NOON))
    new.over.set()


async def _within(room: Room, opening: Opening) -> BrowserSession:
    """Enter a session, which goes on."""
    return await room.typists.session(R1, opening).__aenter__()


@pytest.mark.parametrize("mode", [Mode.TYPE, Mode.TAKE_OVER])
async def test_who_watches_is_moved_by_nobody(mode: Mode) -> None:
    room = Room()
    async with (
        room.typists.session(R1, Opening("oidc:ann", "ann", Mode.WATCH)) as watcher,
        room.typists.session(R1, Opening("oidc:ann", "ann", mode)),
    ):
        assert not watcher.moved.is_set()

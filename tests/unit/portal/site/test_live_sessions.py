"""The end of a session ends what is open of it, and nothing else; a right that is still there does not matter."""

import asyncio
import time

from vkprovider.platform.http.open import OpenLogins, ReviewTimes
from vkprovider.platform.rights import Right, User
from vkprovider.portal.api.callers import KnownCaller, lab_right
from vkprovider.portal.service.requests import LabCaller
from vkprovider.portal.web.cookie import LoginSession
from vkprovider.portal.web.visitors import Visitor, VisitorReviews

USE = lab_right("use", "portal", "alice")


def visitor(session: str, ends_at: float | None) -> Visitor:
    known = KnownCaller(User("alice"), LabCaller("alice", "alice", (), "token"))
    return Visitor(known, "csrf", "token", session=session, ends_at=ends_at)


async def yes(visitor: Visitor, right: Right) -> bool:  # noqa: ARG001 (as an API server has it)
    return True


async def test_a_session_that_is_over_ends_what_is_open_of_it_and_wakes_it() -> None:
    reviews, wake = VisitorReviews(yes), asyncio.Event()
    soon, later = visitor("one", time.time() + 0.2), visitor("two", time.time() + 3600)
    async with (
        reviews.holding(soon, USE, wake) as first,
        reviews.holding(soon, lab_right("teach", "net101")) as second,
        reviews.holding(later, USE) as other,
        reviews.holding(visitor("ingress:alice", None), USE) as without,
    ):
        async with asyncio.timeout(5):
            await asyncio.gather(first.wait(), second.wait(), wake.wait())
        assert not other.is_set()
        assert not without.is_set()
    assert len(reviews.sessions) == 0


async def test_a_session_that_was_over_before_ends_at_once() -> None:
    async with VisitorReviews(yes).holding(visitor("one", time.time() - 60), USE) as over:
        await asyncio.wait_for(over.wait(), 5)


async def test_who_logs_out_ends_all_of_one_session() -> None:
    reviews = VisitorReviews(yes)
    mine, phone = visitor("one", time.time() + 3600), visitor("two", time.time() + 3600)
    async with (
        reviews.holding(mine, USE) as first,
        reviews.holding(mine, USE) as second,
        reviews.holding(phone, USE) as other,
    ):
        reviews.sessions.end("one")
        assert first.is_set()
        assert second.is_set()
        assert not other.is_set()
        reviews.sessions.end("one")
        reviews.sessions.end("unknown")
    assert len(reviews.sessions) == 0


async def test_a_session_that_goes_on_is_asked_for_with_its_next_token() -> None:
    asked: list[str] = []

    async def ask(visitor: Visitor, right: Right) -> bool:  # noqa: ARG001 (as an API server has it)
        asked.append(visitor.token)
        return visitor.token != "third"

    reviews = VisitorReviews(ask, ReviewTimes(first_s=0.05, every_s=0.05))
    first = visitor("one", time.time() + 0.3)
    async with reviews.holding(first, USE) as over:
        reviews.renewed(LoginSession("second", time.time() + 3600, "one", "refresh"))
        reviews.renewed(LoginSession("other", time.time() + 3600, "two", "refresh"))
        await asyncio.sleep(0.6)
        assert not over.is_set(), "the end of its first token is none of the session"
        assert set(asked) == {"second"}
        async with reviews.holding(first, lab_right("teach", "net101")) as late:
            assert not late.is_set(), "a request that was on its way with the old cookie"
        reviews.renewed(LoginSession("third", time.time() + 7200, "one", "refresh"))
        async with asyncio.timeout(5):
            await over.wait()
    assert len(reviews.sessions) == 0


async def test_a_stream_that_closes_leaves_what_else_is_open_of_its_session() -> None:
    sessions = OpenLogins(time.time)
    mine, over = visitor("one", time.time() + 0.3), asyncio.Event()
    with sessions.during(mine.session, mine.token, mine.ends_at, over):
        with sessions.during(mine.session, mine.token, mine.ends_at, asyncio.Event()):
            assert len(sessions) == 1
        async with asyncio.timeout(5):
            await over.wait()

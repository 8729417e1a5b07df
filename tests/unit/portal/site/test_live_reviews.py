"""Reviews: one for each caller and right and minute, for all that is open; unknown ends nothing."""

import asyncio

import pytest

from tests.component.controllers.looking import when
from vkprovider.platform.errors import InputError, Unavailable
from vkprovider.platform.http.answers import ApiServerUnavailable, NotAllowed, TokenInvalid
from vkprovider.platform.http.open import ReviewTimes
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.rights import Right, User
from vkprovider.portal.api.callers import KnownCaller, lab_right
from vkprovider.portal.service.requests import LabCaller
from vkprovider.portal.web.visitors import Visitor, VisitorReviews

SHORT = ReviewTimes(first_s=0.1, every_s=0.2, again_s=0.05)
USE = lab_right("use", "portal", "alice")


def visitor(name: str = "alice") -> Visitor:
    return Visitor(KnownCaller(User(name), LabCaller(name, name, (), f"{name}'s")), "csrf", f"{name}'s")


class Answers:
    """The API server's answers, and what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: bool | Exception = True

    async def ask(self, visitor: Visitor, right: Right) -> bool:
        self.asked.append(f"{visitor.known.of_cluster.username} {right}")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_all_that_is_open_of_a_caller_shares_a_review() -> None:
    answers = Answers()
    reviews = VisitorReviews(answers.ask, SHORT)
    async with reviews.holding(visitor(), USE) as first, reviews.holding(visitor(), USE) as second:
        await when(lambda: len(answers.asked) >= 2, "two reviews")
        assert set(answers.asked) == {"alice use userlabs.vkprovider.io"}
        assert not first.is_set()
        answers.answer = False
        await asyncio.gather(first.wait(), second.wait())
        asked = len(answers.asked)
        await asyncio.sleep(3 * SHORT.every_s)
        assert len(answers.asked) == asked
    assert reviews.answers_total["refused"] == 1


async def test_callers_and_rights_are_asked_for_apart() -> None:
    answers = Answers()
    reviews = VisitorReviews(answers.ask, SHORT)
    async with (
        reviews.holding(visitor(), USE),
        reviews.holding(visitor("bob"), USE),
        reviews.holding(visitor(), lab_right("teach", "net101")),
    ):
        await when(lambda: len(set(answers.asked)) == 3, "each caller and right")


async def test_what_else_they_need_ends_only_what_needs_it() -> None:
    answers, types = Answers(), [True]
    reviews = VisitorReviews(answers.ask, SHORT)
    async with (
        reviews.holding(visitor(), USE) as watching,
        reviews.holding(visitor(), USE, may=lambda: types[0]) as typing,
    ):
        await when(lambda: len(answers.asked) >= 4, "both are asked for")
        assert not typing.is_set()
        types[0] = False
        await typing.wait()
        asked = len(answers.asked)
        await when(lambda: len(answers.asked) > asked, "the other one goes on")
        assert not watching.is_set()


async def test_who_comes_back_within_the_minute_causes_no_further_review() -> None:
    answers = Answers()
    reviews = VisitorReviews(answers.ask, ReviewTimes(first_s=0.4, every_s=30, again_s=30))
    began = asyncio.get_running_loop().time()
    for _ in range(5):
        async with reviews.holding(visitor(), USE):
            await asyncio.sleep(0.05)
    async with reviews.holding(visitor(), USE):
        await when(lambda: answers.asked, "the review that was due")
    assert asyncio.get_running_loop().time() - began < 0.4 + 0.3
    async with reviews.holding(visitor(), USE):
        await asyncio.sleep(0.5)
    assert len(answers.asked) == 1


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("the API server is away"),
        ApiServerUnavailable("not now"),
        InputError(StartReason.KUBECONFIG_INVALID, "its CA cannot be read"),
        OSError(24, "Too many open files"),
        RuntimeError("a bug"),
    ],
)
async def test_while_nobody_can_be_asked_what_is_open_goes_on_and_is_asked_for_soon_again(error: Exception) -> None:
    answers = Answers()
    answers.answer = error
    reviews = VisitorReviews(answers.ask, SHORT)
    async with reviews.holding(visitor(), USE) as over:
        await when(lambda: reviews.answers_total["unknown"] >= 3, "three tries")
        assert not over.is_set()
        answers.answer = False
        await asyncio.wait_for(over.wait(), 5)


@pytest.mark.parametrize("error", [TokenInvalid("expired"), NotAllowed("no")])
async def test_a_token_that_is_known_no_more_ends_what_is_open_and_wakes_it(error: Exception) -> None:
    answers = Answers()
    reviews = VisitorReviews(answers.ask, SHORT)
    wake = asyncio.Event()
    async with reviews.holding(visitor(), USE, wake) as over:
        answers.answer = error
        await asyncio.wait_for(wake.wait(), 5)
        assert over.is_set()

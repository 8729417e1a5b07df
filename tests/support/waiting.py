"""Wait for conditions that nothing announces."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_STOOD_STILL_S = 1.0
"""A sleep that is so much too long was a pause of the machine, not of what is waited for."""


def until(predicate: Callable[[], T], within_s: float = 45.0, what: str = "", every_s: float = 0.1) -> T:
    """Return the first truthy answer of a predicate, at most `within_s` seconds from now.

    The limit only bounds a test that fails, so it is generous, unless it is a number that the product promises (such
    as 15 s from kill to taken over). A predicate may also assert: an AssertionError counts as "not yet", and is what
    the test shows in the end.

    Raises:
        AssertionError: If there is none in time.
    """
    deadline = time.monotonic() + within_s
    while True:
        failure, answer = None, None
        try:
            answer = predicate()
        except AssertionError as error:
            failure = error
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:g} s: {what or failure or f'still {answer!r}'}") from failure
        slept_at = time.monotonic()
        time.sleep(every_s)
        stood_still_s = time.monotonic() - slept_at - every_s
        if stood_still_s > _STOOD_STILL_S:  # the whole machine did: nobody had the time
            deadline += stood_still_s


def throughout(predicate: Callable[[], object], for_s: float, every_s: float = 0.1) -> None:
    """Assert that a predicate stays true for a while; for what must not happen."""
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        assert predicate()
        time.sleep(every_s)

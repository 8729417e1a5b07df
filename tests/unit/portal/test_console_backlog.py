"""Output that waits for a slow browser, fed and taken in any pieces."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.portal.web.consoles.frames import SKIPPED, WAITING_BYTES_MAX, Backlog

STEPS = st.lists(
    st.one_of(
        st.integers(1, 40_000).map(lambda count: ("feed", count)), st.tuples(st.just("take"), st.integers(0, 20_000))
    )
)


@given(STEPS)
def test_in_order_and_complete_as_long_as_it_fits(steps: list[tuple[str, int]]) -> None:
    backlog, fed, taken = Backlog(), b"", b""
    for does, count in steps:
        if does == "feed":
            piece = bytes((len(fed) + at) % 251 for at in range(count))
            if len(backlog) + count > WAITING_BYTES_MAX:
                return
            backlog.feed(piece)
            fed += piece
        else:
            piece = backlog.take(count)
            assert len(piece) == min(count, len(fed) - len(taken))
            taken += piece
        assert len(backlog) == len(fed) - len(taken)
    assert taken + backlog.take(len(fed)) == fed
    assert not backlog


@given(st.lists(st.integers(1, 32 * 1024), min_size=20, max_size=60))
def test_too_much_leaves_the_end_after_a_line_that_says_so(counts: list[int]) -> None:
    backlog, pieces = Backlog(), [bytes([at % 256]) * count for at, count in enumerate(counts * 3)]
    for piece in pieces:
        backlog.feed(piece)
        assert len(backlog) <= WAITING_BYTES_MAX
    whole = b"".join(pieces)
    left = backlog.take(WAITING_BYTES_MAX)
    if left != whole:
        assert left.startswith(SKIPPED)
        assert whole.endswith(left.removeprefix(SKIPPED))


@pytest.mark.parametrize("size", [1, 2, 100, 5_000, 1024 * 1024])
def test_it_takes_little_more_memory_than_it_has_bytes(size: int) -> None:
    """A device that echoes keys prints parts of a byte or two, of which each would be an object of its own."""
    tracemalloc.start()
    try:
        backlog = Backlog()
        for at in range(3 * WAITING_BYTES_MAX // (2 * size) + 1):
            backlog.feed(at.to_bytes(4, "little")[:1] * size)
        taken = sum(len(backlog.take(1000)) for _ in range(10))
        assert taken == 10_000
        backlog.feed(b"x" * 10_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2 * WAITING_BYTES_MAX


def test_a_part_that_is_too_long_by_itself_leaves_its_end() -> None:
    backlog = Backlog()
    backlog.feed(b"before")
    part = bytes(at % 251 for at in range(WAITING_BYTES_MAX + 1))
    backlog.feed(part)
    assert len(backlog) == WAITING_BYTES_MAX
    left = backlog.take(WAITING_BYTES_MAX)
    assert left.startswith(SKIPPED)
    assert part.endswith(left.removeprefix(SKIPPED))

"""Output that waits for a slow browser, fed and taken in any pieces."""

from hypothesis import given
from hypothesis import strategies as st

from vkprovider.portal.site.consoles.backlog import SKIPPED, WAITING_BYTES_MAX, Backlog

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

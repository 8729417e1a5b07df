"""What has to go of learners' stored work (who stores much gives first, the oldest first)."""

from hypothesis import given
from hypothesis import strategies as st

from vkprovider.labs.pure.lablet.leftovers import NAMESPACE_SHARE, StoredWork, surplus


def kept(namespace: str, at: int, size_bytes: int) -> StoredWork:
    return StoredWork(f"left-{namespace}-{at}", namespace, "p", "u", at, size_bytes, "1")


def test_the_oldest_of_the_namespace_that_uses_most_go() -> None:
    crowd = [kept("greedy", at, 10) for at in range(10)]
    small = [kept(f"n{n}", 0, 15) for n in range(4)]
    assert surplus([*crowd, *small], 1000) == []
    assert surplus([*crowd, *small], 120) == crowd[:7], "a namespace has a quarter"
    assert surplus(small, 59) == [small[3]]


def test_one_object_may_exceed_the_quarter_but_not_all() -> None:
    assert surplus([kept("a", 1, 60)], 100) == []
    assert surplus([kept("a", 1, 101)], 100) == [kept("a", 1, 101)]


@given(
    st.lists(st.builds(kept, st.sampled_from("abcdef"), st.integers(0, 50), st.integers(0, 40)), max_size=40),
    st.integers(1, 500),
)
def test_what_stays_fits_and_is_newer_than_what_goes(found: list[StoredWork], bytes_max: int) -> None:
    gone = surplus(found, bytes_max)
    stays = [one for one in found if one not in gone]
    assert sum(one.size_bytes for one in stays) <= bytes_max
    for namespace in {one.namespace for one in stays}:
        mine = [one for one in stays if one.namespace == namespace]
        assert len(mine) == 1 or sum(one.size_bytes for one in mine) <= bytes_max // NAMESPACE_SHARE
        assert all(one.at <= min(other.at for other in mine) for one in gone if one.namespace == namespace)

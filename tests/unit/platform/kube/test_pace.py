import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.platform.kube.flow import TokenBucket, TokenBuckets


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    bucket = TokenBucket(10, 3, now=Clock())
    assert [bucket.reserve() for _ in range(6)] == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


def test_tokens_come_back_but_never_more_than_the_burst() -> None:
    clock = Clock()
    bucket = TokenBucket(10, 2, now=clock)
    for _ in range(4):
        bucket.reserve()
    clock.now_s += 0.2
    assert bucket.reserve() == pytest.approx(0.1)
    clock.now_s += 1000
    assert [bucket.reserve() for _ in range(3)] == pytest.approx([0, 0, 0.1])


@given(st.lists(st.floats(0, 0.5), max_size=60), st.integers(1, 5))
def test_the_rate_is_kept_whenever_callers_come(pauses_s: list[float], burst: int) -> None:
    clock = Clock()
    bucket = TokenBucket(10, burst, now=clock)
    used: list[float] = []
    for pause_s in pauses_s:
        clock.now_s += pause_s
        used.append(clock.now_s + bucket.reserve())
    assert used == sorted(used)
    for first, start_s in enumerate(used):
        inside = sum(1 for at_s in used[first:] if at_s < start_s + 1)
        assert inside <= 10 + burst + 1


def test_each_key_has_a_bucket_of_its_own() -> None:
    clock = Clock()
    buckets: TokenBuckets[str] = TokenBuckets(1, 2, now=clock)
    assert [buckets.take("ann") for _ in range(3)] == [True, True, False]
    assert not buckets.has("ann")
    assert buckets.has("ben"), "who never asked has all tokens"
    assert buckets.take("ben")
    clock.now_s += 1
    assert buckets.has("ann"), "and to look takes none"
    assert [buckets.take("ann") for _ in range(2)] == [True, False]


def test_of_too_many_keys_the_most_silent_one_is_forgotten() -> None:
    buckets: TokenBuckets[int] = TokenBuckets(1, 1, now=Clock())
    assert buckets.take(0)
    assert buckets.take(1)
    assert not buckets.take(0)  # it is heard after the other one
    assert all(buckets.take(key) for key in range(2, 2001))
    assert not buckets.has(0)
    assert buckets.has(1), "its bucket is full again"

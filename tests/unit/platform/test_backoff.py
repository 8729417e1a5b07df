"""Back-off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.platform.backoff import delay_s


@given(st.integers(-5, 10_000), st.floats(0.01, 100), st.floats(0.01, 1000), st.floats(0, 1))
def test_a_delay_is_never_longer_than_its_cap(failures: int, first_s: float, cap_s: float, dice: float) -> None:
    delay = delay_s(failures, first_s=first_s, cap_s=cap_s, dice=dice)
    whole = delay_s(failures, first_s=first_s, cap_s=cap_s)
    assert delay_s(failures, first_s=first_s, cap_s=cap_s, dice=dice, floor=0.0) == pytest.approx(whole * dice)
    assert 0 <= whole / 2 <= delay <= whole <= cap_s
    assert (delay == 0) == (failures <= 0)
    assert whole <= delay_s(failures + 1, first_s=first_s, cap_s=cap_s)


@pytest.mark.parametrize(("failures", "delay"), [(0, 0), (1, 10), (2, 20), (3, 40), (5, 160), (6, 300), (99, 300)])
def test_delays_double(failures: int, delay: float) -> None:
    """R000-021, C16."""
    assert delay_s(failures, first_s=10, cap_s=300) == delay

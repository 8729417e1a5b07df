"""How many requests may be in flight: grows with quick answers, shrinks with refusals."""

from vkprovider.platform.kube.flow import MIN, QUICK_S, START, InFlightWindow

QUICK, SLOW = QUICK_S / 10, QUICK_S * 2


def test_each_quick_answer_admits_one_more_before_the_first_refusal() -> None:
    window = InFlightWindow(most=64)
    for _ in range(START):
        window.answered(QUICK, full=True)
    assert window.size == 2 * START
    for _ in range(START):
        window.answered(QUICK, full=True)
    assert window.size == 64


def test_each_window_of_quick_answers_admits_one_more_after_a_refusal() -> None:
    window = InFlightWindow(most=64)
    window.refused(sent_at=0.0, now=1.0)
    shrunk = window.size
    for _ in range(int(shrunk)):
        window.answered(QUICK, full=True)
    assert shrunk < window.size <= shrunk + 1
    for _ in range(10_000):
        window.answered(QUICK, full=True)
    assert window.size == 64


def test_slow_answers_and_unused_windows_leave_it_as_it_is() -> None:
    window = InFlightWindow(most=64)
    for _ in range(100):
        window.answered(SLOW, full=True)
        window.answered(QUICK, full=False)
    assert window.size == START


def test_refusals_of_one_burst_shrink_it_once() -> None:
    window = InFlightWindow(most=64)
    for moment in range(10):
        window.refused(sent_at=0.0, now=1.0 + moment / 10)
    assert window.size == START * 2 / 3


def test_it_never_falls_below_the_minimum_nor_beyond_its_bound() -> None:
    window = InFlightWindow(most=64)
    for moment in range(100):
        window.refused(sent_at=float(moment), now=moment + 0.5)
    assert window.size == MIN
    small = InFlightWindow(most=3)
    assert [small.admits(number) for number in (0, 2, 3)] == [True, True, False]
    small.refused(sent_at=0.0, now=1.0)
    assert small.admits(2)
    assert not small.admits(3)


def test_the_longest_time_asked_for_counts() -> None:
    window = InFlightWindow(most=64)
    window.refused(sent_at=0.0, now=1.0, after_s=5.0)
    window.refused(sent_at=0.0, now=2.0, after_s=1.0)
    assert window.closed_until == 6.0

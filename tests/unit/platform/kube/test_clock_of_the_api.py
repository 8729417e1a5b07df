"""The API server's clock by its answers: late or never, but never early, whatever the own clock and one answer say."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.machines import DAY_S, Machine
from vkprovider.platform.kube.clock import AGREE_AFTER_S, AGREE_WITHIN_S


@given(off_s=st.floats(-DAY_S, DAY_S), waits=st.lists(st.floats(0.1, 40.0), min_size=1, max_size=30), data=st.data())
def test_it_is_never_ahead_whatever_the_own_clock_says(off_s: float, waits: list[float], data: st.DataObject) -> None:
    machine = Machine(off_s)
    began = machine.up_s
    for wait_s in waits:
        machine.up_s += wait_s
        machine.hear(on_its_way_s=data.draw(st.floats(0.0, 1.4)))
        assert machine.true - AGREE_WITHIN_S <= machine.clock.wall() <= machine.true
        if machine.clock.is_sure():
            assert machine.up_s - began >= AGREE_AFTER_S
    assert abs(machine.clock.skew_s() - off_s) <= AGREE_WITHIN_S


def test_it_is_the_own_clock_before_the_first_answer_and_certain_of_nothing() -> None:
    machine = Machine(off_s=50.0)
    assert machine.clock.wall() == machine.true + 50.0
    assert not machine.clock.is_sure()
    assert machine.clock.skew_s() == 0.0
    for date in (None, "", "yesterday", "Thu, 99 Nov 2026 05:34:29 GMT"):
        machine.clock.note(date)
    assert machine.clock.wall() == machine.true + 50.0


def test_two_answers_that_agree_make_it_certain() -> None:
    machine = Machine()
    machine.hear()
    machine.up_s += AGREE_AFTER_S - 1
    machine.hear()
    assert not machine.clock.is_sure()
    machine.up_s += 1
    machine.hear()
    assert machine.clock.is_sure()


@given(wrong_s=st.floats(10.0, DAY_S) | st.floats(-DAY_S, -10.0))
def test_an_answer_of_another_clock_changes_nothing(wrong_s: float) -> None:
    """Of two API servers behind one address one has a wrong clock."""
    machine = Machine()
    machine.hear()
    for _ in range(20):
        machine.up_s += AGREE_AFTER_S
        machine.hear(wrong_s)
        machine.up_s += 1.0
        machine.hear()
        assert machine.true - AGREE_WITHIN_S <= machine.clock.wall() <= machine.true
    assert machine.clock.is_sure()


@given(wrong_s=st.floats(10.0, DAY_S) | st.floats(-DAY_S, -10.0))
def test_a_first_answer_that_was_wrong_is_given_up_before_it_is_certain(wrong_s: float) -> None:
    machine = Machine()
    machine.hear(wrong_s)
    for _ in range(4):
        machine.up_s += AGREE_AFTER_S / 2
        machine.hear()
    assert machine.clock.is_sure()
    assert machine.true - AGREE_WITHIN_S <= machine.clock.wall() <= machine.true


def test_a_server_whose_clock_is_set_is_believed_when_it_says_so_twice() -> None:
    machine = Machine()
    for _ in range(4):
        machine.hear()
        machine.up_s += 15.0
    machine.hear(-3600.0)
    assert abs(machine.clock.wall() - machine.true) <= AGREE_WITHIN_S
    machine.up_s += AGREE_AFTER_S
    machine.hear(-3600.0)
    assert abs(machine.clock.wall() - (machine.true - 3600.0)) <= AGREE_WITHIN_S
    assert machine.clock.is_sure()


def test_a_clock_that_is_slewed_is_followed() -> None:
    machine = Machine()
    slewed_s = 0.0
    for _ in range(200):
        machine.hear(slewed_s)
        machine.up_s += 10.0
        slewed_s -= 0.05
    assert abs(machine.clock.wall() - (machine.true + slewed_s)) <= AGREE_WITHIN_S + 4.0

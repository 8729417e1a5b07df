"""What goes between a browser's console and the portal, for any messages in any order."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from vkprovider.portal.web.consoles import frames
from vkprovider.portal.web.consoles.frames import (
    CLOSE_CODES,
    TYPED_BYTES_MAX,
    UNSHOWN_BYTES_MAX,
    BytesShown,
    ConsoleEnd,
    FrameError,
    OutputWindow,
    Typed,
    Why,
    parse,
)


class ConsoleHistory(RuleBasedStateMachine):
    """A browser that shows what it got, as late as it likes, and lies."""

    def __init__(self) -> None:
        super().__init__()
        self.window = OutputWindow()
        self.in_browser = 0

    @precondition(lambda self: self.window.room > 0)
    @rule(data=st.data())
    def send(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, self.window.room))
        self.window = self.window.after_sending(count)
        self.in_browser += count

    @rule(data=st.data())
    def show(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(0, self.in_browser))
        self.in_browser -= count
        self.window = self.window.after(BytesShown(self.window.shown + count))

    @rule(by=st.integers(1, 2**70))
    def lie(self, by: int) -> None:
        for total in (self.window.sent + by, self.window.shown - by):
            with pytest.raises(FrameError):
                self.window.after(BytesShown(total))

    @invariant()
    def the_browser_never_has_more_than_it_may(self) -> None:
        assert self.in_browser == self.window.sent - self.window.shown
        assert 0 <= self.in_browser <= UNSHOWN_BYTES_MAX
        assert self.window.room == UNSHOWN_BYTES_MAX - self.in_browser


TestConsoleHistory = ConsoleHistory.TestCase


@given(st.binary(max_size=1000))
def test_bytes_are_keys(data: bytes) -> None:
    assert parse(data) == Typed(data)


@given(st.integers(0, 2**53))
def test_an_acknowledgement_is_read(total: int) -> None:
    assert parse(json.dumps({"shown": total})) == BytesShown(total)


@given(st.one_of(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps)))
def test_any_other_text_is_refused_in_one_way(text: str) -> None:
    with pytest.raises(FrameError):
        parse(text)


@pytest.mark.parametrize(
    "text",
    ['{"shown": 1.5}', '{"shown": "1"}', '{"shown": true}', '{"shown": 1, "x": 2}', "{}", '{"shown": 9', "\ud800"],
)
def test_what_is_nearly_an_acknowledgement_is_refused(text: str) -> None:
    with pytest.raises(FrameError):
        parse(text)


def test_too_much_at_once_is_refused() -> None:
    assert parse(bytes(TYPED_BYTES_MAX)) == Typed(bytes(TYPED_BYTES_MAX))
    with pytest.raises(FrameError):
        parse(bytes(TYPED_BYTES_MAX + 1))
    with pytest.raises(FrameError):
        parse('{"shown": 1' + " " * 200 + "}")


def test_each_end_has_a_code_that_a_browser_accepts() -> None:
    assert set(CLOSE_CODES) == set(Why)
    assert len(set(CLOSE_CODES.values())) == len(Why)
    assert all(code in {1000, 1012} or 4000 <= code < 5000 for code in CLOSE_CODES.values())


def test_the_messages_of_the_portal() -> None:
    assert json.loads(frames.opened(watches=True, began=1.5)) == {"type": "open", "watches": True, "began": 1.5}
    typist = {"you": False, "who": "ann", "since": "2026-11-28T14:32:00Z", "left": ""}
    assert json.loads(frames.typist(**typist)) == {"type": "typist", **typist}  # type: ignore[arg-type]  # (as given)
    assert json.loads(frames.ended(ConsoleEnd(Why.IN_USE, "Ann's"))) == {
        "type": "end",
        "why": "in-use",
        "text": "Ann's",
    }

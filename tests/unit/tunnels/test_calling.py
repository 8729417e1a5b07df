"""When a caller repeats a request, and what it says when there is nobody to ask."""

from itertools import pairwise

import msgspec
import pytest

from tunnels import wire
from tunnels.base import ConnectFailed, ConnectionLost, RequestRefused
from tunnels.protocol import refusals
from tunnels.protocol.calling import DROPPED_S, RESEND_S, RESEND_S_MAX, Calling
from tunnels.protocol.presence import Failed, Send
from tunnels.wire import Goodbye, Hello, Request

HELLO = Hello(clock_ms=1000, silence_ms=600_000)
REQUEST = Request("op", 1, 0, "POST", "/labs")


def there() -> Calling:
    calling = Calling("w1")
    list(calling.received("a", HELLO, 0.0))
    return calling


def sends(calling: Calling, now_s: float) -> int:
    return sum(isinstance(output, Send) and output.op == "op" for output in calling.tick(now_s))


def test_a_request_is_repeated_at_growing_intervals_until_it_is_over() -> None:
    calling = there()
    assert len(list(calling.begin(REQUEST, b"", 900.0, 0.0))) == 1
    calling.left("op")
    repeated = [tenth / 10 for tenth in range(1, 1000) if sends(calling, tenth / 10)]
    pauses = [after - before for before, after in pairwise(repeated)]
    assert repeated[0] == RESEND_S
    assert pauses[0] == pytest.approx(2 * RESEND_S)
    assert max(pauses) == pytest.approx(RESEND_S_MAX)
    list(calling.end("op"))
    assert sends(calling, 200.0) == 0


def test_what_the_carrier_dropped_is_repeated_soon_and_was_not_sent() -> None:
    calling = there()
    list(calling.begin(REQUEST, b"", 900.0, 0.0))
    for number in range(1, 6):
        calling.dropped("op", DROPPED_S * (number - 1))
        assert not calling.was_sent("op")
        assert sends(calling, DROPPED_S * number) == 1


def test_what_the_agent_refuses_when_the_deadline_is_over_was_sent() -> None:
    """The refusal and the caller's own deadline come at the same time."""
    calling = there()
    list(calling.begin(REQUEST, b"", 4.0, 0.0))
    calling.left("op")
    [failed] = calling.received("a", refusals.refusal("op", refusals.EXPIRED, "too late"), 4.0)
    assert isinstance(failed, Failed)
    assert calling.was_sent("op")


def test_a_request_waits_for_an_agent_that_nobody_has_heard_of() -> None:
    calling = Calling("w1")
    assert list(calling.begin(REQUEST, b"", 60.0, 0.0)) == []
    assert calling.due_s() == float("inf")
    outputs = list(calling.received("a", HELLO, 5.0))
    [sent] = [output for output in outputs if isinstance(output, Send)]
    assert isinstance(sent.message, Request)
    assert sent.message.expires_ms == 1000 + 55_000, "by the agent's clock"


def test_an_agent_that_left_is_not_waited_for() -> None:
    calling = there()
    list(calling.received("a", Goodbye("shut down"), 1.0))
    with pytest.raises(ConnectFailed, match=r"w1: the agent has left \(shut down\)"):
        list(calling.begin(REQUEST, b"", 60.0, 1.0))


def test_a_command_that_a_leaving_agent_does_not_begin_waits_for_the_next_boot() -> None:
    calling = there()
    list(calling.begin(REQUEST, b"", 60.0, 0.0))
    calling.left("op")
    assert list(calling.received("a", refusals.refusal("op", refusals.LEAVING, "the agent ends"), 1.0)) == []
    assert not calling.was_sent("op")
    assert sends(calling, 30.0) == 0
    list(calling.received("a", Goodbye("shut down"), 30.0))
    outputs = list(calling.received("b", HELLO, 31.0))
    assert [output.boot for output in outputs if isinstance(output, Send) and output.op] == ["b"]


def test_a_command_that_was_sent_is_not_sent_to_another_boot() -> None:
    calling = there()
    list(calling.begin(msgspec.structs.replace(REQUEST, method="PUT"), b"", 60.0, 0.0))
    calling.left("op")
    list(calling.received("a", Goodbye("shut down"), 1.0))
    outputs = list(calling.received("b", HELLO, 2.0))
    assert [type(output.error) for output in outputs if isinstance(output, Failed)] == [ConnectionLost]
    assert not [output for output in outputs if isinstance(output, Send) and output.op]


def test_what_no_message_can_hold_is_refused() -> None:
    calling = there()
    with pytest.raises(RequestRefused, match="a body of"):
        list(calling.begin(REQUEST, bytes(wire.REQUEST_BYTES_MAX + 1), 60.0, 0.0))
    for head in (
        Request("op", 1, 0, "POST", "/labs", {str(number): "" for number in range(40)}),
        Request("op", 1, 0, "POST", "/labs", {str(number): "x" * 8000 for number in range(20)}),
        Request("op", 1, 0, "post", "/labs"),
    ):
        with pytest.raises(RequestRefused, match="no message can hold"):
            list(calling.begin(head, b"", 60.0, 0.0))

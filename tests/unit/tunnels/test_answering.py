"""The agent's memory: each operation once, its answer as often as it is asked for, within bounds."""

from pathlib import Path

import pytest

from tunnels import wire
from tunnels.agent.epochs import EpochFile
from tunnels.base import AllowList, CertificateInvalid, ConnectFailed, ConnectionLost, Response, TransportError
from tunnels.protocol import answering as memory
from tunnels.protocol import refusals
from tunnels.protocol.answering import AgentOutput, Answering, Run, Say, StopOperation
from tunnels.protocol.refusals import error_of
from tunnels.wire import PIECE_BYTES, Cancel, Piece, Refusal, Request, StreamOpen, Want

ALLOW = AllowList([(method, "/labs/{lab}") for method in ("GET", "POST")] + [("OPEN", "/console/{device}")])
BIG = bytes(memory.BYTES_MAX // 2 + 1)


def request(op: str, method: str = "POST", *, epoch: int = 1, expires_ms: int = 60_000, size: int = 0) -> Request:
    return Request(op, epoch, expires_ms, method, "/labs/x", size=size, body=bytes(min(size, PIECE_BYTES)))


def ask(answering: Answering, message: Request | Cancel | Piece | Want, now_ms: int = 0) -> list[AgentOutput]:
    return list(answering.received("r1", message, now_ms))


def codes(outputs: list[AgentOutput]) -> list[str]:
    return [each.message.code for each in outputs if isinstance(each, Say) and isinstance(each.message, Refusal)]


def run(answering: Answering, op: str, body: bytes = b"", method: str = "POST") -> list[AgentOutput]:
    assert isinstance(ask(answering, request(op, method))[0], Run)
    return list(answering.answered(op, Response(200, body)))


def test_a_repeated_operation_gets_the_same_answer_and_runs_once() -> None:
    answering = Answering(ALLOW)
    first = run(answering, "a", b"x")
    assert ask(answering, request("a")) == first
    again = list(answering.received("r2", request("a"), 0))
    assert again == [Say("r2", wire.Response("a", 200, {}, 1, b"x"))], "whoever asks gets it"


def test_an_expired_operation_is_forgotten_and_its_repetition_refused() -> None:
    answering = Answering(ALLOW)
    run(answering, "a")
    assert list(answering.tick(60_000)) == []
    assert codes(ask(answering, request("a"), 60_000)) == ["expired"]


def test_a_deadline_without_end_is_refused() -> None:
    answering = Answering(ALLOW)
    far_ms = int(wire.DEADLINE_S_MAX * 1000) + 1
    assert codes(ask(answering, request("a", expires_ms=far_ms))) == ["not-allowed"]


def test_reads_make_room_first_and_a_command_is_never_run_for_its_answer() -> None:
    answering = Answering(ALLOW)
    run(answering, "command", BIG)
    run(answering, "read", BIG, "GET")
    run(answering, "read2", BIG, "GET")
    assert isinstance(ask(answering, request("read", "GET"))[0], Run), "a forgotten read is read again"
    for number in range(2):
        run(answering, f"other{number}", BIG)
    assert codes(ask(answering, request("command"))) == ["forgotten"]
    assert codes(ask(answering, Want("command", (1,)))) == ["forgotten"]


def test_no_more_operations_than_it_can_remember(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "OPERATIONS_MAX", 3)
    answering = Answering(ALLOW)
    run(answering, "read", method="GET")
    for number in range(3):
        run(answering, f"op{number}")  # the read makes room: it may be read again
    assert codes(ask(answering, request("op3"))) == ["busy"]
    assert codes(ask(answering, request("read2", "GET"))) == ["busy"]
    assert answering.refused == {"busy": 2}
    list(answering.tick(60_000))
    assert isinstance(ask(answering, request("op4", expires_ms=61_000), 60_000)[0], Run)


def test_what_runs_is_remembered_beyond_its_deadline() -> None:
    answering = Answering(ALLOW)
    ask(answering, request("a"))
    list(answering.tick(70_000))
    assert ask(answering, request("a"), 70_000) == []
    list(answering.answered("a", Response(200)))
    list(answering.tick(72_000))
    assert codes(ask(answering, request("a"), 72_000)) == ["expired"]


def test_what_is_announced_is_bounded_together() -> None:
    answering = Answering(ALLOW)
    found = [codes(ask(answering, request(f"op{n}", size=wire.REQUEST_BYTES_MAX))) for n in range(3)]
    assert found == [[], [], ["busy"]]


def test_a_body_that_is_complete_too_late_is_not_run() -> None:
    answering = Answering(ALLOW)
    assert ask(answering, request("late", size=2 * PIECE_BYTES)) == []
    assert codes(ask(answering, Piece("late", 1, bytes(PIECE_BYTES)), 60_000)) == ["expired"]
    assert ask(answering, request("stale", size=2 * PIECE_BYTES)) == []
    ask(answering, request("newer", epoch=2))
    assert codes(ask(answering, Piece("stale", 1, bytes(PIECE_BYTES)))) == ["stale-epoch"]
    assert codes(ask(answering, request("stale", size=2 * PIECE_BYTES))) == ["stale-epoch"], "and stays so"


def test_a_cancelled_operation_is_stopped_and_not_run_again() -> None:
    answering = Answering(ALLOW)
    ask(answering, request("a"))
    assert ask(answering, Cancel("a")) == [StopOperation("a")]
    assert list(answering.answered("a", Response(200))) == []
    assert codes(ask(answering, request("a"))) == ["lost"]
    assert ask(answering, Cancel("unknown")) == []


def test_a_stream_is_admitted_once() -> None:
    answering = Answering(ALLOW, epoch=4)
    opening = StreamOpen("s", 4, 60_000, "/console/r1")
    assert answering.admit("r1", opening, 0) is True
    assert answering.admit("r1", opening, 0) is False
    for refused, code in (
        (StreamOpen("t", 3, 60_000, "/console/r1"), "stale-epoch"),
        (StreamOpen("u", 4, 60_000, "/labs/x"), "not-allowed"),
        (StreamOpen("v", 0, 60_000, "/console/r1"), "not-allowed"),
        (opening, "expired"),
    ):
        list(answering.tick(60_000 if code == "expired" else 0))
        found = answering.admit("r1", refused, 60_000 if code == "expired" else 0)
        assert isinstance(found, Refusal)
        assert found.code == code


@pytest.mark.parametrize(
    "error",
    [ConnectFailed("refused"), ConnectionLost("gone"), CertificateInvalid("old", fault="expired"), TransportError("?")],
)
def test_an_error_keeps_its_kind_on_the_way(error: TransportError) -> None:
    arrived = error_of(refusals.of_error("op", error), "w1")
    assert type(arrived) is (ConnectionLost if type(error) is TransportError else type(error))
    assert str(arrived) == f"w1: {error}"
    if isinstance(error, CertificateInvalid):
        assert isinstance(arrived, CertificateInvalid)
        assert arrived.fault == error.fault


def test_a_code_of_a_later_release_counts_as_lost() -> None:
    assert isinstance(error_of(Refusal("later"), "w1"), ConnectionLost)


def test_the_epoch_is_kept_in_a_file(tmp_path: Path) -> None:
    file = EpochFile(tmp_path / "epoch")
    assert file.read() == 0
    file.keep(7)
    assert EpochFile(tmp_path / "epoch").read() == 7
    assert [path.name for path in tmp_path.iterdir()] == ["epoch"]
    for spoiled in ("", "x", "7x", "-1", "\xff", "9" * 30):
        (tmp_path / "epoch").write_text(spoiled, encoding="latin-1")
        with pytest.raises(ValueError, match="does not hold an epoch"):
            file.read()
    with pytest.raises(OSError, match="No such file"):
        EpochFile(tmp_path / "missing" / "epoch").keep(1)

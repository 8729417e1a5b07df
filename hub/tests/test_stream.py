import pytest
from jupyterhub_vkprovider.stream import DATA_LINES_MAX, LINE_BYTES_MAX, Message, Parser

STREAM = (
    "\ufeff: comment\n"
    "id: 1\r\nevent: info\r\ndata: Grüße\r\n\r\n"
    "event: progress\rdata:20\r\r"
    ": ping\n\n"
    "data: two\ndata:  lines\n\n"
    "event: unknown\nretry: 5\nnonsense\ndata\n\n"
    "id: a\0b\ndata: same id\n\n"
    "id\ndata: no id\n\n"
    "event: lost\n\n"
    "data: cut off"
)
MESSAGES = [
    Message("info", "Grüße", "1"),
    Message("progress", "20", "1"),
    Message("message", "two\n lines", "1"),
    Message("unknown", "", "1"),
    Message("message", "same id", "1"),
    Message("message", "no id", ""),
]


def test_a_stream_as_a_whole() -> None:
    assert Parser().feed(STREAM.encode()) == MESSAGES


@pytest.mark.parametrize("size", range(1, 40))
def test_a_stream_in_pieces_is_the_same(size: int) -> None:
    parser, raw = Parser(), STREAM.encode()
    got = [message for at in range(0, len(raw), size) for message in parser.feed(raw[at : at + size])]
    assert got == MESSAGES


def test_a_connection_goes_on_with_the_last_id() -> None:
    assert Parser("7").feed(b"data: x\n\n") == [Message("message", "x", "7")]


def test_endless_lines_and_messages_take_no_memory() -> None:
    parser = Parser()
    for _ in range(100):
        parser.feed(b"data: " + b"x" * LINE_BYTES_MAX)
    assert len(parser._rest) <= LINE_BYTES_MAX
    (message,) = parser.feed(b"\n" + b"data: y\n" * (2 * DATA_LINES_MAX) + b"\n")
    assert len(message.data) < 2 * LINE_BYTES_MAX
    assert message.data.count("\n") == DATA_LINES_MAX - 1


def test_bytes_that_are_no_text() -> None:
    assert Parser().feed(b"data: \xff\xfe\n\n") == [Message("message", "\ufffd\ufffd")]

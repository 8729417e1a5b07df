"""What a caller says first on a WebSocket: bounded, and decoded without surprises."""

import random

import pytest

from tunnels.websocket import socket
from tunnels.websocket.socket import CALLERS_MAX, Welcome

SAID = Welcome("replica-1", {"replica-1": "https://192.0.2.1:8443", "replica-2": ""})
TEXT = '{"caller":"replica-1","callers":{"replica-1":"https://192.0.2.1:8443","replica-2":""}}'


def test_the_text_of_a_welcome() -> None:
    assert socket.encode_welcome(SAID) == TEXT
    assert socket.decode_welcome(TEXT) == SAID
    assert socket.decode_welcome('{"caller":"a","later":1}') == Welcome("a"), "a newer caller may say more"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"caller":""}',
        '{"caller":"a b"}',
        '{"caller":"a","callers":{"b c":"https://x"}}',
        '{"caller":"a","callers":{"b":"ftp://x"}}',
        '{"caller":"a","callers":{"b":"https://x y"}}',
        '{"caller":"a","callers":{"b":"https://' + 300 * "x" + '"}}',
        '{"caller":"a","callers":{' + ",".join(f'"c{n}":""' for n in range(CALLERS_MAX + 1)) + "}}",
        '{"caller":"\ud800"}',
        "[" * 100_000,
    ],
)
def test_what_is_not_a_welcome(text: str) -> None:
    assert socket.decode_welcome(text) is None


def test_damaged_texts_are_refused_or_decoded() -> None:
    dice = random.Random(4)
    for _ in range(20_000):
        letters = list(TEXT)
        for _ in range(dice.randint(1, 4)):
            letters[dice.randrange(len(letters))] = chr(dice.randrange(0x500))
        found = socket.decode_welcome("".join(letters))
        assert found is None or len(found.callers) <= CALLERS_MAX

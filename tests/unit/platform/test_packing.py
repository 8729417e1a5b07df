import gzip
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.platform.packing import pack, unpack


@given(raw=st.binary(max_size=500))
def test_what_is_packed_comes_back(raw: bytes) -> None:
    assert unpack(pack(raw), 500) == raw
    assert pack(raw) == pack(raw)  # no time of day in it: an unchanged object is not written again


def test_no_more_than_asked_for_is_unpacked() -> None:
    assert unpack(pack(bytes(10_000)), 100) == bytes(100)


@pytest.mark.parametrize(
    "damaged",
    [
        "not base64!",
        b64encode(b"not gzip").decode(),
        b64encode(gzip.compress(b"cut off", mtime=0)[:-9]).decode(),
        b64encode(gzip.compress(b"a bit flipped", mtime=0)[:12] + b"\xff" * 12).decode(),
    ],
)
def test_damage_is_a_value_error(damaged: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (the message is zlib's)
        unpack(damaged, 100)

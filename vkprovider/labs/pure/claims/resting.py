"""Ports that rest: they were lent to a mux, which may lead somebody there a little longer."""

import math
from typing import Final

import msgspec

_SKEW_S: Final = 10
"""The clocks of two replicas differ by less; one that is set back by more must not keep ports for long."""


class RestingPort(msgspec.Struct, frozen=True, gc=False):
    """A port that is given to no lablet yet.

    Attributes:
        until: Unix seconds.
    """

    protocol: str
    port: int
    until: int

    @property
    def key(self) -> tuple[str, int]:
        """Protocol and number."""
        return self.protocol, self.port


def rest_left_s(until: int, *, now_unix: int, rest_s: float) -> int:
    """Return how long a port still rests; 0 if it does not.

    One that seems to rest for much longer than ports do was lent before the clock was set back.

    >>> [rest_left_s(100, now_unix=now, rest_s=60) for now in (100, 99, 38, 0)]
    [0, 1, 62, 0]
    """
    left = until - now_unix
    return left if 0 < left <= math.ceil(rest_s) + _SKEW_S else 0

"""Retry delays: exponential, capped, jittered by a random number that the caller draws. Pure."""

from typing import Final

_DOUBLINGS_MAX: Final = 32


def delay_s(failures: int, *, first_s: float, cap_s: float, dice: float = 1.0, floor: float = 0.5) -> float:
    """Return the seconds to wait after `failures` failures in a row; 0 for none.

    The bound doubles from `first_s` to `cap_s`; the delay lies between `floor` times the bound and the bound.
    `floor=0` is full jitter, which spreads the clients of a server that has come back best; `floor=0.5` is equal
    jitter, which never retries at once (AWS Architecture Blog, "Exponential Backoff And Jitter").

    Args:
        failures: Failures in a row.
        first_s: The bound after the first failure.
        cap_s: The greatest bound.
        dice: A random number in [0, 1]; 1 gives the bound itself, without jitter.
        floor: The smallest delay, as a fraction of the bound.
    """
    if failures <= 0:
        return 0.0
    bound_s = min(cap_s, first_s * 2.0 ** min(failures - 1, _DOUBLINGS_MAX))
    return bound_s * (floor + (1.0 - floor) * dice)

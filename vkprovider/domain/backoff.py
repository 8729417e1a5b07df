"""Delays that grow: exponential, capped, with full jitter where many wait for the same thing."""


def delay_s(failures: int, *, first_s: float, cap_s: float, dice: float = 1.0) -> float:
    """Give the delay after the n-th failure in a row (n from 1).

    Args:
        failures: How many in a row; 0 gives no delay.
        first_s: The first delay.
        cap_s: The longest delay.
        dice: A number in [0, 1]; the delay lies between its half and the whole of it. 1 gives no jitter.
    """
    if failures <= 0:
        return 0.0
    whole = min(cap_s, first_s * 2.0 ** min(failures - 1, 32))
    return whole * (0.5 + 0.5 * dice)

"""The time that is left, in words; `static/live.js` counts it down with the same ones."""

from typing import Final

_MINUTE_S: Final = 60
_EXACT_MINUTES: Final = 10
_HOURS_MAX: Final = 48


def time_left(seconds: float) -> str:
    """Return how long something still lasts, for `<time data-until="…">`.

    >>> time_left(5000)
    '1 h 23 min left'
    """
    if seconds <= 0:
        return "over"
    minutes, rest = divmod(int(seconds), _MINUTE_S)
    if minutes < _EXACT_MINUTES:
        return f"{minutes}:{rest:02} min left"
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min left"
    return f"{hours} h {minutes} min left" if hours < _HOURS_MAX else f"{hours // 24} d {hours % 24} h left"

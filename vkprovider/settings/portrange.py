"""Ranges of ports in settings: `FIRST-LAST`. Pure."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator

PORT_MAX: Final = 65535
_RANGE: Final = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")


def bounds(text: str) -> tuple[int, int]:
    """Return the first and the last port of a range, or of one port.

    >>> bounds("10000-20000"), bounds("80")
    ((10000, 20000), (80, 80))

    Raises:
        ValueError: It is neither.
    """
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _checked(text: str) -> str:
    """Check a range of ports."""
    found = _RANGE.fullmatch(text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]) <= PORT_MAX:
        raise ValueError(f"{text[:80]!r} is not a range of ports like 10000-20000")
    return text


PortRange = Annotated[str, AfterValidator(_checked)]
"""A range of ports with both ends."""

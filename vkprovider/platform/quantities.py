"""Kubernetes quantities as integers: millicores and bytes.

The few that occur are parsed and formatted for every worker every few seconds, so they are cached.
"""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

_FACTORS: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
_LIMIT: Final = Decimal(2**63)
"""Kubernetes' own limit; `1e999999999` would fill all memory when written out."""
_QUANTITY = re.compile(r"^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?$")

MIB: Final = 2**20


def parse(text: str | float) -> Decimal:
    """Parse a quantity (`100m`, `1.5Gi`, `4`) as a number.

    Raises:
        ValueError: It is not a quantity.
    """
    match = _QUANTITY.match(str(text).strip())
    if match is None:
        raise ValueError(f"{str(text)[:40]!r} is not a quantity; examples: 500m, 4, 8Gi")
    try:
        value = Decimal(match[1]) * _FACTORS[match[2] or ""]
    except ArithmeticError:
        raise ValueError(f"{str(text)[:40]!r} is not a quantity; examples: 500m, 4, 8Gi") from None
    if abs(value) >= _LIMIT:
        raise ValueError(f"{str(text)[:40]!r} is more than a quantity can be")
    return value


@lru_cache(maxsize=1024)
def parse_millicores(text: str | float) -> int:
    """Parse CPU as millicores, rounded up.

    Raises:
        ValueError: It is not a quantity.
    """
    return -int((-parse(text) * 1000).to_integral_value(rounding="ROUND_FLOOR"))


@lru_cache(maxsize=1024)
def parse_bytes(text: str | float) -> int:
    """Parse memory as bytes, rounded up.

    Raises:
        ValueError: It is not a quantity.
    """
    return -int((-parse(text)).to_integral_value(rounding="ROUND_FLOOR"))


@lru_cache(maxsize=1024)
def format_millicores(millicores: int) -> str:
    """Format millicores as the API server does: `2`, `2500m`, `1k`."""
    return f"{millicores}m" if millicores % 1000 else format_count(millicores // 1000)


@lru_cache(maxsize=1024)
def format_bytes(count: int) -> str:
    """Format bytes with the largest binary unit that divides them, as the API server does: `512Mi`."""
    for unit in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        factor = int(_FACTORS[unit])
        if count and count % factor == 0:
            return f"{count // factor}{unit}"
    return format_count(count)


@lru_cache(maxsize=1024)
def format_count(count: int) -> str:
    """Format a whole number as the API server does, so that a value read back equals the written one.

    >>> format_count(6000), format_count(400), format_count(10001)
    ('6k', '400', '10001')
    """
    for unit in ("E", "P", "T", "G", "M", "k"):
        factor = int(_FACTORS[unit])
        if count and count % factor == 0:
            return f"{count // factor}{unit}"
    return str(count)

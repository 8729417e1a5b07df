"""Versions of content as a menu orders and names them, by the conventions of SQR-059.

    r21_0_1, 1.2.0   a release             w_2022_37      a weekly version     exp_…   an experiment
    r21_0_0_rc1      a release candidate   d_2022_09_14   a daily version

A suffix `_c0026.003` names the cycle. Whatever else a version is called, it has its place after these.
"""

import re
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple


class VersionKind(IntEnum):
    """The kinds of versions, in the order of a menu."""

    RELEASE = 0
    WEEKLY = 1
    DAILY = 2
    CANDIDATE = 3
    EXPERIMENTAL = 4
    OTHER = 5


class LabVersion(NamedTuple):
    """A version of content.

    Attributes:
        tag: As the definition writes it.
        kind: Its kind.
        numbers: Order the versions of a kind; a later one has greater numbers.
        cycle: Its cycle; None without one.
        name: For people.
    """

    tag: str
    kind: VersionKind
    numbers: tuple[int, ...]
    cycle: int | None
    name: str


_NUMBER: Final = r"\d{1,9}"
_CYCLE: Final = r"(?:_c(?P<cycle>\d{1,6})(?:\.(?P<build>\d{1,6}))?)?"
_REST: Final = r"(?:[_-](?P<rest>[A-Za-z0-9_.-]+))?"
_SHAPES: Final = (
    (VersionKind.CANDIDATE, "Release candidate", rf"[rv]?(?P<v>{_NUMBER}(?:[._]{_NUMBER})*[._-]?rc{_NUMBER})", _REST),
    (VersionKind.RELEASE, "Release", rf"[rv]?(?P<v>{_NUMBER}(?:[._]{_NUMBER})*)", _REST),
    (VersionKind.WEEKLY, "Weekly", r"w_(?P<v>\d{4}_\d{1,2})", _REST),
    (VersionKind.DAILY, "Daily", r"d_(?P<v>\d{4}_\d{1,2}_\d{1,2})", _REST),
    (VersionKind.EXPERIMENTAL, "Experimental", r"exp_(?P<v>[A-Za-z0-9_.-]+?)", "(?P<rest>)"),
)
_PATTERNS: Final = tuple((kind, word, re.compile(shape + _CYCLE + rest)) for kind, word, shape, rest in _SHAPES)


@lru_cache(maxsize=4096)
def version_of(tag: str) -> LabVersion:
    """Read a version.

    >>> version_of("w_2022_37").name, version_of("1.10.0").numbers > version_of("1.9.0").numbers
    ('Weekly 2022_37', True)
    """
    for kind, word, pattern in _PATTERNS:
        found = pattern.fullmatch(tag)
        if found is None:
            continue
        cycle, build, shown = found["cycle"], found["build"], found["v"]
        if kind in {VersionKind.RELEASE, VersionKind.CANDIDATE}:
            shown = shown.replace("_rc", "-rc").replace("_", ".")
        name = f"{word} {shown}"
        if cycle is not None:
            name += f" (cycle {cycle}, build {build})" if build is not None else f" (cycle {cycle})"
        if found["rest"]:
            name += f" [{found['rest']}]"
        numbers = tuple(int(number) for number in re.findall(_NUMBER, found["v"]))
        ordered = (*numbers, -1, int(cycle or 0), int(build or 0))  # 1.0 is older than 1.0.1 and than 1.0_c1
        return LabVersion(tag, kind, ordered, int(cycle) if cycle is not None else None, name)
    return LabVersion(tag, VersionKind.OTHER, (), None, tag)


def menu_order(version: LabVersion) -> tuple[int, tuple[int, ...], str]:
    """Return the key by which a menu sorts versions: by kind, and the newest of each first."""
    return version.kind, tuple(-number for number in version.numbers), version.tag

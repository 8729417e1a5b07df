"""What a Cisco device understands at its console: commands, also abbreviated, and filters of what they print. Pure.

Each word of a command may be cut short, as in `sh ver` and `conf t`, as long as one command is left that it can mean.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Action = Literal[
    "version", "configuration", "long", "endless", "files", "page", "nothing", "enable", "leave", "configure"
]

NUMBER: Final = "<number>"
EXEC: Final[Mapping[str, Action]] = {
    "show version": "version",
    "show running-config": "configuration",
    "show tech-support": "long",
    f"terminal width {NUMBER}": "nothing",
    "terminal monitor": "nothing",
    "terminal no monitor": "nothing",
    "enable": "enable",
    "disable": "leave",
    "exit": "leave",
    "configure terminal": "configure",
}
"""Commands that all Cisco devices have, with what they do; each family adds its own."""
KEEPS_MODE: Final[frozenset[Action]] = frozenset({"version", "configuration", "long", "page", "nothing"})
"""Actions after which the device is in the mode in which it was."""

_FILTERS: Final = ("include", "exclude", "begin", "section", "count", "grep", "no-more")
_SUBMODES: Final = {
    "interface": "config-if",
    "line": "config-line",
    "router": "config-router",
    "vlan": "config-vlan",
    "class-map": "config-cmap",
    "policy-map": "config-pmap",
    "route-map": "config-route-map",
}
_SHORTEST: Final = 3
"""Letters by which the name of a submode is told from other configuration commands."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A command that was understood.

    Attributes:
        action: What it does.
        number: Its argument, if it has one.
    """

    action: Action
    number: int = 0


def understand(text: str, commands: Mapping[str, Action]) -> Typed | None:
    """Return the command that a text abbreviates; None if it is none, or could be several."""
    typed = text.split()
    found = {syntax for syntax in commands if _abbreviates(typed, syntax.split())}
    exact = {syntax for syntax in found if syntax.split()[: len(typed)] == typed}
    if len(exact or found) != 1:
        return None
    [syntax] = exact or found
    return Typed(commands[syntax], int(typed[-1]) if syntax.endswith(NUMBER) else 0)


def _abbreviates(typed: Sequence[str], words: Sequence[str]) -> bool:
    return len(typed) == len(words) and all(
        given.isdecimal() if word == NUMBER else word.startswith(given.lower())
        for given, word in zip(typed, words, strict=True)
    )


def submode_of(text: str) -> str | None:
    """Return the submode of the configuration that a line enters, such as `config-if`; None if it enters none."""
    word = text.partition(" ")[0].lower()
    modes = (mode for name, mode in _SUBMODES.items() if len(word) >= _SHORTEST and name.startswith(word))
    return next(modes, None)


def passed_on(lines: list[str], text: str) -> list[str] | None:
    """Return the lines that a filter passes on; None if there is no such filter.

    Args:
        lines: The output of a command.
        text: What stands behind the bar, such as `include Version`.
    """
    word, _, pattern = text.strip().partition(" ")
    names = [name for name in _FILTERS if word and name.startswith(word.lower())]
    if len(names) != 1 or (not pattern.strip() and names[0] not in {"count", "no-more"}):
        return None
    hits = [bool(_search(pattern.strip(), line)) for line in lines]
    match names[0]:
        case "include" | "grep":
            return [line for line, hit in zip(lines, hits, strict=True) if hit]
        case "exclude":
            return [line for line, hit in zip(lines, hits, strict=True) if not hit]
        case "begin":
            return lines[hits.index(True) :] if True in hits else []
        case "section":
            return _sections(lines, hits)
        case "count":
            return [f"Number of lines which match regexp = {sum(hits)}"]
        case _:
            return lines


def _search(pattern: str, line: str) -> bool:
    try:
        return re.search(pattern, line) is not None
    except re.error:
        return pattern in line


def _sections(lines: list[str], hits: list[bool]) -> list[str]:
    """Return each line that matched, with the indented lines that follow it."""
    kept, inside = [], False
    for line, hit in zip(lines, hits, strict=True):
        inside = hit or (inside and line.startswith(" "))
        if inside:
            kept.append(line)
    return kept

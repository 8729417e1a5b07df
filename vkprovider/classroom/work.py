"""The work of learners as files: one for each device, and a folder for each learner. Pure."""

import unicodedata
from collections.abc import Iterable
from itertools import groupby
from typing import Final

import msgspec

from vkprovider.lablet.archives import Leftovers

_FILE_BYTES_MAX: Final = 200
"""A file system takes 255, and a number and an ending come after it."""


def files_of(left: Leftovers) -> dict[str, str]:
    """Return a file for each device, and one for the learner's answers if there are any; no name leads elsewhere."""
    taken: set[str] = set()
    found = {f"{safe(label, 'device', taken)}.cfg": text for label, text in sorted(left.configs.items())}
    if left.responses is not None:
        found["responses.json"] = msgspec.json.format(msgspec.json.encode(left.responses), indent=2).decode() + "\n"
    return found


def safe(text: str, otherwise: str, taken: set[str]) -> str:
    """Return a text as the name of a file that no other text has, and add it to `taken`.

    Letters and digits of all scripts are kept, so that one sees whose it is.

    Args:
        text: Anything.
        otherwise: The name of a text that leaves nothing.
        taken: Names as file systems compare them that ignore case.
    """
    parts = groupby(unicodedata.normalize("NFC", text), _is_safe)
    kept = "".join("".join(part) if is_safe else "-" for is_safe, part in parts)
    stem = kept.encode()[:_FILE_BYTES_MAX].decode(errors="ignore").lstrip(".-") or otherwise
    name, number = stem, 1
    while _compared(name) in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(_compared(name))
    return name


def _is_safe(char: str) -> bool:
    return char.isalnum() or char in "._-" or unicodedata.category(char) in _MARKS


_MARKS: Final = ("Mn", "Mc")
"""Categories of marks that belong to the letter before them, such as vowels in Hindi and Thai."""


def _compared(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def folders_of(found: Iterable[Leftovers]) -> dict[str, str]:
    """Return the files of all learners, each below a folder with the learner's name; no two names are one folder."""
    taken: set[str] = set()
    files: dict[str, str] = {}
    for left in found:
        folder = safe(left.username, "learner", taken)
        files |= {f"{folder}/{name}": text for name, text in sorted(files_of(left).items())}
    return files

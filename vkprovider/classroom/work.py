"""The work of learners as files: one for each device, and a folder for each learner. Pure."""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from vkprovider.lablet.archives import Leftovers

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_FILE_CHARS_MAX: Final = 100


def files_of(left: Leftovers) -> dict[str, str]:
    """Return a file for each device, and one for the learner's answers if there are any; no name leads elsewhere."""
    taken: set[str] = set()
    found = {f"{safe(label, 'device', taken)}.cfg": text for label, text in sorted(left.configs.items())}
    if left.responses is not None:
        found["responses.json"] = msgspec.json.format(msgspec.json.encode(left.responses), indent=2).decode() + "\n"
    return found


def safe(text: str, otherwise: str, taken: set[str]) -> str:
    """Return a text as the name of a file that no other text has, and add it to `taken`.

    Args:
        text: Anything.
        otherwise: The name of a text that leaves nothing.
        taken: Names in lower case, because some file systems ignore case.
    """
    stem = _UNSAFE.sub("-", text)[:_FILE_CHARS_MAX].lstrip(".-") or otherwise
    name, number = stem, 1
    while name.lower() in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name.lower())
    return name


def folders_of(found: Iterable[Leftovers]) -> dict[str, str]:
    """Return the files of all learners, each below a folder with the learner's name; no two names are one folder."""
    taken: set[str] = set()
    files: dict[str, str] = {}
    for left in found:
        folder = safe(left.username, "learner", taken)
        files |= {f"{folder}/{name}": text for name, text in sorted(files_of(left).items())}
    return files

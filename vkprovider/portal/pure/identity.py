"""The user of a workbench for Linux: which numbers it may have, and the files passwd and group."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from vkprovider.portal.pure.posix import PosixUser

ID_MIN: Final = 1000
"""The least number of a user or a group: those below are the system's."""
ID_MAX: Final = 2**31 - 2
GROUPS_MAX: Final = 64
"""The most supplemental groups."""
_UNUSUAL: Final = re.compile(r"[^a-z0-9_-]+")
_NAME_CHARS_MAX: Final = 32
_USERS: Final = """\
root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""
_GROUPS: Final = """\
root:x:0:
daemon:x:1:
tty:x:5:
users:x:100:
nogroup:x:65534:
"""


def unprivileged(user: PosixUser) -> PosixUser:
    """Return what of a user a workbench may have: a number below 1000 counts as absent.

    >>> from vkprovider.portal.pure.posix import PosixGroup
    >>> unprivileged(PosixUser(4711, 0, (PosixGroup("lab", 2000), PosixGroup("wheel", 10))))
    PosixUser(uid=4711, gid=None, groups=(PosixGroup(name='lab', id=2000),))
    """
    groups = [each for each in user.groups if _may_be(each.id)]
    uid = user.uid if _may_be(user.uid) else None
    return PosixUser(uid, user.gid if _may_be(user.gid) else None, tuple(groups[:GROUPS_MAX]))


def _may_be(number: int | None) -> bool:
    return number is not None and ID_MIN <= number <= ID_MAX


def login_name(key: str) -> str:
    """Return the name of a user within a workbench: the key, unless the system has it."""
    return f"nb-{key}" if key in _names(_USERS) | _names(_GROUPS) else key


def home_of(key: str) -> str:
    """Return the folder of a user."""
    return f"/home/{login_name(key)}"


def passwd(key: str, uid: int, gid: int) -> str:
    """Return `/etc/passwd`, with one entry for the user.

    >>> passwd("alice", 4711, 1000).splitlines()[-1]
    'alice:x:4711:1000::/home/alice:/bin/bash'
    """
    return f"{_USERS}{login_name(key)}:x:{uid}:{gid}::{home_of(key)}:/bin/bash\n"


def group(key: str, gid: int, groups: Mapping[str, int]) -> str:
    """Return `/etc/group`, with an entry for each group; the user is a member of all but the primary one.

    >>> group("alice", 1000, {"lab": 2000}).splitlines()[-2:]
    ['alice:x:1000:', 'lab:x:2000:alice']
    """
    name, taken, lines = login_name(key), _names(_GROUPS), []
    primary = next((text for text, number in groups.items() if number == gid and _plain(text) not in taken), name)
    for text, number in [(primary, gid), *_others(groups, gid)]:
        shown = _plain(text)
        if shown and shown not in taken:
            taken = taken | {shown}
            lines.append(f"{shown}:x:{number}:{'' if number == gid else name}\n")
    return _GROUPS + "".join(lines)


def supplemental(gid: int, groups: Mapping[str, int]) -> list[int]:
    """Return the numbers of all groups but the primary one, the least first."""
    return sorted({number for _, number in _others(groups, gid)})


def _others(groups: Mapping[str, int], gid: int) -> Iterable[tuple[str, int]]:
    return ((text, number) for text, number in sorted(groups.items()) if number != gid)


def _plain(name: str) -> str:
    """Return a name of a group as a file may have it."""
    return _UNUSUAL.sub("-", name.lower()).strip("-")[:_NAME_CHARS_MAX]


def _names(text: str) -> frozenset[str]:
    return frozenset(line.partition(":")[0] for line in text.splitlines())

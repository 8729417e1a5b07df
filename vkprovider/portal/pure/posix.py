"""The user of an operating system that somebody is: uid, gid and groups, as the API server says them of a token.

The API server puts claims of a token into `extra` of its user, where its AuthenticationConfiguration says so:

    extra:
    - {key: vkprovider.io/uid, valueExpression: string(claims.uid)}
    - {key: vkprovider.io/gid, valueExpression: string(claims.gid)}
    - {key: vkprovider.io/groups, valueExpression: "claims.posix_groups.map(g, g.name + ':' + string(g.id))"}

A lab in CML has no such users; what is known is told to who asks for the lab's status, and a workbench runs as it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from vkprovider.platform.wellknown import GROUP

EXTRA_UID: Final = f"{GROUP}/uid"
EXTRA_GID: Final = f"{GROUP}/gid"
EXTRA_GROUPS: Final = f"{GROUP}/groups"
_ID: Final = re.compile(r"[0-9]{1,10}")
_ID_MAX: Final = 2**32 - 2
"""The largest uid; the one after it means none."""
_GROUPS_MAX: Final = 200
_NAME_CHARS_MAX: Final = 256


class PosixGroup(msgspec.Struct, frozen=True):
    """A group with its id."""

    name: str
    id: int


class PosixUser(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who somebody is on a POSIX file system.

    Attributes:
        uid, gid: None where the token does not say it.
        groups: Those with an id, each once.
    """

    uid: int | None = None
    gid: int | None = None
    groups: tuple[PosixGroup, ...] = ()


NO_POSIX_USER: Final = PosixUser()


def posix_of(extra: Mapping[str, Sequence[str]]) -> PosixUser:
    """Return who a user is by the `extra` of the API server; what cannot be read counts as absent.

    >>> posix_of({"vkprovider.io/uid": ["1001"], "vkprovider.io/groups": ["net:2001", "nobody"]})
    PosixUser(uid=1001, gid=None, groups=(PosixGroup(name='net', id=2001),))
    """
    groups: dict[str, PosixGroup] = {}
    for text in extra.get(EXTRA_GROUPS, ()):
        name, _, number = text.rpartition(":")
        if name and len(name) <= _NAME_CHARS_MAX and (found := _id(number)) is not None and len(groups) < _GROUPS_MAX:
            groups.setdefault(name, PosixGroup(name, found))
    return PosixUser(_only(extra.get(EXTRA_UID, ())), _only(extra.get(EXTRA_GID, ())), tuple(groups.values()))


def _only(texts: Sequence[str]) -> int | None:
    return _id(texts[0]) if len(texts) == 1 else None


def _id(text: str) -> int | None:
    return int(text) if _ID.fullmatch(text) and int(text) <= _ID_MAX else None

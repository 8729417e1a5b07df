"""The record of a user lab: its Namespace, whose labels and annotations say whose it is and what was asked for.

    labels:      vkprovider.io/portal: vkprovider        # the mark: the portal that made it
                 vkprovider.io/user: alice               # the key of the user; without it the lab is warm
    annotations: vkprovider.io/user: alice               # the exact name
                 vkprovider.io/request: {"id": "…", "at": 1769860800, "definition": "netlab:1.0", …}
                 vkprovider.io/ending: {"id": "…", "at": 1769864400, "by": "alice", "reason": "DeleteRequested"}
                 vkprovider.io/operation: {"id": "…", "kind": "create", "phase": "complete", …}

The operation under way is the ending if there is one, else the request; it has ended if `operation` has its id. A part
that cannot be read counts as absent and is named in `damaged`: nothing is deleted because of it.
"""

from typing import Final, Literal, NamedTuple, TypeVar

import msgspec

from vkprovider.platform.objects import Metadata
from vkprovider.platform.times import unix
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.portalnames import UserLabReason, user_key, warm_key_in
from vkprovider.portal.pure.posix import NO_POSIX_USER, PosixUser

CREATE: Final = "create"
DELETE: Final = "delete"
COMPLETE: Final = "complete"
FAILED: Final = "failed"

T = TypeVar("T")


class BenchRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The workbench that a user gets beside a lab.

    Attributes:
        name: Its kind.
        size: The size of the lab.
    """

    name: str
    size: str = ""


class LabRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a user asked for.

    Attributes:
        id: Names the operation, and the Pod that is made for it.
        at: When, in Unix seconds.
        definition: The image of the Pod: `NAME:VERSION` of a definition.
        options: The options, one value each.
        env: The names of the environment variables that the request brought, or that it gave as parameters.
        secrets: The names of the variables in the Secret; None of an earlier version, whose Secret has a token.
        by: Who asked.
        duration_s: For how long the user has the lab.
        posix: Who the user is on a file system, as far as the token says it.
        bench: The workbench beside it; None without one.
    """

    id: str
    at: int
    definition: str
    options: dict[str, str | bool | int] = {}
    env: tuple[str, ...] = ()
    secrets: tuple[str, ...] | None = None
    by: str = ""
    duration_s: int = 0
    posix: PosixUser = NO_POSIX_USER
    bench: BenchRequest | None = None


class Ending(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lab is to be deleted.

    Attributes:
        id: Names the operation.
        at: When that was asked for, in Unix seconds.
        by: Who asked; "" for the portal.
        reason: A word of `UserLabReason`.
    """

    id: str
    at: int
    by: str = ""
    reason: str = ""


class Saved(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the story of an operation that has ended, as the stream wrote it.

    Attributes:
        at: Seconds since the epoch.
        kind: `info` or `error`.
        source: Where the line comes from, a hash.
        order: Its place among lines of one source.
        text: For people.
    """

    at: float
    kind: str
    source: str
    order: int
    text: str


class LabOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an operation of a user lab ended. A deletion that succeeds leaves no record.

    Attributes:
        id: Of the request or the ending.
        at: When it ended, in Unix seconds.
        reason: Why it failed: a word of `UserLabReason`.
        text: The same for people.
        lines: The last lines of its story.
    """

    id: str
    kind: Literal["create", "delete"]
    phase: Literal["complete", "failed"]
    at: int
    reason: str = ""
    text: str = ""
    lines: tuple[Saved, ...] = ()


class LabRecord(NamedTuple):
    """The Namespace of a user lab.

    Attributes:
        namespace, uid, resource_version: The object; the last two are preconditions of a write.
        created_at: When it was made, in Unix seconds.
        deleted: Whether its deletion has begun, by anybody.
        user: The exact name; "" for a warm lab.
        key: The key of the user, or of the warm lab; "" if it cannot be read, so that the lab is nobody's.
        family: The family of a lab that was made before a user asked for it; "" for any other.
        class_: The namespace of its class; "" if it has none.
        last_outcome: Of the operation that ended last, which may be an earlier one than `current`.
        damaged: The labels and annotations that cannot be read.
    """

    namespace: str
    uid: str
    resource_version: str
    created_at: float
    deleted: bool = False
    user: str = ""
    key: str = ""
    family: str = ""
    class_: str = ""
    request: LabRequest | None = None
    ending: Ending | None = None
    last_outcome: LabOutcome | None = None
    damaged: tuple[str, ...] = ()

    @property
    def warm(self) -> bool:
        """Whether no user has the lab yet."""
        return not self.user and bool(self.key)

    @property
    def current(self) -> LabRequest | Ending | None:
        """The operation under way, or that ended last; None if it cannot be read."""
        return self.ending or self.request

    @property
    def outcome(self) -> LabOutcome | None:
        """The end of the current operation; None while it is under way."""
        current, ended = self.current, self.last_outcome
        return ended if current is not None and ended is not None and ended.id == current.id else None


_ANNOTATIONS: Final[dict[type, str]] = {
    LabRequest: portalnames.ANNOTATION_REQUEST,
    Ending: portalnames.ANNOTATION_ENDING,
    LabOutcome: portalnames.ANNOTATION_OPERATION,
}


def is_marked(meta: Metadata, installation: str) -> bool:
    """Return whether an object bears the mark of the portal of an installation."""
    return meta.labels.get(portalnames.LABEL_PORTAL) == installation


def belongs_to(meta: Metadata, installation: str, user: str) -> bool:
    """Return whether a Namespace is the record of this user; only such a one may be changed for a request."""
    return is_marked(meta, installation) and meta.annotations.get(portalnames.ANNOTATION_USER) == user


def record_of(meta: Metadata, installation: str) -> LabRecord | None:
    """Read the record of a user lab from its Namespace; None if the Namespace is not the portal's."""
    if not is_marked(meta, installation):
        return None
    damaged: list[str] = []
    user, key, family = _whose(meta, damaged)
    return LabRecord(
        namespace=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        created_at=unix(meta.creation_timestamp) or 0.0,
        deleted=meta.deletion_timestamp is not None,
        user=user,
        key=key,
        family=family,
        class_=meta.labels.get(portalnames.LABEL_CLASS, ""),
        request=_read(meta, portalnames.ANNOTATION_REQUEST, LabRequest, damaged),
        ending=_read(meta, portalnames.ANNOTATION_ENDING, Ending, damaged),
        last_outcome=_read(meta, portalnames.ANNOTATION_OPERATION, LabOutcome, damaged),
        damaged=tuple(damaged),
    )


def _whose(meta: Metadata, damaged: list[str]) -> tuple[str, str, str]:
    """Return user, key and family; without a key the lab is nobody's."""
    user, key = meta.annotations.get(portalnames.ANNOTATION_USER, ""), meta.labels.get(portalnames.LABEL_USER, "")
    family = meta.labels.get(portalnames.LABEL_WARM, "")
    if not user and not key and family and (warm := warm_key_in(meta.name)):
        return "", warm, family
    if user and user_key(user) == key:
        return user, key, family
    damaged.append(portalnames.LABEL_USER)
    return "", "", family


def _read(meta: Metadata, name: str, kind: type[T], damaged: list[str]) -> T | None:
    text = meta.annotations.get(name)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError:  # also what is no JSON
        damaged.append(name)
        return None


def labels_for(installation: str, user: str, *, class_: str = "") -> dict[str, str]:
    """Return the labels of all objects that are made for a user."""
    labels = {portalnames.LABEL_PORTAL: installation, portalnames.LABEL_USER: user_key(user)}
    return labels | ({portalnames.LABEL_CLASS: class_} if class_ else {})


def warm_labels_for(installation: str, family: str) -> dict[str, str]:
    """Return the labels of all objects of a warm lab."""
    return {portalnames.LABEL_PORTAL: installation, portalnames.LABEL_WARM: family}


def annotations_for(user: str, request: LabRequest) -> dict[str, str]:
    """Return the annotations of a Namespace that is made, or taken, for the request of a user."""
    return {portalnames.ANNOTATION_USER: user, **annotation(request)}


def annotation(part: LabRequest | Ending | LabOutcome) -> dict[str, str]:
    """Return the annotation in which a part of the record stands."""
    return {_ANNOTATIONS[type(part)]: msgspec.json.encode(part).decode()}


def replaced(user: str, request: LabRequest) -> dict[str, str | None]:
    """Return the annotations to patch where a request replaces a failed lab: what was asked before is removed."""
    return {
        **annotations_for(user, request),
        portalnames.ANNOTATION_ENDING: None,
        portalnames.ANNOTATION_OPERATION: None,
    }


def ended(
    record: LabRecord, phase: Literal["complete", "failed"], now: float, *, reason: str = "", text: str = ""
) -> LabOutcome | None:
    """Return the end of the operation under way, without the lines of its story; None if the record names none."""
    current = record.current
    if current is None:
        return None
    kind: Literal["create", "delete"] = "delete" if isinstance(current, Ending) else "create"
    return LabOutcome(id=current.id, kind=kind, phase=phase, at=int(now), reason=reason, text=text)


def ending(id_: str, now: float, *, by: str = "", reason: UserLabReason = UserLabReason.DELETE_REQUESTED) -> Ending:
    """Return the beginning of a deletion.

    Args:
        id_: Names the operation.
        now: Unix seconds.
        by: Who asked for it; "" for the portal.
        reason: Why.
    """
    return Ending(id=id_, at=int(now), by=by, reason=reason.value)

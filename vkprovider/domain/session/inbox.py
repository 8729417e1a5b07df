"""What the Lab Delivery System said of sessions: events folded into one row per session, and what a sender is answered.

Folding is idempotent and commutes, so that events that come twice, late, or to several replicas give the same row. A
row is no decision: whoever holds the claim of a session reads it there, and the claim is what counts.
"""

import hashlib
from collections import OrderedDict
from enum import Enum
from typing import Any, Final, Literal

import msgspec

from vkprovider.api import names
from vkprovider.api.objects import ConfigMap

Kind = Literal["started", "ended"]

DATA_KEY: Final = "session.json"
KEEP_S: Final = 24 * 3600
"""For how long the row of a session is kept that nobody knows."""
ROWS_MAX: Final = 20_000
"""Rows of sessions that nobody knows are refused beyond that; those of known sessions never are."""
SEEN_MAX: Final = 10_000


class SessionEvent(msgspec.Struct, frozen=True):
    """One event about one session.

    Attributes:
        session: The session's id in the Lab Delivery System.
        kind: What happened.
        at: When (Unix seconds), not later than it was received.
        source: Who says so; with `id` it names the event.
        id: Unique for its source.
    """

    session: str
    kind: Kind
    at: int
    source: str
    id: str

    @property
    def key(self) -> tuple[str, str]:
        """What tells a repeated event from a new one."""
        return self.source, self.id


class SessionEvents(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that was said of a session.

    Attributes:
        session: Its id.
        source: Who said it first.
        first_seen: When that was received (Unix seconds).
        started: When the user first logged in (Unix seconds), 0 if nobody said so.
        ended: When it ended (Unix seconds), 0 if nobody said so.
    """

    session: str
    source: str = ""
    first_seen: int = 0
    started: int = 0
    ended: int = 0


class Outcome(Enum):
    """What became of an event; the value is what the sender reads."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"  # nothing new in it
    IGNORED = "ignored"  # of a type that does not concern us
    UNKNOWN_SESSION = "unknown-session"  # noted; the sender should come again
    STRAY = "stray"  # noted; nobody has known the session for so long that coming again is of no use
    FULL = "full"  # not noted: too many sessions that nobody knows
    FAILED = "failed"  # not noted: the API server was no help

    @property
    def retry(self) -> bool:
        """Whether the sender should send it again."""
        return self in {Outcome.UNKNOWN_SESSION, Outcome.FULL, Outcome.FAILED}


def fold(row: SessionEvents | None, event: SessionEvent, now_unix: int) -> SessionEvents:
    """Add an event to a row; the earliest time of a kind stays."""
    row = row or SessionEvents(event.session, event.source, now_unix)
    old: int = getattr(row, event.kind)
    return msgspec.structs.replace(row, **{event.kind: min(old, event.at) if old else event.at})


def answer(*, known: bool, news: bool, age_s: int, retry_s: float) -> Outcome:
    """Tell what a sender is answered about an event that was noted.

    Args:
        known: Whether a lablet has the session.
        news: Whether the event changed the row.
        age_s: Since the session was first heard of.
        retry_s: For how long a sender is asked to come again about an unknown session.
    """
    if known:
        return Outcome.ACCEPTED if news else Outcome.DUPLICATE
    return Outcome.UNKNOWN_SESSION if age_s < retry_s else Outcome.STRAY


def outdated(row: SessionEvents, *, known: bool, now_unix: int) -> bool:
    """Tell whether a row can go: nobody has known its session for long."""
    return not known and now_unix - row.first_seen > KEEP_S


class Seen:
    """The keys of the latest events; the oldest are forgotten."""

    def __init__(self, keys_max: int = SEEN_MAX) -> None:
        self._keys: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._keys_max = keys_max

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: tuple[str, str]) -> None:
        """Remember a key."""
        self._keys[key] = None
        self._keys.move_to_end(key)
        while len(self._keys) > self._keys_max:
            self._keys.popitem(last=False)


# ------------------------------------------------------------------------------------------------ as a ConfigMap

_decoder: Final = msgspec.json.Decoder(SessionEvents)


def object_name(session: str) -> str:
    """Name the ConfigMap of a session; an id may have characters that a name must not have."""
    return f"vkprovider-session-{hashlib.sha256(session.encode()).hexdigest()[:32]}"


def read(config_map: ConfigMap, installation: str) -> SessionEvents | None:
    """Read a row; None if it is not ours or cannot be read, which loses no more than an event that was never sent."""
    if config_map.metadata.annotations.get(names.ANNOTATION_INSTALLATION) != installation:
        return None
    try:
        row = _decoder.decode(config_map.data.get(DATA_KEY, ""))
    except msgspec.MsgspecError:
        return None
    return row if object_name(row.session) == config_map.metadata.name else None


def body(row: SessionEvents, *, namespace: str, installation: str, resource_version: str | None) -> dict[str, Any]:
    """Make the ConfigMap of a row."""
    metadata: dict[str, Any] = {
        "name": object_name(row.session),
        "namespace": namespace,
        "labels": {names.LABEL_MANAGED_BY: names.MANAGER, names.LABEL_COMPONENT: names.COMPONENT_SESSION_EVENTS},
        "annotations": {names.ANNOTATION_INSTALLATION: installation},
    }
    if resource_version is not None:
        metadata["resourceVersion"] = resource_version
    data = {DATA_KEY: msgspec.json.encode(row).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

"""Session events of the Lab Delivery System: folded into one row per session, and the answer to their sender.

Folding is idempotent and commutative, so that events that are repeated, late, or spread over replicas yield the same
row. A row decides nothing: the owner of the session's claim reads it, and the claim is the authority.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, Literal

import msgspec

from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.objects import ConfigMap

Kind = Literal["started", "ended"]

DATA_KEY: Final = "session.json"
KEEP_S: Final = 24 * 3600
"""How long the row of an unknown session is kept."""
ROWS_MAX: Final = 20_000
"""Rows of unknown sessions are refused beyond that; those of known sessions never are."""
SEEN_MAX: Final = 10_000


class SessionEvent(msgspec.Struct, frozen=True):
    """One event about one session.

    Attributes:
        session: The session's id in the Lab Delivery System.
        kind: What happened.
        at: When (Unix seconds), not later than it was received.
        source: Its sender; with `id` it identifies the event.
        id: Unique for its source.
        deployment: The only LDS deployment whose sessions its sender's secret speaks of; empty for those of any.
    """

    session: str
    kind: Kind
    at: int
    source: str
    id: str
    deployment: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity by which a repeated event is recognised."""
        return self.deployment, self.source, self.id


class SessionEvents(msgspec.Struct, frozen=True, omit_defaults=True):
    """All events of a session, folded: those of senders bound to one deployment apart from those of the others.

    Attributes:
        session: Its id.
        source: The sender of the first event.
        first_seen: When the first event was received (Unix seconds).
        started: When the user first logged in (Unix seconds), 0 if not reported.
        ended: When it ended (Unix seconds), 0 if not reported.
        deployment: That of its senders' secret; empty if that is of no deployment.
    """

    session: str
    source: str = ""
    first_seen: int = 0
    started: int = 0
    ended: int = 0
    deployment: str = ""

    @property
    def key(self) -> str:
        """The identity of the row."""
        return row_key(self.session, self.deployment)


def row_key(session: str, deployment: str = "") -> str:
    """Return the identity of the row of a session; no session id has a line break."""
    return f"{deployment}\n{session}" if deployment else session


def merged(session: str, rows: Iterable[SessionEvents]) -> SessionEvents:
    """Return one row for several of a session: the earliest time of a kind counts."""
    found = list(rows)
    started, ended = ([t for t in times if t] for times in ([r.started for r in found], [r.ended for r in found]))
    return SessionEvents(session, started=min(started, default=0), ended=min(ended, default=0))


class EventOutcome(Enum):
    """The result of an event; the sender reads the value."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"  # nothing new in it
    IGNORED = "ignored"  # of a type that does not concern us
    UNKNOWN_SESSION = "unknown-session"  # stored; the sender should retry
    STRAY = "stray"  # stored; the session has been unknown for so long that a retry is useless
    FULL = "full"  # not stored: too many unknown sessions
    FAILED = "failed"  # not stored: the API server failed

    @property
    def retry(self) -> bool:
        """Whether the sender should send it again."""
        return self in {EventOutcome.UNKNOWN_SESSION, EventOutcome.FULL, EventOutcome.FAILED}


def fold(row: SessionEvents | None, event: SessionEvent, now_unix: int) -> SessionEvents:
    """Add an event to a row; the earliest time of a kind stays."""
    row = row or SessionEvents(event.session, event.source, now_unix, deployment=event.deployment)
    old: int = getattr(row, event.kind)
    return msgspec.structs.replace(row, **{event.kind: min(old, event.at) if old else event.at})


def answer(*, known: bool, news: bool, age_s: int, retry_s: float) -> EventOutcome:
    """Return the answer to the sender of a stored event.

    Args:
        known: Whether a lablet has the session.
        news: Whether the event changed the row.
        age_s: Since the first event of the session.
        retry_s: For how long senders are asked to retry events of an unknown session.
    """
    if known:
        return EventOutcome.ACCEPTED if news else EventOutcome.DUPLICATE
    return EventOutcome.UNKNOWN_SESSION if age_s < retry_s else EventOutcome.STRAY


def outdated(row: SessionEvents, *, known: bool, now_unix: int) -> bool:
    """Return whether a row can be deleted: its session has been unknown for long."""
    return not known and now_unix - row.first_seen > KEEP_S


class SeenEvents:
    """The keys of the latest events; the oldest are forgotten."""

    def __init__(self, keys_max: int = SEEN_MAX) -> None:
        self._keys: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._keys_max = keys_max

    def __contains__(self, key: tuple[str, str, str]) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: tuple[str, str, str]) -> None:
        """Remember a key."""
        self._keys[key] = None
        self._keys.move_to_end(key)
        while len(self._keys) > self._keys_max:
            self._keys.popitem(last=False)


# ------------------------------------------------------------------------------------------------ as a ConfigMap

_decoder: Final = msgspec.json.Decoder(SessionEvents)


def object_name(key: str) -> str:
    """Return the ConfigMap name of a row; a session id may have characters that a name must not."""
    return f"vkprovider-session-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def read(config_map: ConfigMap, installation: str) -> SessionEvents | None:
    """Decode a row; None if it is not ours or unreadable, which costs no more than an event that was never sent."""
    if config_map.metadata.annotations.get(wellknown.ANNOTATION_INSTALLATION) != installation:
        return None
    try:
        row = _decoder.decode(config_map.data.get(DATA_KEY, ""))
    except (msgspec.MsgspecError, RecursionError):
        return None
    return row if object_name(row.key) == config_map.metadata.name else None


def body(row: SessionEvents, *, namespace: str, installation: str, resource_version: str | None) -> dict[str, Any]:
    """Build the ConfigMap of a row."""
    metadata: dict[str, Any] = {
        "name": object_name(row.key),
        "namespace": namespace,
        "labels": {
            wellknown.LABEL_MANAGED_BY: wellknown.MANAGER,
            names.LABEL_COMPONENT: names.COMPONENT_SESSION_EVENTS,
        },
        "annotations": {wellknown.ANNOTATION_INSTALLATION: installation},
    }
    if resource_version is not None:
        metadata["resourceVersion"] = resource_version
    data = {DATA_KEY: msgspec.json.encode(row).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

"""Sessions with their parts, devices, answers and feedback: plain data, all of it stored."""

import datetime as dt
from typing import Annotated, Any, Literal

import msgspec

from vkpsim.lds.states import State

Protocol = Literal["ssh", "telnet", "vnc", "http", "https"]
Reason = Literal["user", "timeslot", "archived"]
EventType = Literal["session.started", "session.ended"]
Text = Annotated[str, msgspec.Meta(min_length=1)]


class Device(msgspec.Struct, kw_only=True):
    """A device that the session's user may reach."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    protocol: Protocol
    host: Text
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    uri: Text
    username: str | None = None
    password: str | None = None


class Part(msgspec.Struct, kw_only=True):
    """A part of a session: one form in one timeslot. Times are of the wall clock."""

    id: str
    form: str
    begins_unix_s: float
    ends_unix_s: float
    state: State = State.PENDING
    started_unix_s: float | None = None
    ended_unix_s: float | None = None


class Answer(msgspec.Struct, kw_only=True):
    """The user's answer to a task."""

    part: str
    item: str
    answer: Any
    at_unix_s: float
    score: float | None = None


class Feedback(msgspec.Struct, kw_only=True):
    """The user's feedback on a form."""

    form: str
    at_unix_s: float
    rating: int | None = None
    comment: str | None = None


class Session(msgspec.Struct, kw_only=True):
    """One session."""

    id: str
    number: int
    """Sequence number; lists are sorted by it."""
    username: str
    created_unix_s: float
    client_key: str | None = None
    owner: str | None = None
    archived: bool = False
    parts: list[Part] = []
    devices: list[Device] = []
    answers: dict[str, Answer] = {}
    """The latest answer to each item, by part and item."""
    feedback: Feedback | None = None
    link: str = ""
    """The secret of the unused login URL."""
    logins: list[str] = []
    """Secrets of browsers that are logged in."""

    @property
    def state(self) -> State:
        """The state of the newest part."""
        if self.archived:
            return State.ARCHIVED
        return self.parts[-1].state if self.parts else State.EMPTY


class Form(msgspec.Struct, kw_only=True):
    """A content package in the store, and the version of it that the LDS fetched last."""

    version: str = "1"
    tasks: list[str] = msgspec.field(default_factory=lambda: ["task-1"])
    fetched: str = ""


class Event(msgspec.Struct, kw_only=True):
    """An event that has happened."""

    id: str
    type: EventType
    session: str
    at_unix_s: float
    data: dict[str, Any]


def instant(unix_s: float) -> str:
    """Write a time in RFC 3339."""
    return dt.datetime.fromtimestamp(unix_s, dt.UTC).isoformat().replace("+00:00", "Z")

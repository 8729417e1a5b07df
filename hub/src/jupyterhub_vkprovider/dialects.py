"""The two dialects of the protocol: that of SQR-066, and that which Nublado speaks today."""

import json
from dataclasses import dataclass
from enum import StrEnum

from jupyterhub_vkprovider.stream import Message


class Dialect(StrEnum):
    """The dialects, as the portal's setting names them."""

    SQR066 = "sqr066"
    NUBLADO = "nublado"


class Kind(StrEnum):
    """The kinds of lines."""

    INFO = "info"
    ERROR = "error"
    PROGRESS = "progress"
    COMPLETE = "complete"
    FAILED = "failed"


class Status(StrEnum):
    """The states of a lab, and what may be known instead."""

    PENDING = "pending"
    RUNNING = "running"
    TERMINATING = "terminating"
    FAILED = "failed"
    ABSENT = "absent"
    """The portal knows no lab of this user."""


@dataclass(frozen=True)
class Line:
    """A line of an operation's story.

    Attributes:
        percent: How far the operation is; None if the line does not say so.
    """

    kind: Kind
    text: str = ""
    percent: int | None = None

    @property
    def ends(self) -> bool:
        """Whether it is the last one of its operation."""
        return self.kind in (Kind.COMPLETE, Kind.FAILED)


def line_of(message: Message, dialect: Dialect) -> Line | None:
    """Return the line that a message carries; None for one that tells a learner nothing."""
    match dialect:
        case Dialect.SQR066:
            return _plain(message)
        case Dialect.NUBLADO:
            return _json(message)


def _plain(message: Message) -> Line | None:
    """Return a line of `event: info`, `data: the lab is imported`, or of `event: progress`, `data: 20.0`."""
    kind = _kind(message.event)
    if kind is None:
        return None
    if kind is Kind.PROGRESS:
        percent = _percent(message.data)
        return None if percent is None else Line(kind, percent=percent)
    line = Line(kind, message.data)
    return Line(kind) if line.ends else line  # "must be present but contains no useful information"


def _json(message: Message) -> Line | None:
    """Return a line of `event: info`, `data: {"message": "the lab is imported", "progress": 20}`.

    Data that is no such object is the text itself: a broken line still tells a learner something.
    """
    kind = _kind(message.event)
    if kind in (None, Kind.PROGRESS):
        return None
    try:
        data = json.loads(message.data)
    except ValueError:
        data = None
    if not isinstance(data, dict) or not isinstance(data.get("message"), str):
        return Line(kind, message.data)
    text = "" if data["message"] == kind else data["message"]  # `complete` tells a learner nothing
    return Line(kind, text, _percent(data.get("progress")))


def _kind(event: str) -> Kind | None:
    """Return the kind of an event; None for one that is unknown, such as Nublado's `ping`."""
    return next((kind for kind in Kind if kind == event), None)


def _percent(value: object) -> int | None:
    """Return a percentage within its bounds; None for what is no number."""
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
        return None if number is None else max(0, min(100, int(number)))
    except (ValueError, OverflowError):  # "soon"; NaN and infinity
        return None


def status_of(body: object) -> Status | None:
    """Return the state that a status' body tells; None if it tells none that is known."""
    word = body.get("status") if isinstance(body, dict) else None
    if word == "terminated":  # Nublado's word for a lab whose Pod has ended by itself
        return Status.ABSENT
    return next((status for status in Status if status == word and status is not Status.ABSENT), None)


def poll_value(status: Status, dialect: Dialect) -> int | None:
    """Return the answer to JupyterHub's `poll`: None while there is a lab, else an exit status."""
    nublado = dialect is Dialect.NUBLADO
    match status:
        case Status.PENDING | Status.RUNNING:
            return None
        case Status.TERMINATING:
            return 0 if nublado else None
        case Status.FAILED:
            return 1 if nublado else 2
        case Status.ABSENT:
            return 0

"""The answers of a Lab Delivery System as frozen structs: sessions, content, responses, feedback, extensions."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec

from vkprovider.rest.dialect import without_secrets

CLIENT_KEY: Final = "client-key"
"""Extension: a create with the same client key gives the same live session."""
OWNER: Final = "owner"
"""Extension: sessions carry the mark of the installation that made them."""

TIMESLOT: Final = "timeslot"
"""Extension: the timeslot of a session can be changed."""

ID_PATTERN: Final = "^[A-Za-z0-9_-]{1,64}$"
"""What an id may be; it becomes part of a URL's path."""
Id = Annotated[str, msgspec.Meta(pattern=ID_PATTERN)]


_PLAIN_SEGMENT: Final = re.compile(r"[a-z]{1,16}([_-][a-z]{1,16}){0,2}|v[0-9]{1,2}")


class SessionState(StrEnum):
    """The states of a session that the LDS is known to have; an answer may bring another word."""

    EMPTY = "EMPTY"
    PENDING = "PENDING"
    PRELAUNCH = "PRELAUNCH"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    USER_FINISHED = "USER_FINISHED"
    ARCHIVED = "ARCHIVED"


class LabSessionPart(msgspec.Struct, frozen=True):
    """One part of a session: a form and its timeslot.

    Attributes:
        state: As of a session.
        started_at: The first login.
    """

    id: Id
    form_qualified_name: str
    state: str
    timeslot_start: datetime
    timeslot_end: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None


class LabSessionInfo(msgspec.Struct, frozen=True):
    """One session; its login URL, which is a way in, never shows in a repr.

    Attributes:
        state: A `SessionState`, or an unknown word.
        parts: Oldest first.
        login_url: With its secrets; None in lists and once archived.
        client_key: The name that its creator gave it; None on a deployment without that extension.
        owner: The mark of the installation that created it; None on a deployment without that extension.
    """

    id: Id
    username: str
    state: str
    parts: tuple[LabSessionPart, ...]
    login_url: str | None = None
    client_key: str | None = None
    owner: str | None = None
    created_at: datetime | None = None

    @property
    def begun(self) -> bool:
        """Whether its user has logged in."""
        return self.state in {SessionState.RUNNING, SessionState.PAUSED, SessionState.USER_FINISHED}

    @property
    def finished(self) -> bool:
        """Whether its user can do nothing more in it."""
        return self.state in {SessionState.USER_FINISHED, SessionState.ARCHIVED}

    @property
    def archived(self) -> bool:
        """Whether it is over for good."""
        return self.state == SessionState.ARCHIVED

    @property
    def public_login_url(self) -> str | None:
        """The part of the login URL that is known not to be a secret: fit for an annotation.

        Query, fragment and user never are. The path is left out as a whole if it has a segment that is neither a short
        word, nor a version, nor the session's id: it may be the learner's token.
        """
        if self.login_url is None:
            return None
        url = without_secrets(self.login_url)
        try:
            parts = urlsplit(url)
        except ValueError:
            return ""
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            return ""
        safe = all(not part or part == self.id or _PLAIN_SEGMENT.fullmatch(part) for part in parts.path.split("/"))
        return url if safe else f"{parts.scheme}://{parts.netloc}"

    def __repr__(self) -> str:
        return f"LabSessionInfo(id={self.id!r}, username={self.username!r}, state={self.state!r}, …)"


class ContentMetadata(msgspec.Struct, frozen=True):
    """What the LDS fetched for a form.

    Attributes:
        version: The content's own version.
        checksum: `sha256:<hex>` of the package.
    """

    form_qualified_name: str
    version: str
    refreshed_at: datetime
    checksum: str | None = None
    size_bytes: int | None = None


class Answer(msgspec.Struct, frozen=True):
    """One answer of a user.

    Attributes:
        item: The task or question.
        answer: Any JSON.
        score: From 0 to 1, if the LDS itself scores it.
    """

    part_id: Id
    item: str
    answer: Any
    score: float | None = None
    answered_at: datetime | None = None


class ResponseData(msgspec.Struct, frozen=True):
    """What the user of a session answered."""

    session_id: Id
    responses: tuple[Answer, ...]


class Feedback(msgspec.Struct, frozen=True):
    """What one user said about a form; the rating is from 1, bad, to 5, good."""

    session_id: Id
    form_qualified_name: str
    username: str | None = None
    rating: int | None = None
    comment: str | None = None
    given_at: datetime | None = None


class FeedbackData(msgspec.Struct, frozen=True):
    """What users said about a form."""

    entries: tuple[Feedback, ...]


class Info(msgspec.Struct, frozen=True):
    """A deployment's version and extensions.

    Attributes:
        extensions: `CLIENT_KEY`, `OWNER` and `TIMESLOT`, if it has them, and others, which are ignored.
    """

    version: str = ""
    extensions: frozenset[str] = frozenset()

"""The one table of refusals: status, code and text."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row of the table."""

    status: int
    code: str
    text: str
    """The `message` of the answer, a format string."""
    retry_after_s: int | None = None


class E(Enum):
    """The table; one member per reason to refuse."""

    NO_TOKEN = Refusal(401, "Unauthorized", "No or wrong bearer token.")
    NO_SUCH_PATH = Refusal(404, "NotFound", "There is nothing at {path}.")
    TOO_LARGE = Refusal(413, "RequestTooLarge", "The body is larger than {limit} bytes.")
    INVALID = Refusal(422, "InvalidRequest", "{details}")
    INTERNAL = Refusal(500, "InternalError", "{path} met an unexpected error.")

    UNKNOWN_SESSION = Refusal(404, "UnknownSession", "There is no session {id}.")
    UNKNOWN_FORM = Refusal(404, "UnknownForm", "There is no form {form} in the store.")
    FULL = Refusal(503, "CapacityExhausted", "All {capacity} sessions are taken.", retry_after_s=5)
    KEY_TAKEN = Refusal(409, "ClientKeyConflict", "Client key {key} names session {id} of another user or form.")

    ARCHIVED = Refusal(409, "SessionArchived", "Session {id} is archived.")
    EMPTY = Refusal(409, "SessionEmpty", "Session {id} has no part.")
    NOT_STARTED = Refusal(409, "SessionNotStarted", "Nobody has logged in to session {id}.")
    STARTED = Refusal(409, "SessionStarted", "Session {id} is {state}: somebody has logged in.")
    UNFINISHED = Refusal(409, "PartUnfinished", "The last part of session {id} is {state}.")
    FINISHED = Refusal(409, "SessionFinished", "Session {id} is finished.")
    TOO_EARLY = Refusal(409, "TimeslotNotBegun", "The timeslot of session {id} begins at {begins}.")
    TOO_LATE = Refusal(409, "TimeslotOver", "The timeslot of session {id} ended at {ended}.")
    USED_LINK = Refusal(403, "LoginLinkUsed", "This login link was used already or is not known.")


class LdsError(Exception):
    """A refusal on its way to the client as `{"code": "UnknownSession", "message": "…"}`."""

    def __init__(self, reason: E, /, **values: object) -> None:
        self.reason = reason
        self.status = reason.value.status
        self.code = reason.value.code
        self.retry_after_s = reason.value.retry_after_s
        super().__init__(reason.value.text.format(**values))


def body_of(code: str, message: str) -> bytes:
    """Encode the body that every refusal has."""
    return msgspec.json.encode({"code": code, "message": message})


def invalid(details: Any) -> LdsError:
    """Refuse a request that is malformed."""
    return LdsError(E.INVALID, details=details)

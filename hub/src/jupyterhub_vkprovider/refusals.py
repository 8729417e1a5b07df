"""What a learner reads when the portal does not do as asked."""

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

TEXT_CHARS_MAX: Final = 600
BUSY_TYPES: Final = frozenset({"lab_exists", "operation_in_progress"})
"""The types of conflicts that pass by themselves, or with the lab that is there."""
ABSENT_TYPE: Final = "unknown_user"
"""The type of the 404 of a user who has no lab; a proxy's 404 has none."""


@dataclass(frozen=True)
class Refusal:
    """An answer that says no.

    Attributes:
        code: The HTTP status.
        types: The kinds of what is wrong, in the portal's words.
        text: The sentences that a learner reads.
    """

    code: int
    types: frozenset[str]
    text: str

    @property
    def busy(self) -> bool:
        """Whether another operation or lab of the same user is in the way."""
        return self.code == HTTPStatus.CONFLICT and (not self.types or bool(self.types & BUSY_TYPES))


def refusal_of(code: int, body: bytes) -> Refusal:
    """Return the refusal that an answer carries.

    The portal writes `{"detail": [{"msg": "Choose a smaller lab.", "type": "insufficient_quota", "loc": ["body"]}]}`.
    """
    details = _details(body)
    types = frozenset(kind for _, kind in details)
    said = " ".join(_sentence(text) for text, _ in details if text)
    return Refusal(code, types, (said or _without_words(code))[:TEXT_CHARS_MAX])


def _details(body: bytes) -> list[tuple[str, str]]:
    """Return text and type of each detail; nothing for a body of another shape, such as a proxy's page."""
    try:
        decoded = json.loads(body)
    except ValueError:
        return []
    detail = decoded.get("detail") if isinstance(decoded, dict) else None
    if isinstance(detail, str):
        return [(detail, "")]
    found = detail if isinstance(detail, list) else ()
    return [(_word(one.get("msg")), _word(one.get("type"))) for one in found if isinstance(one, dict)]


def _word(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _without_words(code: int) -> str:
    match code:
        case 401:
            return "The lab service does not accept your login any more. Log out of the hub, and log in again."
        case 403:
            return "The lab service does not let you have a lab here. Ask your instructor."
        case 404:
            return "The lab service does not know your name. Ask your instructor."
        case 429:
            return "Too many people ask the lab service at once. Try again in a minute."
        case _ if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return f"The lab service has a fault (HTTP {code}). Try again in a minute."
        case _:
            return f"The lab service refused the request (HTTP {code}). Ask your instructor."

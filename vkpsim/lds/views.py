"""The API's JSON of sessions."""

import hashlib
from typing import Any

from vkpsim.lds.model import Feedback, Form, Part, Session, instant
from vkpsim.lds.settings import LdsSettings


def session_json(session: Session, settings: LdsSettings) -> dict[str, Any]:
    """Render a session, without its login URL."""
    shown: dict[str, Any] = {
        "id": session.id,
        "username": session.username,
        "state": session.state,
        "parts": [part_json(part) for part in session.parts],
        "created_at": instant(session.created_unix_s),
    }
    if settings.client_keys:
        shown["client_key"] = session.client_key
    if settings.owners:
        shown["owner"] = session.owner
    return shown


def part_json(part: Part) -> dict[str, Any]:
    """Render a part."""
    return {
        "id": part.id,
        "form_qualified_name": part.form,
        "state": part.state,
        "timeslot_start": instant(part.begins_unix_s),
        "timeslot_end": instant(part.ends_unix_s),
        "started_at": None if part.started_unix_s is None else instant(part.started_unix_s),
        "ended_at": None if part.ended_unix_s is None else instant(part.ended_unix_s),
    }


def responses_json(session: Session) -> dict[str, Any]:
    """Render the user's answers."""
    return {
        "session_id": session.id,
        "responses": [
            {
                "part_id": answer.part,
                "item": answer.item,
                "answer": answer.answer,
                "score": answer.score,
                "answered_at": instant(answer.at_unix_s),
            }
            for answer in session.answers.values()
        ],
    }


def feedback_json(session: Session, feedback: Feedback) -> dict[str, Any]:
    """Render the user's feedback."""
    return {
        "session_id": session.id,
        "form_qualified_name": feedback.form,
        "username": session.username,
        "rating": feedback.rating,
        "comment": feedback.comment,
        "given_at": instant(feedback.at_unix_s),
    }


def content_json(name: str, form: Form, now: float) -> dict[str, Any]:
    """Render the content that was fetched."""
    return {
        "form_qualified_name": name,
        "version": form.fetched,
        "refreshed_at": instant(now),
        "checksum": _checksum(name, form),
    }


def _checksum(name: str, form: Form) -> str:
    return "sha256:" + hashlib.sha256(f"{name}\0{form.version}".encode()).hexdigest()

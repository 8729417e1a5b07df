"""The only requests that may leave for an LDS deployment."""

from typing import Final

from vkprovider.rest.operations import Operation

BASE: Final = "/api/v1"

_REFRESH_S: Final = 120.0
"""How long the LDS may take at least to fetch content from its store."""
_SESSION: Final = "/sessions/{session}"

INFO: Final = Operation("info", "GET", "/info")
LIST_SESSIONS: Final = Operation("list_sessions", "GET", "/sessions")
CREATE_SESSION: Final = Operation("create_session_with_part", "POST", "/sessions")
GET_SESSION: Final = Operation("get_session_info", "GET", _SESSION)
GET_LOGIN_URL: Final = Operation("get_login_url", "GET", f"{_SESSION}/login_url")
SET_DEVICES: Final = Operation("set_devices", "PUT", f"{_SESSION}/devices")
SET_TIMESLOT: Final = Operation("set_timeslot", "PUT", f"{_SESSION}/timeslot")
ARCHIVE_SESSION: Final = Operation("archive_session", "POST", f"{_SESSION}/archive")
COLLECT_RESPONSES: Final = Operation("collect_responses", "GET", f"{_SESSION}/responses")
COLLECT_FEEDBACK: Final = Operation("collect_user_feedback_by_session", "GET", f"{_SESSION}/feedback")
COLLECT_FORM_FEEDBACK: Final = Operation("collect_user_feedback_by_form", "GET", "/feedback")
REFRESH_CONTENT: Final = Operation("refresh_content", "POST", "/content/refresh", _REFRESH_S)

OPERATIONS: Final = (
    INFO,
    LIST_SESSIONS,
    CREATE_SESSION,
    GET_SESSION,
    GET_LOGIN_URL,
    SET_DEVICES,
    SET_TIMESLOT,
    ARCHIVE_SESSION,
    COLLECT_RESPONSES,
    COLLECT_FEEDBACK,
    COLLECT_FORM_FEEDBACK,
    REFRESH_CONTENT,
)

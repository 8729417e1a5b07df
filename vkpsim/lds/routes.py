"""The calls of the API."""

import datetime as dt
import math
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec

from vkpsim.lds.calls import Answer, Call, Route, unix_s
from vkpsim.lds.errors import E, LdsError, invalid
from vkpsim.lds.grading import GradeRequest
from vkpsim.lds.model import Device, Session
from vkpsim.lds.states import Op, State
from vkpsim.lds.views import content_json, feedback_json, responses_json, session_json

FormName = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
Mark = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class NewSession(msgspec.Struct, kw_only=True):
    """The body of a create."""

    username: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    timeslot_start: dt.datetime
    timeslot_end: dt.datetime
    form_qualified_name: FormName
    client_key: Mark | None = None
    owner: Mark | None = None


class DeviceList(msgspec.Struct):
    """The body of set devices."""

    devices: Annotated[list[Device], msgspec.Meta(max_length=1000)]


class Timeslot(msgspec.Struct):
    """The body of set timeslot."""

    timeslot_start: dt.datetime
    timeslot_end: dt.datetime


class ContentRefresh(msgspec.Struct):
    """The body of a content refresh."""

    form_qualified_name: FormName


def info(call: Call) -> Any:
    """Return version and extensions; an LDS without extensions does not have this path."""
    settings = call.world.settings
    extensions = ["client-key"] * settings.client_keys + ["owner"] * settings.owners + ["timeslot"] * settings.timeslots
    if not extensions:
        raise LdsError(E.NO_SUCH_PATH, path="/api/v1/info")
    return {"version": settings.version, "extensions": extensions}


def create(call: Call) -> Answer:
    """Create a session with its first part, or return the session that has the client key."""
    given, world = call.read(NewSession), call.world
    begins, ends = _slot(given)
    known = world.with_key(given.client_key) if given.client_key is not None else None
    if known is not None:
        call.session_id = known.id
        if known.username != given.username or all(part.form != given.form_qualified_name for part in known.parts):
            raise LdsError(E.KEY_TAKEN, key=given.client_key, id=known.id)
        return Answer(200, _with_login(call, known))
    world.form(given.form_qualified_name)
    session = world.create(call.now, username=given.username, client_key=given.client_key, owner=given.owner)
    world.add_part(session, given.form_qualified_name, begins, ends)
    call.session_id = session.id
    return Answer(201, _with_login(call, session))


def list_sessions(call: Call) -> Any:
    """List sessions, oldest first, a page at a time."""
    world, query = call.world, call.query
    state = query.get("state")
    if state is not None and state not in set(State):
        raise invalid(f"state: there is no state {state}")
    found = [
        session
        for session in world.sessions.values()
        if (session.state == state if state else not session.archived)
        and (not world.settings.owners or query.get("owner") in {None, session.owner})
        and (not world.settings.client_keys or query.get("client_key") in {None, session.client_key})
    ]
    page, following = call.page(found)
    shown = {"sessions": [session_json(session, world.settings) for session in page]}
    return shown if following is None else {**shown, "next": following}


def get_session(call: Call) -> Any:
    """Show a session."""
    return _with_login(call, call.session())


def login_url(call: Call) -> Any:
    """Return the login URL of the session."""
    return {"login_url": _login_url(call, call.session())}


def set_devices(call: Call) -> None:
    """Replace the session's devices."""
    session = call.session()
    call.world.set_devices(session, call.read(DeviceList).devices)


def set_timeslot(call: Call) -> None:
    """Replace the timeslot of the session's newest part."""
    if not call.world.settings.timeslots:
        raise LdsError(E.NO_SUCH_PATH, path=f"/api/v1/sessions/{call.path['session']}/timeslot")
    call.world.set_timeslot(call.session(), *_slot(call.read(Timeslot)))


def _slot(given: NewSession | Timeslot) -> tuple[float, float]:
    begins, ends = unix_s(given.timeslot_start, "timeslot_start"), unix_s(given.timeslot_end, "timeslot_end")
    if begins >= ends:
        raise invalid("timeslot_end: expected a time after timeslot_start")
    return begins, ends


def archive(call: Call) -> Any:
    """End a session for good."""
    session = call.session()
    call.world.archive(call.now, session)
    return session_json(session, call.world.settings)


def responses(call: Call) -> Any:
    """Show the user's answers."""
    session = call.session()
    call.world.check(Op.COLLECT, session)
    return responses_json(session)


def feedback(call: Call) -> Any:
    """Show the feedback of a session's user."""
    session = call.session()
    call.world.check(Op.COLLECT, session)
    return {"entries": [feedback_json(session, session.feedback)] if session.feedback else []}


def feedback_of_form(call: Call) -> Any:
    """Show the feedback on a form."""
    form = call.query.get("form_qualified_name")
    if not form:
        raise invalid("form_qualified_name: missing in the query")
    said = [one for one in call.world.sessions.values() if one.feedback is not None and one.feedback.form == form]
    page, following = call.page(said)
    shown = {"entries": [feedback_json(session, session.feedback) for session in page if session.feedback]}
    return shown if following is None else {**shown, "next": following}


def refresh_content(call: Call) -> Any:
    """Fetch a form's content."""
    name = call.read(ContentRefresh).form_qualified_name
    return content_json(name, call.world.refresh(name), call.now)


def grade(call: Call) -> Any:
    """Grade what was collected from a lablet."""
    request = call.read(GradeRequest)
    left_s = call.grader.left_s(call.now, request)
    return Answer(202, None, math.ceil(left_s)) if left_s > 0 else call.grader.grade(request)


def _with_login(call: Call, session: Session) -> dict[str, Any]:
    shown = session_json(session, call.world.settings)
    return shown if session.archived else {**shown, "login_url": _login_url(call, session)}


def _login_url(call: Call, session: Session) -> str:
    call.changed |= not session.link
    return f"{call.base_url}/login?token={call.world.link(session)}"


ROUTES: Final[Sequence[Route]] = (
    Route("GET", "/api/v1/info", info),
    Route("POST", "/api/v1/sessions", create),
    Route("GET", "/api/v1/sessions", list_sessions),
    Route("GET", "/api/v1/sessions/{session}", get_session),
    Route("GET", "/api/v1/sessions/{session}/login_url", login_url),
    Route("PUT", "/api/v1/sessions/{session}/devices", set_devices),
    Route("PUT", "/api/v1/sessions/{session}/timeslot", set_timeslot),
    Route("POST", "/api/v1/sessions/{session}/archive", archive),
    Route("GET", "/api/v1/sessions/{session}/responses", responses),
    Route("GET", "/api/v1/sessions/{session}/feedback", feedback),
    Route("GET", "/api/v1/feedback", feedback_of_form),
    Route("POST", "/api/v1/content/refresh", refresh_content),
    Route("POST", "/grade", grade),
)

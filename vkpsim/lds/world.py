"""The sessions of one LDS in time. Pure: time is an argument, ids and secrets come from outside.

Nothing here waits. `advance(now)` ends the sessions of expired timeslots, and must be called before anything is read
or changed. Acts of users are reported as events, through `emit`.
"""

import heapq
from collections.abc import Callable
from typing import Any

from vkpsim.lds.errors import E, LdsError
from vkpsim.lds.model import Answer, Device, Event, EventType, Feedback, Form, Part, Reason, Session, instant
from vkpsim.lds.settings import LdsSettings, Snapshot
from vkpsim.lds.states import RULES, Op, State, Stay


class World:
    """All sessions.

    Args:
        settings: Of the LDS.
        new_id: Makes ids.
        new_secret: Makes secrets that cannot be guessed.
        emit: Called with each event.
    """

    def __init__(
        self,
        settings: LdsSettings,
        new_id: Callable[[], str],
        new_secret: Callable[[], str],
        emit: Callable[[Event], None],
    ) -> None:
        self.settings = settings
        self.capacity = settings.capacity
        self.sessions: dict[str, Session] = {}
        self.forms = {name: Form() for name in settings.forms}
        self._new_id = new_id
        self._new_secret = new_secret
        self._emit = emit
        self._made = 0
        self._by_key: dict[str, Session] = {}
        self._ends: list[tuple[float, str, str]] = []

    # reading

    def session(self, session_id: str) -> Session:
        """Find a session.

        Raises:
            LdsError: No session has this id.
        """
        session = self.sessions.get(session_id)
        if session is None:
            raise LdsError(E.UNKNOWN_SESSION, id=session_id)
        return session

    def form(self, name: str) -> Form:
        """Find a form in the store.

        Raises:
            LdsError: No form has this name.
        """
        form = self.forms.get(name)
        if form is None:
            if self.settings.forms:
                raise LdsError(E.UNKNOWN_FORM, form=name)
            form = self.add_form(name)
        return form

    def add_form(self, name: str) -> Form:
        """Add a form to the store, unless it exists."""
        return self.forms.setdefault(name, Form())

    def live(self) -> int:
        """Count the sessions that take capacity."""
        return sum(not session.archived for session in self.sessions.values())

    def with_key(self, key: str) -> Session | None:
        """Find the session that is not archived and has a client key."""
        return self._by_key.get(key)

    def by_link(self, link: str) -> Session:
        """Find the session of a login link.

        Raises:
            LdsError: The link was used or is unknown.
        """
        for session in self.sessions.values():
            if link and session.link == link:
                return session
        raise LdsError(E.USED_LINK)

    # time

    def advance(self, now: float) -> None:
        """End the sessions whose timeslots have ended."""
        while self._ends and self._ends[0][0] <= now:
            at, session_id, part_id = heapq.heappop(self._ends)
            session = self.sessions[session_id]
            if session.parts[-1].id == part_id and session.parts[-1].ends_unix_s == at:
                self._enter(at, session, Op.EXPIRE, "timeslot")

    def next_end(self) -> float | None:
        """Return the time at which the next timeslot ends."""
        return self._ends[0][0] if self._ends else None

    # what clients do

    def create(self, now: float, *, username: str, client_key: str | None = None, owner: str | None = None) -> Session:
        """Make a session without a part.

        Raises:
            LdsError: The capacity is exhausted.
        """
        if self.live() >= self.capacity:
            raise LdsError(E.FULL, capacity=self.capacity)
        self._made += 1
        session = Session(
            id=self._new_id(),
            number=self._made,
            username=username,
            created_unix_s=now,
            client_key=client_key if self.settings.client_keys else None,
            owner=owner if self.settings.owners else None,
        )
        self.sessions[session.id] = session
        if session.client_key is not None:
            self._by_key[session.client_key] = session
        return session

    def add_part(self, session: Session, form: str, begins: float, ends: float) -> Part:
        """Add a part to a session.

        Raises:
            LdsError: The form is unknown, or the part before is not finished.
        """
        self.form(form)
        self.check(Op.ADD_PART, session)
        part = Part(id=self._new_id(), form=form, begins_unix_s=begins, ends_unix_s=ends)
        session.parts.append(part)
        if self.settings.end_timeslots:
            heapq.heappush(self._ends, (ends, session.id, part.id))
        return part

    def set_devices(self, session: Session, devices: list[Device]) -> None:
        """Replace the devices of a session.

        Raises:
            LdsError: It is archived.
        """
        self.check(Op.SET_DEVICES, session)
        session.devices = devices

    def set_timeslot(self, session: Session, begins: float, ends: float) -> None:
        """Replace the timeslot of a session.

        Raises:
            LdsError: It has no part, or is over.
        """
        self.check(Op.SET_TIMESLOT, session)
        part = session.parts[-1]
        part.begins_unix_s, part.ends_unix_s = begins, ends
        if self.settings.end_timeslots:
            heapq.heappush(self._ends, (ends, session.id, part.id))

    def link(self, session: Session) -> str:
        """Return the secret of the session's login URL, the same until it is used.

        Raises:
            LdsError: It is archived.
        """
        self.check(Op.LOGIN_URL, session)
        session.link = session.link or self._new_secret()
        return session.link

    def archive(self, now: float, session: Session) -> None:
        """End a session for good."""
        if self.check(Op.ARCHIVE, session) is Stay.NOTHING:
            return
        if session.state in {State.RUNNING, State.PAUSED}:
            self._enter(now, session, Op.FINISH, "archived", State.ARCHIVED)
        session.archived = True
        session.link, session.logins = "", []
        for part in session.parts:
            part.state = State.ARCHIVED
        if session.client_key is not None:
            self._by_key.pop(session.client_key, None)

    def refresh(self, name: str) -> Form:
        """Fetch the content of a form again.

        Raises:
            LdsError: The form is unknown.
        """
        form = self.form(name)
        form.fetched = form.version
        return form

    # what users do

    def log_in(self, now: float, session: Session) -> str:
        """Log the user in; the first login emits an event. The login link is used up.

        Returns:
            The secret of the browser's session cookie.

        Raises:
            LdsError: The session has no part or is over, or its timeslot has not begun.
        """
        row = self.check(Op.LOG_IN, session)
        part = session.parts[-1]
        if now < part.begins_unix_s:
            raise LdsError(E.TOO_EARLY, id=session.id, begins=instant(part.begins_unix_s))
        if now >= part.ends_unix_s:
            raise LdsError(E.TOO_LATE, id=session.id, ended=instant(part.ends_unix_s))
        if row is State.RUNNING:
            part.state, part.started_unix_s = State.RUNNING, now
            self._tell(now, session, "session.started")
        session.link = ""
        login = self._new_secret()
        session.logins.append(login)
        return login

    def finish(self, now: float, session: Session) -> None:
        """End the session as its user.

        Raises:
            LdsError: The user has not logged in, or it is archived.
        """
        self._enter(now, session, Op.FINISH, "user")

    def shift(self, op: Op, session: Session) -> None:
        """Pause or resume a session, or begin or end the launch of its lab.

        Raises:
            LdsError: Its state forbids it.
        """
        row = self.check(op, session)
        if isinstance(row, State):
            session.parts[-1].state = row

    def answer(self, now: float, session: Session, item: str, answer: Any, score: float | None = None) -> None:
        """Save an answer to a task; a later one replaces it.

        Raises:
            LdsError: The user has not logged in, or the session is over.
        """
        self.check(Op.ANSWER, session)
        part = session.parts[-1].id
        session.answers[f"{part}/{item}"] = Answer(part=part, item=item, answer=answer, at_unix_s=now, score=score)

    def say(self, now: float, session: Session, rating: int | None, comment: str | None) -> None:
        """Save the user's feedback; later feedback replaces it.

        Raises:
            LdsError: The user has not logged in, or the session is archived.
        """
        self.check(Op.GIVE_FEEDBACK, session)
        form = session.parts[-1].form
        session.feedback = Feedback(form=form, at_unix_s=now, rating=rating, comment=comment)

    # the state file

    def snapshot(self, undelivered: list[Event]) -> Snapshot:
        """Return the state to be stored."""
        return Snapshot(
            sessions=self.sessions,
            made=self._made,
            capacity=self.capacity,
            forms=self.forms,
            undelivered=undelivered,
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Load a stored state."""
        self.sessions, self.forms = snapshot.sessions, self.forms | snapshot.forms
        self._made, self.capacity = snapshot.made, snapshot.capacity
        for session in self.sessions.values():
            if session.client_key is not None and not session.archived:
                self._by_key[session.client_key] = session
            if self.settings.end_timeslots and session.parts:
                part = session.parts[-1]
                heapq.heappush(self._ends, (part.ends_unix_s, session.id, part.id))

    # transitions

    def check(self, op: Op, session: Session) -> State | Stay:
        """Look an operation up in the table.

        Raises:
            LdsError: The state of the session refuses it.
        """
        row = RULES[op][session.state]
        if isinstance(row, E):
            raise LdsError(row, id=session.id, state=session.state)
        return row

    def _enter(self, now: float, session: Session, op: Op, reason: Reason, shown: State | None = None) -> None:
        row = self.check(op, session)
        if not isinstance(row, State):
            return
        part = session.parts[-1]
        part.state, part.ended_unix_s = row, now
        self._tell(now, session, "session.ended", reason=reason, state=shown or row)

    def _tell(self, now: float, session: Session, kind: EventType, **more: Any) -> None:
        data = {
            "session_id": session.id,
            "part_id": session.parts[-1].id,
            "state": session.state,
            "username": session.username,
            **({"client_key": session.client_key} if session.client_key is not None else {}),
            **more,
        }
        self._emit(Event(id=self._new_id(), type=kind, session=session.id, at_unix_s=now, data=data))

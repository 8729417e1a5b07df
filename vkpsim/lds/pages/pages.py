"""The learner's pages: login URL, session with its devices, Finish button."""

import secrets
from typing import Final

from aiohttp import web

from vkpsim.lds.endpoint import Endpoint, Visit
from vkpsim.lds.errors import E, LdsError, invalid
from vkpsim.lds.model import Session
from vkpsim.lds.pages.html import login_page, session_page
from vkpsim.lds.world import World

COOKIE: Final = "lds-login"


class Pages:
    """The pages of one LDS."""

    def __init__(self, world: World, *, secure: bool) -> None:
        self._world = world
        self._secure = secure

    def add_routes(self, application: web.Application, endpoint: Endpoint) -> None:
        """Add the pages to an application."""
        for method, path, handler in (
            ("GET", "/login", self.ask),
            ("POST", "/login", self.log_in),
            ("GET", "/sessions/{session}", self.show),
            ("POST", "/sessions/{session}/answers", self.answer),
            ("POST", "/sessions/{session}/feedback", self.say),
            ("POST", "/sessions/{session}/finish", self.finish),
        ):
            application.router.add_route(method, path, endpoint.page(handler))

    def ask(self, visit: Visit) -> web.Response:
        """Ask for confirmation of the login, so that a mail scanner that follows a link does not use it up."""
        link = visit.request.query.get("token", "")
        session = self._world.by_link(link)
        visit.session_id = session.id
        return _html(login_page(session, link))

    def log_in(self, visit: Visit) -> web.Response:
        """Log in with the secret of a login URL, once."""
        session = self._world.by_link(visit.form.get("token", ""))
        visit.session_id = session.id
        login = self._world.log_in(visit.now, session)
        response = _see_other(session)
        response.set_cookie(
            COOKIE, login, path=f"/sessions/{session.id}", httponly=True, samesite="Lax", secure=self._secure
        )
        return response

    def show(self, visit: Visit) -> web.Response:
        """Show the session."""
        session = self._session_of(visit)
        return _html(session_page(session, self._world.form(session.parts[-1].form)))

    def answer(self, visit: Visit) -> web.Response:
        """Save the answers to the tasks."""
        session = self._session_of(visit)
        for task in self._world.form(session.parts[-1].form).tasks:
            if task in visit.form:
                self._world.answer(visit.now, session, task, visit.form[task])
        return _see_other(session)

    def say(self, visit: Visit) -> web.Response:
        """Save the feedback."""
        session = self._session_of(visit)
        rating = visit.form.get("rating", "")
        if rating not in set("12345"):
            raise invalid(f"rating: expected 1 to 5, got {rating!r}")
        self._world.say(visit.now, session, int(rating), visit.form.get("comment") or None)
        return _see_other(session)

    def finish(self, visit: Visit) -> web.Response:
        """End the session."""
        session = self._session_of(visit)
        self._world.finish(visit.now, session)
        return _see_other(session)

    def _session_of(self, visit: Visit) -> Session:
        """Find the session that the browser is logged in to.

        Raises:
            LdsError: It is not logged in, or to another session.
        """
        session = self._world.sessions.get(visit.request.match_info["session"])
        shown = visit.request.cookies.get(COOKIE, "").encode()
        if session is None or not any(secrets.compare_digest(shown, login.encode()) for login in session.logins):
            raise LdsError(E.USED_LINK)
        visit.session_id = session.id
        return session


def _html(page: str) -> web.Response:
    return web.Response(text=page, content_type="text/html")


def _see_other(session: Session) -> web.Response:
    return web.Response(status=303, headers={"Location": f"/sessions/{session.id}"})

"""The seam between the controllers and one deployment of the Lab Delivery System."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from tunnels.outgoing import Guard
from vkprovider.labs.lds.wire import ContentMetadata, FeedbackData, Info, LabSessionInfo, ResponseData
from vkprovider.labs.pure.topology.devices import DeviceAccessInfo


class LabDelivery(Protocol):
    """The sessions of one deployment.

    Every method may raise what an outside call may raise: `Unavailable` (with `Throttled`, `DeadlineExceeded`, and
    `Unsent` of `vkprovider.rest.dialect`, `Full` of `vkprovider.labs.lds.dialect`), `Unauthorized`, `Forbidden`,
    `TlsFailed`, `Invalid`; and what the guard raises. `NotFound` is raised only when the LDS itself said that session
    or form do not exist. An incomplete list is an error, never a shorter list.

    Every method but `create_session_with_part` may be called again with the same arguments, whatever came of the first
    call. A create may be called again if it has a client key and the deployment has the extension; else see
    `vkprovider.rest.dialect.may_have_happened`.
    """

    def guarded(self, guard: Guard) -> "LabDelivery":
        """Return this deployment with a guard, called right before every request, which raises to stop it."""

    def server_time(self) -> int:
        """Return its time by its last answer, in Unix seconds, never ahead of it; 0 while it is unknown."""

    async def close(self) -> None:
        """Close all connections, also of those with a guard."""

    async def info(self) -> Info:
        """Get the deployment's version and extensions; kept for some minutes."""

    async def create_session_with_part(
        self,
        username: str,
        timeslot_start: datetime,
        timeslot_end: datetime,
        form_qualified_name: str,
        *,
        client_key: str,
        owner: str,
    ) -> LabSessionInfo:
        """Create a session with its first part, or return the live one of that client key.

        Args:
            username: Who may log in.
            timeslot_start: With a zone.
            timeslot_end: With a zone.
            form_qualified_name: Names the content.
            client_key: Names the session for good: the same for the same wish, another one for another wish.
            owner: The mark of this installation.

        Raises:
            Full: The deployment holds as many sessions as it can.
            NotFound: The LDS has no such form.
            Conflict: The client key's live session is another user's or another form's.
        """

    async def set_devices(self, session_id: str, devices: Sequence[DeviceAccessInfo]) -> None:
        """Replace the list of the devices that the session's user may reach.

        Raises:
            Conflict: The session is archived.
            NotFound: There is no such session.
        """

    async def set_timeslot(self, session_id: str, timeslot_start: datetime, timeslot_end: datetime) -> None:
        """Replace the timeslot of the session's newest part.

        Args:
            session_id: The session.
            timeslot_start: With a zone.
            timeslot_end: With a zone.

        Raises:
            Lacking: The deployment lacks the extension.
            Conflict: The session is over.
            NotFound: There is no such session.
        """

    async def get_session_info(self, session_id: str) -> LabSessionInfo:
        """Get one session, with its login URL.

        Raises:
            NotFound: There is no such session.
        """

    async def get_login_url(self, session_id: str) -> str:
        """Get the URL, secrets included, at which the session's user logs in.

        Raises:
            Conflict: The session is archived.
            NotFound: There is no such session.
        """

    async def archive_session(self, session_id: str) -> None:
        """End a session for good; an unknown one counts as ended."""

    async def refresh_content(self, form_qualified_name: str) -> ContentMetadata:
        """Make the LDS fetch a form's content again; return when it is in place.

        Raises:
            NotFound: The LDS's store has no such form.
        """

    async def collect_responses(self, session_id: str) -> ResponseData:
        """Collect what the session's user answered.

        Raises:
            NotFound: There is no such session.
        """

    async def collect_user_feedback_by_session(self, session_id: str) -> FeedbackData:
        """Collect what the session's user said about the lab.

        Raises:
            NotFound: There is no such session.
        """

    async def collect_user_feedback_by_form(self, form_qualified_name: str) -> FeedbackData:
        """Collect what the users of all sessions of a form said about it."""

    async def list_sessions(self, *, owner: str, client_key: str | None = None) -> tuple[LabSessionInfo, ...]:
        """List the sessions of an installation that are not archived.

        Args:
            owner: Its mark.
            client_key: Only those with this key.

        Raises:
            Lacking: The deployment lacks an extension, so that its sessions cannot be told apart.
        """

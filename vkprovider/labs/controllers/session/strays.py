"""Sessions of the Lab Delivery System that no lablet of this replica has: counted, and archived if no claim names them.

Such a session takes capacity of its deployment for ever. But its claim may not be written yet, and a claim that cannot
be read may name any session: a young session is never archived, and none at all while a claim cannot be read.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from vkprovider.lablet import names
from vkprovider.labs.controllers.claims import reader
from vkprovider.labs.controllers.session.inbox import Inbox
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.lds.dialect import Lacking
from vkprovider.labs.lds.spi import LabDelivery
from vkprovider.labs.lds.wire import ID_PATTERN, LabSessionInfo
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.intent import Definition
from vkprovider.labs.pure.session.delivery import NO_TERMS, Session
from vkprovider.platform.errors import InputError, NotFound, OutsideError
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)
_ID: Final = re.compile(ID_PATTERN)
_SWEEP_S: Final = 30.0
_STRAY_S: Final = 60
"""How long a session may exist without a claim that names it: the claim may not be written yet."""


@dataclass(frozen=True, slots=True)
class StraySessions:
    """The sessions that claims of this replica do not name.

    Attributes:
        inbox: The stored session events.
        definitions: By name.
        live: Returns the live sessions that claims of this replica name.
        leads: Returns whether this replica archives.
        elsewhere: How many other live sessions each deployment had when it was last listed.
    """

    ctx: Context
    deployments: Deployments
    inbox: Inbox
    definitions: Mapping[str, Definition]
    live: Callable[[], list[Session]]
    leads: Callable[[], bool]
    elsewhere: Counter[str] = field(default_factory=Counter, init=False)

    async def run(self) -> None:
        """Sweep periodically, until cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_S * (0.5 + self.ctx.dice()))
            await self.sweep()

    async def sweep(self) -> None:
        """List the sessions of every deployment once."""
        unlisted: list[str] = []
        for deployment in self.deployments.deployments:
            try:
                client = self.deployments.client(deployment.id)
                listed = await client.list_sessions(owner=names.mark(self.ctx.installation))
            except Lacking:
                unlisted.append(deployment.id)
                continue
            except (InputError, OutsideError) as error:  # it does not answer, or was just taken out of the file
                _log.debug("sessions cannot be listed", deployment=deployment.id, error=str(error))
                continue
            own = {name for session in self.live() for name in (session.id, session.key)}
            self.elsewhere[deployment.id] = sum(own.isdisjoint({info.id, info.client_key}) for info in listed)
            if self.leads():
                await self._archive_strays(client, listed)
        if self.leads() and unlisted:
            await self._archive_heard(unlisted)

    async def _archive_strays(self, client: LabDelivery, listed: Collection[LabSessionInfo]) -> None:
        """Archive sessions of this installation that no claim names; none while a claim cannot be read."""
        before = client.server_time() - _STRAY_S  # its stamps are judged by its clock
        old = [info for info in listed if info.created_at is not None and info.created_at.timestamp() < before]
        if not old:
            return
        try:
            known = _named(await reader.of_all(self.ctx))
        except (InputError, OutsideError) as error:
            _log.warning("sessions without a lablet are not looked for", error=str(error))
            return
        for info in old:
            if info.id not in known and (info.client_key or "") not in known:
                await _archive(client, info)

    async def _archive_heard(self, deployments: list[str]) -> None:
        """Archive sessions that only their events name: the answer to their creation was lost, and cannot be listed.

        Args:
            deployments: Those whose sessions carry no owner; one that does not answer is left out from then on.
        """
        if not self.ctx.is_sure():
            return
        heard = [row.session for row in self.inbox.strays(_STRAY_S) if _ID.fullmatch(row.session)]
        if not heard:
            return
        try:
            claims = await reader.of_all(self.ctx)
        except (InputError, OutsideError) as error:
            _log.warning("sessions of events are not looked for", error=str(error))
            return
        known = _named(claims)
        for session in heard:
            if session not in known:
                for deployment in deployments.copy():
                    if not await self._archive_if_own(deployment, session, claims, known):
                        deployments.remove(deployment)

    async def _archive_if_own(self, deployment: str, session: str, claims: list[Claim], known: set[str]) -> bool:
        """Archive a session at one deployment, if this installation created it; return whether that one answers.

        A claim may name it by its client key alone: it learns the id when it asks for the session once more.
        """
        try:
            client = self.deployments.client(deployment)
            info = await client.get_session_info(session)
            if info.archived or (info.client_key or "") in known:
                return True
            if any(self._requested(info, claim) for claim in claims):
                await _archive(client, info)
        except NotFound:
            return True
        except (InputError, OutsideError) as error:
            _log.warning("a session cannot be looked for", session=session, deployment=deployment, error=str(error))
            return False
        return True

    def _requested(self, info: LabSessionInfo, claim: Claim) -> bool:
        """Return whether a session is what a claim requested: its learner, form and timeslot, to the second.

        The name alone proves nothing: a learner may have a session of another installation, and any user who may edit
        Pods chooses a name.
        """
        session = claim.session
        if session is None or not session.slot_start or info.username != session.username:
            return False
        definition = self.definitions.get(claim.definition)
        form = (definition.terms if definition is not None else NO_TERMS).form
        return any(
            (part.form_qualified_name, int(part.timeslot_start.timestamp()), int(part.timeslot_end.timestamp()))
            == (form, session.slot_start, session.slot_end)
            for part in info.parts
        )


def live_sessions(workers: Mapping[str, Worker]) -> list[Session]:
    """List the sessions that the claims of workers name and that are not archived."""
    return [
        claim.session
        for worker in workers.values()
        for claim in worker.claims.claims.values()
        if claim.session is not None and not claim.session.archived_at
    ]


async def _archive(client: LabDelivery, info: LabSessionInfo) -> None:
    try:
        await client.archive_session(info.id)
    except OutsideError as error:
        _log.warning("a session that no lablet has cannot be archived", session=info.id, error=str(error))
    else:
        _log.warning("a session that no lablet has was archived", session=info.id, user=info.username)


def _named(claims: Collection[Claim]) -> set[str]:
    """Return the ids and client keys of all live sessions that claims name."""
    named = set()
    for claim in claims:
        if claim.session is not None and not claim.session.archived_at:
            named |= {claim.session.id, claim.session.key}
    return named - {""}

"""Sessions of the Lab Delivery System that no lablet of this replica has: counted, and archived if no row names them.

A session that is nobody's holds a place in its deployment for ever. But a row may just be being written, and one that
cannot be read may name any session: so nothing young is touched, and nothing at all while a row cannot be read.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import structlog

from vkprovider.api import names
from vkprovider.api.errors import InputError, NotFound, OutsideError
from vkprovider.controllers.claims import reader
from vkprovider.controllers.context import Context
from vkprovider.controllers.session.inbox import Inbox
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.session.delivery import Session
from vkprovider.lds.deployments import Deployments
from vkprovider.lds.errors import Lacking
from vkprovider.lds.spi import OWNER, LabDelivery, LabSessionInfo

_log: Final = structlog.get_logger(__name__)
_SWEEP_S: Final = 30.0
_STRAY_S: Final = 60
"""For so long may a session be without a row that names it: the row may just be being written."""


class StraySessions:
    """The sessions that are not this replica's.

    Attributes:
        elsewhere: How many live ones each deployment has, as the LDS last told.
    """

    def __init__(
        self,
        ctx: Context,
        deployments: Deployments,
        inbox: Inbox,
        *,
        mine: Callable[[], list[Session]],
        leads: Callable[[], bool],
    ) -> None:
        """Take what is known elsewhere.

        Args:
            ctx: The replica.
            deployments: Of the LDS.
            inbox: What the LDS said of sessions.
            mine: The live sessions that rows of this replica name.
            leads: Whether this replica does what only one should do.
        """
        self._ctx = ctx
        self._deployments = deployments
        self._inbox = inbox
        self._mine = mine
        self._leads = leads
        self.elsewhere: Counter[str] = Counter()

    async def run(self) -> None:
        """Look at every deployment now and then, for ever."""
        while True:
            await asyncio.sleep(_SWEEP_S * (0.5 + self._ctx.dice()))
            await self.sweep()

    async def sweep(self) -> None:
        """Look once at every deployment."""
        deployments = self._deployments
        mark = names.mark(self._ctx.installation)
        for deployment in deployments.deployments:
            try:
                client = deployments.client(deployment.id)
                live = await client.list_sessions(owner=mark)
            except Lacking:
                continue
            except (InputError, OutsideError) as error:  # it is away, or was taken out of the file meanwhile
                _log.debug("sessions cannot be listed", deployment=deployment.id, error=str(error))
                continue
            mine = {name for session in self._mine() for name in (session.id, session.key)}
            self.elsewhere[deployment.id] = sum(mine.isdisjoint({info.id, info.client_key}) for info in live)
            if self._leads():
                await self._archive_strays(client, live)
        if self._leads():
            await self._archive_heard()

    async def _archive_strays(self, client: LabDelivery, live: tuple[LabSessionInfo, ...]) -> None:
        """Archive sessions of ours that no row names; nothing while a row cannot be read."""
        before = datetime.now(UTC).timestamp() - _STRAY_S
        old = [info for info in live if info.created_at is not None and info.created_at.timestamp() < before]
        if not old:
            return
        try:
            known = _named(await reader.of_all(self._ctx))
            for info in old:
                if info.id not in known and (info.client_key or "") not in known:
                    await _archive(client, info)
        except (InputError, OutsideError) as error:
            _log.warning("sessions without a lablet are not looked for", error=str(error))

    async def _archive_heard(self) -> None:
        """Archive sessions that were heard of and that no row names, where the LDS cannot tell whose they are.

        Such a session was made by a create whose answer was lost: its user has, or had, another one by a row of ours.
        """
        strays = self._inbox.strays(_STRAY_S)
        if not strays:
            return
        try:
            claims = await reader.of_all(self._ctx)
            known = _named(claims)
            users = {claim.session.username for claim in claims if claim.session is not None}
            for stray in strays:
                if stray.session in known:
                    continue
                for deployment in self._deployments.deployments:
                    client = self._deployments.client(deployment.id)
                    try:
                        info = await client.get_session_info(stray.session)
                    except NotFound:
                        continue
                    ours = info.owner == names.mark(self._ctx.installation)
                    unsigned = OWNER not in (await client.info()).extensions
                    if not info.archived and (ours or (unsigned and info.username in users)):
                        await _archive(client, info)
        except (InputError, OutsideError) as error:
            _log.warning("sessions that were heard of are not looked for", error=str(error))


async def _archive(client: LabDelivery, info: LabSessionInfo) -> None:
    await client.archive_session(info.id)
    _log.warning("a session that no lablet has was archived", session=info.id, user=info.username)


def _named(claims: list[Claim]) -> set[str]:
    """Give the ids and client keys of all sessions that rows name."""
    named = set()
    for claim in claims:
        if claim.session is not None and not claim.session.archived_at:
            named |= {claim.session.id, claim.session.key}
    return named - {""}

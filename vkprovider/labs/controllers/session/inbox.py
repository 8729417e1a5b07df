"""Session events, stored by the replica that receives them, read by the replica that owns the session's lablet.

Any replica → `accept` → a ConfigMap per session in the provider's namespace → the informer of every replica → `changed`
→ the lablet whose claim names the session; its next turn copies the event into the claim. A ConfigMap, because only the
provider may write there: anyone who may edit the Pod could forge an annotation. One per session, so that replicas that
receive events at the same time do not conflict.

A ConfigMap stays as long as a lablet has its session: a claim that is lost and made again needs the events again. The
leading replica deletes it (`prune`) a day after the first event, once no lablet has the session.

Whether a session is *known* decides only how the sender is answered; every event is stored before that.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

import structlog

from vkprovider.lablet import names
from vkprovider.labs.pure.session import inbox
from vkprovider.labs.pure.session.inbox import EventOutcome, SeenEvents, SessionEvent, SessionEvents
from vkprovider.platform.errors import Conflict, NotFound, OutsideError, Unavailable
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.objects import ConfigMap, Pod
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)
_TRIES_MAX: Final = 5
_PRUNE_EVERY_S: Final = 60.0


class Inbox:
    """The events of all sessions.

    Attributes:
        rows: The stored events, by `SessionEvents.key`; read only.
        objects: The informer of their ConfigMaps.
    """

    def __init__(
        self,
        ctx: Context,
        leads: Callable[[], bool],
        *,
        changed: Callable[[str], None],
        claimed: Callable[[str], bool],
        retry_s: float = 600.0,
    ) -> None:
        """Create an empty inbox; nothing is read before its informer runs.

        Args:
            ctx: The replica.
            leads: Returns whether this replica is the leader, which prunes.
            changed: Called with the id of a session for which a new event is stored.
            claimed: Returns whether a claim of this replica names a session.
            retry_s: How long a sender is asked to retry an event of an unknown session.
        """
        self._ctx = ctx
        self._leads = leads
        self._retry_s = retry_s
        self._seen = SeenEvents()
        self._reported: dict[str, str] = {}
        self._session_of: dict[str, str] = {}
        self.rows: dict[str, SessionEvents] = {}
        self._changed = changed
        self._claimed = claimed
        self.objects: Informer[ConfigMap] = Informer(
            ctx.kube,
            ctx.api.config_maps.path,
            ConfigMap,
            name="session-events",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_SESSION_EVENTS}",
        )
        self.objects.add_handler(self._object_changed)

    # --------------------------------------------------------------------------------------------- what is known

    def of(self, session: str, deployment: str) -> SessionEvents:
        """Return the stored events of a session of a deployment: those of its own senders and of senders of any."""
        keys = (inbox.row_key(session), inbox.row_key(session, deployment))
        return inbox.merged(session, [self.rows[key] for key in keys if key in self.rows])

    def known(self, session: str) -> bool:
        """Return whether a lablet has the session: as its Pod reports, or as a claim of this replica names it."""
        return session in self._reported or self._claimed(session)

    def strays(self, older_s: float = 0.0) -> list[SessionEvents]:
        """List the events, first received more than `older_s` ago, of sessions that no lablet is known to have.

        This trusts what Pods report; check all claims before doing anything to such a session.
        """
        before = self._ctx.now_unix - older_s
        return [row for row in self.rows.values() if row.first_seen <= before and not self.known(row.session)]

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Index the session that a Pod reports."""
        pod = new or old
        if pod is None:
            return
        uid = pod.metadata.uid
        before = self._session_of.pop(uid, "")
        if before and self._reported.get(before) == uid:
            del self._reported[before]
        session = new.metadata.annotations.get(names.ANNOTATION_SESSION_ID, "") if new is not None else ""
        if session:
            self._session_of[uid], self._reported[session] = session, uid

    def _object_changed(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        config_map = new or old
        row = inbox.read(config_map, self._ctx.installation) if config_map is not None else None
        if row is None:
            return
        if new is None:
            self.rows.pop(row.key, None)
        elif self.rows.get(row.key) != row:
            self.rows[row.key] = row
            self._changed(row.session)

    # --------------------------------------------------------------------------------------------- what is received

    async def accept(self, event: SessionEvent) -> EventOutcome:
        """Store an event durably; return how to answer its sender."""
        session, now_unix = event.session, self._ctx.now_unix
        known, row = self.known(session), self.rows.get(inbox.row_key(session, event.deployment))
        if event.key in self._seen:
            age_s = now_unix - row.first_seen if row is not None else 0
            return inbox.answer(known=known or row is None, news=False, age_s=age_s, retry_s=self._retry_s)
        if not self.objects.synced.is_set():
            return EventOutcome.FAILED
        if row is None and not known and len(self.rows) >= inbox.ROWS_MAX:
            return EventOutcome.FULL
        try:
            news, row = await self._write(event, now_unix)
        except OutsideError as error:
            _log.warning("a session event cannot be stored", session=session, id=event.id, error=str(error))
            return EventOutcome.FAILED
        self._seen.add(event.key)
        outcome = inbox.answer(known=known, news=news, age_s=now_unix - row.first_seen, retry_s=self._retry_s)
        _log.info("session event", session=session, kind=event.kind, source=event.source, outcome=outcome.value)
        return outcome

    async def _write(self, event: SessionEvent, now_unix: int) -> tuple[bool, SessionEvents]:
        """Fold an event into its row.

        Returns:
            Whether that changed the row, and the row.
        """
        ctx, api, name = (
            self._ctx,
            self._ctx.api.config_maps,
            inbox.object_name(inbox.row_key(event.session, event.deployment)),
        )
        found = self.objects.items.get(f"{ctx.namespace}/{name}")
        for _ in range(_TRIES_MAX):
            old = inbox.read(found, ctx.installation) if found is not None else None
            row = inbox.fold(old, event, now_unix)
            if row == old:
                return False, row
            version = found.metadata.resource_version if found is not None else None
            wanted = inbox.body(row, namespace=ctx.namespace, installation=ctx.installation, resource_version=version)
            try:
                await (api.create(wanted) if found is None else api.replace(wanted))
            except (Conflict, NotFound):  # another replica has written it, or pruned it
                found = await api.get(name)
            else:
                return True, row
        raise Unavailable(f"ConfigMap {name} was written by other replicas {_TRIES_MAX} times in a row")

    # --------------------------------------------------------------------------------------------- what is old

    async def drop(self, row: SessionEvents) -> None:
        """Delete a row, unless another event was added to it since."""
        name = inbox.object_name(row.key)
        found = self.objects.items.get(f"{self._ctx.namespace}/{name}")
        if found is None or inbox.read(found, self._ctx.installation) != row:
            return
        with contextlib.suppress(Conflict):  # the informer brings what was added since
            await self._ctx.api.config_maps.delete(name, resource_version=found.metadata.resource_version)

    async def run(self) -> None:
        """Prune periodically, if this replica leads, until cancelled."""
        while True:
            await asyncio.sleep(_PRUNE_EVERY_S)
            if self._leads():
                await self.prune()

    async def prune(self) -> None:
        """Delete the rows of sessions that no lablet has had for a day."""
        for row in list(self.rows.values()):
            if self._ctx.is_sure() and inbox.outdated(row, known=self.known(row.session), now_unix=self._ctx.now_unix):
                try:
                    await self.drop(row)
                except OutsideError as error:
                    _log.warning("the events of a session cannot be deleted", session=row.session, error=str(error))

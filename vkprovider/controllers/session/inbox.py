"""Session events that any replica received, kept where the owner of the session's node finds them.

Any replica → `accept` → a ConfigMap per session in the provider's namespace → the informer of every replica → `changed`
→ the lablet whose claim names the session. A ConfigMap, because only the provider may write there: an annotation of the
Pod could be forged by whoever edits the Pod. One per session, because replicas that receive events at the same time
then do not get in each other's way; whoever has taken an event into its claim drops it.

Whether a session is *known* decides only what the sender is answered; every event is noted before that.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
import structlog

from vkprovider.api import names
from vkprovider.api.errors import Conflict, NotFound, OutsideError, Unavailable
from vkprovider.api.objects import ConfigMap, Pod
from vkprovider.controllers.context import Context
from vkprovider.domain.session import inbox
from vkprovider.domain.session.inbox import Outcome, Seen, SessionEvent, SessionEvents
from vkprovider.kube.informer import Informer

_log: Final = structlog.get_logger(__name__)
_TRIES_MAX: Final = 5
_PRUNE_EVERY_S: Final = 60.0


_decoder: Final = msgspec.json.Decoder(ConfigMap)


class Inbox:
    """The events of all sessions.

    Attributes:
        rows: What was said, by session id; read only.
        objects: The informer behind it.
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
        """Describe the inbox; nothing is read before its informer runs.

        Args:
            ctx: The replica.
            leads: Whether this replica does what only one should do.
            changed: Called with the id of a session for which a new event is stored.
            claimed: Returns whether a claim of this replica names a session.
            retry_s: For how long a sender is asked to come again about a session that nobody knows.
        """
        self._ctx = ctx
        self._leads = leads
        self._retry_s = retry_s
        self._path = f"/api/v1/namespaces/{ctx.namespace}/configmaps"
        self._seen = Seen()
        self._reported: dict[str, str] = {}
        self._session_of: dict[str, str] = {}
        self.rows: dict[str, SessionEvents] = {}
        self._changed = changed
        self._claimed = claimed
        self.objects: Informer[ConfigMap] = Informer(
            ctx.kube,
            self._path,
            ConfigMap,
            name="session-events",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_SESSION_EVENTS}",
        )
        self.objects.add_handler(self._object_changed)

    # --------------------------------------------------------------------------------------------- what is known

    def of(self, session: str) -> SessionEvents | None:
        """Tell what was said of a session."""
        return self.rows.get(session)

    def known(self, session: str) -> bool:
        """Tell whether a lablet has the session: as its owner reports it, or as our claims have it."""
        return session in self._reported or self._claimed(session)

    def strays(self, older_s: float = 0.0) -> list[SessionEvents]:
        """List what was said, longer ago than `older_s`, of sessions that no lablet is known to have.

        This trusts what Pods report; before anything is done to such a session, look at all claims.
        """
        before = self._ctx.now_unix - older_s
        return [row for row in self.rows.values() if row.first_seen <= before and not self.known(row.session)]

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Keep the sessions that Pods report."""
        pod = new or old
        if pod is None:
            return
        uid = pod.metadata.uid
        before = self._session_of.pop(uid, "")
        if before and self._reported.get(before) == uid:
            del self._reported[before]
        now = new.metadata.annotations.get(names.ANNOTATION_SESSION_ID, "") if new is not None else ""
        if now:
            self._session_of[uid], self._reported[now] = now, uid

    def _object_changed(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        config_map = new or old
        row = inbox.read(config_map, self._ctx.installation) if config_map is not None else None
        if row is None:
            return
        if new is None:
            self.rows.pop(row.session, None)
        elif self.rows.get(row.session) != row:
            self.rows[row.session] = row
            self._changed(row.session)

    # --------------------------------------------------------------------------------------------- what is heard

    async def accept(self, event: SessionEvent) -> Outcome:
        """Note an event durably and tell what its sender is answered."""
        session, now_unix = event.session, self._ctx.now_unix
        known, row = self.known(session), self.rows.get(session)
        if event.key in self._seen:
            age_s = now_unix - row.first_seen if row is not None else 0
            return inbox.answer(known=known or row is None, news=False, age_s=age_s, retry_s=self._retry_s)
        if not self.objects.synced.is_set():
            return Outcome.FAILED
        if row is None and not known and len(self.rows) >= inbox.ROWS_MAX:
            return Outcome.FULL
        try:
            news, row = await self._write(event, now_unix)
        except OutsideError as error:
            _log.warning("a session's event cannot be noted", session=session, id=event.id, error=str(error))
            return Outcome.FAILED
        self._seen.add(event.key)
        outcome = inbox.answer(known=known, news=news, age_s=now_unix - row.first_seen, retry_s=self._retry_s)
        _log.info("session event", session=session, kind=event.kind, source=event.source, outcome=outcome.value)
        return outcome

    async def _write(self, event: SessionEvent, now_unix: int) -> tuple[bool, SessionEvents]:
        """Fold an event into its row; give whether that changed it, and the row.

        Raises:
            OutsideError: The API server was no help.
        """
        ctx, name = self._ctx, inbox.object_name(event.session)
        path = f"{self._path}/{name}"
        found = self.objects.items.get(f"{ctx.namespace}/{name}")
        for _ in range(_TRIES_MAX):
            old = inbox.read(found, ctx.installation) if found is not None else None
            row = inbox.fold(old, event, now_unix)
            if row == old:
                return False, row
            version = found.metadata.resource_version if found is not None else None
            wanted = inbox.body(row, namespace=ctx.namespace, installation=ctx.installation, resource_version=version)
            raw = msgspec.json.encode(wanted)
            try:
                await (ctx.kube.create(self._path, raw) if found is None else ctx.kube.replace(path, raw))
            except (Conflict, NotFound):  # another replica was faster, or its owner has taken it
                found = await self._read(path)
            else:
                return True, row
        raise Unavailable(f"ConfigMap {name} is being written by others again and again")

    async def _read(self, path: str) -> ConfigMap | None:
        try:
            return _decoder.decode(await self._ctx.kube.get(path))
        except NotFound:
            return None

    # --------------------------------------------------------------------------------------------- what is done

    async def drop(self, row: SessionEvents) -> None:
        """Drop a row: the claim has what it says, or the session is gone. A row of which more was said since stays.

        Raises:
            OutsideError: The API server was no help.
        """
        name = inbox.object_name(row.session)
        found = self.objects.items.get(f"{self._ctx.namespace}/{name}")
        if found is None or inbox.read(found, self._ctx.installation) != row:
            return
        try:
            version = found.metadata.resource_version
            await self._ctx.kube.delete(f"{self._path}/{name}", resource_version=version)
        except (NotFound, Conflict):  # what was said since comes with the informer
            return

    async def run(self) -> None:
        """Drop rows that nobody has asked for in a long time, for ever."""
        while True:
            await asyncio.sleep(_PRUNE_EVERY_S)
            if self._leads():
                await self.prune()

    async def prune(self) -> None:
        """Drop rows that nobody has asked for in a long time."""
        for row in list(self.rows.values()):
            if inbox.outdated(row, known=self.known(row.session), now_unix=self._ctx.now_unix):
                try:
                    await self.drop(row)
                except OutsideError as error:
                    _log.warning("a session's events cannot be dropped", session=row.session, error=str(error))

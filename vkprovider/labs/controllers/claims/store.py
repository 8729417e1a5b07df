"""The claims of one worker: a table in memory, backed by a ConfigMap that is written in batches.

`put` takes effect in memory at once; the callback `saved` reports when the API server has the row. All lablets that
wait for a write share it, as transactions share a commit of a database's log: while a store waits for its turn among
those of other workers, further rows join. So a burst of a hundred lablets costs a handful of writes, and the slower the
API server, the fewer. A lazy change (a dropped row) joins the next write, or is written alone a few seconds later.

Ports are part of the rows: `allocate` chooses them, `put` holds them at once, `drop` frees them. Nothing may rely on
them before the row is saved: until then they give way to ports that another replica has saved.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec
import structlog

from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.controllers.claims.config_map import ClaimsConfigMap
from vkprovider.labs.controllers.counters import CLAIM_STORED, Counters
from vkprovider.labs.pure.claims import document
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.claims.document import StoredClaims
from vkprovider.labs.pure.claims.merge import fit, full, merge
from vkprovider.labs.pure.claims.table import ClaimTable
from vkprovider.labs.settings.cluster import WorkerSettings
from vkprovider.platform.backoff import delay_s
from vkprovider.platform.errors import Conflict, Forbidden, InputError, Invalid, NotFound
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.ports.allocator import PortUsage, RangeLike, SlotLike
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)

LAZY_S: Final = 10.0
"""How long a lazy change may wait for another write to join."""


class ClaimStore:
    """The claims of one worker.

    Attributes:
        complete: Whether these are all claims. If there was no ConfigMap, they are once the worker's labs have been
            examined; no lablet may begin, end or be forgotten before.
        fault: Why they cannot be written until someone intervenes; no lablet may begin meanwhile.
        refused: Why a new row was dropped again, by Pod UID; it may be put again when there is room.
    """

    def __init__(
        self,
        ctx: Context,
        counters: Counters,
        settings: WorkerSettings,
        worker: str,
        uid: str,
        *,
        guard: Guard,
        turns: asyncio.Semaphore,
        hold: Callable[[], Awaitable[None]],
        flush_in: Callable[[float], None],
        saved: Callable[[Collection[str]], None],
    ) -> None:
        """Create an empty store; `load` reads the claims.

        Args:
            ctx: The replica.
            counters: Count the writes.
            settings: How soon a failed write is repeated.
            worker: The CMLWorker's name.
            uid: Its UID; it owns the ConfigMap.
            guard: Called right before every write.
            turns: Limits how many stores write at once; while one waits, further rows join its write.
            hold: Called before rows are written; keeps the CMLWorker until they are gone.
            flush_in: Called to have `flush` called after so many seconds.
            saved: Called with the Pod UIDs of rows that were written and not lazy, and of unsaved rows that were lost
                or changed because they conflict with saved ones.
        """
        self._ctx = ctx
        self._counters = counters
        self._settings = settings
        self._worker = worker
        self._config_map = ClaimsConfigMap(ctx, worker, uid, guard)
        self._turns = turns
        self._hold_worker = hold
        self._flush_in = flush_in
        self._on_saved = saved
        self._rewrite = False
        self._saved: dict[str, Claim] = {}
        self._withheld: frozenset[str] = frozenset()
        self._dirty: dict[str, int] = {}
        self._generation = 0
        self._next_write_at = 0.0
        self._failures = 0
        self._awaited: set[str] = set()
        self._unsaved: set[str] = set()
        self._table = ClaimTable(StoredClaims())
        self.complete = False
        self.fault: InputError | None = None
        self.refused: dict[str, InputError] = {}

    @property
    def claims(self) -> Mapping[str, Claim]:
        """By Pod UID; change it with `put` and `drop`."""
        return self._table.claims

    @property
    def digests(self) -> Mapping[str, int]:
        """The number of claims per content."""
        return self._table.digests

    @property
    def starts(self) -> Mapping[str, int]:
        """How many seconds the last start of each content took."""
        return self._table.starts

    @property
    def sessions(self) -> Mapping[str, str]:
        """The Pod UID of each LDS session that a claim names, by the session's id."""
        return self._table.sessions

    @property
    def ports(self) -> PortUsage:
        """The holder of each outside port: these rows, saved or not, and foreign rows in the ConfigMap."""
        return self._table.ports

    async def load(self) -> None:
        """Read the claims; without a ConfigMap they are not `complete` before `recover`.

        Raises:
            InputError: `ClaimStoreInvalid`.
        """
        stored = await self._config_map.read()
        self._dirty.clear()
        self._unsaved.clear()
        self._table = ClaimTable(stored or StoredClaims())
        self._saved = dict(self.claims)
        self.complete = stored is not None

    def recover(self, rows: Iterable[Claim]) -> None:
        """Put the rows that the worker's labs are known to need; there are no others."""
        for claim in rows:
            self.put(claim)
        self.complete = True

    def vanished(self, uid: str) -> None:
        """Write all claims again, because another client deleted the ConfigMap with this UID."""
        if uid and uid == self._config_map.uid and self.complete:
            _log.warning("the claims were deleted by another client and are written again", worker=self._worker)
            self._config_map.forget()
            self._rewrite = True
            self._flush_in(0.0)

    @property
    def config_map_uid(self) -> str:
        """The UID of the ConfigMap as it was last read or written; "" if there is none."""
        return self._config_map.uid

    def count_foreign(self, first: int, last: int) -> int:
        """Count the ports from `first` to `last` that rows of other owners hold."""
        return self._table.count_foreign(first, last)

    def fault_of(self, pod_uid: str) -> InputError | None:
        """Return why a row is not saved; None if it is, or is about to be."""
        return self.fault or (full(self._worker) if pod_uid in self._withheld else None)

    def allocate(
        self,
        wanted: Sequence[SlotLike],
        *ranges: RangeLike,
        per_instance_max: int,
        rest_s: float,
        pod_uid: str = "",
        avoid: Collection[tuple[str, int]] = (),
    ) -> dict[str, int]:
        """Choose free outside ports; `put` holds them as part of a row.

        Args:
            wanted: The slots.
            *ranges: The port ranges to search, in this order.
            per_instance_max: How many ports a lablet may have.
            rest_s: How long a port rests that was lent to a mux.
            pod_uid: The Pod; it keeps the ports that it has, even without a row, as far as they fit.
            avoid: Ports that labs without a claim open, as (protocol, port).

        Raises:
            InputError: `TooManyPorts`, `PortRangeFull`, `PortsResting`.
        """
        try:
            return self._table.allocate(
                wanted,
                *ranges,
                per_instance_max=per_instance_max,
                pod_uid=pod_uid,
                now_unix=self._ctx.now_unix,
                rest_s=rest_s,
                sure=self._ctx.is_sure(),
                avoid=avoid,
            )
        except InputError as error:
            raise InputError(error.reason, f"worker {self._worker}: {error.message}") from None

    def put(self, claim: Claim, *, lazy: bool = False) -> None:
        """Change a row; it is written soon, or with the next write if `lazy`.

        Raises:
            InputError: `PortConflict`: another lablet holds one of its ports; nothing has changed.
        """
        uid = claim.pod_uid
        if self.claims.get(uid) == claim:
            return
        if self._table.put(claim):
            self._unsaved.add(uid)
        if not lazy:
            self._awaited.add(uid)
        self._touch(uid, lazy=lazy)

    def drop(self, pod_uid: str) -> None:
        """Drop a row, lazily: a row that stays a little longer only holds ports, never a lab."""
        if pod_uid in self.claims:
            self._table.remove(pod_uid)
            self._unsaved.discard(pod_uid)
            self.refused.clear()  # there is room again
            self._touch(pod_uid, lazy=True)

    def saved(self, pod_uid: str) -> bool:
        """Return whether the API server has the current version of a row."""
        return pod_uid not in self._dirty

    async def delete(self) -> None:
        """Delete the ConfigMap: the CMLWorker goes.

        Raises:
            Conflict: Another client wrote it meanwhile; its rows are known now.
            InputError: `ClaimStoreInvalid`: another client wrote it, and its rows cannot be read.
            OutsideError: Any other of its kinds.
        """
        try:
            await self._config_map.delete()
        except Conflict:
            await self._merge()
            raise

    def _touch(self, pod_uid: str, *, lazy: bool) -> None:
        self._generation += 1
        self._dirty[pod_uid] = self._generation
        self._flush_in(LAZY_S if lazy else max(0.0, self._next_write_at - self._ctx.now()))

    async def flush(self, *, hurry: bool = False) -> float | None:
        """Write what has changed; return after how many seconds to call again, None if all is written.

        Args:
            hurry: Do not wait for other changes: the replica is about to end.

        Raises:
            InputError: `ClaimStoreFull`, `ClaimStoreInvalid` or `ClaimsRefused`, or that of `hold`: no row can be
                written.
            OutsideError: The write failed; the changes wait for the next flush.
        """
        if not (self._dirty or self._rewrite) or not self.complete:
            return None
        left = self._next_write_at - self._ctx.now()
        if left > 0 and not hurry:
            return left
        try:
            return await self._write_all()
        except (InputError, Forbidden, Invalid) as error:
            refused = f"the API server refuses the claims: {error.message}"
            self.fault = error if isinstance(error, InputError) else InputError(WorkerReason.CLAIMS_REFUSED, refused)
            self._failures += 1
            pause_s = delay_s(
                self._failures, first_s=self._settings.write_retry_first_s, cap_s=self._settings.write_retry_cap_s
            )
            self._next_write_at = self._ctx.now() + pause_s
            raise

    async def _write_all(self) -> float | None:
        while True:
            held = bool(self.claims)
            if held:
                await self._hold_worker()
            async with self._turns:
                if held or not self.claims:  # the first row may have come while this write waited
                    return await self._write_now()

    async def _write_now(self) -> float | None:
        generation = self._generation
        if self._ctx.is_sure():
            self._table.forget_rested(self._ctx.now_unix)
        fitting = fit(self._table.stored, self._saved, worker=self._worker, installation=self._ctx.installation)
        self._refuse(fitting.refused)
        self._withheld = fitting.withheld
        written = {**self.claims, **{uid: self._saved[uid] for uid in fitting.withheld}}
        try:
            await self._config_map.write(fitting.data, fitting.binary)
        except NotFound:  # the ConfigMap was deleted: write it again from memory
            self._rewrite = True
            return 0.0
        except Conflict:
            await self._merge()
            return 0.0
        finally:
            self._next_write_at = self._ctx.now() + document.rest_s(len(self.claims))
        self._counters.claim_writes += 1
        self._failures, self.fault, self._rewrite, self._saved = 0, None, False, written
        done = [uid for uid, changed in self._dirty.items() if changed <= generation and uid not in self._withheld]
        for uid in done:
            del self._dirty[uid]
        self._unsaved.difference_update(done)
        if awaited := self._awaited.intersection(done):
            self._awaited -= awaited
            for uid in awaited:
                self._counters.timeline.note(uid, CLAIM_STORED)
            self._on_saved(awaited)
        return LAZY_S if self._dirty else None

    def _refuse(self, pod_uids: Collection[str]) -> None:
        """Drop new rows that do not fit, so that all others are written."""
        for uid in pod_uids:
            self._table.remove(uid)
            self._unsaved.discard(uid)
            self._awaited.discard(uid)
            del self._dirty[uid]
            self.refused[uid] = full(self._worker)
        if pod_uids:
            _log.warning("new claims do not fit into one ConfigMap", worker=self._worker, pods=sorted(pod_uids))
            self._on_saved(pod_uids)

    async def _merge(self) -> None:
        """Merge what another client wrote into what is known here."""
        _log.warning("claims were written by another client", worker=self._worker)
        ours = self._table.stored
        theirs = await self._config_map.read() or msgspec.structs.replace(ours, claims={})
        dropped = self._dirty.keys() - self.claims.keys()
        try:
            merged, lost = merge(self._table.stored, theirs, unsaved=self._unsaved, dropped=dropped)
        except InputError:
            self._config_map.force_reread()
            raise
        self._table = ClaimTable(merged)
        self._saved = {uid: claim for uid, claim in (self._saved | theirs.claims).items() if uid in self.claims}
        self._unsaved -= lost
        self._awaited -= lost
        for uid in lost:
            del self._dirty[uid]
        if lost:
            _log.warning("unsaved claims gave way", worker=self._worker, pods=sorted(lost))
            self._on_saved(lost)

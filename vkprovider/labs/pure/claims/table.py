"""The claims of one worker in memory, and what follows from them: who has which port, content and session."""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

import msgspec

from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.claims.document import RestingPort, StoredClaims, rest_left_s, usage_of
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import count
from vkprovider.platform.ports import allocator
from vkprovider.platform.ports.allocator import HeldPort, PortUsage, RangeLike, SlotLike
from vkprovider.platform.reasons import PortReason
from vkprovider.platform.times import iso

_NOBODY: Final = "a lab without a claim"
_STARTS_MAX: Final = 500
"""The most contents of a worker whose last start is kept."""


class ClaimTable:
    """The rows of one worker; each change takes effect at once.

    Attributes:
        claims: By Pod UID.
        digests: The number of claims per content.
        starts: How many seconds the last start of each content took, as far as a claim has told since.
        sessions: The Pod UID of each LDS session that a claim names, by the session's id.
        ports: The holder of each outside port: these rows, and the foreign ones of the document.
        stored: The same rows as a document.
    """

    def __init__(self, stored: StoredClaims) -> None:
        """Index the rows of a document.

        Raises:
            InputError: `PortConflict`: two of them have the same port.
        """
        self.stored = stored
        self.claims: Final = stored.claims
        self.ports: Final[PortUsage] = usage_of(self.claims.values(), stored.foreign)
        self.digests: Final = Counter(claim.digest for claim in self.claims.values())
        self.starts: Final[dict[str, int]] = {}
        for claim in sorted(self.claims.values(), key=lambda claim: claim.ready_at):
            self._note_start(None, claim)
        self.sessions: Final[dict[str, str]] = {}
        for claim in self.claims.values():
            self._index_session(None, claim)

    def count_foreign(self, first: int, last: int) -> int:
        """Count the ports from `first` to `last` that rows of other owners hold."""
        return sum(first <= row.held.port <= last for row in self.stored.foreign)

    def allocate(
        self,
        wanted: Sequence[SlotLike],
        *ranges: RangeLike,
        per_instance_max: int,
        pod_uid: str,
        now_unix: int,
        rest_s: float,
        sure: bool = True,
        avoid: Collection[tuple[str, int]] = (),
    ) -> dict[str, int]:
        """Choose free outside ports; nothing is held yet.

        Of the ports to `avoid`, as (protocol, port), the Pod keeps those that it has. A port rests for `rest_s`, and
        longer while it is not `sure` what time it is.

        Raises:
            InputError: `TooManyPorts`, `PortRangeFull`; `PortsResting` if there are enough once no port rests.
        """
        choose = partial(self._choose, wanted, *ranges, per_instance_max=per_instance_max, pod_uid=pod_uid)
        resting = {
            rest.key: rest.until
            for rest in self.stored.resting
            if not sure or rest_left_s(rest.until, now_unix=now_unix, rest_s=rest_s)
        }
        try:
            return choose(avoid={*avoid, *resting})
        except InputError as error:
            if not resting or error.reason is not PortReason.PORT_RANGE_FULL:
                raise
        choose(avoid=avoid)  # raises, if the range is too small anyway
        at = iso(max(resting.values()))
        raise InputError(
            Trouble.PORTS_RESTING,
            f"{count(len(resting), 'port')} that other lablets had lent to a mux must rest before this one gets them, "
            f"until {at} at the latest; the lablet then begins by itself",
        )

    def _choose(
        self,
        wanted: Sequence[SlotLike],
        *ranges: RangeLike,
        per_instance_max: int,
        pod_uid: str,
        avoid: Collection[tuple[str, int]],
    ) -> dict[str, int]:
        row = self.claims.get(pod_uid)
        mine = [(pod_uid, row.held)] if row is not None else []
        mine += [(kept.owner, [kept.held]) for kept in self.stored.foreign if kept.uid and kept.is_of(pod_uid)]
        others = [HeldPort("", protocol, port) for protocol, port in set(avoid) - self.ports.holders.keys()]
        self.ports.hold(_NOBODY, others)
        for owner, held in mine:
            self.ports.free(owner, held)
        try:
            keep = {slot.purpose: slot.port for _, held in mine for slot in held}
            return allocator.allocate(wanted, self.ports, *ranges, per_instance_max=per_instance_max, keep=keep)
        finally:
            self.ports.free(_NOBODY, others)
            for owner, held in mine:
                self.ports.hold(owner, held)

    def put(self, claim: Claim) -> bool:
        """Add a row, or replace the one of its Pod; return whether its ports are not those that the Pod had.

        Raises:
            InputError: `PortConflict`: another lablet holds one of its ports; nothing has changed.
        """
        old = self.claims.get(claim.pod_uid)
        moved = old is None or not old.same_ports(claim)
        if moved:
            self._hold(old, claim)
        if old is None or old.digest != claim.digest:
            self.digests[claim.digest] += 1
            if old is not None:
                self.digests[old.digest] -= 1
        self.claims[claim.pod_uid] = claim
        self._note_start(old, claim)
        self._index_session(old, claim)
        return moved

    def remove(self, pod_uid: str) -> None:
        """Remove a row, with what it holds."""
        claim = self.claims.pop(pod_uid)
        self._rest(claim, [])
        self.digests[claim.digest] -= 1
        self.ports.free(pod_uid, claim.held)
        self._index_session(claim, None)

    def _note_start(self, old: Claim | None, claim: Claim) -> None:
        """Note how long a lab took that has become ready; of the contents that a worker has run, the last are kept."""
        if not claim.started_at or claim.ready_at <= claim.started_at or (old and old.ready_at == claim.ready_at):
            return
        self.starts.pop(claim.digest, None)
        self.starts[claim.digest] = claim.ready_at - claim.started_at
        if len(self.starts) > _STARTS_MAX:
            del self.starts[next(iter(self.starts))]

    def _hold(self, old: Claim | None, claim: Claim) -> None:
        """Hold the ports of a new row instead of those that its Pod had."""
        uid, foreign = claim.pod_uid, self.stored.foreign
        kept = self.stored.foreign_without(uid)
        before = [(row.owner, [row.held]) for row in foreign if row not in kept] if foreign else []
        before += [(uid, old.held)] if old is not None else []
        for owner, held in before:
            self.ports.free(owner, held)
        try:
            self.ports.hold(uid, claim.held)
        except InputError:
            for owner, held in before:
                self.ports.hold(owner, held)
            raise
        self.stored = msgspec.structs.replace(self.stored, foreign=kept)
        if old is not None:
            self._rest(old, claim.held)

    def _rest(self, claim: Claim, kept: Collection[HeldPort]) -> None:
        """Let the ports of a claim rest that it does not hold any more, if they were lent to a mux."""
        if not claim.rest_until:
            return
        resting = {rest.key: rest for rest in self.stored.resting}
        still = {(held.protocol, held.port) for held in kept}
        for _, protocol, port in claim.held:
            if (protocol, port) not in still:
                resting[protocol, port] = RestingPort(protocol, port, claim.rest_until)
        self.stored = msgspec.structs.replace(self.stored, resting=tuple(resting.values()))

    def forget_rested(self, now_unix: int) -> None:
        """Forget the ports that have rested."""
        if self.stored.resting:
            resting = tuple(rest for rest in self.stored.resting if rest.until > now_unix)
            self.stored = msgspec.structs.replace(self.stored, resting=resting)

    def _index_session(self, old: Claim | None, new: Claim | None) -> None:
        if old is not None and old.session is not None and self.sessions.get(old.session.id) == old.pod_uid:
            del self.sessions[old.session.id]
        if new is not None and new.session is not None and new.session.id:
            self.sessions[new.session.id] = new.pod_uid

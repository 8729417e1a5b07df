"""Which keys of one kind this replica owns: Nodes, say; a process may own keys of several kinds.

A key's Lease says which replica acts for it; its `leaseTransitions` is the epoch. Every replica computes the same plan
from the living replicas and the present owners (`platform.leases.plan`). A replica takes over a key that is planned for
it as soon as no living replica owns it, and hands over one that is planned for another. Every side effect
passes `guard` in the same step of the event loop: it checks whether this replica may act at all, and whether the epoch
is still the one in which the work began.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol
from weakref import WeakValueDictionary

import structlog

from vkprovider.platform import leases
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import Fenced, InputError, OutsideError
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.leases import LeaseVerdict
from vkprovider.platform.objects import Lease
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.leases import LeaseKind, Leases, epoch_of, owner_uid_of
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.planning import Planning

_log: Final = structlog.get_logger(__name__)

_RENEWALS: Final = 2.35
"""How often a Lease is renewed within its duration; a kubelet renews four times."""
_RENEW_AGAIN_S: Final = 5.0
_AT_ONCE: Final = 16
"""Leases renewed or released at once."""


class KeyHolder(Protocol):
    """Holds what is known of keys while this replica acts for them."""

    def given_up(self, key: str, /) -> None:
        """Drop what is known of a key: it was released or lost, and another replica may act for it."""


class Ownership:
    """The keys of one kind that this replica owns.

    Attributes:
        kind: The keys and their Leases.
        membership: This replica among the others.
        epochs: Epoch by key, of those that this replica owns.
        plan: Which replica should own which key, and what this one has to do about it.
        fenced_total: Side effects that were stopped because their key was not this replica's (any more).
        takeovers_total: Keys taken from a silent replica.
    """

    def __init__(
        self,
        ctx: Context,
        membership: Membership,
        kind: LeaseKind,
        keys: Callable[[], Collection[str]],
        *,
        levels: int,
        wake: Callable[[str], None],
        holders: Sequence[KeyHolder] = (),
    ) -> None:
        """Create a replica that owns no key of this kind.

        Args:
            ctx: The replica.
            membership: This replica among the others; it tells when one comes or goes.
            kind: The keys and their Leases.
            keys: Returns all keys; each plan calls it.
            levels: How many levels of load there are.
            wake: Called by a plan with each key that is to be taken or handed over, and here with each that was lost.
            holders: Called in this order, before anything else runs, for every key that is not owned any more.
        """
        self._ctx = ctx
        self._wake = wake
        self._holders = holders
        self._held: dict[str, Lease] = {}
        self._renewed_at: dict[str, float] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._news = asyncio.Event()
        self.kind = kind
        self.membership = membership
        self.epochs: dict[str, int] = {}
        self.fenced_total = 0
        self.takeovers_total = 0
        self._leases = Leases(ctx, kind, self._may_act)
        self.leases = self._leases.seen
        self.leases.add_handler(self._lease_changed)
        self.plan = Planning(
            ctx, levels, keys, membership, self._leases, epochs=self.epochs, news=self._news, wake=wake
        )
        membership.add_listener(self)

    def members_changed(self) -> None:
        """Plan again: a replica comes or goes."""
        self._news.set()

    def membership_ended(self) -> None:
        """Lose everything: this replica's membership was ended."""
        for key in list(self.epochs):
            self._lose(key, "its membership was ended")

    @property
    def is_fenced(self) -> bool:
        """Whether this replica must not act."""
        return self.membership.is_fenced

    def guard(self, key: str) -> Guard:
        """Make the check that runs right before every side effect for a key, for as long as it is ours now."""
        epoch = self.epochs.get(key)

        def check() -> None:
            if epoch is None or self.epochs.get(key) != epoch or self.is_fenced:
                self.fenced_total += 1
                raise Fenced(f"{self.kind.key} {key} is not ours (any more)")

        return check

    def term(self, key: str) -> int:
        """Return the number by which an agent tells this owner of a key from earlier ones; 0 if it is not ours."""
        lease = self._held.get(key)
        return leases.term_of(lease) if lease is not None else 0

    def _named(self, key: str) -> dict[str, str]:
        return {self.kind.key: key}

    # --------------------------------------------------------------------------------------------- what the watch shows

    def _lease_changed(self, old: Lease | None, new: Lease | None) -> None:
        lease = new or old
        key = self.kind.key_of(lease.metadata.name) if lease is not None else None
        if key is None:
            return
        holder = new.spec.holder_identity if new is not None else None
        if key in self.epochs and holder != self._ctx.replica:
            if self._is_later(key, old, new):
                self._lose(key, f"its Lease shows {holder or 'nobody'}")
            else:  # our watch is late, or etcd was restored: the renewal, which is due now, shows which
                self._renewed_at[key] = min(self._renewed_at[key], self._due())
        if (old.spec.holder_identity if old is not None else None) != holder:
            self._news.set()

    def _is_later(self, key: str, old: Lease | None, new: Lease | None) -> bool:
        """Return whether our watch, which may be late, shows something that happened after our own last write.

        One Lease has one owner per epoch. Two are shown after etcd was restored to a state before ours: the other one
        took from it, and counted from there.
        """
        ours = self._held.get(key)
        if ours is None:
            return True
        if new is None:
            return old is not None and old.metadata.uid == ours.metadata.uid
        is_again = new.metadata.uid == ours.metadata.uid and epoch_of(new) == epoch_of(ours)
        return is_again or epoch_of(new) > epoch_of(ours)

    @property
    def oldest_renewal_s(self) -> float:
        """How long ago the Lease of an owned key was renewed, of the one that has waited longest."""
        return self._ctx.now() - min((self._renewed_at[key] for key in self._held), default=self._ctx.now())

    # --------------------------------------------------------------------------------------------- taking

    async def acquire(self, key: str, uid: str) -> bool:
        """Acquire a key if it is free or its holder is gone; return whether this replica owns it.

        Of several calls at once the first one asks: the others would take its Lease for that of another replica.

        Args:
            key: The key.
            uid: The UID of the object that it stands for; see `LeaseKind`.

        Raises:
            InputError: `LeaseKind.foreign`: a Lease of that name is not of this installation.
        """
        async with self._turns.setdefault(key, asyncio.Lock()):
            if self.is_fenced:
                return False
            if key in self.epochs:
                return True
            # As the watch shows it, because a replica that dies leaves hundreds; if it was written since, the API
            # server refuses ours.
            seen = self._leases.known(key)
            if seen is not None and await self._take(key, seen, uid):
                return True
            return await self._take(key, await self._leases.read(key), uid)

    async def _take(self, key: str, lease: Lease | None, uid: str) -> bool:
        """Write a Lease that is free, or whose holder is gone, in our name; return whether we own its key then."""
        holder = lease.spec.holder_identity if lease is not None else None
        gone = not holder or self.membership.members.is_gone(holder)
        verdict = leases.judge(lease, self._ctx.replica, holder_is_gone=gone)
        if verdict is LeaseVerdict.WAIT:
            return False
        if verdict is LeaseVerdict.TAKE and holder and not await self.membership.members.end(holder):
            return False
        if not await self._write(key, lease, uid, takes_over=True):
            return False
        if verdict is LeaseVerdict.TAKE and holder:
            self.takeovers_total += 1
            _log.info(f"{self.kind.noun} taken over", **self._named(key), holder=holder)
            note = f"replica {self._ctx.replica} acts for it; replica {holder} had been silent"
            about, guard = self.kind.about(key, uid), self.guard(key)
            self._ctx.events.emit(about, "Warning", self.kind.taken_over, note, guard=guard)
        return True

    def epoch_in(self, key: str, term: int) -> int | None:
        """Return the epoch for which a `term` stands in the Lease of a key that is ours; None if it is of another."""
        lease = self._held.get(key)
        return leases.epoch_in(term, lease) if lease is not None else None

    async def take_anew(self, key: str, *, beyond: int) -> None:
        """Give up a key that is ours, and take it in an epoch beyond another one, if it still is ours."""
        async with self._turns.setdefault(key, asyncio.Lock()):
            lease = self._held.get(key)
            self.forget(key)
            if lease is not None and not self.is_fenced:
                await self._write(key, lease, owner_uid_of(lease), takes_over=True, beyond=beyond)

    async def _write(self, key: str, old: Lease | None, uid: str, *, takes_over: bool = False, beyond: int = 0) -> bool:
        """Write the Lease of a key; return whether this replica owns the key by it."""
        began, holder = self._ctx.now(), self._ctx.replica
        lease = await self._leases.write(key, old, uid, holder=holder, takes_over=takes_over, beyond=beyond)
        if not takes_over:
            lease = lease or await self._write_again(key, old, holder=self._ctx.replica)
            if self._held.get(key) is not old:
                return False  # it was released, or lost, meanwhile
        if lease is None:
            self._lose(key, "its Lease was written by another replica")
            return False
        known = self._leases.known(key)
        overtaken = known is not None and epoch_of(known) > epoch_of(lease)  # the news of it was quicker
        if overtaken or self.is_fenced:
            return False
        self._held[key] = lease
        self._renewed_at[key] = began
        self.epochs[key] = epoch_of(lease)
        return True

    async def _write_again(self, key: str, old: Lease | None, *, holder: str) -> Lease | None:
        """Write a Lease again after a conflict if it still shows this replica and epoch: an answer was lost."""
        seen = await self._leases.read(key)
        if old is None or seen is None or seen.metadata.uid != old.metadata.uid:
            return None
        if seen.spec.holder_identity != self._ctx.replica or epoch_of(seen) != epoch_of(old):
            return None
        return await self._leases.write(key, seen, owner_uid_of(seen), holder=holder)

    def _may_act(self) -> None:
        if self.is_fenced:
            self.fenced_total += 1
            raise Fenced("this replica could not renew its membership")

    # --------------------------------------------------------------------------------------------- keeping

    async def run_heartbeat(self) -> None:
        """Renew the Leases of our keys, slowly: nobody judges the life of a replica by them.

        Several at once: one after the other, a thousand would be late where the API server takes a tenth of a second.
        """
        while True:
            await asyncio.sleep(1.0)
            due = self._due()
            waiting = [key for key in self._held if self._renewed_at[key] <= due]
            await at_most(_AT_ONCE, self._renew, waiting)

    def _due(self) -> float:
        """Return when a Lease was renewed that is to be renewed now."""
        return self._ctx.now() - self.kind.seconds / _RENEWALS

    async def _renew(self, key: str) -> None:
        lease = self._held.get(key)
        if lease is None or self.is_fenced:
            return
        try:
            await self._write(key, lease, owner_uid_of(lease))
        except (OutsideError, InputError, Fenced) as error:
            if key in self._renewed_at:
                self._renewed_at[key] += _RENEW_AGAIN_S
            _log.warning(f"cannot renew a {self.kind.noun}'s Lease", **self._named(key), error=str(error))

    # --------------------------------------------------------------------------------------------- releasing

    def _lose(self, key: str, why: str) -> None:
        was_ours = key in self.epochs
        self.forget(key)
        if was_ours:
            _log.warning(f"{self.kind.noun} lost", **self._named(key), replica=self._ctx.replica, why=why)
            self._wake(key)

    def forget(self, key: str) -> None:
        """Stop acting for a key, and leave its Lease as it is."""
        was_ours = self.epochs.pop(key, None) is not None
        self._held.pop(key, None)
        self._renewed_at.pop(key, None)
        if was_ours:
            for holder in self._holders:
                holder.given_up(key)
            self._news.set()  # what it stands for may have been created again: nothing else would say that it is free

    async def release(self, key: str) -> None:
        """Release a key, so that the next owner need not wait; nothing may be in hand for it any more."""
        lease = self._held.get(key)
        self.forget(key)
        if lease is None:
            return
        try:
            if await self._leases.write(key, lease, owner_uid_of(lease), holder="") is None:
                await self._write_again(key, lease, holder="")  # a renewal was under way
        except (OutsideError, InputError, Fenced) as error:
            _log.warning(f"cannot release a {self.kind.noun}'s Lease", **self._named(key), error=str(error))

    async def release_all(self) -> None:
        """Release all keys."""
        await at_most(_AT_ONCE, self.release, list(self.epochs))

    async def remove(self, key: str) -> None:
        """Release a key for good, with its Lease: nobody has to act for it."""
        lease = self._held.get(key)
        self.forget(key)
        if lease is None:
            return
        try:
            await self._leases.delete(key, lease)
        except (OutsideError, Fenced) as error:
            _log.warning(f"cannot delete a {self.kind.noun}'s Lease", **self._named(key), error=str(error))

    async def remove_all(self) -> None:
        """Release all keys for good."""
        await at_most(_AT_ONCE, self.remove, list(self.epochs))

"""Which replica should own which key, planned again whenever a replica, a Lease or a key changes."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from vkprovider.platform import leases as pure
from vkprovider.platform.leases import Duty, OwnersView
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.leases import Leases
from vkprovider.platform.runtime.membership import LOOK_S, Membership

_GATHER_S: Final = 0.05
"""Changes that come together within this time are planned for together."""


class Planning:
    """The plan of one replica.

    Attributes:
        planned: The replica that should own each key; nothing while this replica is fenced.
        settled: Set when the first plan is made in which this replica takes part.
    """

    def __init__(
        self,
        ctx: Context,
        levels: int,
        keys: Callable[[], Collection[str]],
        membership: Membership,
        leases: Leases,
        *,
        epochs: Mapping[str, int],
        news: asyncio.Event,
        wake: Callable[[str], None],
    ) -> None:
        """Create an empty plan.

        Args:
            ctx: The replica.
            levels: How many levels of load there are.
            keys: Returns all keys; each plan calls it.
            membership: Who lives.
            leases: Which replica holds which key.
            epochs: The epochs of the keys that this replica owns.
            news: Set when something has changed that a plan depends on.
            wake: Called by a plan with each key that is to be taken or handed over.
        """
        self._ctx = ctx
        self._levels = levels
        self._keys = keys
        self._membership = membership
        self._leases = leases
        self._epochs = epochs
        self._news = news
        self._wake = wake
        self._free_since: dict[str, float] = {}
        self._duties: dict[str, Duty] = {}
        self._dice = ctx.dice()
        self.planned: dict[str, str] = {}
        self.settled = asyncio.Event()

    def renew(self) -> None:
        """Plan again soon: a key came or went."""
        self._news.set()

    async def run(self) -> None:
        """Plan again when a replica, Lease or key changes, and when a replica falls silent, which is no event."""
        for informer in (self._leases.seen, self._membership.members.leases):
            await informer.synced.wait()
        while True:
            living = self._membership.living()
            self._plan(living)
            while not self._news.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._news.wait()
                if self._free_since or self._membership.living() != living:
                    break
            if self._news.is_set():
                await asyncio.sleep(_GATHER_S)  # what comes together is looked at together
                self._news.clear()

    def _plan(self, living: AbstractSet[str]) -> None:
        now, me = self._ctx.now(), self._ctx.replica
        view = self.view(living)
        # A plan of the others alone would be carried out as soon as the fence ends, and give them our keys.
        self.planned = pure.plan(living, view.owners) if me in living else {}
        self._free_since = {key: self._free_since.get(key, now) for key in view.free}
        duties = {key: self._duty(key) for key in view.owners}
        old, self._duties = self._duties, duties
        for key, duty in duties.items():
            if old.get(key) is not duty and duty in {Duty.TAKE, Duty.HAND_OVER}:
                self._wake(key)
        if me in living:
            self.settled.set()

    def view(self, living: Collection[str]) -> OwnersView:
        """Return which replica owns which key, as far as is known here."""
        found = {key: self._leases.known(key) for key in self._keys()}
        holders = {key: lease.spec.holder_identity if lease is not None else None for key, lease in found.items()}
        return pure.view(self._ctx.replica, mine=self._epochs, holders=holders, living=living)

    @property
    def imbalance(self) -> int:
        """How many keys the replica with most owns more than the one with least."""
        living = self._membership.living()
        return pure.imbalance(living, self.view(living).owners)

    def act(self, key: str) -> Duty:
        """Return the present duty of this replica towards a key; the reconciler that does it asks.

        A later plan wakes the reconciler if it asks for something else than this answer, which may differ from that of
        the plan before: patience grows with every key taken.
        """
        duty = self._duties[key] = self._duty(key)
        return duty

    def _duty(self, key: str) -> Duty:
        if self._membership.is_fenced:
            return Duty.STAND_BY
        since = self._free_since.get(key)
        total = len(self.planned)
        return pure.duty(
            self._ctx.replica,
            mine=key in self._epochs,
            planned=self.planned.get(key),
            free_for_s=None if since is None else self._ctx.now() - since,
            patience_s=pure.patience_s(len(self._epochs), total, self._levels, self._dice),
        )

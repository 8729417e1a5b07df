"""Which replica should own which Node, made anew whenever a replica, a Lease or a worker changes."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from vkprovider.domain.replica import plan
from vkprovider.domain.replica.plan import Duty, View
from vkprovider.runtime.context import Context
from vkprovider.runtime.leases import NodeLeases
from vkprovider.runtime.membership import Membership

_LOOK_S: Final = 0.5
"""How often silence is looked for; changes are planned for within a tenth of that."""


class Planning:
    """The plan of one replica.

    Attributes:
        planned: Which replica should own which Node, by worker; nothing while this replica is fenced.
        settled: Set when the first plan is made in which this replica takes part.
    """

    def __init__(
        self,
        ctx: Context,
        levels: int,
        workers: Callable[[], Collection[str]],
        membership: Membership,
        leases: NodeLeases,
        *,
        epochs: Mapping[str, int],
        news: asyncio.Event,
        wake: Callable[[str], None],
        led: Callable[[], None],
    ) -> None:
        """Create an empty plan.

        Args:
            ctx: The replica.
            levels: How many levels of load there are.
            workers: Returns the names of all CMLWorkers.
            membership: Who lives.
            leases: Which replica holds which Node.
            epochs: Of the Nodes that this replica owns.
            news: Set when something has changed that a plan depends on.
            wake: Called with a worker whose Node is to be taken or handed over.
            led: Called when this replica begins to lead.
        """
        self._ctx = ctx
        self._levels = levels
        self._workers = workers
        self._membership = membership
        self._leases = leases
        self._epochs = epochs
        self._news = news
        self._wake = wake
        self._led = led
        self._free_since: dict[str, float] = {}
        self._duties: dict[str, Duty] = {}
        self._dice = ctx.dice()
        self._first = False
        self.planned: dict[str, str] = {}
        self.settled = asyncio.Event()

    @property
    def leads(self) -> bool:
        """Whether this replica does what only one should do: it is the first of those that live, and not fenced."""
        return self._first and not self._membership.is_fenced

    def renew(self) -> None:
        """Make the plan anew soon: a worker came or went."""
        self._news.set()

    async def run(self) -> None:
        """Plan anew when a replica, Lease or worker changes, and when one falls silent, which is no event."""
        for informer in (self._leases.seen, self._membership.members):
            await informer.synced.wait()
        while True:
            living = self._membership.living()
            self._plan(living)
            while not self._news.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._news.wait()
                if self._free_since or self._membership.living() != living:
                    break
            if self._news.is_set():
                await asyncio.sleep(_LOOK_S / 10)  # what comes together is looked at together
                self._news.clear()

    def _plan(self, living: AbstractSet[str]) -> None:
        now, me = self._ctx.now(), self._ctx.replica
        view = self.view(living)
        # A plan of the others alone would be carried out as soon as the fence ends, and give them our Nodes.
        self.planned = plan.plan(living, view.owners) if me in living else {}
        before, self._first = self._first, min(living, default="") == me
        self._free_since = {worker: self._free_since.get(worker, now) for worker in view.free}
        duties = {worker: self._duty(worker) for worker in view.owners}
        old, self._duties = self._duties, duties
        for worker, duty in duties.items():
            if old.get(worker) is not duty and duty in {Duty.TAKE, Duty.HAND_OVER}:
                self._wake(worker)
        if self._first and not before:
            self._led()
        if me in living:
            self.settled.set()

    def view(self, living: Collection[str]) -> View:
        """Return which replica owns which Node, as far as is known here."""
        found = {worker: self._leases.known(worker) for worker in self._workers()}
        holders = {worker: lease.spec.holder_identity if lease is not None else None for worker, lease in found.items()}
        return plan.view(self._ctx.replica, mine=self._epochs, holders=holders, living=living)

    @property
    def imbalance(self) -> int:
        """How many Nodes the replica with most owns more than the one with least."""
        living = self._membership.living()
        return plan.imbalance(living, self.view(living).owners)

    def act(self, worker: str) -> Duty:
        """Return what this replica has to do about a Node now, to the reconciler that does it.

        A later plan wakes the reconciler if it asks for something else than this answer, which may differ from that of
        the plan before: patience grows with every Node taken.
        """
        duty = self._duties[worker] = self._duty(worker)
        return duty

    def _duty(self, worker: str) -> Duty:
        if self._membership.is_fenced:
            return Duty.STAND_BY
        since = self._free_since.get(worker)
        total = len(self.planned)
        return plan.duty(
            self._ctx.replica,
            mine=worker in self._epochs,
            planned=self.planned.get(worker),
            free_for_s=None if since is None else self._ctx.now() - since,
            patience_s=plan.patience_s(len(self._epochs), total, self._levels, self._dice),
        )

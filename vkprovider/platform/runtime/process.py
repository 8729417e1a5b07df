"""A process that acts under a fence: its parts, every loop by name, when it is ready, and how it ends."""

import asyncio
from collections import Counter as Tally
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import structlog

from vkprovider.platform.kube.clock import AGREE_AFTER_S, is_off
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.runtime import parts as of
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.home import Home
from vkprovider.platform.runtime.loops import running, work
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.metrics import Measure
from vkprovider.platform.runtime.parts import Loops, Part, Work
from vkprovider.platform.runtime.process_metrics import process_measures

_log: Final = structlog.get_logger(__name__)
_HAND_OVER_S: Final = 8.0
_FLUSH_S: Final = 1.0
_LEAVE_S: Final = 2.0
"""The limits of the end: with the time that parts take, they stay within the default grace period of a Pod."""
_UNSURE_S: Final = 2 * AGREE_AFTER_S
"""A replica that is not certain of the time for longer says so in `/ready`."""


@dataclass(frozen=True)
class Process:
    """One replica of a program: its parts, run together.

    Attributes:
        serves_fenced: Whether it is ready behind its Service although it must not act. What fences one replica often
            fences all of them, and people then still see what was known.
        refusals: Requests to its page that were refused, by reason.
    """

    ctx: Context
    membership: Membership
    parts: tuple[Part, ...]
    serves_fenced: bool = False
    refusals: Tally[str] = field(default_factory=Tally)
    _began: float = field(init=False)
    _listed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _known: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        """Note when it was made."""
        object.__setattr__(self, "_began", self.ctx.now())

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """What it follows."""
        return *of.informers(self.parts), self.membership.members.leases

    @cached_property
    def home(self) -> Home:
        """Whether the cluster's installation is this replica's."""
        return Home(self.ctx, self.membership, tuple(ownership.leases for ownership in of.owned(self.parts)))

    @property
    def works(self) -> tuple[Work, ...]:
        """Its queues."""
        return tuple(of.works(self.parts))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Its metrics."""
        own = process_measures(
            self.ctx,
            self.membership,
            self.informers,
            [work.queue for work in self.works],
            refusals=self.refusals,
            ready=lambda: not self.unready(),
        )
        return *own, *(measure for part in self.parts for measure in part.measures)

    # --------------------------------------------------------------------------------------------- readiness

    def not_ready(self) -> list[str]:
        """List what is not known completely yet."""
        missing = [informer.name for informer in self.informers if not informer.synced.is_set()]
        return missing or ([] if self._known.is_set() else [work.queue.name for work in self.works if work.first_s])

    def unready(self) -> list[str]:
        """List why it is not ready: what is not known yet, and a Lease that could not be renewed."""
        if self.membership.elsewhere:
            return [f"installed in the namespace {self.membership.elsewhere}"]
        serves = self.serves_fenced and self.membership.joined
        return self.not_ready() + (["lease"] if self.membership.is_fenced and not serves else [])

    def notes(self) -> list[str]:
        """List what is wrong and does not keep it from work: a clock that is off, watches that say nothing."""
        silent = [f"{each.name} for {each.silent_s:.0f} s" for each in self.informers if each.silent_s]
        notes = [f"nothing is heard from the API server of {', '.join(silent)}"] if silent else []
        if self.serves_fenced and self.membership.is_fenced:
            notes.append(
                "this replica could not renew its Lease: it shows what it knows, and writes nothing until it can"
            )
        if is_off(skew_s := self.ctx.skew_s()):
            how = f"{abs(skew_s):.0f} s {'ahead of' if skew_s > 0 else 'behind'} the API server's"
            notes.append(f"the clock of this machine is {how}, which decides when time is over: set it, such as by NTP")
        if not self.ctx.is_sure() and self.ctx.now() - self._began > _UNSURE_S:
            notes.append(
                "answers of the API server disagree about the time: nothing ends, and no port is given again, because "
                "its time has passed; set the clocks of its machines"
            )
        return notes

    async def _start(self) -> None:
        """Open the queues in two stages: the early ones when all is listed, then the others; then wait."""
        for informer in self.informers:
            await informer.synced.wait()
        await self.home.known.wait()
        self.membership.ready.set()
        for ownership in of.owned(self.parts):
            await ownership.plan.settled.wait()
        self._listed.set()
        for each in self.works:
            if each.first_s:
                await each.queue.drain(each.first_s)
        for part in self.parts:
            part.known()
        self._known.set()
        await asyncio.Event().wait()

    # --------------------------------------------------------------------------------------------- loops

    def loops(self) -> Loops:
        """Return every loop, by name, but those that outlast the others: `membership` and `events`."""

        async def fence() -> None:
            await self.membership.run_fence(fenced=self._fenced, resumed=self._resumed, led=self._led)

        return {
            "start": self._start,  # opens the queues, one stage after the other
            "fence": fence,  # tells the parts when they must not act, may act again, and lead
            "home": self.home.run,  # keeps this replica from a cluster whose installation is elsewhere
            "clear-up": self.membership.run_clear_up,  # ends memberships of dead replicas, if this one leads
            **{each.queue.name: self._work(each) for each in self.works},
            **{name: loop for part in self.parts for name, loop in part.loops.items()},
            **{f"informer-{informer.name}": informer.run for informer in self.informers},
        }

    def _work(self, each: Work) -> of.Loop:
        ready = self._listed if each.is_early else self._known
        return lambda: work(each.queue, each.reconcile, ready)

    def _fenced(self) -> None:
        for part in self.parts:
            part.fenced()

    def _led(self) -> None:
        for part in self.parts:
            part.led()

    def _resumed(self) -> None:
        self._led()  # the fence has dropped these keys, too
        for part in self.parts:
            part.resumed()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop`, then hand over what it owns.

        Raises:
            ExceptionGroup: A loop ended, which none should.
        """
        for part in self.parts:
            for change in part.changes:
                change.register()
        outlasting = {
            "membership": self.membership.run(),  # renews this replica's Lease
            "events": self.ctx.events.run(),  # writes Events, beside the real work
        }
        async with running(outlasting):
            try:
                async with running({name: loop() for name, loop in self.loops().items()}):
                    await stop.wait()
                    for part in self.parts:
                        await part.finish()
            finally:
                await self._end()

    async def _end(self) -> None:
        """Let the parts end, release what is owned, and leave the other replicas, so that none waits for a silence."""
        nouns = ", ".join(f"{ownership.kind.noun}s" for ownership in of.owned(self.parts))
        async with self._within(_HAND_OVER_S, f"{nouns} are not handed over"):
            for part in self.parts:
                await part.hand_over()
            await self.ctx.events.flush(_FLUSH_S)
            for ownership in of.owned(self.parts):
                await ownership.release_all()
        async with self._within(_LEAVE_S, "membership not ended"):
            await self.membership.leave()
        for part in self.parts:
            await part.close()

    @asynccontextmanager
    async def _within(self, limit_s: float, failing: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(limit_s):
                yield
        except TimeoutError:
            _log.warning(f"the API server did not answer in time: {failing}", replica=self.ctx.replica)

"""Which replicas live, whether this one may still act, and whether it leads.

Each replica renews a Lease of its own every few seconds; `members` judges those of the others. A replica that cannot
renew fences itself before anybody may think it dead: all times derive from one setting.

A Lease belongs to a process, not only to its replica's name. One that finds its name taken, by a container of its Pod
that has crashed or by a replica that was given the same name, joins when that process has ended or has been silent for
long enough; of two that live the first one stays.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

import structlog

from vkprovider import __version__
from vkprovider.platform import leases, wellknown
from vkprovider.platform.errors import Conflict, Fenced, NotFound, OutsideError
from vkprovider.platform.kube.clock import is_off
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.objects import Lease
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.members import Members

_log: Final = structlog.get_logger(__name__)


LOOK_S: Final = 0.5
"""How often silence is looked for; it is no event."""
_CLEAR_UP_S: Final = 5.0
_AGAIN_S: Final = 0.1


class LeaseListener(Protocol):
    """Hears of changes among the replicas."""

    def members_changed(self) -> None:
        """A replica comes or goes, or this one has become a member."""

    def membership_ended(self) -> None:
        """This replica's membership was ended: what it owned may have other owners."""


class Membership:
    """The replicas of this installation, seen from one of them.

    Attributes:
        members: The Leases of all replicas.
        ready: Set when this replica knows enough to be given work; it is not a member before.
        joined: Whether this replica has been a member.
        elsewhere: The namespace of another installation that has the cluster, so that this replica is no member; empty
            if none has.
    """

    def __init__(self, ctx: Context, ttl_s: float, notes: Mapping[str, str] = MappingProxyType({})) -> None:
        """Describe the membership; nothing is written before `run`.

        Args:
            ctx: The replica.
            ttl_s: Seconds of silence after which a replica counts as dead.
            notes: Further annotations of its Lease, for the other replicas to read; see `said`.
        """
        self._ttl_s = ttl_s
        self._ctx = ctx
        self._listeners: list[LeaseListener] = []
        self._times = leases.times(ttl_s)
        self._said = {**notes, wellknown.ANNOTATION_PROCESS: ctx.process, wellknown.ANNOTATION_VERSION: __version__}
        self._lease: Lease | None = None
        self._namesake = ""
        self._renew_began_at = -1e9
        self._answered_at = -1e9
        self._regained = False
        self._is_first = False
        self.joined = False
        self.elsewhere = ""
        self._news = asyncio.Event()
        self.ready = asyncio.Event()
        self.members = Members(ctx, self._times.gone_s, self._changed)

    @property
    def is_fenced(self) -> bool:
        """Whether this replica must not act: another installation has the cluster, or its Lease is too old."""
        return bool(self.elsewhere) or leases.fenced(self._renew_began_at, self._ctx.now(), self._times.fence_s)

    def leads(self) -> bool:
        """Return whether this replica does what only one should do: it is the first that lives, and not fenced."""
        return self._is_first and not self.is_fenced

    def check_leads(self) -> None:
        """Check right before a write that this replica leads.

        Raises:
            Fenced: It does not, or not any more.
        """
        if not self.leads():
            raise Fenced("this replica does not lead any more")

    def yield_to(self, elsewhere: str) -> None:
        """Stop acting at once, since the installation in that namespace has the cluster; empty: be a member again."""
        if elsewhere == self.elsewhere:
            return
        self.elsewhere = elsewhere
        self._renew_began_at = -1e9
        self._changed()

    def add_listener(self, listener: LeaseListener) -> None:
        """Tell a listener from now on when replicas come or go, and when this one's membership was ended."""
        self._listeners.append(listener)

    def _changed(self) -> None:
        self._news.set()
        for listener in self._listeners:
            listener.members_changed()

    # --------------------------------------------------------------------------------------------- the others

    def living(self) -> set[str]:
        """Return the replicas that live, this one among them unless it is fenced."""
        me, members = self._ctx.replica, self.members
        others = {replica for replica in members.present() if not members.is_gone(replica)} - {me}
        return others if self.is_fenced else others | {me}

    def said(self) -> dict[str, Mapping[str, str]]:
        """Return the annotations of the Lease of each replica that lives, by its process."""
        living, said = self.living(), {**self.members.said(), self._ctx.replica: self._said}
        return {
            notes[wellknown.ANNOTATION_PROCESS]: notes
            for replica, notes in said.items()
            if replica in living and wellknown.ANNOTATION_PROCESS in notes
        }

    async def run_clear_up(self) -> None:
        """End the memberships of replicas that are gone, while this one leads, for ever."""
        while True:
            await asyncio.sleep(_CLEAR_UP_S)
            if not self.leads():
                continue
            try:
                await self.members.end_all_gone()
            except OutsideError as error:
                _log.warning("cannot end the membership of a replica that is gone", error=str(error))

    @property
    def lease_age_s(self) -> float | None:
        """How long ago the last successful renewal began; None if this replica is not a member."""
        return None if self._lease is None else self._ctx.now() - self._renew_began_at

    # --------------------------------------------------------------------------------------------- this one

    async def run(self) -> None:
        """Renew this replica's Lease, for ever."""
        await self.ready.wait()
        while True:
            began = self._ctx.now()
            if not self.elsewhere:
                await self._keep(began)
            elif self._lease is not None:
                await self.leave()
                self._lose()
            await asyncio.sleep(max(_AGAIN_S, self._pause_s() - (self._ctx.now() - began)))

    def _pause_s(self) -> float:
        """Return how long after a renewal the next one begins: as soon as a silent namesake counts as gone."""
        pause_s = self._times.renew_s * (0.9 + 0.2 * self._ctx.dice())
        gone_in_s = self.members.gone_in_s(self._ctx.replica) if self._namesake else 0.0
        return min(pause_s, gone_in_s) if gone_in_s else pause_s

    async def _keep(self, began: float) -> None:
        """Renew the Lease, and act again if this replica was fenced."""
        try:
            await self._renew()
        except OutsideError as error:
            _log.warning("cannot renew the replica's Lease", replica=self._ctx.replica, error=str(error))
        else:
            if self.is_fenced:
                self._regained = True
                self._changed()
            self._renew_began_at, self.joined = began, True

    def _heard(self) -> None:
        """Note an answer to a renewal; if there was none for long, this replica heard nothing of the others either."""
        now = self._ctx.now()
        if now - self._answered_at >= self._times.fence_s:
            self.members.listen()
        self._answered_at = now

    async def run_fence(
        self, *, fenced: Callable[[], None], resumed: Callable[[], None], led: Callable[[], None]
    ) -> None:
        """Report for ever when this replica must stop acting, when it may act (again), and when it begins to lead.

        A machine that was suspended may be past a fence before this loop has seen it; `resumed` follows all the same.
        That another replica has fallen silent is no event, so this loop looks again and again who is the first.

        Args:
            fenced: Called at the fence; cancels what is in flight.
            resumed: Called when the fence ends; continues with everything: what was tried meanwhile has raised
                `Fenced`.
            led: Called when this replica begins to lead.
        """
        acting = False
        while True:
            if acting and self.is_fenced:
                why = "the installation is elsewhere" if self.elsewhere else "the replica's Lease could not be renewed"
                _log.warning(f"fenced: {why}", replica=self._ctx.replica)
                fenced()
            elif self._regained and not self.is_fenced:
                resumed()
            self._news.clear()
            self._regained, acting = False, not self.is_fenced
            before, self._is_first = self._is_first, min(self.living(), default="") == self._ctx.replica
            if self._is_first and not before:
                led()
            left_s = self._renew_began_at + self._times.fence_s - self._ctx.now()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min(left_s, LOOK_S)) if acting else None):
                    await self._news.wait()

    async def _renew(self, *, again: bool = True) -> None:
        """Write the Lease; once more if it turns out that the answer to our last write was lost."""
        ctx, name = self._ctx, self._ctx.program.member_prefix + self._ctx.replica
        body = leases.body(
            name=name,
            namespace=ctx.namespace,
            holder=ctx.replica,
            old=self._lease,
            now=ctx.now_utc,
            seconds=int(self._ttl_s),
            metadata={
                "labels": {ctx.program.member_label: "true", wellknown.LABEL_MANAGED_BY: wellknown.MANAGER},
                "annotations": {**self._said, **_skew(ctx)},
            },
        )
        members, limit_s = ctx.api.member_leases, self._times.renew_s
        write = members.create if self._lease is None else members.replace
        try:
            renewed = await write(body, timeout_s=limit_s, lane=Lane.AT_ONCE)
        except (Conflict, NotFound):
            self._heard()
            found = await members.get(name, timeout_s=limit_s, lane=Lane.AT_ONCE)
            if found is None:  # another replica took this one for dead
                self._lose()
            elif not await self._meet(found):
                raise
            if not again:
                raise
            await self._renew(again=False)  # the fence does not wait for another period
            return
        self._heard()
        self._lease, self._namesake = renewed, ""

    def _lose(self) -> None:
        """Stop being a member: other replicas may own what was this one's."""
        self._lease, self._renew_began_at = None, -1e9
        for listener in self._listeners:
            listener.membership_ended()

    async def _meet(self, lease: Lease) -> bool:
        """Find out which process wrote the Lease of our name: this one, an earlier one, or another one that lives.

        Returns:
            Whether this one may write it now.
        """
        ctx, theirs = self._ctx, lease.metadata.annotations.get(wellknown.ANNOTATION_PROCESS, "")
        if theirs == ctx.process and (self._lease is None or self._lease.metadata.uid == lease.metadata.uid):
            self._lease = lease  # the answer to our last write was lost, or the Lease was edited
            return True
        if self._lease is not None:
            self._lose()
        if leases.has_ended(theirs, ctx.process, runs=_runs):
            self._lease = lease
            return True
        if await self.members.end(ctx.replica):
            return True
        if self._namesake != theirs:
            self._namesake = theirs
            _log.error(
                "another process has the name of this replica; joins when it has ended. Give each one its own "
                "LABLET_CONTROLLER_INSTANCE_ID",
                replica=ctx.replica,
                process=theirs,
            )
        return False

    async def leave(self) -> None:
        """End this replica's own membership, so that the others need not wait for its silence."""
        if self._lease is None:
            return
        try:
            await self._ctx.api.member_leases.delete(
                self._ctx.program.member_prefix + self._ctx.replica,
                resource_version=self._lease.metadata.resource_version,
                timeout_s=leases.REQUEST_S,
                lane=Lane.AT_ONCE,
            )
        except OutsideError as error:
            _log.warning("cannot delete the replica's Lease", error=str(error))


def _skew(ctx: Context) -> Mapping[str, str]:
    """Return what a Lease says of a clock that is off, for `vkprovider doctor`."""
    return {wellknown.ANNOTATION_CLOCK_SKEW: f"{ctx.skew_s():.0f}"} if is_off(ctx.skew_s()) else {}


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user, or no process can have this id
        return True
    return True

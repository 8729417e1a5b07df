"""Which replicas live, and whether this one may still act.

Each replica renews a Lease of its own every few seconds. Another one counts as gone when its Lease has been *observed*
not to change for two thirds of LEADER_LEASE_TTL, on the observer's own clock; wall clocks are never compared. Silence
counts only while the observer's own renewals went through: who was away itself has not been listening.

Before anything is taken from a silent replica its membership is *ended*, with the resourceVersion whose silence was
observed: a conflict there means that it lives. A replica that cannot renew fences itself before anybody may think it
dead: all three times derive from one setting.

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
from vkprovider.api import names
from vkprovider.api.errors import Conflict, NotFound, OutsideError
from vkprovider.api.objects import Lease
from vkprovider.domain.replica import lease as leases
from vkprovider.domain.replica.lease import Seen
from vkprovider.kube.flow import Lane
from vkprovider.kube.informer import Informer
from vkprovider.runtime.context import Context

_log: Final = structlog.get_logger(__name__)

MEMBER_PREFIX: Final = "vkprovider-replica-"
LABEL_MEMBER: Final = f"{names.GROUP}/replica"


LOOK_S: Final = 0.5
"""How often silence is looked for; it is no event."""
_CLEAR_UP_S: Final = 5.0


class Listener(Protocol):
    """Hears of changes among the replicas."""

    def members_changed(self) -> None:
        """A replica comes or goes, or this one has become a member."""

    def membership_ended(self) -> None:
        """Another replica has ended this one's membership: what it owned may have other owners."""


class Membership:
    """The replicas of this installation, seen from one of them.

    Attributes:
        members: The Leases of all.
        ready: Set when this replica knows enough to be given work; it is not a member before.
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
        self._listeners: list[Listener] = []
        self._times = leases.times(ttl_s)
        self._said = {**notes, names.ANNOTATION_PROCESS: ctx.process, names.ANNOTATION_VERSION: __version__}
        self._lease: Lease | None = None
        self._namesake = ""
        self._renew_began_at = -1e9
        self._listening_since = -1e9
        self._regained = False
        self._is_first = False
        self._news = asyncio.Event()
        self._seen: dict[str, Seen] = {}
        self.ready = asyncio.Event()
        self.members: Informer[Lease] = Informer(
            ctx.kube, ctx.api.member_leases.path, Lease, name="replicas", label_selector=LABEL_MEMBER
        )
        self.members.add_handler(self._member_changed)

    @property
    def is_fenced(self) -> bool:
        """Whether this replica must not act: it could not renew its Lease for too long."""
        return leases.fenced(self._renew_began_at, self._ctx.now(), self._times.fence_s)

    def leads(self) -> bool:
        """Return whether this replica does what only one should do: it is the first that lives, and not fenced."""
        return self._is_first and not self.is_fenced

    def add_listener(self, listener: Listener) -> None:
        """Tell a listener from now on when replicas come or go, and when this one's membership was ended."""
        self._listeners.append(listener)

    def _changed(self) -> None:
        self._news.set()
        for listener in self._listeners:
            listener.members_changed()

    # --------------------------------------------------------------------------------------------- the others

    def _member_changed(self, old: Lease | None, new: Lease | None) -> None:
        lease = new or old
        if lease is None:
            return
        replica = lease.metadata.name.removeprefix(MEMBER_PREFIX)
        known = replica in self._seen
        if new is not None:
            self._seen[replica] = leases.observe(self._seen.get(replica), new, self._ctx.now())
        else:
            self._seen.pop(replica, None)
        if known is (new is None):
            self._changed()

    def living(self) -> set[str]:
        """Return the replicas that live, this one among them unless it is fenced."""
        others = {replica for replica in self._seen if not self.is_gone(replica)} - {self._ctx.replica}
        return others if self.is_fenced else others | {self._ctx.replica}

    def is_gone(self, replica: str) -> bool:
        """Return whether a replica has ended, or has been silent for so long that it counts as gone."""
        since, gone_s = self._listening_since, self._times.gone_s
        return leases.gone(self._seen.get(replica), self._ctx.now(), listening_since=since, gone_s=gone_s)

    def said(self) -> dict[str, Mapping[str, str]]:
        """Return the annotations of the Lease of each replica that lives, by its process."""
        living = self.living()
        others = living - {self._ctx.replica}
        found: dict[str, Mapping[str, str]] = {
            lease.metadata.annotations.get(names.ANNOTATION_PROCESS, ""): lease.metadata.annotations
            for lease in self.members.items.values()
            if lease.metadata.name.removeprefix(MEMBER_PREFIX) in others
        }
        found.pop("", None)
        return found | ({self._ctx.process: self._said} if self._ctx.replica in living else {})

    async def end(self, replica: str) -> bool:
        """End the membership of a replica that counts as gone; return False if it turns out to live.

        Raises:
            OutsideError: The API server refused or did not answer.
        """
        if not self.is_gone(replica):
            return False
        seen = self._seen.get(replica)
        if seen is None:
            return not await self._turned_up(replica)
        try:
            ended = await self._ctx.api.member_leases.delete(
                MEMBER_PREFIX + replica, resource_version=seen.resource_version, lane=Lane.AT_ONCE
            )
        except Conflict:  # it lives, and our watch is late: listen anew
            self._seen[replica] = leases.heard(self._seen.get(replica, seen), self._ctx.now())
            return False
        if ended:
            _log.info("ended the membership of a silent replica", replica=replica)
        return True

    async def run_clear_up(self) -> None:
        """End the memberships of replicas that are gone, while this one leads, for ever."""
        while True:
            await asyncio.sleep(_CLEAR_UP_S)
            if not self.leads():
                continue
            try:
                await self.end_all_gone()
            except OutsideError as error:
                _log.warning("cannot end the membership of a replica that is gone", error=str(error))

    async def end_all_gone(self) -> None:
        """End the memberships of all replicas that are gone, also of those that owned nothing.

        Raises:
            OutsideError: The API server refused or did not answer.
        """
        for replica in [replica for replica in self._seen if self.is_gone(replica)]:
            if replica != self._ctx.replica:
                await self.end(replica)

    async def _turned_up(self, replica: str) -> bool:
        """Read the Lease of a replica that is not known: it may have joined, and our watch be late."""
        found = await self._ctx.api.member_leases.get(MEMBER_PREFIX + replica, lane=Lane.AT_ONCE)
        if found is None:
            return False
        self._member_changed(None, found)
        return True

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
            try:
                await self._renew()
            except OutsideError as error:
                _log.warning("cannot renew the replica's Lease", replica=self._ctx.replica, error=str(error))
            else:
                if self.is_fenced:  # we were not listening to the others either
                    self._listening_since = self._ctx.now()
                    self._regained = True
                    self._changed()
                self._renew_began_at = began
            await asyncio.sleep(
                max(0.1, self._times.renew_s * (0.9 + 0.2 * self._ctx.dice()) - (self._ctx.now() - began))
            )

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
                _log.warning("fenced: the replica's Lease could not be renewed", replica=self._ctx.replica)
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
        ctx, name = self._ctx, MEMBER_PREFIX + self._ctx.replica
        body = leases.body(
            name=name,
            namespace=ctx.namespace,
            holder=ctx.replica,
            old=self._lease,
            now=ctx.now_utc,
            seconds=int(self._ttl_s),
            metadata={
                "labels": {LABEL_MEMBER: "true", names.LABEL_MANAGED_BY: names.MANAGER},
                "annotations": self._said,
            },
        )
        members, limit_s = ctx.api.member_leases, self._times.renew_s
        write = members.create if self._lease is None else members.replace
        try:
            renewed = await write(body, timeout_s=limit_s, lane=Lane.AT_ONCE)
        except (Conflict, NotFound):
            found = await members.get(name, timeout_s=limit_s, lane=Lane.AT_ONCE)
            if found is None:  # another replica took this one for dead
                self._lose()
                raise
            if not await self._meet(found) or not again:
                raise
            await self._renew(again=False)  # the fence does not wait for another period
            return
        self._lease, self._namesake = renewed, ""

    def _lose(self) -> None:
        """Stop being a member: other replicas may own what was this one's."""
        self._lease, self._renew_began_at = None, -1e9
        for listener in self._listeners:
            listener.membership_ended()

    async def _meet(self, lease: Lease) -> bool:
        """Find out which process wrote the Lease of our name: this one, an earlier one, or another one that lives.

        Returns:
            Whether it was this one.

        Raises:
            OutsideError: The API server refused or did not answer.
        """
        ctx, theirs = self._ctx, lease.metadata.annotations.get(names.ANNOTATION_PROCESS, "")
        if theirs == ctx.process and (self._lease is None or self._lease.metadata.uid == lease.metadata.uid):
            self._lease = lease  # the answer to our last write was lost, or the Lease was edited
            return True
        if self._lease is not None:
            self._lose()
        if leases.has_ended(theirs, ctx.process, runs=_runs):
            self._lease = lease
        elif not await self.end(ctx.replica) and self._namesake != theirs:
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
                MEMBER_PREFIX + self._ctx.replica,
                resource_version=self._lease.metadata.resource_version,
                lane=Lane.AT_ONCE,
            )
        except OutsideError as error:
            _log.warning("cannot delete the replica's Lease", error=str(error))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user, or no process can have this id
        return True
    return True

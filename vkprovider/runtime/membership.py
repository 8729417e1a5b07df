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
from collections.abc import Callable
from typing import Final

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


class Membership:
    """The replicas of this installation, seen from one of them.

    Attributes:
        members: The Leases of all.
        ready: Set when this replica knows enough to be given Nodes; it is not a member before.
    """

    def __init__(self, ctx: Context, ttl_s: float, *, changed: Callable[[], None], ended: Callable[[], None]) -> None:
        """Describe the membership; nothing is written before `run`.

        Args:
            ctx: The replica.
            ttl_s: Seconds of silence after which a replica counts as dead.
            changed: Called when a replica comes or goes.
            ended: Called when another replica has ended this one's membership: its Nodes may have other owners by now.
        """
        self._ttl_s = ttl_s
        self._ctx = ctx
        self._changed = changed
        self._ended = ended
        self._times = leases.times(ttl_s)
        self._said = {names.ANNOTATION_PROCESS: ctx.process, names.ANNOTATION_VERSION: __version__}
        if ctx.agents_url is not None:
            self._said[names.ANNOTATION_AGENTS_URL] = ctx.agents_url
        self._lease: Lease | None = None
        self._namesake = ""
        self._renew_began_at = -1e9
        self._listening_since = -1e9
        self._regained = asyncio.Event()
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

    def dialled(self) -> dict[str, str]:
        """Return where agents dial each replica that lives, by its process; see `Context.agents_url`."""
        living = self.living()
        others = living - {self._ctx.replica}
        found = {
            notes[names.ANNOTATION_PROCESS]: notes[names.ANNOTATION_AGENTS_URL]
            for lease in self.members.items.values()
            if lease.metadata.name.removeprefix(MEMBER_PREFIX) in others
            and {names.ANNOTATION_PROCESS, names.ANNOTATION_AGENTS_URL} <= (notes := lease.metadata.annotations).keys()
        }
        if self._ctx.agents_url is not None and self._ctx.replica in living:
            found[self._ctx.process] = self._ctx.agents_url
        return found

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

    async def end_all_gone(self) -> None:
        """End the memberships of all replicas that are gone, also of those that owned no Node.

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
                    self._changed()
                    self._regained.set()
                self._renew_began_at = began
            await asyncio.sleep(
                max(0.1, self._times.renew_s * (0.9 + 0.2 * self._ctx.dice()) - (self._ctx.now() - began))
            )

    async def run_fence(self, *, fenced: Callable[[], None], resumed: Callable[[], None]) -> None:
        """Report for ever when this replica must stop acting, and when it may act (again).

        A machine that was suspended may be past a fence before this loop has seen it; `resumed` follows all the same.

        Args:
            fenced: Cancels what is in flight.
            resumed: Continues with everything: whatever was tried during the fence has raised `Fenced`.
        """
        acting = False
        while True:
            if acting and self.is_fenced:
                _log.warning("fenced: the replica's Lease could not be renewed", replica=self._ctx.replica)
                fenced()
            elif self._regained.is_set() and not self.is_fenced:
                resumed()
            self._regained.clear()
            acting = not self.is_fenced
            left_s = self._renew_began_at + self._times.fence_s - self._ctx.now()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, left_s) if acting else None):
                    await self._regained.wait()

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
        """Stop being a member: other replicas may own the Nodes by now."""
        self._lease, self._renew_began_at = None, -1e9
        self._ended()

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

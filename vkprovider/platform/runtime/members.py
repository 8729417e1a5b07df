"""The Leases of replicas as the watch shows them: which count as gone, and how one that is gone is ended.

A replica counts as gone when its Lease has been *observed* not to change for two thirds of LEADER_LEASE_TTL, on the
observer's own clock; wall clocks are never compared. Silence counts only while the observer's own renewals went
through: a replica that was away itself has not been listening.

Before anything is taken from a silent replica its membership is *ended*, with the resourceVersion whose silence was
observed: a conflict there means that it lives.
"""

from collections.abc import Callable, Mapping
from typing import Final

import structlog

from vkprovider.platform import leases
from vkprovider.platform.errors import Conflict
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.kube.informer import CALM, Informer
from vkprovider.platform.leases import LeaseSighting
from vkprovider.platform.objects import Lease
from vkprovider.platform.runtime.context import PROVIDER, Context

_log: Final = structlog.get_logger(__name__)

MEMBER_PREFIX: Final = PROVIDER.member_prefix
LABEL_MEMBER: Final = PROVIDER.member_label
"""Of replicas of the provider."""
_PATIENCE: Final = CALM._replace(silence_s=15.0, silences=1, list_s=leases.REQUEST_S, outage_cap_s=leases.OUTAGE_CAP_S)
"""A replica's own renewals come every few seconds: a watch that is silent for longer is dead."""


class Members:
    """The replicas of this installation, as one of them sees their Leases.

    Attributes:
        leases: The Leases.
    """

    def __init__(self, ctx: Context, gone_s: float, changed: Callable[[], None]) -> None:
        """Describe the Leases; nothing is read before the informer runs.

        Args:
            ctx: The replica that looks.
            gone_s: The silence after which a replica counts as gone.
            changed: Called by the watch when a replica comes or goes.
        """
        self._ctx = ctx
        self._prefix = ctx.program.member_prefix
        self._gone_s = gone_s
        self._changed = changed
        self._listening_since = -1e9
        self._seen: dict[str, LeaseSighting] = {}
        self.leases: Informer[Lease] = Informer(
            ctx.kube,
            ctx.api.member_leases.path,
            Lease,
            name="replicas",
            label_selector=ctx.program.member_label,
            patience=_PATIENCE,
            lane=Lane.AT_ONCE,
        )
        self.leases.add_handler(self._member_changed)

    def listen(self) -> None:
        """Count silence from now: the replica that looks could not hear the API server itself."""
        self._listening_since = self._ctx.now()

    def _member_changed(self, old: Lease | None, new: Lease | None) -> None:
        lease = new or old
        if lease is None:
            return
        replica = lease.metadata.name.removeprefix(self._prefix)
        known = replica in self._seen
        if new is not None:
            self._seen[replica] = leases.observe(self._seen.get(replica), new, self._ctx.now())
        else:
            self._seen.pop(replica, None)
        if known is (new is None):
            self._changed()

    def present(self) -> set[str]:
        """Return the replicas that have a Lease, also those that count as gone."""
        return set(self._seen)

    def is_gone(self, replica: str) -> bool:
        """Return whether a replica has ended, or has been silent for so long that it counts as gone."""
        since, gone_s = self._listening_since, self._gone_s
        return leases.gone(self._seen.get(replica), self._ctx.now(), listening_since=since, gone_s=gone_s)

    def gone_in_s(self, replica: str) -> float:
        """Return after how much more silence a replica will count as gone; 0 if it does."""
        seen = self._seen.get(replica)
        return 0.0 if seen is None else max(0.0, max(seen.at, self._listening_since) + self._gone_s - self._ctx.now())

    def said(self) -> dict[str, Mapping[str, str]]:
        """Return the annotations of each replica's Lease, by the replica."""
        return {
            lease.metadata.name.removeprefix(self._prefix): lease.metadata.annotations
            for lease in self.leases.items.values()
        }

    async def end(self, replica: str) -> bool:
        """End the membership of a replica that counts as gone; return False if it turns out to live."""
        if not self.is_gone(replica):
            return False
        seen = self._seen.get(replica)
        if seen is None:
            return not await self._turned_up(replica)
        try:
            ended = await self._ctx.api.member_leases.delete(
                self._prefix + replica,
                resource_version=seen.resource_version,
                timeout_s=leases.REQUEST_S,
                lane=Lane.AT_ONCE,
            )
        except Conflict:  # it lives, and our watch is late: listen again
            self._seen[replica] = leases.heard(self._seen.get(replica, seen), self._ctx.now())
            return False
        if ended:
            _log.info("ended the membership of a silent replica", replica=replica)
        return True

    async def end_all_gone(self) -> None:
        """End the memberships of all replicas that are gone, also of those that owned nothing."""
        for replica in sorted(self.present() - {self._ctx.replica}):
            if self.is_gone(replica):
                await self.end(replica)

    async def _turned_up(self, replica: str) -> bool:
        """Read the Lease of a replica that is not known: it may have joined, and our watch be late."""
        name, leases_of_all = self._prefix + replica, self._ctx.api.member_leases
        found = await leases_of_all.get(name, timeout_s=leases.REQUEST_S, lane=Lane.AT_ONCE)
        if found is None:
            return False
        self._member_changed(None, found)
        return True

"""Which replica writes for which user: a Lease per user, held only while an operation of the user's lab writes.

Within this process a lock is a request's until its record and Secret are written, and then the reconciler's: `Locks`
alone notes whose it is.

A replica that dies leaves its Leases; another one takes them over when the membership of the dead one has ended, and
the epoch grows. Every write passes `guard`. The Lease is deleted when the operation has ended.
"""

from collections.abc import Callable
from typing import Final

from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.objects import Lease
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.leases import LeaseKind
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.ownership import Ownership
from vkprovider.portal.pure.portalnames import UserLabReason, lease_name

_LABEL: Final = f"{wellknown.GROUP}/userlab-lock"
_SECONDS: Final = 40


class Locks:
    """The locks that this replica holds.

    Attributes:
        leases: The locks of all replicas, as the watch shows them.
    """

    def __init__(
        self, ctx: Context, membership: Membership, wake: Callable[[str], None], about: Callable[[str], ObjectRef]
    ) -> None:
        """Hold none.

        Args:
            ctx: The replica.
            membership: This replica among the others.
            wake: Called with the key of a user whose lock is free, or was lost.
            about: Returns the object that an Event about a key is about; called when a lock was taken over.
        """
        self._wake = wake
        self._ownership = Ownership(ctx, membership, _kind(ctx.namespace, about), lambda: (), levels=1, wake=wake)
        self._prefix = lease_name("")
        self._of_requests: set[str] = set()
        self.leases: Informer[Lease] = self._ownership.leases

    def held(self) -> list[str]:
        """Return the keys whose lock this replica holds."""
        return list(self._ownership.epochs)

    def holds(self, key: str) -> bool:
        """Return whether this replica holds the lock of a key."""
        return key in self._ownership.epochs and not self._ownership.is_fenced

    def held_by(self, key: str) -> str:
        """Return the replica that holds the lock of a key, as the watch shows it; "" if none does."""
        lease = self.leases.items.get(f"{self._ownership.kind.namespace}/{lease_name(key)}")
        return (lease.spec.holder_identity or "") if lease is not None else ""

    def guard(self, key: str) -> Guard:
        """Return the check that every write for a key passes, for as long as its lock is held at the present epoch."""
        return self._ownership.guard(key)

    async def take(self, key: str) -> bool:
        """Take the lock of a key if it is free, or its holder is gone; return whether this replica holds it.

        Raises:
            InputError: The Lease is of another cluster.
        """
        return await self._ownership.acquire(key, "")

    def is_in_request(self, key: str) -> bool:
        """Return whether a request of this process has the lock of a key, or takes it: nothing else may act on it."""
        return key in self._of_requests

    async def take_for_request(self, key: str) -> bool:
        """Take the lock of a key for a request, which must call `end_request`; return False if it is not to be had.

        Raises:
            InputError: The Lease is of another cluster.
        """
        if key in self._of_requests or self.holds(key):
            return False
        self._of_requests.add(key)
        taken = False
        try:
            taken = await self.take(key)
        finally:
            if not taken:
                self._of_requests.discard(key)
        return taken

    def end_request(self, key: str) -> None:
        """Leave the lock of a key to the reconciler, if this replica still holds it."""
        self._of_requests.discard(key)

    async def release(self, key: str) -> None:
        """Release the lock of a key; nothing may be in hand for it any more."""
        await self._ownership.remove(key)

    async def release_all(self) -> None:
        """Release all locks."""
        await self._ownership.remove_all()

    def lease_changed(self, old: Lease | None, new: Lease | None) -> None:
        """Wake the key of a lock that is free, or that another replica has."""
        before = old.spec.holder_identity if old is not None else None
        after = new.spec.holder_identity if new is not None else None
        lease = new or old
        if lease is not None and before and before != after:
            self._wake(lease.metadata.name.removeprefix(self._prefix))


def _kind(namespace: str, about: Callable[[str], ObjectRef]) -> LeaseKind:
    prefix = lease_name("")
    return LeaseKind(
        noun="userlab",
        key="user",
        namespace=namespace,
        seconds=_SECONDS,
        labels={_LABEL: "true"},
        name_of=lease_name,
        key_of=lambda name: name.removeprefix(prefix) if name.startswith(prefix) else None,
        about=lambda key, uid: about(key),  # noqa: ARG005 (a lock is of no object)
        taken_over=UserLabReason.TAKEN_OVER,
        owner=lambda key, uid: None,  # noqa: ARG005 (a lock has no owner: it outlives what it is for)
        foreign=lambda name: InputError(
            UserLabReason.TAKEN_OVER,
            f"Lease {namespace}/{name} exists and is of no user lab of this cluster; delete it",
        ),
    )

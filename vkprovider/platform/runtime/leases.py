"""Leases that say which replica acts for which key, one kind of keys at a time: read, taken, renewed, released.

Each write names the version that was read.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from vkprovider.platform import leases, wellknown
from vkprovider.platform.errors import Conflict, InputError, NotFound
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.kube.informer import CALM, Informer
from vkprovider.platform.objects import Lease
from vkprovider.platform.reasons import Reason
from vkprovider.platform.runtime.context import Context


@dataclass(frozen=True, slots=True)
class LeaseKind:
    """Keys of one kind, which replicas share out among themselves, and their Leases.

    Attributes:
        noun: A key's subject, as logs name it, such as `node`.
        key: The name of a key in logs, such as `worker`.
        namespace: The namespace of the Leases.
        seconds: `leaseDurationSeconds` of the Leases.
        labels: The labels of the Leases, by which they are watched.
        name_of: Returns the name of a key's Lease.
        key_of: Returns the key of a Lease's name; None if the Lease is not of this kind.
        about: Returns the object that Events about a key are about, by the key and the object's UID.
        taken_over: The reason of the Event about a key that was taken from a silent replica.
        owner: Returns the object that owns the Lease, by the same; None if it has no owner.
        foreign: Returns the error about a Lease of this name that is not of this installation.
    """

    noun: str
    key: str
    namespace: str
    seconds: int
    labels: Mapping[str, str]
    name_of: Callable[[str], str]
    key_of: Callable[[str], str | None]
    about: Callable[[str, str], ObjectRef]
    taken_over: Reason
    owner: Callable[[str, str], ObjectRef | None]
    foreign: Callable[[str], InputError]


class Leases:
    """The Leases of all keys of one kind.

    Attributes:
        seen: The Leases as the watch showed them last: which replica holds which key, in which epoch.
    """

    def __init__(self, ctx: Context, kind: LeaseKind, may_act: Guard) -> None:
        """Describe the Leases; nothing is read before the informer runs.

        Args:
            ctx: The replica.
            kind: The keys and their Leases.
            may_act: Called right before every write.
        """
        self._ctx = ctx
        self._kind = kind
        self._may_act = may_act
        self._leases = ctx.api.member_leases.within(kind.namespace)
        self.seen: Informer[Lease] = Informer(
            ctx.kube,
            self._leases.path,
            Lease,
            name=f"{kind.noun}-leases",
            label_selector=",".join(f"{label}={value}" for label, value in kind.labels.items()),
            patience=CALM._replace(list_s=leases.REQUEST_S, outage_cap_s=leases.OUTAGE_CAP_S),
            lane=Lane.AT_ONCE,
        )

    def known(self, key: str) -> Lease | None:
        """Return a key's Lease as the watch showed it last; None if it shows none of this installation."""
        lease = self.seen.items.get(f"{self._kind.namespace}/{self._kind.name_of(key)}")
        return lease if lease is not None and self._is_ours(lease) else None

    async def read(self, key: str) -> Lease | None:
        """Read a key's Lease from the API server; None if there is none.

        Raises:
            InputError: `LeaseKind.foreign`: a Lease of that name is not of this installation.
        """
        name = self._kind.name_of(key)
        lease = await self._leases.get(name, timeout_s=leases.REQUEST_S, lane=Lane.AT_ONCE)
        if lease is not None and not self._is_ours(lease):
            raise self._kind.foreign(name)
        return lease

    def _is_ours(self, lease: Lease) -> bool:
        return lease.metadata.annotations.get(wellknown.ANNOTATION_INSTALLATION) == self._ctx.installation

    async def write(
        self, key: str, old: Lease | None, uid: str, *, holder: str, takes_over: bool = False, beyond: int = 0
    ) -> Lease | None:
        """Write a key's Lease; None if another client has written it since.

        Args:
            key: The key.
            old: The Lease to replace; None creates one.
            uid: The UID of the Lease's owner, if it has one, so that the epoch outlives what the key stands for.
            holder: The replica that holds it; "" releases it.
            takes_over: The holder takes it over: the epoch grows.
            beyond: An epoch that the new one of a take-over exceeds.
        """
        kind = self._kind
        owner = kind.owner(key, uid)
        body: dict[str, Any] = leases.body(
            name=kind.name_of(key),
            namespace=kind.namespace,
            holder=holder,
            old=old,
            now=self._ctx.now_utc,
            seconds=kind.seconds,
            takes_over=takes_over,
            beyond=beyond,
            metadata={
                "labels": {**kind.labels, wellknown.LABEL_INSTALLED_IN: self._ctx.namespace},
                "annotations": {wellknown.ANNOTATION_INSTALLATION: self._ctx.installation},
                **({} if owner is None else {"ownerReferences": [_owner_reference(owner)]}),
            },
        )
        write = self._leases.create if old is None else self._leases.replace
        try:
            return await write(body, timeout_s=leases.REQUEST_S, lane=Lane.AT_ONCE, guard=self._may_act)
        except (Conflict, NotFound):
            return None

    async def delete(self, key: str, lease: Lease) -> None:
        """Delete a key's Lease unless another client has written it since."""
        meta = lease.metadata
        with suppress(Conflict):
            await self._leases.delete(
                self._kind.name_of(key),
                uid=meta.uid,
                resource_version=meta.resource_version,
                timeout_s=leases.REQUEST_S,
                lane=Lane.AT_ONCE,
                guard=self._may_act,
            )


def _owner_reference(owner: ObjectRef) -> dict[str, str]:
    return {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}


def epoch_of(lease: Lease) -> int:
    """Return the epoch that a Lease names."""
    return lease.spec.lease_transitions or 0


def owner_uid_of(lease: Lease) -> str:
    """Return the UID of the object that owns a Lease; "" without an owner."""
    return next((owner.uid for owner in lease.metadata.owner_references), "")

"""What no event announces: labs are looked at again, enough warm ones are kept, and locks of the dead are cleared away.

Every replica looks, and clears away locks of its own that it could not release; the rest is done by the one that leads.
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import Final

import structlog

from vkprovider.platform.errors import Conflict, Fenced, InputError, NotFound, OutsideError
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership
from vkprovider.portal.pure import warm
from vkprovider.portal.pure.names import lease_name, namespace_name, warm_key
from vkprovider.portal.pure.record import LabRequest, annotation, ending, warm_labels_for
from vkprovider.portal.service.choices import Choices
from vkprovider.portal.service.effects.records import Records
from vkprovider.portal.service.index import Index
from vkprovider.portal.service.locks import Locks
from vkprovider.portal.service.requests import Requests, new_id
from vkprovider.portal.settings import PortalSettings

_log: Final = structlog.get_logger(__name__)
_KEY_BITS: Final = 40


class Keeper:
    """Looks again and again."""

    def __init__(
        self,
        ctx: Context,
        settings: PortalSettings,
        index: Index,
        locks: Locks,
        membership: Membership,
        requests: Requests,
        choices: Choices,
        wake: Callable[[str], None],
        *,
        records: Records,
    ) -> None:
        """Look at nothing yet.

        Args:
            ctx: The replica.
            settings: How often to look, and what names of namespaces begin with.
            index: The labs.
            locks: Those of users without a lab are released.
            membership: Tells whether this replica leads.
            requests: Tells which users have a request in hand.
            choices: The menu, which says what the warm labs run.
            wake: Called with the namespace of each lab.
            records: Writes the Namespaces.
        """
        self._ctx = ctx
        self._settings = settings
        self._index = index
        self._locks = locks
        self._membership = membership
        self._requests = requests
        self._choices = choices
        self._wake = wake
        self._records = records
        self._idle: set[str] = set()
        self._known = asyncio.Event()

    def known(self) -> None:
        """Begin to look: everything is listed."""
        self._known.set()

    async def run(self) -> None:
        """Look, for ever."""
        await self._known.wait()
        while True:
            try:
                await self.look()
            except (OutsideError, InputError, Fenced) as error:
                _log.warning("cannot keep warm labs, or clear away locks", error=str(error))
            await asyncio.sleep(self._settings.look_s)

    async def look(self) -> None:
        """Look once.

        Raises:
            InputError: A Lease is of another cluster.
            Fenced: This replica does not lead any more.
            OutsideError: The API server refused or did not answer.
        """
        for namespace in self._index.namespaces():
            self._wake(namespace)
        idle = {key for key in self._locks.held() if self._is_idle(key)}
        for key in idle & self._idle:  # twice in a row: the watch shows whatever was written meanwhile
            await self._locks.release(key)
        self._idle = idle
        await self._clear()
        if self._membership.leads():
            await self._keep_warm()

    async def _clear(self) -> None:
        """Take the locks that were left: this replica's own, whose release failed, and those of the dead if it leads.

        Who has nothing to do for one releases it.
        """
        prefix = lease_name("")
        for lease in list(self._locks.leases.items.values()):
            key, holder = lease.metadata.name.removeprefix(prefix), lease.spec.holder_identity or ""
            if holder != self._ctx.replica and not self._membership.leads():
                continue
            left = holder in {"", self._ctx.replica} or self._membership.members.is_gone(holder)
            if not left or key in self._requests.in_hand or self._locks.holds(key) or not await self._locks.take(key):
                continue
            if self._is_idle(key):
                await self._locks.release(key)
            for namespace in self._index.namespaces_of(key):
                self._wake(namespace)

    async def _keep_warm(self) -> None:
        """Begin to make warm labs where there are too few, and end those that nobody will take."""
        plan = warm.plan(self._index.warm(), warm.warm_images(self._choices.menu()))
        for family, (pod_image, number) in plan.make.items():
            for _ in range(number):
                name = namespace_name(self._settings.namespace_prefix, warm_key(secrets.randbits(_KEY_BITS)))
                request = LabRequest(id=new_id(), at=self._ctx.now_unix, definition=pod_image)
                labels = warm_labels_for(self._ctx.namespace, family)
                await self._records.create(name, labels, annotation(request), self._leads)
                _log.info("warm lab requested", family=family, namespace=name, definition=pod_image)
        for lab in plan.end:
            try:
                await self._records.patch(lab.record, annotation(ending(new_id(), self._ctx.wall())), self._leads)
            except (Conflict, NotFound):  # a user has just taken it
                continue

    def _leads(self) -> None:
        if not self._membership.leads():
            raise Fenced("this replica does not lead any more")

    def _is_idle(self, key: str) -> bool:
        return key not in self._requests.in_hand and not self._index.namespaces_of(key)

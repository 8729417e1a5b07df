"""Periodic work: labs are looked at again, enough warm ones are kept, instructors bound in the labs of a class.

Every replica looks at labs again, and clears away locks of its own that it could not release; the rest is done by the
one that leads.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterable
from typing import Final

import structlog

from vkprovider.platform.errors import Conflict, Fenced, Forbidden, InputError, NotFound, OutsideError
from vkprovider.platform.kube.queue import DONE, Result
from vkprovider.platform.objects import RoleBinding
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership
from vkprovider.portal.pure.leading import (
    change,
    is_of_class,
    is_of_lab,
    names_somebody,
    of_class,
    warm_images,
    warm_plan,
)
from vkprovider.portal.pure.portalnames import lease_name, namespace_name, warm_key
from vkprovider.portal.pure.record import LabRequest, annotation, ending, labels_for, warm_labels_for
from vkprovider.portal.service.choices import Choices
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.locks import Locks
from vkprovider.portal.service.making import Contents
from vkprovider.portal.service.records import Records, new_id
from vkprovider.portal.settings import PortalSettings

_log: Final = structlog.get_logger(__name__)
_KEY_BITS: Final = 40


class Keeper:
    """Looks again and again."""

    def __init__(
        self,
        ctx: Context,
        settings: PortalSettings,
        index: UserLabIndex,
        locks: Locks,
        membership: Membership,
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
            choices: The menu, which says what the warm labs run.
            wake: Called with the namespace of each lab.
            records: Writes the Namespaces.
        """
        self._ctx = ctx
        self._settings = settings
        self._index = index
        self._locks = locks
        self._membership = membership
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
            mine = self._locks.is_in_request(key) or self._locks.holds(key)
            if not left or mine or not await self._locks.take(key):
                continue
            if self._is_idle(key):
                await self._locks.release(key)
            for namespace in self._index.namespaces_of(key):
                self._wake(namespace)

    async def _keep_warm(self) -> None:
        """Begin to make warm labs where there are too few, and end those that nobody will take."""
        plan = warm_plan(self._index.warm(), warm_images(self._choices.menu()))
        for family, (pod_image, number) in plan.make.items():
            for _ in range(number):
                name = namespace_name(self._settings.namespace_prefix, warm_key(secrets.randbits(_KEY_BITS)))
                request = LabRequest(id=new_id(), at=self._ctx.now_unix, definition=pod_image)
                labels = warm_labels_for(self._ctx.namespace, family)
                await self._records.create(name, labels, annotation(request), self._membership.check_leads)
                _log.info("warm lab requested", family=family, namespace=name, definition=pod_image)
        for lab in plan.end:
            try:
                await self._records.patch(
                    lab.record, annotation(ending(new_id(), self._ctx.wall())), self._membership.check_leads
                )
            except (Conflict, NotFound):  # a user has just taken it
                continue

    def _is_idle(self, key: str) -> bool:
        return not self._locks.is_in_request(key) and not self._index.namespaces_of(key)


_UNSEEN_S: Final = 1.0
"""How soon to look again after a write that came too late: the watch shows the other one soon."""
_REFUSED_S: Final = 5.0


class Instructors:
    """Copies each class's instructors into RoleBindings of its labs; only the leader writes."""

    def __init__(self, ctx: Context, index: UserLabIndex, membership: Membership, wake: Callable[[str], None]) -> None:
        """Know none.

        Args:
            ctx: The replica; its namespace is the mark.
            index: The labs.
            membership: Tells whether this replica leads.
            wake: Called with the namespace of a lab whose instructors may have changed.
        """
        self._ctx = ctx
        self._index = index
        self._membership = membership
        self._wake = wake
        self._contents = Contents(ctx)
        self._of_class: dict[str, dict[str, RoleBinding]] = {}
        self._of_lab: dict[str, RoleBinding] = {}

    def binding_changed(self, old: RoleBinding | None, new: RoleBinding | None) -> None:
        """Note a RoleBinding, and wake the labs that it concerns."""
        known = new or old
        if known is None:
            return
        namespace, name = known.metadata.namespace, known.metadata.name
        if is_of_lab(known):
            if new is not None:
                self._of_lab[namespace] = new
            else:
                self._of_lab.pop(namespace, None)
            self._wake(namespace)
        if is_of_class(known):
            its = self._of_class.setdefault(namespace, {})
            if new is not None:
                its[name] = new
            else:
                its.pop(name, None)
            if not its:
                del self._of_class[namespace]
            for lab in self._index.of_class(namespace):
                self._wake(lab.record.namespace)

    def classes_of(self, username: str, groups: Iterable[str]) -> set[str]:
        """Return the classes whose RoleBindings name somebody, or one of their groups."""
        its = set(groups)
        return {
            namespace
            for namespace, bindings in self._of_class.items()
            if any(names_somebody(subject, username, its) for subject in of_class(bindings.values()))
        }

    def has_any(self, namespace: str) -> bool:
        """Return whether RoleBindings make anybody an instructor of a namespace, or would."""
        return namespace in self._of_class

    async def reconcile(self, namespace: str) -> Result:
        """Have a lab name the instructors of its class, if it does not."""
        lab = self._index.at(namespace)
        if lab is None or not self._membership.leads():
            return DONE
        class_ = lab.record.class_
        step = change(lab.record, of_class(self._of_class.get(class_, {}).values()), self._of_lab.get(namespace))
        if step is None:
            return DONE
        labels = labels_for(self._ctx.namespace, lab.user, class_=class_)
        try:
            await self._contents.instructors(namespace, labels, step, self._membership.check_leads)
        except (Conflict, NotFound):  # somebody was quicker: the watch will show it
            return Result(_UNSEEN_S)
        except Forbidden as error:  # such as in a namespace that ends
            _log.warning("the instructors of a lab are not those of its class", namespace=namespace, error=str(error))
            return Result(_REFUSED_S)
        _log.info("instructors of a lab", namespace=namespace, class_=class_, step=type(step).__name__)
        return DONE

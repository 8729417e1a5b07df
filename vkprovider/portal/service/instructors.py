"""Has the instructors of each class be those of its labs: the replica that leads writes it, whoever was late before."""

from collections.abc import Callable, Iterable
from typing import Final

import structlog

from vkprovider.platform.errors import Conflict, Fenced, Forbidden, NotFound
from vkprovider.platform.kube.queue import DONE, Result
from vkprovider.platform.objects import RoleBinding
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership
from vkprovider.portal.pure.instructors import change, is_of_class, is_of_lab, names_somebody, of_class
from vkprovider.portal.pure.record import labels_for
from vkprovider.portal.service.effects.contents import Contents
from vkprovider.portal.service.index import Index

_log: Final = structlog.get_logger(__name__)
_UNSEEN_S: Final = 1.0
"""How soon to look again after a write that came too late: the watch shows the other one soon."""
_REFUSED_S: Final = 5.0


class Instructors:
    """Knows the RoleBindings of classes and of their labs, and keeps the latter like the former."""

    def __init__(self, ctx: Context, index: Index, membership: Membership, wake: Callable[[str], None]) -> None:
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
        """Have a lab name the instructors of its class, if it does not.

        Raises:
            Fenced: This replica does not lead any more.
            OutsideError: The API server refused or did not answer.
        """
        lab = self._index.at(namespace)
        if lab is None or not self._membership.leads():
            return DONE
        class_ = lab.record.class_
        step = change(lab.record, of_class(self._of_class.get(class_, {}).values()), self._of_lab.get(namespace))
        if step is None:
            return DONE
        labels = labels_for(self._ctx.namespace, lab.user, class_=class_)
        try:
            await self._contents.instructors(namespace, labels, step, self._leads)
        except (Conflict, NotFound):  # somebody was quicker: the watch will show it
            return Result(_UNSEEN_S)
        except Forbidden as error:  # such as in a namespace that ends
            _log.warning("the instructors of a lab are not those of its class", namespace=namespace, error=str(error))
            return Result(_REFUSED_S)
        _log.info("instructors of a lab", namespace=namespace, class_=class_, step=type(step).__name__)
        return DONE

    def _leads(self) -> None:
        if not self._membership.leads():
            raise Fenced("this replica does not lead any more")

"""Which classes somebody teaches, what they may do there, and the rows of each."""

from collections import OrderedDict
from typing import Final, NamedTuple

from aiohttp import web

from vkprovider.platform.concurrency import at_most
from vkprovider.platform.objects import Pod
from vkprovider.platform.rights import Right
from vkprovider.portal.api.callers import KnownCaller, PortalCallers, lab_right
from vkprovider.portal.pure.classes import ACTS, Row, of_lab, of_lablet
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.keeper import Instructors
from vkprovider.portal.service.lablets import OtherLablets
from vkprovider.portal.web.visitor import Visitor


class Powers(NamedTuple):
    """What somebody who sees a class may do with its lablets.

    Attributes:
        lablets: Write on the Pods of the class.
        labs: Write on the Pods of user labs of the class.
        ends: Extend and end user labs of the class, by the portal.
    """

    lablets: bool = False
    labs: bool = False
    ends: bool = False

    @property
    def acts(self) -> tuple[str, ...]:
        """The forms to offer."""
        usual = ACTS if self.lablets or self.labs else ("extend",) if self.ends else ()
        return (*usual, *(("end",) if self.ends else ()))

    @property
    def role(self) -> str:
        """By which the page of a class differs between visitors."""
        return "acts" if self.acts else "looks"


async def powers_of(callers: PortalCallers, visitor: Visitor, namespace: str, labs: list[UserLab]) -> Powers:
    """Ask what an instructor of a class may do with its lablets; what there are none of is not asked for.

    Who has no token here, because an ingress sends none, writes on no Pod.

    Args:
        callers: Asks the API server.
        visitor: The instructor.
        namespace: The class.
        labs: Its user labs; the portal binds the same people in each, so that one stands for all.

    Raises:
        Refused: 429, or 503.
    """
    known, writes = visitor.known, bool(visitor.token)
    lablets = writes and await callers.may(known, Right("patch", "pods", namespace))
    there = [lab.record.namespace for lab in labs if not lab.record.deleted]
    of_labs = writes and bool(there) and await callers.may(known, Right("patch", "pods", there[0]))
    return Powers(lablets, of_labs, ends=bool(there))


_ASKED_MAX: Final = 10
"""The most classes that are asked for although no RoleBinding names the visitor: another role may let them teach.

Every learner who opens the list is asked for that many, and all share the reviews.
"""
_AT_ONCE: Final = 8
_KEPT_MAX: Final = 32
"""Classes whose rows are kept for the next look."""


class ShownClass(NamedTuple):
    """A class in the list.

    Attributes:
        namespace: Its name.
        labs: How many lablets it has, with those that are free.
    """

    namespace: str
    labs: int


class Classrooms:
    """The classes that a replica knows."""

    def __init__(
        self, index: UserLabIndex, lablets: OtherLablets, instructors: Instructors, callers: PortalCallers
    ) -> None:
        """Know what these know.

        Args:
            index: User labs.
            lablets: All other lablets.
            instructors: Whom the RoleBindings of classes name.
            callers: Asks what somebody may.
        """
        self._index = index
        self._lablets = lablets
        self._instructors = instructors
        self._callers = callers
        self._kept: OrderedDict[str, dict[str, tuple[Pod | UserLab, Row]]] = OrderedDict()

    async def check(self, known: KnownCaller, namespace: str) -> None:
        """Check that somebody teaches a class; the answer is the same whether there is such a class or not.

        A namespace of which nothing is known takes no review: anybody may write one into an address.

        Raises:
            HTTPNotFound: They do not, or nobody teaches there and there is no lab.
            Refused: 429, or 503.
        """
        if not await self._callers.teaches(known, "", namespace if self._is_known(namespace) else ""):
            raise web.HTTPNotFound

    async def of(self, known: KnownCaller) -> list[ShownClass]:
        """Return the classes that somebody teaches, by name.

        Raises:
            Refused: 429, or 503.
        """
        user = known.of_cluster
        named = self._instructors.classes_of(user.username, user.groups)
        others = sorted({*self._lablets.namespaces(), *self._index.classes()} - named)
        if await self._callers.teaches_everywhere(known):
            return [ShownClass(namespace, self._count(namespace)) for namespace in sorted({*named, *others})]
        asked = [*sorted(named), *others[:_ASKED_MAX]]

        async def teaches(namespace: str) -> bool:
            return await self._callers.may(known, lab_right("teach", namespace))

        answers = await at_most(_AT_ONCE, teaches, asked)
        mine = sorted(namespace for namespace, answer in zip(asked, answers, strict=True) if answer)
        return [ShownClass(namespace, self._count(namespace)) for namespace in mine]

    def labs(self, namespace: str) -> list[UserLab]:
        """Return the user labs of a class."""
        return self._index.of_class(namespace)

    def rows(self, namespace: str) -> list[Row]:
        """Return the rows of a class, in no order; those of Pods that have not changed are made once."""
        before = self._kept.pop(namespace, {})
        now: dict[str, tuple[Pod | UserLab, Row]] = {}
        for pod in self._lablets.of(namespace):
            kept = before.get(pod.metadata.name)
            now[pod.metadata.name] = kept if kept is not None and kept[0] is pod else (pod, of_lablet(pod))
        for lab in self.labs(namespace):
            kept = before.get(f"/{lab.record.namespace}")
            now[f"/{lab.record.namespace}"] = kept if kept is not None and kept[0] == lab else (lab, of_lab(lab))
        self._kept[namespace] = now
        if len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)
        return [row for _, row in now.values()]

    def pod_of(self, row: Row) -> Pod | None:
        """Return the Pod of a row as it is now; None if there is none."""
        if not row.user:
            return self._lablets.pod(row.namespace, row.pod)
        lab = self._index.lab(row.user)
        return lab.own_pod if lab is not None else None

    def _is_known(self, namespace: str) -> bool:
        """Return whether a namespace has a lab, or instructors."""
        return (
            self._instructors.has_any(namespace)
            or bool(self._lablets.of(namespace))
            or namespace in self._index.classes()
        )

    def _count(self, namespace: str) -> int:
        return len(self._lablets.of(namespace)) + len(self.labs(namespace))

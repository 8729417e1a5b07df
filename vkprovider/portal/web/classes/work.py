"""The work of a class, as zip files, and its grades, as a table and as a file: of now, and of lablets that are gone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import structlog
from aiohttp import web

from vkprovider.classroom.archives import by_learner, newest_kept
from vkprovider.classroom.grades import LearnerGrade, as_csv
from vkprovider.classroom.work import files_of, safe
from vkprovider.lablet.archives import ArchiveEntry, Leftovers
from vkprovider.platform.http.open import Places
from vkprovider.platform.messages import count, listed
from vkprovider.platform.rights import Right
from vkprovider.platform.times import clock, unix
from vkprovider.portal.pure.classes import Row, RowFilter, chosen, everybody
from vkprovider.portal.pure.grades import grades_of, learners_of
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.service.leftwork import LeftUnknownError, LeftWork
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.classes.classrooms import ClassRequests, Classrooms, csv_answer, path_of
from vkprovider.portal.web.classes.zips import SentZip
from vkprovider.portal.web.consoles.opening import ConsoleTarget
from vkprovider.portal.web.consoles.routes import collected
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.visitors import Visitor

_log: Final = structlog.get_logger(__name__)
_LOOK_ONLY: Final = "You may look at this class, and read nothing of its devices."
_NAMED_MAX: Final = 6
"""How many learners are named beside a button."""


def reading_rights(namespace: str) -> tuple[Right, ...]:
    """Return what it takes to read the configurations of devices that run."""
    return (Right("create", "pods/exec", namespace),)


class ShownGrade(NamedTuple):
    """A row of the table.

    Attributes:
        grade: What it says.
        when: When the work was collected, for people.
    """

    grade: LearnerGrade
    when: str


class LeftEntries(NamedTuple):
    """What learners of a class have left, as the page says.

    Attributes:
        entries: All of it, the newest first.
        fault: Why it is not known, as a sentence; "" if it is.
    """

    entries: Sequence[ArchiveEntry] = ()
    fault: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class WorkPage:
    """The handlers.

    Attributes:
        site: What every view is given.
        classrooms: The classes.
        requests: Finds the class and the sender of each.
        left: Where what learners have left is asked.
        places: Of downloads of configurations, of all pages.
    """

    site: SiteContext
    classrooms: Classrooms
    requests: ClassRequests
    left: LeftWork
    places: Places

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show what may be downloaded, and the grades."""
        namespace, visitor = await self.requests.taught(request)
        found, now = await self._entries(visitor, namespace), self.site.ctx.wall()
        rows = self._having(namespace)
        having = [row.shown or row.learner for row in rows]
        leaving = learners_of(found.entries)
        grades = grades_of(self.classrooms.rows(namespace), found.entries)
        return self.site.layout.render(
            request,
            "classes/work.html",
            namespace=namespace,
            path=f"{path_of(namespace)}/work",
            above=path_of(namespace),
            reads=await self.requests.may(visitor, namespace, reading_rights),
            devices=count(sum(len(self._targets(row)) for row in rows), "device"),
            having=(count(len(having), "learner"), listed(having, _NAMED_MAX)) if having else None,
            leaving=(count(len(leaving), "learner"), listed(leaving, _NAMED_MAX)) if leaving else None,
            fault=found.fault,
            grades=[ShownGrade(each, _when(each.at, now)) for each in grades],
        )

    async def csv(self, request: web.Request) -> web.StreamResponse:
        """Answer with the grades as a file; those that are not known would be missing unsaid, so that it is refused.

        Without an address of the provider's page it has those of the lablets that are there.
        """
        namespace, visitor = await self.requests.taught(request)
        found = await self._entries(visitor, namespace)
        if found.fault and self.left.url:
            raise Rejected(Grounds.UNAVAILABLE, found.fault)
        grades = grades_of(self.classrooms.rows(namespace), found.entries)
        return csv_answer(as_csv(grades), f"{namespace}-grades")

    async def running(self, request: web.Request) -> web.StreamResponse:
        """Answer with what the devices of all learners are configured to now, a folder for each learner."""
        namespace, visitor = await self.requests.allowed(request, reading_rights, _LOOK_ONLY)
        taken: set[str] = set()
        sent = SentZip(request, f"{namespace}-now", self.site.ctx.wall)
        with self.places.taken(visitor.known.of_cluster.username):
            async with self.site.as_visitor.client(visitor.token) as kube:
                for row in self._having(namespace):
                    folder, targets = safe(row.learner, "learner", taken), self._targets(row)
                    if not targets:
                        sent.miss(f"{folder}: the lab shows no devices")
                    for each in await collected(kube, targets):
                        if each.fault:
                            sent.miss(f"{folder}, {each.device}: {each.fault}")
                        else:
                            await sent.add(f"{folder}/{each.device}.cfg", each.text)
            return await self._finished(sent, visitor, namespace)

    async def gone(self, request: web.Request) -> web.StreamResponse:
        """Answer with what each learner of the class left last, a folder for each.

        Who reads nothing of the first gets a page that says why; after that a file at the end names who is missing.
        """
        namespace, visitor = await self.requests.taught(request)
        taken: set[str] = set()
        sent = SentZip(request, f"{namespace}-left", self.site.ctx.wall)
        with self.places.taken(visitor.known.of_cluster.username):
            try:
                async with self.left.open(visitor.token, namespace) as archives:
                    whole = by_learner(await archives.list())
                    for number, (learner, entries) in enumerate(whole.items()):
                        folder = safe(learner, "learner", taken)
                        try:
                            left = await newest_kept(archives, entries)
                        except LeftUnknownError as error:
                            if not number:
                                raise
                            sent.miss(f"{folder}: {error}")
                            if error.silent:
                                sent.miss(f"Nor is there anything of {', '.join([*whole][number + 1 :]) or 'others'}.")
                                break
                            continue
                        await _add(sent, folder, left)
            except LeftUnknownError as error:
                raise Rejected(Grounds.UNAVAILABLE, str(error)) from error
            return await self._finished(sent, visitor, namespace)

    async def _finished(self, sent: SentZip, visitor: Visitor, namespace: str) -> web.StreamResponse:
        response = await sent.finish()
        _log.info("the work of a class was downloaded", namespace=namespace, by=visitor.known.of_cluster.username)
        return response

    async def _entries(self, visitor: Visitor, namespace: str) -> LeftEntries:
        try:
            async with self.left.open(visitor.token, namespace) as archives:
                return LeftEntries(await archives.list())
        except LeftUnknownError as error:
            return LeftEntries(fault=str(error))

    def _having(self, namespace: str) -> list[Row]:
        """Return the rows of learners whose lab goes on, by last name."""
        return everybody(chosen(self.classrooms.rows(namespace), RowFilter("learner")))

    def _targets(self, row: Row) -> list[ConsoleTarget]:
        pod = self.classrooms.pod_of(row)
        if pod is None or not pod.spec.containers:
            return []
        whole, *devices = pod.spec.containers
        return [ConsoleTarget(pod.metadata.namespace, pod.metadata.name, whole.name, each.name) for each in devices]


async def _add(sent: SentZip, folder: str, left: Leftovers | None) -> None:
    if left is None:
        sent.miss(f"{folder}: it has just been dropped, a week after it was collected")
        return
    for name, text in files_of(left).items():
        await sent.add(f"{folder}/{name}", text.encode())
    for device, why in sorted(left.faults.items()):
        sent.miss(f"{folder}, {device or 'besides'}: {why}")


def _when(stamp: str, now: float) -> str:
    at = unix(stamp)
    return clock(at, now) if at is not None else ""

"""The hand-out of a class: a table, and a file, of where each learner begins."""

from dataclasses import dataclass
from typing import NamedTuple

from aiohttp import web

from vkprovider.classroom.handout import HandOutRow, as_csv, lab_link, lablet_link, ways_in
from vkprovider.lablet.devices import devices_in
from vkprovider.lablet.models.status import DefinitionStatus
from vkprovider.platform.times import clock, iso
from vkprovider.portal.pure.classes import Row, RowFilter, chosen, everybody
from vkprovider.portal.web.classes.classrooms import ClassRequests, Classrooms, csv_answer, path_of
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.login import address_of


class ShownHandOut(NamedTuple):
    """A row of the table.

    Attributes:
        row: What it says.
        until: When the time ends, for people.
    """

    row: HandOutRow
    until: str


@dataclass(frozen=True, eq=False, slots=True)
class HandingOut:
    """The handlers.

    Attributes:
        site: What every view is given.
        classrooms: The classes.
        requests: Finds the class and the sender of each.
    """

    site: SiteContext
    classrooms: Classrooms
    requests: ClassRequests

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show the hand-out."""
        namespace, found = await self._rows(request)
        now = self.site.ctx.wall()
        return self.site.layout.render(
            request,
            "classes/handout.html",
            namespace=namespace,
            path=path_of(namespace),
            rows=[
                ShownHandOut(made, clock(row.ends_at, now) if row.ends_at is not None else "") for row, made in found
            ],
        )

    async def csv(self, request: web.Request) -> web.StreamResponse:
        """Answer with the hand-out as a file."""
        namespace, rows = await self._rows(request)
        return csv_answer(as_csv([made for _, made in rows], namespace), f"{namespace}-hand-out")

    async def _rows(self, request: web.Request) -> tuple[str, list[tuple[Row, HandOutRow]]]:
        """Return the class of a request, and the learners who have a lab, each with what the hand-out says.

        Raises:
            HTTPNotFound: The sender does not teach the class.
            Refused: 401, 429, or 503.
        """
        namespace, _ = await self.requests.taught(request)
        portal = address_of(request, "")
        rows = everybody(chosen(self.classrooms.rows(namespace), RowFilter("learner")))
        return namespace, [(row, self._made(row, portal)) for row in rows]

    def _made(self, row: Row, portal: str) -> HandOutRow:
        pod = self.classrooms.pod_of(row)
        ports = [port for device in devices_in(pod, DefinitionStatus()) for port in device.ports] if pod else []
        until = iso(int(row.ends_at)) if row.ends_at is not None else ""
        link = lab_link(portal, row.user) if row.user else lablet_link(portal, row.namespace, row.pod)
        return HandOutRow(row.learner, row.pod, link, until, tuple(ways_in(ports)), row.shown)

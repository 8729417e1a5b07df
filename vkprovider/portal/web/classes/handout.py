"""The hand-out of a class: a table, and a file, of where each learner begins."""

from typing import NamedTuple

from aiohttp import web

from vkprovider.classroom.handout import HandOutRow, as_csv, lab_link, lablet_link, ways_in
from vkprovider.lablet.devices import devices_in
from vkprovider.lablet.models.status import DefinitionStatus
from vkprovider.platform.times import clock, iso
from vkprovider.portal.pure.classes import Row, RowFilter, chosen
from vkprovider.portal.web.classes.classrooms import Classrooms, path_of
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


class HandingOut:
    """The handlers."""

    def __init__(self, site: SiteContext, classrooms: Classrooms) -> None:
        """Create them.

        Args:
            site: What every view is given.
            classrooms: The classes.
        """
        self._site = site
        self._classrooms = classrooms

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show the hand-out."""
        namespace = request.match_info["namespace"]
        found = await self._rows(request, namespace)
        now = self._site.ctx.wall()
        return self._site.layout.render(
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
        namespace = request.match_info["namespace"]
        rows = [made for _, made in await self._rows(request, namespace)]
        text = f"\ufeff{as_csv(rows, namespace)}"  # without the mark Excel takes it for Windows-1252
        disposition = {"Content-Disposition": f'attachment; filename="{namespace}-hand-out.csv"'}
        return web.Response(text=text, content_type="text/csv", charset="utf-8", headers=disposition)

    async def _rows(self, request: web.Request, namespace: str) -> list[tuple[Row, HandOutRow]]:
        """Return the learners who have a lab, each with what the hand-out says.

        Raises:
            HTTPNotFound: The sender does not teach the class.
            Refused: 401, 429, or 503.
        """
        visitor = await self._site.visitors.of(request)
        await self._classrooms.check(visitor.known, namespace)
        portal = address_of(request, "")
        rows = chosen(self._classrooms.rows(namespace), RowFilter("learner"))
        return [(row, self._made(row, portal)) for row in rows if row.learner and not row.is_over]

    def _made(self, row: Row, portal: str) -> HandOutRow:
        pod = self._classrooms.pod_of(row)
        ports = [port for device in devices_in(pod, DefinitionStatus()) for port in device.ports] if pod else []
        until = iso(int(row.ends_at)) if row.ends_at is not None else ""
        link = lab_link(portal, row.user) if row.user else lablet_link(portal, row.namespace, row.pod)
        return HandOutRow(row.learner, row.pod, link, until, tuple(ways_in(ports)))

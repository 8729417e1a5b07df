"""A wall of consoles: the first one of each learner of a class, to watch."""

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from aiohttp import web

from vkprovider.lablet.devices import devices_in
from vkprovider.lablet.models.status import DefinitionStatus
from vkprovider.portal.pure.classes import Row, RowFilter, chosen, everybody
from vkprovider.portal.web.classes.classrooms import ClassRequests, Classrooms, path_of, path_of_row
from vkprovider.portal.web.layout import SiteContext


class Tile(NamedTuple):
    """One console on a wall.

    Attributes:
        learner: Whose.
        path: Of the page of the lab.
        device: The first that has a console.
        console: The path of the page of that console, which watches and is one of many.
        state: How the lab stands.
        tone: The colour of that.
        shown: The name by which people know the learner.
    """

    learner: str
    path: str
    device: str
    console: str
    state: str
    tone: str
    shown: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Wall:
    """The handler.

    Attributes:
        site: What every view is given.
        classrooms: The classes.
        requests: Finds the class and the sender of each.
    """

    site: SiteContext
    classrooms: Classrooms
    requests: ClassRequests

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show the wall."""
        namespace, visitor = await self.requests.taught(request)
        rows = everybody(chosen(self.classrooms.rows(namespace), RowFilter()))
        tiles = [tile for row in rows if (tile := self._tile(namespace, row)) is not None]
        return self.site.layout.render(
            request,
            "classes/wall.html",
            namespace=namespace,
            path=path_of(namespace),
            tiles=tiles if visitor.token else [],
            has_token=bool(visitor.token),
        )

    def _tile(self, namespace: str, row: Row) -> Tile | None:
        """Return the first console of a lab; None if it has none."""
        pod = self.classrooms.pod_of(row)
        devices = devices_in(pod, DefinitionStatus()) if pod is not None else ()
        device = next((each.label for each in devices if each.console), "")
        if not device:
            return None
        path = path_of_row(namespace, row)
        console = f"{path}/consoles/{quote(device, safe='')}?as=watch&panel=tile"
        return Tile(row.learner, path, device, console, row.state, row.tone, row.shown)

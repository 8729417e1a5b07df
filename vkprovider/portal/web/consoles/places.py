"""Which console a path names, whether a visitor may see it, and why it does not open."""

import shlex
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import quote

from aiohttp import web

from vkprovider.platform.objects import Pod
from vkprovider.portal.api.callers import KnownCaller
from vkprovider.portal.web.consoles.upstream import ConsoleTarget
from vkprovider.portal.web.context import SiteContext
from vkprovider.portal.web.visitor import Visitor


class LabPlace(NamedTuple):
    """A lab that a visitor may see.

    Attributes:
        path: Of its page.
        whose: What it is called there.
        pod: The lablet; None if there is none now.
    """

    path: str
    whose: str
    pod: Pod | None

    def target(self, device: str) -> ConsoleTarget:
        """Return the console of a device; there is a lablet.

        Raises:
            HTTPNotFound: There is none.
        """
        if self.pod is None:
            raise web.HTTPNotFound
        meta, containers = self.pod.metadata, self.pod.spec.containers
        return ConsoleTarget(meta.namespace, meta.name, containers[0].name if containers else "", device)


def console_path(place: LabPlace, device: str) -> str:
    """Return the path of the page of a console."""
    return f"{place.path}/consoles/{quote(device, safe='')}"


def kubectl_command(target: ConsoleTarget) -> str:
    """Return the command that opens a console in a terminal."""
    pod = f"-n {target.namespace} {target.pod} -c {target.container}"
    return f"kubectl exec -it {pod} -- console {shlex.quote(target.device)}"


Finder = Callable[[web.Request, Visitor], Awaitable[LabPlace]]
"""Called with each request to find its lab; raises `HTTPNotFound` for a visitor who may not see it."""


class Places:
    """Finds labs by the paths of requests."""

    def __init__(self, site: SiteContext) -> None:
        self._site = site

    async def of_user(self, request: web.Request, visitor: Visitor) -> LabPlace:
        """Return the lab that `/labs/{user}` names.

        Raises:
            HTTPNotFound: The visitor may not see it, whether it exists or not.
            Refused: 429, or 503.
        """
        user = request.match_info["user"]
        if not await self._sees_lab(visitor.known, user):
            raise web.HTTPNotFound
        if visitor.known.caller.user == user:
            await self._site.requests.find(visitor.known.caller)
        lab = self._site.index.lab(user)
        return LabPlace(f"/labs/{quote(user, safe='')}", f"Lab of {user}", lab.pod if lab is not None else None)

    async def of_class(self, request: web.Request, visitor: Visitor) -> LabPlace:
        """Return the lablet that `/classes/{namespace}/lablets/{pod}` names.

        Raises:
            HTTPNotFound: The visitor may not see it, whether it exists or not.
            Refused: 429, or 503.
        """
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        if not await self._site.callers.teaches(visitor.known, "", namespace):
            raise web.HTTPNotFound
        path = f"/classes/{quote(namespace, safe='')}/lablets/{quote(name, safe='')}"
        return LabPlace(path, name, self._site.lablets.pod(namespace, name))

    async def _sees_lab(self, known: KnownCaller, user: str) -> bool:
        """Return whether somebody owns a user's lab, teaches its class, or manages all labs."""
        callers, lab = self._site.callers, self._site.index.lab(user)
        class_ = lab.record.class_ if lab is not None else ""
        return (
            await callers.owns(known, user)
            or await callers.teaches(known, user, class_)
            or await callers.manages(known, user)
        )

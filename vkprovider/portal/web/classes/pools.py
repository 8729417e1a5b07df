"""The pools of a class on its page: how large they are, one more of them, and what to make one of."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import structlog
from aiohttp import web

from vkprovider.classroom.pools import REPLICAS_MAX, PoolSize, make, offered, pools_in, scale
from vkprovider.doctor.rights import grant_command
from vkprovider.platform.errors import Forbidden, InputError, OutsideError
from vkprovider.platform.http.bodies import read_form
from vkprovider.platform.kube.api import DEFINITIONS
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.rights import Right
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.classes.classrooms import ClassRequests, path_of
from vkprovider.portal.web.classes.giving import as_visitor, number_of
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.visitors import FORM_BODY, Visitor, link

_log: Final = structlog.get_logger(__name__)
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?")
_USUAL: Final = 24


class WishedPool(NamedTuple):
    """A pool that a form asks for.

    Attributes:
        name: Of its Deployment.
        definition: Of its lablets.
        replicas: How many free ones it is to have.
    """

    name: str
    definition: str
    replicas: int


def pool_rights(namespace: str) -> tuple[Right, ...]:
    """Return what it takes to make and scale the pools of a class."""
    return tuple(Right(verb, "deployments", namespace, group="apps") for verb in ("create", "patch"))


_LOOK_ONLY: Final = "You may look at this class, and make no pools in it."


@dataclass(frozen=True, eq=False, slots=True)
class PoolsPage:
    """The handlers.

    Attributes:
        site: What every view is given.
        requests: Finds the class and the sender of each.
    """

    site: SiteContext
    requests: ClassRequests

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show the pools of a class, and the form for one more."""
        namespace, visitor = await self.requests.allowed(request, pool_rights, _LOOK_ONLY)
        pools, definitions, fault, unread = list[PoolSize](), list[str](), "", ""
        try:
            async with self.site.as_visitor.client(visitor.token) as kube:
                pools = await pools_in(kube, namespace)
                try:
                    definitions = offered(await Resource(kube, DEFINITIONS).list(), namespace)
                except Forbidden as error:
                    unread = error.message
        except (OutsideError, InputError) as error:
            fault = str(error)
        return self.site.layout.render(
            request,
            "classes/pools.html",
            namespace=namespace,
            path=path_of(namespace),
            pools=pools,
            definitions=definitions,
            fault=fault,
            unread=unread,
            grant=grant_command(visitor.known.of_cluster.username, namespace),
            free_name=_free_name({pool.name for pool in pools}),
            usual=_USUAL,
            most=REPLICAS_MAX,
        )

    async def make(self, request: web.Request) -> web.StreamResponse:
        """Make a pool, and lead back to the list."""
        namespace, visitor = await self.requests.allowed(request, pool_rights, _LOOK_ONLY)
        wished = wished_of(await read_form(request, FORM_BODY))
        async with as_visitor(self.site, visitor, "Nothing was made") as kube:
            await make(kube, namespace, wished.name, wished.definition, wished.replicas)
        self._tell(visitor, namespace, wished.name, wished.replicas)
        raise web.HTTPSeeOther(link(request, f"{path_of(namespace)}/pools"))

    async def scale(self, request: web.Request) -> web.StreamResponse:
        """Make a pool larger or smaller, and lead back to the list."""
        namespace, visitor = await self.requests.allowed(request, pool_rights, _LOOK_ONLY)
        form, name = await read_form(request, FORM_BODY), request.match_info["pool"]
        replicas, seen = (number_of(str(form.get(field, ""))) for field in ("replicas", "seen"))
        if replicas is None or seen is None:
            raise Rejected(Grounds.INVALID_BODY, f"Say how many free lablets the pool is to have: 0 to {REPLICAS_MAX}.")
        async with as_visitor(self.site, visitor, "Nothing was changed") as kube:
            await scale(kube, namespace, name, replicas, seen=seen)
        self._tell(visitor, namespace, name, replicas)
        raise web.HTTPSeeOther(link(request, f"{path_of(namespace)}/pools"))

    def _tell(self, visitor: Visitor, namespace: str, pool: str, replicas: int) -> None:
        by = visitor.known.of_cluster.username
        _log.info("a pool was sized", namespace=namespace, pool=pool, replicas=replicas, by=by)


def wished_of(form: Mapping[str, Any]) -> WishedPool:
    """Return the pool that a form asks for.

    Raises:
        Rejected: It cannot be made.
    """
    name, replicas = str(form.get("name", "")).strip(), number_of(str(form.get("replicas", "")))
    if not _NAME.fullmatch(name):
        raise Rejected(Grounds.INVALID_BODY, "A pool's name has small letters, digits and hyphens, such as warm-2.")
    if replicas is None or replicas > REPLICAS_MAX:
        raise Rejected(Grounds.INVALID_BODY, f"Say how many free lablets the pool is to have: 0 to {REPLICAS_MAX}.")
    return WishedPool(name, str(form.get("definition", "")), replicas)


def _free_name(taken: set[str]) -> str:
    """Return a name for the next pool.

    >>> _free_name({"warm"})
    'warm-2'
    """
    names = ["warm", *(f"warm-{at}" for at in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)

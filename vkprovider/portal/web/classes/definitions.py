"""The definitions of a class on its page: a file that CML exports becomes one, and one lablet of it is tried."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import structlog
from aiohttp import web

from vkprovider.classroom.definitions import NAME, TRIAL, DefiningError, begin_trial, until_read, write
from vkprovider.classroom.pods import LabletPod, pods_in
from vkprovider.lablet import names
from vkprovider.lablet.models.status import definition_status
from vkprovider.lablet.standing import standing_of, why, words_of
from vkprovider.lablet.standings import tone_of
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError, OutsideError
from vkprovider.platform.http.bodies import FORM, FORM_WITH_FILES, Body, File, read_form
from vkprovider.platform.kube.api import DEFINITIONS
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.messages import plain
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.rights import Right
from vkprovider.portal.pure.menu import why_not_offered
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.classes.classrooms import ClassRequests, path_of
from vkprovider.portal.web.classes.giving import as_visitor
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.visitors import link

_log: Final = structlog.get_logger(__name__)
_FILE_BYTES_MAX: Final = 900 * 1024
"""Of a topology: a ConfigMap holds 1 MiB."""
FILE_BODY: Final = Body(1 << 20, (FORM, FORM_WITH_FILES))
"""A topology, with name and version."""
_READ_S: Final = 20.0
"""How long a form waits until the provider has read a definition; it goes on with that all the same."""


class ShownTrial(NamedTuple):
    """A lablet by which a definition is tried.

    Attributes:
        pod: The name of its Pod.
        words: How it stands.
        tone: The colour of that.
        why: Why it does not stand as it should.
    """

    pod: str
    words: str
    tone: str
    why: str


class ShownDefinition(NamedTuple):
    """A definition of a class.

    Attributes:
        name: Its name.
        version: What a new lablet gets.
        devices: How many it has.
        ready: Whether lablets can be made of it.
        why: Why not.
        menu: Whether learners of the class may start it on the portal.
        trials: Those that there are now.
    """

    name: str
    version: str
    devices: int
    ready: bool
    why: str
    menu: bool
    trials: tuple[ShownTrial, ...]


def defining_rights(namespace: str) -> tuple[Right, ...]:
    """Return what it takes to make definitions of a class, whose topologies are in its ConfigMaps, and to try them."""
    return (
        Right("create", "labletdefinitions", group=wellknown.GROUP),
        Right("create", "configmaps", namespace),
        Right("create", "pods", namespace),
    )


_LOOK_ONLY: Final = "You may look at this class, and make no definitions of it."


@dataclass(frozen=True, eq=False, slots=True)
class DefinitionsPage:
    """The handlers.

    Attributes:
        site: What every view is given.
        requests: Finds the class and the sender of each.
    """

    site: SiteContext
    requests: ClassRequests

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show the definitions of a class, and the form for one more."""
        namespace, visitor = await self.requests.allowed(request, defining_rights, _LOOK_ONLY)
        found, fault = list[ShownDefinition](), ""
        try:
            async with self.site.as_visitor.client(visitor.token) as kube:
                definitions = await Resource(kube, DEFINITIONS).list()
                found = shown(definitions, await pods_in(kube, namespace).list(), namespace)
        except (OutsideError, InputError) as error:
            fault = str(error)
        return self.site.layout.render(
            request,
            "classes/definitions.html",
            namespace=namespace,
            path=path_of(namespace),
            definitions=found,
            fault=fault,
        )

    async def make(self, request: web.Request) -> web.StreamResponse:
        """Make a definition of a file, try it if that is wished, and lead back to the list."""
        namespace, visitor = await self.requests.allowed(request, defining_rights, _LOOK_ONLY)
        form = await read_form(request, FILE_BODY)
        text, name = topology_of(form)
        version, menu = str(form.get("version", "")).strip() or None, form.get("menu") == "yes"
        async with as_visitor(self.site, visitor, "Nothing was made") as kube:
            try:
                written = await write(
                    kube, namespace, name, text, version=version, shared=menu, menu=menu, dry_run=False
                )
                if form.get("try") == "yes":
                    status = await until_read(kube, name, written.definition, _READ_S, lambda: None)
                    await begin_trial(kube, namespace, name, status.version)
            except DefiningError as error:
                raise Rejected(Grounds.CANNOT_BE_DONE, f"{error}.") from error
        by = visitor.known.of_cluster.username
        _log.info("a definition was written", namespace=namespace, definition=name, by=by)
        raise web.HTTPSeeOther(link(request, f"{path_of(namespace)}/definitions"))

    async def begin(self, request: web.Request) -> web.StreamResponse:
        """Try a definition of the class, and lead back to the list."""
        namespace, visitor = await self.requests.allowed(request, defining_rights, _LOOK_ONLY)
        name = request.match_info["definition"]
        async with as_visitor(self.site, visitor, "Nothing was tried") as kube:
            try:
                status = await until_read(kube, name, None, _READ_S, lambda: None)
            except DefiningError as error:
                raise Rejected(Grounds.CANNOT_BE_DONE, f"Nothing was tried: {error}.") from error
            await begin_trial(kube, namespace, name, status.version)
        raise web.HTTPSeeOther(link(request, f"{path_of(namespace)}/definitions"))

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Remove a trial, and lead back to the list."""
        namespace, visitor = await self.requests.allowed(request, defining_rights, _LOOK_ONLY)
        name = request.match_info["pod"]
        async with as_visitor(self.site, visitor, "Nothing was removed") as kube:
            pods = pods_in(kube, namespace)
            pod = await pods.get(name)
            if pod is not None:
                if not is_trial(pod):
                    raise Rejected(Grounds.CANNOT_BE_DONE, f"Nothing was removed: {name} is no trial.")
                await pods.delete(name, uid=pod.metadata.uid)
        raise web.HTTPSeeOther(link(request, f"{path_of(namespace)}/definitions"))


def is_trial(pod: LabletPod) -> bool:
    """Return whether a lablet is a trial that nobody works in: of no pool, of no controller, without a learner."""
    meta = pod.metadata
    return pod.is_lablet and meta.name.startswith(TRIAL) and not meta.owner_references and not pod.user


def shown(definitions: Sequence[CustomResource], pods: Sequence[LabletPod], namespace: str) -> list[ShownDefinition]:
    """Return the definitions that a class owns, by name, with their trials.

    Args:
        definitions: All of them.
        pods: Of the class.
        namespace: The class.
    """
    trials = [pod for pod in pods if is_trial(pod) and not pod.metadata.deletion_timestamp]
    own = [each for each in definitions if each.metadata.labels.get(names.LABEL_OWNER_NAMESPACE) == namespace]
    found = []
    for each in sorted(own, key=lambda each: each.metadata.name):
        status, name = definition_status(each), each.metadata.name
        ready = status.ready
        said = plain(f"{ready.reason}: {ready.message}") if ready is not None else "the provider has not read it yet"
        mine = tuple(_trial(pod) for pod in trials if pod.spec.runtime_class_name == name)
        version = str(each.spec.get("version", ""))
        why_not = "" if status.is_ready else said
        menu = not why_not_offered(each)
        found.append(ShownDefinition(name, version, len(status.devices), status.is_ready, why_not, menu, mine))
    return found


def _trial(pod: LabletPod) -> ShownTrial:
    standing, score = standing_of(pod)
    text = "" if pod.ready else ": ".join(filter(None, why(pod)))
    words = "booted" if pod.ready else words_of(standing, score)
    return ShownTrial(pod.metadata.name, words, tone_of(standing), plain(text))


def topology_of(form: Mapping[str, Any]) -> tuple[str, str]:
    """Return the topology of a form, and the name of the definition: as given, or the file's.

    Raises:
        Rejected: There is no file, or it is no text, or the name cannot be one.
    """
    sent = form.get("file")
    if not isinstance(sent, File) or not sent.name:
        raise Rejected(Grounds.INVALID_BODY, "Name the file that CML exports: Download Lab, in its menu Lab.")
    if len(sent.content) > _FILE_BYTES_MAX:
        raise Rejected(Grounds.INVALID_BODY, f"The file is larger than {_FILE_BYTES_MAX // 1024} KiB.")
    stem = re.sub(r"[^a-z0-9]+", "-", PurePath(sent.name).stem.lower()).strip("-")
    name = str(form.get("name", "")).strip() or stem
    if not NAME.fullmatch(name):
        raise Rejected(Grounds.INVALID_BODY, "The name of a definition has small letters, digits and hyphens: netlab.")
    try:
        return sent.content.decode("utf-8-sig"), name
    except UnicodeDecodeError:
        raise Rejected(Grounds.INVALID_BODY, f"{sent.name} is no text in UTF-8, as CML exports it.") from None

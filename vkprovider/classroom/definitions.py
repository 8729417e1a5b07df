"""A definition as a class makes it of the file that CML exports: what is written, who owns it, and its trial.

Definitions are read by the instructors of all classes, and so is a topology in one. In a ConfigMap of the class's
namespace only those read it who have a right there. It is never changed, and ends with the definition.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from vkprovider.classroom.pods import LabletPod, pods_in
from vkprovider.lablet import names
from vkprovider.lablet.models.status import DefinitionStatus, definition_status
from vkprovider.lablet.podspec import trial_of
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Conflict, NotFound
from vkprovider.platform.kube.access import may
from vkprovider.platform.kube.api import CONFIG_MAPS, DEFINITIONS
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.rights import Right

FIRST_VERSION: Final = "1.0.0"
_NUMBER: Final = re.compile(r"\d+(?=\D*$)")
NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?")
"""Of a definition that a class makes."""
_DEADLINE_S: Final = 3600
"""A trial that nobody removed, because its program was killed, ends by itself after so long."""
_LOOK_EVERY_S: Final = 0.3
TRIAL: Final = "try-"
"""What the names of the Pods of trials begin with, before that of the definition."""


class DefiningError(Exception):
    """A definition cannot be made or changed; the text says why, and what to do about it."""


class DefinitionWrite(msgspec.Struct, frozen=True):
    """What is written.

    Attributes:
        is_new: Whether the definition does not exist yet.
        version: Of the content.
    """

    is_new: bool
    version: str


class WrittenDefinition(msgspec.Struct, frozen=True):
    """What was done with a definition.

    Attributes:
        definition: As it was written; None if nothing was, and there is none.
        change: What was written; None: it was so already.
        owner: The namespace that owns it; "" for one of the admins.
    """

    definition: CustomResource | None
    change: DefinitionWrite | None
    owner: str


def plan(
    existing: CustomResource | None, content: str | None, name: str, version: str | None, text: str, *, keeps: bool
) -> DefinitionWrite | None:
    """Return the object to be written; None if the definition is already so.

    Content that a version has is never replaced under that version: lablets that run it, and those that name it, would
    differ from one another.

    Args:
        existing: The definition.
        content: Its topology; None if that is from elsewhere.
        name: Of the definition.
        version: As asked for.
        text: The topology that it is to have.
        keeps: Whether a ConfigMap of the class is to hold that, and not the definition.

    Raises:
        DefiningError: The version has other content, or the definition has its content from elsewhere.
    """
    if existing is None:
        return DefinitionWrite(is_new=True, version=version or FIRST_VERSION)
    is_kept, current = "inline" not in existing.spec.get("source", {}), str(existing.spec.get("version", ""))
    if content is None:
        raise DefiningError(
            f"labletdefinition/{name} has its content from a ConfigMap or a package: change it there, and run: "
            f"kubectl lablet refresh {name}"
        )
    if content == text:
        return (
            None
            if version in {None, current} and is_kept == keeps
            else DefinitionWrite(is_new=False, version=version or current)
        )
    kept = {current, *(each.version for each in definition_status(existing).versions)}
    if version is None or version in kept:
        raise DefiningError(
            f"labletdefinition/{name} has other content as version {version or current}; name a new version: "
            f"--version {_next(version or current, kept)}"
        )
    return DefinitionWrite(is_new=False, version=version)


def _next(version: str, kept: set[str]) -> str:
    """Return a version that is not kept: the last number of another one, raised."""
    while version in kept:
        last = _NUMBER.search(version)
        version = (
            f"{version}.1" if last is None else f"{version[: last.start()]}{int(last[0]) + 1}{version[last.end() :]}"
        )
    return version


_KEY: Final = "cml.yaml"
_TEACH: Final = Right("teach", "labletdefinitions", group=wellknown.GROUP, version="")
_AUTHOR: Final = Right("author", "labletdefinitions", group=wellknown.GROUP, version="")


async def is_limited(kube: KubeClient) -> bool:
    """Return whether the user writes definitions of a class alone, as `manifests/base/instructors.yaml` decides it."""
    return await may(kube, _TEACH.attributes()) and not await may(kube, _AUTHOR.attributes())


def owner(existing: CustomResource | None, name: str, namespace: str, *, limited: bool) -> str:
    """Return the namespace that owns a definition, or is to own it; "" for one of the admins.

    Raises:
        DefiningError: It is not the user's to change.
    """
    if existing is None:
        return namespace if limited else ""
    found = existing.metadata.labels.get(names.LABEL_OWNER_NAMESPACE, "")
    if limited and found != namespace:
        whose = f"the class of namespace {found}; change it with -n {found}" if found else "the admins; ask them"
        raise DefiningError(f"labletdefinition/{name} belongs to {whose}, or make one of another name: --name")
    return found


async def content(kube: KubeClient, existing: CustomResource | None, owner: str) -> str | None:
    """Return the topology of a definition; "" if its ConfigMap is gone, None if it is from elsewhere.

    Raises:
        OutsideError: It cannot be read.
    """
    source = existing.spec.get("source", {}) if existing is not None else {}
    where = source.get("configMap", {})
    if not owner or where.get("namespace") != owner:
        inline: str | None = source.get("inline")
        return inline
    found = await Resource(kube, CONFIG_MAPS, owner).get(where.get("name", ""))
    return found.data.get(where.get("key", _KEY), "") if found is not None else ""


async def source(kube: KubeClient, owner: str, name: str, text: str) -> dict[str, Any]:
    """Return the source of a definition with a topology: a new ConfigMap of the owner; inline without one."""
    if not owner:
        return {"inline": text}
    made = names.content_name(name, hashlib.sha256(text.encode()).hexdigest())
    maps = Resource(kube, CONFIG_MAPS, owner)
    try:
        await maps.create({"metadata": {"name": made}, "data": {_KEY: text}, "immutable": True})
    except Conflict:  # of an earlier definition of the name, perhaps, with which it is about to be deleted
        await maps.patch(made, {"metadata": {"ownerReferences": []}})
    return {"configMap": {"namespace": owner, "name": made, "key": _KEY}}


async def adopt(kube: KubeClient, definition: CustomResource) -> None:
    """Let the ConfigMap of a definition's topology be deleted with the definition."""
    where, meta = definition.spec["source"].get("configMap", {}), definition.metadata
    owner = {"apiVersion": wellknown.API_VERSION, "kind": "LabletDefinition", "name": meta.name, "uid": meta.uid}
    try:
        await Resource(kube, CONFIG_MAPS, where["namespace"]).patch(
            where["name"], {"metadata": {"ownerReferences": [owner]}}
        )
    except NotFound:
        return  # which the definition reports


async def _write(
    definitions: Resource[CustomResource],
    existing: CustomResource | None,
    name: str,
    change: DefinitionWrite,
    source: dict[str, Any],
    owner: str,
    labels: dict[str, str],
) -> CustomResource:
    spec = {"version": change.version, "source": source}
    if existing is None:
        made = {"name": name, "labels": {**labels, **({names.LABEL_OWNER_NAMESPACE: owner} if owner else {})}}
        body = {"apiVersion": wellknown.API_VERSION, "kind": "LabletDefinition", "metadata": made, "spec": spec}
        return await definitions.create(body)
    meta, others = existing.metadata, {"inline", "configMap"} - source.keys()
    spec["source"] = {**source, **dict.fromkeys(others)}
    body = {"spec": spec, **({"metadata": {"labels": labels}} if labels else {})}
    return await definitions.patch(name, body, uid=meta.uid, resource_version=meta.resource_version)


async def write(
    kube: KubeClient,
    namespace: str,
    name: str,
    text: str,
    *,
    version: str | None,
    shared: bool,
    dry_run: bool,
    menu: bool = False,
) -> WrittenDefinition:
    """Make or change the definition of a topology, and say what was done; repeat it at will.

    Args:
        kube: The API server.
        namespace: Of the class.
        name: Of the definition.
        text: The topology.
        version: As asked for.
        shared: Whether the topology is in the definition, for all who read definitions.
        dry_run: Whether nothing is written.
        menu: Whether learners of the class may start it on the portal, if it is shared.

    Raises:
        DefiningError: It cannot be.
        OutsideError: The API server did not do it.
    """
    found = Resource(kube, DEFINITIONS)
    existing = await found.get(name)
    whose = owner(existing, name, namespace, limited=await is_limited(kube))
    keeps = whose if not shared else ""
    labels = {names.LABEL_FAMILY: name} if menu else {}
    change = plan(existing, await content(kube, existing, whose), name, version, text, keeps=bool(keeps))
    if dry_run:
        return WrittenDefinition(existing, change, whose)
    if change is None and existing is not None and not labels.items() <= existing.metadata.labels.items():
        change = DefinitionWrite(is_new=False, version=str(existing.spec.get("version", "")))
    if change is not None:
        existing = await _write(found, existing, name, change, await source(kube, keeps, name, text), whose, labels)
    if existing is not None and keeps:
        await adopt(kube, existing)
    return WrittenDefinition(existing, change, whose)


async def until_read(
    kube: KubeClient, name: str, written: CustomResource | None, within_s: float, told: Callable[[], None]
) -> DefinitionStatus:
    """Wait until the provider has read a definition as it was written, and return what it made of it.

    Args:
        kube: The API server.
        name: Of the definition.
        written: As it was written; None: as it is.
        within_s: How long to wait.
        told: Called before each pause.

    Raises:
        DefiningError: It is not Ready, or there is no answer in time.
        OutsideError: It cannot be read.
    """
    generation, until = written.metadata.generation if written is not None else 0, time.monotonic() + within_s
    while True:
        found = await Resource(kube, DEFINITIONS).get(name)
        if found is None:
            raise DefiningError(f"labletdefinition/{name} was deleted in the meantime")
        status = definition_status(found)
        if status.observed_generation >= generation and status.ready is not None:
            if not status.is_ready:
                raise DefiningError(
                    f"labletdefinition/{name} is not Ready: {status.ready.reason}: {status.ready.message}"
                )
            return status
        if time.monotonic() > until:
            raise DefiningError(
                f"labletdefinition/{name} is written, but nobody reads it for {within_s:.0f} s; does the provider run? "
                "See: vkprovider doctor"
            )
        told()
        await asyncio.sleep(_LOOK_EVERY_S)


async def begin_trial(kube: KubeClient, namespace: str, name: str, version: str) -> LabletPod:
    """Make one lablet of a version, which ends by itself after an hour.

    Raises:
        OutsideError: The API server did not do it.
    """
    spec = {**trial_of(name, version), "activeDeadlineSeconds": _DEADLINE_S}
    return await pods_in(kube, namespace).create({"metadata": {"generateName": f"{TRIAL}{name}-"}, "spec": spec})

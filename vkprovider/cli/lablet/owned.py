"""A definition that a class owns, and the file that a command line names for it.

Definitions are read by the instructors of all classes, and so is a topology in one. In a ConfigMap of the class's
namespace only those read it who have a right there. It is never changed, and ends with the definition.
"""

import hashlib
import sys
from pathlib import Path
from typing import Any, Final

import click

from vkprovider.lablet import names
from vkprovider.labs.checks import classroom
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Conflict, NotFound
from vkprovider.platform.kube.access import may
from vkprovider.platform.kube.api import CONFIG_MAPS
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.rights import Right


def read_bytes(source: str) -> bytes:
    """Return the content of a file.

    Raises:
        ClickException: It cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise click.ClickException(f"{source} cannot be read: {error.strerror}") from None


def read_text(source: str) -> str:
    """Return the text of a file.

    Raises:
        ClickException: It cannot be read.
    """
    try:
        return read_bytes(source).decode()
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{source} cannot be read: {error}") from None


_KEY: Final = "cml.yaml"
_TEACH: Final = Right("teach", "labletdefinitions", group=wellknown.GROUP, version="")
_AUTHOR: Final = Right("author", "labletdefinitions", group=wellknown.GROUP, version="")


async def is_limited(kube: KubeClient) -> bool:
    """Return whether the user writes definitions of a class alone, as `manifests/base/instructors.yaml` decides it."""
    return await may(kube, _TEACH.attributes()) and not await may(kube, _AUTHOR.attributes())


def owner(existing: CustomResource | None, name: str, namespace: str, *, limited: bool) -> str:
    """Return the namespace that owns a definition, or is to own it; "" for one of the admins.

    Raises:
        ClickException: It is not the user's to change.
    """
    if existing is None:
        return namespace if limited else ""
    found = classroom.owner(existing)
    if limited and found != namespace:
        whose = f"the class of namespace {found}; change it with -n {found}" if found else "the admins; ask them"
        raise click.ClickException(f"labletdefinition/{name} belongs to {whose}, or make one of another name: --name")
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

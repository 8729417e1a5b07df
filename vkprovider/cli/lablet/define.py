"""`kubectl lablet define FILE`: a LabletDefinition of the file that CML exports, checked and tried."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from vkprovider.classroom.pods import LabletPod, pods_in
from vkprovider.cli.lablet import owned
from vkprovider.cli.lablet.owned import read_text
from vkprovider.cli.shared.output import ProgressLine
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import wait_for
from vkprovider.lablet import names
from vkprovider.lablet.models.status import DefinitionStatus, definition_status
from vkprovider.lablet.standing import why
from vkprovider.labs.checks.classroom import trial_of
from vkprovider.labs.pure.topology.topology import Topology, parse
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError, NotFound
from vkprovider.platform.kube.api import DEFINITIONS
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.messages import count
from vkprovider.platform.objects import CustomResource

FIRST_VERSION: Final = "1.0.0"
_LOOK_EVERY_S: Final = 0.3
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?")
_NUMBER: Final = re.compile(r"\d+(?=\D*$)")
_DEADLINE_S: Final = 3600
"""A trial that nobody removed, because this program was killed, ends by itself after so long."""
_READ_S: Final = 600
"""How long the provider may take to read a definition; a lab may take longer to boot."""


class DefinitionWrite(msgspec.Struct, frozen=True):
    """What is written.

    Attributes:
        is_new: Whether the definition does not exist yet.
        version: Of the content.
    """

    is_new: bool
    version: str


def define(
    file: str,
    *,
    name: str | None,
    version: str | None,
    shared: bool,
    dry_run: bool,
    try_it: bool,
    timeout_s: int,
    place: Place,
) -> None:
    """Make or change a LabletDefinition of a topology, after the checks that the provider makes."""
    text, name = read_text(file), _named(file, name)
    topology = _checked(text, file)
    if dry_run and try_it:
        raise click.UsageError("--try boots a lab, and --dry-run writes nothing: use one of them")

    async def work(kube: KubeClient, namespace: str) -> None:
        found = Resource(kube, DEFINITIONS)
        existing = await found.get(name)
        owner = owned.owner(existing, name, namespace, limited=await owned.is_limited(kube))
        keeps = owner if not shared else ""
        change = plan(existing, await owned.content(kube, existing, owner), name, version, text, keeps=bool(keeps))
        said = f"labletdefinition/{name}{f' of namespace {owner}' if owner else ''}"
        said += f": {count(len(topology.devices), 'device')}"
        if dry_run:
            does = "is as it is" if change is None else f"{'makes' if change.is_new else 'becomes'} {change.version}"
            click.echo(f"{said}, {does} (dry run)")
            return
        if change is not None:
            source = await owned.source(kube, keeps, name, text)
            existing = await _write(found, existing, name, change, source, owner)
        if existing is not None and keeps:
            await owned.adopt(kube, existing)
        with ProgressLine() as progress:
            status = await _known(found, name, existing, progress, min(timeout_s, _READ_S))
            price = ", ".join(f"{amount} {_short(resource)}" for resource, amount in sorted(status.resources.items()))
            verb = "is as it was" if change is None else "made" if change.is_new else "changed"
            click.echo(f"{said}, version {status.version} {verb}; a lablet needs {price}")
            impeded = status.condition("Impeded")
            if impeded is not None and impeded.status == "True":
                click.echo(f"Warning: {impeded.message}", err=True)
            if try_it:
                await _try(kube, namespace, name, status.version, progress, timeout_s)

    place.run(work)


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
        ClickException: The version has other content, or the definition has its content from elsewhere.
    """
    if existing is None:
        return DefinitionWrite(is_new=True, version=version or FIRST_VERSION)
    is_kept, current = "inline" not in existing.spec.get("source", {}), str(existing.spec.get("version", ""))
    if content is None:
        raise click.ClickException(
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
        raise click.ClickException(
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


def _named(file: str, name: str | None) -> str:
    """Return the definition's name: as given, or the file's.

    Raises:
        UsageError: It cannot be a name.
    """
    found = name or ("" if file == "-" else re.sub(r"[^a-z0-9]+", "-", Path(file).stem.lower()).strip("-"))
    if not _NAME.fullmatch(found):
        raise click.UsageError(f"{found!r} cannot be the name of a LabletDefinition; give one: --name netlab")
    return found


def _checked(text: str, file: str) -> Topology:
    """Parse a topology as the provider does, and show what is doubtful.

    Raises:
        ClickException: The provider would refuse it.
    """
    try:
        topology = parse(text)
    except InputError as error:
        raise click.ClickException(f"{file}: {error.message}") from None
    if topology.faults:
        raise click.ClickException(f"{file}: {'; '.join(topology.faults)}")
    unreached = [
        f"no external connector is linked with {label!r}, so that its pat: tags lead nowhere"
        for label in topology.unreached
    ]
    for doubt in (*topology.doubts, *topology.suspect_tags(), *unreached):
        click.echo(f"Warning: {file}: {doubt}", err=True)
    return topology


async def _write(
    definitions: Resource[CustomResource],
    existing: CustomResource | None,
    name: str,
    change: DefinitionWrite,
    source: dict[str, Any],
    owner: str,
) -> CustomResource:
    spec = {"version": change.version, "source": source}
    if existing is None:
        made = {"name": name, "labels": {names.LABEL_OWNER_NAMESPACE: owner} if owner else {}}
        body = {"apiVersion": wellknown.API_VERSION, "kind": "LabletDefinition", "metadata": made, "spec": spec}
        return await definitions.create(body)
    meta, others = existing.metadata, {"inline", "configMap"} - source.keys()
    spec["source"] = {**source, **dict.fromkeys(others)}
    return await definitions.patch(name, {"spec": spec}, uid=meta.uid, resource_version=meta.resource_version)


async def _known(
    definitions: Resource[CustomResource],
    name: str,
    written: CustomResource | None,
    progress: ProgressLine,
    timeout_s: int,
) -> DefinitionStatus:
    """Wait until the provider knows the definition as it was written.

    Raises:
        ClickException: It is not Ready, or there is no answer in time.
    """
    generation, until = written.metadata.generation if written is not None else 0, time.monotonic() + timeout_s
    while True:
        found = await definitions.get(name)
        if found is None:
            raise click.ClickException(f"labletdefinition/{name} was deleted in the meantime")
        status = definition_status(found)
        if status.observed_generation >= generation and status.ready is not None:
            if not status.is_ready:
                raise click.ClickException(
                    f"labletdefinition/{name} is not Ready: {status.ready.reason}: {status.ready.message}"
                )
            return status
        if time.monotonic() > until:
            raise click.ClickException(
                f"labletdefinition/{name} is written, but nobody reads it for {timeout_s} s; does the provider run? "
                "See: vkprovider doctor"
            )
        progress.stage(f"labletdefinition/{name}", "is being read")
        await asyncio.sleep(_LOOK_EVERY_S)


def _short(resource: str) -> str:
    return resource.removeprefix(f"{wellknown.GROUP}/")


async def _try(
    kube: KubeClient, namespace: str, name: str, version: str, progress: ProgressLine, timeout_s: int
) -> None:
    """Boot one lablet of a version, and remove it again, whatever comes of it.

    Raises:
        ClickException: It did not boot.
    """
    spec = {**trial_of(name, version), "activeDeadlineSeconds": _DEADLINE_S}
    pods, began = pods_in(kube, namespace), time.monotonic()
    pod = await pods.create({"metadata": {"generateName": f"try-{name}-"}, "spec": spec})
    try:
        now = await wait_for(kube, pod, _is_decided, timeout_s=timeout_s, what="ready", progress=progress)
        if now is None or not now.ready:
            reason, message = why(now) if now is not None else ("", "it was deleted")
            raise click.ClickException(f"the trial of {name}:{version} did not boot: {reason} {message}".rstrip())
        click.echo(f"a trial of {name}:{version} booted in {time.monotonic() - began:.0f} s, and is removed")
    finally:
        await _remove(kube, pod, progress, timeout_s)


def _is_decided(pod: LabletPod | None) -> bool:
    return pod is None or pod.ready or pod.ended


async def _remove(kube: KubeClient, pod: LabletPod, progress: ProgressLine, timeout_s: int) -> None:
    meta = pod.metadata
    try:
        await pods_in(kube, meta.namespace).delete(meta.name, uid=meta.uid)
    except NotFound:
        return
    await wait_for(kube, pod, lambda now: now is None, timeout_s=timeout_s, what="removed", progress=progress)

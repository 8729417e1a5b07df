"""`kubectl lablet define FILE`: a LabletDefinition of the file that CML exports, checked and tried."""

import re
import time
from pathlib import Path
from typing import Final

import click

from vkprovider.classroom.definitions import NAME, DefiningError, begin_trial, until_read, write
from vkprovider.classroom.pods import LabletPod, pods_in
from vkprovider.cli.lablet.sources import read_text
from vkprovider.cli.shared.output import ProgressLine
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import wait_for
from vkprovider.lablet.standing import why
from vkprovider.labs.pure.topology.topology import Topology, parse
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError, NotFound
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.messages import count

_READ_S: Final = 600
"""How long the provider may take to read a definition; a lab may take longer to boot."""


def define(
    file: str,
    *,
    name: str | None,
    version: str | None,
    shared: bool,
    menu: bool,
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
        try:
            written = await write(
                kube, namespace, name, text, version=version, shared=shared or menu, menu=menu, dry_run=dry_run
            )
        except DefiningError as error:
            raise click.ClickException(str(error)) from None
        existing, change, owner = written.definition, written.change, written.owner
        said = f"labletdefinition/{name}{f' of namespace {owner}' if owner else ''}"
        said += f": {count(len(topology.devices), 'device')}"
        if dry_run:
            does = "is as it is" if change is None else f"{'makes' if change.is_new else 'becomes'} {change.version}"
            click.echo(f"{said}, {does} (dry run)")
            return
        with ProgressLine() as progress:

            def told() -> None:
                progress.stage(f"labletdefinition/{name}", "is being read")

            try:
                status = await until_read(kube, name, existing, min(timeout_s, _READ_S), told)
            except DefiningError as error:
                raise click.ClickException(str(error)) from None
            price = ", ".join(f"{amount} {_short(resource)}" for resource, amount in sorted(status.resources.items()))
            verb = "is as it was" if change is None else "made" if change.is_new else "changed"
            click.echo(f"{said}, version {status.version} {verb}; a lablet needs {price}")
            impeded = status.condition("Impeded")
            if impeded is not None and impeded.status == "True":
                click.echo(f"Warning: {impeded.message}", err=True)
            if try_it:
                await _try(kube, namespace, name, status.version, progress, timeout_s)

    place.run(work)


def _named(file: str, name: str | None) -> str:
    """Return the definition's name: as given, or the file's.

    Raises:
        UsageError: It cannot be a name.
    """
    found = name or ("" if file == "-" else re.sub(r"[^a-z0-9]+", "-", Path(file).stem.lower()).strip("-"))
    if not NAME.fullmatch(found):
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


def _short(resource: str) -> str:
    return resource.removeprefix(f"{wellknown.GROUP}/")


async def _try(
    kube: KubeClient, namespace: str, name: str, version: str, progress: ProgressLine, timeout_s: int
) -> None:
    """Boot one lablet of a version, and remove it again, whatever comes of it.

    Raises:
        ClickException: It did not boot.
    """
    began = time.monotonic()
    pod = await begin_trial(kube, namespace, name, version)
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

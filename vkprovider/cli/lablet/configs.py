"""`kubectl lablet configs`: the archived configurations of a lablet, also when its Pod is gone."""

import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
import msgspec

from vkprovider.classroom.archives import NamespaceArchives
from vkprovider.classroom.pods import pods_in
from vkprovider.classroom.work import files_of
from vkprovider.cli.shared.output import one
from vkprovider.cli.shared.page.archives import open_archives
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import UID, pod_name
from vkprovider.cli.shared.times import rfc3339
from vkprovider.lablet.archives import ArchiveEntry, Leftovers
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.messages import plain, plain_lines

_KEPT: Final = re.compile(rf"{UID.pattern}(-\d+)?")
"""A Pod's UID, and the time at which an earlier learner of that Pod left it."""


def configs(
    what: str | None,
    *,
    learner: str | None,
    selector: str,
    every: bool,
    device: str | None,
    directory: str | None,
    archive: str | None,
    output: str,
    provider_namespace: str,
    page: PageOptions,
    place: Place,
) -> None:
    """Show the configurations that the devices of POD had when they were last stopped or collected."""
    if (directory or archive) and output != "text":
        raise click.UsageError("--dir or --zip and --output exclude each other; use one of them")
    if selector or every:
        if what or learner or device or output != "text" or (selector and every):
            raise click.UsageError(
                "-l or --all selects a class: leave out POD, -u, --device and -o, and give --dir or --zip"
            )
        from vkprovider.cli.lablet.handedin import save_class  # noqa: PLC0415 (it needs this module)

        save_class(
            selector,
            directory=directory,
            archive=archive,
            provider_namespace=provider_namespace,
            page=page,
            place=place,
        )
        return
    if not what and not learner:
        raise click.UsageError("name a POD, a UID or, with -u, a learner; or several with -l or --all")
    if archive:
        raise click.UsageError("--zip is for a class: select one with -l or --all, or write files with --dir")
    name = what if not what or _KEPT.fullmatch(what) else pod_name(what)

    async def work(kube: KubeClient, namespace: str) -> Leftovers:
        async with open_archives(kube, namespace, place, page, provider_namespace) as archives:
            return await _find(kube, namespace, name or "", learner, archives)

    left = place.run(work)
    chosen = _of_device(left, device)
    if output != "text":
        click.echo(one("LabletConfigurations", chosen, output))
        return
    click.echo(plain(_about(left)), err=True)
    for label, why in sorted(chosen.faults.items()):
        click.echo(plain(f"{label or 'besides'}: {why}"), err=True)
    if directory:
        for path, text in sorted(files_of(chosen).items()):
            write(Path(directory), path, text)
    else:
        for label, text in sorted(chosen.configs.items()):
            if device is None:
                click.echo(f"==> {plain(label)} <==")
            # Learners write it. A file or a program gets each character as it is; a terminal would obey some.
            shown = plain_lines(text) if sys.stdout.isatty() else text
            click.echo(shown if shown.endswith("\n") else f"{shown}\n", nl=False)


def _of_device(left: Leftovers, device: str | None) -> Leftovers:
    if device is None:
        return left
    if device not in left.configs:
        there = ", ".join(sorted(left.configs)) or "none"
        why = left.faults.get(device, f"it kept those of {there}")
        raise click.ClickException(plain(f"pod/{left.pod} has left no configuration of device {device}: {why}"))
    return msgspec.structs.replace(left, configs={device: left.configs[device]}, faults={}, responses=None)


def _about(left: Leftovers) -> str:
    user = f" of {left.username}" if left.username else ""
    when = rfc3339(datetime.fromtimestamp(left.at, UTC))
    return f"pod {left.namespace}/{left.pod} (UID {left.pod_uid}){user}, {left.definition} {left.version}, kept {when}"


def write(directory: Path, name: str, text: str) -> None:
    """Write a file, and print its path.

    Raises:
        ClickException: It cannot be written.
    """
    path = directory / name
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(
            f"{path} cannot be written: {error.strerror or error}; choose another folder"
        ) from None
    click.echo(str(path))


async def _find(
    kube: KubeClient, namespace: str, name: str, learner: str | None, archives: NamespaceArchives
) -> Leftovers:
    """Find what was left, by UID or by the Pod's name, or by learner; one of them may be empty.

    What a learner left goes before what was read of a lab that nobody had, even if that is newer.

    Raises:
        ClickException: Nothing was, or the page refused.
        InputError: It is damaged.
    """
    if learner is not None:
        return await _of_learner(archives, namespace, name, learner)
    uid = name if _KEPT.fullmatch(name) else await _uid_of(kube, namespace, name)
    left = await archives.read(uid) if uid else None
    if left is not None and (left.username or not UID.fullmatch(uid)):
        return left
    if left is not None:
        mine = [entry for entry in await archives.list() if entry.id.startswith(uid)]
        best = await _best(archives, mine)
        return best[1] if best is not None else left
    if uid == name:
        raise click.ClickException(
            f"nothing is kept of a pod with the UID {uid} in namespace {namespace}; it is dropped a week after it was "
            "kept. UIDs of lablets: kubectl lablet list -o json"
        )
    everything = await archives.list()
    found = [entry for entry in everything if entry.pod == name]
    if not found:
        if uid:
            hint = "configurations are saved when its devices are stopped, or collected"
            raise click.ClickException(f"nothing is kept of pod {namespace}/{name} yet; {hint}")
        if (left := await _newest_of(archives, everything, name)) is not None:
            return left
        raise click.ClickException(
            f"there is no pod {namespace}/{name}, and nothing is kept of one of that name, nor of a learner {name}: it "
            "never was, it was never Ready, or it ended more than a week ago. What is there: kubectl lablet list --past"
        )
    if uid:
        click.echo(f"pod/{name} has left nothing yet; an earlier pod of that name has", err=True)
    if (best := await _best(archives, found)) is None:
        raise click.ClickException(
            f"what was kept of pod {namespace}/{name} has just been dropped: it is kept for a week"
        )
    if len(found) > 1:
        others = ", ".join(other.id for other in found if other is not best[0])
        click.echo(
            f"{len(found)} pods of that name have left something; this is the newest; others: {others}", err=True
        )
    return best[1]


async def _of_learner(archives: NamespaceArchives, namespace: str, name: str, learner: str) -> Leftovers:
    """Find what a learner left last in a namespace, or in a Pod of it.

    Raises:
        ClickException: Nothing, or the page refused.
        InputError: It is damaged.
    """
    is_id = _KEPT.fullmatch(name)
    found = [
        entry
        for entry in await archives.list()
        if not name or (entry.id.startswith(name) if is_id else entry.pod == name)
    ]
    if (left := await _newest_of(archives, found, learner)) is None:
        where = f"pod {name}" if name else f"namespace {namespace}"
        others = ", ".join(sorted({entry.learner for entry in found if entry.learner})) or "nobody"
        raise click.ClickException(f"nothing is kept of {learner} in {where}; of others there: {others}")
    return left


async def _newest_of(archives: NamespaceArchives, found: Iterable[ArchiveEntry], learner: str) -> Leftovers | None:
    """Read the first of them that a learner left; None if there is none."""
    best = await _best(archives, (entry for entry in found if entry.learner == learner))
    return best[1] if best is not None else None


async def _uid_of(kube: KubeClient, namespace: str, name: str) -> str:
    pod = await pods_in(kube, namespace).metadata_only.get(name)
    return pod.metadata.uid if pod is not None else ""


async def _best(archives: NamespaceArchives, entries: Iterable[ArchiveEntry]) -> tuple[ArchiveEntry, Leftovers] | None:
    """Read the first of them; None if all were dropped meanwhile."""
    for entry in entries:
        if (left := await archives.read(entry.id)) is not None:
            return entry, left
    return None

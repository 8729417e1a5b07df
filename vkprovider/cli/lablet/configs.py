"""`kubectl lablet configs`: the archived configurations of a lablet, also when its Pod is gone."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
import msgspec

from vkprovider.api import names
from vkprovider.api.objects import ConfigMap
from vkprovider.cli.shared.output import one
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import UID, pod_name, pods_in
from vkprovider.cli.shared.times import rfc3339
from vkprovider.domain.lablet.archive import leftovers
from vkprovider.domain.lablet.archive.leftovers import Leftovers
from vkprovider.kube.api import Api
from vkprovider.kube.client import KubeClient
from vkprovider.kube.resources import Resource

_PAGE_SIZE: Final = 50
"""Archives per page of a list: each may hold a megabyte."""
_KEPT: Final = re.compile(rf"{UID.pattern}(-\d+)?")
"""A Pod's UID, and the time at which an earlier learner of that Pod left it."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_FILE_CHARS_MAX: Final = 100


def configs(
    what: str, *, device: str | None, directory: str | None, output: str, provider_namespace: str, place: Place
) -> None:
    """Show the configurations that the devices of POD had when they were last stopped or collected."""
    name = what if _KEPT.fullmatch(what) else pod_name(what)
    if directory and output != "text":
        raise click.UsageError("--dir and --output exclude each other; use one of them")

    async def work(kube: KubeClient, namespace: str) -> Leftovers:
        return await _find(kube, namespace, name, Api(kube, provider_namespace).config_maps)

    left = place.run(work)
    chosen = _of_device(left, device)
    if output != "text":
        click.echo(one("LabletConfigurations", chosen, output))
        return
    click.echo(_about(left), err=True)
    for label, why in sorted(chosen.faults.items()):
        click.echo(f"{label or 'besides'}: {why}", err=True)
    if directory:
        for path, text in sorted(files_of(chosen).items()):
            _write(Path(directory), path, text)
    else:
        for label, text in sorted(chosen.configs.items()):
            if device is None:
                click.echo(f"==> {label} <==")
            click.echo(text if text.endswith("\n") else f"{text}\n", nl=False)


def _of_device(left: Leftovers, device: str | None) -> Leftovers:
    if device is None:
        return left
    if device not in left.configs:
        there = ", ".join(sorted(left.configs)) or "none"
        why = left.faults.get(device, f"it kept those of {there}")
        raise click.ClickException(f"pod/{left.pod} has left no configuration of device {device}: {why}")
    return msgspec.structs.replace(left, configs={device: left.configs[device]}, faults={}, responses=None)


def _about(left: Leftovers) -> str:
    user = f" of {left.username}" if left.username else ""
    when = rfc3339(datetime.fromtimestamp(left.at, UTC))
    return f"pod {left.namespace}/{left.pod} (UID {left.pod_uid}){user}, {left.definition} {left.version}, kept {when}"


def files_of(left: Leftovers) -> dict[str, str]:
    """Return a file for each device, and one for the learner's answers if there are any; no name leads elsewhere."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for label, text in sorted(left.configs.items()):
        stem = _UNSAFE.sub("-", label)[:_FILE_CHARS_MAX].lstrip(".-") or "device"
        name, number = stem, 1
        while name.lower() in taken:  # some file systems ignore case
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.lower())
        found[f"{name}.cfg"] = text
    if left.responses is not None:
        found["responses.json"] = msgspec.json.format(msgspec.json.encode(left.responses), indent=2).decode() + "\n"
    return found


def _write(directory: Path, name: str, text: str) -> None:
    path = directory / name
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(
            f"{path} cannot be written: {error.strerror or error}; choose another folder"
        ) from None
    click.echo(str(path))


async def _find(kube: KubeClient, namespace: str, name: str, archive: Resource[ConfigMap]) -> Leftovers:
    """Find what was left, by UID or by name.

    Raises:
        ClickException: Nothing was.
        InputError: It is damaged.
        OutsideError: The API server refused or did not answer.
    """
    uid = name if _KEPT.fullmatch(name) else await _uid_of(kube, namespace, name)
    if uid and (left := await _kept(archive, uid)) is not None:
        return left
    if uid == name:
        raise click.ClickException(
            f"nothing is kept of a pod with the UID {uid}; it is dropped a week after it was kept. "
            "UIDs of lablets: kubectl lablet list -o json"
        )
    found = await _predecessors(archive, f"{namespace}/{name}")
    if not found:
        if uid:
            hint = "configurations are saved when its devices are stopped, or collected"
            raise click.ClickException(f"nothing is kept of pod {namespace}/{name} yet; {hint}")
        raise click.ClickException(
            f"there is no pod {namespace}/{name}, and nothing is kept of one of that name: it never was, it was never "
            "Ready, or it ended more than a week ago. What is there: kubectl lablet list"
        )
    if uid:
        click.echo(f"pod/{name} has left nothing yet; an earlier pod of that name has", err=True)
    if len(found) > 1:
        others = ", ".join(other.removeprefix(leftovers.name_of("")) for other in list(found)[1:])
        click.echo(
            f"{len(found)} pods of that name have left something; this is the newest; others: {others}", err=True
        )
    for other in found:
        if (left := await _kept(archive, other.removeprefix(leftovers.name_of("")))) is not None:
            return left
    raise click.ClickException(f"what was kept of pod {namespace}/{name} has just been dropped: it is kept for a week")


async def _uid_of(kube: KubeClient, namespace: str, name: str) -> str:
    pod = await pods_in(kube, namespace).metadata_only.get(name)
    return pod.metadata.uid if pod is not None else ""


async def _kept(archive: Resource[ConfigMap], uid: str) -> Leftovers | None:
    found = await archive.get(leftovers.name_of(uid))
    return leftovers.read(found) if found is not None else None


async def _predecessors(archive: Resource[ConfigMap], pod: str) -> Mapping[str, int]:
    """Find what Pods of a name have left: names of ConfigMaps with the times of writing, the newest first."""
    found: dict[str, int] = {}
    labels = f"{names.LABEL_COMPONENT}={names.COMPONENT_CONFIGS}"
    async for page in archive.metadata_only.pages(labels=labels, page_size=_PAGE_SIZE):
        for item in page:
            if item.metadata.annotations.get(leftovers.ANNOTATION_POD) == pod:
                found[item.metadata.name] = leftovers.written_at(ConfigMap(item.metadata)) or 0
    return dict(sorted(found.items(), key=lambda entry: entry[1], reverse=True))

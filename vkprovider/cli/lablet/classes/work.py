"""`kubectl lablet configs -l`: what a class has left, in a folder for each learner."""

import zipfile
from collections.abc import Iterable
from pathlib import Path

import click

from vkprovider.api.objects import ConfigMap
from vkprovider.api.wording import count
from vkprovider.cli.lablet.configs import Stored, files_of, kept, list_stored, safe, write
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import UID, pods_in
from vkprovider.domain.lablet.archive.leftovers import Leftovers
from vkprovider.kube.api import Api
from vkprovider.kube.client import KubeClient
from vkprovider.kube.resources import Resource


def save_class(
    selector: str, *, directory: str | None, archive: str | None, provider_namespace: str, place: Place
) -> None:
    """Write what each learner of the selected lablets left last: into folders, or into one zip file.

    Without a selector it is what each learner of the namespace left, also of Pods that are gone.
    """
    if (directory is None) == (archive is None):
        raise click.UsageError("say where the files of the class go: --dir FOLDER, or --zip FILE")

    async def work(kube: KubeClient, namespace: str) -> list[Leftovers]:
        stored = Api(kube, provider_namespace).config_maps
        if not selector:
            return await _newest(stored, [e for e in await list_stored(stored) if e.pod.startswith(f"{namespace}/")])
        listed = await pods_in(kube, namespace).metadata_only.list(labels=selector)
        uids = {pod.metadata.uid for pod in listed}
        return await _newest(stored, _of(await list_stored(stored), uids)) if uids else []

    found = place.run(work)
    if not found and selector:
        raise click.ClickException(
            f"nothing is kept of learners of the lablets that {selector} selects. A Pod that is gone is not selected "
            "any more: --all has what the learners of the namespace left within a week"
        )
    if not found:
        raise click.ClickException("nothing is kept of learners of this namespace; it is dropped after a week")
    files = folders_of(found)
    if archive is not None:
        _pack(Path(archive), files)
    else:
        for name, text in files.items():
            path = Path(directory or "") / name
            write(path.parent, path.name, text)
    click.echo(f"{count(len(found), 'learner')}: {', '.join(left.username for left in found)}", err=True)
    for left in found:
        for label, why in sorted(left.faults.items()):
            click.echo(f"{left.username}, {label or 'besides'}: {why}", err=True)


async def _newest(archive: Resource[ConfigMap], entries: Iterable[Stored]) -> list[Leftovers]:
    """Read the first of these that each learner left, in the order of the learners' names."""
    newest: dict[str, Leftovers] = {}
    for entry in entries:
        if entry.learner and entry.learner in newest:
            continue
        if entry.learner != "" and (left := await kept(archive, entry.id)) is not None and left.username:
            newest.setdefault(left.username, left)
    return [newest[learner] for learner in sorted(newest)]


def _of(entries: Iterable[Stored], uids: set[str]) -> Iterable[Stored]:
    """Return the entries of these Pods."""
    for entry in entries:
        uid = UID.match(entry.id)
        if uid is not None and uid[0] in uids:
            yield entry


def folders_of(found: Iterable[Leftovers]) -> dict[str, str]:
    """Return the files of all learners, each below a folder with the learner's name; no two names are one folder."""
    taken: set[str] = set()
    files: dict[str, str] = {}
    for left in found:
        folder = safe(left.username, "learner", taken)
        files |= {f"{folder}/{name}": text for name, text in sorted(files_of(left).items())}
    return files


def _pack(path: Path, files: dict[str, str]) -> None:
    """Write one zip file, and print its path.

    Raises:
        ClickException: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, text in files.items():
                packed.writestr(name, text)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror or error}; choose another one") from None
    click.echo(str(path))

"""`kubectl lablet configs -l`: what a class has left, in a folder for each learner."""

import zipfile
from collections.abc import Iterable
from pathlib import Path

import click

from vkprovider.cli.lablet.configs import files_of, safe, write
from vkprovider.cli.shared.page.archives import Archives, open_archives
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Place
from vkprovider.labs.pure.lablet.archive.leftovers import Leftovers
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.wording import count


def save_class(
    selector: str,
    *,
    directory: str | None,
    archive: str | None,
    provider_namespace: str,
    page: PageOptions,
    place: Place,
) -> None:
    """Write what each learner of the selected lablets left last: into folders, or into one zip file.

    The labels are those that the Pods had, also of Pods that are gone. Without a selector it is what each learner of
    the namespace left.
    """
    if (directory is None) == (archive is None):
        raise click.UsageError("say where the files of the class go: --dir FOLDER, or --zip FILE")

    async def work(kube: KubeClient, namespace: str) -> list[Leftovers]:
        async with open_archives(kube, namespace, place, page, provider_namespace) as archives:
            return await _newest(archives, selector)

    found = place.run(work)
    if not found and selector:
        raise click.ClickException(
            f"nothing is kept of learners of lablets with labels that {selector} selects; --all has what the learners "
            "of the namespace left within a week, and kubectl lablet list --past shows it"
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


async def _newest(archives: Archives, selector: str) -> list[Leftovers]:
    """Read what each learner left last, in the order of the learners' names."""
    newest: dict[str, Leftovers] = {}
    for entry in await archives.list(labels=selector):
        if entry.learner and entry.learner not in newest and (left := await archives.read(entry.id)) is not None:
            newest[entry.learner] = left
    return [newest[learner] for learner in sorted(newest)]


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

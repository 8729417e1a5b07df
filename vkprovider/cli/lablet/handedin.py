"""What a class has left: work in a folder for each learner, and grades.

A Pod that has ended shows its verdict. One that goes back to its pool does not, for the next learner gets it: its grade
is with what the learner left.
"""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from vkprovider.classroom.archives import NamespaceArchives, by_learner, newest_kept
from vkprovider.classroom.gradebook import GradebookError, LearningSystem, gradebook
from vkprovider.classroom.grades import PASSED_BY, LearnerGrade, grade_in
from vkprovider.classroom.pods import LabletPod
from vkprovider.classroom.work import folders_of
from vkprovider.cli.lablet.configs import write
from vkprovider.cli.shared import clock
from vkprovider.cli.shared.output import SHOWN_NAME, Column, Listing, Output
from vkprovider.cli.shared.page.archives import open_archives
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Place, Scope
from vkprovider.cli.shared.times import local
from vkprovider.lablet.archives import ArchiveEntry, Leftovers
from vkprovider.lablet.shownname import by_last_name
from vkprovider.lablet.standing import standing_of
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.messages import count, plain


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
    click.echo(plain(f"{count(len(found), 'learner')}: {', '.join(left.username for left in found)}"), err=True)
    for left in found:
        for label, why in sorted(left.faults.items()):
            click.echo(plain(f"{left.username}, {label or 'besides'}: {why}"), err=True)


async def _newest(archives: NamespaceArchives, selector: str) -> list[Leftovers]:
    """Read what each learner left last, in the order of the learners' names."""
    kept = [await newest_kept(archives, each) for each in by_learner(await archives.list(labels=selector)).values()]
    return [left for left in kept if left is not None]


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


def _when(row: LearnerGrade) -> str:
    return local(row.at, clock.now())


LISTING: Final[Listing[LearnerGrade]] = Listing(
    kind="LabletGrade",
    row=LearnerGrade,
    columns=(
        Column("LEARNER", lambda row: row.learner),
        Column(SHOWN_NAME, lambda row: row.shown, rare=True),
        Column("PASSED", lambda row: row.passed, colour=lambda row: {"yes": "green", "no": "red"}.get(row.passed, "")),
        Column("SCORE", lambda row: row.score),
        Column("WHEN", _when),
        Column("NAME", lambda row: row.name),
        Column("DEFINITION", lambda row: row.definition, wide=True),
        Column("VERSION", lambda row: row.version, wide=True),
        Column("ID", lambda row: row.id, wide=True),
        Column("MESSAGE", lambda row: row.message, wide=True),
    ),
    name=lambda row: f"pod/{row.name}",
)


def grade_of(
    pod: LabletPod, over: LabletPod | None, before: Sequence[ArchiveEntry], after: Sequence[ArchiveEntry]
) -> LearnerGrade:
    """Return the grade of a learner whose time is over.

    Args:
        pod: The learner's, as it was.
        over: The same at its end; None if it is gone.
        before: What learners of the namespace had left when the end was asked for.
        after: What they have left now.
    """
    if over is not None and over.ended:
        standing, score = standing_of(over)
        return LearnerGrade(pod.user, PASSED_BY.get(standing, ""), score, pod.metadata.name, shown=pod.shown)
    old = {entry.at for entry in _of(pod, before)}
    fresh = [entry for entry in _of(pod, after) if entry.at not in old]
    if not fresh:
        return LearnerGrade(pod.user, "", "", pod.metadata.name, shown=pod.shown)
    return grade_in(max(fresh, key=lambda entry: entry.at))


def _of(pod: LabletPod, entries: Sequence[ArchiveEntry]) -> list[ArchiveEntry]:
    return [entry for entry in entries if entry.id.startswith(pod.metadata.uid) and entry.learner == pod.user]


async def entries_or_why(
    kube: KubeClient, namespace: str, place: Place, page: PageOptions
) -> tuple[list[ArchiveEntry], str]:
    """List what learners of a namespace left; or return why that is not known."""
    try:
        async with open_archives(kube, namespace, place, page) as archives:
            return await archives.list(), ""
    except (click.ClickException, OutsideError) as error:
        return [], error.message


class GradebookWish(NamedTuple):
    """The file of grades that somebody wants: for which system, with how many points, and the title of its column."""

    system: str
    points: float
    column: str


def show_past(
    *,
    output: Output,
    learners: tuple[str, ...],
    sort: str,
    wish: GradebookWish | None,
    page: PageOptions,
    scope: Scope,
) -> None:
    """List what learners of a namespace left, with their grades, or print a file for a gradebook."""
    if wish is not None and output != "table":
        raise click.UsageError("--for has a form of its own: leave out -o")

    async def work(kube: KubeClient, namespace: str) -> None:
        async with open_archives(kube, namespace, scope.place, page) as archives:
            found = await archives.list(labels=scope.labels)
        found = [entry for entry in found if entry.learner and (not learners or entry.learner in learners)]
        if wish is not None:
            grades = map(grade_in, found)
            try:
                text = gradebook(grades, LearningSystem(wish.system), points=wish.points, column=wish.column)
            except GradebookError as error:
                raise click.ClickException(str(error)) from None
            click.echo(text, nl=False)
            return
        rows = [grade_in(entry) for entry in found]
        rows.sort(key=lambda row: row.at, reverse=True)
        if sort == "learner":
            rows.sort(key=lambda row: by_last_name(row.learner, row.shown))
        LISTING.show(rows, output, nothing=f"No learner has left anything in {namespace} namespace within a week.")

    scope.run(work)

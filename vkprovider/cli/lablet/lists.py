"""`kubectl lablet list`: one row for each lablet, the learner first."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click
import msgspec

from vkprovider.classroom.pods import LabletPod, pods_in
from vkprovider.cli.shared import clock
from vkprovider.cli.shared.output import SHOWN_NAME, Column, Listing, Output
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Scope
from vkprovider.cli.shared.times import local, span, time_of
from vkprovider.lablet import names
from vkprovider.lablet.inputs import tag_of
from vkprovider.lablet.shownname import by_last_name
from vkprovider.lablet.standing import end_of, since_of, standing_of, state_of, why, words_of
from vkprovider.lablet.standings import Standing, Tone, tone_of
from vkprovider.labs.pure.definition.status import DIGEST_CHARS
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.messages import count


class ListRow(msgspec.Struct, frozen=True):
    """One lablet, as `-o json` shows it; what is unknown is empty.

    Attributes:
        namespace: Of its Pod.
        name: Of its Pod.
        uid: Of its Pod; the name of what the lablet leaves.
        definition: The LabletDefinition.
        version: The version of its content; before the lab is imported, the tag of the image.
        state: As reported; PENDING before the first report.
        ready: Whether the Pod is Ready.
        worker: The CMLWorker.
        lab: The id of the lab in CML.
        created: When its Pod was created.
        user: The learner; before the lab is imported, the one who is to have it.
        until: The end of the timeslot that the Pod names.
        address: What learners reach, the worker's.
        digest: Of its content, in hexadecimal digits.
        link: The lab in CML's own pages.
        reason: Why it is not Ready, as one word.
        message: The same as a sentence.
        standing: How it stands, in plain words, such as `working`.
        score: Of the learner's work, if the Pod has ended with a verdict.
        since: Since when it stands so.
        devices: How many are booted, of how many, such as `5/6`.
        ends: When the lablet ends: at `until`, or earlier by the activeDeadlineSeconds of the Pod.
        shown: The name by which people know the learner.
    """

    namespace: str
    name: str
    uid: str
    definition: str
    version: str
    state: str
    ready: bool
    worker: str
    lab: str
    created: str
    user: str
    until: str
    address: str
    digest: str
    link: str
    reason: str
    message: str
    standing: Standing
    score: str
    since: str
    devices: str
    ends: str
    shown: str = ""

    @property
    def words(self) -> str:
        """How it stands, with the score."""
        return words_of(self.standing, self.score)


def row_of(pod: LabletPod) -> ListRow:
    """Return a Pod's reports about its lablet."""
    meta, status, notes = pod.metadata, pod.status, pod.metadata.annotations
    tag = next((tag_of(container.image)[1] for container in pod.spec.containers), "")
    reason, message = why(pod)
    version, _, digest = notes.get(names.ANNOTATION_CONTENT, "").partition("@")
    standing, score = standing_of(pod)
    return ListRow(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        definition=pod.spec.runtime_class_name,
        version=version or tag,
        state=state_of(pod),
        ready=pod.ready,
        worker=names.worker_of(pod.spec.node_name) or "",
        lab=notes.get(names.ANNOTATION_LAB_ID, ""),
        created=meta.creation_timestamp,
        user=pod.user,
        until=notes.get(names.ANNOTATION_TIMESLOT_END, ""),
        address=status.pod_ip,
        digest=digest.removeprefix("sha256:"),
        link=notes.get(names.ANNOTATION_LAB_URL, ""),
        reason=reason,
        message=message,
        standing=standing,
        score=score,
        since=since_of(pod, standing),
        devices="" if pod.ended else notes.get(names.ANNOTATION_DEVICES, ""),
        ends=end_of(pod),
        shown=pod.shown,
    )


def left_of(row: ListRow, now: datetime) -> timedelta | None:
    """Return how much time a lablet has left; None if it has no end."""
    end = time_of(row.ends) if row.ends else None
    return end - now.astimezone(UTC) if end is not None else None


_INTERRUPTED: Final = 1
"""Exit code of --watch after Ctrl-C, as of `kubectl get --watch`."""
_COLOURS: Final = {Tone.GOOD: "green", Tone.BUSY: "yellow", Tone.BAD: "red"}
_ORDER: Final = list(Standing)


def age(created: str, now: datetime) -> str:
    """Format an age as kubectl does.

    >>> age("2026-01-01T00:00:00Z", datetime.fromisoformat("2026-01-01T02:05:00Z"))
    '125m'
    """
    at = time_of(created)
    return span(now - at) if at is not None else "<unknown>"


def left(row: ListRow, now: datetime) -> str:
    """Format the time that a lablet has left; "" if it has no end."""
    rest = left_of(row, now)
    if rest is None:
        return ""
    return span(rest) if rest > timedelta() else "over"


def _colour(row: ListRow) -> str:
    return _COLOURS[tone_of(row.standing)]


def _reason(row: ListRow) -> str:
    """Return why it is not Ready; what is reported is as old as the silence of its worker."""
    return "" if row.ready else row.reason


LISTING: Final[Listing[ListRow]] = Listing(
    kind="Lablet",
    row=ListRow,
    columns=(
        Column("NAMESPACE", lambda row: row.namespace),
        Column("LEARNER", lambda row: row.user),
        Column(SHOWN_NAME, lambda row: row.shown, rare=True),
        Column("STATE", lambda row: row.words, colour=_colour),
        Column("SINCE", lambda row: local(row.since, clock.now())),
        Column("LEFT", lambda row: left(row, clock.now())),
        Column("DEVICES", lambda row: row.devices),
        Column("REASON", _reason),
        Column("NAME", lambda row: row.name),
        Column("DEFINITION", lambda row: row.definition, wide=True),
        Column("VERSION", lambda row: row.version, wide=True),
        Column("WORKER", lambda row: row.worker, wide=True),
        Column("LAB", lambda row: row.lab, wide=True),
        Column("AGE", lambda row: age(row.created, clock.now()), wide=True),
        Column("UNTIL", lambda row: local(row.until, clock.now()), wide=True),
        Column("ADDRESS", lambda row: row.address, wide=True),
        Column("CONTENT", lambda row: row.digest[:DIGEST_CHARS], wide=True),
        Column("LINK", lambda row: row.link, wide=True, whole=True),
    ),
    name=lambda row: f"pod/{row.name}",
)
SORTS: Final[dict[str, Callable[[ListRow, datetime], Any]]] = {
    "learner": lambda row, _: (not row.user, by_last_name(row.user, row.shown)),
    "state": lambda row, _: _ORDER.index(row.standing),
    "since": lambda row, _: row.since or "9",
    "left": lambda row, now: left_of(row, now) or timedelta.max,
    "name": lambda row, _: row.name,
}
"""Order: its key; rows that are equal in it stand by namespace, learner and name."""


def sorted_rows(rows: Sequence[ListRow], sort: str, now: datetime) -> list[ListRow]:
    """Sort rows by one of `SORTS`."""
    first = sorted(rows, key=lambda row: (row.namespace, SORTS["learner"](row, now), row.name))
    return sorted(first, key=lambda row: SORTS[sort](row, now))


def summary(rows: Sequence[ListRow]) -> str:
    """Return how many lablets there are, and how many stand how.

    It is "3 lablets: 2 working, 1 free".
    """
    counted = Counter(row.standing for row in rows)
    parts = ", ".join(f"{counted[standing]} {standing}" for standing in Standing if counted[standing])
    return f"{count(len(rows), 'lablet')}: {parts}"


def list_lablets(
    *,
    output: Output,
    watch: bool,
    states: tuple[str, ...],
    learners: tuple[str, ...],
    sort: str,
    past: bool,
    system: str | None,
    points: float,
    column: str,
    page: PageOptions,
    scope: Scope,
) -> None:
    """List lablets, the learner first: how each stands, since when, the time left, its devices; or the past."""
    if system and not past:
        raise click.UsageError("--for is for the grades of the past: add --past")
    if past:
        if watch or states or scope.everywhere or scope.fields or sort not in {"learner", "since"}:
            raise click.UsageError(
                "--past lists what learners of one namespace left: leave out -w, --state, -A and --field-selector, and "
                "sort by learner or since"
            )
        from vkprovider.cli.lablet.handedin import (  # noqa: PLC0415 (the page's client takes time to load)
            GradebookWish,
            show_past,
        )

        wish = GradebookWish(system, points, column) if system else None
        show_past(output=output, learners=learners, sort=sort, wish=wish, page=page, scope=scope)
        return
    but = () if scope.everywhere else ("NAMESPACE",)
    if watch and (states or learners or output == "csv"):
        raise click.UsageError("--watch shows every change: leave out --state, -u and -o csv, or select with -l")

    async def work(kube: KubeClient, namespace: str) -> None:
        pods = pods_in(kube, namespace)
        listed = await pods.list(labels=scope.labels, fields=scope.fields)
        found = sorted((pod for pod in listed if pod.is_lablet), key=lambda p: (p.metadata.namespace, p.metadata.name))
        if watch:
            from vkprovider.cli.lablet import following  # noqa: PLC0415 (a fifth of a second that a list need not wait)

            lacking = (*but, *LISTING.lacking([row_of(pod) for pod in found]))
            await following.follow(pods, scope, found, row_of, following.Printer(LISTING, output, lacking))
        rows = [row for pod in found if _chosen(row := row_of(pod), states, learners)]
        where = f" in {namespace} namespace" if namespace else ""
        such = " of those" if found else ""
        LISTING.show(sorted_rows(rows, sort, clock.now()), output, nothing=f"No lablets found{such}{where}.", but=but)
        if rows and output in {"table", "wide"}:
            click.echo(summary(rows), err=True)

    try:
        scope.run(work)
    except KeyboardInterrupt:
        if not watch:
            raise
        sys.exit(_INTERRUPTED)


def _chosen(row: ListRow, states: Sequence[str], learners: Sequence[str]) -> bool:
    return (not states or row.standing in states) and (not learners or row.user in learners)

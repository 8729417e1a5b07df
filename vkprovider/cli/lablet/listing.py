"""`kubectl lablet list`: one row for each lablet."""

import sys
from datetime import UTC, datetime
from typing import Final

import msgspec

from vkprovider.api import names
from vkprovider.api.reasons import WORKERS
from vkprovider.cli.shared.output import Column, Listing, Output
from vkprovider.cli.shared.place import Scope
from vkprovider.cli.shared.pods import LabletPod, pods_in, state_of, why
from vkprovider.domain.definition.status import DIGEST_CHARS
from vkprovider.domain.lablet.pod.intent import tag_of
from vkprovider.kube.client import KubeClient


class Row(msgspec.Struct, frozen=True):
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


_INTERRUPTED: Final = 1
"""Exit code of --watch after Ctrl-C, as of `kubectl get --watch`."""
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_AGES: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    (float("inf"), _YEAR, "y", 0, ""),
)
"""Up to that many seconds: whole units, and the rest in smaller ones. As `duration.HumanDuration` of k8s.io."""


def row_of(pod: LabletPod) -> Row:
    """Return a Pod's reports about its lablet."""
    meta, status, notes = pod.metadata, pod.status, pod.metadata.annotations
    tag = next((tag_of(container.image)[1] for container in pod.spec.containers), "")
    reason, message = why(pod)
    version, _, digest = notes.get(names.ANNOTATION_CONTENT, "").partition("@")
    return Row(
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
    )


def age(created: str, now: datetime) -> str:
    """Format an age as kubectl does: the largest unit, and the next one while the first is small.

    >>> age("2026-01-01T00:00:00Z", datetime(2026, 1, 1, 2, 5, tzinfo=UTC))
    '125m'
    """
    try:
        seconds = int((now - datetime.fromisoformat(created)).total_seconds())
    except ValueError:
        return "<unknown>"
    seconds = max(0, seconds)
    _, unit_s, unit, rest_s, rest_unit = next(step for step in _AGES if seconds < step[0])
    rest = seconds % unit_s // rest_s if rest_s else 0
    return f"{seconds // unit_s}{unit}{rest}{rest_unit}" if rest else f"{seconds // unit_s}{unit}"


def _now() -> datetime:
    return datetime.now(UTC)


def shown_state(row: Row) -> str:
    """Return the state, or why it is not known: what is reported is as old as the silence of its worker."""
    return row.reason if row.reason in WORKERS else row.state


def _colour(row: Row) -> str:
    if row.ready:
        return "green"
    return "red" if row.state == "FAILED" or row.reason in WORKERS else "yellow"


LISTING: Final[Listing[Row]] = Listing(
    kind="Lablet",
    columns=(
        Column("NAMESPACE", lambda row: row.namespace),
        Column("NAME", lambda row: row.name),
        Column("DEFINITION", lambda row: row.definition),
        Column("VERSION", lambda row: row.version),
        Column("STATE", shown_state, colour=_colour),
        Column("READY", lambda row: str(row.ready), colour=_colour),
        Column("WORKER", lambda row: row.worker),
        Column("LAB", lambda row: row.lab),
        Column("AGE", lambda row: age(row.created, _now())),
        Column("USER", lambda row: row.user),
        Column("UNTIL", lambda row: row.until, wide=True),
        Column("ADDRESS", lambda row: row.address, wide=True),
        Column("CONTENT", lambda row: row.digest[:DIGEST_CHARS], wide=True),
        Column("REASON", lambda row: row.reason, wide=True),
        Column("LINK", lambda row: row.link, wide=True),
    ),
    name=lambda row: f"pod/{row.name}",
)


def list_lablets(*, output: Output, watch: bool, scope: Scope) -> None:
    """List lablets: definition, version, state, worker, lab and user of each."""
    but = () if scope.everywhere else ("NAMESPACE",)

    async def work(kube: KubeClient, namespace: str) -> None:
        pods = pods_in(kube, namespace)
        listed = await pods.list(labels=scope.labels, fields=scope.fields)
        found = sorted((pod for pod in listed if pod.is_lablet), key=lambda p: (p.metadata.namespace, p.metadata.name))
        if watch:
            from vkprovider.cli.lablet import following  # noqa: PLC0415 (a fifth of a second that a list need not wait)

            await following.follow(pods, scope, found, row_of, following.Printer(LISTING, output, but))
        where = f" in {namespace} namespace" if namespace else ""
        LISTING.show([row_of(pod) for pod in found], output, nothing=f"No lablets found{where}.", but=but)

    try:
        scope.run(work)
    except KeyboardInterrupt:
        if not watch:
            raise
        sys.exit(_INTERRUPTED)

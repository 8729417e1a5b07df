"""One lablet, as a row of `kubectl lablet list`."""

from datetime import UTC, datetime, timedelta

import msgspec

from vkprovider.classroom.pods import LabletPod
from vkprovider.cli.shared.times import time_of
from vkprovider.lablet import names
from vkprovider.lablet.inputs import tag_of
from vkprovider.lablet.standings import Standing
from vkprovider.lablet.words import end_of, since_of, standing_of, state_of, why, words_of


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
        standing: How it stands, in plain words, such as `working`.
        score: Of the learner's work, if the Pod has ended with a verdict.
        since: Since when it stands so.
        devices: How many are booted, of how many, such as `5/6`.
        ends: When the lablet ends: at `until`, or earlier by the activeDeadlineSeconds of the Pod.
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

    @property
    def words(self) -> str:
        """How it stands, with the score."""
        return words_of(self.standing, self.score)


def row_of(pod: LabletPod) -> Row:
    """Return a Pod's reports about its lablet."""
    meta, status, notes = pod.metadata, pod.status, pod.metadata.annotations
    tag = next((tag_of(container.image)[1] for container in pod.spec.containers), "")
    reason, message = why(pod)
    version, _, digest = notes.get(names.ANNOTATION_CONTENT, "").partition("@")
    standing, score = standing_of(pod)
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
        standing=standing,
        score=score,
        since=since_of(pod, standing),
        devices="" if pod.ended else notes.get(names.ANNOTATION_DEVICES, ""),
        ends=end_of(pod),
    )


def left_of(row: Row, now: datetime) -> timedelta | None:
    """Return how much time a lablet has left; None if it has no end."""
    end = time_of(row.ends) if row.ends else None
    return end - now.astimezone(UTC) if end is not None else None

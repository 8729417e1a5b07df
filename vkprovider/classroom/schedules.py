"""A schedule of a pool: stock CronJobs that make it full before a class, and small again at the end.

    CronJob `POOL-begin`, `POOL-end`            `timeZone`, cron expressions, a Job that sets `replicas`
    ServiceAccount `vkprovider-schedule-POOL`   acts for them, and mounts no token elsewhere
    Role, RoleBinding `vkprovider-schedule:POOL`  `patch` on `deployments/scale` of that Deployment, and nothing else

All are owned by the Deployment, and end with it. The annotation `cli.vkprovider.io/schedule` of each CronJob says what
they keep; one that differs is made again, because the controller of CronJobs may begin what a changed one has missed.
The policies `vkprovider-assignments` and `vkprovider-links` keep an instructor to these names and this form.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from vkprovider.classroom.access import BINDINGS, GROUP, ROLES
from vkprovider.classroom.deployments import Deployment, GivingError
from vkprovider.classroom.pods import LabletPod
from vkprovider.classroom.timetable import JOB_MINUTES, Timetable, TimetableError
from vkprovider.lablet import names
from vkprovider.lablet.podspec import RESTRICTED, RESTRICTED_CONTAINER
from vkprovider.platform.errors import Conflict
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Kind, PartialObject, Resource, kind
from vkprovider.platform.objects import Metadata
from vkprovider.platform.times import unix

NOTE: Final = "cli.vkprovider.io/schedule"
"""The annotation of a CronJob that says what it is a part of, as `Schedule` in JSON."""
BOOTS_S: Final = 1800
"""How long a lablet is taken to boot if nothing says it."""
LABELS: Final = f"{names.LABEL_COMPONENT}={names.COMPONENT_SCHEDULE}"
"""The selector of CronJobs of schedules."""
_NAME_CHARS: Final = 40
"""The names of CronJobs have 52 characters at most."""
_HASH_CHARS: Final = 8
_LATE_S: Final = 3600
"""How long the pool is still made smaller after its time at most, if nobody did it then."""
_JOB_S: Final = JOB_MINUTES * 60
_RETRIES: Final = 6
_NEAR: Final = 2
"""A begin that would move by so many minutes stays as it is."""


class BootSource(StrEnum):
    """How it is known how long lablets boot."""

    GIVEN = "given"
    MEASURED = "measured"
    LIMIT = "limit"
    DEFAULT = "default"


class BootTime(msgspec.Struct, frozen=True):
    """How long a lablet takes from its Node to Ready, and how that is known."""

    seconds: int
    source: BootSource


class Schedule(msgspec.Struct, frozen=True):
    """What the CronJobs of a pool keep.

    Attributes:
        pool: The name of the Deployment.
        definition: Of its lablets.
        label: What its Pods have as label `vkprovider.io/pool`.
        table: When it is full.
        boots: How long lablets boot.
        image: Of the Jobs.
    """

    pool: str
    definition: str
    label: str
    table: Timetable
    boots: BootTime
    image: str


class _CronSpec(msgspec.Struct, frozen=True, rename="camel"):
    schedule: str = ""
    time_zone: str | None = None
    suspend: bool = False
    starting_deadline_seconds: int | None = None


class _CronStatus(msgspec.Struct, frozen=True, rename="camel"):
    last_schedule_time: str | None = None


class CronJob(msgspec.Struct, frozen=True):
    """A CronJob, as far as it is one of a schedule."""

    metadata: Metadata
    spec: _CronSpec = _CronSpec()
    status: _CronStatus = _CronStatus()

    @property
    def schedule(self) -> Schedule | None:
        """What it is a part of; None if that cannot be read."""
        try:
            return _notes.decode(self.metadata.annotations.get(NOTE, ""))
        except msgspec.MsgspecError:
            return None


_notes: Final = msgspec.json.Decoder(Schedule)
CRON_JOBS: Final[Kind[CronJob]] = kind("/apis/batch/v1", "cronjobs", CronJob)
_ACCOUNTS: Final = kind("/api/v1", "serviceaccounts", PartialObject)


def boot_time(
    pods: Iterable[LabletPod], definition: str, before: Schedule | None, limit_s: int | None, given_s: int | None = None
) -> BootTime:
    """Return how long lablets of a definition take to boot: what somebody says, else the slowest that was measured.

    Args:
        pods: Of the namespace. Those count that nobody has had, and whose lab was started once.
        definition: Of which.
        before: The schedule until now, which may know it from earlier Pods.
        limit_s: How long a device may boot, as the definition's status says; None if it does not.
        given_s: What somebody says.
    """
    if given_s is not None:
        return BootTime(given_s, BootSource.GIVEN)
    ours = [pod for pod in pods if pod.spec.runtime_class_name == definition and pod.is_lablet and not pod.over]
    if measured := [took for pod in ours if (took := _took(pod)) is not None]:
        return BootTime(max(measured), BootSource.MEASURED)
    if before is not None and (before.definition, before.boots.source) == (definition, BootSource.MEASURED):
        return before.boots
    return BootTime(BOOTS_S, BootSource.DEFAULT) if limit_s is None else BootTime(limit_s, BootSource.LIMIT)


def _took(pod: LabletPod) -> int | None:
    """Return how many seconds a lablet took from its Node until its devices had booted; None if that is not known."""
    changed = {c.type: c.last_transition_time for c in pod.status.conditions if c.status == "True"}
    since = changed.get("PodScheduled") or pod.metadata.creation_timestamp
    used = pod.user or names.ANNOTATION_LENT_BY in pod.metadata.annotations or any(pod.last_ends.values())
    begin, end = unix(since), unix(changed.get(names.CONDITION_LAB_CONVERGED) or "")
    return None if used or begin is None or end is None else max(0, int(end - begin))


def steadied(schedule: Schedule, before: Schedule | None) -> Schedule:
    """Return a schedule with the begin that it had, if another measurement alone would move it by a minute or two."""
    if before is None or {schedule.boots.source, before.boots.source} != {BootSource.MEASURED}:
        return schedule
    table = schedule.table
    kept = msgspec.structs.replace(table, lead=before.table.lead)
    near = abs(table.lead - kept.lead) <= max(_NEAR, kept.lead // 10)
    return msgspec.structs.replace(schedule, table=kept, boots=before.boots) if near else schedule


def objects(schedule: Schedule, deployment: Deployment) -> list[dict[str, Any]]:
    """Return the objects of a schedule: account, Role, binding, CronJobs."""
    meta, table = deployment.metadata, schedule.table
    account = names.schedule_account(meta.name)
    held = {
        "namespace": meta.namespace,
        "labels": {names.LABEL_COMPONENT: names.COMPONENT_SCHEDULE},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": meta.name, "uid": meta.uid}],
    }
    role = names.schedule_role(meta.name)
    rule = {
        "apiGroups": ["apps"],
        "resources": ["deployments/scale"],
        "resourceNames": [meta.name],
        "verbs": ["patch"],
    }
    subject = {"kind": "ServiceAccount", "name": account, "namespace": meta.namespace}
    rbac = f"{GROUP}/v1"
    begin_s = max(60, min(window.until - window.at + table.lead for window in table.windows) * 60 - _JOB_S)
    jobs = [(each, "begin", table.ready, begin_s, at) for at, each in enumerate(table.begin_crons)]
    end_s = min(_LATE_S, table.gap * 60 - _JOB_S)  # neither may undo the other one by being late
    jobs += [(each, "end", table.rest, end_s, at) for at, each in enumerate(table.end_crons)]
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account, **held},
            "automountServiceAccountToken": False,
        },
        {"apiVersion": rbac, "kind": "Role", "metadata": {"name": role, **held}, "rules": [rule]},
        {
            "apiVersion": rbac,
            "kind": "RoleBinding",
            "metadata": {"name": role, **held},
            "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": role},
            "subjects": [subject],
        },
        *(
            _cron_job(
                schedule, account, held, cron, f"{_stem(meta.name)}-{act}{f'-{at + 1}' if at else ''}", replicas, s
            )
            for cron, act, replicas, s, at in jobs
        ),
    ]


def _stem(pool: str) -> str:
    if len(pool) <= _NAME_CHARS:
        return pool
    return f"{pool[: _NAME_CHARS - _HASH_CHARS - 1]}-{hashlib.sha256(pool.encode()).hexdigest()[:_HASH_CHARS]}"


def _cron_job(
    schedule: Schedule, account: str, held: Mapping[str, Any], cron: str, name: str, replicas: int, late_s: int
) -> dict[str, Any]:
    """Return a CronJob whose Job sets the replicas of the pool; any node that runs containers runs it."""
    container = {
        "name": "scale",
        "image": schedule.image,
        "command": ["kubectl-lablet", "__scale", schedule.pool, str(replicas)],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}},
        "securityContext": {**RESTRICTED_CONTAINER, "readOnlyRootFilesystem": True},
    }
    pod = {
        "serviceAccountName": account,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "securityContext": RESTRICTED,
        "containers": [container],
    }
    template = {"metadata": {"labels": dict(held["labels"])}, "spec": pod}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, **held, "annotations": {NOTE: msgspec.json.encode(schedule).decode()}},
        "spec": {
            "schedule": cron,
            "timeZone": schedule.table.zone,
            "concurrencyPolicy": "Replace",
            "startingDeadlineSeconds": late_s,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {
                "spec": {"backoffLimit": _RETRIES, "activeDeadlineSeconds": _JOB_S, "template": template},
            },
        },
    }


class ScheduleChange(NamedTuple):
    """What became of a schedule: the objects that were made, made again or deleted, and those that stay."""

    made: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def check_pool(deployment: Deployment, scaler: str) -> None:
    """Check that making a Deployment smaller ends free lablets alone, and that nobody else sets its size.

    Args:
        deployment: The pool.
        scaler: The HorizontalPodAutoscaler that sets its replicas; "" if none does.

    Raises:
        TimetableError: A lablet that is given would stay one of its replicas, or it has no lablets.
    """
    name = deployment.metadata.name
    if not deployment.spec.template.spec.runtime_class_name:
        raise TimetableError(f"deployment/{name} is no pool: its template needs the runtimeClassName of a definition")
    if not deployment.selects_by_pool:
        raise TimetableError(
            f"deployment/{name} does not select by matchLabels with {names.LABEL_POOL} alone: the end would take "
            "lablets away that learners have. Make it again with that label in selector and template"
        )
    if scaler:
        raise TimetableError(f"horizontalpodautoscaler/{scaler} sets the replicas of deployment/{name} already")


async def cron_jobs_in(kube: KubeClient, namespace: str) -> list[CronJob]:
    """List the CronJobs of schedules; of all namespaces if it is empty.

    Raises:
        OutsideError: They cannot be read.
    """
    found = await Resource(kube, CRON_JOBS, namespace).list(labels=LABELS)
    return sorted(found, key=lambda each: (each.metadata.namespace, each.metadata.name))


def of_pool(jobs: Iterable[CronJob], deployment: Metadata) -> list[CronJob]:
    """Return the CronJobs of a Deployment, by its UID."""
    return [job for job in jobs if any(owner.uid == deployment.uid for owner in job.metadata.owner_references)]


def schedules_of(jobs: Sequence[CronJob]) -> dict[tuple[str, str], tuple[Schedule, list[CronJob]]]:
    """Return the schedules by namespace and pool, with their CronJobs."""
    found: dict[tuple[str, str], tuple[Schedule, list[CronJob]]] = {}
    for job in jobs:
        if (schedule := job.schedule) is not None:
            key = job.metadata.namespace, schedule.pool
            found.setdefault(key, (schedule, []))[1].append(job)
    return found


async def keep(kube: KubeClient, schedule: Schedule, deployment: Deployment, *, dry_run: bool) -> ScheduleChange:
    """Have the objects of a schedule stand as they should; repeat it at will.

    Args:
        kube: The API server, with the rights of whoever runs the class.
        schedule: What is to be kept.
        deployment: The pool.
        dry_run: Whether nothing is written.

    Raises:
        GivingError: The API server keeps none of it, or somebody else writes the same.
        OutsideError: The API server did not do it.
    """
    namespace = deployment.metadata.namespace
    made, again, kept = list[str](), list[str](), list[str]()
    bodies = objects(schedule, deployment)
    for body in bodies:
        handle, name = _handle(kube, namespace, body["kind"]), body["metadata"]["name"]
        about, found = f"{body['kind'].lower()}/{name}", await handle.get(name)
        if found is not None and _fits(found, body):
            kept.append(about)
            continue
        (made if found is None else again).append(about)
        if dry_run:
            continue
        try:
            if found is not None:
                await handle.delete(name, uid=found.metadata.uid)
            await handle.create(body)
        except Conflict:
            raise GivingError(f"{about} was written at the same moment; run the same command again") from None
    names_now = {body["metadata"]["name"] for body in bodies}
    jobs = of_pool(await cron_jobs_in(kube, namespace), deployment.metadata)
    old = [job.metadata for job in jobs if job.metadata.name not in names_now]
    if not dry_run:
        for meta in old:
            await Resource(kube, CRON_JOBS, namespace).delete(meta.name, uid=meta.uid)
    return ScheduleChange(tuple(made), tuple(again), tuple(f"cronjob/{meta.name}" for meta in old), tuple(kept))


async def end(kube: KubeClient, namespace: str, pool: str, *, dry_run: bool) -> ScheduleChange:
    """Delete a schedule, the CronJobs first; the pool stays as it is.

    Raises:
        OutsideError: The API server did not do it.
    """
    found = await cron_jobs_in(kube, namespace)
    jobs = [job for job in found if any(owner.name == pool for owner in job.metadata.owner_references)]
    gone = [("CronJob", job.metadata.name) for job in jobs]
    role, account = names.schedule_role(pool), names.schedule_account(pool)
    gone += [("RoleBinding", role), ("Role", role), ("ServiceAccount", account)]
    deleted = []
    for kind_, name in gone:
        handle = _handle(kube, namespace, kind_)
        if await (handle.get(name) if dry_run else handle.delete(name)):
            deleted.append(f"{kind_.lower()}/{name}")
    return ScheduleChange(deleted=tuple(deleted))


def _handle(kube: KubeClient, namespace: str, kind_: str) -> Resource[Any]:
    kinds: dict[str, Kind[Any]] = {
        "CronJob": CRON_JOBS,
        "Role": ROLES,
        "RoleBinding": BINDINGS,
        "ServiceAccount": _ACCOUNTS,
    }
    return Resource(kube, kinds[kind_], namespace)


def _fits(found: Any, body: Mapping[str, Any]) -> bool:
    """Return whether an object is what it should be: of this Deployment, and with the same content."""
    uid = body["metadata"]["ownerReferences"][0]["uid"]
    if all(owner.uid != uid for owner in found.metadata.owner_references):
        return False
    match body["kind"]:
        case "CronJob":
            spec, stands = body["spec"], found.spec
            if found.metadata.annotations.get(NOTE) != body["metadata"]["annotations"][NOTE]:
                return False
            wanted = spec["schedule"], spec["timeZone"], False, spec["startingDeadlineSeconds"]
            return wanted == (stands.schedule, stands.time_zone, stands.suspend, stands.starting_deadline_seconds)
        case "Role":
            return bool(found.rules == body["rules"])
        case "RoleBinding":
            return [each.name for each in found.subjects or ()] == [each["name"] for each in body["subjects"]]
        case _:
            return True

"""Checks whether there will be room for what the schedules of pools ask, as far as one can tell from what runs now."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from vkprovider.classroom.schedules import CronJob, Schedule, schedules_of
from vkprovider.classroom.timetable import spans
from vkprovider.doctor.findings import Finding, note
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.lablet import names
from vkprovider.lablet.models.status import definition_status
from vkprovider.labs.checks.lablets import SeenPod
from vkprovider.labs.checks.workers import node_ready
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.platform.objects import CustomResource, Node

_DAYS: Final = 7


class PlannedPool(msgspec.Struct, frozen=True):
    """A pool that is to be full for some time.

    Attributes:
        namespace: Of the pool.
        schedule: What it keeps.
        begin, end: From when until when, in UTC.
    """

    namespace: str
    schedule: Schedule
    begin: datetime
    end: datetime


def check_room(
    jobs: Sequence[CronJob],
    definitions: Iterable[CustomResource],
    workers: Iterable[CustomResource],
    nodes: Iterable[Node],
    pods: Iterable[SeenPod],
    now: datetime,
) -> list[Finding]:
    """Check the schedules of a week: one finding for each pool, of the first time at which there is no room.

    Counted is what is free on Ready workers of the definition's environment. What the scheduled pools have now, also in
    the hands of learners, is taken for free: it is over by then.

    Args:
        jobs: CronJobs of schedules, of all namespaces.
        definitions: All of them.
        workers: All of them.
        nodes: Of the workers.
        pods: Of these Nodes.
        now: With a zone.
    """
    planned = _planned(jobs, now)
    if not planned:
        return []
    known = {each.metadata.name: each for each in definitions}
    pools = {(each.namespace, each.schedule.label) for each in planned}
    free = _free(workers, nodes, [pod for pod in pods if not _is_of(pod, pools)])
    found: dict[tuple[str, str], Finding] = {}
    for each in planned:
        key = each.namespace, each.schedule.pool
        if key in found or each.schedule.definition not in known:
            continue
        beside = [other for other in planned if other.begin <= each.begin < other.end and other is not each]
        before = [other for other in beside if (other.begin, other.namespace) <= (each.begin, each.namespace)]
        left = dict(free)
        for other in before:
            left, _ = _placed(other, known, left)
        _, short = _placed(each, known, left)
        if short:
            found[key] = _finding(each, short, before)
    return list(found.values())


def _planned(jobs: Sequence[CronJob], now: datetime) -> list[PlannedPool]:
    planned = []
    for (namespace, _), (schedule, _) in schedules_of(jobs).items():
        try:
            times = spans(schedule.table, now, _DAYS)
        except (ZoneInfoNotFoundError, ValueError):
            continue  # the API server knows zones that this machine does not
        planned += [PlannedPool(namespace, schedule, begin, end) for begin, end in times]
    return sorted(planned, key=lambda each: (each.begin, each.namespace, each.schedule.pool))


def _is_of(pod: SeenPod, pools: set[tuple[str, str]]) -> bool:
    """Return whether a Pod is free in one of these pools, or was given from it."""
    meta = pod.metadata
    label = meta.labels.get(names.LABEL_POOL) or meta.annotations.get(names.ANNOTATION_LENT_BY, "")
    return (meta.namespace, label) in pools


def _free(
    workers: Iterable[CustomResource], nodes: Iterable[Node], pods: Iterable[SeenPod]
) -> dict[tuple[str, str], Resources]:
    """Return what is free, by environment and Node."""
    environments = {names.node_name(each.metadata.name): names.environment_of(each.spec) for each in workers}
    free: dict[str, Resources] = {}
    for node in nodes:
        ready = node_ready(node)
        takes = ready is not None and ready.status == "True" and not node.spec.unschedulable
        if takes and node.metadata.name in environments:
            free[node.metadata.name] = _amount(node.status.allocatable)
    for pod in pods:
        if pod.spec.node_name in free and pod.status.phase not in {"Succeeded", "Failed"}:
            free[pod.spec.node_name] = free[pod.spec.node_name].minus(pod.demand or Resources())
    return {(environments[name], name): amount for name, amount in free.items()}


def _amount(quantities: Mapping[str, str]) -> Resources:
    """Return an amount; nothing if it cannot be read."""
    try:
        return Resources.from_quantities(quantities)
    except ValueError:
        return Resources()


def _placed(
    each: PlannedPool, known: Mapping[str, CustomResource], free: Mapping[tuple[str, str], Resources]
) -> tuple[dict[tuple[str, str], Resources], int]:
    """Return what a pool leaves free, and how many of its lablets find no place."""
    definition, left = known.get(each.schedule.definition), dict(free)
    if definition is None:
        return left, 0
    need = _amount(definition_status(definition).resources)
    environment, rest = names.environment_of(definition.spec), each.schedule.table.ready
    for key in [key for key in left if key[0] == environment]:
        while rest and left[key].covers(need):
            left[key], rest = left[key].minus(need), rest - 1
    return left, rest


def _finding(each: PlannedPool, short: int, before: Sequence[PlannedPool]) -> Finding:
    schedule, reason = each.schedule, DoctorReason.SCHEDULE_ROOM
    at = each.begin.astimezone(ZoneInfo(schedule.table.zone))
    beside = sorted({f"{other.namespace}/{other.schedule.pool}" for other in before})
    text = (
        f"on {at:%a %Y-%m-%d} its schedule asks for {schedule.table.ready} lablets of "
        f"{schedule.definition} from {at:%H:%M} {schedule.table.zone} on, and the workers have room for "
        f"{schedule.table.ready - short} of them"
    )
    text += f", beside {', '.join(beside)}" if beside else ""
    return note(f"Deployment/{each.namespace}/{schedule.pool}", reason, text, reason.remedy)

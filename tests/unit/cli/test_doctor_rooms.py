"""What the doctor says of schedules for which there will be no room."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from vkprovider.classroom.schedules import NOTE, BootSource, BootTime, CronJob, Schedule
from vkprovider.classroom.timetable import Timetable, days_of, windows_of
from vkprovider.cli.checkup.rooms import check_room
from vkprovider.doctor.findings import Finding, Level
from vkprovider.lablet import names
from vkprovider.labs.checks.lablets import SeenPod
from vkprovider.platform.objects import CustomResource, Node

NOW = datetime(2027, 3, 1, 6, tzinfo=UTC)
"""A Monday."""


def job(pool: str, ready: int, days: str = "mon", at: str = "09:00", until: str = "12:00", **more: Any) -> CronJob:
    table = Timetable(more.get("zone", "UTC"), days_of(days), windows_of(at, until), ready, 0, 30)
    made = Schedule(pool, more.get("definition", "netlab"), pool, table, BootTime(1, BootSource.GIVEN), "i")
    meta = {"name": f"{pool}-begin", "namespace": "friday", "annotations": {NOTE: msgspec.json.encode(made).decode()}}
    return msgspec.convert({"metadata": meta}, CronJob)


def of_kind(name: str, environment: str = "default", **status: Any) -> CustomResource:
    return msgspec.convert(
        {"metadata": {"name": name}, "spec": {"environment": environment}, "status": status}, CustomResource
    )


def node(worker: str, cpu: str = "10", *, ready: bool = True, cordoned: bool = False) -> Node:
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"allocatable": {"cpu": cpu, "memory": "100Gi"}, "conditions": conditions}
    return msgspec.convert(
        {"metadata": {"name": f"vnode.{worker}"}, "spec": {"unschedulable": cordoned}, "status": status}, Node
    )


def pod(cpu: str, **meta: Any) -> SeenPod:
    container = {"name": "lab", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "nodeName": "vnode.a", "runtimeClassName": "netlab"}
    return msgspec.convert({"metadata": {"name": "p", "namespace": "friday", **meta}, "spec": spec}, SeenPod)


DEFINITIONS = [
    of_kind("netlab", resources={"cpu": "2", "memory": "1Gi"}),
    of_kind("exam", "exam", resources={"cpu": "2"}),
]
WORKERS = [of_kind("a"), of_kind("b"), of_kind("e", "exam")]


def checked(jobs: list[CronJob], *nodes: Node, pods: tuple[SeenPod, ...] = ()) -> list[Finding]:
    return check_room(jobs, DEFINITIONS, WORKERS, nodes, pods, NOW)


def test_room_for_all_is_nothing_to_tell() -> None:
    assert checked([job("warm", 5)], node("a")) == []
    assert checked([], node("a")) == []


def test_too_little_room_is_told_with_its_time() -> None:
    [found] = checked([job("warm", 8, zone="Europe/Berlin")], node("a"))
    assert (found.level, found.object, found.reason) == (Level.NOTE, "Deployment/friday/warm", "ScheduleRoom")
    assert "on Mon 2027-03-01 its schedule asks for 8 lablets of netlab from 08:30 Europe/Berlin on" in found.message
    assert "the workers have room for 5 of them" in found.message


def test_workers_that_take_none_do_not_count() -> None:
    [found] = checked([job("warm", 8)], node("a"), node("b", cordoned=True), node("e"), node("c"))
    assert "room for 5" in found.message
    [found] = checked([job("warm", 8)], node("a"), node("b", ready=False))
    assert "room for 5" in found.message
    assert checked([job("warm", 8)], node("a"), node("b")) == []
    assert checked([job("warm", 5, definition="exam")], node("e")) == []


def test_schedules_at_one_time_share_the_room() -> None:
    [found] = checked([job("warm", 4), job("zwei", 3, at="10:00")], node("a"))
    assert (found.object, "room for 1 of them, beside friday/warm" in found.message) == ("Deployment/friday/zwei", True)
    assert checked([job("warm", 4), job("zwei", 3, days="tue")], node("a")) == []
    assert checked([job("warm", 4), job("zwei", 3, at="13:00", until="14:00")], node("a")) == []


def test_what_runs_takes_room_but_for_the_lablets_of_the_pool_itself() -> None:
    [found] = checked([job("warm", 5)], node("a"), pods=(pod("4"),))
    assert "room for 3 of them" in found.message
    own = (pod("4", labels={names.LABEL_POOL: "warm"}), pod("4", annotations={names.ANNOTATION_LENT_BY: "warm"}))
    assert checked([job("warm", 5)], node("a"), pods=own) == []

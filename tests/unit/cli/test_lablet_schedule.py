"""`kubectl lablet schedule` as a command line, before it asks a cluster; and the objects that it would write."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import kubernetes_validate
import msgspec
import pytest
from click.testing import CliRunner

from vkprovider.classroom.deployments import Deployment
from vkprovider.classroom.pods import LabletPod
from vkprovider.classroom.schedules import (
    BootSource,
    BootTime,
    CronJob,
    Schedule,
    ScheduleChange,
    _fits,
    boot_time,
    objects,
    schedules_of,
    steadied,
)
from vkprovider.classroom.timetable import Timetable, Window
from vkprovider.cli.lablet.commands.administering import schedule
from vkprovider.cli.lablet.schedules import _tell
from vkprovider.lablet import names

WHEN = ("--at", "09:00", "--until", "17:00", "--days", "mon,wed", "--tz", "Europe/Berlin", "--ready", "24")
TABLE = Timetable("Europe/Berlin", (0, 2), (Window(540, 1020),), 24, 0, 20)
WARM = Schedule("warm", "netlab", "warm", TABLE, BootTime(1030, BootSource.MEASURED), "vkprovider:1")
FEWER = msgspec.structs.replace(WARM, table=msgspec.structs.replace(TABLE, ready=3))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("deployment/warm", *WHEN, "--tz", "Europe/Berln"), "is no time zone; do you mean Europe/Berlin?"),
        (("deployment/warm", *WHEN, "--until", "08:00"), "--until 08:00 is not after --at 09:00"),
        (("deployment/warm", *WHEN, "--days", "wendesday"), "wendesday is no day of the week"),
        (("deployment/warm", *WHEN, "--rest", "24"), "nothing would change"),
        (("deployment/warm", *WHEN, "--boots", "soon"), "is no duration"),
        (("deployment/warm", *WHEN, "-o", "yaml"), "yaml or json for --dry-run"),
        (("deployment/warm", "--at", "09:00"), "say when the pool is to be full"),
        (("deployment/warm", *WHEN, "--delete"), "--delete goes with --dry-run alone"),
        (("warm", *WHEN), "name the pool, such as deployment/warm"),
        ((), "name the pool, such as deployment/warm"),
        ((*WHEN, "--list"), "--list goes with"),
    ],
)
def test_mistakes_are_a_sentence(words: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(schedule, words)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def deployment(name: str = "warm", replicas: int = 1) -> Deployment:
    spec: dict[str, Any] = {"replicas": replicas, "selector": {"matchLabels": {names.LABEL_POOL: "warm"}}}
    spec["template"] = {"spec": {"runtimeClassName": "netlab"}}
    return msgspec.convert({"metadata": {"name": name, "namespace": "friday", "uid": "u"}, "spec": spec}, Deployment)


def test_objects_are_valid_and_restricted() -> None:
    bodies = objects(WARM, deployment())
    for body in bodies:
        kubernetes_validate.validate(body, "1.30", strict=True)
    jobs = [body for body in bodies if body["kind"] == "CronJob"]
    assert [(job["metadata"]["name"], job["spec"]["startingDeadlineSeconds"]) for job in jobs] == [
        ("warm-begin", (8 * 60 + 20 - 10) * 60),
        ("warm-end", 3600),
    ]
    for job in jobs:
        pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        [container] = pod["containers"]
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    [(schedule_, parts)] = schedules_of([msgspec.convert(job, CronJob) for job in jobs]).values()
    assert (schedule_, len(parts)) == (WARM, 2)


def test_a_late_end_comes_before_the_next_begin_or_not_at_all() -> None:
    """Its Job may take ten minutes; a schedule of an earlier version, whose end may be later, is made again."""
    windows = (Window(540, 720), Window(765, 1020))
    table = msgspec.structs.replace(WARM.table, windows=windows, lead=20)
    end = objects(msgspec.structs.replace(WARM, table=table), deployment())[-1]
    assert (end["metadata"]["name"], end["spec"]["startingDeadlineSeconds"]) == ("warm-end", (25 - 10) * 60)
    assert _fits(msgspec.convert(end, CronJob), end)
    earlier = {**end, "spec": {**end["spec"], "startingDeadlineSeconds": 3600}}
    assert not _fits(msgspec.convert(earlier, CronJob), end)


@pytest.mark.parametrize(
    ("hour", "before", "done", "replicas", "given", "said"),
    [
        (8, None, ScheduleChange(made=("cronjob/warm-begin", "cronjob/warm-end")), 3, 0, 24),
        (12, FEWER, ScheduleChange(again=("cronjob/warm-begin-2",)), 3, 0, 24),
        (12, WARM, ScheduleChange(again=("cronjob/warm-begin",)), 3, 0, None),  # its boots began in time
        (12, None, ScheduleChange(made=("cronjob/warm-begin",)), 24, 0, None),
        (12, None, ScheduleChange(made=("cronjob/warm-begin",)), 0, 24, None),  # every learner has one
        (12, None, ScheduleChange(made=("cronjob/warm-begin",)), 2, 20, 4),
        (12, None, ScheduleChange(again=("cronjob/warm-end",)), 3, 0, None),
        (12, None, ScheduleChange(), 3, 0, None),
        (7, None, ScheduleChange(made=("cronjob/warm-begin",)), 3, 0, None),
        (17, None, ScheduleChange(made=("cronjob/warm-begin",)), 3, 0, None),
    ],
)
def test_a_schedule_that_comes_after_the_begin_of_the_boots_says_so(
    hour: int,
    before: Schedule | None,
    done: ScheduleChange,
    replicas: int,
    given: int,
    said: int | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The controller begins nothing that is older than a CronJob."""
    now = datetime(2027, 3, 1, hour, 50, tzinfo=ZoneInfo("Europe/Berlin"))  # a Monday
    _tell(WARM, before, done, now, deployment(replicas=replicas), given=given, dry_run=False)
    told = capsys.readouterr().err
    assert ("Warning: today's boots for 09:00 began at 08:40 without this schedule" in told) is (said is not None)
    assert (f"kubectl scale deployment/warm --replicas={said} -n friday" in told) is (said is not None)


def test_names_of_cron_jobs_are_short_and_tell_pools_apart() -> None:
    long = [objects(WARM, deployment(f"{'a' * 60}-{end}")) for end in "xy"]
    made = [body["metadata"]["name"] for bodies in long for body in bodies if body["kind"] == "CronJob"]
    assert len(set(made)) == 4
    assert all(len(name) <= 52 for name in made)


def lablet(
    took_s: int = 0, *, ended: bool = False, user: str = "", converged: str = "True", kind: str = "netlab"
) -> LabletPod:
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2027-03-01T08:00:00Z"},
        {
            "type": names.CONDITION_LAB_CONVERGED,
            "status": converged,
            "lastTransitionTime": f"2027-03-01T08:{took_s // 60:02}:{took_s % 60:02}Z",
        },
    ]
    last = {"terminated": {"reason": "Reset", "message": "start 2"}} if ended else {}
    containers = [{"name": "lab", "lastState": last}]
    notes = {names.ANNOTATION_USERNAME: user} if user else {}
    return msgspec.convert(
        {
            "metadata": {"name": "x", "annotations": notes},
            "spec": {
                "runtimeClassName": kind,
                "containers": [],
                "nodeSelector": {names.LABEL_COMPONENT: names.COMPONENT_VNODE},
            },
            "status": {"conditions": conditions, "containerStatuses": containers},
        },
        LabletPod,
    )


@pytest.mark.parametrize(
    ("pods", "before", "limit_s", "given_s", "known"),
    [
        ([lablet(300), lablet(420)], None, 900, None, BootTime(420, BootSource.MEASURED)),
        ([lablet(300), lablet(420, user="alice")], None, 900, None, BootTime(300, BootSource.MEASURED)),
        ([lablet(300), lablet(420, kind="other")], None, 900, None, BootTime(300, BootSource.MEASURED)),
        ([lablet(420, converged="False")], None, 900, None, BootTime(900, BootSource.LIMIT)),
        ([lablet(420, ended=True)], None, None, None, BootTime(1800, BootSource.DEFAULT)),
        ([], WARM, 900, None, WARM.boots),
        ([], msgspec.structs.replace(WARM, definition="old"), 900, None, BootTime(900, BootSource.LIMIT)),
        ([lablet(300)], WARM, 900, 60, BootTime(60, BootSource.GIVEN)),
    ],
)
def test_how_long_lablets_boot(
    pods: list[LabletPod], before: Schedule | None, limit_s: int | None, given_s: int | None, known: BootTime
) -> None:
    assert boot_time(pods, "netlab", before, limit_s, given_s) == known


def moved(lead: int, source: BootSource = BootSource.MEASURED) -> Schedule:
    table = msgspec.structs.replace(TABLE, lead=lead)
    return msgspec.structs.replace(WARM, table=table, boots=BootTime(lead * 50, source))


def test_a_measurement_that_differs_by_little_moves_nothing() -> None:
    assert steadied(moved(22), WARM) == WARM
    assert steadied(moved(25), WARM) == moved(25)
    assert steadied(moved(21, BootSource.GIVEN), WARM) == moved(21, BootSource.GIVEN)
    assert steadied(moved(21), None) == moved(21)

"""`kubectl lablet schedule`: pools that are full when a class begins, and small when it ends."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import click
import msgspec
import yaml

from vkprovider.classroom import schedules
from vkprovider.classroom.deployments import (
    DEPLOYMENTS,
    Deployment,
    GivingError,
    deployment_in,
    scale_command,
    scaler_of,
)
from vkprovider.classroom.pods import pods_in
from vkprovider.classroom.schedules import BootSource, BootTime, CronJob, Schedule, ScheduleChange
from vkprovider.classroom.timetable import (
    Timetable,
    TimetableError,
    begun,
    check,
    clock,
    days_of,
    lead_for,
    surprises,
    windows_of,
    zone_named,
)
from vkprovider.cli.lablet.timeslots import pool_in
from vkprovider.cli.shared import clock as api_clock
from vkprovider.cli.shared.output import Column, Listing, Output, document
from vkprovider.cli.shared.page.address import granted_image
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.times import local, seconds_of
from vkprovider.doctor.rights import grant_command
from vkprovider.lablet import names
from vkprovider.lablet.models.status import definition_status
from vkprovider.platform.kube.api import DEFINITIONS
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.times import length

_SURPRISES_MAX: Final = 5
_BEGIN: Final = re.compile(r"cronjob/.*-begin(-\d+)?")
"""What a change of a schedule says of a CronJob that makes the pool full."""
_HOW_KNOWN: Final = {
    BootSource.GIVEN: "a lablet boots {}, as you say",
    BootSource.MEASURED: "the slowest free lablet booted {}",
    BootSource.LIMIT: "no free lablet is there to tell how long it booted; its definition lets a device boot {}",
    BootSource.DEFAULT: "nothing tells how long a lablet boots; {} are assumed",
}
_AGAIN: Final = "run the same command again while the pool is full, or name it by --boots"


class ScheduleRow(msgspec.Struct, frozen=True):
    """One schedule; what is unknown is empty.

    Attributes:
        pool: The Deployment.
        ready: How many free lablets it has then.
        rest: How many at other times.
        when: Days, hours and zone.
        lead: How many minutes before it boots begin.
        boots: How that is known: `measured`, `given`, `limit` or `default`.
        last: When one of its Jobs was last begun.
        definition: Of its lablets.
        image: Of its Jobs.
    """

    pool: str
    ready: int
    rest: int
    when: str
    lead: int
    boots: BootSource
    last: str
    definition: str
    image: str


LISTING: Final[Listing[ScheduleRow]] = Listing(
    kind="LabletSchedule",
    row=ScheduleRow,
    columns=(
        Column("POOL", lambda row: row.pool),
        Column("READY", lambda row: str(row.ready)),
        Column("WHEN", lambda row: row.when),
        Column("BOOTS", lambda row: f"{row.lead} min before"),
        Column("LAST", lambda row: local(row.last, api_clock.now())),
        Column("REST", lambda row: str(row.rest), wide=True),
        Column("BY", lambda row: row.boots, wide=True),
        Column("DEFINITION", lambda row: row.definition, wide=True),
        Column("IMAGE", lambda row: row.image, wide=True),
    ),
    name=lambda row: f"deployment/{row.pool}",
)


def rows_of(jobs: Sequence[CronJob]) -> list[ScheduleRow]:
    """Return a row for each schedule."""
    return [
        ScheduleRow(
            pool=schedule.pool,
            ready=schedule.table.ready,
            rest=schedule.table.rest,
            when=schedule.table.text,
            lead=schedule.table.lead,
            boots=schedule.boots.source,
            last=max(job.status.last_schedule_time or "" for job in parts),
            definition=schedule.definition,
            image=schedule.image,
        )
        for schedule, parts in schedules.schedules_of(jobs).values()
    ]


def schedule(
    what: str | None,
    *,
    at: str | None,
    until: str | None,
    days: str | None,
    zone: str | None,
    ready: int | None,
    rest: int,
    boots: str | None,
    image: str | None,
    lists: bool,
    deletes: bool,
    dry_run: bool,
    output: Output,
    place: Place,
) -> None:
    """Have a pool full when a class begins, and small again when it ends."""
    told = any(each is not None for each in (at, until, days, zone, ready, boots, image))
    if lists:
        if told or deletes or dry_run:
            raise click.UsageError("--list goes with -o and the options of a place alone")
        place.run(lambda kube, namespace: _list(kube, namespace, pool_in(what or ""), output))
        return
    if not (pool := pool_in(what or "")):
        raise click.UsageError("name the pool, such as deployment/warm; --list shows the schedules there are")
    if deletes:
        if told:
            raise click.UsageError("--delete goes with --dry-run alone")
        place.run(lambda kube, namespace: _end(kube, namespace, pool, dry_run=dry_run))
        return
    if at is None or until is None or days is None or zone is None or ready is None:
        raise click.UsageError(
            "say when the pool is to be full, and how large: --at 09:00 --until 17:00 --days mon,wed --tz "
            "Europe/Berlin --ready 24"
        )
    if rest >= ready:
        raise click.UsageError(f"--rest {rest} is not less than --ready {ready}, so that nothing would change")
    if output not in {"table", "yaml", "json"} or (output != "table" and not dry_run):
        raise click.UsageError("-o is for --list, and yaml or json for --dry-run")
    given_s = seconds_of(boots) if boots is not None else None
    if boots is not None and not given_s:
        raise click.UsageError(f"--boots {boots!r} is no duration; write one such as 20m")
    try:
        zone_named(zone)
        table = Timetable(zone, days_of(days), windows_of(at, until), ready, rest)
    except TimetableError as error:
        raise click.UsageError(str(error)) from None
    place.run(
        lambda kube, namespace: _keep(
            kube, namespace, pool, table, given_s=given_s, image=image or "", dry_run=dry_run, output=output
        )
    )


async def _keep(
    kube: KubeClient,
    namespace: str,
    pool: str,
    table: Timetable,
    *,
    given_s: int | None,
    image: str,
    dry_run: bool,
    output: Output,
) -> None:
    try:
        deployment = await deployment_in(Resource(kube, DEPLOYMENTS, namespace), namespace, pool)
        schedules.check_pool(deployment, await scaler_of(kube, namespace, pool))
        image = image or await _image(kube, namespace)
        found, before, given = await _scheduled(kube, namespace, deployment, table, given_s, image)
        check(found.table)
        if output != "table":
            click.echo(_documents(schedules.objects(found, deployment), output))
            return
        done = await schedules.keep(kube, found, deployment, dry_run=dry_run)
    except (TimetableError, GivingError) as error:
        raise click.ClickException(str(error)) from None
    now = (await api_clock.asked(kube)).astimezone(UTC)
    _tell(found, before, done, now, deployment, given=given, dry_run=dry_run)


async def _scheduled(
    kube: KubeClient, namespace: str, deployment: Deployment, table: Timetable, given_s: int | None, image: str
) -> tuple[Schedule, Schedule | None, int]:
    """Return the schedule that is to be, the one that there is, and how many lablets of the pool are given."""
    spec, pool = deployment.spec, deployment.metadata.name
    jobs = schedules.of_pool(await schedules.cron_jobs_in(kube, namespace), deployment.metadata)
    before = next((job.schedule for job in jobs if job.schedule is not None), None)
    name = spec.template.spec.runtime_class_name
    definition = await Resource(kube, DEFINITIONS).get(name)
    limit = definition_status(definition).boot_timeout_seconds if definition is not None else None
    pods = await pods_in(kube, namespace).list()
    limit_s = limit if isinstance(limit, int) else None
    boots = schedules.boot_time(pods, name, before, limit_s, given_s)
    lead = lead_for(boots.seconds, measured=boots.source is BootSource.MEASURED)
    label = spec.selector.match_labels[names.LABEL_POOL]
    found = Schedule(pool, name, label, msgspec.structs.replace(table, lead=lead), boots, image)
    given = sum(pod.lasts and pod.metadata.annotations.get(names.ANNOTATION_LENT_BY) == label for pod in pods)
    return schedules.steadied(found, before), before, given


async def _image(kube: KubeClient, namespace: str) -> str:
    if found := await granted_image(kube, namespace):
        return found
    raise click.ClickException(
        f"nobody has named the image of the installation to namespace {namespace}: name one by --image, or an admin "
        f"runs again: {grant_command('USER', namespace)}"
    )


def _tell(
    found: Schedule,
    before: Schedule | None,
    done: ScheduleChange,
    now: datetime,
    deployment: Deployment,
    *,
    given: int,
    dry_run: bool,
) -> None:
    table = found.table
    for verb, objects in (("created", done.made), ("made again", done.again), ("deleted", done.deleted)):
        for each in objects:
            click.echo(f"{each} {verb}{' (dry run)' if dry_run else ''}")
    if not (done.made or done.again or done.deleted):
        click.echo(f"the schedule of deployment/{found.pool} is unchanged")
    begins = ", ".join(clock(window.at - table.lead) for window in table.windows)
    click.echo(f"deployment/{found.pool} has {table.ready} free lablets {table.text}; boots begin at {begins}")
    click.echo(f"{_boots(found.boots)}, so that they begin {table.lead} minutes before", err=True)
    if before is not None and before.table.lead != table.lead:
        click.echo(f"until now they began {before.table.lead} minutes before", err=True)
    if missed := _missed(found, before, done, now, deployment, given):
        click.echo(f"Warning: {missed}", err=True)
    told = surprises(table, now.date())
    for each in told[:_SURPRISES_MAX]:
        click.echo(f"Warning: {each}", err=True)
    if len(told) > _SURPRISES_MAX:
        click.echo(f"Warning: and {len(told) - _SURPRISES_MAX} more days of the year to come are like these", err=True)


def _missed(
    found: Schedule, before: Schedule | None, done: ScheduleChange, now: datetime, deployment: Deployment, given: int
) -> str:
    """Return a warning if the boots of a class should have begun before its CronJob was made; "" if they should not."""
    table, shown = found.table, begun(found.table, now)
    is_new = any(_BEGIN.fullmatch(each) for each in (*done.made, *done.again))
    lacking = table.ready - given  # a lablet that is given counts as no replica any more
    if shown is None or not is_new or deployment.spec.replicas >= lacking:
        return ""
    if before is not None and before.table.ready == table.ready and begun(before.table, now) is not None:
        return ""  # the CronJob of before has begun them
    begin, meta = clock(shown.window.at - table.lead), deployment.metadata
    return (
        f"today's boots for {clock(shown.window.at)} began at {begin} without this schedule; to have them now: "
        f"{scale_command(meta.name, meta.namespace, lacking)}"
    )


def _boots(boots: BootTime) -> str:
    text = _HOW_KNOWN[boots.source].format(length(boots.seconds))
    return text if boots.source in {BootSource.GIVEN, BootSource.MEASURED} else f"{text} ({_AGAIN})"


async def _list(kube: KubeClient, namespace: str, pool: str, output: Output) -> None:
    rows = rows_of(await schedules.cron_jobs_in(kube, namespace))
    rows = [row for row in rows if not pool or row.pool == pool]
    LISTING.show(rows, output, nothing=f"No schedules found in {namespace} namespace.")


async def _end(kube: KubeClient, namespace: str, pool: str, *, dry_run: bool) -> None:
    done = await schedules.end(kube, namespace, pool, dry_run=dry_run)
    for each in done.deleted:
        click.echo(f"{each} deleted{' (dry run)' if dry_run else ''}")
    if not done.deleted:
        raise click.ClickException(f"deployment/{pool} has no schedule; see: kubectl lablet schedule --list")


def _documents(bodies: Sequence[object], output: Output) -> str:
    if output == "yaml":
        return yaml.safe_dump_all(bodies, sort_keys=False).rstrip("\n")
    return document({"apiVersion": "v1", "kind": "List", "items": bodies}, output)


def scale(pool: str, replicas: int, *, place: Place) -> None:
    """Set the replicas of Deployment POOL, by its scale alone, which is all that the account of a schedule may."""

    async def work(kube: KubeClient, namespace: str) -> None:
        scales = Resource(kube, DEPLOYMENTS, namespace).metadata_only
        await scales.patch(pool, {"spec": {"replicas": replicas}}, subresource="scale")

    place.run(work)
    click.echo(f"deployment/{pool} is to have {replicas} free lablets")

"""`kubectl lablet assign`, `extend`, `release`: the time of learners."""

import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import click

from vkprovider.classroom.access import let_in
from vkprovider.classroom.attendance import unknown_among
from vkprovider.classroom.deployments import (
    DEPLOYMENTS,
    Deployment,
    GivingError,
    deployment_in,
    is_replica,
    scale_command,
)
from vkprovider.classroom.links import LinkRound, end_link, make_links
from vkprovider.classroom.pods import (
    HINDRANCES_MAX,
    Assignment,
    LabletPod,
    give,
    hindrance,
    in_order,
    name_again,
    pods_in,
)
from vkprovider.classroom.preview import strangely_alike
from vkprovider.classroom.roster import Learner
from vkprovider.cli.lablet.links import address_of, portal_of, tell_links
from vkprovider.cli.shared import clock
from vkprovider.cli.shared.batch import Chosen
from vkprovider.cli.shared.output import Output, ProgressLine
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import NoPod, ask, check_alive, check_not_collecting, pod_name, read, wait_for
from vkprovider.cli.shared.times import local, moment, rfc3339, seconds_of, time_of
from vkprovider.lablet import names
from vkprovider.lablet.inputs import inputs_of
from vkprovider.lablet.shownname import tidied
from vkprovider.lablet.standing import State
from vkprovider.platform.errors import Conflict, Forbidden, NotFound, OutsideError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.messages import sentences
from vkprovider.platform.objects import Metadata

_ATTEMPTS: Final = 20
"""Attempts: the Pod's status may be written between our read and write, and the Pod must then be read again."""


_DEPLOYMENTS: Final = frozenset({"deployment", "deployments", "deploy", "deployment.apps", "deployments.apps"})


def pool_in(what: str) -> str:
    """Return the Deployment that is named instead of a POD; "" if it is a Pod."""
    kind, _, name = what.rpartition("/")
    return name if kind in _DEPLOYMENTS else ""


def assign(
    what: str,
    user: str | None,
    *,
    shown: str | None,
    until: str | None,
    since: str | None,
    from_file: str | None,
    refill: bool,
    yes: bool,
    dry_run: bool,
    links: bool,
    portal: str | None,
    output: Output,
    page: PageOptions,
    place: Place,
) -> None:
    """Assign a warm lablet to USER: POD, or a free one of a Deployment; or one to each learner of a file."""
    pool = pool_in(what)
    if (user is None) == (from_file is None):
        raise click.UsageError("name a USER, or a file with learners: --from-file names.csv")
    base = portal_of(portal) if links or portal else ""
    if from_file is not None:
        if shown:
            raise click.UsageError("--name is for one USER; a list has a column for names")
        if not pool:
            raise click.UsageError(f"--from-file takes the lablets of a pool; write deployment/NAME instead of {what}")
        from vkprovider.cli.lablet.giving import assign_all  # noqa: PLC0415 (it needs this module)

        assign_all(
            pool,
            from_file,
            until=until,
            since=since,
            refill=refill,
            yes=yes,
            dry_run=dry_run,
            links=links,
            portal=base,
            output=output,
            page=page,
            place=place,
        )
        return
    if refill or dry_run or output != "table":
        raise click.UsageError("--refill, --dry-run and -o are for --from-file")

    async def work(kube: KubeClient, namespace: str) -> tuple[LabletPod, Assignment, LinkRound]:
        wish = wish_of(Learner(user or "", tidied(shown or "")), since, until, await clock.asked(kube))
        await check_names(kube, namespace, [wish.user], yes=yes)
        if pool:
            pod = await _assign_one_of(kube, namespace, pool, wish)
        else:
            pod = await _assign_pod(kube, namespace, pod_name(what), wish)
        await name_again(kube, [(pod, wish)])
        made = await make_links(kube, namespace, [pod]) if links else LinkRound()
        await tell_doors(kube, namespace, [wish.user], await let_in(kube, namespace, [pod, *made.left]))
        return pod, wish, made

    _tell_assigned(*place.run(work), base)


def _tell_assigned(pod: LabletPod, wish: Assignment, made: LinkRound, portal: str) -> None:
    name, end = pod.metadata.name, pod.metadata.annotations.get(names.ANNOTATION_TIMESLOT_END, "")
    if wish.end and end != wish.end:
        advice = f"to move its end: kubectl lablet extend {name} --until {wish.end}"
        click.echo(f"Warning: pod/{name} was assigned to {wish.user} before; {advice}", err=True)
    click.echo(f"pod/{name} assigned to {wish.user}{f' until {end}' if end else ''}")
    for code in made.codes.values():
        click.echo(address_of(portal, code))
    tell_links(made)


async def check_names(kube: KubeClient, namespace: str, learners: Sequence[str], *, yes: bool) -> None:
    """Ask about learners whose names differ in case only from another's: a typo of the list, as a rule.

    Raises:
        Abort: The answer is no.
        UsageError: There is no terminal to ask at.
    """
    if yes:
        return
    try:
        pods = await pods_in(kube, namespace).list()
    except Forbidden:
        pods = []  # to assign a Pod takes no right to see the others
    if not (pairs := strangely_alike(learners, pods)):
        return
    said = ", ".join(f"{one} and {other}" for one, other in pairs)
    text = f"{said} differ in case only, and are different people to the cluster"
    if not sys.stdin.isatty():
        raise click.UsageError(f"{text}; mend the name, or add --yes if that is meant")
    click.confirm(f"{text}. Give each of them a lablet?", abort=True)


async def tell_doors(kube: KubeClient, namespace: str, learners: Iterable[str], closed: Iterable[str]) -> None:
    """Warn of learners who cannot open what they were given, or are nobody who attends the class.

    What was given is not told yet when this is called, so that it raises nothing.
    """
    try:
        unknown = await unknown_among(kube, namespace, learners)
    except OutsideError as error:
        unknown = f"whether all of them attend the class is not known: {error.message}"
    for text in (*closed, *([unknown] if unknown else [])):
        click.echo(f"Warning: {text}", err=True)


def wish_of(learner: Learner, since: str | None, until: str | None, now: datetime) -> Assignment:
    """Parse the arguments.

    Raises:
        UsageError: The user or the times are invalid.
    """
    start = moment(since, now) if since else None
    end = moment(until, start or now) if until else None
    if end is not None and end <= now:
        raise click.UsageError(f"--until {rfc3339(end)} is over already; name a later time")
    wish = Assignment(learner.user.strip(), rfc3339(start) if start else "", rfc3339(end) if end else "", learner.shown)
    faults = inputs_of(Metadata("", annotations=wish.annotations())).faults
    if not wish.user:
        faults = ("USER is empty", *faults)
    if faults:
        raise click.UsageError("; ".join(faults))
    return wish


async def _assign_pod(kube: KubeClient, namespace: str, name: str, wish: Assignment) -> LabletPod:
    for _ in range(_ATTEMPTS):
        try:
            pod = await read(kube, namespace, name)
        except NoPod as error:
            if await Resource(kube, DEPLOYMENTS, namespace).get(name) is None:
                raise
            way = f"kubectl lablet assign deployment/{name} {wish.user}"
            raise NoPod(f"{error.message}, but there is a Deployment: {way}") from None
        if pod.user == wish.user and pod.lasts:
            return pod  # by this command, which somebody ran before
        if why := hindrance(pod):
            lives = pod.lasts and (pod.user or pod.metadata.annotations.get(names.ANNOTATION_SESSION_ID))
            way = f"end that session first: kubectl lablet release {name}"
            advice = f"; {way if lives else 'choose another one: kubectl lablet list'}"
            raise click.ClickException(f"pod/{name} {why}{advice}")
        try:
            given = await give(kube, pod, wish)
        except Conflict:
            continue
        if any(o.controller for o in pod.metadata.owner_references) and not pod.metadata.labels.get(names.LABEL_POOL):
            _warn_of_owner(f"pod/{name} has no label {names.LABEL_POOL}")
        return given
    raise click.ClickException(f"pod/{name} is written to all the time; try again")


async def _assign_one_of(kube: KubeClient, namespace: str, name: str, wish: Assignment) -> LabletPod:
    """Assign the first free Pod of a Deployment that no other caller takes first, unless the learner has one."""
    try:
        deployment = await deployment_in(Resource(kube, DEPLOYMENTS, namespace), namespace, name)
    except GivingError as error:
        raise click.ClickException(str(error)) from None
    selector, definition = deployment.spec.selector, deployment.spec.template.spec.runtime_class_name
    for pod in await pods_in(kube, namespace).list():
        if pod.is_lablet and pod.user == wish.user and pod.lasts and pod.spec.runtime_class_name == definition:
            return pod  # by this command, which somebody ran before
    for _ in range(_ATTEMPTS):
        pods = [pod for pod in await pods_in(kube, namespace).list(labels=selector.text) if is_replica(pod)]
        free = [pod for pod in pods if not hindrance(pod)]
        if not free:
            raise click.ClickException(none_free(deployment, pods))
        for pod in in_order(free, random.Random()):
            try:
                given = await give(kube, pod, wish)
            except (Conflict, NotFound):
                continue
            if names.LABEL_POOL not in selector.keys:
                _warn_of_owner(f"deployment/{name} does not select by the label {names.LABEL_POOL}")
            return given
    raise click.ClickException(f"the free pods of deployment/{name} are written to all the time; try again")


def none_free(deployment: Deployment, pods: Iterable[LabletPod]) -> str:
    """Return why no lablet of a Deployment can be assigned, and what to do about it."""
    name, replicas = deployment.metadata.name, deployment.spec.replicas
    more = f"scale it up: {scale_command(name, deployment.metadata.namespace, replicas + 1)}"
    found = sorted(f"{pod.metadata.name} {hindrance(pod)}" for pod in pods)
    if not found:
        why = deployment.hindrance or "none was made yet"
        return f"deployment/{name} has no lablets: {why}{'' if replicas else f'; {more}'}"
    few = sentences(found, HINDRANCES_MAX)
    return f"deployment/{name} has no free lablet: {few}. Release one: kubectl lablet release POD; or {more}"


def _warn_of_owner(what: str) -> None:
    click.echo(
        f"Warning: {what}: a rollout can end this lablet while its learner works; a scale-down takes others first",
        err=True,
    )


def extend(*, by: str | None, until: str | None, chosen: Chosen) -> None:
    """Give the learner of each POD more time: move the end of the timeslot."""
    added = _wish(by, until)

    async def work(kube: KubeClient, pod: LabletPod, _: ProgressLine) -> str:
        now = clock.now()
        end = _end(until, now) if until is not None else None

        def request(pod: LabletPod) -> Mapping[str, str | None]:
            return {names.ANNOTATION_TIMESLOT_END: rfc3339(new_end(pod, added, end, now))}

        found = await ask(kube, pod, request)
        later = found.metadata.annotations[names.ANNOTATION_TIMESLOT_END]
        return f"pod/{pod.metadata.name}: the time of {pod.user} ends at {later} ({local(later, now)})"

    chosen.each(work, concerns=lambda pod: bool(pod.user))


def _wish(by: str | None, until: str | None) -> timedelta | None:
    """Return by how much the time is extended; None if its end is named, which is no fault of the command line.

    Raises:
        UsageError: Both or none are given, or one is invalid.
    """
    if (by is None) == (until is None):
        raise click.UsageError("say how long: --by 30m, or --until 16:00")
    if by is not None:
        if not (seconds := seconds_of(by)):
            raise click.UsageError(f"invalid duration {by!r} of --by (try 30m or 1h30m)")
        return timedelta(seconds=seconds)
    moment(until or "", clock.now())
    return None


def _end(until: str, now: datetime) -> datetime:
    """Return the new end that the command line names.

    Raises:
        UsageError: It is over.
    """
    end = moment(until, now)
    if end <= now:
        raise click.UsageError(f"--until {rfc3339(end)} is over already; name a later time")
    return end


def new_end(pod: LabletPod, added: timedelta | None, end: datetime | None, now: datetime) -> datetime:
    """Return the new end of a lablet's timeslot.

    Args:
        pod: The lablet's.
        added: What is added to the present end; None if `end` counts.
        end: The new end; None if `added` counts.
        now: The time.

    Raises:
        ClickException: There is nothing to extend, or it cannot be extended so far.
    """
    name, notes = pod.metadata.name, pod.metadata.annotations
    check_alive(pod)
    check_not_collecting(pod)
    if not pod.user:
        raise click.ClickException(
            f"pod/{name} has no learner, and so no end; to assign it: kubectl lablet assign {name} USER --until 90m"
        )
    present = time_of(notes.get(names.ANNOTATION_TIMESLOT_END, ""))
    if present is None and added is not None:
        session = notes.get(names.ANNOTATION_SESSION_ID)
        why = f"does not say when the time of {pod.user} ends" if session else f"has no end: that of {pod.user} is open"
        raise click.ClickException(f"pod/{name} {why}; name the new end: --until 16:00")
    later = end if end is not None else (present or now) + (added or timedelta())
    if present is not None and later <= present:
        raise click.ClickException(
            f"the time of {pod.user} with pod/{name} ends later already, at {rfc3339(present)}; name a later time, or "
            f"end it now: kubectl lablet collect {name}"
        )
    if later <= now:
        raise click.ClickException(f"{rfc3339(later)} is over already; name the new end of pod/{name}: --until 30m")
    _check_deadline(pod, later)
    return later


def _check_deadline(pod: LabletPod, later: datetime) -> None:
    """Refuse an end that the Pod does not live to see.

    Raises:
        ClickException: Its activeDeadlineSeconds, which Kubernetes allows to lower only, are over before.
    """
    seconds, began = pod.spec.active_deadline_seconds, time_of(pod.status.start_time or "")
    if seconds is None or began is None:
        return
    deadline = began + timedelta(seconds=seconds)
    if later > deadline:
        raise click.ClickException(
            f"pod/{pod.metadata.name} ends at {rfc3339(deadline)} by its activeDeadlineSeconds, which cannot be "
            f"raised; extend it until then at most: --until {rfc3339(deadline)}"
        )


def release(*, wait: bool, timeout_s: int, chosen: Chosen) -> None:
    """End the session of each POD's learner: collect and grade the work, archive the session, wipe the lab."""

    async def work(kube: KubeClient, pod: LabletPod, progress: ProgressLine) -> str:
        name = pod.metadata.name
        if hindrance := no_release(pod):
            raise click.ClickException(f"pod/{name} {hindrance}")
        found = pod if pod.ended else await ask(kube, pod, _request)
        if not wait:
            return f"pod/{name}: the session of {pod.user} is being ended"
        over = await wait_for(kube, found, is_released, timeout_s=timeout_s, what="released", progress=progress)
        return await _clear_away(kube, found, over, timeout_s, progress)

    chosen.each(work, concerns=lambda pod: bool(pod.user))


def no_release(pod: LabletPod) -> str:
    """Return why there is no session to end, and what to do; "" if there is one."""
    if pod.metadata.deletion_timestamp is not None:
        return "is being deleted; to follow it: kubectl lablet list --watch"
    if names.ANNOTATION_LENT_BY in pod.metadata.annotations and not pod.user:
        pool = pod.metadata.annotations[names.ANNOTATION_LENT_BY]
        return f"is on its way back to its pool {pool}; to follow it: kubectl lablet list --watch"
    if not pod.user:
        return f"has no learner; to delete it: kubectl delete pod {pod.metadata.name}"
    return ""


def _request(pod: LabletPod) -> Mapping[str, str | None]:
    """Return the annotations that end the learner's time; a lablet that still has its pool's label goes back there."""
    pool = pod.metadata.labels.get(names.LABEL_POOL, "")
    lent = {names.ANNOTATION_LENT_BY: pool} if pool else {}
    return {names.ANNOTATION_DESIRED_STATE: str(State.COLLECTING), **lent}


def is_released(pod: LabletPod | None) -> bool:
    """Return whether a lablet is free: gone, ended, or back in its pool."""
    if pod is None or pod.ended:
        return True
    return not pod.user and names.ANNOTATION_LENT_BY not in pod.metadata.annotations


async def _clear_away(
    kube: KubeClient, pod: LabletPod, over: LabletPod | None, timeout_s: int, progress: ProgressLine
) -> str:
    """Delete a Pod that has ended, unless it is a Job's; return what became of the lablet."""
    name, user = pod.metadata.name, pod.user
    if over is None:
        return f"pod/{name} is gone; the session of {user} has ended"
    if not over.ended:
        return f"pod/{name} is warm again in pool {over.metadata.labels.get(names.LABEL_POOL, '')}"
    ended = f"pod/{name} has ended ({over.status.phase})"
    if any(owner.controller and owner.kind == "Job" for owner in over.metadata.owner_references):
        return ended
    await end_link(kube, pod)
    await pods_in(kube, over.metadata.namespace).delete(name, uid=over.metadata.uid)
    await wait_for(kube, over, lambda now: now is None, timeout_s=timeout_s, what="deleted", progress=progress)
    return f"{ended} and was deleted"

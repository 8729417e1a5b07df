"""`kubectl lablet assign`: assign a warm lablet to a learner, so that no two learners get the same one."""

import random
from collections.abc import Iterable
from datetime import datetime
from typing import Final

import click

from vkprovider.classroom.assigning import HINDRANCES_MAX, Wish, give, hindrance, in_order
from vkprovider.classroom.deployments import (
    DEPLOYMENTS,
    Deployment,
    GivingError,
    deployment_in,
    is_replica,
    scale_command,
)
from vkprovider.classroom.pods import LabletPod, pods_in
from vkprovider.cli.shared import clock
from vkprovider.cli.shared.output.formats import Output
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import NoPod, pod_name, read
from vkprovider.cli.shared.times import moment, rfc3339
from vkprovider.lablet import names
from vkprovider.lablet.inputs import inputs_of
from vkprovider.platform.errors import Conflict, NotFound
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.objects import Metadata
from vkprovider.platform.wording import sentences

_ATTEMPTS: Final = 20
"""Attempts: the Pod's status may be written between our read and write, and the Pod must then be read again."""


def assign(
    what: str,
    user: str | None,
    *,
    until: str | None,
    since: str | None,
    from_file: str | None,
    refill: bool,
    output: Output,
    page: PageOptions,
    place: Place,
) -> None:
    """Assign a warm lablet to USER: POD, or a free one of a Deployment; or one to each learner of a file."""
    kind, slash, name = what.rpartition("/")
    pooled = bool(slash) and kind in {"deployment", "deployments", "deploy", "deployment.apps", "deployments.apps"}
    if (user is None) == (from_file is None):
        raise click.UsageError("name a USER, or a file with learners: --from-file names.csv")
    if from_file is not None:
        if not pooled:
            raise click.UsageError(f"--from-file takes the lablets of a pool; write deployment/NAME instead of {what}")
        from vkprovider.cli.lablet.classes.giving import assign_all  # noqa: PLC0415 (it needs this module)

        assign_all(name, from_file, until=until, since=since, refill=refill, output=output, page=page, place=place)
        return
    if refill or output != "table":
        raise click.UsageError("--refill and -o are for --from-file")
    if not pooled:
        name = pod_name(what)

    async def work(kube: KubeClient, namespace: str) -> tuple[LabletPod, Wish]:
        wish = wish_of(user or "", since, until, await clock.asked(kube))
        return await (_assign_one_of if pooled else _assign_pod)(kube, namespace, name, wish), wish

    pod, wish = place.run(work)
    click.echo(f"pod/{pod.metadata.name} assigned to {wish.user}{f' until {wish.end}' if wish.end else ''}")


def wish_of(user: str, since: str | None, until: str | None, now: datetime) -> Wish:
    """Parse the arguments.

    Raises:
        UsageError: The user or the times are invalid.
    """
    start = moment(since, now) if since else None
    end = moment(until, start or now) if until else None
    if end is not None and end <= now:
        raise click.UsageError(f"--until {rfc3339(end)} is over already; name a later time")
    wish = Wish(user.strip(), rfc3339(start) if start else "", rfc3339(end) if end else "")
    faults = inputs_of(Metadata("", annotations=wish.annotations())).faults
    if not wish.user:
        faults = ("USER is empty", *faults)
    if faults:
        raise click.UsageError("; ".join(faults))
    return wish


async def _assign_pod(kube: KubeClient, namespace: str, name: str, wish: Wish) -> LabletPod:
    for _ in range(_ATTEMPTS):
        try:
            pod = await read(kube, namespace, name)
        except NoPod as error:
            if await Resource(kube, DEPLOYMENTS, namespace).get(name) is None:
                raise
            way = f"kubectl lablet assign deployment/{name} {wish.user}"
            raise NoPod(f"{error.message}, but there is a Deployment: {way}") from None
        if why := hindrance(pod):
            lives = pod.user or pod.metadata.annotations.get(names.ANNOTATION_SESSION_ID)
            way = f"end that session first: kubectl lablet release {name}"
            advice = f"; {way if lives and not pod.ended else 'choose another one: kubectl lablet list'}"
            raise click.ClickException(f"pod/{name} {why}{advice}")
        try:
            given = await give(kube, pod, wish)
        except Conflict:
            continue
        if any(o.controller for o in pod.metadata.owner_references) and not pod.metadata.labels.get(names.LABEL_POOL):
            _warn_of_owner(f"pod/{name} has no label {names.LABEL_POOL}")
        return given
    raise click.ClickException(f"pod/{name} is written to all the time; try again")


async def _assign_one_of(kube: KubeClient, namespace: str, name: str, wish: Wish) -> LabletPod:
    """Assign the first free Pod of a Deployment that no other caller assigns first."""
    try:
        deployment = await deployment_in(Resource(kube, DEPLOYMENTS, namespace), namespace, name)
    except GivingError as error:
        raise click.ClickException(str(error)) from None
    selector = deployment.spec.selector
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

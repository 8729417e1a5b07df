"""`kubectl lablet assign --from-file`: each learner of a list gets a lablet of a pool, which gets smaller by it."""

import asyncio
import time
from collections.abc import Awaitable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import click
import msgspec

from vkprovider.api import names
from vkprovider.api.errors import Conflict, NotFound
from vkprovider.api.objects import Metadata
from vkprovider.api.wording import count
from vkprovider.cli.lablet.assign import give, wish_of
from vkprovider.cli.lablet.classes.ledger import (
    GIVING,
    Await,
    Begin,
    Done,
    Gift,
    Give,
    Pool,
    Settle,
    next_step,
    outcome,
    shortage,
)
from vkprovider.cli.lablet.classes.sources import read_text
from vkprovider.cli.lablet.deployments import DEPLOYMENTS, Deployment, deployment_in
from vkprovider.cli.lablet.login import login_url
from vkprovider.cli.shared.devices import ports_of
from vkprovider.cli.shared.output.formats import Column, Listing, Output
from vkprovider.cli.shared.page.asking import PageRefused, open_page
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import LabletPod, pods_in
from vkprovider.cli.shared.times import local
from vkprovider.concurrency import at_most
from vkprovider.domain.classroom.roster import RosterError, learners_in
from vkprovider.kube.client import KubeClient
from vkprovider.kube.resources import Resource, kind

_LOGINS_AT_ONCE: Final = 8
_LOOK_EVERY_S: Final = 0.05
_PATIENCE_S: Final = 30.0
"""How long nothing may happen: a ReplicaSet releases a Pod within a second, and others who write end soon."""
_STEPS_EACH: Final = 20
"""The most steps for each learner, which are enough also if others write at the same time."""


class _Target(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""


class _ScalerSpec(msgspec.Struct, frozen=True, rename="camel"):
    scale_target_ref: _Target = _Target()


class _Scaler(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _ScalerSpec = _ScalerSpec()


class HandOut(msgspec.Struct, frozen=True):
    """A learner's lablet, as `-o json` shows it; what is unknown is empty.

    Attributes:
        learner: Who has it.
        name: Of its Pod; empty for a learner who got none.
        until: The end of the timeslot that the Pod names.
        access: Where the learner begins: the login URL, complete if the user may log in as the learner; else the ports,
            else the command for a console.
    """

    learner: str
    name: str
    until: str
    access: str


_SCALERS: Final = kind("/apis/autoscaling/v2", "horizontalpodautoscalers", _Scaler)
_gifts: Final = msgspec.json.Decoder(tuple[Gift, ...])
LISTING: Final[Listing[HandOut]] = Listing(
    kind="LabletHandOut",
    row=HandOut,
    columns=(
        Column("LEARNER", lambda row: row.learner),
        Column("UNTIL", lambda row: local(row.until, datetime.now(UTC))),
        Column("ACCESS", lambda row: row.access),
        Column("NAME", lambda row: row.name),
    ),
    name=lambda row: f"pod/{row.name}" if row.name else "",
)


def assign_all(
    deployment: str,
    source: str,
    *,
    until: str | None,
    since: str | None,
    refill: bool,
    output: Output,
    page: PageOptions,
    place: Place,
) -> None:
    """Give each learner of a list a lablet of a pool, unless the learner has one, and print the hand-out."""
    try:
        learners, now = learners_in(read_text(source), source), datetime.now(UTC)
    except RosterError as error:
        raise click.ClickException(str(error)) from None
    wishes = [wish_of(learner, since, until, now) for learner in learners]

    async def work(kube: KubeClient, namespace: str) -> tuple[Done, list[str], dict[str, str]]:
        done, left = await give_all(kube, namespace)
        return done, left, await _logins(kube, namespace, place, page, done.given)

    async def give_all(kube: KubeClient, namespace: str) -> tuple[Done, list[str]]:
        found, last_at, steps = Resource(kube, DEPLOYMENTS, namespace), time.monotonic(), 0
        if not refill:
            await _check_scaler(kube, namespace, deployment)
        while True:
            pool, meta = await _pool(found, namespace, deployment)
            pods = await pods_in(kube, namespace).list()
            step = next_step(pool, pods, wishes, int(time.time()), refill=refill)
            if isinstance(step, Done):
                return step, shortage(step, pool, namespace, refill=refill)
            late = time.monotonic() - last_at > _PATIENCE_S
            if isinstance(step, Await):
                if late:
                    done = outcome(pool, pods, wishes)
                    return done, [*shortage(done, pool, namespace, refill=refill), _unsettled(deployment)]
                await asyncio.sleep(_LOOK_EVERY_S)
                continue
            if steps > _STEPS_EACH * len(learners):
                raise click.ClickException(f"deployment/{deployment} is written to all the time; try again")
            if isinstance(step, Give):
                writes: list[Awaitable[object]] = [give(kube, pod, wish) for pod, wish in step.pairs]
            else:
                how: Any = {"uid": meta.uid, "resource_version": meta.resource_version}
                writes = [found.patch(deployment, _change(pool, step), **how)]
            if await _one_succeeds(writes):
                last_at = time.monotonic()
            steps += 1

    done, left, logins = place.run(work)
    rows = [_hand_out(learner, done.given.get(learner), logins.get(learner, "")) for learner in learners]
    LISTING.show(rows, output, nothing="")
    if left:
        raise click.ClickException(". Besides, ".join(left))


async def _one_succeeds(writes: Iterable[Awaitable[object]]) -> bool:
    """Write, and return whether not every object was written by somebody else before, or is gone.

    Raises:
        OutsideError: The API server refused or did not answer.
    """
    results = await asyncio.gather(*writes, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Conflict | NotFound):
            raise result
    return any(not isinstance(result, BaseException) for result in results)


async def _check_scaler(kube: KubeClient, namespace: str, deployment: str) -> None:
    """Check that nobody else sets `replicas`.

    Raises:
        ClickException: A HorizontalPodAutoscaler does.
    """
    for scaler in await Resource(kube, _SCALERS, namespace).list():
        target = scaler.spec.scale_target_ref
        if (target.kind, target.name) == ("Deployment", deployment):
            name = scaler.metadata.name
            raise click.ClickException(
                f"horizontalpodautoscaler/{name} sets the replicas of deployment/{deployment}: give with --refill, "
                f"which leaves them as they are, or delete it first: kubectl delete hpa {name} -n {namespace}"
            )


async def _pool(deployments: Resource[Deployment], namespace: str, name: str) -> tuple[Pool, Metadata]:
    """Read a pool.

    Raises:
        ClickException: There is none, or its Pods would not leave it.
    """
    found = await deployment_in(deployments, namespace, name)
    labels = found.spec.selector.match_labels
    if names.LABEL_POOL not in labels or found.spec.selector.match_expressions:
        raise click.ClickException(
            f"deployment/{name} does not select by matchLabels with {names.LABEL_POOL} alone: a lablet that is given "
            "would stay in it, and be deleted with it. Make it again with that label in selector and template"
        )
    text = found.metadata.annotations.get(GIVING, "")
    try:
        gifts = _gifts.decode(text) if text else ()
    except msgspec.MsgspecError as error:
        raise click.ClickException(
            f"annotation {GIVING} of deployment/{name} cannot be read: {error}. If nobody is assigning now, remove it: "
            f"kubectl annotate deployment {name} -n {namespace} {GIVING}-"
        ) from None
    known = found.status.observed_generation >= found.metadata.generation
    settled = known and found.status.replicas <= found.spec.replicas
    definition = found.spec.template.spec.runtime_class_name
    return Pool(name, definition, labels, found.spec.replicas, gifts, settled, found.hindrance), found.metadata


def _change(pool: Pool, step: Begin | Settle) -> dict[str, Any]:
    """Return the patch of the Deployment that a step is."""
    if isinstance(step, Begin):
        return {"metadata": {"annotations": {GIVING: msgspec.json.encode(step.gifts).decode()}}}
    spec = {"spec": {"replicas": max(0, pool.replicas - step.lower)}} if step.lower else {}
    return {"metadata": {"annotations": {GIVING: None}}, **spec}


async def _logins(
    kube: KubeClient, namespace: str, place: Place, page: PageOptions, given: Mapping[str, LabletPod]
) -> dict[str, str]:
    """Return the complete login URLs of learners with a session, as far as the user may have them; say why not."""
    found: dict[str, str] = {}
    with_session = {
        learner: pod
        for learner, pod in given.items()
        if pod.metadata.annotations.get(names.ANNOTATION_SESSION_LOGIN_URL)
    }
    if not with_session:
        return found
    refusals: list[str] = []
    try:
        async with open_page(kube, namespace, place, page) as asked:

            async def ask(learner: str) -> None:
                try:
                    found[learner] = await login_url(asked, with_session[learner].metadata.uid)
                except PageRefused as refusal:
                    refusals.append(refusal.message)

            await at_most(_LOGINS_AT_ONCE, ask, with_session)
    except click.ClickException as error:
        refusals.append(error.message)
    if refusals:
        lacking = count(len(with_session) - len(found), "login URL")
        click.echo(f"{lacking} without the secret part, as the Pods show them: {refusals[0]}", err=True)
    return found


def _hand_out(learner: str, pod: LabletPod | None, login: str) -> HandOut:
    if pod is None:
        return HandOut(learner, "", "", "")
    notes = pod.metadata.annotations
    ports = [f"{port.device} {port.access} {port.address}:{port.port}" for port in ports_of(pod, {}) if port.opened]
    login = login or notes.get(names.ANNOTATION_SESSION_LOGIN_URL, "")
    access = login or "; ".join(ports) or f"kubectl lablet console {pod.metadata.name} DEVICE"
    return HandOut(learner, pod.metadata.name, notes.get(names.ANNOTATION_TIMESLOT_END, ""), access)


def _unsettled(deployment: str) -> str:
    return (
        f"the ReplicaSet of deployment/{deployment} has not followed for {_PATIENCE_S:.0f} s, so that giving went "
        f"no further; see: kubectl describe deployment {deployment}. Then run the same command again"
    )

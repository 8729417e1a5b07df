"""Each learner of a list gets a lablet of a pool, which gets smaller by it."""

import asyncio
import time
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vkprovider.classroom.access import let_in
from vkprovider.classroom.deployments import DEPLOYMENTS, Deployment, GivingError, deployment_in, scaler_of
from vkprovider.classroom.ledger import (
    GIVING,
    Await,
    Begin,
    DeploymentPool,
    Gift,
    Give,
    NothingLeft,
    Settle,
    next_step,
    outcome,
)
from vkprovider.classroom.links import LinkRound, make_links
from vkprovider.classroom.pods import Assignment, give, name_again, pods_in
from vkprovider.classroom.preview import GivingPreview, preview_of
from vkprovider.lablet import names
from vkprovider.platform.errors import Conflict, NotFound
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.objects import Metadata

_LOOK_EVERY_S: Final = 0.05
_PATIENCE_S: Final = 30.0
"""How long nothing may happen: a ReplicaSet releases a Pod within a second, and others who write end soon."""
_STEPS_EACH: Final = 20
"""The most steps for each learner, which are enough also if others write at the same time."""


class Given(NamedTuple):
    """What became of a list.

    Attributes:
        done: Who has which lablet, and who has none.
        pool: The pool as it was last seen.
        faults: Why giving went no further; nothing if it came to its end.
        closed: Who has a lablet, and no right to open it, and why: sentences; see `access.let_in`.
        links: What became of their links, if they were to have some.
    """

    done: NothingLeft
    pool: DeploymentPool
    faults: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    links: LinkRound = LinkRound()


_gifts: Final = msgspec.json.Decoder(tuple[Gift, ...])


async def give_all(
    kube: KubeClient,
    namespace: str,
    deployment: str,
    wishes: Sequence[Assignment],
    *,
    refill: bool,
    links: bool = False,
) -> Given:
    """Give each learner a lablet of a pool, unless the learner has one, and let each into the own.

    Args:
        kube: The API server.
        namespace: Of the pool.
        deployment: Its name.
        wishes: Who is to have one.
        refill: Whether the pool makes new ones instead of getting smaller.
        links: Whether each learner gets a link, too.

    Raises:
        GivingError: The pool cannot be given from.
    """
    found, last_at, steps = Resource(kube, DEPLOYMENTS, namespace), time.monotonic(), 0
    if not refill:
        await _check_scaler(kube, namespace, deployment)
    while True:
        pool, meta = await _pool(found, namespace, deployment)
        pods = await pods_in(kube, namespace).list()
        step = next_step(pool, pods, wishes, int(kube.clock.wall()), refill=refill)
        late = time.monotonic() - last_at > _PATIENCE_S
        if isinstance(step, NothingLeft) or (isinstance(step, Await) and late):
            done = step if isinstance(step, NothingLeft) else outcome(pool, pods, wishes)
            faults = () if isinstance(step, NothingLeft) else (_unsettled(deployment),)
            given = list(done.given.values())
            await name_again(kube, [(done.given[wish.user], wish) for wish in wishes if wish.user in done.given])
            made = await make_links(kube, namespace, given) if links else LinkRound()
            return Given(done, pool, faults, await let_in(kube, namespace, [*given, *made.left]), made)
        if isinstance(step, Await):
            await asyncio.sleep(_LOOK_EVERY_S)
            continue
        if steps > _STEPS_EACH * len(wishes):
            raise GivingError(f"deployment/{deployment} is written to all the time; try again")
        if isinstance(step, Give):
            writes: list[Awaitable[object]] = [give(kube, pod, wish) for pod, wish in step.pairs]
        else:
            how: Any = {"uid": meta.uid, "resource_version": meta.resource_version}
            writes = [found.patch(deployment, _change(pool, step), **how)]
        if await _one_succeeds(writes):
            last_at = time.monotonic()
        steps += 1


async def preview(
    kube: KubeClient, namespace: str, deployment: str, wishes: Sequence[Assignment], *, refill: bool
) -> GivingPreview:
    """Return what `give_all` would do, and write nothing.

    Raises:
        GivingError: The pool cannot be given from.
        OutsideError: It cannot be read.
    """
    if not refill:
        await _check_scaler(kube, namespace, deployment)
    pool, _ = await _pool(Resource(kube, DEPLOYMENTS, namespace), namespace, deployment)
    return preview_of(pool, await pods_in(kube, namespace).list(), wishes, refill=refill)


async def _one_succeeds(writes: Iterable[Awaitable[object]]) -> bool:
    """Write, and return whether not every object was written by somebody else before, or is gone."""
    results = await asyncio.gather(*writes, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Conflict | NotFound):
            raise result
    return any(not isinstance(result, BaseException) for result in results)


async def _check_scaler(kube: KubeClient, namespace: str, deployment: str) -> None:
    """Check that nobody else sets `replicas`.

    Raises:
        GivingError: A HorizontalPodAutoscaler does.
    """
    if name := await scaler_of(kube, namespace, deployment):
        raise GivingError(
            f"horizontalpodautoscaler/{name} sets the replicas of deployment/{deployment}: give with --refill, "
            f"which leaves them as they are, or delete it first: kubectl delete hpa {name} -n {namespace}"
        )


async def _pool(deployments: Resource[Deployment], namespace: str, name: str) -> tuple[DeploymentPool, Metadata]:
    """Read a pool.

    Raises:
        GivingError: There is none, or its Pods would not leave it.
    """
    found = await deployment_in(deployments, namespace, name)
    labels = found.spec.selector.match_labels
    if not found.selects_by_pool:
        raise GivingError(
            f"deployment/{name} does not select by matchLabels with {names.LABEL_POOL} alone: a lablet that is given "
            "would stay in it, and be deleted with it. Make it again with that label in selector and template"
        )
    text = found.metadata.annotations.get(GIVING, "")
    try:
        gifts = _gifts.decode(text) if text else ()
    except msgspec.MsgspecError as error:
        raise GivingError(
            f"annotation {GIVING} of deployment/{name} cannot be read: {error}. If nobody is assigning now, remove it: "
            f"kubectl annotate deployment {name} -n {namespace} {GIVING}-"
        ) from None
    known = found.status.observed_generation >= found.metadata.generation
    settled = known and found.status.replicas <= found.spec.replicas
    definition = found.spec.template.spec.runtime_class_name
    return DeploymentPool(
        name, definition, labels, found.spec.replicas, gifts, settled, found.hindrance
    ), found.metadata


def _change(pool: DeploymentPool, step: Begin | Settle) -> dict[str, Any]:
    """Return the patch of the Deployment that a step is."""
    if isinstance(step, Begin):
        return {"metadata": {"annotations": {GIVING: msgspec.json.encode(step.gifts).decode()}}}
    spec = {"spec": {"replicas": max(0, pool.replicas - step.lower)}} if step.lower else {}
    return {"metadata": {"annotations": {GIVING: None}}, **spec}


def _unsettled(deployment: str) -> str:
    return (
        f"the ReplicaSet of deployment/{deployment} has not followed for {_PATIENCE_S:.0f} s, so that giving went "
        f"no further; see: kubectl describe deployment {deployment}. Then run the same command again"
    )

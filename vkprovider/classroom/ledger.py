"""What a class still has to be given: a pure function of the pool, its Deployment and the Pods of the namespace.

A pool's Deployment says which lablets are being given, in its annotation `cli.vkprovider.io/giving`. Each step is one
write, guarded by a resourceVersion, and after any of them it is clear what is left to do:

    Begin    write down which free Pods are for which learners            (the Deployment)
    Give     take these Pods out of the pool and name their learners, each in one patch   (the Pods)
    Settle   lower `replicas` by those that left and forget what was written down, in one patch   (the Deployment)

A few lablets are given at a time, by all who give. A ReplicaSet knows the Pods as they were a moment ago, and may end
any that it takes for its own when it has too many. So `replicas` is lowered only when it has released the Pods that
were given, and the next ones are given only when it has no more Pods than it should. Each caller goes on with what is
being given, also for one who has died.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from vkprovider.classroom.deployments import is_replica, scale_command
from vkprovider.classroom.pods import HINDRANCES_MAX, Assignment, LabletPod, hindrance, in_order
from vkprovider.lablet import names
from vkprovider.platform.messages import sentences

GIVING: Final = "cli.vkprovider.io/giving"
"""The annotation of a Deployment that says which lablet is being given."""
AT_ONCE: Final = 8
"""The most lablets that are given together: controllers of Deployments make 20 calls a second, and about nine for each
change of `replicas`; but until it is changed, the ReplicaSet makes a new lablet for each that was given.
"""
_STALE_S: Final = 600
"""A lablet that nobody has gone on giving for so many seconds is not given."""


class Gift(msgspec.Struct, frozen=True):
    """A lablet that is being given.

    Attributes:
        wish: Who is to have it, and for how long.
        pod: The name of its Pod.
        uid: The UID of its Pod.
        at: When it began (Unix seconds).
        refill: Whether the pool makes a new one instead of getting smaller.
    """

    wish: Assignment
    pod: str
    uid: str
    at: int
    refill: bool = False


class DeploymentPool(msgspec.Struct, frozen=True):
    """A pool as its Deployment shows it.

    Attributes:
        name: Of the Deployment, for messages.
        definition: Of its lablets.
        selector: The labels that all of its Pods have.
        replicas: How many free lablets it is to have.
        gifts: What is being given.
        settled: Whether its status says that its controllers know its present form, and have no more Pods than they
            should.
        hindrance: Why its ReplicaSet makes no lablets; "" if nothing is known to hinder it.
    """

    name: str
    definition: str
    selector: Mapping[str, str]
    replicas: int
    gifts: tuple[Gift, ...] = ()
    settled: bool = True
    hindrance: str = ""


class Begin(msgspec.Struct, frozen=True):
    """Write down what is given next."""

    gifts: tuple[Gift, ...]


class Give(msgspec.Struct, frozen=True):
    """Take Pods out of the pool, each for its learner; these writes need no order."""

    pairs: tuple[tuple[LabletPod, Assignment], ...]


class Settle(msgspec.Struct, frozen=True):
    """Forget what is being given.

    Attributes:
        lower: Lower `replicas` by so many with it.
    """

    lower: int


class Await(msgspec.Struct, frozen=True):
    """Look again: the ReplicaSet has not released the Pods yet, or has more than it should."""


class NothingLeft(msgspec.Struct, frozen=True):
    """Nothing is left to do, or can be done.

    Attributes:
        given: Learner: the lablet.
        without: Learners for whom there is no free lablet.
        hindrances: Why the other lablets of the pool are not free, one text for each, and why there are no more.
    """

    given: Mapping[str, LabletPod]
    without: tuple[str, ...] = ()
    hindrances: tuple[str, ...] = ()


Step = Begin | Give | Settle | Await | NothingLeft


def next_step(
    pool: DeploymentPool, pods: Sequence[LabletPod], wishes: Sequence[Assignment], now: int, *, refill: bool
) -> Step:
    """Return the next step, so that each learner has one lablet of the pool's definition.

    Args:
        pool: The pool, read before the Pods.
        pods: All Pods of its namespace.
        wishes: Who is to have one.
        now: Unix seconds.
        refill: Whether the pool makes new ones instead of getting smaller.
    """
    having = having_in(pool, pods)
    if pool.gifts:
        return _go_on(pool, pods, having, now)
    missing = [wish for wish in wishes if wish.user not in having]
    free = in_order([pod for pod in pods if is_free_in(pool, pod)])
    if not missing or not free:
        return outcome(pool, pods, wishes)
    if not pool.settled or sum(_is_in(pool, pod) and not pod.over for pod in pods) > pool.replicas:
        return Await()
    pairs = list(zip(missing, free, strict=False))[:AT_ONCE]
    return Begin(tuple(Gift(wish, pod.metadata.name, pod.metadata.uid, now, refill) for wish, pod in pairs))


def _go_on(pool: DeploymentPool, pods: Sequence[LabletPod], having: Mapping[str, LabletPod], now: int) -> Step:
    """Return the next step with what is being given: each of it is given, or cannot be, and then it is settled."""
    by_uid = {pod.metadata.uid: pod for pod in pods}
    lower, kept, missing = 0, False, list[tuple[LabletPod, Assignment]]()
    for gift in pool.gifts:
        pod = by_uid.get(gift.uid)
        if pod is None or pod.over:
            continue
        if pod.user == gift.wish.user and names.LABEL_POOL not in pod.metadata.labels:
            if not gift.refill:
                lower += 1
                kept |= any(owner.controller for owner in pod.metadata.owner_references)
        elif is_free_in(pool, pod) and gift.wish.user not in having and now - gift.at <= _STALE_S:
            missing.append((pod, gift.wish))
    if missing:
        return Give(tuple(missing))
    return Await() if kept else Settle(lower)


def outcome(pool: DeploymentPool, pods: Sequence[LabletPod], wishes: Sequence[Assignment]) -> NothingLeft:
    """Return the learners with a lablet, and those without; for the arguments see `next_step`."""
    having, learners = having_in(pool, pods), [wish.user for wish in wishes]
    mine = [pod for pod in pods if _is_in(pool, pod)]
    living = [pod for pod in mine if not pod.over] or mine  # what goes will not be free, and hides what may be
    why = sorted(f"pod/{pod.metadata.name} {hindrance(pod) or 'is being given to another learner'}" for pod in living)
    if pool.hindrance:
        why.append(pool.hindrance)
    given = {learner: having[learner] for learner in learners if learner in having}
    return NothingLeft(given, tuple(learner for learner in learners if learner not in having), tuple(why))


def shortage(done: NothingLeft, pool: DeploymentPool, namespace: str, *, refill: bool) -> list[str]:
    """Name the learners without a lablet, the reason, and the remedy; nothing if everybody has one."""
    if not done.without:
        return []
    few = sentences(done.hindrances, HINDRANCES_MAX) or "none was made yet"
    first = f"Scale it up: {scale_command(pool.name, namespace, len(done.without))}; wait"
    if refill or pool.replicas >= len(done.without):
        first = "Mend that, and wait" if pool.hindrance else "Wait"
    what = f"{', '.join(done.without)} got none: deployment/{pool.name} has no free lablet: {few}"
    return [f"{what}. {first} until `kubectl lablet list` shows enough that are free, and run the same command again"]


def is_free_in(pool: DeploymentPool, pod: LabletPod) -> bool:
    """Return whether a lablet of a pool can be given."""
    return _is_in(pool, pod) and not hindrance(pod)


def _is_in(pool: DeploymentPool, pod: LabletPod) -> bool:
    return is_replica(pod) and pool.selector.items() <= pod.metadata.labels.items()


def having_in(pool: DeploymentPool, pods: Sequence[LabletPod]) -> dict[str, LabletPod]:
    """Return the lablet of each learner, of the pool's definition; of several, the first by name.

    One that is being collected is left out: it goes back to its pool, and its learner's link with it.
    """
    mine = [pod for pod in pods if pod.is_lablet and pod.user and pod.lasts]
    mine = [pod for pod in mine if pod.spec.runtime_class_name == pool.definition]
    return {pod.user: pod for pod in sorted(mine, key=lambda pod: pod.metadata.name, reverse=True)}

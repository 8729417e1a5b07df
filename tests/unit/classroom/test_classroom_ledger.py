"""Which lablet each learner of a class gets, by a model of the API server, a ReplicaSet and callers that die."""

import itertools
import random
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.cli.lablet_pod import lablet_pod
from vkprovider.classroom.ledger import (
    AT_ONCE,
    Await,
    Begin,
    DeploymentPool,
    Gift,
    Give,
    NothingLeft,
    Settle,
    Step,
    next_step,
    shortage,
)
from vkprovider.classroom.pods import Assignment, LabletPod, hindrance

POOL, USER, LENT = "vkprovider.io/pool", "vkprovider.io/username", "vkprovider.io/lent-by"
DESIRED, STATE, LEARNER = "vkprovider.io/desired-state", "vkprovider.io/state", "vkprovider.io/learner"
COLLECTED = {DESIRED: "COLLECTING"}
LABELS = {"app": "netlab", POOL: "warm"}
OWNER = [{"uid": "rs", "kind": "ReplicaSet", "name": "warm-1", "controller": True}]
NOW = 1_800_000_000


def pod(
    name: str,
    user: str = "",
    *,
    owned: bool = True,
    ready: bool = True,
    notes: dict[str, str] | None = None,
    **more: Any,
) -> LabletPod:
    labels = {"app": "netlab"} if user else LABELS
    notes = {**({USER: user, LENT: "warm"} if user else {}), **(notes or {})}
    owners = OWNER if owned else []
    return lablet_pod(name, notes=notes, labels=labels, uid=name, ownerReferences=owners, ready=ready, **more)


def pool(*gifts: Gift, replicas: int = 3) -> DeploymentPool:
    return DeploymentPool("warm", "netlab", LABELS, replicas, gifts)


def gift(learner: str, name: str, *, ago_s: int = 0, refill: bool = False) -> Gift:
    return Gift(Assignment(learner), name, name, NOW - ago_s, refill)


def give(*pairs: tuple[str, str]) -> Give:
    return Give(tuple((pod(name), Assignment(learner)) for name, learner in pairs))


ALICE, BOB, CAROL = gift("alice", "a"), gift("bob", "b"), gift("carol", "a")
CLASS = (Assignment("alice"), Assignment("bob"))


@pytest.mark.parametrize(
    ("giving", "pods", "step"),
    [
        ((), [pod("b"), pod("a")], Begin((ALICE, BOB))),
        ((), [pod("a")], Begin((ALICE,))),
        ((), [pod("a", ready=False), pod("b")], Begin((gift("alice", "b"),))),
        ((), [pod("a", "alice"), pod("b")], Begin((BOB,))),
        ((ALICE,), [pod("a"), pod("b")], give(("a", "alice"))),
        ((ALICE,), [pod("a", "alice"), pod("b")], Await()),
        ((ALICE,), [pod("a", "alice", owned=False), pod("b")], Settle(1)),
        ((ALICE,), [pod("a"), pod("c", "alice")], Settle(0)),  # got another one meanwhile
        ((ALICE,), [pod("a", "bob")], Settle(0)),  # another one got it
        ((ALICE,), [pod("a", ready=False)], Settle(0)),
        ((ALICE,), [pod("b")], Settle(0)),
        ((ALICE,), [pod("a", deletionTimestamp="2026-01-31T11:00:00Z")], Settle(0)),
        ((gift("alice", "a", refill=True),), [pod("a", "alice")], Settle(0)),
        # of several, all that can be given are given before anything is settled
        ((ALICE, BOB), [pod("a"), pod("b")], give(("a", "alice"), ("b", "bob"))),
        ((ALICE, BOB), [pod("a", "alice"), pod("b")], give(("b", "bob"))),
        ((ALICE, BOB), [pod("a", "alice", owned=False), pod("b", "bob")], Await()),
        ((ALICE, BOB), [pod("a", "alice", owned=False), pod("b", "bob", owned=False)], Settle(2)),
        ((ALICE, BOB), [pod("a", ready=False), pod("b", "bob", owned=False)], Settle(1)),
        ((ALICE, gift("bob", "b", refill=True)), [pod("a", "alice", owned=False), pod("b", "bob")], Settle(1)),
        # whose lablet is being collected gets another one: it goes back to its pool
        ((), [pod("x", "alice", notes=COLLECTED), pod("a"), pod("b")], Begin((ALICE, BOB))),
        ((), [pod("x", "alice", notes={STATE: "GRADING"}), pod("a"), pod("b")], Begin((ALICE, BOB))),
        ((ALICE,), [pod("x", "alice", notes=COLLECTED), pod("a")], give(("a", "alice"))),
        # another caller's: it is gone on with, unless its caller ended long ago
        ((CAROL,), [pod("a"), pod("b")], give(("a", "carol"))),
        ((CAROL,), [pod("a", "carol", owned=False)], Settle(1)),
        ((gift("carol", "a", ago_s=601),), [pod("a")], Settle(0)),
        ((gift("carol", "a", ago_s=601),), [pod("a", "carol", owned=False)], Settle(1)),
    ],
)
def test_the_next_step(giving: tuple[Gift, ...], pods: list[LabletPod], step: Step) -> None:
    assert next_step(pool(*giving), pods, CLASS, NOW, refill=False) == step


def test_the_oldest_is_given_first() -> None:
    """Of those that are too many a ReplicaSet ends the youngest."""
    old, young = (pod(name, creationTimestamp=f"2026-01-31T1{hour}:00:00Z") for name, hour in (("z", 0), ("a", 1)))
    step = next_step(pool(), [young, old], [Assignment("alice")], NOW, refill=False)
    assert step == Begin((gift("alice", "z"),))


def test_only_a_few_are_given_at_a_time() -> None:
    """Until `replicas` is lowered, the ReplicaSet makes a new lablet for each."""
    wishes, pods = [Assignment(f"l{n:02}") for n in range(24)], [pod(f"p{n:02}") for n in range(24)]
    step = next_step(pool(replicas=24), pods, wishes, NOW, refill=False)
    assert step == Begin(tuple(gift(f"l{n:02}", f"p{n:02}") for n in range(AT_ONCE)))


def test_nothing_is_given_while_the_replicaset_has_too_many() -> None:
    """It could end the Pod that is given: it knows the Pods as they were a moment ago."""
    busy = msgspec.structs.replace(pool(), settled=False)
    assert next_step(busy, [pod("a")], CLASS, NOW, refill=False) == Await()
    assert next_step(pool(replicas=1), [pod("a"), pod("b")], CLASS, NOW, refill=False) == Await()
    assert isinstance(next_step(busy, [pod("a", ready=False)], CLASS, NOW, refill=False), NothingLeft)


def test_who_has_a_lablet_keeps_it_and_who_has_none_is_told_why() -> None:
    pods = [pod("a", "alice"), pod("b", ready=False), pod("x", "carol")]
    done = next_step(pool(), pods, CLASS, NOW, refill=False)
    assert isinstance(done, NothingLeft)
    assert ({learner: each.metadata.name for learner, each in done.given.items()}, done.without) == (
        {"alice": "a"},
        ("bob",),
    )
    assert done.hindrances == ("pod/b is not Ready",)


RETURNING = {"containerStatuses": [{"name": "lab", "state": {"waiting": {"reason": "ReturningToPool"}}}]}


@pytest.mark.parametrize(
    ("notes", "status", "lasts"),
    [
        ({}, {}, True),
        ({DESIRED: "STOPPED", STATE: "STOPPED"}, {}, True),
        ({DESIRED: "collecting", STATE: "RUNNING"}, {}, False),
        ({DESIRED: "TERMINATED"}, {}, False),
        ({STATE: "COLLECTING"}, {}, False),
        ({STATE: "GRADING"}, {}, False),
        ({STATE: "STOPPING"}, {}, False),
        ({STATE: "INSTANTIATING", LEARNER: "alice"}, RETURNING, False),
        ({STATE: "INSTANTIATING"}, RETURNING, True),  # named to the next learner while it is wiped
        ({}, {"phase": "Failed"}, False),
    ],
)
def test_whose_time_is_over_has_the_lablet_no_more(
    notes: dict[str, str], status: dict[str, Any], *, lasts: bool
) -> None:
    one = pod("a", "alice", notes=notes, status=status)
    assert one.lasts is lasts
    assert (hindrance(one) == "is assigned to alice") is lasts
    done = next_step(pool(), [one], CLASS, NOW, refill=False)
    assert isinstance(done, NothingLeft)
    assert ("alice" in done.given) is lasts


@pytest.mark.parametrize(
    ("replicas", "hindrance", "pods", "says"),
    [
        (
            0,
            "its replicas are 0",
            [],
            "its replicas are 0. Scale it up: kubectl scale deployment/warm --replicas=2 -n friday; wait",
        ),
        (1, "", [pod("a", ready=False)], "pod/a is not Ready. Scale it up: kubectl scale deployment/warm --replicas=2"),
        (2, "", [pod("a", ready=False)], "pod/a is not Ready. Wait until `kubectl lablet list` shows enough"),
        (2, "", [], "none was made yet. Wait until"),
        (2, "its ReplicaSet makes no more: no", [], "its ReplicaSet makes no more: no. Mend that, and wait until"),
        (
            1,
            "its ReplicaSet makes no more: no",
            [pod("a", ready=False)],
            "pod/a is not Ready; its ReplicaSet makes no more: no. Sc",
        ),
    ],
)
def test_who_got_none_is_told_what_to_do(replicas: int, hindrance: str, pods: list[LabletPod], says: str) -> None:
    short = msgspec.structs.replace(pool(replicas=replicas), hindrance=hindrance)
    done = next_step(short, pods, CLASS, NOW, refill=False)
    assert isinstance(done, NothingLeft)
    [said] = shortage(done, short, "friday", refill=False)
    assert f"alice, bob got none: deployment/warm has no free lablet: {says}" in said
    assert said.endswith("run the same command again")
    assert shortage(NothingLeft({}), short, "friday", refill=False) == []
    assert "Scale it up" not in shortage(done, short, "friday", refill=True)[0], "it grows by itself"


def test_a_lablet_of_another_definition_or_one_that_ended_is_not_this_one() -> None:
    other = pod("o", "alice")
    other = msgspec.structs.replace(other, spec=msgspec.structs.replace(other.spec, runtime_class_name="bgp"))
    ended = pod("e", "bob", status={"phase": "Succeeded"})
    step = next_step(pool(), [other, ended, pod("a"), pod("b")], CLASS, NOW, refill=False)
    assert step == Begin((ALICE, BOB))


@dataclass
class Cluster:
    """A Deployment and its Pods; writes carry the version that was read."""

    replicas: int
    gifts: tuple[Gift, ...] = ()
    generation: int = 0
    observed: tuple[int, int] = (-1, 0)
    version: int = 0
    pods: dict[str, LabletPod] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    deleted: list[LabletPod] = field(default_factory=list)
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def put(self, one: LabletPod) -> None:
        self.pods[one.metadata.uid] = one
        self.versions[one.metadata.uid] = self.versions.get(one.metadata.uid, 0) + 1

    def reconcile(self, dice: random.Random, seen: dict[str, LabletPod]) -> None:
        """Act as a ReplicaSet that knows the Pods as they were at some time, and what it did since.

        It releases what its selector does not select, makes what is missing, and deletes any of what is too much.
        """
        mine = []
        for uid, one in seen.items():
            now = self.pods.get(uid)
            if now is None or not any(owner.controller for owner in one.metadata.owner_references):
                continue
            if POOL not in one.metadata.labels:
                meta = msgspec.structs.replace(now.metadata, owner_references=[])
                self.put(msgspec.structs.replace(now, metadata=meta))
            else:
                mine.append(uid)
        for _ in range(self.replicas - len(mine)):
            made = pod(f"p{next(self.numbers):03}", ready=dice.random() < 0.8)
            self.put(made)
            seen[made.metadata.uid] = made
        for uid in dice.sample(mine, max(0, len(mine) - self.replicas)):
            self.deleted.append(self.pods.pop(uid))
            del seen[uid]
        self.observed = (self.generation, min(len(mine), self.replicas))

    def booted(self) -> None:
        for one in list(self.pods.values()):
            if not one.ready:
                self.put(pod(one.metadata.name))


@dataclass
class Caller:
    """One run of the command: it reads the Deployment, then the Pods, decides, and writes; it may die in between."""

    cluster: Cluster
    wishes: tuple[Assignment, ...]
    refill: bool
    pool: DeploymentPool | None = None
    version: int = 0
    step: Step | None = None
    versions: dict[str, int] = field(default_factory=dict)

    def act(self, dice: random.Random) -> bool:
        """Do one thing; return whether nothing is left to do."""
        cluster = self.cluster
        if self.pool is None:
            settled = cluster.observed[0] == cluster.generation and cluster.observed[1] <= cluster.replicas
            self.pool = msgspec.structs.replace(pool(*cluster.gifts, replicas=cluster.replicas), settled=settled)
            self.version = cluster.version
        elif self.step is None:
            pods = list(cluster.pods.values())
            self.versions = dict(cluster.versions)
            self.step = next_step(self.pool, pods, self.wishes, NOW, refill=self.refill)
        else:
            step, self.step = self.step, None
            self.write(step, dice)
            self.pool = None
            return isinstance(step, NothingLeft) and not step.without
        return False

    def write(self, step: Step, dice: random.Random) -> None:
        cluster = self.cluster
        if isinstance(step, Give):
            for one, wish in dice.sample(step.pairs, dice.randint(1, len(step.pairs))):  # it may die among them
                uid = one.metadata.uid
                if uid in cluster.pods and cluster.versions[uid] == self.versions[uid]:
                    notes, labels = {USER: wish.user, LENT: "warm"}, {"app": "netlab"}
                    meta = msgspec.structs.replace(one.metadata, annotations=notes, labels=labels)
                    cluster.put(msgspec.structs.replace(one, metadata=meta))
        elif isinstance(step, Begin | Settle) and cluster.version == self.version:
            cluster.version += 1
            cluster.gifts = step.gifts if isinstance(step, Begin) else ()
            if isinstance(step, Settle) and step.lower:
                cluster.replicas -= step.lower
                cluster.generation += 1


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.booleans())
def test_each_learner_has_one_lablet_whoever_dies_when(seed: int, refill: bool) -> None:  # noqa: FBT001 (drawn)
    """Two instructors, whose lists overlap; each is killed now and then and runs the command again."""
    dice = random.Random(seed)
    cluster = Cluster(replicas=12)
    seen: dict[str, LabletPod] = {}
    cluster.reconcile(dice, seen)
    lists = [tuple(Assignment(f"l{n}") for n in numbers) for numbers in (range(6), range(4, 10))]
    callers = [Caller(cluster, wishes, refill) for wishes in lists]
    done = [False, False]
    for _ in range(20_000):
        who = dice.randrange(2)
        if dice.random() < 0.05:
            callers[who], done[who] = Caller(cluster, lists[who], refill), False  # killed, and run again
        if not done[who]:
            done[who] = callers[who].act(dice)
        if dice.random() < 0.3:
            seen = dict(cluster.pods)  # its watch catches up
        if dice.random() < 0.3:
            cluster.reconcile(dice, seen)
        if dice.random() < 0.1:
            cluster.booted()
        if all(done) and not cluster.gifts:
            break
    assert all(done)
    learners = sorted(one.user for one in cluster.pods.values() if one.user)
    assert learners == sorted({wish.user for wishes in lists for wish in wishes}), "each has one"
    assert not [one.metadata.name for one in cluster.deleted if one.user], "none that was given is deleted"
    assert cluster.replicas == (12 if refill else 2)

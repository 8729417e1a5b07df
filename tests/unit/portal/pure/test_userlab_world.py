"""Attack user labs: every order of requests, writes, kills, late watches and meddling that Hypothesis can think of.

R002-008, R002-024, R002-031, R002-054, R002-077…080.
"""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.unit.portal.pure.world import SETTINGS, Replica, World
from vkprovider.portal.pure import facts
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.portalnames import user_key

REPLICAS = st.sampled_from("AB")
USERS = ["alice", "Bob", "carol"]
PLACES = st.integers(0, 5)
MEDDLING = ["delete namespace", "delete pod", "delete secret", "unmark", "user", "request", "ending", "operation"]


class LabMachine(RuleBasedStateMachine):
    """Nobody but the portal and its users."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @initialize(users=st.lists(st.sampled_from(USERS), unique=True), warm=st.booleans(), taken=st.booleans())
    def begin(self, users: list[str], *, warm: bool, taken: bool) -> None:
        """Begin with some labs that are made, and warm ones before or after them."""
        for made in (taken, warm and not taken):
            if made:
                self.world.keep_warm(self.world.replicas["A"])
                self.world.settle()
            else:
                for user in users:
                    self.world.request(self.world.replicas["B"], user)
                self.world.settle()

    def name(self, place: int) -> str:
        found = sorted(self.world.namespaces)
        return found[place % len(found)] if found else ""

    @rule(name=REPLICAS, user=st.sampled_from(USERS))
    def create(self, name: str, user: str) -> None:
        self.world.request(self.world.replicas[name], user)

    @rule(name=REPLICAS, user=st.sampled_from(USERS))
    def delete(self, name: str, user: str) -> None:
        self.world.ask_to_delete(self.world.replicas[name], user)

    @rule(name=REPLICAS, place=PLACES)
    def turn(self, name: str, place: int) -> None:
        self.world.turn(self.world.replicas[name], self.name(place))

    @rule(name=REPLICAS)
    def keep_warm(self, name: str) -> None:
        self.world.keep_warm(self.world.replicas[name])

    @rule(name=REPLICAS, place=PLACES, lost=st.booleans())
    def advance(self, name: str, place: int, *, lost: bool) -> None:
        replica = self.world.replicas[name]
        if tasks := sorted(replica.tasks):
            self.world.advance(replica, tasks[place % len(tasks)], answer_is_lost=lost)

    @rule(name=REPLICAS, writes=st.integers(1, 6))
    def work(self, name: str, writes: int) -> None:
        """Look after all labs with a watch that shows everything, for so many writes."""
        replica = self.world.replicas[name]
        for _ in range(writes):
            self.world.sync(replica, pods=True, namespaces=True)
            for namespace in list(self.world.namespaces):
                self.world.turn(replica, namespace)
            for key in list(replica.tasks):
                self.world.advance(replica, key)

    @rule(name=REPLICAS, pods=st.booleans(), namespaces=st.booleans())
    def sync(self, name: str, *, pods: bool, namespaces: bool) -> None:
        self.world.sync(self.world.replicas[name], pods=pods, namespaces=namespaces)

    @rule(name=REPLICAS)
    def kill(self, name: str) -> None:
        self.world.kill(self.world.replicas[name])

    @rule(place=PLACES, phase=st.sampled_from(["Running", "Running", "Pending", "Succeeded", "Failed"]))
    def pod_goes_on(self, place: int, phase: str) -> None:
        self.world.pod_goes_on(self.name(place), phase)

    @rule()
    def collect(self) -> None:
        self.world.collect()

    @rule(seconds=st.sampled_from([1, 60, 400, 2000]))
    def time_passes(self, seconds: int) -> None:
        self.world.now += seconds

    @rule()
    def settle(self) -> None:
        self.world.settle()

    @invariant()
    def rules_hold(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        world = self.world
        world.settle()
        world.check()
        world.check_one_lab()
        for lab in world.labs(world.namespaces):
            if lab.key and not lab.record.damaged:
                self.is_at_rest(lab)
        for request, user in world.answered.items():
            self.was_not_lost(request, user)
        world.now += SETTINGS.duration_s + int(SETTINGS.failed_s) + 10
        world.settle()
        world.now += int(SETTINGS.failed_s) + 10
        world.settle()
        left = [lab for lab in world.labs(world.namespaces) if lab.user and not lab.record.damaged]
        assert left == []

    def is_at_rest(self, lab: UserLab) -> None:
        status = facts.status_of(lab)
        assert status in {facts.UserLabStatus.RUNNING, facts.UserLabStatus.FAILED} or lab.record.warm, status
        assert status is not facts.UserLabStatus.RUNNING or lab.ready_at is not None
        assert lab.key not in self.world.locks
        if lab.user:
            request = lab.record.request
            assert self.world.namespaces[lab.record.namespace].secret or (request and request.id in self.world.strange)

    def was_not_lost(self, request: str, user: str) -> None:
        """An accepted request has a lab, has failed with a word, or was ended or replaced by somebody."""
        world = self.world
        current = {lab.record.request.id: lab for lab in world.labs(world.namespaces) if lab.record.request is not None}
        replaced = any(other != request and whose == user for other, whose in world.answered.items())
        assert request in current or request in world.excused | world.strange or replaced


class MeddledMachine(LabMachine):
    """Strangers change what is ours, and make what looks like it."""

    @rule(place=PLACES, how=st.sampled_from(MEDDLING))
    def meddle(self, place: int, how: str) -> None:
        self.world.meddle(self.name(place), how)

    @rule(user=st.sampled_from(USERS))
    def occupy(self, user: str) -> None:
        self.world.occupy(user)


class LateMachine(LabMachine):
    """A replica stands still right before a write, is overtaken, and writes all the same."""

    @rule(name=REPLICAS)
    def overtake(self, name: str) -> None:
        self.world.overtake(self.world.replicas[name])


def begun(*, warm: bool) -> tuple[World, Replica, Replica]:
    world = World()
    one, other = world.replicas.values()
    if warm:
        world.keep_warm(one)
        world.settle()
    return world, one, other


def test_a_lab_that_is_made_is_not_taken_for_gone_by_a_replica_whose_watch_of_pods_is_late() -> None:
    world, one, other = begun(warm=False)
    world.request(one, "alice")
    world.settle()
    [name] = world.namespaces
    other.seen = {}
    world.sync(other, pods=False, namespaces=True)
    assert world.turn(other, name), "it looks"
    while other.tasks:
        world.advance(other, "alice")
    [lab] = world.labs(world.namespaces)
    assert facts.status_of(lab) is facts.UserLabStatus.RUNNING


def test_the_second_lab_of_a_user_which_a_late_write_makes_ends_and_the_first_stays() -> None:
    """R002-008, R002-078."""
    world, one, other = begun(warm=True)
    one.seen = {}
    world.request(one, "alice")
    world.advance(one, "alice")
    world.overtake(one)
    world.now += 1
    world.request(other, "alice")
    while other.tasks:
        world.advance(other, "alice")
    world.now += 1
    while one.tasks:
        world.advance(one, "alice")
    assert len([lab for lab in world.labs(world.namespaces) if lab.user == "alice"]) == 2
    world.settle()
    [lab] = [lab for lab in world.labs(world.namespaces) if lab.user == "alice"]
    assert facts.status_of(lab) is facts.UserLabStatus.RUNNING


def test_two_replicas_take_no_warm_lab_twice() -> None:
    world, one, other = begun(warm=True)
    for replica, user in ((one, "alice"), (other, "Bob")):
        world.request(replica, user)
        world.advance(replica, user_key(user))
    for replica, user in ((one, "alice"), (other, "Bob"), (one, "alice"), (other, "Bob")):
        if user_key(user) in replica.tasks:
            world.advance(replica, user_key(user))
    world.settle()
    users = sorted(lab.user for lab in world.labs(world.namespaces) if lab.user)
    assert len(users) == len(set(users)) > 0


TestLabs = LabMachine.TestCase
TestMeddledLabs = MeddledMachine.TestCase
TestLateWrites = LateMachine.TestCase

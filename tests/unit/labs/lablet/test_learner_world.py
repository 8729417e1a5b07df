"""Attack `decide` with learners: sessions, lost and reordered events, stops, resets, pools, and crashes between all.

Usernames are edited at any time, reports removed, and claims lost: no learner ever sees another's session or lab.

R000-019, R000-023 to R000-025; C11, C12, C33.
"""

from random import Random

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.unit.labs import builders
from tests.unit.labs.lablet.learners import POOL, LearnerWorld, ModelLds
from tests.unit.labs.lablet.test_lablet_world import RESTARTS, LabletMachine, Moves, moves_of, tell
from vkprovider.lablet import names

SLOTS_S = [0, 0, 5, 60, 900]
NAMES = [None, "", "alice", "bob", "eve", "\x07"]
"""What stands in the username of a Pod after an edit."""


def new_world(restart: str, *, lds: bool, pool: bool, grader: bool, exposes: bool) -> LearnerWorld:
    pod = builders.pod(restart=restart)
    labels = {names.LABEL_POOL: POOL} if pool else {}
    pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels))
    return LearnerWorld(pod, lds=ModelLds(grader=grader) if lds else None, exposes=exposes)


class LearnerMachine(LabletMachine):
    world: LearnerWorld

    @initialize(
        restart=st.sampled_from(RESTARTS),
        lds=st.booleans(),
        pool=st.booleans(),
        grader=st.booleans(),
        ready=st.booleans(),
        exposes=st.booleans(),
    )
    def begin(self, restart: str, *, lds: bool, pool: bool, grader: bool, ready: bool, exposes: bool) -> None:
        self.world = new_world(restart, lds=lds, pool=pool, grader=grader, exposes=exposes)
        if ready:
            self.world.settle()

    @rule(slot_s=st.sampled_from(SLOTS_S))
    def assign(self, slot_s: int) -> None:
        self.world.assign("alice", slot_s)

    @rule()
    def content_is_renewed(self) -> None:
        self.world.renew()

    @rule(slot_s=st.sampled_from(SLOTS_S))
    def timeslot_is_changed(self, slot_s: int) -> None:
        self.world.change_timeslot(slot_s)

    @rule(username=st.sampled_from(NAMES))
    def username_is_edited(self, username: str | None) -> None:
        self.world.edit_username(username)

    @rule()
    def reports_are_removed(self) -> None:
        self.world.remove_reports()

    @rule()
    def stop_is_asked_for(self) -> None:
        self.world.stop()

    @rule()
    def start_is_asked_for(self) -> None:
        self.world.start()

    @rule()
    def reset_is_asked_for(self) -> None:
        self.world.reset()

    @rule(dice=st.integers(0, 3))
    def collecting_is_asked_for(self, dice: int) -> None:
        if dice == 0:
            self.world.collect()

    @rule(login=st.booleans())
    def learner_comes_or_goes(self, *, login: bool) -> None:
        if self.world.lds is not None:
            (self.world.lds.log_in if login else self.world.lds.log_out)()

    @rule()
    def learner_is_served(self) -> None:
        self.world.serve("bob")

    @rule()
    def replica_forgets(self) -> None:
        self.world.forget("bob")

    @rule()
    def devices_crash_again_and_again(self) -> None:
        self.world.crash_loop()

    @rule(number=st.integers(0, 9), again=st.booleans())
    def event_arrives(self, number: int, *, again: bool) -> None:
        if self.world.lds is not None:
            self.world.lds.deliver(number, self.world.wall, again=again)

    @rule(down=st.booleans(), full=st.booleans())
    def lds_changes(self, *, down: bool, full: bool) -> None:
        if self.world.lds is not None:
            self.world.lds.down, self.world.lds.full = down, full


TestLearner = LearnerMachine.TestCase
TestLearner.settings = settings(max_examples=60, stateful_step_count=40)


def moves_with_learners(world: LearnerWorld, dice: Random) -> Moves:
    """Name what may happen to a lablet with learners."""
    lds = world.lds
    moves = {
        **moves_of(world, dice),
        "assign": (6, lambda: world.assign(dice.choice(["alice", "bob"]), dice.choice(SLOTS_S))),
        "renew": (2, world.renew),
        "slot": (2, lambda: world.change_timeslot(dice.choice(SLOTS_S))),
        "edit": (3, lambda: world.edit_username(dice.choice(NAMES))),
        "unreport": (0.5, world.remove_reports),
        "stop": (1, world.stop),
        "start": (2, world.start),
        "reset": (1, world.reset),
        "collect": (0.5, world.collect),
        "serve": (3, lambda: world.serve(dice.choice(["alice", "bob"]))),
        "forget": (2, lambda: world.forget(dice.choice(["alice", "bob"]))),
        "crashes": (1, world.crash_loop),
    }
    if lds is not None:
        moves |= {
            "login": (4, lds.log_in),
            "logout": (1, lds.log_out),
            "event": (6, lambda: lds.deliver(dice.randint(0, 9), world.wall, again=dice.random() < 0.3)),
            "down": (1, lambda: setattr(lds, "down", not lds.down)),
            "full": (1, lambda: setattr(lds, "full", not lds.full)),
        }
    return moves


def play(seed: int) -> list[str]:
    """Tell the story of a lablet and its learners."""
    dice = Random(seed)
    world = new_world(
        dice.choice(RESTARTS),
        lds=dice.random() < 0.7,
        pool=dice.random() < 0.6,
        grader=dice.random() < 0.5,
        exposes=dice.random() < 0.5,
    )
    if dice.random() < 0.7:
        world.settle()
    return tell(seed, world, moves_with_learners(world, dice), dice)


@pytest.mark.parametrize("hundred", range(20))
def test_random_stories_with_learners_end_well(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        play(seed)

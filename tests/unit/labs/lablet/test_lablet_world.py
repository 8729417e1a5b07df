"""Attack `decide`: every order of steps, crashes, lost answers and meddling that Hypothesis can think of.

R000-001, R000-012 to R000-022, R000-120, R004-048, R004-050.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.unit.labs import builders
from tests.unit.labs.lablet.world import World
from vkprovider.lablet import observations

RESTARTS = ["Always", "OnFailure", "Never"]
HOLDS: list[tuple[str, ...]] = [(), (), ("batch.kubernetes.io/job-tracking",)]
ANSWERS = ["ok", "ok", "ok", "lost", "failed", "killed-before", "killed-after"]
STATES = [
    observations.STOPPED,
    observations.DISCONNECTED,
    observations.STARTED,
    observations.QUEUED,
    observations.BOOTED,
    observations.DEFINED,
    "PAUSED",
]
COPIES = [observations.DEFINED, observations.BOOTED, observations.STOPPED]
PAUSES = [0.5, 5.0, 30.0, 120.0, 400.0, 700.0]


def new_world(restart: str, deadline_s: float, finalizers: tuple[str, ...], *, exposes: bool) -> World:
    pod = builders.pod(restart=restart, finalizers=finalizers, deadline_s=int(deadline_s) or None)
    return World(pod, deadline_s=deadline_s, exposes=exposes)


class LabletMachine(RuleBasedStateMachine):
    world: World

    @initialize(
        restart=st.sampled_from(RESTARTS),
        deadline_s=st.sampled_from([0.0, 0.0, 0.0, 500.0]),
        finalizers=st.sampled_from(HOLDS),
        ready=st.booleans(),
        exposes=st.booleans(),
    )
    def begin(
        self, restart: str, deadline_s: float, finalizers: tuple[str, ...], *, ready: bool, exposes: bool
    ) -> None:
        self.world = new_world(restart, deadline_s, finalizers, exposes=exposes)
        if ready:
            self.world.settle()

    @rule(answer=st.sampled_from(ANSWERS))
    def act(self, answer: str) -> None:
        self.world.act(answer)

    @rule(turns=st.integers(1, 12))
    def work(self, turns: int) -> None:
        self.world.work(turns)

    @rule(crash=st.booleans())
    def persist(self, *, crash: bool) -> None:
        self.world.persist()
        if crash:
            self.world.crash()

    @rule()
    def observe(self) -> None:
        self.world.observe()

    @rule()
    def observation_is_lost(self) -> None:
        self.world.lose_observation()

    @rule(seconds=st.sampled_from(PAUSES))
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds

    @rule()
    def cml_goes_on(self) -> None:
        self.world.cml.advance()

    @rule()
    def crash(self) -> None:
        self.world.crash()

    @rule()
    def slice_is_seen(self) -> None:
        self.world.see_slice()

    @rule()
    def slice_is_deleted(self) -> None:
        self.world.lose_slice()

    @rule(answers=st.booleans())
    def mux_comes_or_goes(self, *, answers: bool) -> None:
        self.world.mux_answers = answers

    @rule()
    def slices_are_swept(self) -> None:
        self.world.sweep()

    @rule(exposes=st.booleans())
    def definition_changes(self, *, exposes: bool) -> None:
        self.world.exposes = exposes

    @rule(dice=st.integers(0, 3))
    def claims_are_lost(self, dice: int) -> None:
        if dice == 0:
            self.world.lose_claims()

    @rule(away=st.booleans(), stuck=st.booleans())
    def worker_changes(self, *, away: bool, stuck: bool) -> None:
        self.world.cml.away, self.world.cml.stuck = away, stuck

    @precondition(lambda self: self.world.cml.labs)
    @rule(data=st.data(), state=st.sampled_from(STATES))
    def device_changes(self, data: Any, state: str) -> None:
        lab = data.draw(st.sampled_from(sorted(self.world.cml.labs.values(), key=lambda lab: lab.id)))
        self.world.cml.meddle(lab, data.draw(st.integers(0, 1)), state)

    @rule()
    def worker_reboots(self) -> None:
        self.world.cml.reboot()

    @rule(dice=st.integers(0, 3))
    def somebody_deletes_the_lab(self, dice: int) -> None:
        if dice == 0:
            self.world.cml.labs.clear()

    @rule(state=st.sampled_from(COPIES))
    def somebody_saves_a_copy(self, state: str) -> None:
        self.world.save_copy(state)

    @rule(dice=st.integers(0, 3))
    def somebody_deletes_all_but_the_copies(self, dice: int) -> None:
        if dice == 0:
            clear_originals(self.world)

    @rule()
    def informer_loses_the_pod(self) -> None:
        self.world.informer_misses_pod = self.world.pod is not None

    @rule(force=st.booleans(), dice=st.integers(0, 3))
    def pod_is_deleted(self, *, force: bool, dice: int) -> None:
        if dice == 0:
            self.world.delete_pod(force=force)

    @rule(dice=st.integers(0, 7))
    def end_is_desired(self, dice: int) -> None:
        if dice == 0:
            self.world.desire_end()

    @invariant()
    def what_always_holds(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.settle_and_end()


TestLablet = LabletMachine.TestCase
TestLablet.settings = settings(max_examples=60, stateful_step_count=30)


Moves = dict[str, tuple[float, Callable[[], object]]]
"""What may happen, by name: how often, and what."""


def moves_of(world: World, dice: Random) -> Moves:
    """Name what may happen to a lablet."""
    cml = world.cml
    return {
        "act": (12, lambda: world.act(dice.choice(ANSWERS))),
        "work": (8, lambda: world.work(dice.randint(1, 12))),
        "persist": (4, world.persist),
        "observe": (4, world.observe),
        "blind": (1, world.lose_observation),
        "time": (4, lambda: setattr(world, "now", world.now + dice.choice(PAUSES))),
        "cml": (4, cml.advance),
        "crash": (2, world.crash),
        "lose-claims": (0.5, world.lose_claims),
        "away": (1, lambda: setattr(cml, "away", not cml.away)),
        "stuck": (1, lambda: setattr(cml, "stuck", not cml.stuck)),
        "meddle": (3, lambda: cml.meddle_all(dice.randint(0, 1), dice.choice(STATES))),
        "reboot": (2, cml.reboot),
        "clear": (0.3, cml.labs.clear),
        "copy": (1, lambda: world.save_copy(dice.choice(COPIES))),
        "clear-originals": (0.3, lambda: clear_originals(world)),
        "lose": (1, lambda: setattr(world, "informer_misses_pod", world.pod is not None)),
        "see-slice": (2, world.see_slice),
        "lose-slice": (0.5, world.lose_slice),
        "sweep": (1, world.sweep),
        "mux": (1, lambda: setattr(world, "mux_answers", not world.mux_answers)),
        "expose": (1, lambda: setattr(world, "exposes", not world.exposes)),
        "delete": (0.3, lambda: world.delete_pod(force=dice.random() < 0.5)),
        "end": (0.1, world.desire_end),
    }


def clear_originals(world: World) -> None:
    """Delete all labs but the copies."""
    for lab in [lab for lab in world.cml.labs.values() if not lab.copy]:
        del world.cml.labs[lab.id]


def tell(seed: int, world: World, moves: Moves, dice: Random) -> list[str]:
    """Tell one random story to its end; gives what happened."""
    told = [f"seed {seed}"]
    try:
        for name in dice.choices(list(moves), [weight for weight, _ in moves.values()], k=dice.randint(5, 60)):
            told.append(name)
            moves[name][1]()
            world.check()
        world.settle_and_end()
    except AssertionError as error:
        raise AssertionError(f"{' '.join(told)}: {error}") from error
    return told


def play(seed: int) -> list[str]:
    """Tell the story of a lablet without a learner."""
    dice = Random(seed)
    restart, deadline_s, hold = dice.choice(RESTARTS), dice.choice([0.0, 0.0, 0.0, 500.0]), dice.choice(HOLDS)
    world = new_world(restart, deadline_s, hold, exposes=dice.random() < 0.5)
    return tell(seed, world, moves_of(world, dice), dice)


@pytest.mark.parametrize("hundred", range(20))
def test_random_stories_end_well(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        play(seed)

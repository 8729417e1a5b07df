"""How long a lab may boot: each device from its own start, by the definition, by CML, or by the setting.

R000-120. The real decisions run against a worker whose devices take their time, in the time of the model.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.labs import builders
from tests.unit.labs.lablet.world import ModelLab, World
from vkprovider.lablet import observations
from vkprovider.labs.pure.lablet import steps
from vkprovider.labs.pure.lablet.after import After
from vkprovider.labs.pure.lablet.boots import NO_PATIENCE, StartPatience, boot_timeout_of, limit_of, longest
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.messages import Notice

STEP_S = 10.0
BY_CML = StartPatience(timeouts={"iosv": 1800})


@dataclass
class Slow:
    """When the devices of the lab go from one state to the next, in seconds after each start.

    Attributes:
        queued_s: In the queue, by device.
        boot_s: From there to the boot text.
        timeout_s: When CML calls a device BOOTED that has not said so.
        stages: Each device is started when the one before is booted.
    """

    queued_s: tuple[float, float] = (0.0, 0.0)
    boot_s: tuple[float, float] = (1500.0, 1500.0)
    timeout_s: float = 1800.0
    stages: bool = False
    gap_s: float = 20.0
    since: dict[int, float] = field(default_factory=dict)

    def go_on(self, lab: ModelLab, now: float) -> None:
        """Move the devices of a started lab."""
        for device, state in enumerate(lab.states):
            first = device == 0 or not self.stages
            before = lab.states[device - 1]
            if (
                state == observations.QUEUED
                and not first
                and before != observations.BOOTED
                and device not in self.since
            ):
                lab.states[device] = observations.DEFINED  # CML keeps it for a later stage
            elif state == observations.DEFINED and not first and before == observations.BOOTED and lab.ever_started:
                begun = self.since.setdefault(-device, now)
                if now >= begun + self.gap_s:
                    lab.states[device], self.since[device] = observations.QUEUED, now
            elif state == observations.QUEUED and now >= self.since.setdefault(device, now) + self.queued_s[device]:
                lab.states[device], self.since[device] = observations.STARTED, now
            elif state == observations.STARTED:
                if now >= self.since[device] + min(self.boot_s[device], self.timeout_s):
                    lab.states[device] = observations.BOOTED
            elif state == observations.STOPPED:
                self.since.pop(device, None)


class SlowWorld(World):
    """A lablet on a worker whose devices take their time."""

    def __init__(self, slow: Slow, patience: StartPatience, **limits: Any) -> None:
        super().__init__(builders.pod(), limits=LabletSettings(**limits))
        self.slow, self.patience = slow, patience
        self.told: list[Notice] = []

    def _apply(self, result: After) -> None:
        self.told += result.notices
        super()._apply(result)

    def pass_by(self, seconds: float, *, seen: bool = True) -> None:
        """Let time go by, in which the replica looks at the worker, or none is there."""
        until = self.now + seconds
        while self.now < until:
            for lab in self.cml.labs.values():
                if lab.stopping:
                    lab.states, lab.stopping = [observations.STOPPED] * len(lab.states), False
                    self.slow.since.clear()
                self.slow.go_on(lab, self.now)
            for _ in range(6 if seen else 0):
                self.persist()
                self.observe()
                if isinstance(self.act().step, steps.Wait):
                    break
            self.now += STEP_S

    @property
    def starts(self) -> int:
        return self.steps.count(steps.Start)

    @property
    def warnings(self) -> list[str]:
        return [notice.message for notice in self.told if notice.reason == "LabStartTimeout"]

    def is_ready(self) -> bool:
        return self.claim is not None and self.claim.ready_at > 0

    @property
    def message(self) -> str:
        report = self.last.report if self.last is not None else None
        return report.waiting.message if report is not None and report.waiting is not None else ""


@pytest.mark.parametrize(
    ("slow", "patience", "limits", "booted_s"),
    [
        (Slow(), BY_CML, {}, 1500),
        (Slow(timeout_s=1200.0), StartPatience(timeouts={"iosv": 1200}), {}, 1200),
        (Slow(), NO_PATIENCE, {}, 1500),
        (Slow(boot_s=(3500.0, 10.0), timeout_s=7200.0), StartPatience(definition_s=3600), {}, 3500),
        (Slow(boot_s=(3500.0, 10.0), timeout_s=7200.0), StartPatience(timeouts={"iosv": 2400}), {}, 3500),
        (Slow(queued_s=(0.0, 1500.0)), BY_CML, {}, 3000),
        (Slow(boot_s=(1700.0, 1700.0), stages=True), StartPatience(definition_s=1750), {}, 3420),
        (Slow(boot_s=(500.0, 500.0)), StartPatience(definition_s=60), {"start_timeout_s": 600}, 500),
    ],
    ids=["time-out 1800", "time-out 1200", "unknown", "definition", "margin", "queued", "staged", "setting wins"],
)
def test_a_slow_lab_is_ready_once_and_never_wiped(
    slow: Slow, patience: StartPatience, limits: dict[str, Any], booted_s: float
) -> None:
    world = SlowWorld(slow, patience, **limits)
    world.pass_by(booted_s - 20)
    assert not world.is_ready()
    world.pass_by(60)
    assert world.is_ready()
    assert world.claim is not None
    assert (world.starts, world.claim.starts_again, world.warnings) == (1, 0, [])


@given(
    queued_s=st.tuples(*[st.sampled_from([0.0, 20.0, 40.0, 1000.0, 1700.0])] * 2),
    boot_s=st.tuples(*[st.sampled_from([10.0, 1000.0, 1700.0])] * 2),
    lives=st.lists(st.sampled_from([10.0, 35.0, 100.0, 700.0, 1500.0]), max_size=6),
    away_s=st.sampled_from([0.0, 5.0, 60.0]),
)
@settings(max_examples=40, deadline=None)
def test_replicas_that_die_count_no_time_twice(
    queued_s: tuple[float, float], boot_s: tuple[float, float], lives: list[float], away_s: float
) -> None:
    """Whoever takes over, no device is given up before it has had its own time, and it is booted in the end."""
    world = SlowWorld(Slow(queued_s=queued_s, boot_s=boot_s), BY_CML)
    world.patience = StartPatience(definition_s=1800)
    for life_s in lives:
        world.pass_by(life_s)
        world.crash()
        world.pass_by(away_s, seen=False)
    world.pass_by(3600)
    assert world.is_ready()
    assert (world.starts, world.warnings) == (1, [])


@given(crashes=st.lists(st.sampled_from([60.0, 400.0, 900.0]), max_size=3))
@settings(max_examples=15, deadline=None)
def test_a_device_that_never_boots_is_given_up_whatever_happens(crashes: list[float]) -> None:
    world = SlowWorld(Slow(queued_s=(500.0, 0.0), boot_s=(1e9, 5.0), timeout_s=1e9), StartPatience(definition_s=900))
    for life_s in crashes:
        world.pass_by(life_s)
        world.crash()
    world.pass_by(max(0.0, 1400 - world.now + 1000 + 60))
    assert world.warnings
    assert world.starts >= 1


def test_no_lab_is_wiped_again_without_an_event_that_says_how_to_wait_longer() -> None:
    world = SlowWorld(Slow(boot_s=(500.0, 5.0), timeout_s=1e9), StartPatience(definition_s=300))
    world.pass_by(3000)
    assert not world.is_ready()
    assert world.claim is not None
    wipes = world.steps.count(steps.Wipe)
    assert wipes >= 3
    assert len(world.warnings) >= wipes
    assert len(set(world.warnings)) == len(world.warnings), "of equal ones only the first would be emitted"
    first = "not booted 300 s after the start: r1; to wait longer, raise spec.bootTimeoutSeconds of LabletDefinition "
    assert world.warnings[0] == f"{first}netlab, now 300"
    world.patience = StartPatience(definition_s=600)  # somebody does
    world.pass_by(1500)
    assert world.is_ready()


def test_the_pod_says_what_is_missing_since_when_and_how_long_the_last_such_lab_took() -> None:
    world = SlowWorld(Slow(boot_s=(1500.0, 100.0)), StartPatience(timeouts={"iosv": 1800}, took_s=1470))
    world.pass_by(200)
    assert world.claim is not None
    since = f"(since {(8 * 60 + (1000 // 60)) // 60:02}:{(1000 // 60):02} UTC)"
    told = f"1 of 2 devices booted, waiting for r1 {since}, 45 min at most; the last such lab took 25 min"
    assert world.message == told
    world.pass_by(1000)
    assert world.message == told, "a text that changes with every minute would be written every minute"


@pytest.mark.parametrize(
    ("setting", "patience", "seconds", "how"),
    [
        (None, NO_PATIENCE, 1800, "set spec.bootTimeoutSeconds of LabletDefinition netlab to more than 1800"),
        (None, StartPatience(timeouts={"iosv": 240}), 360, "set spec.bootTimeoutSeconds"),
        (None, StartPatience(timeouts={"iosv": 60}), 300, "set spec.bootTimeoutSeconds"),
        (None, StartPatience(timeouts={"other": 60}), 1800, "set spec.bootTimeoutSeconds"),
        (None, StartPatience(timeouts={"iosv": 1800}), 2700, "set spec.bootTimeoutSeconds"),
        (None, StartPatience(timeouts={"iosv": 240}, cpu_limit=20), 1800, "set spec.bootTimeoutSeconds"),
        (
            None,
            StartPatience(120, {"iosv": 1800}),
            120,
            "raise spec.bootTimeoutSeconds of LabletDefinition netlab, now 120",
        ),
        (90.0, StartPatience(120, {"iosv": 1800}), 90, "raise LAB_START_TIMEOUT of the provider, now 90, or unset it"),
    ],
)
def test_who_says_how_long_a_device_may_boot(
    setting: float | None, patience: StartPatience, seconds: float, how: str
) -> None:
    found = limit_of(setting, patience, builders.devices(observations.STARTED), definition="netlab")
    assert found.seconds == seconds
    assert found.raise_by.startswith(how)


def test_a_definition_tells_the_longest_time_of_all_workers() -> None:
    workers = [{"iosv": 240}, {"iosv": 1800}]
    assert longest(None, None, {"iosv"}, workers) == 2700
    assert longest(None, None, {"iosv"}, [*workers[:1], {}]) == 1800, "one that does not say"
    assert longest(None, None, {"iosv"}, []) == 1800
    assert (longest(None, 60, {"iosv"}, workers), longest(90.5, 60, {"iosv"}, workers)) == (60, 91)


@pytest.mark.parametrize("value", [None, True, 0, -5, "60", 1.5, []])
def test_a_definition_with_an_unreadable_time_has_none(value: object) -> None:
    assert boot_timeout_of({"bootTimeoutSeconds": value}) is None
    assert boot_timeout_of({"bootTimeoutSeconds": 60}) == 60

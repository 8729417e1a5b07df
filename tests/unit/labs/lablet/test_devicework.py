"""One device that is stopped, wiped or started on request: what is next, and where any course of events ends."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.labs.builders import claim, devices, facts_with, pod
from vkprovider.cli.lablet.commands import learners
from vkprovider.lablet import deviceacts, observations
from vkprovider.lablet.deviceacts import DeviceAct
from vkprovider.lablet.inputs import Inputs
from vkprovider.lablet.observations import BOOTED, DEFINED, STARTED, STOPPED
from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.labs.pure.claims.claim import Claim, Wish
from vkprovider.labs.pure.lablet import steps
from vkprovider.labs.pure.lablet.after import after, failed
from vkprovider.labs.pure.lablet.decisions.decide import decide
from vkprovider.labs.pure.lablet.decisions.stage import Stage, stage_of
from vkprovider.labs.pure.lablet.devicework import DeviceWork, work_of
from vkprovider.labs.pure.lablet.memory import Presence
from vkprovider.labs.pure.lablet.outcomes import Acted, Circumstances, Failure
from vkprovider.labs.pure.lablet.status import render
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.errors import Invalid
from vkprovider.platform.messages import Fault

NOW, UNIX = 5000.0, 1_800_000_000
READY = claim(lab_id="lab-1", started_at=UNIX - 600, ready_at=UNIX - 500)
NOTHING = Inputs()


def wishing(**wishes: Wish) -> Claim:
    return READY.wishing(wishes)


def asked(**acts: DeviceAct) -> Inputs:
    return Inputs(devices=tuple((label, deviceacts.written(act, UNIX)) for label, act in acts.items()))


def known(inputs: Inputs, claim_: Claim, *states: str, **more: Any) -> Any:
    return facts_with(
        pod=pod(phase="Running"),
        claim=claim_,
        inputs=inputs,
        presence=Presence.PRESENT,
        devices=devices(*states),
        now_unix=UNIX,
        extracted=True,
        **more,
    )


@pytest.mark.parametrize(
    ("wish", "state", "wish_after", "act"),
    [
        (Wish.OFF, BOOTED, Wish.OFF, DeviceAct.STOP),
        (Wish.OFF, STOPPED, Wish.OFF, None),
        (Wish.OFF, DEFINED, Wish.OFF, None),
        (Wish.RESTART, BOOTED, Wish.RESTART, DeviceAct.STOP),
        (Wish.RESTART, STOPPED, Wish.START, None),
        (Wish.WIPE, STARTED, Wish.WIPE, DeviceAct.STOP),
        (Wish.WIPE, STOPPED, Wish.WIPE, DeviceAct.WIPE),
        (Wish.WIPE, DEFINED, Wish.START, None),
        (Wish.CLEAR, STOPPED, Wish.CLEAR, DeviceAct.WIPE),
        (Wish.CLEAR, DEFINED, Wish.OFF, None),
        (Wish.START, STOPPED, Wish.BOOT, DeviceAct.START),
        (Wish.START, STARTED, Wish.BOOT, None),
        (Wish.BOOT, STARTED, Wish.BOOT, None),
        (Wish.BOOT, BOOTED, None, None),
        (Wish.BOOT, STOPPED, None, None),
    ],
)
def test_each_wish_has_its_next_step(wish: Wish, state: str, wish_after: Wish | None, act: DeviceAct | None) -> None:
    work = work_of(NOTHING, wishing(r1=wish), devices(state, BOOTED))
    if work is None:
        assert (wish_after, act) == (wish, None)
        return
    assert work.claim.wishes.get("r1") == wish_after
    assert work.act == act
    assert (work.device.label if work.device else None) == ("r1" if act else None)


@pytest.mark.parametrize(
    ("act", "before", "after"),
    [
        (DeviceAct.STOP, None, Wish.OFF),
        (DeviceAct.STOP, Wish.RESTART, Wish.OFF),
        (DeviceAct.RESTART, None, Wish.RESTART),
        (DeviceAct.RESTART, Wish.OFF, Wish.START),
        (DeviceAct.WIPE, None, Wish.WIPE),
        (DeviceAct.WIPE, Wish.OFF, Wish.CLEAR),
        (DeviceAct.WIPE, Wish.BOOT, Wish.WIPE),
        (DeviceAct.START, Wish.OFF, Wish.START),
        (DeviceAct.START, None, Wish.START),
    ],
)
def test_a_request_becomes_a_wish_once(act: DeviceAct, before: Wish | None, after: Wish) -> None:
    inputs = asked(r1=act)
    work = work_of(inputs, wishing(**({"r1": before} if before else {})), devices(BOOTED, BOOTED))
    assert work is not None
    assert work.claim.wishes == {"r1": after}
    assert work.taken == (("r1", act),)
    again = work_of(inputs, work.claim.wishing({}), devices(BOOTED, BOOTED))
    assert again is None, "what was carried out is not done again"


def test_a_device_that_the_lab_does_not_have_is_not_wished_for() -> None:
    work = work_of(asked(r9=DeviceAct.STOP), READY, devices(BOOTED))
    assert work == DeviceWork(READY.wishing({}, dict(asked(r9=DeviceAct.STOP).devices)))
    removed = work_of(NOTHING, wishing(r9=Wish.OFF), devices(BOOTED))
    assert removed is not None
    assert removed.claim.wishes == {}


@pytest.mark.parametrize(
    ("claim_", "inputs", "states", "stage"),
    [
        (READY, asked(r1=DeviceAct.STOP), (BOOTED, BOOTED), Stage.CHANGING),
        (claim(lab_id="lab-1", started_at=UNIX), asked(r1=DeviceAct.STOP), (BOOTED, STARTED), Stage.BOOTING),
        (wishing(r1=Wish.OFF), NOTHING, (STOPPED, BOOTED), Stage.SERVING),
        (wishing(r1=Wish.OFF, r2=Wish.OFF), NOTHING, (STOPPED, DEFINED), Stage.SERVING),
        (wishing(r1=Wish.OFF), NOTHING, (BOOTED, BOOTED), Stage.CHANGING),
        (wishing(r1=Wish.OFF), NOTHING, (STOPPED, STOPPED), Stage.CRASHED),
        (wishing(r1=Wish.BOOT), NOTHING, (STARTED, BOOTED), Stage.SERVING),
        (wishing(r1=Wish.BOOT), NOTHING, (STARTED, STARTED), Stage.BOOTING),
    ],
)
def test_a_lab_is_judged_by_the_other_devices(
    claim_: Claim, inputs: Inputs, states: tuple[str, ...], stage: Stage
) -> None:
    assert stage_of(known(inputs, claim_, *states), NOW) is stage


def test_a_device_that_fails_is_started_without_the_one_that_is_to_stay_off() -> None:
    facts = known(NOTHING, wishing(r1=Wish.OFF), STOPPED, STOPPED, BOOTED, retry_at=NOW - 1)
    decision = decide(facts, NOW, LabletSettings())
    assert decision.claim is not None
    assert (decision.step, decision.claim.wishes) == (steps.SAVE, {"r1": Wish.OFF, "r2": Wish.START})
    assert decision.claim.last_devices == ("r2",)


def test_a_refused_start_leaves_the_wish() -> None:
    facts = known(NOTHING, wishing(r1=Wish.START), STOPPED, BOOTED)
    decision = decide(facts, NOW, LabletSettings())
    assert isinstance(decision.step, steps.ChangeDevice)
    assert decision.claim is not None
    assert decision.claim.wishes == {"r1": Wish.BOOT}
    error = Invalid("no licence", status=400)
    place = Circumstances(worker="w1", pod=facts.pod, now=NOW, now_unix=UNIX)
    failure = Failure(Fault(Trouble.START_REFUSED, error.message), 5.0, error)
    left = failed(facts.memory, decision.claim, decision.step, failure, place)
    assert left.claim is not None
    assert left.claim.wishes == {"r1": Wish.START}
    again = msgspec.structs.replace(facts, memory=left.memory, claim=left.claim)
    waits = decide(again, NOW + 1, LabletSettings())
    assert (waits.step, waits.after_s) == (steps.WAIT, 4.0)
    assert waits.report is not None
    assert waits.report.ready, "the lablet is Ready, and its other steps go on"
    assert isinstance(decide(again, NOW + 6, LabletSettings()).step, steps.ChangeDevice)


def test_a_device_is_told_once_until_it_moves() -> None:
    """CML takes a while to stop a device; it is told again after half a minute, and the next thing at once."""
    facts = known(NOTHING, wishing(r1=Wish.RESTART), BOOTED, BOOTED)
    decision = decide(facts, NOW, LabletSettings())
    assert isinstance(decision.step, steps.ChangeDevice)
    place = Circumstances(worker="w1", pod=facts.pod, now=NOW, now_unix=UNIX)
    memory = after(facts.memory, facts.claim, decision.step, Acted(), place).memory
    told = msgspec.structs.replace(facts, memory=memory)
    waits = decide(told, NOW + 10, LabletSettings())
    assert (waits.step, waits.after_s) == (steps.WAIT, 20.0)
    assert isinstance(decide(told, NOW + 31, LabletSettings()).step, steps.ChangeDevice)
    off = msgspec.structs.replace(told, devices=devices(STOPPED, BOOTED))
    assert decide(off, NOW + 10, LabletSettings()).claim is not None, "the next wish is not held"
    started = msgspec.structs.replace(off, claim=wishing(r1=Wish.START))
    assert isinstance(decide(started, NOW + 10, LabletSettings()).step, steps.ChangeDevice)


def test_its_container_says_so_and_the_pod_is_ready() -> None:
    given_pod = pod(phase="Running", containers=(("lab", "netlab:1.0"), ("r1", "netlab:1.0"), ("r2", "netlab:1.0")))
    facts = known(NOTHING, wishing(r1=Wish.OFF), STOPPED, BOOTED)
    decision = decide(facts, NOW, LabletSettings())
    assert decision.report is not None
    status = render(given_pod, decision.report, facts.claim, {"r1": "r1", "r2": "r2"}, "10.0.0.1")
    assert status.containers is not None
    by_name = {container[0]: container[3:6] for container in status.containers}
    assert by_name["r1"] == (
        "waiting",
        Progress.DEVICE_OFF,
        "r1 is stopped on request; start it with: kubectl lablet device start r1",
    )
    assert by_name["r2"][0] == by_name["lab"][0] == "running"
    assert ("Ready", "True", "", "") in status.conditions


@pytest.mark.parametrize("forget", ["paused", "reset_on", "lost_lab", "handed_back"])
def test_what_is_done_with_the_whole_lab_ends_the_wishes(forget: str) -> None:
    arguments = {"paused": (UNIX,), "reset_on": ("r", "m", UNIX), "lost_lab": (UNIX,), "handed_back": ()}[forget]
    assert getattr(wishing(r1=Wish.OFF), forget)(*arguments).wishes == {}


_TO = {DeviceAct.START: STARTED, DeviceAct.STOP: STOPPED, DeviceAct.WIPE: DEFINED}
_EVENTS = st.lists(
    st.one_of(st.sampled_from(["turn", "turn", "boot", "lost answer", "crash"]), st.sampled_from(list(DeviceAct))),
    max_size=30,
)


@given(events=_EVENTS)
def test_any_course_ends_as_the_last_request_says(events: list[str]) -> None:
    """A turn may be lost before or after its call; the device may fail by itself; requests come at any moment."""
    state, row, inputs = BOOTED, READY, NOTHING
    last: DeviceAct | None = None

    def turn(*, loses: bool = False) -> bool:
        nonlocal state, row
        work = work_of(inputs, row, devices(state, BOOTED))
        if work is None:
            return False
        row = work.claim
        if work.act is not None and not loses:
            assert not (work.act is DeviceAct.WIPE and state != STOPPED), "CML wipes only what is off"
            assert work.act is not DeviceAct.START or state in {STOPPED, DEFINED}
            state = _TO[work.act]
        return True

    for number, event in enumerate(events):
        match event:
            case "turn":
                turn()
            case "lost answer":
                turn(loses=True)
            case "boot":
                state = BOOTED if state == STARTED else state
            case "crash":
                state = STOPPED if state in observations.ACTIVE else state
            case act:
                last = DeviceAct(act)
                inputs = Inputs(devices=(("r1", deviceacts.written(last, UNIX + number)),))
    for _ in range(12):
        turn()
        state = BOOTED if state == STARTED else state
    assert not turn(), "it comes to rest"
    if last is DeviceAct.STOP:
        assert row.wishes == {"r1": Wish.OFF}
        assert state in {STOPPED, DEFINED}
    elif last is not DeviceAct.WIPE:
        assert row.wishes == {}


def test_the_command_offers_every_act() -> None:
    assert list(learners.ACTS) == list(DeviceAct)

"""A process whose clock is off by up to a day: nothing ends early, and nothing more than a minute late.

Each of the three decides what a passed stamp ends or hands out: the portal, the provider, and the program of muxes.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.labs.builders import BOOTED, claim, devices, facts_with, pod
from tests.unit.machines import DAY_S, Machine
from tests.unit.mux import builders as muxes
from tests.unit.portal.pure.builders import COMPLETE, REQUEST, lab
from tests.unit.portal.pure.builders import pod as user_pod
from vkprovider.lablet import names
from vkprovider.lablet.inputs import inputs_of
from vkprovider.lablet.reasons import Happened
from vkprovider.labs.pure.lablet.decisions.decide import decide as lablet_plan
from vkprovider.labs.pure.lablet.memory import Presence
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.mux.pure.decide import decide as mux_plan
from vkprovider.platform.times import iso
from vkprovider.portal.pure.decide import End
from vkprovider.portal.pure.decide import decide as userlab_plan
from vkprovider.portal.settings import PortalSettings

BEFORE_S: Final = 90
LATE_S: Final = 60
Judge = Callable[[float, bool], bool]
"""Tells for a time, and whether that is certain, whether something ends or is handed out."""


def the_portal(due: float) -> Judge:
    """A user lab whose time is over, and whose Pod does not end."""
    running = lab(REQUEST, COMPLETE, the_pod=user_pod(end=int(due) - 300, ready=True))
    limits = PortalSettings(start_timeout_s=600, delete_timeout_s=300, idle_s=0, failed_s=3600)

    def ends(wall: float, sure: bool) -> bool:  # noqa: FBT001 (a judge)
        return isinstance(userlab_plan(running, wall, limits, looked=True, sealed=True, sure=sure).step, End)

    return ends


def the_provider(due: float) -> Judge:
    """A lablet whose timeslot is over."""
    notes = {names.ANNOTATION_USERNAME: "alice", names.ANNOTATION_TIMESLOT_END: iso(int(due))}
    item = pod(phase="Running", annotations=notes)
    begun = msgspec.structs.replace(
        claim(lab_id="lab-1", started_at=int(due) - 600, ready_at=int(due) - 500), learner="alice"
    )
    known: dict[str, Any] = {
        "pod": item,
        "claim": begun,
        "presence": Presence.PRESENT,
        "devices": devices(*BOOTED),
        "inputs": inputs_of(item.metadata),
        "extracted": True,
    }

    def ends(wall: float, sure: bool) -> bool:  # noqa: FBT001 (a judge)
        found = lablet_plan(facts_with(**known, now_unix=int(wall), sure=sure), 5000.0, LabletSettings())
        return Happened.TIMESLOT_ENDED in {each.reason for each in found.events}

    return ends


def the_muxes(due: float) -> Judge:
    """The only number of a mux, which was another channel's until a while ago."""
    the_mux, freed = muxes.mux("20000-20000"), due - muxes.REST_S
    gone = muxes.after(the_mux, [], muxes.after(the_mux, [muxes.channel("app/a", "http:auto")], now=freed).state, freed)

    def given_again(wall: float, sure: bool) -> bool:  # noqa: FBT001 (a judge)
        asking = [muxes.channel("app/b", "http:auto")]
        return bool(mux_plan(the_mux, asking, gone.state, wall, rest_s=muxes.REST_S, sure=sure).mapped)

    return given_again


@pytest.mark.parametrize("process", [the_portal, the_provider, the_muxes])
@given(
    off_s=st.floats(-DAY_S, DAY_S),
    set_s=st.floats(-DAY_S, DAY_S),
    began_s=st.integers(0, BEFORE_S + 20),
    waits=st.lists(st.integers(1, 8), min_size=1, max_size=5),
)
@settings(max_examples=40, deadline=None)
def test_a_clock_that_is_off_ends_nothing_early_and_nothing_a_minute_late(
    process: Callable[[float], Judge], off_s: float, set_s: float, began_s: int, waits: list[int]
) -> None:
    """The process begins `began_s` into the story, hears an answer after each of `waits`, and its clock is set once."""
    machine = Machine(off_s)
    due = machine.true + BEFORE_S
    judge = process(due)
    hears_at, heard, ended_at = began_s, 0, 0.0
    for second in range(BEFORE_S + LATE_S + began_s):
        if second >= hears_at:
            machine.hear()
            hears_at, heard = second + waits[heard % len(waits)], heard + 1
        if second == BEFORE_S - 10:
            machine.off_s = set_s
        if second > began_s and judge(machine.clock.wall(), machine.clock.is_sure()):
            ended_at = machine.true
            break
        machine.up_s += 1.0
    assert ended_at >= due
    assert ended_at - max(due, due - BEFORE_S + began_s) <= LATE_S

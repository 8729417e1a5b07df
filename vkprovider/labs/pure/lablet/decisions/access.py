"""The mux's address in a learner's session: the session waits for it, for some time, if the definition says so."""

from collections.abc import Mapping
from typing import Final

from vkprovider.lablet import exposure
from vkprovider.lablet.exposure import Exposure
from vkprovider.lablet.lifecycle import State
from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.labs.pure.lablet.decisions.living import Living
from vkprovider.labs.pure.lablet.decisions.reports import instantiating
from vkprovider.labs.pure.lablet.exposing import NO_ANSWER, NoSlice
from vkprovider.labs.pure.lablet.facts import Decision, Facts, Report
from vkprovider.labs.pure.lablet.steps import WAIT
from vkprovider.platform.messages import Notice
from vkprovider.platform.wording import listed

_SLOTS_MAX: Final = 5
"""Ports in one message."""


def await_access(lablet: Living) -> Decision | None:
    """Wait until the mux leads to the lablet's ports; None if there is nothing to wait for, or not any longer."""
    facts, exposing, wait_s = lablet.facts, lablet.facts.exposing, lablet.limits.access_wait_s
    if not exposing.lds or not (exposing.wanted is NoSlice.UNKNOWN or exposing.unsettled):
        return None
    since = facts.memory.access_since
    left = since + wait_s - lablet.now if since else wait_s
    if left <= 0:
        return None
    slots = listed(exposing.unsettled, _SLOTS_MAX) or "the lablet's ports"
    text = f"the session is made when the mux leads to {slots}"
    report = warm(lablet) or instantiating(facts, Progress.WAITING_FOR_ACCESS, text)
    return Decision(WAIT, report, after_s=left, awaits_access=True)


def via(facts: Facts) -> Mapping[str, tuple[str, int]]:
    """Return the mux's address and port of each slot to which it leads, if the LDS is to be told."""
    exposing = facts.exposing
    if not exposing.lds or not exposing.stands:
        return {}
    return {slot: (one.address, one.port) for slot, one in exposing.access.items() if one.state == exposure.LIVE}


def without_access(facts: Facts) -> tuple[Notice, ...]:
    """Return the Event about slots for which the LDS is told the worker's address, although it should not be."""
    exposing, live = facts.exposing, via(facts)
    wanted = exposing.wanted
    if not exposing.lds:
        return ()
    if wanted is NoSlice.UNKNOWN:
        told = "the worker has no IP address that is known: the session has the worker's address"
        text = f"no mux leads to the lablet's ports, because {told}"
        return (Notice("Warning", Trouble.ACCESS_MISSING, text),)
    if not isinstance(wanted, Exposure):
        return ()
    lacking = [port.slot for port in wanted.ports if port.slot not in live]
    if not lacking:
        return ()
    told = listed([f"{slot} ({exposing.access.get(slot, NO_ANSWER).text})" for slot in lacking], _SLOTS_MAX)
    text = f"mux {wanted.mux} does not lead to {told}: the session has the worker's address"
    return (Notice("Warning", Trouble.ACCESS_MISSING, text),)


def warm(lablet: Living) -> Report | None:
    """Return the report of a lablet that was ready before it got its learner: it serves on; None for any other."""
    if not lablet.claim.ready_at:
        return None
    return Report(State.READY, phase="Running", devices=lablet.facts.devices)

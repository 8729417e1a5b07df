"""What comes before a decision if a mux leads to the lablet's ports; `test_lablet_world` tells whole stories."""

from typing import Any

import msgspec
import pytest

from tests.unit.labs.builders import BOOTED, claim, devices, facts_with, pod
from vkprovider.lablet import exposure, names, observations
from vkprovider.lablet.exposure import Exposure, Lending, expose_of
from vkprovider.lablet.inputs import Inputs
from vkprovider.lablet.reasons import Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet import exposing, outcomes, steps
from vkprovider.labs.pure.lablet.after import after
from vkprovider.labs.pure.lablet.after import decided as after_decision
from vkprovider.labs.pure.lablet.decisions.decide import decide
from vkprovider.labs.pure.lablet.exposing import Exposing, NoSlice
from vkprovider.labs.pure.lablet.facts import Decision
from vkprovider.labs.pure.lablet.memory import Memory, Presence
from vkprovider.labs.pure.session.delivery import Delivery, Session
from vkprovider.labs.pure.topology import topology as topologies
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import EndpointSlice
from vkprovider.platform.reasons import PortReason

NOW = 5000.0
UNIX = 1_800_000_000
LIMITS = LabletSettings(extract_on_stop=False)
READY: dict[str, Any] = {"lab_id": "lab-1", "started_at": UNIX - 60, "ready_at": UNIX - 30}
ANN = READY | {"learner": "ann", "noted": "ann"}
ANNS = {"inputs": Inputs(username="ann")}
LENT = ANN | {"exposed": "labs"}
PORTS = exposure.ports_of([("h0_serial", "TCP", 10011)])
TOPOLOGY = topologies.parse(
    "lab: {version: 0.3.0}\nlinks: []\nnodes:\n"
    "- {id: n0, label: h0, node_definition: alpine, x: 0, y: 0, tags: ['serial:5000', 'pat:udp:501:53', 'http:502']}\n"
)


def wanted(learner: str = "ann", *, mux: str = "labs") -> Exposure:
    row = claim()
    return Exposure("w1", mux, row.namespace, row.pod, row.pod_uid, learner, "198.51.100.1", PORTS)


STANDS = Exposing(wanted(), seen=wanted(), seen_uid="s-1")
NONE_YET = Exposing(wanted())


def decided(row: dict[str, Any], state: Exposing, *states: str, **known: Any) -> Decision:
    known = {"pod": pod(), "presence": Presence.PRESENT, "now_unix": UNIX} | known
    facts = facts_with(claim=claim(**row), devices=devices(*states or BOOTED), exposing=state, **known)
    return decide(facts, NOW, LIMITS)


# ------------------------------------------------------------------------------------------ lent


def test_the_claim_says_that_ports_are_lent_before_they_are() -> None:
    decision = decided(ANN, NONE_YET, **ANNS)
    assert decision.step is steps.SAVE
    assert decision.claim is not None
    assert decision.claim.exposed == "labs"
    assert decided(LENT, NONE_YET, claim_saved=False, **ANNS).step is steps.WAIT
    assert decided(LENT, NONE_YET, **ANNS).step == steps.Expose(wanted(), "")


def test_a_slice_that_says_what_it_should_is_left_alone() -> None:
    decision = decided(LENT, STANDS, **ANNS)
    assert (decision.step, decision.claim) == (steps.WAIT, None)


@pytest.mark.parametrize("seen", [None, wanted(""), msgspec.structs.replace(wanted(), address="198.51.100.2")])
def test_a_slice_that_says_anything_else_is_replaced(seen: Exposure | None) -> None:
    assert decided(LENT, Exposing(wanted(), seen=seen, seen_uid="s-1"), **ANNS).step == steps.Expose(wanted(), "s-1")


def test_a_slice_is_not_written_again_before_the_watch_can_show_it() -> None:
    decision = decided(LENT, NONE_YET, expose_at=NOW + 1.5, **ANNS)
    assert (decision.step, decision.after_s) == (steps.WAIT, 1.5)
    place = outcomes.Circumstances("w1", pod(), NOW, UNIX)
    left = after(Memory(), claim(**LENT), steps.Expose(wanted(), ""), outcomes.Done(), place)
    assert left.memory.expose_at == NOW + exposing.EXPOSE_AGAIN_S


def test_another_mux_is_noted_first() -> None:
    other = Exposing(wanted(mux="other"), seen=wanted(), seen_uid="s-1")
    decision = decided(LENT, other, **ANNS)
    assert decision.step is steps.SAVE
    assert decision.claim is not None
    assert decision.claim.exposed == "other"


def test_a_lablet_is_lent_while_it_boots_and_not_before() -> None:
    booting = {"lab_id": "lab-1", "started_at": UNIX, "exposed": "labs"}
    state = Exposing(wanted(""))
    assert isinstance(decided(booting, state, observations.STARTED, starting_since=NOW).step, steps.Expose)
    assert isinstance(decided({"lab_id": "lab-1"}, state, observations.DEFINED).step, steps.Start)


def test_the_learner_is_known_first() -> None:
    """The slice names the learner of the stored claim, not one that is about to be."""
    assert isinstance(decided(READY | {"exposed": "labs"}, Exposing(wanted("")), **ANNS).step, steps.Wait)


@pytest.mark.parametrize(
    ("row", "asked"),
    [
        (READY, Inputs(pool="evening")),
        (READY | {"lent_back": "evening"}, Inputs()),
        (READY | {"lent_back": "evening"}, Inputs(username="bob")),
    ],
)
def test_a_warm_lablet_is_not_lent(row: dict[str, Any], asked: Inputs) -> None:
    state = Exposing(wanted(""))
    decision = decided(row, state, inputs=asked)
    assert decision.claim is None or not decision.claim.exposed
    stands = Exposing(wanted(""), seen=wanted(""), seen_uid="s-1")
    assert isinstance(decided(row | {"exposed": "labs"}, stands, inputs=asked).step, steps.Withdraw)


def test_a_worker_to_which_nothing_can_lead_is_told() -> None:
    fault = exposing.address_fault("w1", "127.0.0.1")
    assert fault is not None
    decision = decided(ANN, Exposing(fault), **ANNS)
    assert [event.reason for event in decision.events] == [Trouble.NOT_EXPOSABLE]
    assert "spec.address" in decision.events[0].message
    assert exposing.address_fault("w1", "198.51.100.1") is None
    assert exposing.address_fault("w1", "fe80::1") is not None


# ------------------------------------------------------------------------------------------ withdrawn


@pytest.mark.parametrize(
    ("row", "known"),
    [
        (LENT, {"pod": pod(deleted=True)}),
        (LENT, {"pod": None, "gone_confirmed": True}),
        (LENT, {"inputs": Inputs(username="ann", desired=State.TERMINATED)}),
        (LENT, {"inputs": Inputs(username="ann", desired=State.STOPPED)}),
        (LENT, {"inputs": Inputs(username="ann", desired=State.COLLECTING)}),
        (LENT, {"inputs": Inputs(username="ann", reset="again")}),
        (LENT, {"inputs": Inputs(username="ann", slot_end=UNIX)}),
        (LENT, {"inputs": Inputs(username="ann", slot_end=UNIX), "silent": "worker w1 does not answer"}),
        (LENT | {"resetting": True}, ANNS),
        (LENT | {"closing_reason": "Collecting", "lent_by": "evening"}, ANNS),
        (LENT | {"outcome": "Failed"}, ANNS),
        (LENT, ANNS | {"presence": Presence.ABSENT}),
        (LENT | {"ports_fault": Fault(PortReason.PORT_CONFLICT, "x")}, ANNS),
    ],
)
def test_ports_are_withdrawn_before_anything_ends(row: dict[str, Any], known: dict[str, Any]) -> None:
    decision = decided(row, STANDS, **known)
    assert decision.report is None, "what the stage would report has not begun"
    step = decision.step
    assert isinstance(step, steps.Withdraw)
    assert (step.seen_uid, step.rest_s) == ("s-1", 60)
    for state in (NONE_YET, Exposing()):
        assert isinstance(decided(row, state, **known).step, steps.Withdraw), "the claim says that a slice may stand"


@pytest.mark.parametrize(
    "known",
    [{"silent": "worker w1 does not answer"}, {"presence": Presence.UNKNOWN}],
)
def test_a_slice_stays_while_a_worker_is_silent(known: dict[str, Any]) -> None:
    assert isinstance(decided(LENT, STANDS, **ANNS, **known).step, steps.Wait)


def test_a_slice_goes_when_the_definition_lends_nothing_any_more() -> None:
    state = Exposing(seen=wanted(), seen_uid="s-1")
    assert isinstance(decided(LENT, state, **ANNS).step, steps.Withdraw)
    in_doubt = Exposing(NoSlice.UNKNOWN, seen=wanted(), seen_uid="s-1")
    assert isinstance(decided(LENT, in_doubt, **ANNS).step, steps.Wait), "the definition is gone, or not read yet"


def test_a_slice_goes_when_the_address_of_the_worker_is_one_to_which_nothing_can_lead() -> None:
    fault = exposing.address_fault("w1", "127.0.0.1")
    assert fault is not None
    state = Exposing(fault, seen=wanted(), seen_uid="s-1")
    assert isinstance(decided(LENT, state, **ANNS).step, steps.Withdraw)
    told = decided(ANN, state, withdrawn="s-1", **ANNS)
    assert [event.reason for event in told.events] == [Trouble.NOT_EXPOSABLE]


def test_a_pod_that_is_missing_is_asked_for_before_its_ports_are_withdrawn() -> None:
    """The informer's cache may not show it yet."""
    assert isinstance(decided(LENT, STANDS, pod=None).step, steps.ConfirmGone)


def test_a_slice_that_no_claim_names_is_withdrawn_once() -> None:
    """Claims were lost, and rebuilt without it."""
    ended = ANN | {"outcome": "Failed"}
    assert isinstance(decided(ended, STANDS, **ANNS).step, steps.Withdraw)
    assert not isinstance(decided(ended, STANDS, withdrawn="s-1", **ANNS).step, steps.Withdraw), "the watch lags"


def test_withdrawn_ports_rest() -> None:
    place = outcomes.Circumstances("w1", pod(), NOW, UNIX)
    left = after(Memory(), claim(**LENT), steps.Withdraw(claim(**LENT), "s-1", 60), outcomes.Done(), place)
    assert left.claim is not None
    assert (left.claim.exposed, left.claim.rest_until) == ("", UNIX + 60)
    assert not left.lazy, "what follows waits for the claim"
    assert left.memory.withdrawn == "s-1"


@pytest.mark.parametrize(
    ("rest_until", "wait_s"),
    [(UNIX + 40, 40), (UNIX + 62, 62), (UNIX, None), (UNIX + 4000, None)],
    ids=["rests", "clock-behind", "rested", "clock"],
)
def test_a_lablet_goes_back_to_its_pool_when_its_ports_have_rested(rest_until: int, wait_s: int | None) -> None:
    row = READY | {"lent_back": "evening", "rest_until": rest_until}
    decision = decided(row, Exposing())
    if wait_s is None:
        assert isinstance(decision.step, steps.ReturnToPool)
    else:
        assert (decision.step, decision.after_s) == (steps.WAIT, wait_s)


# ------------------------------------------------------------------------------------------ what is asked for


@pytest.mark.parametrize(
    ("spec", "expose"),
    [
        ({}, None),
        ({"expose": None}, None),
        ({"expose": "labs"}, None),
        ({"expose": {}}, None),
        ({"expose": {"mux": 1}}, None),
        ({"expose": {"mux": "a/b"}}, None),
        ({"expose": {"mux": "a.b.c"}}, None),
        ({"expose": {"mux": "labs", "ports": "all"}}, None),
        ({"expose": {"mux": "labs", "ports": [1]}}, None),
        ({"expose": {"mux": "labs"}}, Lending("labs")),
        (
            {"expose": {"mux": "labs.edge", "ports": ["h0_serial"], "lds": True}},
            Lending("labs.edge", ("h0_serial",), lds=True),
        ),
    ],
)
def test_nothing_is_exposed_that_is_not_asked_for_clearly(spec: dict[str, Any], expose: Lending | None) -> None:
    assert expose_of(spec) == expose


ROW: Claim = claim(ports={"h0_serial": 10011, "h0_patudp53": 10011, "h0_http": 10012}, udp=("h0_patudp53",))


def slots(expose: Lending) -> list[tuple[str, str, int]]:
    found = exposing.wanted_of(expose, ROW, TOPOLOGY.template, worker="w1", address="198.51.100.1")
    return [(port.slot, port.protocol, port.port) for port in found.ports] if found is not None else []


def test_without_names_every_port_is_lent_that_cml_opens() -> None:
    assert slots(Lending("labs")) == [("h0_patudp53", "UDP", 10011), ("h0_serial", "TCP", 10011)]


def test_with_names_these_ports_are_lent_and_unknown_ones_not() -> None:
    assert slots(Lending("labs", ("h0_http", "h9_serial"))) == [("h0_http", "TCP", 10012)]
    assert slots(Lending("labs", ("h9_serial",))) == []
    assert exposing.unknown_slots(["h0_http", "h9_serial"], TOPOLOGY.template) == ["h9_serial"]


def test_the_answer_of_the_mux_is_read_by_slot_and_a_damaged_slice_says_nothing() -> None:
    body = exposure.encode(wanted(), "vkprovider", worker_uid="u")
    live = {"h0-serial": exposure.Access("live", "203.0.113.1", 20000), "other": exposure.Access("pending")}
    body["metadata"]["annotations"][names.ANNOTATION_MUX_ANSWER] = exposure.encode_answer(live)
    found = msgspec.convert(body, EndpointSlice)
    assert exposing.read_slice(found) == (wanted(), {"h0_serial": live["h0-serial"]})
    body["metadata"]["annotations"][names.ANNOTATION_MUX_ANSWER] = "{"
    assert exposing.read_slice(msgspec.convert(body, EndpointSlice)) == (wanted(), {}), "the slice is as it should be"
    body["endpoints"] = None
    assert exposing.read_slice(msgspec.convert(body, EndpointSlice)) == (None, {})


# ------------------------------------------------------------------------------------------ the session's devices


WANTED = {"delivery": Delivery(wanted=True, deployment="eu-1"), **ANNS}
REQUESTED = LENT | {"session": Session("eu-1", "k", "ann"), "noted": "ann k eu-1"}
LIVE = exposure.Access("live", "203.0.113.10", 20000)


def answered(*accesses: exposure.Access, lds: bool = True) -> Exposing:
    answer = dict(zip(["h0_serial"], accesses, strict=False))
    return Exposing(wanted(), seen=wanted(), seen_uid="s-1", answer=answer, lds=lds)


@pytest.mark.parametrize("row", [LENT, REQUESTED])
@pytest.mark.parametrize("accesses", [(), (exposure.Access("pending", port=20000, why="the mux has no address yet"),)])
def test_a_session_waits_for_the_mux(row: dict[str, Any], accesses: tuple[exposure.Access, ...]) -> None:
    row = row | {"ready_at": 0}
    decision = decided(row, answered(*accesses), **WANTED)
    assert (decision.step, decision.after_s, decision.awaits_access) == (steps.WAIT, 60.0, True)
    assert decision.report is not None
    assert decision.report.waiting is not None
    assert decision.report.waiting.reason == "WaitingForAccess"
    assert decision.report.waiting.message == "the session is made when the mux leads to h0_serial"
    assert decided(row, answered(*accesses), access_since=NOW - 50, **WANTED).after_s == 10.0


NO_ADDRESS = Exposing(NoSlice.UNKNOWN, lds=True)


@pytest.mark.parametrize("row", [LENT, REQUESTED])
def test_a_session_waits_until_the_worker_has_an_address(row: dict[str, Any]) -> None:
    """What should stand is not known before."""
    decision = decided(row | {"ready_at": 0}, NO_ADDRESS, **WANTED)
    assert (decision.step, decision.after_s, decision.awaits_access) == (steps.WAIT, 60.0, True)
    assert decision.report is not None
    assert decision.report.waiting is not None
    assert decision.report.waiting.message == "the session is made when the mux leads to the lablet's ports"
    late = decided(REQUESTED, NO_ADDRESS, access_since=NOW - 60, **WANTED)
    assert isinstance(late.step, steps.Provision)
    assert [event.reason for event in late.events] == [Trouble.ACCESS_MISSING]
    assert "no IP address" in late.events[0].message


@pytest.mark.parametrize(
    "state",
    [
        Exposing(lds=True),
        Exposing(Fault(Trouble.NOT_EXPOSABLE, "x"), lds=True),
        Exposing(NoSlice.UNKNOWN),
    ],
    ids=["no-port", "no-way", "not-told"],
)
def test_a_session_does_not_wait_for_what_cannot_come(state: Exposing) -> None:
    decision = decided(REQUESTED | {"exposed": ""}, state, **WANTED)
    assert isinstance(decision.step, steps.Provision)
    assert decision.events == ()


def test_a_warm_lablet_serves_on_while_its_session_waits() -> None:
    decision = decided(LENT, answered(), **WANTED)
    assert decision.awaits_access
    assert decision.report is not None
    assert decision.report.ready


def test_a_session_waits_for_the_slice_too() -> None:
    none_yet = Exposing(wanted(), lds=True)
    assert decided(LENT, none_yet, **WANTED).step == steps.Expose(wanted(), "")
    assert decided(LENT, none_yet, expose_at=NOW + 9, **WANTED).awaits_access


@pytest.mark.parametrize("lds", [True, False])
def test_a_live_port_is_told_to_the_lds_if_the_definition_says_so(lds: bool) -> None:  # noqa: FBT001 (a parameter)
    decision = decided(REQUESTED, answered(LIVE, lds=lds), **WANTED)
    assert isinstance(decision.step, steps.Provision)
    assert decision.step.via == ({"h0_serial": ("203.0.113.10", 20000)} if lds else {})
    assert decision.events == ()


@pytest.mark.parametrize(
    ("accesses", "known", "told"),
    [
        ((exposure.Access("refused", why="MuxPortLimitExceeded"),), {}, "h0_serial (refused: MuxPortLimitExceeded)"),
        ((), {"access_since": NOW - 60}, "h0_serial (pending)"),
    ],
    ids=["refused", "late"],
)
def test_without_the_mux_the_session_has_the_address_of_the_worker(
    accesses: tuple[exposure.Access, ...], known: dict[str, Any], told: str
) -> None:
    decision = decided(REQUESTED, answered(*accesses), **known, **WANTED)
    assert isinstance(decision.step, steps.Provision)
    assert decision.step.via == {}
    [event] = decision.events
    assert event.reason is Trouble.ACCESS_MISSING
    assert told in event.message


def test_each_session_waits_by_itself() -> None:
    made = Session("eu-1", "k", "ann", id="s", ready_at=UNIX)
    place = outcomes.Circumstances("w1", pod(), NOW, UNIX)
    step = steps.Provision(claim(**REQUESTED), made, first_request=True)
    left = after(Memory(access_since=NOW - 9), claim(**REQUESTED), step, outcomes.Provisioned(made), place)
    assert left.memory.access_since == 0
    facts = facts_with(claim=claim(**LENT), pod=pod())
    assert after_decision(Memory(), facts, Decision(steps.WAIT, awaits_access=True), worker="w1", now=NOW).memory == (
        Memory(access_since=NOW)
    )


@pytest.mark.parametrize(
    ("before", "changed", "awaits", "since"),
    [
        (LENT, None, True, NOW - 9),
        (LENT, LENT | {"learner": "bob"}, True, NOW),
        (LENT, LENT | {"learner": "bob"}, False, 0.0),
        (LENT, READY | {"lent_back": "evening"}, False, 0.0),
        (LENT, LENT | {"recoveries": 1}, False, NOW - 9),
    ],
    ids=["same", "next", "next-later", "handed-back", "else"],
)
def test_each_learner_waits_by_itself(
    before: dict[str, Any],
    changed: dict[str, Any] | None,
    awaits: bool,  # noqa: FBT001 (a parameter)
    since: float,
) -> None:
    facts = facts_with(claim=claim(**before), pod=pod())
    decision = Decision(steps.WAIT, claim=claim(**changed) if changed else None, awaits_access=awaits)
    left = after_decision(Memory(access_since=NOW - 9), facts, decision, worker="w1", now=NOW)
    assert left.memory.access_since == since

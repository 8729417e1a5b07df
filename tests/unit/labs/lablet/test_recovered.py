"""Claims that were lost, rebuilt from the marked labs of a worker; and the notes that name a lab's lablet."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.labs import builders
from tests.unit.labs.builders import DEFINITION_UID, DIGEST, POD_UID, pod
from tests.unit.labs.topology.test_topology_ports import node, written
from vkprovider.lablet import names
from vkprovider.lablet import ports as mappings
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet.identity import Origin, notes_of, origin_of, renewed
from vkprovider.labs.pure.lablet.recovered import MarkedLab, adopted, recovered
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.labs.pure.topology.topology import NOTES_CHARS_MAX, parse
from vkprovider.platform.objects import Pod
from vkprovider.platform.ports.allocator import TCP, UDP, Holder

TOPOLOGY = parse(
    written(
        [
            node("r1", "serial:4001", "serial:4002:1", "pat:4003:22", "pat:udp:4004:53", "core"),
            node("pc 1", "vnc:4005", "serial:4006", "serial:4007"),
        ]
    )
)
CONTENT = Content("netlab", "1.2.0", DIGEST, 1, TOPOLOGY, Resources(), "content-1")
TAGS = {
    "r1": ("serial:10000", "serial:10001:1", "pat:10002:22", "pat:udp:10003:53", "core"),
    "pc 1": ("vnc:10004", "serial:10005", "serial:10006"),
}
PORTS = {
    "r1_serial": 10000,
    "r1_serial1": 10001,
    "r1_pat22": 10002,
    "r1_patudp53": 10003,
    "pc_1_vnc": 10004,
    "pc_1_serial": 10005,
    "pc_1_serial-2": 10006,
}
CONTENTS = {DIGEST: CONTENT}


def uid(number: int) -> str:
    return f"{number:08}{POD_UID[8:]}"


def origin(number: int = 1) -> Origin:
    return Origin(uid(number), "team", f"p{number}", "netlab", DEFINITION_UID, "1.2.0", DIGEST)


def lab(number: int = 1, tags: Mapping[str, tuple[str, ...]] = TAGS, **changed: Any) -> MarkedLab:
    title = f"netlab-{DEFINITION_UID[:8]}-{uid(number)}"
    found = MarkedLab(f"lab-{number}", title, f"2026-01-0{number}T00:00:00+00:00", origin(number), tags)
    return msgspec.structs.replace(found, **changed)


def fault_of(row: Claim) -> str:
    return row.ports_fault.reason if row.ports_fault is not None else ""


# ------------------------------------------------------------------------------------------ notes


def test_the_notes_name_the_lablet_and_its_content() -> None:
    row = builders.claim(namespace="team", pod="alice")
    notes = notes_of(row, installation="inst", replica="r-1", epoch=7)
    assert notes.splitlines()[:3] == ["vkprovider installation=inst", "pod: team/alice", "replica: r-1, epoch 7"]
    found = origin_of("renamed", f"{notes}\n\nThe author's notes\npod: x/y\n")
    assert found is not None
    assert (found.pod_uid, found.namespace, found.pod) == (row.pod_uid, "team", "alice")
    assert (found.definition, found.definition_uid, found.version, found.digest) == (
        row.definition,
        row.definition_uid,
        row.version,
        row.digest,
    )


@pytest.mark.parametrize("line", ["", "lablet: {", 'lablet: {"podUID": 1}'])
def test_without_that_line_the_title_says_whose_lab_it_is(line: str) -> None:
    notes = f"vkprovider installation=inst\npod: team/alice\nreplica: r-1, epoch 7\n{line}\n"
    assert origin_of(builders.claim().title, notes) == Origin(POD_UID, "team", "alice", "netlab")
    assert origin_of("renamed", notes) is None
    assert origin_of(builders.claim().title, "vkprovider installation=inst") is None


@given(st.text(), st.text())
def test_any_text_is_read(title: str, notes: str) -> None:
    origin_of(title, notes)


OF_ALICE = builders.claim(
    learner="alice", sessions=2, session=Session("eu-1", f"{POD_UID}.2", "alice", 1_800_000_000, 1_800_003_600)
)
WRITER: Final[dict[str, Any]] = {"installation": "inst", "replica": "r-1", "epoch": 7}


def test_the_notes_name_the_learner_and_the_session_before_it_is_requested() -> None:
    found = origin_of("renamed", notes_of(OF_ALICE, **WRITER))
    assert found is not None
    assert (found.learner, found.sessions, found.session) == ("alice", 2, OF_ALICE.session)
    bare = origin_of("renamed", notes_of(msgspec.structs.replace(OF_ALICE, session=None), **WRITER))
    assert bare is not None
    assert (bare.learner, bare.session) == ("alice", None)


@pytest.mark.parametrize("written", ["", "\n\nThe author's notes\nlablet: x"])
def test_notes_that_are_renewed_keep_what_others_wrote(written: str) -> None:
    before = notes_of(builders.claim(), **WRITER) + written
    after = renewed(before, OF_ALICE, installation="inst", replica="r-2", epoch=8)
    assert after == notes_of(OF_ALICE, **WRITER) + written


@pytest.mark.parametrize("left", ["", "someone's own", "vkprovider installation=inst", "vkprovider installation=other"])
def test_notes_of_which_ours_were_removed_have_them_again(left: str) -> None:
    after = renewed(left, OF_ALICE, **WRITER)
    assert after == f"{notes_of(OF_ALICE, **WRITER)}\n\n{left}"
    assert len(renewed("x" * 40_000, OF_ALICE, **WRITER)) == NOTES_CHARS_MAX


# ------------------------------------------------------------------------------------------ ports in tags


def test_the_ports_of_a_lab_are_read_from_its_tags() -> None:
    assert mappings.ports_in(TOPOLOGY.template, TAGS) == PORTS


@pytest.mark.parametrize(
    "tags",
    [
        {},
        {"r1": TAGS["r1"]},
        {**TAGS, "r1": (*TAGS["r1"], "vnc:10009")},
        {**TAGS, "r1": TAGS["r1"][1:]},
        {**TAGS, "r9": ("serial:10009",)},
        {**TAGS, "pc 1": ("vnc:70000", "serial:10005", "serial:10006")},
        {**TAGS, "pc 1": ("vnc:0", "serial:10005", "serial:10006")},
    ],
)
def test_tags_that_are_not_the_templates_say_nothing(tags: dict[str, tuple[str, ...]]) -> None:
    assert mappings.ports_in(TOPOLOGY.template, tags) is None


# ------------------------------------------------------------------------------------------ rows


def test_a_row_has_the_lab_the_content_and_the_ports_that_the_tags_have() -> None:
    [row] = recovered([lab()], {uid(1): pod(uid=uid(1), annotations={"vkprovider.io/reset": "once"})}, CONTENTS)
    assert (row.pod_uid, row.namespace, row.pod, row.lab_id) == (uid(1), "team", "p1", "lab-1")
    assert (row.definition, row.definition_uid, row.version, row.digest) == (
        "netlab",
        DEFINITION_UID,
        "1.2.0",
        DIGEST,
    )
    assert (row.ports, row.udp, row.ports_fault) == (PORTS, ("r1_patudp53",), None)
    assert row.reset == "once", "a reset that was carried out is not carried out again"
    assert row.title == lab().title


def living(*numbers: int, shown: str = "") -> dict[str, Pod]:
    """Return Pods by UID, which show a lab."""
    annotations = {names.ANNOTATION_LAB_ID: shown} if shown else {}
    return {uid(number): pod(uid=uid(number), annotations=annotations) for number in numbers}


@pytest.mark.parametrize("title", ["its own", "my lab"])
def test_the_lab_of_a_pod_that_is_gone_has_no_row_because_it_may_be_a_copy(title: str) -> None:
    found = lab() if title == "its own" else lab(title=title)
    assert recovered([found], {}, CONTENTS) == []
    assert [row.lab_id for row in recovered([found], living(1), CONTENTS)] == ["lab-1"]


COPY = lab(lab_id="copy", created="2026-01-02T00:00:00+00:00")


@pytest.mark.parametrize(
    ("found", "shown", "named"),
    [
        ([lab(), COPY], "lab-1", "lab-1"),
        ([lab(), COPY], "copy", "copy"),
        ([lab(), COPY], "", ""),
        ([lab(), lab(lab_id="copy", title="alice's, saved")], "", ""),
        ([COPY], "lab-1", ""),
        ([COPY], "", "copy"),
    ],
)
def test_a_row_names_the_lab_that_the_pod_shows_or_else_the_only_one(
    found: list[MarkedLab], shown: str, named: str
) -> None:
    [row] = recovered(found, living(1, shown=shown), CONTENTS)
    assert (row.lab_id, row.ports, fault_of(row)) == (named, PORTS, "")


@pytest.mark.parametrize("changed", [{"deleted": True}, {"phase": "Succeeded"}])
def test_a_pod_that_ends_is_given_the_lab_that_it_shows_alone(changed: dict[str, Any]) -> None:
    ending = {uid(1): pod(uid=uid(1), annotations={names.ANNOTATION_LAB_ID: "lab-1"}, **changed)}
    assert [row.lab_id for row in recovered([lab(), COPY], ending, CONTENTS)] == ["lab-1"]
    assert recovered([COPY], ending, CONTENTS) == [], "its own lab is gone"
    assert recovered([lab()], {uid(1): pod(uid=uid(1), **changed)}, CONTENTS) == []


def test_of_two_labs_with_one_port_the_older_keeps_it() -> None:
    tags = {**TAGS, "r1": ("serial:10000", "serial:11001:1", "pat:11002:22", "pat:udp:11003:53")}
    tags["pc 1"] = ("vnc:11004", "serial:11005", "serial:11006")
    first, second = recovered([lab(2, tags), lab()], living(1, 2), CONTENTS)
    assert (first.lab_id, first.ports, fault_of(first)) == ("lab-1", PORTS, "")
    assert (second.lab_id, fault_of(second)) == ("lab-2", "PortConflict")
    assert sorted(second.ports.values()) == list(range(11001, 11007)), "no other lablet is given those"
    assert second.ports_fault is not None
    assert "10000" in second.ports_fault.message


@pytest.mark.parametrize(
    ("found", "contents"),
    [
        (lab(), {}),
        (lab(tags={**TAGS, "r1": ("serial:10000", "pat:udp:10003:53")}), CONTENTS),
        (lab(origin=Origin(uid(1), "team", "p1", "netlab")), CONTENTS),
    ],
)
def test_ports_that_cannot_be_read_are_unknown_and_held(found: MarkedLab, contents: dict[str, Content]) -> None:
    [row] = recovered([found], living(1), contents)
    assert (row.lab_id, fault_of(row)) == ("lab-1", "PortsUnknown")
    held = {(slot.protocol, slot.port) for slot in row.held}
    assert {(TCP, 10000), (UDP, 10003)} <= held


@given(st.lists(st.integers(1, 6), unique=True), st.integers(0, 3), st.booleans())
def test_no_port_is_in_two_rows_and_no_lab_either(numbers: list[int], step: int, known: bool) -> None:  # noqa: FBT001 (drawn)
    def tags(first: int) -> dict[str, tuple[str, ...]]:
        ports = iter(range(first, first + 9))
        r1 = tuple(text.format(next(ports)) for text in ("serial:{}", "serial:{}:1", "pat:{}:22", "pat:udp:{}:53"))
        return {"r1": r1, "pc 1": tuple(text.format(next(ports)) for text in ("vnc:{}", "serial:{}", "serial:{}"))}

    labs = [lab(number, tags(10000 + step * number)) for number in numbers]
    rows = recovered(labs, living(*numbers), CONTENTS if known else {})
    assert sorted(row.lab_id for row in rows) == sorted(found.lab_id for found in labs)
    held = [(slot.protocol, slot.port) for row in rows for slot in row.held]
    assert len(held) == len(set(held))
    opened = {
        int(part)
        for one in labs
        for texts in one.tags.values()
        for part in " ".join(texts).replace(":", " ").split()
        if part.isdigit() and int(part) >= 10000
    }
    assert {port for _, port in held} == opened


def test_a_row_has_the_learner_and_the_session_that_the_notes_name_whatever_the_pod_says() -> None:
    said = origin_of("", notes_of(msgspec.structs.replace(OF_ALICE, pod_uid=uid(1)), **WRITER))
    assert said is not None
    [row] = recovered([lab(origin=said)], {uid(1): pod(uid=uid(1), annotations={names.ANNOTATION_USERNAME: "eve"})}, {})
    session = Session("eu-1", f"{uid(1)}.2", "alice", 1_800_000_000, 1_800_003_600)
    assert (row.learner, row.sessions, row.session) == ("alice", 2, session)
    assert row.noted == row.binding


# ------------------------------------------------------------------------------------------ a lab that was found


@pytest.mark.parametrize(
    ("row", "learner"),
    [
        (builders.claim(), "alice"),
        (builders.claim(learner="bob"), "bob"),
        (builders.claim(closing_reason="Collecting"), ""),
        (builders.claim(lent_back="evening"), ""),
    ],
)
def test_a_lab_that_was_found_brings_its_learner_unless_the_claim_knows_better(row: Claim, learner: str) -> None:
    said = msgspec.structs.replace(origin(), learner="alice")
    found = adopted(row, lab(origin=said), CONTENT, {})
    assert (found.learner, found.noted) == (learner, "alice")


def test_a_lab_that_was_found_brings_the_ports_that_it_has() -> None:
    row = builders.claim(ports=dict.fromkeys(PORTS, 1), udp=("r1_patudp53",))
    found = adopted(row, lab(), CONTENT, {(TCP, 10000): Holder(POD_UID, "r1_serial")})
    assert (found.lab_id, found.ports, found.udp, found.ports_fault) == ("lab-1", PORTS, ("r1_patudp53",), None)


def test_a_lab_whose_ports_are_anothers_says_so() -> None:
    row = builders.claim(ports=dict.fromkeys(PORTS, 1))
    found = adopted(row, lab(), CONTENT, {(TCP, 10004): Holder("b", "vnc")})
    assert (found.lab_id, found.ports, fault_of(found)) == ("lab-1", row.ports, "PortConflict")
    assert fault_of(adopted(row, lab(tags={}), CONTENT, {})) == "PortsUnknown"
    assert fault_of(adopted(row, lab(), None, {})) == "PortsUnknown"

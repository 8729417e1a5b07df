"""The record of a user lab: what is written is read again, and what is damaged is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.portal.pure.builders import COMPLETE, ENDING, FAILED, INSTALLATION, NOW, REQUEST, namespace
from vkprovider.platform.objects import Metadata
from vkprovider.portal.pure import portalnames, record
from vkprovider.portal.pure.record import Ending, LabOutcome, LabRequest, Saved

TEXT = st.text(max_size=30)
VALUES = st.one_of(TEXT, st.booleans(), st.integers(0, 100))
REQUESTS = st.builds(
    LabRequest,
    id=TEXT,
    at=st.integers(0, 2**40),
    definition=TEXT,
    options=st.dictionaries(TEXT, VALUES, max_size=3),
    env=st.lists(TEXT, max_size=3).map(tuple),
    by=TEXT,
    duration_s=st.integers(0, 2**31),
)
ENDINGS = st.builds(Ending, id=TEXT, at=st.integers(0, 2**40), by=TEXT, reason=TEXT)
LINES = st.builds(Saved, at=st.floats(0, 2**40), kind=TEXT, source=TEXT, order=st.integers(0, 9), text=TEXT)
OPERATIONS = st.builds(
    LabOutcome,
    id=TEXT,
    kind=st.sampled_from(["create", "delete"]),
    phase=st.sampled_from(["complete", "failed"]),
    at=st.integers(0, 2**40),
    reason=TEXT,
    text=TEXT,
    lines=st.lists(LINES, max_size=2).map(tuple),
)


@given(st.text(min_size=1, max_size=300), REQUESTS, ENDINGS, OPERATIONS)
def test_what_is_written_is_read_again(user: str, asked: LabRequest, ending: Ending, ended: LabOutcome) -> None:
    found = record.record_of(namespace(user, asked, ending, ended), INSTALLATION)
    assert found is not None
    assert (found.user, found.request, found.ending, found.last_outcome) == (user, asked, ending, ended)
    assert not found.damaged
    assert not found.warm


@pytest.mark.parametrize("mark", [None, "", "other"])
def test_a_namespace_without_the_mark_is_not_ours(mark: str | None) -> None:
    """A stranger's `nublado-alice` (R002-024)."""
    meta = namespace("alice", REQUEST)
    labels = {key: text for key, text in meta.labels.items() if key != portalnames.LABEL_PORTAL}
    meta = Metadata(meta.name, labels=labels | ({portalnames.LABEL_PORTAL: mark} if mark is not None else {}))
    assert record.record_of(meta, INSTALLATION) is None
    assert not record.belongs_to(meta, INSTALLATION, "alice")


def test_a_record_belongs_to_the_exact_user() -> None:
    meta = namespace("alice", REQUEST)
    assert record.belongs_to(meta, INSTALLATION, "alice")
    assert not record.belongs_to(meta, INSTALLATION, "Alice")


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        ({}, {portalnames.ANNOTATION_USER: "mallory"}),
        ({}, {portalnames.ANNOTATION_USER: ""}),
        ({portalnames.LABEL_USER: "mallory"}, {}),
    ],
)
def test_a_record_whose_user_was_changed_is_nobodys(labels: dict[str, str], annotations: dict[str, str]) -> None:
    found = record.record_of(namespace("alice", REQUEST, labels=labels, annotations=annotations), INSTALLATION)
    assert found is not None
    assert (found.user, found.key) == ("", "")
    assert found.damaged == (portalnames.LABEL_USER,)


@pytest.mark.parametrize(
    "name", [portalnames.ANNOTATION_REQUEST, portalnames.ANNOTATION_ENDING, portalnames.ANNOTATION_OPERATION]
)
@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"id": 1, "at": 2}', "null", '{"id": "x", "at": "soon"}'])
def test_a_damaged_part_counts_as_absent_and_is_named(name: str, text: str) -> None:
    meta = namespace("alice", REQUEST, ENDING, COMPLETE, annotations={name: text})
    found = record.record_of(meta, INSTALLATION)
    assert found is not None
    assert found.damaged == (name,)
    parts = {
        portalnames.ANNOTATION_REQUEST: found.request,
        portalnames.ANNOTATION_ENDING: found.ending,
        portalnames.ANNOTATION_OPERATION: found.last_outcome,
    }
    assert [part for part, value in parts.items() if value is None] == [name]


def test_an_operation_has_ended_if_the_outcome_has_its_id() -> None:
    def outcome(*parts: LabRequest | Ending | LabOutcome) -> LabOutcome | None:
        found = record.record_of(namespace("alice", *parts), INSTALLATION)
        assert found is not None
        return found.outcome

    assert outcome(REQUEST) is None
    assert outcome(REQUEST, COMPLETE) == COMPLETE
    assert outcome(REQUEST, ENDING, COMPLETE) is None
    assert outcome(REQUEST, ENDING, failed := LabOutcome(id="e1", kind="delete", phase="failed", at=NOW)) == failed
    assert outcome(LabRequest(id="r2", at=NOW, definition="netlab:1.0"), FAILED) is None


def test_a_request_that_replaces_a_failed_lab_removes_what_was_asked_before() -> None:
    patch = record.replaced("alice", REQUEST)
    before = namespace("alice", LabRequest(id="r0", at=1, definition="x:1"), ENDING, FAILED).annotations
    after = {key: text for key, text in {**before, **patch}.items() if text is not None}
    found = record.record_of(Metadata("n", labels=namespace("alice").labels, annotations=after), INSTALLATION)
    assert found is not None
    assert (found.request, found.ending, found.last_outcome) == (REQUEST, None, None)


def test_a_warm_lab_has_a_family_and_no_user() -> None:
    labels = record.warm_labels_for(INSTALLATION, "netlab")
    meta = Metadata("nublado-warm-00000000ff", labels=labels, annotations=record.annotation(REQUEST))
    found = record.record_of(meta, INSTALLATION)
    assert found is not None
    assert (found.user, found.key, found.family, found.warm) == ("", "warm-00000000ff", "netlab", True)
    taken = Metadata(
        meta.name,
        labels=labels | record.labels_for(INSTALLATION, "alice", class_="team"),
        annotations=record.annotations_for("alice", REQUEST),
    )
    found = record.record_of(taken, INSTALLATION)
    assert found is not None
    assert (found.user, found.key, found.family, found.class_, found.warm) == (
        "alice",
        "alice",
        "netlab",
        "team",
        False,
    )


def test_no_user_becomes_warm_by_a_label() -> None:
    labels = {portalnames.LABEL_PORTAL: INSTALLATION, portalnames.LABEL_WARM: "netlab"}
    found = record.record_of(Metadata("nublado-alice", labels=labels), INSTALLATION)
    assert found is not None
    assert found.damaged == (portalnames.LABEL_USER,)
    assert not found.key
    assert not found.warm


def test_an_operation_ends_with_the_id_of_the_one_under_way() -> None:
    asked = record.record_of(namespace("alice", REQUEST), INSTALLATION)
    assert asked is not None
    assert record.ended(asked, "complete", NOW + 0.9) == COMPLETE
    deleting = record.record_of(namespace("alice", REQUEST, COMPLETE, record.ending("e9", NOW, by="hub")), INSTALLATION)
    assert deleting is not None
    failed = record.ended(deleting, "failed", NOW, reason="DeleteTimedOut", text="late")
    assert failed == LabOutcome(id="e9", kind="delete", phase="failed", at=NOW, reason="DeleteTimedOut", text="late")
    assert deleting.ending == Ending(id="e9", at=NOW, by="hub", reason="DeleteRequested")
    damaged = record.record_of(namespace("alice"), INSTALLATION)
    assert damaged is not None
    assert record.ended(damaged, "failed", NOW) is None

"""Two writers: what was saved stays, what was not gives way, and no port gets two owners."""

import pytest

from tests.unit.labs.claims.test_domain_portrows import (
    ALIKE,
    OTHER,
    UID,
    claim,
    document_of,
    foreign,
    read,
    stored,
    with_rows,
)
from vkprovider.labs.pure.claims import merge as merging
from vkprovider.labs.pure.claims.document import RestingPort, StoredClaims
from vkprovider.platform.errors import InputError


def merge(
    ours: StoredClaims, theirs: StoredClaims, *unsaved: str, dropped: tuple[str, ...] = ()
) -> tuple[StoredClaims, set[str]]:
    return merging.merge(ours, theirs, unsaved=unsaved, dropped=dropped)


def test_rows_of_both_writers_stay() -> None:
    ours, theirs = claim(UID, {"a": 1}), claim(OTHER, {"a": 2}, pod="pod-2")
    for unsaved in ((), (UID,)):
        merged, lost = merge(stored(ours), stored(theirs), *unsaved)
        assert merged == stored(theirs, ours)
        assert lost == set()


def test_an_unsaved_row_gives_way_to_whoever_has_its_port() -> None:
    """R003-020, R003-045: what was saved comes first."""
    ours, saved, theirs = claim(UID, {"a": 1, "b": 3}), claim(ALIKE, {"a": 4}), claim(OTHER, {"a": 1}, pod="pod-2")
    merged, lost = merge(stored(ours, saved), stored(theirs), UID)
    assert (set(merged.claims), lost) == ({OTHER, ALIKE}, {UID})
    merged, lost = merge(stored(ours), read(with_rows(StoredClaims(), foreign(3))), UID)
    assert (dict(merged.claims), lost) == ({}, {UID})
    assert len(merged.foreign) == 1


def test_of_two_unsaved_rows_only_the_one_in_conflict_goes() -> None:
    merged, lost = merge(
        stored(claim(UID, {"a": 1}), claim(ALIKE, {"a": 2}, pod="pod-3")), stored(claim(OTHER, {"a": 1})), UID, ALIKE
    )
    assert (set(merged.claims), lost) == ({OTHER, ALIKE}, {UID})


def test_a_saved_row_of_the_same_pod_is_taken_over() -> None:
    """Somebody has begun that lablet already, perhaps with a lab."""
    theirs = claim(UID, {"a": 2}, lab_id="lab-1")
    for ours in (claim(UID, {"a": 1}), claim(UID, {"a": 2})):
        assert merge(stored(ours), stored(theirs), UID) == (stored(theirs), {UID})
    same = claim(UID, {"a": 2}, outcome="Failed")
    assert merge(stored(same), stored(claim(UID, {"a": 2})), UID) == (stored(same), set()), "the answer was lost"
    assert merge(stored(claim(UID, {"a": 1})), stored(theirs)) == (stored(claim(UID, {"a": 1})), set()), "ours is saved"


def test_a_saved_port_that_is_somebody_elses_is_told() -> None:
    """Both may have a lab: nothing may be written until somebody has looked."""
    with pytest.raises(InputError, match=r"TCP port 1 of .* is held by .* remove the row") as caught:
        merge(stored(claim(UID, {"a": 1})), stored(claim(OTHER, {"b": 1})))
    assert caught.value.reason == "ClaimStoreInvalid"


def test_what_was_dropped_here_does_not_come_back() -> None:
    merged, lost = merge(
        stored(claim(UID, {"a": 1})), stored(claim(OTHER, {"a": 1}, pod="pod-2")), UID, dropped=(OTHER,)
    )
    assert (merged, lost) == (stored(claim(UID, {"a": 1})), set())


def test_orphans_give_way_to_the_row_of_their_pod() -> None:
    found = document_of(stored(claim(UID, {"a": 1})))
    found["lablets"] = []
    ours = claim(UID, {"a": 1, "b": 2})
    for unsaved in ((), (UID,)):
        assert merge(stored(ours), read(found), *unsaved) == (stored(ours), set())
    taken = read(with_rows(read(found), foreign(2)))
    merged, lost = merge(stored(ours), taken, UID)
    assert (dict(merged.claims), lost) == ({}, {UID})
    assert merged.foreign == taken.foreign, "its old port stays held"


def test_what_rests_for_either_writer_rests() -> None:
    ours = StoredClaims(resting=(RestingPort("TCP", 1, 100), RestingPort("TCP", 2, 300)))
    theirs = StoredClaims(resting=(RestingPort("TCP", 1, 200), RestingPort("TCP", 3, 50)))
    merged, _ = merge(ours, theirs)
    assert {(rest.port, rest.until) for rest in merged.resting} == {(1, 200), (2, 300), (3, 50)}

"""Leases: who may take a node, and the epoch that only grows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vkprovider.platform import leases
from vkprovider.platform.leases import LeaseSighting, LeaseVerdict
from vkprovider.platform.objects import Lease

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def held(holder: str | None, *, epoch: int | None = 3, renewed: str | None = None, version: str = "7") -> Lease:
    found = {
        "metadata": {"name": "vnode.w1", "namespace": "kube-node-lease", "resourceVersion": version},
        "spec": {"holderIdentity": holder, "leaseTransitions": epoch, "renewTime": renewed, "acquireTime": "t0"},
    }
    return msgspec.convert(found, Lease)


def body(holder: str, old: Lease | None, now: datetime = NOW, *, takes_over: bool = False) -> dict[str, Any]:
    return leases.body(
        name="vnode.w1",
        namespace="kube-node-lease",
        holder=holder,
        old=old,
        now=now,
        seconds=40,
        metadata={"labels": {}},
        takes_over=takes_over,
    )


def written(holder: str, old: Lease | None, now: datetime = NOW, *, takes_over: bool = False) -> Lease:
    return msgspec.convert(body(holder, old, now, takes_over=takes_over), Lease)


@pytest.mark.parametrize(
    ("found", "gone", "verdict"),
    [
        (None, True, LeaseVerdict.CREATE),
        (None, False, LeaseVerdict.CREATE),
        (held("me"), False, LeaseVerdict.MINE),
        (held("me"), True, LeaseVerdict.MINE),
        (held("other"), False, LeaseVerdict.WAIT),
        (held("other"), True, LeaseVerdict.TAKE),
        (held(None), False, LeaseVerdict.TAKE),
        (held(""), False, LeaseVerdict.TAKE),
    ],
)
def test_who_may_take_a_node(*, found: Lease | None, gone: bool, verdict: LeaseVerdict) -> None:
    """R000-009, R004-029 to R004-033: a holder that may be alive keeps its node."""
    assert leases.judge(found, "me", holder_is_gone=gone) is verdict


def test_a_change_is_seen_by_its_version_only() -> None:
    first = leases.observe(None, held("other", version="7"), 100.0)
    assert first == LeaseSighting("7", 100.0)
    assert leases.observe(first, held("me", version="7"), 110.0) == first, "the same version is no change"
    assert leases.observe(first, held("other", version="8"), 110.0) == LeaseSighting("8", 110.0)


def test_the_fence_falls_on_time() -> None:
    assert not leases.fenced(100.0, 107.9, 8.0)
    assert leases.fenced(100.0, 108.0, 8.0)


times = st.floats(0, 4e9).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@given(st.lists(times, min_size=1, max_size=8))
def test_the_renew_time_only_grows(clock: list[datetime]) -> None:
    """A slow or jumping clock never flips a node."""
    last: str | None = None
    for now in clock:
        text = leases.renew_time(last, now)
        at = datetime.fromisoformat(text)
        assert at >= now
        assert last is None or at > datetime.fromisoformat(last)
        assert text.endswith("Z")
        assert len(text) == len("2026-01-01T00:00:00.000000Z")
        last = text


@given(st.text(max_size=30))
@example("2026-01-01T00:00:00")
@example("9999-12-31T23:59:59.999999Z")
@example("")
@example("2026-01-01T00:00:00.000000+23:59")
def test_no_renew_time_of_somebody_else_stops_us(last: str) -> None:
    assert datetime.fromisoformat(leases.renew_time(last, NOW)) >= NOW


def test_a_renewal_changes_the_time_and_nothing_else() -> None:
    made = body("me", held("me", renewed="2026-01-01T11:59:00.000000Z"))
    assert made["metadata"]["resourceVersion"] == "7"
    assert made["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 40,
        "acquireTime": "t0",
        "renewTime": "2026-01-01T12:00:00.000000Z",
        "leaseTransitions": 3,
    }


def test_taking_raises_the_epoch() -> None:
    """C05: the number that fences late writers."""
    for old in (held("other"), held(None), held("")):
        made = body("me", old)
        assert (made["spec"]["leaseTransitions"], made["metadata"]["resourceVersion"]) == (4, "7")
        assert made["spec"]["acquireTime"] == made["spec"]["renewTime"]
    assert body("me", held("other", epoch=None))["spec"]["leaseTransitions"] == 1


def test_taking_anew_raises_the_epoch_under_the_same_name() -> None:
    """A restarted container has the name of its former self, whose last writes may still be on their way."""
    made = written("me", held("me"), takes_over=True)
    assert (made.spec.holder_identity, made.spec.lease_transitions) == ("me", 4)
    assert made.spec.acquire_time == made.spec.renew_time


def test_a_new_lease_begins_without_a_precondition() -> None:
    made = body("me", None)
    assert made["spec"]["leaseTransitions"] == 0
    assert "resourceVersion" not in made["metadata"]


def test_a_release_keeps_the_epoch() -> None:
    made = body("", held("me"))
    assert (made["spec"]["holderIdentity"], made["spec"]["leaseTransitions"]) == (None, 3)


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", ""]), st.integers(-100, 100)), min_size=1, max_size=12))
def test_the_epoch_never_falls_and_names_one_holder(story: list[tuple[str, int]]) -> None:
    """R004-032: under one epoch one replica acts."""
    current: Lease | None = None
    owners: dict[int, str] = {}
    for holder, seconds in story:
        before = (current.spec.lease_transitions or 0) if current else 0
        current = written(holder, current, NOW + timedelta(seconds=seconds))
        epoch = current.spec.lease_transitions
        assert epoch is not None
        assert epoch >= before
        if holder:
            assert owners.setdefault(epoch, holder) == holder


@pytest.mark.parametrize(
    ("theirs", "runs", "ended"),
    [
        ("pod-a-1-9c0e", True, True),  # the container before, whose process id is ours by now
        ("pod-a-7-9c0e", False, True),
        ("pod-a-7-9c0e", True, False),
        ("pod-b-1-9c0e", False, False),  # of another host nobody here can tell
        ("pod-1-9c0e", False, False),
        ("", False, False),
        ("nonsense", False, False),
        ("pod-a-x-9c0e", False, False),
    ],
)
def test_only_a_process_of_this_host_is_known_to_have_ended(theirs: str, *, runs: bool, ended: bool) -> None:
    assert leases.has_ended(theirs, "pod-a-1-04f2", runs=lambda _: runs) is ended


def owned(created: str, epoch: int | None) -> Lease:
    metadata = {"name": "vnode.w1", "creationTimestamp": created}
    return msgspec.convert({"metadata": metadata, "spec": {"leaseTransitions": epoch}}, Lease)


def test_the_term_grows_with_every_owner_also_of_a_lease_that_was_made_anew() -> None:
    """An agent refuses a smaller one, and would refuse every owner of a CMLWorker that was deleted and made again."""
    day = [owned("2026-01-01T12:00:00Z", None), owned("2026-01-01T12:00:00Z", 0), owned("2026-01-01T12:00:00Z", 7)]
    terms = [*map(leases.term_of, day), leases.term_of(owned("2026-01-01T12:00:01Z", 0))]
    assert terms[0] == terms[1] < terms[2] < terms[3] < 2**53
    assert leases.term_of(owned("", 0)) == 1, "0 stands for a caller that may only read"


def test_a_term_of_a_lease_is_its_epoch_and_one_of_another_lease_is_none() -> None:
    ours = owned("2026-01-01T12:00:00Z", 3)
    for transitions in (0, 3, 9):
        assert leases.epoch_in(leases.term_of(owned("2026-01-01T12:00:00Z", transitions)), ours) == transitions
    assert leases.epoch_in(leases.term_of(owned("2026-01-01T12:00:01Z", 0)), ours) is None
    assert leases.epoch_in(leases.term_of(owned("2026-01-01T11:59:59Z", 5)), ours) is None
    assert leases.epoch_in(0, ours) is None

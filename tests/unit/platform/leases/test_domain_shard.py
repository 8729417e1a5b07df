"""The plan: balanced, stable, the same everywhere; and who comes when its owner does not."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.platform import leases
from vkprovider.platform.leases import UNCLAIMED_S, Duty

REPLICAS = st.sets(st.sampled_from("abcdefg"))
OWNERS = st.dictionaries(st.integers(0, 60).map("w{}".format), st.none() | st.sampled_from("abcdefgxyz"))


@given(REPLICAS, OWNERS)
def test_plan_names_one_replica_that_lives_for_every_worker(replicas: set[str], owners: dict[str, str | None]) -> None:
    planned = leases.plan(replicas, owners)
    assert set(planned) == (set(owners) if replicas else set())
    assert set(planned.values()) <= replicas


@given(REPLICAS.filter(bool), OWNERS)
def test_plan_is_balanced_within_one(replicas: set[str], owners: dict[str, str | None]) -> None:
    """R004-038, R004-039."""
    count = Counter(leases.plan(replicas, owners).values())
    loads = [count[replica] for replica in replicas]
    assert max(loads) - min(loads) <= 1


@given(REPLICAS.filter(bool), OWNERS)
def test_plan_moves_as_few_as_balance_allows(replicas: set[str], owners: dict[str, str | None]) -> None:
    """A replica keeps what it has up to its share; of all ways to give out the odd ones this keeps most."""
    planned = leases.plan(replicas, owners)
    kept = sum(planned[worker] == owner for worker, owner in owners.items())
    held = sorted((sum(owner == replica for owner in owners.values()) for replica in replicas), reverse=True)
    share, odd = divmod(len(owners), len(replicas))
    assert kept == sum(min(has, share + (place < odd)) for place, has in enumerate(held))


@given(REPLICAS.filter(bool), OWNERS, st.randoms())
def test_plan_does_not_depend_on_the_order_of_what_it_is_told(
    replicas: set[str], owners: dict[str, str | None], rand: st.DataObject
) -> None:
    names, items = list(replicas), list(owners.items())
    rand.shuffle(names)  # type: ignore[attr-defined]
    rand.shuffle(items)  # type: ignore[attr-defined]
    assert leases.plan(names, dict(items)) == leases.plan(replicas, owners)


@given(REPLICAS.filter(bool), OWNERS)
def test_plan_that_was_carried_out_is_kept(replicas: set[str], owners: dict[str, str | None]) -> None:
    planned = leases.plan(replicas, owners)
    assert leases.plan(replicas, dict(planned)) == planned


@pytest.mark.parametrize(
    ("mine", "planned", "free_for_s", "duty"),
    [
        (True, "me", None, Duty.OWN),
        (True, None, None, Duty.OWN),
        (True, "other", None, Duty.HAND_OVER),
        (False, "me", 0.0, Duty.TAKE),
        (False, "me", None, Duty.STAND_BY),
        (False, "other", None, Duty.STAND_BY),
        (False, "other", UNCLAIMED_S - 0.1, Duty.STAND_BY),
        (False, "other", UNCLAIMED_S, Duty.TAKE),
        (False, None, 60.0, Duty.STAND_BY),
    ],
)
def test_what_a_replica_has_to_do(*, mine: bool, planned: str | None, free_for_s: float | None, duty: Duty) -> None:
    """R004-029 to R004-033."""
    assert leases.duty("me", mine=mine, planned=planned, free_for_s=free_for_s) is duty


@pytest.mark.parametrize(
    ("owned", "total", "levels", "level"),
    [(0, 0, 10, 0), (0, 10, 10, 0), (1, 10, 10, 1), (3, 10, 10, 3), (10, 10, 10, 9), (5, 10, 1, 0), (49, 50, 5, 4)],
)
def test_workload_level(owned: int, total: int, levels: int, level: int) -> None:
    """R004-035, R004-036: owned/all, cut into equal segments; all of them is the last one."""
    assert leases.level(owned, total, levels) == level


@given(st.integers(0, 50), st.integers(0, 50), st.floats(0, 0.99), st.floats(0, 0.99))
def test_who_has_less_comes_first(few: int, more: int, one: float, other: float) -> None:
    """R004-037."""
    if leases.level(few, 50, 10) < leases.level(few + more, 50, 10):
        assert leases.patience_s(few, 50, 10, one) < leases.patience_s(few + more, 50, 10, other)

"""Which replica should own which key: the same answer on every replica, without a coordinator.

The plan is a function of the replicas, the keys and their present owners. It is balanced within one, and of all
balanced plans it is one with the fewest moves: replicas that own more than others keep the remainder.

A planned owner may fail to act. So a key that its planned owner leaves unclaimed is open to all, and the replicas
that own least try first (seed 004's workload levels).
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

UNCLAIMED_S: Final = 5.0
"""How long a free key waits for its planned owner before any replica may take it over."""
_LEVEL_S: Final = 0.1


class Duty(Enum):
    """What a replica has to do about a key."""

    OWN = auto()  # continue
    TAKE = auto()  # acquire it
    HAND_OVER = auto()  # finish the work in hand, then release it
    STAND_BY = auto()  # do nothing


def plan(replicas: Collection[str], owners: Mapping[str, str | None]) -> dict[str, str]:
    """Assign the keys: key → replica.

    Args:
        replicas: The replicas that may own.
        owners: Every key with its present owner; None, or a replica not among `replicas`, leaves it free.

    >>> plan(["a", "b"], {"w1": "a", "w2": "a", "w3": "a"})
    {'w1': 'a', 'w2': 'a', 'w3': 'b'}
    """
    held: dict[str, list[str]] = {replica: [] for replica in sorted(replicas)}
    if not held:
        return {}
    free: list[str] = []
    for key in sorted(owners):
        held.get(owners[key] or "", free).append(key)
    share, odd = divmod(len(owners), len(held))
    by_load = sorted(held, key=lambda replica: -len(held[replica]))
    quota = {replica: share + (place < odd) for place, replica in enumerate(by_load)}
    planned: dict[str, str] = {}
    for replica, keys in held.items():
        planned |= dict.fromkeys(keys[: quota[replica]], replica)
        free += keys[quota[replica] :]
    left = iter(sorted(free))
    for replica, keys in held.items():
        for _ in range(quota[replica] - len(keys)):
            planned[next(left)] = replica
    return dict(sorted(planned.items()))


@dataclass(frozen=True, slots=True)
class OwnersView:
    """The present owners, as one replica sees them.

    Attributes:
        owners: Every key with its living owner, None without one.
        free: Keys without a replica that acts for them.
    """

    owners: dict[str, str | None]
    free: frozenset[str]


def view(me: str, *, mine: Collection[str], holders: Mapping[str, str | None], living: Collection[str]) -> OwnersView:
    """Derive the present owners.

    Args:
        me: This replica.
        mine: The keys that it acts for.
        holders: Every key with the holder of its Lease.
        living: The living replicas.

    A Lease with this replica's name that it does not act for is that of an earlier process of the same name: in the
    plan it counts as this replica's, so that nothing moves, but it is free.

    >>> seen = view("me", mine=["a"], holders={"a": "me", "b": "me", "c": "dead", "d": "you"}, living=["me", "you"])
    >>> seen.owners, sorted(seen.free)
    ({'a': 'me', 'b': 'me', 'c': None, 'd': 'you'}, ['b', 'c'])
    """
    owners = {w: me if w in mine else (holder if holder in living else None) for w, holder in holders.items()}
    return OwnersView(owners, frozenset(w for w, owner in owners.items() if w not in mine and owner in {None, me}))


def imbalance(replicas: Collection[str], owners: Mapping[str, str | None]) -> int:
    """Return the difference between the most and the least loaded replica, in keys; at most 1 is balanced.

    >>> imbalance(["a", "b"], {"w1": "a", "w2": "a", "w3": None})
    2
    """
    loads = Counter(owner for owner in owners.values() if owner is not None)
    return max((loads[replica] for replica in replicas), default=0) - min((loads[r] for r in replicas), default=0)


def duty(
    me: str, *, mine: bool, planned: str | None, free_for_s: float | None, patience_s: float = UNCLAIMED_S
) -> Duty:
    """Return the duty of a replica towards a key.

    Args:
        me: This replica.
        mine: Whether it owns the key now.
        planned: The planned owner, or None if unknown.
        free_for_s: For how long it has had no living owner; None if it has one.
        patience_s: How long this replica waits for the planned owner.
    """
    if mine:
        return Duty.OWN if planned in {me, None} else Duty.HAND_OVER
    if planned is None or free_for_s is None:
        return Duty.STAND_BY
    return Duty.TAKE if planned == me or free_for_s >= patience_s else Duty.STAND_BY


def level(owned: int, total: int, levels: int) -> int:
    """Return how loaded a replica is, from 0 to `levels - 1`: seed 004's workload level.

    >>> [level(owned, 10, 10) for owned in (0, 1, 9, 10)]
    [0, 1, 9, 9]
    """
    return min(levels - 1, owned * levels // total) if total else 0


def patience_s(owned: int, total: int, levels: int, dice: float) -> float:
    """Return how long a replica leaves a free key to its planned owner, and then to less loaded replicas.

    Args:
        owned: How many keys it owns.
        total: How many keys there are.
        levels: How many levels there are.
        dice: Evenly between 0 and 1; keeps replicas of one level apart.
    """
    return UNCLAIMED_S + _LEVEL_S * (level(owned, total, levels) + dice)

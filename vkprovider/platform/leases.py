"""Leases: who lives and who owns a key, judged without trust in clocks; and which replica should own which key.

A holder is alive while its Lease *changes*; the observer records on its own monotonic clock when it last saw a change.
Wall-clock times in a Lease are for people and for controllers of others; they are never compared with our clock.
`leaseTransitions` is the epoch: it grows with every change of the holder.

The plan is a function of the replicas, the keys and their present owners. It is balanced within one, and of all
balanced plans it is one with the fewest moves: replicas that own more than others keep the remainder.

A planned owner may fail to act. So a key that its planned owner leaves unclaimed is open to all, and the replicas
that own least try first (seed 004's workload levels).
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any, Final

from vkprovider.platform.objects import Lease

REQUEST_S: Final = 5.0
"""The deadline of a request about a Lease.

For so long, and for `renew_s` and `gone_s`, a key may have no owner after all is well again.
"""
OUTAGE_CAP_S: Final = 2.0
"""How long at most the Leases are not listed again while the API server is away."""
_EPOCH_BITS: Final = 20
"""Room for the epochs of one Lease; with the time in seconds the sum stays below 2**53, as JSON wants it."""


class LeaseVerdict(Enum):
    """What to do about a key's Lease."""

    CREATE = auto()
    MINE = auto()  # held by this replica: renew when due
    TAKE = auto()  # free, or its holder is gone
    WAIT = auto()  # held by a replica that may be alive


@dataclass(frozen=True, slots=True)
class LeaseSighting:
    """When a Lease was last observed to change, on the observer's clock."""

    resource_version: str
    at: float


@dataclass(frozen=True, slots=True)
class Times:
    """Times of membership; all follow from one promise, see `times`.

    Attributes:
        renew_s: How often a replica renews its membership.
        fence_s: For how long it may act after the start of its last successful renewal.
        gone_s: After how much silence others consider it gone; the difference allows for clock drift.
    """

    renew_s: float
    fence_s: float
    gone_s: float


def times(ttl_s: float) -> Times:
    """Derive the times of membership from the promise: what a dead replica owned is taken over within `ttl_s`.

    >>> times(15.0)
    Times(renew_s=3.0, fence_s=8.0, gone_s=10.0)
    """
    return Times(renew_s=ttl_s / 5, fence_s=ttl_s * 8 / 15, gone_s=ttl_s * 2 / 3)


def gone(seen: LeaseSighting | None, now: float, *, listening_since: float, gone_s: float) -> bool:
    """Return whether a member is considered gone.

    Args:
        seen: Its last observed change; None if it has no membership.
        now: The observer's clock.
        listening_since: Since when the observer's own renewals succeed: silence before that does not count.
        gone_s: The silence that it takes.
    """
    return seen is None or now - max(seen.at, listening_since) >= gone_s


def observe(seen: LeaseSighting | None, lease: Lease, now: float) -> LeaseSighting:
    """Record a Lease; the time moves only when its resourceVersion does."""
    version = lease.metadata.resource_version
    return seen if seen is not None and seen.resource_version == version else LeaseSighting(version, now)


def heard(seen: LeaseSighting, now: float) -> LeaseSighting:
    """Record that a member lives although the watch has not shown it yet: its silence counts from now.

    Args:
        seen: Its last observed change: the watch may have delivered one since the question was asked.
        now: The observer's clock.
    """
    return LeaseSighting(seen.resource_version, now)


def has_ended(theirs: str, mine: str, *, runs: Callable[[int], bool]) -> bool:
    """Return whether the process behind a Lease with our name has certainly ended.

    It has if it ran on this host, as an earlier container of this Pod did, and no other process has its process id.
    Any other process is judged by its silence.

    Args:
        theirs: Its name, `<host>-<process id>-<random>`, or "" if the Lease has none.
        mine: The name of this process.
        runs: Whether a process of this id runs on this host.

    >>> has_ended("vkprovider-7d4-1-9c0e", "vkprovider-7d4-1-04f2", runs=lambda pid: True)
    True
    """
    host, _, pid = theirs.rpartition("-")[0].rpartition("-")
    my_host, _, my_pid = mine.rpartition("-")[0].rpartition("-")
    return host == my_host and pid.isdigit() and (pid == my_pid or not runs(int(pid)))


def judge(lease: Lease | None, me: str, *, holder_is_gone: bool) -> LeaseVerdict:
    """Decide about a key's Lease.

    Args:
        lease: The key's Lease, or None if there is none.
        me: This replica.
        holder_is_gone: Whether the holder has no membership, or one that has been silent for too long.
    """
    if lease is None:
        return LeaseVerdict.CREATE
    holder = lease.spec.holder_identity
    if holder == me:
        return LeaseVerdict.MINE
    if not holder or holder_is_gone:
        return LeaseVerdict.TAKE
    return LeaseVerdict.WAIT


def fenced(renew_began_at: float, now: float, fence_s: float) -> bool:
    """Return whether this replica must stop acting: its last successful renewal began too long ago."""
    return now - renew_began_at >= fence_s


def renew_time(last: str | None, now: datetime) -> str:
    """Return the renewTime to write: later than the last one seen, so that a slow clock makes nothing look dead.

    >>> renew_time("2026-01-01T00:00:05.000000Z", datetime(2026, 1, 1, tzinfo=UTC))
    '2026-01-01T00:00:05.000001Z'
    """
    if last is not None:
        with contextlib.suppress(ValueError, TypeError, OverflowError):  # not a time, no zone, or beyond datetime.max
            now = max(now, datetime.fromisoformat(last) + timedelta(microseconds=1))
    return now.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def body(
    *,
    name: str,
    namespace: str,
    holder: str,
    old: Lease | None,
    now: datetime,
    seconds: int,
    metadata: dict[str, Any],
    takes_over: bool = False,
    beyond: int = 0,
) -> dict[str, Any]:
    """Build a Lease held by `holder`; the epoch grows when the holder changes, or acquires it again.

    Args:
        name: The Lease's name.
        namespace: Its namespace.
        holder: The replica; "" releases the Lease.
        old: The Lease to replace; its resourceVersion and UID become the preconditions. None creates. Without the UID
            a replacement would create a Lease again that was deleted meanwhile: the API server allows that for Leases.
        now: The wall clock.
        seconds: `leaseDurationSeconds`.
        metadata: Labels, annotations and owners.
        takes_over: The holder acquires it: the previous holder of the same name was an earlier process.
        beyond: An epoch that the one of a new holder exceeds.
    """
    spec = old.spec if old is not None else None
    same = spec is not None and spec.holder_identity == holder and not takes_over
    transitions = (spec.lease_transitions or 0) if spec is not None else 0
    renewed = renew_time(spec.renew_time if spec is not None else None, now)
    meta = {"name": name, "namespace": namespace, **metadata}
    if old is not None:
        meta |= {"resourceVersion": old.metadata.resource_version, "uid": old.metadata.uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": meta,
        "spec": {
            "holderIdentity": holder or None,
            "leaseDurationSeconds": seconds,
            "acquireTime": spec.acquire_time if same and spec is not None else renewed,
            "renewTime": renewed,
            "leaseTransitions": transitions if same or spec is None or not holder else max(transitions, beyond) + 1,
        },
    }


def term_of(lease: Lease) -> int:
    """Return a number that is greater for every later owner of a key, also in a Lease that was created again.

    The epoch begins again at 0 in a new Lease, which the creation time outweighs; never 0.
    """
    try:
        created_s = int(datetime.fromisoformat(lease.metadata.creation_timestamp).timestamp())
    except ValueError:
        created_s = 0
    return (created_s << _EPOCH_BITS) + (lease.spec.lease_transitions or 0) + 1


def epoch_in(term: int, lease: Lease) -> int | None:
    """Return the epoch of a Lease that a term stands for; None if it is of a Lease that was created at another time."""
    epoch = term - term_of(lease) + (lease.spec.lease_transitions or 0)
    return epoch if 0 <= epoch < 1 << _EPOCH_BITS else None


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

"""Leases: who owns a node, judged without comparing clocks.

A holder is alive while its Lease *changes*; the observer notes on its own monotonic clock when it last saw a change.
Wall-clock times in a Lease are written for people and for the stock node controller, never compared with our clock.
`leaseTransitions` is the epoch: it grows with every change of the holder.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any

from vkprovider.api.objects import Lease

NODE_LEASE_SECONDS = 40
"""`leaseDurationSeconds` of a node, as a kubelet sets it."""


class Verdict(Enum):
    """What to do about a node's Lease."""

    CREATE = auto()
    MINE = auto()  # held by this replica: renew when due
    TAKE = auto()  # free, or its holder is gone
    WAIT = auto()  # held by another one that may be alive


@dataclass(frozen=True, slots=True)
class Seen:
    """When a Lease was last observed to change, on the observer's clock."""

    resource_version: str
    at: float


@dataclass(frozen=True, slots=True)
class Times:
    """How long a member's silence means what; all of it follows from one promise, see `times`.

    Attributes:
        renew_s: How often a replica says that it lives.
        fence_s: For how long it may act after the start of the last time that it could.
        gone_s: How long others wait before they think it gone; the difference is for clocks that run apart.
    """

    renew_s: float
    fence_s: float
    gone_s: float


def times(ttl_s: float) -> Times:
    """Derive the times of membership from the promise: nodes of a dead replica are taken over within `ttl_s`.

    >>> times(15.0)
    Times(renew_s=3.0, fence_s=8.0, gone_s=10.0)
    """
    return Times(renew_s=ttl_s / 5, fence_s=ttl_s * 8 / 15, gone_s=ttl_s * 2 / 3)


def gone(seen: Seen | None, now: float, *, listening_since: float, gone_s: float) -> bool:
    """Tell whether a member that was last seen so is to be thought gone.

    Args:
        seen: None if it has no membership.
        now: The observer's clock.
        listening_since: Since when the observer's own renewals have gone through: before, it was not listening.
        gone_s: How long a silence must be.
    """
    return seen is None or now - max(seen.at, listening_since) >= gone_s


def observe(seen: Seen | None, lease: Lease, now: float) -> Seen:
    """Note a Lease; its time moves only when its resourceVersion does."""
    version = lease.metadata.resource_version
    return seen if seen is not None and seen.resource_version == version else Seen(version, now)


def heard(seen: Seen, now: float) -> Seen:
    """Note that a member lives, of which the watch has told nothing yet: it listens anew from now.

    Args:
        seen: What is known of it by now: the watch may have told since the question was asked.
        now: The observer's clock.
    """
    return Seen(seen.resource_version, now)


def has_ended(theirs: str, mine: str, *, runs: Callable[[int], bool]) -> bool:
    """Tell whether the process that a Lease of our name is of is certain to have ended.

    It is if it ran on this host, as a container of this Pod did, and nobody has its process id any more but we. Of any
    other one its silence has to tell.

    Args:
        theirs: Its name, `<host>-<process id>-<random>`, or "" if the Lease does not tell.
        mine: The name of this process.
        runs: Whether a process of this id runs on this host.

    >>> has_ended("vkprovider-7d4-1-9c0e", "vkprovider-7d4-1-04f2", runs=lambda pid: True)
    True
    """
    host, _, pid = theirs.rpartition("-")[0].rpartition("-")
    my_host, _, my_pid = mine.rpartition("-")[0].rpartition("-")
    return host == my_host and pid.isdigit() and (pid == my_pid or not runs(int(pid)))


def judge(lease: Lease | None, me: str, *, holder_is_gone: bool) -> Verdict:
    """Decide about a node's Lease.

    Args:
        lease: The node's Lease, or None if there is none.
        me: This replica.
        holder_is_gone: Whether the holder has no membership, or one that has been silent for too long.
    """
    if lease is None:
        return Verdict.CREATE
    holder = lease.spec.holder_identity
    if holder == me:
        return Verdict.MINE
    if not holder or holder_is_gone:
        return Verdict.TAKE
    return Verdict.WAIT


def fenced(renew_began_at: float, now: float, fence_s: float) -> bool:
    """Tell whether this replica must stop acting: its last successful renewal began too long ago."""
    return now - renew_began_at >= fence_s


def renew_time(last: str | None, now: datetime) -> str:
    """Give the renewTime to write: never earlier than what was seen, so that a slow clock never flips a node.

    >>> renew_time("2026-01-01T00:00:05.000000Z", datetime(2026, 1, 1, tzinfo=UTC))
    '2026-01-01T00:00:05.000001Z'
    """
    if last is not None:
        with contextlib.suppress(ValueError, TypeError, OverflowError):  # no time, no zone, the end of time
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
    anew: bool = False,
) -> dict[str, Any]:
    """Make a Lease held by `holder`; the epoch grows when the holder changes, or takes it anew.

    Args:
        name: The Lease's name.
        namespace: Its namespace.
        holder: Who holds it; "" releases it.
        old: What is replaced; its resourceVersion becomes the precondition. None creates.
        now: The wall clock.
        seconds: `leaseDurationSeconds`.
        metadata: Labels, annotations and owners.
        anew: The holder takes it; who held it before under the same name was an earlier process.
    """
    spec = old.spec if old is not None else None
    same = spec is not None and spec.holder_identity == holder and not anew
    transitions = (spec.lease_transitions or 0) if spec is not None else 0
    renewed = renew_time(spec.renew_time if spec is not None else None, now)
    meta = {"name": name, "namespace": namespace, **metadata}
    if old is not None:
        meta["resourceVersion"] = old.metadata.resource_version
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": meta,
        "spec": {
            "holderIdentity": holder or None,
            "leaseDurationSeconds": seconds,
            "acquireTime": spec.acquire_time if same and spec is not None else renewed,
            "renewTime": renewed,
            "leaseTransitions": transitions if same or spec is None or not holder else transitions + 1,
        },
    }

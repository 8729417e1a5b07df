"""Which claims are written when not all fit, and how they are merged after another writer.

A row that does not fit is refused alone: it must not keep those of other lablets from being written. New rows leave a
tenth of the object free, for rows of running lablets that grow.

There should be one writer, the owner of the worker's Node; but a replica that has not yet noticed that it is no longer
the owner, a lost answer, and an administrator with an editor are others.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from vkprovider.lablet.reasons import Trouble, WorkerReason
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.claims.document import ForeignRow, StoredClaims, usage_of, write
from vkprovider.platform.errors import InputError
from vkprovider.platform.ports.allocator import PortUsage
from vkprovider.platform.ports.store import OBJECT_BYTES_MAX

NEW_BYTES_MAX: Final = OBJECT_BYTES_MAX * 9 // 10
"""The size up to which new rows may fill the object."""
_PORT_BYTES: Final = 250
"""About what one port takes in both of its rows."""

_encode: Final = msgspec.json.encode


class Fitting(NamedTuple):
    """What is written.

    Attributes:
        data, binary: Of the ConfigMap.
        refused: Pods whose new row is left out.
        withheld: Pods whose saved row is written as it was before.
    """

    data: dict[str, str]
    binary: dict[str, str]
    refused: frozenset[str] = frozenset()
    withheld: frozenset[str] = frozenset()


def fit(stored: StoredClaims, saved: Mapping[str, Claim], *, worker: str, installation: str) -> Fitting:
    """Build the ConfigMap of all claims or, if they do not fit, of as many as possible.

    The largest new rows are left out first, then the changes that grow saved rows the most.

    Args:
        stored: All claims.
        saved: The claims as the API server has them.
        worker: The worker's name.
        installation: Ours.

    Raises:
        InputError: `ClaimStoreFull`: not even the saved rows fit, with those of other owners.
    """
    new = [uid for uid, claim in stored.claims.items() if uid not in saved and not claim.lab_id]

    def attempt(refused: Sequence[str], withheld: Sequence[str]) -> Fitting | None:
        rows = {uid: claim for uid, claim in stored.claims.items() if uid not in set(refused)}
        rows |= {uid: saved[uid] for uid in withheld}
        bytes_max = NEW_BYTES_MAX if len(refused) < len(new) else OBJECT_BYTES_MAX
        some = msgspec.structs.replace(stored, claims=rows)
        try:
            data, binary = write(some, worker=worker, installation=installation, bytes_max=bytes_max)
        except InputError:
            return None
        return Fitting(data, binary, frozenset(refused), frozenset(withheld))

    if (all_of_them := attempt((), ())) is not None:
        return all_of_them
    new.sort(key=lambda uid: -_size(stored.claims[uid]))
    fitting = _fewest(new, lambda refused: attempt(refused, ()))
    if fitting is None:
        grown = [uid for uid, claim in saved.items() if stored.claims.get(uid, claim) != claim]
        grown.sort(key=lambda uid: _size(saved[uid]) - _size(stored.claims[uid]))
        fitting = _fewest(grown, lambda withheld: attempt(new, withheld))
    if fitting is None:
        write(stored, worker=worker, installation=installation)  # raises
        raise AssertionError("the claims fit after all")
    return fitting


def _fewest(uids: Sequence[str], attempt: Callable[[Sequence[str]], Fitting | None]) -> Fitting | None:
    """Return the attempt without the fewest first `uids` that succeeds; None if none does."""
    best, low, high = attempt(uids), 1, len(uids)
    while best is not None and low < high:
        middle = (low + high) // 2
        found = attempt(uids[:middle])
        if found is None:
            low = middle + 1
        else:
            best, high = found, middle
    return best


def _size(claim: Claim) -> int:
    return len(_encode(claim)) + _PORT_BYTES * len(claim.ports)


def full(worker: str) -> InputError:
    """Return the refusal of one row."""
    return InputError(
        Trouble.CLAIM_STORE_FULL,
        f"the claims of worker {worker} fill their ConfigMap; this lablet waits until another ends; use more workers",
    )


def merge(
    ours: StoredClaims, theirs: StoredClaims, *, unsaved: Iterable[str], dropped: Iterable[str]
) -> tuple[StoredClaims, set[str]]:
    """Merge this replica's rows with the stored ones.

    Our saved rows stay: side effects depend on them. A row that was never saved has none yet, so it yields to stored
    rows: to another row of its Pod, and to the holder of one of its ports.

    Args:
        ours: The rows of this replica.
        theirs: The stored rows.
        unsaved: Pods whose row, or whose ports, this replica has never saved.
        dropped: Pods whose row was dropped here.

    Returns:
        The merged rows, and the Pods whose unsaved row yielded; they have to be claimed again.

    Raises:
        InputError: `ClaimStoreInvalid`: a port that we saved for a lablet has another owner now.
    """
    found, waiting, lost = _rows(ours, theirs, unsaved=set(unsaved), dropped=set(dropped))
    foreign = tuple(row for row in theirs.foreign if not (row.uid and any(row.is_of(uid) for uid in found)))
    try:
        usage = usage_of(found.values(), foreign)
    except InputError as error:
        raise InputError(
            WorkerReason.CLAIM_STORE_INVALID,
            f"{error.message}, and both were written to the claims; remove the row of the one that has no lab",
        ) from None
    for claim in waiting:
        mine = [row for row in foreign if row.uid and row.is_of(claim.pod_uid)]
        if _hold(usage, claim, mine):
            found[claim.pod_uid] = claim
            foreign = tuple(row for row in foreign if row not in mine)
        else:
            lost.add(claim.pod_uid)
    resting = {rest.key: rest for rest in sorted((*ours.resting, *theirs.resting), key=lambda rest: rest.until)}
    return StoredClaims(found, foreign, theirs.fields, tuple(resting.values())), lost


def _rows(
    ours: StoredClaims, theirs: StoredClaims, *, unsaved: set[str], dropped: set[str]
) -> tuple[dict[str, Claim], list[Claim], set[str]]:
    """Split the rows: those that stay, our unsaved ones with ports to be checked, and the Pods of those that yield."""
    found = {uid: claim for uid, claim in theirs.claims.items() if uid not in ours.claims and uid not in dropped}
    waiting, lost = list[Claim](), set[str]()
    for uid, claim in ours.claims.items():
        other = theirs.claims.get(uid)
        if uid not in unsaved:
            found[uid] = claim
        elif other is None or (claim.same_ports(other) and (claim.lab_id or not other.lab_id)):
            waiting.append(claim)
        else:
            found[uid] = other
            lost.add(uid)
    return found, waiting, lost


def _hold(usage: PortUsage, claim: Claim, mine: Sequence[ForeignRow]) -> bool:
    """Hold the ports of an unsaved row in place of its Pod's foreign rows; return whether all were free."""
    for row in mine:
        usage.free(row.owner, [row.held])
    try:
        usage.hold(claim.pod_uid, claim.held)
    except InputError:
        for row in mine:
            usage.hold(row.owner, [row.held])
        return False
    return True

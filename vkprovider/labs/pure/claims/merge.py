"""Merge the claims of one worker after another writer changed them.

There should be one writer, the owner of the worker's Node; but a replica that has not yet noticed that it is no longer
the owner, a lost answer, and an administrator with an editor are others.
"""

from collections.abc import Iterable, Sequence

from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.claims.document import Stored, usage_of
from vkprovider.labs.pure.claims.podrows import ForeignRow
from vkprovider.platform.errors import InputError
from vkprovider.platform.ports.allocator import PortUsage


def merge(ours: Stored, theirs: Stored, *, unsaved: Iterable[str], dropped: Iterable[str]) -> tuple[Stored, set[str]]:
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
    return Stored(found, foreign, theirs.fields, tuple(resting.values())), lost


def _rows(
    ours: Stored, theirs: Stored, *, unsaved: set[str], dropped: set[str]
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

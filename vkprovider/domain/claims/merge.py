"""Two writers of one worker's claims: what is known here, and what somebody else has written meanwhile.

There should be one, the owner of the worker's Node; but a replica that was slow to notice that it is not the owner any
more, an answer that was lost and an administrator with an editor are others.
"""

from collections.abc import Iterable

from vkprovider.api.errors import InputError
from vkprovider.domain.claims.claim import Claim, Stored, usage_of


def merge(ours: Stored, theirs: Stored, *, unsaved: Iterable[str], dropped: Iterable[str]) -> tuple[Stored, set[str]]:
    """Bring together what is known here and what somebody else has written meanwhile.

    Rows of ours that were saved stay: they are our side effects. A row that was never saved has none yet, so that it
    gives way to what was saved: to another row of its Pod, and to whoever holds one of its ports.

    Args:
        ours: What is known here.
        theirs: What has been written.
        unsaved: Pods whose row, or whose ports, have never been saved by us.
        dropped: Pods whose row was dropped here.

    Returns:
        What is known now, and the Pods whose unsaved row gave way; they have to be claimed anew.

    Raises:
        InputError: `ClaimStoreInvalid`: a port that we saved for a lablet is somebody else's now.
    """
    fresh, gone = set(unsaved), set(dropped)
    found = {uid: claim for uid, claim in theirs.claims.items() if uid not in ours.claims and uid not in gone}
    lost, waiting = set[str](), list[Claim]()
    for uid, claim in ours.claims.items():
        other = theirs.claims.get(uid)
        if uid not in fresh:
            found[uid] = claim
        elif other is None or (claim.same_ports(other) and (claim.lab_id or not other.lab_id)):
            waiting.append(claim)
        else:
            found[uid] = other
            lost.add(uid)
    kept = tuple(row for row in theirs.foreign if not (row.uid and any(row.is_of(uid) for uid in found)))
    try:
        usage = usage_of(found.values(), kept)
    except InputError as error:
        raise InputError(
            "ClaimStoreInvalid",
            f"{error.message}, and both were written to the claims; remove the row of the one that has no lab",
        ) from None
    for claim in waiting:
        mine = [row for row in kept if row.uid and row.is_of(claim.pod_uid)]
        for row in mine:
            usage.free(row.owner, [row.held])
        try:
            usage.hold(claim.pod_uid, claim.held)
        except InputError:
            lost.add(claim.pod_uid)
            for row in mine:
                usage.hold(row.owner, [row.held])
            continue
        found[claim.pod_uid] = claim
        kept = tuple(row for row in kept if row not in mine)
    return Stored(found, kept, theirs.fields), lost

"""Which claims are written when not all of them fit into one ConfigMap.

A row that does not fit is refused alone: it must not keep those of other lablets from being written. New rows leave a
tenth of the object free, for rows of running lablets that grow.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.claims.document import Stored, write
from vkprovider.platform.errors import InputError
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


def fit(stored: Stored, saved: Mapping[str, Claim], *, worker: str, installation: str) -> Fitting:
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

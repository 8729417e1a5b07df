"""Which rows of ports belong to which lablet: a row names its Pod, and the beginning of the Pod's UID.

A row without a UID, or of a Pod that has no claim, is foreign: it is kept unchanged, and holds its port. A row of an
old writer, who knew no `podUID`, becomes a claim of the Pod of that name.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.platform.ports.allocator import TCP, UDP, Held
from vkprovider.platform.ports.rows import AUTO, PortRow, StoredRow
from vkprovider.platform.ports.store import StoreInvalid

UID_CHARS: Final = 8
"""How many characters of a Pod's UID a row has; whole UIDs would fill half of an object."""


class ForeignRow(NamedTuple):
    """A row of another owner.

    Attributes:
        raw: Its unchanged JSON.
        owner: Namespace and name of the owner.
        uid: The beginning of the UID of a Pod that was a lablet once; empty for all others.
        held: Its port.
        auto: Whether it is in `allocations` too.
    """

    raw: msgspec.Raw
    owner: str
    uid: str
    held: Held
    auto: bool

    def is_of(self, uid: str) -> bool:
        """Return whether it belongs to this Pod."""
        return self.uid in {uid, uid[:UID_CHARS]}


def assign(found: Iterable[StoredRow], claims: Collection[Claim]) -> tuple[dict[str, list[Held]], list[ForeignRow]]:
    """Return the ports of each Pod with a claim, by its UID, and the rows of all other owners.

    Raises:
        StoreInvalid: A Pod has two ports for one slot.
    """
    by_name: dict[tuple[str, str], list[str]] = {}
    for claim in claims:
        by_name.setdefault((claim.namespace, claim.pod), []).append(claim.pod_uid)
    ports: dict[str, list[Held]] = {}
    foreign: list[ForeignRow] = []
    for row, raw, migrated in found:
        pods = by_name.get((row.namespace, row.service), [])
        if not migrated:
            pods = [uid for uid in pods if row.pod_uid in {uid, uid[:UID_CHARS]}]
        match pods:
            case [uid] if row.protocol in {TCP, UDP}:
                mine = ports.setdefault(uid, [])
                if any(other.purpose == row.port_name for other in mine):
                    raise StoreInvalid(f": {row} has two ports; remove the wrong row")
                mine.append(row.held)
            case _:
                owner = f"{row.namespace}/{row.service}"
                foreign.append(ForeignRow(raw.copy(), owner, row.pod_uid, row.held, row.source == AUTO))
    return ports, foreign


def rows_of(claims: Collection[Claim]) -> Iterator[PortRow]:
    """Yield the rows of all ports; a UID is in full where its beginning would be ambiguous."""
    alike = Counter((claim.namespace, claim.pod, claim.pod_uid[:UID_CHARS]) for claim in claims if claim.ports)
    for claim in claims:
        namespace, pod, udp = claim.namespace, claim.pod, claim.udp
        uid = claim.pod_uid[:UID_CHARS] if alike[namespace, pod, claim.pod_uid[:UID_CHARS]] == 1 else claim.pod_uid
        for slot, port in claim.ports.items():
            yield PortRow(namespace, pod, slot, UDP if slot in udp else TCP, port, port, AUTO, uid)

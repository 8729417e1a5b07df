"""The claims of one worker, as stored: which lablets have which lab, ports and session.

A row of ports without a UID, or of a Pod that has no claim, is foreign: it is kept unchanged, and holds its port. A row
of an old writer, who knew no `podUID`, becomes a claim of the Pod of that name.

A row is written before the lab is imported and dropped after the lab is known to be absent, so that at any moment
each of our labs has a row, whatever crashed. The rows live in one ConfigMap per worker:

    {"schemaVersion": 1, "worker": {"name": "worker-1", "installation": "<uid>"},
     "lablets": [{"podUID": "…", "namespace": "a", "pod": "b", "definition": "netlab", "labId": "…", …}],
     "portClaims": [{"namespace": "a", "service": "b", "portName": "pc1_serial", "port": 10011, …}],
     "allocations": […],
     "resting": [{"protocol": "TCP", "port": 10012, "until": 1769860800}]}

In memory a lablet's ports are part of its row, so that it is claimed and released as a whole; `platform.ports`
describes their form in the document. Rows and fields of other writers are kept unchanged. A port that rests was lent to
a mux by a lablet that has ended: somebody may still be led there, and meets nobody until that time.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import count
from vkprovider.platform.objects import ConfigMap, CustomResource
from vkprovider.platform.ports import store
from vkprovider.platform.ports.allocator import TCP, UDP, HeldPort, PortUsage
from vkprovider.platform.ports.rows import AUTO, PortRow, StoredRow
from vkprovider.platform.ports.store import Codec, Document, StoreDamaged, StoreFull, StoreInvalid


def may_have_claims(worker: CustomResource) -> bool:
    """Return whether a CMLWorker has the finalizer, without which no claim is written."""
    return names.FINALIZER in worker.metadata.finalizers


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
    held: HeldPort
    auto: bool

    def is_of(self, uid: str) -> bool:
        """Return whether it belongs to this Pod."""
        return self.uid in {uid, uid[:UID_CHARS]}


def assign(found: Iterable[StoredRow], claims: Collection[Claim]) -> tuple[dict[str, list[HeldPort]], list[ForeignRow]]:
    """Return the ports of each Pod with a claim, by its UID, and the rows of all other owners.

    Raises:
        StoreInvalid: A Pod has two ports for one slot.
    """
    by_name: dict[tuple[str, str], list[str]] = {}
    for claim in claims:
        by_name.setdefault((claim.namespace, claim.pod), []).append(claim.pod_uid)
    ports: dict[str, list[HeldPort]] = {}
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


_SKEW_S: Final = 10
"""The clocks of two replicas differ by less; one that is set back by more must not keep ports for long."""


class RestingPort(msgspec.Struct, frozen=True, gc=False):
    """A port that is given to no lablet yet.

    Attributes:
        until: Unix seconds.
    """

    protocol: str
    port: int
    until: int

    @property
    def key(self) -> tuple[str, int]:
        """Protocol and number."""
        return self.protocol, self.port


def rest_left_s(until: int, *, now_unix: int, rest_s: float) -> int:
    """Return how long a port still rests; 0 if it does not.

    One that seems to rest for much longer than ports do was lent before the clock was set back.

    >>> [rest_left_s(100, now_unix=now, rest_s=60) for now in (100, 99, 38, 0)]
    [0, 1, 62, 0]
    """
    left = until - now_unix
    return left if 0 < left <= math.ceil(rest_s) + _SKEW_S else 0


_REST_S: Final = 0.001
"""The rest after a write for each of its rows, as the API server's cost grows with them: workers get equal shares."""
_REST_S_MAX: Final = 2.0


class StoredClaims(msgspec.Struct, frozen=True):
    """The content of a worker's ConfigMap.

    Attributes:
        claims: The rows, by Pod UID.
        foreign: Rows of ports of other owners; they hold their ports.
        fields: Fields of the document that this program does not know.
        resting: Ports that rest.
    """

    claims: dict[str, Claim] = {}
    foreign: tuple[ForeignRow, ...] = ()
    fields: dict[str, msgspec.Raw] = {}
    resting: tuple[RestingPort, ...] = ()

    def foreign_without(self, pod_uid: str) -> tuple[ForeignRow, ...]:
        """Return the foreign rows without those of a Pod whose own row was lost, now that it has one again."""
        return tuple(row for row in self.foreign if not row.is_of(pod_uid)) if self.foreign else ()


class _Worker(msgspec.Struct, frozen=True):
    name: str
    installation: str


class _Lablets(Document, frozen=True):
    worker: _Worker
    lablets: list[Claim] = msgspec.field(default_factory=list)
    resting: tuple[RestingPort, ...] = ()


_codec: Final = Codec(_Lablets)


def read(config_map: ConfigMap, *, worker: str, installation: str) -> StoredClaims:
    """Read the claims of a worker.

    Raises:
        InputError: `ClaimStoreInvalid`: the object belongs to another installation, or is damaged. Nothing may be
            imported on that worker until it is repaired, because an unreadable row may be a running lab.
    """
    name = config_map.metadata.name
    owner = config_map.metadata.annotations.get(wellknown.ANNOTATION_INSTALLATION, "")
    if owner != installation:
        raise InputError(
            WorkerReason.CLAIM_STORE_INVALID,
            f"ConfigMap {name} belongs to installation {owner or 'none'}, not to {installation}",
        )
    try:
        return _read(config_map, _Worker(worker, installation))
    except StoreDamaged as error:
        text = f" cannot be read ({error}); restore it, or delete it when no lab of this installation is left"
        raise InputError(WorkerReason.CLAIM_STORE_INVALID, f"ConfigMap {name}{text} on worker {worker}") from None
    except StoreInvalid as error:
        raise InputError(WorkerReason.CLAIM_STORE_INVALID, f"ConfigMap {name}{error}") from None


def _read(config_map: ConfigMap, worker: _Worker) -> StoredClaims:
    """Read the document.

    Raises:
        StoreDamaged: It cannot be read.
        StoreInvalid: It is of another worker, or contradicts itself.
    """
    opened = _codec.read(config_map)
    found, lablets = opened.document.worker, opened.document.lablets
    if found != worker:
        raise StoreInvalid(f" belongs to worker {found.name}, not to {worker.name}")
    claims = {claim.pod_uid: claim for claim in lablets}
    if len(claims) < len(lablets):
        raise StoreInvalid(" has two rows for one pod; remove the wrong one")
    ports, foreign = assign(opened.rows(), lablets)
    for uid, claim in claims.items():
        if uid in ports or claim.ports:
            claims[uid] = _with_ports(claim, ports.get(uid, []))
    return StoredClaims(claims, tuple(foreign), opened.fields, opened.document.resting)


def write(
    stored: StoredClaims, *, worker: str, installation: str, bytes_max: int = store.OBJECT_BYTES_MAX
) -> tuple[dict[str, str], dict[str, str]]:
    """Build the ConfigMap's `data` and `binaryData`, of at most `bytes_max`.

    Raises:
        InputError: `ClaimStoreFull`: more claims than one object can hold.
    """
    claims = stored.claims.values()
    owned: dict[str, object] = {
        "worker": _Worker(worker, installation),
        "lablets": [_with_ports(claim, []) if claim.ports else claim for claim in claims],
    }
    if stored.resting:
        owned["resting"] = stored.resting
    try:
        return store.write(owned, rows_of(claims), stored.foreign, stored.fields, bytes_max=bytes_max)
    except StoreFull:
        raise InputError(
            WorkerReason.CLAIM_STORE_FULL,
            f"the claims of {count(len(claims), 'lablet')} of worker {worker} exceed one ConfigMap; use more workers",
        ) from None


def usage_of(claims: Iterable[Claim], kept: Iterable[ForeignRow] = ()) -> PortUsage:
    """Return the holders of all ports.

    Raises:
        InputError: `PortConflict`: a port has two owners.
    """
    usage = PortUsage()
    for row in kept:
        usage.hold(row.owner, [row.held])
    for claim in claims:
        if claim.ports:
            usage.hold(claim.pod_uid, claim.held)
    return usage


def rest_s(rows: int) -> float:
    """Return the pause after a write of so many rows. A few lablets hardly wait: a person may be watching."""
    return min(_REST_S_MAX, rows * _REST_S)


def _with_ports(claim: Claim, ports: list[HeldPort]) -> Claim:
    udp = tuple(slot.purpose for slot in ports if slot.protocol == UDP)
    return claim.with_ports({slot.purpose: slot.port for slot in ports}, udp, claim.ports_fault)

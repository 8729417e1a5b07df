"""The claims of one worker: which lablets have a lab on it. The only authority on which lablet a lab belongs to.

A row is written before the lab is imported and dropped after the lab is known to be absent, so that at any moment
each of our labs has a row, whatever crashed. The rows live in one ConfigMap per worker:

    {"schemaVersion": 1, "worker": {"name": "worker-1", "installation": "<uid>"},
     "lablets": [{"podUID": "…", "namespace": "a", "pod": "b", "definition": "netlab", "labId": "…", …}],
     "portClaims": [{"namespace": "a", "service": "b", "portName": "pc1_serial", "port": 10011, …}],
     "allocations": […]}

In memory a lablet's ports are part of its row, so that it is claimed and released as a whole; `rows`
describes their form in the document. Rows and fields of other writers are kept unchanged.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from vkprovider.api import names
from vkprovider.api.errors import InputError
from vkprovider.api.objects import ConfigMap
from vkprovider.api.packing import pack, unpack
from vkprovider.api.reasons import WorkerReason
from vkprovider.api.wording import count
from vkprovider.domain.claims import rows as portrows
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.claims.ports import UDP, Held, PortUsage
from vkprovider.domain.claims.rows import ForeignRow, PortOwner

SCHEMA_VERSION: Final = 1
DATA_KEY: Final = "allocations.json"
GZIP_KEY: Final = "allocations.json.gz"
PLAIN_BYTES_MAX: Final = 256 * 1024
OBJECT_BYTES_MAX: Final = 1020 * 1024
"""A little less than the API server's limit of 1 MiB for a ConfigMap's data, which counts decoded bytes."""
DECODED_BYTES_MAX: Final = 64 * 2**20
_REST_S: Final = 0.001
"""The rest after a write for each of its rows, as the API server's cost grows with them: workers get equal shares."""
_REST_S_MAX: Final = 2.0
_PACK_LEVELS: Final = (3, 9)
"""How hard to pack: quickly, and when that does not fit, as small as possible."""


class Stored(msgspec.Struct, frozen=True):
    """The content of a worker's ConfigMap.

    Attributes:
        claims: The rows, by Pod UID.
        foreign: Rows of ports of other owners; they hold their ports.
        fields: Fields of the document that this program does not know.
    """

    claims: dict[str, Claim] = {}
    foreign: tuple[ForeignRow, ...] = ()
    fields: dict[str, msgspec.Raw] = {}

    def foreign_without(self, pod_uid: str) -> tuple[ForeignRow, ...]:
        """Return the foreign rows without those of a Pod whose own row was lost, now that it has one again."""
        return tuple(row for row in self.foreign if not row.is_of(pod_uid)) if self.foreign else ()


class _Worker(msgspec.Struct, frozen=True):
    name: str
    installation: str


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    schema_version: int
    worker: _Worker
    lablets: list[Claim] = msgspec.field(default_factory=list)
    port_claims: list[msgspec.Raw] = msgspec.field(default_factory=list)
    allocations: list[msgspec.Raw] = msgspec.field(default_factory=list)


_decoder = msgspec.json.Decoder(_Document)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encoder = msgspec.json.Encoder()
_OURS: Final = frozenset(field.encode_name for field in msgspec.structs.fields(_Document))


def read(config_map: ConfigMap, *, worker: str, installation: str) -> Stored:
    """Read the claims of a worker.

    Raises:
        InputError: `ClaimStoreInvalid`: the object belongs to another installation, or is damaged. Nothing may be
            imported on that worker until it is repaired, because an unreadable row may be a running lab.
    """
    name = config_map.metadata.name
    owner = config_map.metadata.annotations.get(names.ANNOTATION_INSTALLATION, "")
    if owner != installation:
        raise InputError(
            WorkerReason.CLAIM_STORE_INVALID,
            f"ConfigMap {name} belongs to installation {owner or 'none'}, not to {installation}",
        )
    try:
        raw = _unpack(config_map)
        document = _decoder.decode(raw)
    except KeyError:
        raise InputError(WorkerReason.CLAIM_STORE_INVALID, f"ConfigMap {name} has no key {DATA_KEY}") from None
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise _unreadable(name, worker, str(error)) from None
    if document.schema_version != SCHEMA_VERSION:
        raise InputError(
            WorkerReason.CLAIM_STORE_INVALID,
            f"ConfigMap {name} has schema version {document.schema_version}, this program reads {SCHEMA_VERSION}",
        )
    if (document.worker.name, document.worker.installation) != (worker, installation):
        raise InputError(
            WorkerReason.CLAIM_STORE_INVALID,
            f"ConfigMap {name} belongs to worker {document.worker.name}, not to {worker}",
        )
    claims = {claim.pod_uid: claim for claim in document.lablets}
    if len(claims) < len(document.lablets):
        raise InputError(
            WorkerReason.CLAIM_STORE_INVALID, f"ConfigMap {name} has two rows for one pod; remove the wrong one"
        )
    owners = [PortOwner(claim.namespace, claim.pod, claim.pod_uid) for claim in document.lablets]
    try:
        ports, kept = portrows.read(document.port_claims, document.allocations, owners)
        fields = {key: value.copy() for key, value in _fields.decode(raw).items() if key not in _OURS}
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _unreadable(name, worker, str(error)) from None
    except ValueError as error:
        raise InputError(WorkerReason.CLAIM_STORE_INVALID, f"ConfigMap {name}: {error}; remove the wrong row") from None
    for uid, claim in claims.items():
        if uid in ports or claim.ports:
            claims[uid] = _with_ports(claim, ports.get(uid, []))
    return Stored(claims, tuple(kept), fields)


def write(
    stored: Stored, *, worker: str, installation: str, bytes_max: int = OBJECT_BYTES_MAX
) -> tuple[dict[str, str], dict[str, str]]:
    """Build the ConfigMap's `data` and `binaryData`, of at most `bytes_max`.

    Raises:
        InputError: `ClaimStoreFull`: more claims than one object can hold.
    """
    claims = stored.claims.values()
    with_ports = [(PortOwner(c.namespace, c.pod, c.pod_uid), c.ports, c.udp) for c in claims if c.ports]
    claimed, allocated = portrows.write(with_ports, stored.foreign)
    raw = _encoder.encode(
        {
            "schemaVersion": SCHEMA_VERSION,
            "worker": _Worker(worker, installation),
            "lablets": [_with_ports(claim, []) if claim.ports else claim for claim in claims],
            "portClaims": claimed,
            "allocations": allocated,
            **stored.fields,
        }
    )
    if len(raw) <= PLAIN_BYTES_MAX:
        return {DATA_KEY: raw.decode()}, {}
    for level in _PACK_LEVELS:
        packed = pack(raw, level)
        if len(packed) <= bytes_max // 3 * 4:  # in base64
            return {}, {GZIP_KEY: packed}
    raise InputError(
        WorkerReason.CLAIM_STORE_FULL,
        f"the claims of {count(len(claims), 'lablet')} of worker {worker} exceed one ConfigMap; use more workers",
    )


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


def _unpack(config_map: ConfigMap) -> bytes:
    if GZIP_KEY in config_map.binary_data:
        return unpack(config_map.binary_data[GZIP_KEY], DECODED_BYTES_MAX)
    return config_map.data[DATA_KEY].encode()


def _unreadable(name: str, worker: str, error: str) -> InputError:
    return InputError(
        WorkerReason.CLAIM_STORE_INVALID,
        f"ConfigMap {name} cannot be read ({error}); restore it, or delete it when no lab of this installation is left "
        f"on worker {worker}",
    )


def _with_ports(claim: Claim, ports: list[Held]) -> Claim:
    return msgspec.structs.replace(
        claim,
        ports={slot.purpose: slot.port for slot in ports},
        udp=tuple(slot.purpose for slot in ports if slot.protocol == UDP),
    )

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
from vkprovider.api.messages import Fault
from vkprovider.api.objects import ConfigMap
from vkprovider.api.packing import pack, unpack
from vkprovider.domain.claims import rows as portrows
from vkprovider.domain.claims.ports import UDP, Held, PortUsage, held
from vkprovider.domain.claims.rows import ForeignRow, PortOwner
from vkprovider.domain.session.delivery import Session, Verdict

SCHEMA_VERSION: Final = 1
DATA_KEY: Final = "allocations.json"
GZIP_KEY: Final = "allocations.json.gz"
PLAIN_BYTES_MAX: Final = 256 * 1024
OBJECT_BYTES_MAX: Final = 1020 * 1024
"""A little less than the API server's limit of 1 MiB for a ConfigMap's data, which counts decoded bytes."""
DECODED_BYTES_MAX: Final = 64 * 2**20
_FEW: Final = 20
_PACK_LEVELS: Final = (3, 9)
"""How hard to pack: quickly, and when that does not fit, as small as possible."""


class Claim(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One lablet's claim.

    Attributes:
        lab_id: The lab, once it is known; only for a claim without one is the lab searched by mark and title.
        started_at: When the lab was started (Unix seconds), 0 before.
        ready_at: When it last converged (Unix seconds), 0 if never: a learner may have worked in it since.
        restarts: How often the lab, or a part of it, was started again.
        afresh: How many of these starts were of the whole lab, wiped or imported again.
        device_restarts: How often a device was started again by itself, by label; only devices that were.
        recoveries: Starts without a wipe since it was last stable.
        resetting: The lab is being stopped and wiped, to be started again.
        renews: The digest of the content whose lab is being replaced by one of new content, until that is ready.
        outcome: The terminal phase that is written when the lab is gone: `Succeeded` or `Failed`.
        last_reason, last_message, last_at: Why and when it last stopped being ready.
        last_started_at: Since when it had been running (Unix seconds).
        last_devices: Labels of the devices that stopped; empty if all of them did.
        ports: The outside port of each slot; held on this worker as long as the row exists.
        udp: Names of the slots whose port is a UDP port; those of all others are TCP ports.
        learner: Whose lablet it is, from the import of its lab until the lab is wiped for the next one; "" while warm.
        noted: What the lab's notes say of learner and session, in the words of `binding`.
        session: The learner's session, from right before its creation until the lablet is warm again.
        sessions: How many there have been.
        closing_reason: Why the learner's work is being collected; "" while the learner's time is not over.
        collected_at: When it was collected (Unix seconds).
        verdict: The grader's verdict.
        stopped_at: Since when the lab is stopped on request (Unix seconds).
        reset: The last reset request that was carried out.
        lent_by: The pool to which the lablet returns when the learner's time is over.
        lent_back: The pool whose label is set on the Pod again once it is ready.
        ports_fault: Why the ports of a lab that was found after its claim was lost cannot be used; None if they can.
    """

    pod_uid: str = msgspec.field(name="podUID")
    namespace: str
    pod: str
    definition: str
    definition_uid: str = msgspec.field(name="definitionUID")
    version: str
    digest: str
    lab_id: str = ""
    started_at: int = msgspec.field(name="started", default=0)
    ready_at: int = 0
    restarts: int = 0
    recoveries: int = 0
    resetting: bool = False
    outcome: str = ""
    outcome_reason: str = ""
    outcome_message: str = ""
    last_reason: str = ""
    last_message: str = ""
    last_at: int = 0
    afresh: int = 0
    device_restarts: dict[str, int] = {}
    last_started_at: int = msgspec.field(name="lastStarted", default=0)
    last_devices: tuple[str, ...] = ()
    ports: dict[str, int] = {}
    udp: tuple[str, ...] = ()
    learner: str = ""
    noted: str = ""
    session: Session | None = None
    sessions: int = 0
    closing_reason: str = msgspec.field(name="closing", default="")
    collected_at: int = msgspec.field(name="collected", default=0)
    verdict: Verdict | None = None
    stopped_at: int = msgspec.field(name="stopped", default=0)
    reset: str = ""
    lent_by: str = ""
    lent_back: str = ""
    ports_fault: Fault | None = None
    renews: str = ""

    def restarts_of(self, label: str | None) -> int:
        """Return how often a device was started again; None is the lab."""
        return self.restarts if label is None else self.afresh + self.device_restarts.get(label, 0)

    def ended_with(self, label: str | None) -> bool:
        """Return whether a device was among those that stopped last; None is the lab."""
        return bool(self.last_reason) and (label is None or not self.last_devices or label in self.last_devices)

    @property
    def bound_to(self) -> str:
        """The learner whose lablet it is; rows without one are older than the field and name only the session's."""
        return self.learner or (self.session.username if self.session is not None else "")

    @property
    def binding(self) -> str:
        """Learner and session as the lab's notes name them; "" while warm."""
        if self.session is None:
            return self.learner
        return f"{self.learner} {self.session.key} {self.session.deployment}"

    @property
    def held(self) -> list[Held]:
        """Its ports with their protocols."""
        return held(self.ports, self.udp) if self.ports else []

    def same_ports(self, other: "Claim") -> bool:
        """Return whether both hold the same ports for the same slots."""
        return self.ports is other.ports or (self.ports == other.ports and set(self.udp) == set(other.udp))

    @property
    def title(self) -> str:
        """The lab's title."""
        return names.lab_title(self.definition, self.definition_uid, self.pod_uid)


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
            "ClaimStoreInvalid", f"ConfigMap {name} belongs to installation {owner or 'none'}, not to {installation}"
        )
    try:
        raw = _unpack(config_map)
        document = _decoder.decode(raw)
    except KeyError:
        raise InputError("ClaimStoreInvalid", f"ConfigMap {name} has no key {DATA_KEY}") from None
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise _unreadable(name, worker, str(error)) from None
    if document.schema_version != SCHEMA_VERSION:
        raise InputError(
            "ClaimStoreInvalid",
            f"ConfigMap {name} has schema version {document.schema_version}, this program reads {SCHEMA_VERSION}",
        )
    if (document.worker.name, document.worker.installation) != (worker, installation):
        raise InputError(
            "ClaimStoreInvalid", f"ConfigMap {name} belongs to worker {document.worker.name}, not to {worker}"
        )
    claims = {claim.pod_uid: claim for claim in document.lablets}
    if len(claims) < len(document.lablets):
        raise InputError("ClaimStoreInvalid", f"ConfigMap {name} has two rows for one pod; remove the wrong one")
    owners = [PortOwner(claim.namespace, claim.pod, claim.pod_uid) for claim in document.lablets]
    try:
        ports, kept = portrows.read(document.port_claims, document.allocations, owners)
        fields = {key: value.copy() for key, value in _fields.decode(raw).items() if key not in _OURS}
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _unreadable(name, worker, str(error)) from None
    except ValueError as error:
        raise InputError("ClaimStoreInvalid", f"ConfigMap {name}: {error}; remove the wrong row") from None
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
        "ClaimStoreFull", f"{len(claims)} lablets of worker {worker} do not fit into one ConfigMap; use more workers"
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


def pause_s(rows: int) -> float:
    """Return the pause between two writes, so that a burst of lablets shares writes.

    A few lablets hardly wait: a person may be watching. Hundreds share two writes a second, because all clients pay for
    what a write costs the API server; and as each write has all rows, thousands wait longer still.
    """
    return 0.12 if rows <= _FEW else 0.5 + rows / 10_000


def _unpack(config_map: ConfigMap) -> bytes:
    if GZIP_KEY in config_map.binary_data:
        return unpack(config_map.binary_data[GZIP_KEY], DECODED_BYTES_MAX)
    return config_map.data[DATA_KEY].encode()


def _unreadable(name: str, worker: str, error: str) -> InputError:
    return InputError(
        "ClaimStoreInvalid",
        f"ConfigMap {name} cannot be read ({error}); restore it, or delete it when no lab of this installation is left "
        f"on worker {worker}",
    )


def _with_ports(claim: Claim, ports: list[Held]) -> Claim:
    return msgspec.structs.replace(
        claim,
        ports={slot.purpose: slot.port for slot in ports},
        udp=tuple(slot.purpose for slot in ports if slot.protocol == UDP),
    )

"""The claims of one worker: which lablets have a lab on it. The only authority on whose lab is whose.

A row is written before the lab is imported and dropped after the lab is known to be absent, so that at any moment
every lab of ours has a row, whatever crashed. The rows live in one ConfigMap per worker:

    {"schemaVersion": 1, "worker": {"name": "worker-1", "installation": "<uid>"},
     "lablets": [{"podUID": "…", "namespace": "a", "pod": "b", "definition": "netlab", "labId": "…", …}],
     "portClaims": [], "allocations": []}

`portClaims` and `allocations` are the port part of the schema; they are kept as found.
"""

import base64
import gzip
import io
import zlib
from typing import Any, Final

import msgspec

from vkprovider.api import names
from vkprovider.api.errors import InputError
from vkprovider.api.objects import ConfigMap

SCHEMA_VERSION: Final = 1
DATA_KEY: Final = "allocations.json"
GZIP_KEY: Final = "allocations.json.gz"
PLAIN_BYTES_MAX: Final = 256 * 1024
OBJECT_BYTES_MAX: Final = 1000 * 1024
"""A little less than the API server's limit of 1 MiB for a ConfigMap's data."""
DECODED_BYTES_MAX: Final = 64 * 2**20
_FEW: Final = 20


class Claim(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One lablet's claim.

    Attributes:
        lab_id: The lab, once it is known; only a claim without one is looked for by mark and title.
        started: When the lab was started (Unix seconds), 0 before.
        ready_at: When it last converged (Unix seconds), 0 if never: somebody may have worked in it since.
        restarts: How often the lab, or a part of it, was started again.
        afresh: How many of these starts were of the whole lab, wiped or imported again.
        device_restarts: How often a device was started again by itself, by label; none that was not.
        recoveries: Starts without a wipe since it was last stable.
        resetting: The lab is being stopped and wiped, to be started afresh.
        outcome: The terminal phase that is written when the lab is gone: `Succeeded` or `Failed`.
        last_reason, last_message, last_at: Why and when it last stopped being ready.
        last_started: Since when it had been running (Unix seconds).
        last_devices: Labels of the devices that stopped; empty if all of them did.
    """

    pod_uid: str = msgspec.field(name="podUID")
    namespace: str
    pod: str
    definition: str
    definition_uid: str = msgspec.field(name="definitionUID")
    version: str
    digest: str
    lab_id: str = ""
    started: int = 0
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
    last_started: int = 0
    last_devices: tuple[str, ...] = ()

    def restarts_of(self, label: str | None) -> int:
        """Tell how often a device was started again; None is the lab."""
        return self.restarts if label is None else self.afresh + self.device_restarts.get(label, 0)

    def ended_with(self, label: str | None) -> bool:
        """Tell whether a device was among those that stopped last; None is the lab."""
        return bool(self.last_reason) and (label is None or not self.last_devices or label in self.last_devices)

    @property
    def title(self) -> str:
        """The lab's title."""
        return names.lab_title(self.definition, self.definition_uid, self.pod_uid)


class _Worker(msgspec.Struct, frozen=True):
    name: str
    installation: str


class Document(msgspec.Struct, frozen=True, rename="camel"):
    """What the ConfigMap holds."""

    schema_version: int
    worker: _Worker
    lablets: list[Claim] = msgspec.field(default_factory=list)
    port_claims: list[dict[str, Any]] = msgspec.field(default_factory=list)
    allocations: list[dict[str, Any]] = msgspec.field(default_factory=list)


_decoder = msgspec.json.Decoder(Document)
_encoder = msgspec.json.Encoder()


def read(config_map: ConfigMap, *, worker: str, installation: str) -> dict[str, Claim]:
    """Read the claims of a worker, by Pod UID.

    Raises:
        InputError: `ClaimStoreInvalid`: the object is not ours, or its content is damaged. Nothing may be imported on
            that worker until it is repaired, because a row that cannot be read may be a running lab.
    """
    name = config_map.metadata.name
    owner = config_map.metadata.annotations.get(names.ANNOTATION_INSTALLATION, "")
    if owner != installation:
        raise InputError(
            "ClaimStoreInvalid", f"ConfigMap {name} belongs to installation {owner or 'none'}, not to {installation}"
        )
    try:
        if GZIP_KEY in config_map.binary_data:
            with gzip.GzipFile(fileobj=io.BytesIO(base64.b64decode(config_map.binary_data[GZIP_KEY]))) as stream:
                raw = stream.read(DECODED_BYTES_MAX)
        else:
            raw = config_map.data[DATA_KEY].encode()
        document = _decoder.decode(raw)
    except KeyError:
        raise InputError("ClaimStoreInvalid", f"ConfigMap {name} has no key {DATA_KEY}") from None
    except (ValueError, OSError, EOFError, RecursionError, zlib.error, msgspec.MsgspecError) as error:
        raise InputError(
            "ClaimStoreInvalid",
            f"ConfigMap {name} cannot be read ({error}); restore it, or delete it when no lab of this installation "
            f"is left on worker {worker}",
        ) from None
    if document.schema_version != SCHEMA_VERSION:
        raise InputError(
            "ClaimStoreInvalid",
            f"ConfigMap {name} has schema version {document.schema_version}, this program reads {SCHEMA_VERSION}",
        )
    if (document.worker.name, document.worker.installation) != (worker, installation):
        raise InputError(
            "ClaimStoreInvalid", f"ConfigMap {name} says that it is of worker {document.worker.name}, not of {worker}"
        )
    claims = {claim.pod_uid: claim for claim in document.lablets}
    if len(claims) < len(document.lablets):
        raise InputError("ClaimStoreInvalid", f"ConfigMap {name} has two rows for one pod; remove the wrong one")
    return claims


def write(claims: dict[str, Claim], *, worker: str, installation: str) -> tuple[dict[str, str], dict[str, str]]:
    """Make the ConfigMap's `data` and `binaryData`.

    Raises:
        InputError: `ClaimStoreFull`: more claims than one object can hold.
    """
    rows = list(claims.values())
    raw = _encoder.encode(Document(SCHEMA_VERSION, _Worker(worker, installation), rows))
    if len(raw) <= PLAIN_BYTES_MAX:
        return {DATA_KEY: raw.decode()}, {}
    packed = base64.b64encode(gzip.compress(raw, compresslevel=3, mtime=0)).decode()
    if len(packed) > OBJECT_BYTES_MAX:
        raise InputError(
            "ClaimStoreFull", f"{len(rows)} lablets of worker {worker} do not fit into one ConfigMap; use more workers"
        )
    return {}, {GZIP_KEY: packed}


def pause_s(rows: int) -> float:
    """Tell how long to wait after a write before the next one, so that a burst of lablets shares writes.

    A few lablets hardly wait: they are people's. Hundreds share two writes a second, because what a write costs the
    API server is paid by everybody; and as it rewrites all rows, thousands of them wait longer still.
    """
    return 0.1 if rows <= _FEW else 0.4 + rows / 10_000

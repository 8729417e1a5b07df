"""What a learner leaves behind, kept beyond the lab, and how much of it is kept.

What is left is one ConfigMap per lablet in the provider's namespace, named after the Pod's UID. It is replaced before
each stop of the devices and deleted a week after the last write. What an earlier learner of the Pod left has one of its
own, and so has what is read of a lab without a learner after that: it takes no learner's place. Its metadata say whose
it is and how it was graded, so that a list need not read the rest.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.archives import UID_CHARS, ArchiveEntry, Leftovers, Verdict, lasting_id, owner_label
from vkprovider.lablet.reasons import KeptReason
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import ConfigMap, Metadata
from vkprovider.platform.packing import pack, unpack

NAMESPACE_SHARE: Final = 4
"""A namespace may use this part of all: one tenant does not push out the work of the others."""


@dataclass(frozen=True, slots=True)
class StoredWork:
    """One stored object.

    Attributes:
        name: Of the ConfigMap.
        namespace, pod, pod_uid: The lablet's.
        at: When it was written (Unix seconds).
        size_bytes: As stored.
        version: The object's `resourceVersion`.
    """

    name: str
    namespace: str
    pod: str
    pod_uid: str
    at: int
    size_bytes: int
    version: str


def surplus(kept: Iterable[StoredWork], bytes_max: int) -> list[StoredWork]:
    """List what has to go, the oldest of a namespace first; of all namespaces, the one that uses most gives first."""
    queues: dict[str, deque[StoredWork]] = {}
    used: dict[str, int] = {}
    for one in sorted(kept, key=lambda one: (one.at, one.name)):
        queues.setdefault(one.namespace, deque()).append(one)
        used[one.namespace] = used.get(one.namespace, 0) + one.size_bytes
    dropped: list[StoredWork] = []

    def drop(namespace: str) -> None:
        one = queues[namespace].popleft()
        used[namespace] -= one.size_bytes
        dropped.append(one)

    for namespace in list(queues):
        while used[namespace] > bytes_max // NAMESPACE_SHARE and len(queues[namespace]) > 1:
            drop(namespace)
    while sum(used.values()) > bytes_max:
        drop(max(used, key=lambda namespace: (used[namespace], namespace)))
    return dropped


KEY: Final = "left.json.gz"
ANNOTATION_POD: Final = f"{wellknown.GROUP}/pod"
ANNOTATION_KEPT_AT: Final = f"{wellknown.GROUP}/kept-at"
ANNOTATION_ENTRY: Final = f"{wellknown.GROUP}/entry"
_LABELS_CHARS_MAX: Final = 16_384
"""The API server bounds all annotations of an object, and nothing bounds the labels of a Pod."""
PACKED_BYTES_MAX: Final = 1000 * 1024
UNPACKED_BYTES_MAX: Final = 64 * 2**20


_decoder: Final = msgspec.json.Decoder(Leftovers)
_entry_decoder: Final = msgspec.json.Decoder(ArchiveEntry)


def name_of(pod_uid: str) -> str:
    """Return the name of a lablet's ConfigMap."""
    return f"left-{pod_uid}"


def earlier_name_of(left: Leftovers) -> str:
    """Return the name of the ConfigMap beside that of the Pod's last learner."""
    return name_of(lasting_id(left.pod_uid, left.at))


def same_learner(one: Leftovers, other: Leftovers) -> bool:
    """Return whether both were left by the same learner in the same session, or, without one, in the same lab.

    Between two times of a learner with the same lablet its lab is deleted and imported again.
    """
    if (one.username, one.session_id) != (other.username, other.session_id):
        return False
    return bool(one.session_id) or _same_lab(one.lab_id, other.lab_id)


def is_of(left: Leftovers, claim: Claim) -> bool:
    """Return whether the claim's learner left this, and not an earlier one of the same Pod, nor at an earlier time."""
    session_id = claim.session.id if claim.session is not None else ""
    if left.session_id != session_id or claim.learner not in {"", left.username}:
        return False
    return bool(session_id) or _same_lab(left.lab_id, claim.lab_id)


def _same_lab(one: str, other: str) -> bool:
    """Return whether two ids may be those of one lab; "" stands for one that is not known (any more)."""
    return one == other or "" in {one, other}


def of_claim(
    claim: Claim,
    configs: Mapping[str, str],
    faults: Mapping[str, str],
    *,
    at: int,
    username: str = "",
    responses: Any = None,
    hidden: Iterable[str] | None = None,
) -> Leftovers:
    """Build the leftovers of a claim; `username` is the Pod's and counts only for a lablet without a session."""
    session = claim.session
    return Leftovers(
        namespace=claim.namespace,
        pod=claim.pod,
        pod_uid=claim.pod_uid,
        definition=claim.definition,
        version=claim.version,
        lab_id=claim.lab_id,
        username=session.username if session is not None else username,
        session_id=session.id if session is not None else "",
        at=at,
        configs=dict(configs),
        faults=dict(faults),
        responses=responses,
        grade=claim.verdict,
        hidden=None if hidden is None else tuple(sorted(hidden)),
    )


def graded(left: Leftovers | None, claim: Claim, verdict: Verdict, *, at: int) -> Leftovers:
    """Add a grade to what is stored of the claim's learner; to nothing, if that is nothing or an earlier learner's."""
    if left is None or not is_of(left, claim):
        left = of_claim(claim, {}, {}, at=at, username=claim.bound_to)
    return msgspec.structs.replace(left, grade=verdict)


def merged(old: Leftovers | None, new: Leftovers) -> Leftovers:
    """Add to `new` what `old` has of the same learner: a device that is off now may have been read earlier.

    The grade is that of `new` alone: `old` may be of an earlier time of the same learner in the same lablet.
    """
    if old is None or not same_learner(old, new):
        return new
    configs = dict(old.configs) | dict(new.configs)
    faults = {label: why for label, why in new.faults.items() if label not in configs}
    responses = new.responses if new.responses is not None else old.responses
    return msgspec.structs.replace(
        new,
        configs=configs,
        faults=faults,
        responses=responses,
        labels=new.labels or old.labels,
        shown=new.shown or old.shown,
        owner=new.owner or old.owner,
        hidden=new.hidden if new.hidden is not None else old.hidden,
    )


def build(left: Leftovers, *, namespace: str, installation: str, name: str = "") -> dict[str, Any]:
    """Build the ConfigMap; configurations that do not fit into one object are left out, the largest first."""
    name = name or name_of(left.pod_uid)
    packed = pack(msgspec.json.encode(left))
    while len(packed) > PACKED_BYTES_MAX and left.configs:
        label = max(left.configs, key=lambda key: len(left.configs[key]))
        why = f"its configuration of {len(left.configs[label])} characters does not fit into one object"
        rest = {key: text for key, text in left.configs.items() if key != label}
        left = msgspec.structs.replace(left, configs=rest, faults=left.faults | {label: why})
        packed = pack(msgspec.json.encode(left))
    if len(packed) > PACKED_BYTES_MAX:
        left = msgspec.structs.replace(left, responses=None, faults=left.faults | {"": "the responses do not fit"})
        packed = pack(msgspec.json.encode(left))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {
                wellknown.LABEL_MANAGED_BY: wellknown.MANAGER,
                names.LABEL_COMPONENT: names.COMPONENT_CONFIGS,
                names.LABEL_NAMESPACE: left.namespace,
                **({names.LABEL_OWNER: owner_label(left.owner)} if left.owner else {}),
            },
            "annotations": {
                wellknown.ANNOTATION_INSTALLATION: installation,
                ANNOTATION_POD: f"{left.namespace}/{left.pod}",
                ANNOTATION_KEPT_AT: str(left.at),
                names.ANNOTATION_LEARNER: left.username,
                ANNOTATION_ENTRY: msgspec.json.encode(described(left, name)).decode(),
            },
        },
        "binaryData": {KEY: packed},
    }


def described(left: Leftovers, name: str) -> ArchiveEntry:
    """Describe what is stored under a name, with as many of the labels as there is room for."""
    labels: dict[str, str] = {}
    room = _LABELS_CHARS_MAX
    for key, value in sorted(left.labels.items(), key=lambda label: len(label[0]) + len(label[1])):
        room -= len(key) + len(value)
        if room < 0:
            break
        labels[key] = value
    return ArchiveEntry(
        id=id_in(name),
        namespace=left.namespace,
        pod=left.pod,
        at=left.at,
        learner=left.username,
        session_id=left.session_id,
        definition=left.definition,
        version=left.version,
        labels=labels,
        grade=left.grade,
        shown=left.shown,
        devices=tuple(sorted(left.for_owner().configs)) if left.owner else (),
    )


def id_in(name: str) -> str:
    """Return the id of what is stored under a name: the Pod's UID, or UID-TIME."""
    return name.removeprefix(name_of(""))


def entry_of(metadata: Metadata) -> ArchiveEntry | None:
    """Read what the metadata of a stored object say; None if an older version wrote it, or it is damaged."""
    try:
        return _entry_decoder.decode(metadata.annotations.get(ANNOTATION_ENTRY, ""))
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None


def read(config_map: ConfigMap) -> Leftovers:
    """Decode the leftovers in a ConfigMap.

    Raises:
        InputError: `KeptInvalid`: the object is damaged.
    """
    try:
        return _decoder.decode(unpack(config_map.binary_data[KEY], UNPACKED_BYTES_MAX))
    except (KeyError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InputError(
            KeptReason.KEPT_INVALID, f"ConfigMap {config_map.metadata.name} cannot be read: {error}"
        ) from None


def kept_of(config_map: ConfigMap) -> StoredWork | None:
    """Describe a stored object without unpacking it; None if it is unknown whose it is or how old."""
    at = written_at(config_map)
    namespace, _, pod = config_map.metadata.annotations.get(ANNOTATION_POD, "").partition("/")
    if at is None or not pod:
        return None
    uid = config_map.metadata.name.removeprefix("left-")[:UID_CHARS]
    size_bytes = sum(map(len, config_map.binary_data.values()))
    return StoredWork(
        config_map.metadata.name, namespace, pod, uid, at, size_bytes, config_map.metadata.resource_version
    )


def written_at(config_map: ConfigMap) -> int | None:
    """Return when the ConfigMap was written (Unix seconds); None if unknown, and then it must not be deleted."""
    text = config_map.metadata.annotations.get(ANNOTATION_KEPT_AT, "")
    return int(text) if text.isdigit() else None

"""What a learner leaves behind, kept beyond the Pod: the devices' configurations and the answers given in the session.

One ConfigMap per lablet in the provider's namespace, named by the Pod's UID, replaced whenever the devices are about to
be stopped, dropped a week after it was written last.
"""

import base64
import gzip
import io
import zlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from vkprovider.api import names
from vkprovider.api.errors import InputError
from vkprovider.api.objects import ConfigMap
from vkprovider.domain.claims.claim import Claim

KEY: Final = "left.json.gz"
ANNOTATION_POD: Final = f"{names.GROUP}/pod"
ANNOTATION_KEPT_AT: Final = f"{names.GROUP}/kept-at"
PACKED_BYTES_MAX: Final = 1000 * 1024
UNPACKED_BYTES_MAX: Final = 64 * 2**20


class Left(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What was collected from one lablet.

    Attributes:
        configs: Device label → configuration.
        faults: Device label → why there is none.
        responses: The learner's answers, as the LDS gives them.
        at: When it was collected (Unix seconds).
    """

    namespace: str
    pod: str
    pod_uid: str
    definition: str
    version: str
    lab_id: str = ""
    username: str = ""
    session_id: str = ""
    at: int = 0
    configs: dict[str, str] = {}
    faults: dict[str, str] = {}
    responses: Any = None


_decoder: Final = msgspec.json.Decoder(Left)


def name_of(pod_uid: str) -> str:
    """Name the ConfigMap of a lablet."""
    return f"left-{pod_uid}"


def earlier_name_of(left: Left) -> str:
    """Name the ConfigMap of what an earlier learner of the same Pod left."""
    return f"{name_of(left.pod_uid)}-{left.at}"


def same_learner(one: Left, other: Left) -> bool:
    """Tell whether both are of one learner's time."""
    return (one.username, one.session_id) == (other.username, other.session_id)


def left_by(
    claim: Claim,
    configs: Mapping[str, str],
    faults: Mapping[str, str],
    *,
    at: int,
    username: str = "",
    responses: Any = None,
) -> Left:
    """Put together what a lablet leaves; `username` is the Pod's, for a lablet without a session."""
    session = claim.session
    return Left(
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
    )


def merged(old: Left | None, new: Left) -> Left:
    """Keep what an earlier look found and this one did not: a device that is off by now has told its configuration."""
    if old is None or not same_learner(old, new):
        return new
    configs = dict(old.configs) | dict(new.configs)
    faults = {label: why for label, why in new.faults.items() if label not in configs}
    responses = new.responses if new.responses is not None else old.responses
    return msgspec.structs.replace(new, configs=configs, faults=faults, responses=responses)


def build(left: Left, *, namespace: str, installation: str, name: str = "") -> dict[str, Any]:
    """Make the ConfigMap; configurations that do not fit into one object are left out, the largest first."""
    packed = _pack(left)
    while len(packed) > PACKED_BYTES_MAX and left.configs:
        label = max(left.configs, key=lambda key: len(left.configs[key]))
        why = f"its configuration of {len(left.configs[label])} characters does not fit into one object"
        rest = {key: text for key, text in left.configs.items() if key != label}
        left = msgspec.structs.replace(left, configs=rest, faults=left.faults | {label: why})
        packed = _pack(left)
    if len(packed) > PACKED_BYTES_MAX:
        left = msgspec.structs.replace(left, responses=None, faults=left.faults | {"": "the responses do not fit"})
        packed = _pack(left)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name or name_of(left.pod_uid),
            "namespace": namespace,
            "labels": {
                names.LABEL_MANAGED_BY: names.MANAGER,
                names.LABEL_COMPONENT: names.COMPONENT_CONFIGS,
            },
            "annotations": {
                names.ANNOTATION_INSTALLATION: installation,
                ANNOTATION_POD: f"{left.namespace}/{left.pod}",
                ANNOTATION_KEPT_AT: str(left.at),
            },
        },
        "binaryData": {KEY: packed},
    }


def _pack(left: Left) -> str:
    return base64.b64encode(gzip.compress(msgspec.json.encode(left), mtime=0)).decode()


def read(config_map: ConfigMap) -> Left:
    """Read what was kept.

    Raises:
        InputError: `KeptInvalid`: the object is damaged.
    """
    try:
        packed = base64.b64decode(config_map.binary_data[KEY])
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            return _decoder.decode(stream.read(UNPACKED_BYTES_MAX))
    except (KeyError, ValueError, OSError, EOFError, zlib.error, msgspec.MsgspecError) as error:
        raise InputError("KeptInvalid", f"ConfigMap {config_map.metadata.name} cannot be read: {error}") from None


def kept_at(config_map: ConfigMap) -> int | None:
    """Tell when it was written (Unix seconds); None if it does not say, and so nobody may drop it."""
    text = config_map.metadata.annotations.get(ANNOTATION_KEPT_AT, "")
    return int(text) if text.isdigit() else None

"""Versions of a definition's content: stored as immutable ConfigMaps, named by digest.

A Pod is bound to one version by its claim, so that a changed definition never reaches a running lablet. New Pods are
charged the maximum over the stored versions, because all of them share one RuntimeClass.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from vkprovider.lablet import names
from vkprovider.lablet.models.definition import LabletDefinitionSpec
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.pure.definition import refresh
from vkprovider.labs.pure.definition.package import Package
from vkprovider.labs.pure.topology import topology as topologies
from vkprovider.labs.pure.topology.resources import NodeDefinition, Resources, known_need
from vkprovider.labs.pure.topology.topology import SINCE, Topology
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import ConfigMap, RuntimeClass
from vkprovider.platform.packing import pack, unpack

PACKED: Final = ".gz"
CONTENT_KEY: Final = f"cml.yaml{PACKED}"
ANNOTATION_VERSION: Final = f"{wellknown.GROUP}/version"
ANNOTATION_SEQUENCE: Final = f"{wellknown.GROUP}/sequence"
ANNOTATION_DEFINITION: Final = f"{wellknown.GROUP}/definition"
ANNOTATION_STORED_AT: Final = f"{wellknown.GROUP}/stored-at"
RUNTIME_HANDLER: Final = "vkprovider"
_PACKED_BYTES_MAX: Final = 1000 * 1024
"""etcd accepts 1.5 MiB, the API server a little less; in base64."""


@dataclass(frozen=True, slots=True)
class Content:
    """One version of a definition's content, ready to be imported.

    Attributes:
        sequence: Grows with every new version of the definition; the highest is current.
        need: The resources of one lablet; of a version that new Pods may not run, perhaps only those that are known.
        config_map: The object that holds it.
        files: Name to text of the package's other files: `grade.xml`, `pod.xml`, `devices.yaml`.
        request: The refresh request by which it became the current one; empty if the definition was changed.
        stored_at: When that was; empty if unknown.
    """

    definition: str
    version: str
    digest: str
    sequence: int
    topology: Topology
    need: Resources
    config_map: str
    files: Mapping[str, str] = field(default_factory=dict)
    request: str = ""
    stored_at: str = ""

    @property
    def stored_by(self) -> str:
        """The user who requested it; empty if unknown."""
        return refresh.read(self.request).by


def digest_of(uid: str, package: Package) -> str:
    """Return the digest of a content: SHA-256 over its definition's UID, version, topology and other files, in hex.

    The UID is included because two definitions may charge the same topology differently, and because a re-created
    definition must not rely on objects that are deleted with its predecessor.
    """
    parts = [uid, package.version, package.text]
    for name in sorted(package.files):
        parts += [name, hashlib.sha256(package.files[name].encode()).hexdigest()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def build(
    *,
    definition: str,
    uid: str,
    namespace: str,
    package: Package,
    sequence: int,
    request: str = "",
    stored_at: str = "",
) -> dict[str, Any]:
    """Build the ConfigMap of a version; slow for a large one.

    Raises:
        InputError: `ContentTooLarge`: packed, it exceeds one object.
    """
    digest = digest_of(uid, package)
    packed = {CONTENT_KEY: pack(package.text.encode())}
    packed |= {name + PACKED: pack(text.encode()) for name, text in package.files.items()}
    size = sum(map(len, packed.values()))
    if size > _PACKED_BYTES_MAX:
        parts = ", ".join(f"{key.removesuffix(PACKED)} {len(part) // 1024}" for key, part in packed.items())
        raise InputError(
            DefinitionReason.CONTENT_TOO_LARGE,
            f"the content is {size // 1024} KiB packed ({parts}), at most {_PACKED_BYTES_MAX // 1024} KiB fit into one "
            "object",
        )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.content_name(definition, digest),
            "namespace": namespace,
            "labels": {
                wellknown.LABEL_MANAGED_BY: wellknown.MANAGER,
                names.LABEL_COMPONENT: names.COMPONENT_CONTENT,
            },
            "annotations": {
                ANNOTATION_DEFINITION: definition,
                ANNOTATION_VERSION: package.version,
                ANNOTATION_SEQUENCE: str(sequence),
                **({names.ANNOTATION_REFRESH: request} if request else {}),
                **({ANNOTATION_STORED_AT: stored_at} if stored_at else {}),
            },
            "ownerReferences": [owner_reference(definition, uid)],
        },
        "immutable": True,
        "binaryData": packed,
    }


def rebuild(content: Content, config_map: ConfigMap, uid: str) -> dict[str, Any] | None:
    """Build the ConfigMap of a version again; slow for a large one.

    Args:
        content: The version.
        config_map: That held it, as it was last; only its topology counts, because annotations may have been changed.
        uid: Of the definition.

    Returns:
        The ConfigMap; None if the topology is damaged, or the version is that of an earlier definition.
    """
    try:
        package = Package(content.version, _unpack(config_map.binary_data[CONTENT_KEY]), content.files)
    except (KeyError, ValueError):
        return None
    if digest_of(uid, package) != content.digest:
        return None
    return build(
        definition=content.definition,
        uid=uid,
        namespace=config_map.metadata.namespace,
        package=package,
        sequence=content.sequence,
        request=content.request,
        stored_at=content.stored_at,
    )


def _unpack(packed: str) -> str:
    return unpack(packed, topologies.TOPOLOGY_CHARS_MAX * 4).decode()


def owner_reference(definition: str, uid: str) -> dict[str, Any]:
    """Build the owner reference by which an object is deleted with its definition."""
    return {
        "apiVersion": wellknown.API_VERSION,
        "kind": "LabletDefinition",
        "name": definition,
        "uid": uid,
        "controller": True,
    }


def package_of(config_map: ConfigMap) -> Package:
    """Unpack the files of a stored version; slow for a large one.

    Raises:
        InputError: `ContentInvalid`: it is damaged.
    """
    annotations = config_map.metadata.annotations
    try:
        files = {k.removesuffix(PACKED): _unpack(v) for k, v in config_map.binary_data.items() if k.endswith(PACKED)}
        text = files.pop(CONTENT_KEY.removesuffix(PACKED))
        return Package(annotations[ANNOTATION_VERSION], text, files)
    except (KeyError, ValueError) as error:
        raise _damaged(config_map, error) from None


def read(
    config_map: ConfigMap,
    package: Package,
    topology: Topology,
    spec: LabletDefinitionSpec,
    table: Mapping[str, NodeDefinition],
) -> Content:
    """Decode a stored version.

    Args:
        config_map: That holds it.
        package: Its files, as `package_of` returns them.
        topology: Parsed from them.
        spec: Of its definition.
        table: The known node definitions.

    Raises:
        InputError: It is damaged.
    """
    annotations = config_map.metadata.annotations
    uid = next((owner.uid for owner in config_map.metadata.owner_references), "")
    try:
        definition, sequence = annotations[ANNOTATION_DEFINITION], int(annotations[ANNOTATION_SEQUENCE])
    except (KeyError, ValueError) as error:
        raise _damaged(config_map, error) from None
    return Content(
        definition=definition,
        version=package.version,
        digest=digest_of(uid, package),
        sequence=sequence,
        topology=topology,
        need=known_need(topology, spec.resources, table),
        config_map=config_map.metadata.name,
        files=package.files,
        request=request_of(config_map),
        stored_at=annotations.get(ANNOTATION_STORED_AT, ""),
    )


def _damaged(config_map: ConfigMap, error: Exception) -> InputError:
    return InputError(DefinitionReason.CONTENT_INVALID, f"ConfigMap {config_map.metadata.name} is damaged: {error}")


def sequence_of(config_map: ConfigMap) -> int:
    """Return a version's sequence number; 0 if it is damaged."""
    text = config_map.metadata.annotations.get(ANNOTATION_SEQUENCE, "")
    return int(text) if text.isascii() and text.isdecimal() else 0


def request_of(config_map: ConfigMap) -> str:
    """Return the refresh request by which a version became the current one; empty if the definition was changed."""
    return config_map.metadata.annotations.get(names.ANNOTATION_REFRESH, "")


def split_kept(contents: Iterable[Content], *, keep: int, used: Collection[str]) -> tuple[list[Content], list[Content]]:
    """Split versions into those that new Pods may run (newest first) and those to delete.

    A digest in `used` is never deleted; it is in neither list when it is too old for new Pods.
    """
    newest_first = sorted(contents, key=lambda c: c.sequence, reverse=True)
    kept: list[Content] = []
    rest: list[Content] = []
    seen: set[str] = set()
    for content in newest_first:
        if content.version in seen or len(kept) >= keep:
            rest.append(content)
        else:
            seen.add(content.version)
            kept.append(content)
    return kept, [content for content in rest if content.digest not in used]


def charged(kept: Sequence[Content]) -> Resources:
    """Compute the charge of a new Pod: the maximum over the versions that it may run."""
    total = Resources()
    for content in kept:
        total = total.union(content.need)
    return total


def versions_of_few(kept: Iterable[Content]) -> list[str]:
    """List the topology versions of contents that not every supported CML imports."""
    return sorted({content.topology.version for content in kept} & SINCE.keys())


def runtime_class(
    name: str,
    uid: str,
    installation: str,
    spec: LabletDefinitionSpec,
    charge: Resources,
    topology_versions: Iterable[str] = (),
) -> dict[str, Any]:
    """Build the RuntimeClass: the scheduling contract of a definition.

    The scheduler adds the overhead to each Pod's requests, admission injects selector and tolerations. The two
    tolerations of `not-ready` and `unreachable` keep a silent worker from ending its learners' work.

    Args:
        name: The definition's.
        uid: The definition's.
        installation: Marks the object as ours.
        spec: The definition's.
        charge: For one Pod.
        topology_versions: Versions that the CML of a Pod's Node must import, as its labels say.
    """
    patience = {} if (s := spec.unreachable_toleration_seconds) is None else {"tolerationSeconds": s}
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {
            "name": name,
            "labels": {
                wellknown.LABEL_MANAGED_BY: wellknown.MANAGER,
                names.LABEL_COMPONENT: names.COMPONENT_RUNTIME_CLASS,
            },
            "annotations": {wellknown.ANNOTATION_INSTALLATION: installation},
            "ownerReferences": [owner_reference(name, uid)],
        },
        "handler": RUNTIME_HANDLER,
        "overhead": {"podFixed": {k: v for k, v in charge.quantities().items() if v != "0"}},
        "scheduling": {
            "nodeSelector": {
                names.LABEL_COMPONENT: names.COMPONENT_VNODE,
                names.LABEL_ENV: spec.environment,
                **{names.LABEL_TOPOLOGY_PREFIX + version: "true" for version in topology_versions},
            },
            "tolerations": [
                {"key": names.TAINT_VIRTUAL_NODE, "operator": "Equal", "value": "true"},
                {"key": names.TAINT_ENV, "operator": "Equal", "value": spec.environment},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", **patience},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", **patience},
            ],
        },
    }


def same_runtime_class(found: RuntimeClass, wanted: dict[str, Any]) -> bool:
    """Return whether the RuntimeClass is up to date."""
    charged_now = found.overhead.get("podFixed", {})  # the API server drops an empty one
    return (found.handler, charged_now, found.scheduling) == (
        wanted["handler"],
        wanted["overhead"]["podFixed"],
        wanted["scheduling"],
    )

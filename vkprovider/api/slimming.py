"""What is kept in memory of objects that tenants write."""

from functools import lru_cache
from typing import Final, TypeVar

import msgspec

from vkprovider.api import names
from vkprovider.api.objects import ENV, Container, Pod, PodSpec

T = TypeVar("T")

_PREFIX: Final = f"{names.GROUP}/"
_CHARS_MAX: Final = 64 * 1024
"""The most characters of all annotations of a Pod together; those of users and of the provider are a few KiB."""
_CUT_CHARS: Final = 1024
"""The characters that are kept of each annotation of such a Pod; every input that is longer is refused."""
_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 (a path)
_TOKEN_VOLUME: Final = "kube-api-access-"  # noqa: S105 (a name)
"""The path and the name of the volume at which the admission plugin ServiceAccount mounts a token unasked."""
_ABSENT: Final = msgspec.Raw(b"")
_EMPTY: Final = frozenset({b"", b"null", b"[]", b"{}", b'""'})


class _Volume(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _Mount(msgspec.Struct, frozen=True, rename="camel", gc=False):
    mount_path: str = ""


class WholeContainer(Container, frozen=True, rename="camel", gc=False):
    """A container with the fields of which only the presence is kept; their values are not decoded."""

    env: msgspec.Raw = _ABSENT
    env_from: msgspec.Raw = _ABSENT
    command: msgspec.Raw = _ABSENT
    args: msgspec.Raw = _ABSENT
    working_dir: msgspec.Raw = _ABSENT
    ports: msgspec.Raw = _ABSENT
    volume_mounts: tuple[_Mount, ...] = ()
    volume_devices: msgspec.Raw = _ABSENT
    liveness_probe: msgspec.Raw = _ABSENT
    readiness_probe: msgspec.Raw = _ABSENT
    startup_probe: msgspec.Raw = _ABSENT
    lifecycle: msgspec.Raw = _ABSENT


class WholeSpec(PodSpec, frozen=True, rename="camel", gc=False, kw_only=True):
    """A Pod's spec with the fields of which only the presence is kept."""

    containers: list[WholeContainer]  # type: ignore[assignment]  # (nothing is ever put into the list)
    volumes: tuple[_Volume, ...] = ()


class WholePod(Pod, frozen=True, gc=False, kw_only=True):
    """A Pod as it is decoded; `slim_pod` makes a `Pod` of it."""

    spec: WholeSpec


_FIELDS: Final = {
    "env": ENV,
    "env_from": ENV,
    "command": "command",
    "args": "args",
    "working_dir": "workingDir",
    "ports": "ports",
    "volume_devices": "volumeDevices",
    "liveness_probe": "livenessProbe",
    "readiness_probe": "readinessProbe",
    "startup_probe": "startupProbe",
    "lifecycle": "lifecycle",
}
"""Attributes of `WholeContainer` that are not decoded, and their names in `PodSpec.other_fields`."""


def slim_pod(pod: Pod) -> Pod:
    """Return a Pod with the labels and annotations of vkprovider alone, and with the names of its other fields.

    Every replica keeps all Pods on virtual Nodes, and an API server accepts 256 KiB of annotations on each, and more
    than a megabyte of variables.
    """
    meta = pod.metadata
    labels = {key: value for key, value in meta.labels.items() if key.startswith(_PREFIX)}
    notes = {key: value for key, value in meta.annotations.items() if key.startswith(_PREFIX)}
    if sum(len(key) + len(value) for key, value in notes.items()) > _CHARS_MAX:
        known = sorted(names.POD_ANNOTATIONS & notes.keys())
        notes = {key: notes[key][:_CUT_CHARS] for key in known}
    if len(labels) != len(meta.labels) or notes != meta.annotations:
        meta = msgspec.structs.replace(meta, labels=labels, annotations=notes)
    spec = _slim_spec(pod.spec) if isinstance(pod.spec, WholeSpec) else pod.spec
    return pod if meta is pod.metadata and spec is pod.spec else Pod(meta, spec, pod.status)


def _slim_spec(spec: WholeSpec) -> PodSpec:
    return PodSpec(
        containers=[Container(container.name, container.image) for container in spec.containers],
        init_containers=spec.init_containers,
        node_name=spec.node_name,
        runtime_class_name=spec.runtime_class_name,
        restart_policy=spec.restart_policy,
        active_deadline_seconds=spec.active_deadline_seconds,
        overhead=spec.overhead,
        readiness_gates=_shared(spec.readiness_gates) if spec.readiness_gates else (),
        other_fields=_others(spec),
    )


def _others(spec: WholeSpec) -> tuple[str, ...]:
    found: set[str] = set()
    for container in spec.containers:
        if not _is_plain(container):
            found |= {name for field, name in _FIELDS.items() if bytes(getattr(container, field)) not in _EMPTY}
        for mount in container.volume_mounts:
            if mount.mount_path != _TOKEN_PATH:
                found.add("volumeMounts")
    for volume in spec.volumes:
        if not volume.name.startswith(_TOKEN_VOLUME):
            found.add("volumes")
    return _shared(tuple(sorted(found))) if found else ()


def _is_plain(container: WholeContainer) -> bool:
    """Return whether none of `_FIELDS` is there; spelled out, because every change of every Pod passes here."""
    return (
        container.env is _ABSENT
        and container.env_from is _ABSENT
        and container.command is _ABSENT
        and container.args is _ABSENT
        and container.working_dir is _ABSENT
        and container.ports is _ABSENT
        and container.volume_devices is _ABSENT
        and container.liveness_probe is _ABSENT
        and container.readiness_probe is _ABSENT
        and container.startup_probe is _ABSENT
        and container.lifecycle is _ABSENT
    )


@lru_cache(maxsize=256)
def _shared(values: tuple[T, ...]) -> tuple[T, ...]:
    """Return one tuple for all Pods that have the same values, as those of one template have."""
    return values

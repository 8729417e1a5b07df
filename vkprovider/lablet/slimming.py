"""What is kept in memory of objects that tenants write."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeVar

import msgspec

from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.objects import ENV, Container, Pod, PodSpec

T = TypeVar("T")

_PREFIX: Final = f"{wellknown.GROUP}/"
_CHARS_MAX: Final = 64 * 1024
"""The most characters of all annotations of a Pod together; those of users and of the provider are a few KiB."""
_CUT_CHARS: Final = 1024
"""The characters that are kept of each annotation of such a Pod; every input that is longer is refused."""
_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 (a path)
_TOKEN_VOLUME: Final = "kube-api-access-"  # noqa: S105 (a name)
"""The path and the name of the volume at which the admission plugin ServiceAccount mounts a token unasked."""
_LIMIT_RANGER: Final = "kubernetes.io/limit-ranger"
_LIMIT_SET: Final = " limit for "
"""The annotation in which the admission plugin LimitRanger says what it set, and its words for limits."""
_GRACE_S: Final = 30
_DNS_POLICY: Final = "ClusterFirst"
_MESSAGE_PATH: Final = "/dev/termination-log"
_MESSAGE_POLICY: Final = "File"
"""The values with which the API server completes every Pod."""
_ABSENT: Final = msgspec.Raw(b"")
_EMPTY: Final = frozenset({b"", b"null", b"[]", b"{}", b'""'})


class _Volume(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _Mount(msgspec.Struct, frozen=True, rename="camel", gc=False):
    mount_path: str = ""


class _Resources(msgspec.Struct, frozen=True, gc=False):
    limits: msgspec.Raw = _ABSENT


_NO_RESOURCES: Final = _Resources()


class WholeContainer(Container, frozen=True, rename="camel", gc=False):
    """A container with the fields of which only the presence is kept; defaults are the API server's."""

    env: msgspec.Raw = _ABSENT
    env_from: msgspec.Raw = _ABSENT
    command: msgspec.Raw = _ABSENT
    args: msgspec.Raw = _ABSENT
    working_dir: msgspec.Raw = _ABSENT
    ports: msgspec.Raw = _ABSENT
    resources: _Resources = _NO_RESOURCES
    restart_policy: str = ""
    restart_policy_rules: msgspec.Raw = _ABSENT
    volume_mounts: tuple[_Mount, ...] = ()
    volume_devices: msgspec.Raw = _ABSENT
    liveness_probe: msgspec.Raw = _ABSENT
    readiness_probe: msgspec.Raw = _ABSENT
    startup_probe: msgspec.Raw = _ABSENT
    lifecycle: msgspec.Raw = _ABSENT
    termination_message_path: str = _MESSAGE_PATH
    termination_message_policy: str = _MESSAGE_POLICY
    stdin_once: bool = False


class WholeSpec(PodSpec, frozen=True, rename="camel", gc=False, kw_only=True):
    """A Pod's spec with the fields of which only the presence is kept; defaults are the API server's."""

    containers: list[WholeContainer]  # type: ignore[assignment]  # (nothing is ever put into the list)
    volumes: tuple[_Volume, ...] = ()
    resources: _Resources = _NO_RESOURCES
    resource_claims: msgspec.Raw = _ABSENT
    termination_grace_period_seconds: int | None = _GRACE_S
    dns_policy: str = _DNS_POLICY
    dns_config: msgspec.Raw = _ABSENT
    host_aliases: msgspec.Raw = _ABSENT
    host_network: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    share_process_namespace: bool = False
    hostname_override: msgspec.Raw = _ABSENT
    set_hostname_as_fqdn: bool = msgspec.field(default=False, name="setHostnameAsFQDN")
    os: msgspec.Raw = _ABSENT


class WholePod(Pod, frozen=True, gc=False, kw_only=True):
    """A Pod as it is decoded; `slim_pod` makes a `Pod` of it."""

    spec: WholeSpec


def _others_of(whole: type[msgspec.Struct], slim: type[msgspec.Struct]) -> dict[str, tuple[str, object]]:
    """Map the attributes that only `whole` has to their names in `PodSpec.other_fields` and their defaults."""
    kept = {field.name for field in msgspec.structs.fields(slim)} | {"resources", "volumes", "volume_mounts"}
    fields = [field for field in msgspec.structs.fields(whole) if field.name not in kept]
    return {field.name: (field.encode_name, field.default) for field in fields}


_OF_CONTAINER: Final = {**_others_of(WholeContainer, Container), "env_from": (ENV, _ABSENT)}
_OF_SPEC: Final = _others_of(WholeSpec, PodSpec)


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
    spec = _slim_spec(pod.spec, pod.metadata.annotations) if isinstance(pod.spec, WholeSpec) else pod.spec
    return pod if meta is pod.metadata and spec is pod.spec else Pod(meta, spec, pod.status)


def _slim_spec(spec: WholeSpec, annotations: Mapping[str, str]) -> PodSpec:
    return PodSpec(
        containers=[Container(container.name, container.image) for container in spec.containers],
        init_containers=spec.init_containers,
        node_name=spec.node_name,
        runtime_class_name=spec.runtime_class_name,
        restart_policy=spec.restart_policy,
        active_deadline_seconds=spec.active_deadline_seconds,
        overhead=spec.overhead,
        readiness_gates=_shared(spec.readiness_gates) if spec.readiness_gates else (),
        other_fields=_others(spec, annotations),
    )


def _others(spec: WholeSpec, annotations: Mapping[str, str]) -> tuple[str, ...]:
    found: set[str] = set()
    limited = spec.resources.limits is not _ABSENT
    if not _is_plain_spec(spec):
        found |= _changed(spec, _OF_SPEC)
    for container in spec.containers:
        if not _is_plain(container):
            found |= _changed(container, _OF_CONTAINER)
        limited = limited or container.resources.limits is not _ABSENT
        for mount in container.volume_mounts:
            if mount.mount_path != _TOKEN_PATH:
                found.add("volumeMounts")
    for volume in spec.volumes:
        if not volume.name.startswith(_TOKEN_VOLUME):
            found.add("volumes")
    if limited and _LIMIT_SET not in annotations.get(_LIMIT_RANGER, ""):
        found.add("resources.limits")
    return _shared(tuple(sorted(found))) if found else ()


def _changed(thing: msgspec.Struct, fields: Mapping[str, tuple[str, object]]) -> set[str]:
    """Return the names of the fields that ask for something."""
    found = set()
    for field, (name, default) in fields.items():
        value = getattr(thing, field)
        if bytes(value) not in _EMPTY if isinstance(value, msgspec.Raw) else value != default:
            found.add(name)
    return found


def _is_plain_spec(spec: WholeSpec) -> bool:
    """Return whether none of `_OF_SPEC` is there; spelled out, because every change of every Pod passes here."""
    return (
        spec.resource_claims is _ABSENT
        and spec.termination_grace_period_seconds == _GRACE_S
        and spec.dns_policy == _DNS_POLICY
        and spec.dns_config is _ABSENT
        and spec.host_aliases is _ABSENT
        and not spec.host_network
        and not spec.host_pid
        and not spec.host_ipc
        and not spec.share_process_namespace
        and spec.hostname_override is _ABSENT
        and not spec.set_hostname_as_fqdn
        and spec.os is _ABSENT
    )


def _is_plain(container: WholeContainer) -> bool:
    """Return whether none of `_OF_CONTAINER` is there; spelled out as well."""
    return (
        container.env is _ABSENT
        and container.env_from is _ABSENT
        and container.command is _ABSENT
        and container.args is _ABSENT
        and container.working_dir is _ABSENT
        and container.ports is _ABSENT
        and not container.restart_policy
        and container.restart_policy_rules is _ABSENT
        and container.volume_devices is _ABSENT
        and container.liveness_probe is _ABSENT
        and container.readiness_probe is _ABSENT
        and container.startup_probe is _ABSENT
        and container.lifecycle is _ABSENT
        and container.termination_message_path == _MESSAGE_PATH
        and container.termination_message_policy == _MESSAGE_POLICY
        and not container.stdin_once
    )


@lru_cache(maxsize=256)
def _shared(values: tuple[T, ...]) -> tuple[T, ...]:
    """Return one tuple for all Pods that have the same values, as those of one template have."""
    return values

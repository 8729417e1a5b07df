"""Slim structs of a Pod as far as its environment variables are concerned.

They are decoded from a Pod that is read for its import alone. The Pods that a replica keeps (`objects.Pod`) only say
whether there are variables.
"""

import msgspec

from vkprovider.platform.objects import Metadata


class SourceRef(msgspec.Struct, frozen=True, gc=False):
    """A ConfigMap or Secret, all of which becomes variables."""

    name: str = ""
    optional: bool = False


class KeyRef(msgspec.Struct, frozen=True, gc=False):
    """One key of a ConfigMap or Secret."""

    name: str = ""
    key: str = ""
    optional: bool = False


class FieldRef(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A field of the Pod (downward API)."""

    field_path: str = ""


class ResourceFieldRef(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A resource of a container (downward API)."""

    resource: str = ""
    container_name: str = ""
    divisor: str = "0"


class ValueFrom(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Where a variable's value comes from; one of the fields is set."""

    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None


class EnvVar(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A variable."""

    name: str
    value: str = ""
    value_from: ValueFrom | None = None


class EnvFrom(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A ConfigMap or Secret whose keys become variables."""

    prefix: str = ""
    config_map_ref: SourceRef | None = None
    secret_ref: SourceRef | None = None


class ContainerResources(msgspec.Struct, frozen=True, gc=False):
    """Quantities by resource."""

    limits: dict[str, str] = msgspec.field(default_factory=dict)
    requests: dict[str, str] = msgspec.field(default_factory=dict)


class EnvContainer(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A container."""

    name: str
    env: list[EnvVar] = msgspec.field(default_factory=list)
    env_from: list[EnvFrom] = msgspec.field(default_factory=list)
    resources: ContainerResources = ContainerResources()


class EnvPodSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A Pod's spec."""

    containers: list[EnvContainer]
    node_name: str = ""
    service_account_name: str = ""


class EnvPod(msgspec.Struct, frozen=True, gc=False):
    """A Pod with its variables, and with all of its labels and annotations."""

    metadata: Metadata
    spec: EnvPodSpec

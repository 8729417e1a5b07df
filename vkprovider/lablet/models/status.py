"""The statuses of the custom resources: what the provider writes and commands read.

A field that may be missing is `UNSET` there; all others are written always. The CRDs are generated from these classes.
They are read from what is stored, whichever release wrote it, so that nothing but the type of a field is checked.
"""

from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.reasons import reason_of

_INT64: Final = {"format": "int64"}
_TIME: Final = {"format": "date-time"}
_BY_TYPE: Final = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


class ResourceCondition(msgspec.Struct, frozen=True, rename="camel"):
    """One condition."""

    type: Annotated[str, Meta(description="What the condition is about.")]
    status: Annotated[
        str, Meta(description="Whether it holds.", extra_json_schema={"enum": ["True", "False", "Unknown"]})
    ]
    reason: Annotated[str, Meta(description="Why, in one word.")] = ""
    message: Annotated[str, Meta(description="Why, and what to do about it.")] = ""
    observed_generation: (
        Annotated[int, Meta(description="Generation of the spec that it is about.", extra_json_schema=_INT64)]
        | UnsetType
    ) = UNSET
    last_transition_time: (
        Annotated[str, Meta(description="When the status last changed.", extra_json_schema=_TIME)] | UnsetType
    ) = UNSET

    @property
    def fault(self) -> Fault:
        """Its reason and message."""
        return Fault(reason_of(self.reason), self.message)


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """What every status has."""

    conditions: Annotated[
        list[ResourceCondition], Meta(description="What is true of the object now.", extra_json_schema=_BY_TYPE)
    ] = []
    observed_generation: Annotated[
        int, Meta(description="Generation of the spec that the status is about.", extra_json_schema=_INT64)
    ] = 0

    def condition(self, type_: str) -> ResourceCondition | None:
        """Return a condition; None if there is not one of that type."""
        return next((condition for condition in self.conditions if condition.type == type_), None)

    @property
    def ready(self) -> ResourceCondition | None:
        """The condition Ready; None if there is not one."""
        return self.condition("Ready")

    @property
    def is_ready(self) -> bool:
        """Whether the condition Ready is True."""
        return self.ready is not None and self.ready.status == "True"


class LabCounts(msgspec.Struct, frozen=True):
    """Labs on the worker."""

    ours: Annotated[int, Meta(description="Labs of this installation.", extra_json_schema=_INT64)] = 0
    foreign: Annotated[int, Meta(description="Labs of others, never touched.", extra_json_schema=_INT64)] = 0


class NodeDefinitionFigures(msgspec.Struct, frozen=True):
    """What one device of a node definition needs."""

    name: Annotated[str, Meta(description="The node definition.")] = ""
    cpus: Annotated[int, Meta(description="Cores.", extra_json_schema=_INT64)] = 0
    ram: Annotated[int, Meta(description="Memory in MiB.", extra_json_schema=_INT64)] = 0


class NodeDefinitionTimeout(msgspec.Struct, frozen=True):
    """How long CML waits for a device of a node definition."""

    name: Annotated[str, Meta(description="The node definition.")] = ""
    seconds: Annotated[
        int,
        Meta(description="Its `boot.timeout`: then CML calls the device BOOTED.", extra_json_schema=_INT64),
    ] = 0


class WorkerStatus(Status, frozen=True, rename="camel"):
    """What the provider knows of the worker."""

    node: Annotated[str, Meta(description="Name of the Node.")] | UnsetType = UNSET
    cml_version: Annotated[str, Meta(description="Version that CML reports.")] | UnsetType = UNSET
    identity: (
        Annotated[
            list[str],
            Meta(
                description="What tells its CML controller from others: two CMLWorkers with one of these in common are "
                "one."
            ),
        ]
        | UnsetType
    ) = UNSET
    owner: Annotated[str, Meta(description="Replica that acts for the worker.")] | UnsetType = UNSET
    epoch: (
        Annotated[int, Meta(description="How often the worker changed its owner.", extra_json_schema=_INT64)]
        | UnsetType
    ) = UNSET
    labs: LabCounts | UnsetType = UNSET
    node_definitions: (
        Annotated[
            list[NodeDefinitionFigures],
            Meta(description="Node definitions of this CML whose needs vkprovider does not know itself (`stats: On`)."),
        ]
        | UnsetType
    ) = UNSET
    boot_timeouts: (
        Annotated[
            list[NodeDefinitionTimeout],
            Meta(description="How long this CML waits for a device to boot, by node definition (`stats: On`)."),
        ]
        | UnsetType
    ) = UNSET
    address: (
        Annotated[str, Meta(description="The IP address at which learners reach the worker, as it was resolved.")]
        | UnsetType
    ) = UNSET
    page_url: (
        Annotated[
            str,
            Meta(
                description="Where people reach the provider's page (`VKPROVIDER_PAGE_URL`). `kubectl lablet grant` "
                "names it to a class; no token is sent there before."
            ),
        ]
        | UnsetType
    ) = msgspec.field(name="pageURL", default=UNSET)
    user: (
        Annotated[str, Meta(description='User of CML by whom its labs were seen last, or "(the agent\'s own)".')]
        | UnsetType
    ) = UNSET


class LastRefresh(msgspec.Struct, frozen=True, rename="camel"):
    """What became of the last refresh."""

    request: Annotated[
        str, Meta(description="The request, as annotated; empty if the definition itself was changed.")
    ] = ""
    requested_by: Annotated[str, Meta(description="Who asked for it; empty if unknown.")] = ""
    time: Annotated[str, Meta(description="When it was served.", extra_json_schema=_TIME)] | UnsetType = UNSET
    result: Annotated[
        str,
        Meta(
            description="Whether new content was stored; a refused one changes nothing.",
            extra_json_schema={"enum": ["Stored", "Unchanged", "Refused"]},
        ),
    ] = ""
    version: Annotated[str, Meta(description="Version of the content that was read.")] = ""
    devices: Annotated[int, Meta(description="How many devices it has.", extra_json_schema=_INT64)] = 0


class RefusedContent(msgspec.Struct, frozen=True):
    """Content that is wrong by itself; it is not parsed again until it changes."""

    digest: Annotated[str, Meta(description="Names the content.")] = ""
    provider: Annotated[
        str, Meta(description="Release of the provider that refused it; another one parses it again.")
    ] = ""


class KeptVersion(msgspec.Struct, frozen=True, rename="camel"):
    """One version of the content."""

    version: Annotated[str, Meta(description="Its name, the tag of an image.")] = ""
    digest: Annotated[str, Meta(description="Names the content: SHA-256 of definition, version and all files.")] = ""
    files: Annotated[list[str], Meta(description="What is stored beside the topology.")] | UnsetType = UNSET
    refreshed_by: Annotated[str, Meta(description="Who asked for it; empty if unknown.")] | UnsetType = UNSET
    refreshed_at: Annotated[str, Meta(description="When it was stored.", extra_json_schema=_TIME)] | UnsetType = UNSET
    resources: Annotated[dict[str, str], Meta(description="What one lablet of this version needs.")] = {}


class ShownDevice(msgspec.Struct, frozen=True, rename="camel"):
    """One device."""

    label: Annotated[str, Meta(description="Its label in the topology.")] = ""
    container: Annotated[str, Meta(description="Name of the container that stands for it.")] = ""
    node_definition: Annotated[str, Meta(description="Its node definition.")] = ""
    image_definition: (
        Annotated[str, Meta(description="Its image definition; missing where the node definition decides.")] | UnsetType
    ) = UNSET
    visible: Annotated[bool, Meta(description="Whether learners see it.")] = True
    hidden: Annotated[bool, Meta(description="Whether its author hides it, by the tag `hidden`.")] | UnsetType = UNSET
    x: (
        Annotated[
            int,
            Meta(
                description="Its place in the picture of the lab, to the right; missing where the topology has none.",
                extra_json_schema=_INT64,
            ),
        ]
        | UnsetType
    ) = UNSET
    y: Annotated[int, Meta(description="Its place, downwards.", extra_json_schema=_INT64)] | UnsetType = UNSET


class ShownLink(msgspec.Struct, frozen=True):
    """One pair of devices that links join."""

    n1: Annotated[str, Meta(description="Label of the one device.")] = ""
    n2: Annotated[str, Meta(description="Label of the other device.")] = ""


class ShownPort(msgspec.Struct, frozen=True):
    """One port."""

    name: Annotated[str, Meta(description="Its name in `port-mappings`.")] = ""
    device: Annotated[str, Meta(description="Label of the device that is reached by it.")] = ""
    container: Annotated[str, Meta(description="Name of the container that stands for the device.")] = ""
    protocol: Annotated[str, Meta(description="Its transport protocol, tcp or udp.")] = ""
    tag: Annotated[str, Meta(description="The tag that requests it.")] = ""
    opened: Annotated[bool, Meta(description="Whether CML opens it; false for http, https, ssh, telnet, tcp.")] = True


class DefinitionStatus(Status, frozen=True, rename="camel"):
    """What the provider made of the definition."""

    refresh: Annotated[str, Meta(description="The refresh request that was last served, as annotated.")] = ""
    source: Annotated[str, Meta(description="Names what was read: SHA-256 of version and source in the spec.")] = ""
    last_refresh: LastRefresh | UnsetType = UNSET
    refused: RefusedContent | None = None
    version: Annotated[str, Meta(description="Version that a new lablet gets.")] = ""
    versions: Annotated[list[KeptVersion], Meta(description="Versions kept, newest first.")] = []
    devices: Annotated[list[ShownDevice], Meta(description="Devices of the newest version, the first 500.")] = []
    links: Annotated[
        list[ShownLink], Meta(description="Pairs of devices of the newest version that links join, the first 500.")
    ] = []
    port_template: Annotated[
        list[ShownPort], Meta(description="Ports that a lablet of the newest version gets, the first 500.")
    ] = []
    resources: Annotated[dict[str, str], Meta(description="What one lablet is charged, as in the RuntimeClass.")] = {}
    boot_timeout_seconds: (
        Annotated[
            int,
            Meta(
                description="How long a device of the newest version may take to boot, on the worker that gives it the "
                "most time. What waits for such a lablet should wait longer.",
                extra_json_schema=_INT64,
            ),
        ]
        | UnsetType
    ) = UNSET


S = TypeVar("S", bound=Status)


def worker_status(resource: CustomResource) -> WorkerStatus:
    """Return the status of a CMLWorker; an empty one if it cannot be read, because it will be written again."""
    return _read(resource, WorkerStatus)


def definition_status(resource: CustomResource) -> DefinitionStatus:
    """Return the status of a LabletDefinition; an empty one if it cannot be read, because it will be written again."""
    return _read(resource, DefinitionStatus)


def _read(resource: CustomResource, kind: type[S]) -> S:
    try:
        return msgspec.convert(resource.status, kind)
    except msgspec.ValidationError:
        return kind()


def stored(status: Status) -> dict[str, Any]:
    """Return a status as the API server stores it; what is `UNSET` is left out."""
    found: dict[str, Any] = msgspec.to_builtins(status)
    return found

"""The kinds of values in CML's answers: ids, times, states, limits. Facts about CML 2.9."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

UUID: Final = r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
Uuid = Annotated[str, Meta(pattern=UUID)]
Stamp = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")]
"""`2025-12-06T11:11:28+00:00`."""
LicenceStamp = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")]
"""Licensing writes `2026-08-20 17:25:30`, as recorded."""
Name = Annotated[str, Meta(min_length=1, max_length=64)]
Label = Annotated[str, Meta(min_length=1, max_length=128)]
Description = Annotated[str, Meta(max_length=4096)]
Notes = Annotated[str, Meta(max_length=32768)]
DefinitionId = Annotated[str, Meta(min_length=1, max_length=250)]
Coordinate = Annotated[int, Meta(ge=-15000, le=15000)]
Tag = Annotated[str, Meta(max_length=64)]
Mac = Annotated[str, Meta(pattern=r"^[a-fA-F\d]{2}(:[a-fA-F\d]{2}){5}$")]
Slot = Annotated[int, Meta(ge=0, le=128)]
Port = Annotated[int, Meta(ge=0, le=65535)]
Ram = Annotated[int, Meta(ge=1, le=1048576)]
Cpus = Annotated[int, Meta(ge=0, le=128)]
CpuLimit = Annotated[int, Meta(ge=20, le=100)]
Gigabytes = Annotated[int, Meta(ge=0, le=4096)]
Percent = Annotated[float, Meta(ge=0, le=100)]
Bridge = Annotated[str, Meta(pattern=r"^(bridge|local|virbr|vlan)\d{1,4}$")]
State = Literal["DEFINED_ON_CORE", "STOPPED", "STARTED"]
NodeState = Literal["DEFINED_ON_CORE", "STOPPED", "STARTED", "QUEUED", "BOOTED", "DISCONNECTED"]
Progress = Literal["Not running", "Booting", "Booted"]
Permission = Literal["lab_admin", "lab_edit", "lab_exec", "lab_view"]
OldPermission = Literal["read_only", "read_write"]


class Shape(Struct, forbid_unknown_fields=True, kw_only=True):
    """An object of CML; it has no further keys."""


class Problem(Shape):
    """Every error."""

    code: int
    description: str


class Identified(Shape):
    """What a new element answers."""

    id: Uuid

"""Shapes of users, groups, resource pools and licensing."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from tests.support.cmlapi.kinds import (
    Bridge,
    Description,
    Label,
    LicenceStamp,
    Name,
    OldPermission,
    Shape,
    Stamp,
    Uuid,
)
from tests.support.cmlapi.labs import Association


class User(Shape):
    """A user."""

    id: Uuid
    username: Name
    fullname: str
    description: Description
    email: str
    admin: bool
    groups: list[Uuid]
    associations: list[Association]
    resource_pool: Uuid | None
    opt_in: bool | str | None
    tour_version: str
    created: Stamp
    modified: Stamp
    directory_dn: str
    labs: list[Uuid]
    pubkey_info: str


class SharedLab(Shape):
    """A lab of a group in the deprecated form."""

    id: Uuid
    permission: OldPermission


class Group(Shape):
    """A group."""

    id: Uuid
    name: Name
    description: Description
    members: list[Uuid]
    labs: list[SharedLab]
    associations: list[Association]
    created: Stamp
    modified: Stamp
    directory_dn: str


class Pool(Shape):
    """A resource pool."""

    id: Uuid
    label: Label
    description: Description | None
    template: Uuid | None
    licenses: Annotated[int, Meta(ge=0, le=320)] | None
    ram: int | None
    cpus: int | None
    disk_space: int | None
    external_connectors: list[Bridge] | None
    users: list[Uuid]
    user_pools: list[Uuid]


class Amounts(Shape):
    """Limits or use of a pool."""

    licenses: int | None
    cpus: int | None
    ram: int | None
    disk_space: int | None
    external_connectors: list[Bridge] | None


class Usage(Shape):
    """What a pool allows and what is used."""

    id: Uuid
    label: Label
    limit: Amounts
    usage: Amounts


class Time(Shape):
    """When a licensing request was made."""

    succeeded: LicenceStamp | None
    attempted: LicenceStamp | None
    scheduled: LicenceStamp | None
    status: str | None
    failure: str | None
    success: str | None


class Registration(Shape):
    """The registration."""

    status: str
    smart_account: str | None
    virtual_account: str | None
    register_time: Time
    renew_time: Time
    expires: LicenceStamp | None


class Authorization(Shape):
    """The authorization."""

    status: str
    renew_time: Time
    expires: LicenceStamp | None


class Feature(Shape):
    """A licensed feature."""

    id: str
    name: str
    description: str
    in_use: int
    status: str
    version: str
    min: int
    max: int
    minEndDate: str | None  # noqa: N815 (CML's spelling)
    maxEndDate: str | None  # noqa: N815 (CML's spelling)


class Licensing(Shape):
    """The state of licensing."""

    registration: Registration
    authorization: Authorization
    features: list[Feature]
    reservation_mode: bool
    transport: dict[Literal["ssms", "default_ssms", "proxy"], Any]
    udi: dict[Literal["hostname", "product_uuid"], str]
    product_license: dict[Literal["active", "is_enterprise"], str | bool]

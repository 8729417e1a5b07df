"""What handlers work with: the request, the route table and the kinds of answers."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from vkpsim.cml.accounts import User
from vkpsim.cml.errors import CmlError, E, invalid
from vkpsim.cml.simulation import Simulation
from vkpsim.cml.world.model import Interface, Lab, Link, Node

T = TypeVar("T")

PERMISSIONS: Final = ("lab_view", "lab_admin", "lab_exec", "lab_edit")
_UNKNOWN_FIELD: Final = re.compile(r"contains unknown field `([^`]+)`")
_MISSING_FIELD: Final = re.compile(r"missing required field `([^`]+)`")
_PATH_IN_MESSAGE: Final = re.compile(r" - at `\$(.*)`$")


@dataclass(frozen=True, slots=True)
class Text:
    """An answer that is not JSON."""

    text: str
    content_type: str = "text/plain"


@dataclass(frozen=True, slots=True)
class Binary:
    """An answer that is not text."""

    content: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class Created:
    """An answer with status 201."""

    body: Any


@dataclass(slots=True, kw_only=True)
class Call:
    """One authenticated request at one time."""

    sim: Simulation
    now: float
    user: User
    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    token: str = ""
    shown: list[Lab] = field(default_factory=list)
    """Labs whose node states the answer shows; the access log notes when one first shows as converged."""
    imported: Lab | None = None

    def flag(self, name: str) -> bool | None:
        """Read a boolean of the query; None if it is absent, or empty as Cisco's client sends what it leaves open."""
        value = self.query.get(name)
        return value.lower() in {"true", "1", "yes"} if value else None

    def json(self) -> Any:
        """Read the body as JSON.

        Raises:
            CmlError: It is not JSON.
        """
        try:
            return msgspec.json.decode(self.body)
        except msgspec.DecodeError as error:
            raise invalid(str(error), kind="json_invalid") from error

    def read(self, shape: type[T]) -> T:
        """Read the body as JSON of a shape; unknown keys are refused, as CML refuses them.

        Raises:
            CmlError: It does not have that shape.
        """
        return self.check(self.json(), shape)

    def check(self, given: Any, shape: type[T]) -> T:
        """Read decoded JSON as a shape; unknown keys are refused, as CML refuses them.

        Raises:
            CmlError: It does not have that shape.
        """
        try:
            return msgspec.convert(given, type=shape)
        except msgspec.ValidationError as error:
            raise _refused(str(error)) from error

    def require_admin(self) -> None:
        """Refuse everyone but administrators.

        Raises:
            CmlError: The user is not an administrator.
        """
        if not self.user.admin:
            raise CmlError(E.ADMIN_ONLY)

    def permissions(self, lab: Lab) -> set[str]:
        """Return the user's rights on a lab."""
        if self.user.admin or lab.owner == self.user.id:
            return set(PERMISSIONS)
        granted = set(lab.user_permissions.get(self.user.id, ()))
        for group_id, permissions in lab.group_permissions.items():
            group = self.sim.accounts.groups.get(group_id)
            if group is not None and self.user.id in group.members:
                granted.update(permissions)
        return granted

    def visible_labs(self) -> list[Lab]:
        """List the labs that the user may see; administrators see all."""
        labs = self.sim.world.labs.values()
        return list(labs) if self.user.admin else [lab for lab in labs if self.permissions(lab)]

    def lab(self, permission: str = "lab_view") -> Lab:
        """Find the lab of the path.

        Raises:
            CmlError: 404 if it does not exist or the user may not see it, 403 if the user lacks the permission.
        """
        lab = self.sim.world.lab(self.path["lab"])
        granted = self.permissions(lab)
        if not granted:
            raise CmlError(E.LAB_NOT_FOUND, id=lab.id)
        if permission != "lab_view" and not granted & {permission, "lab_admin"}:
            raise CmlError(E.ADMIN_ONLY)
        return lab

    def node(self, permission: str = "lab_view") -> tuple[Lab, Node]:
        """Find the lab and the node of the path; errors as in `lab`."""
        lab = self.lab(permission)
        return lab, self.sim.world.node(lab.id, self.path["node"])

    def interface(self, permission: str = "lab_view") -> tuple[Lab, Interface]:
        """Find the lab and the interface of the path; errors as in `lab`."""
        lab = self.lab(permission)
        interface = lab.interface(self.path["interface"])
        if interface is None:
            raise CmlError(E.INTERFACE_NOT_FOUND, id=self.path["interface"])
        return lab, interface

    def link(self, permission: str = "lab_view") -> tuple[Lab, Link]:
        """Find the lab and the link of the path; errors as in `lab`."""
        lab = self.lab(permission)
        link = lab.links.get(self.path["link"])
        if link is None:
            raise CmlError(E.LINK_NOT_FOUND, id=self.path["link"])
        return lab, link


def _refused(message: str) -> CmlError:
    """Word a violation as CML does: unknown and missing fields are named in the location."""
    where = _PATH_IN_MESSAGE.search(message)
    parts = re.findall(r"\w+", where[1]) if where else []
    location = ["body", *(int(part) if part.isdecimal() else part for part in parts)]
    if unknown := _UNKNOWN_FIELD.search(message):
        return invalid("Extra inputs are not permitted", [*location, unknown[1]], "extra_forbidden")
    if missing := _MISSING_FIELD.search(message):
        return invalid("Field required", [*location, missing[1]], "missing")
    return invalid(message, location)


Handler = Callable[[Call], Any]
"""A handler returns JSON, a `Text`, `Binary` or `Created`, or None for an empty 204; it refuses by a `CmlError`."""


@dataclass(frozen=True, slots=True)
class Route:
    """An endpoint under `/api/v0`."""

    method: str
    path: str
    handler: Handler
    open: bool = False
    """Whether it needs no token."""

"""Users and groups."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from vkpsim.cml.accounts import Group, User
from vkpsim.cml.calls import Call, Created, Route
from vkpsim.cml.errors import CmlError, E, invalid
from vkpsim.cml.routes import views
from vkpsim.cml.routes.labs import Association
from vkpsim.cml.world.model import Lab

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class PasswordChange(msgspec.Struct, forbid_unknown_fields=True):
    """Old and new password."""

    old_password: str
    new_password: str


class UserChange(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a user that can be changed."""

    username: Name | UnsetType = UNSET
    fullname: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    email: str | UnsetType = UNSET
    admin: bool | UnsetType = UNSET
    groups: list[str] | UnsetType = UNSET
    associations: list[Association] | UnsetType = UNSET
    resource_pool: str | UnsetType | None = UNSET
    opt_in: bool | str | UnsetType | None = UNSET
    tour_version: str | UnsetType = UNSET
    pubkey: str | UnsetType = UNSET
    password: PasswordChange | UnsetType = UNSET


class NewUser(UserChange, forbid_unknown_fields=True, kw_only=True):
    """The fields of a new user."""

    username: Name
    password: str  # type: ignore[assignment]  # a new user's password is text, a changed one a pair


class GroupChange(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a group."""

    name: Name | UnsetType = UNSET
    description: str | UnsetType = UNSET
    members: list[str] | UnsetType = UNSET
    associations: list[Association] | UnsetType = UNSET


def _user_json(call: Call, user: User) -> dict[str, Any]:
    accounts, labs = call.sim.accounts, call.sim.world.labs.values()
    return {
        "id": user.id,
        "username": user.username,
        "fullname": user.fullname,
        "description": user.description,
        "email": user.email,
        "admin": user.admin,
        "groups": [group.id for group in accounts.groups.values() if user.id in group.members],
        "associations": [
            {"id": lab.id, "permissions": lab.user_permissions[user.id]}
            for lab in labs
            if user.id in lab.user_permissions
        ],
        "resource_pool": user.resource_pool,
        "opt_in": user.opt_in,
        "tour_version": user.tour_version,
        "created": views.stamp(user.created),
        "modified": views.stamp(user.modified),
        "directory_dn": user.directory_dn,
        "labs": [lab.id for lab in labs if lab.owner == user.id],
        "pubkey_info": "",
    }


def list_users(call: Call) -> list[dict[str, Any]]:
    """Show all users."""
    return [_user_json(call, user) for user in call.sim.accounts.users.values()]


def add_user(call: Call) -> Created:
    """Add a user."""
    call.require_admin()
    given = call.read(NewUser)
    user = call.sim.accounts.add_user(call.now, call.sim.new_id, given.username, given.password)
    _apply_user(call, user, given)
    return Created(_user_json(call, user))


def _apply_user(call: Call, user: User, given: UserChange) -> None:
    for name in (
        "username",
        "fullname",
        "description",
        "email",
        "admin",
        "resource_pool",
        "opt_in",
        "tour_version",
        "pubkey",
    ):
        value = getattr(given, name)
        if value is not UNSET:
            setattr(user, name, value)
    if given.groups is not UNSET:
        for group in call.sim.accounts.groups.values():
            group.members = [member for member in group.members if member != user.id]
            if group.id in given.groups:
                group.members.append(user.id)
    if given.associations is not UNSET:
        _share(call, given.associations, user.id, lambda lab: lab.user_permissions)
    user.modified = call.now


def _share(call: Call, given: list[Association], key: str, permissions: Any) -> None:
    wanted = {association.id: association.permissions for association in given}
    lab: Lab
    for lab in call.sim.world.labs.values():
        permissions(lab).pop(key, None)
        if wanted.get(lab.id):
            permissions(lab)[key] = wanted[lab.id]


def get_user(call: Call) -> dict[str, Any]:
    """Show a user."""
    return _user_json(call, call.sim.accounts.user(call.path["user"]))


def user_id(call: Call) -> str:
    """Find a user by name."""
    user = call.sim.accounts.by_name(call.path["user"])
    if user is None:
        raise CmlError(E.USER_NOT_FOUND, id=call.path["user"])
    return user.id


def change_user(call: Call) -> dict[str, Any]:
    """Change a user; a non-administrator may change only some of their own fields."""
    user = call.sim.accounts.user(call.path["user"])
    if user.id != call.user.id:
        call.require_admin()
    given = call.read(UserChange)
    renamed = given.username is not UNSET and given.username != user.username
    if renamed or given.admin is not UNSET or given.groups is not UNSET or given.resource_pool is not UNSET:
        call.require_admin()
    if renamed and call.sim.accounts.by_name(str(given.username)) is not None:
        raise CmlError(E.USER_EXISTS, id=given.username)
    if given.password is not UNSET:
        if not call.sim.accounts.has_password(user, given.password.old_password):
            raise CmlError(E.WRONG_OLD_PASSWORD)
        call.sim.accounts.check_strength(given.password.new_password)
        call.sim.accounts.set_password(user, given.password.new_password)
    _apply_user(call, user, given)
    return _user_json(call, user)


def delete_user(call: Call) -> None:
    """Remove a user."""
    call.require_admin()
    user = call.sim.accounts.user(call.path["user"])
    del call.sim.accounts.users[user.id]
    for group in call.sim.accounts.groups.values():
        group.members = [member for member in group.members if member != user.id]


def user_groups(call: Call) -> list[str]:
    """List the ids of a user's groups; deprecated, but still in CML 2.9."""
    groups: list[str] = get_user(call)["groups"]
    return groups


def _group_json(call: Call, group: Group) -> dict[str, Any]:
    shared = {
        lab.id: lab.group_permissions[group.id]
        for lab in call.sim.world.labs.values()
        if group.id in lab.group_permissions
    }
    return {
        "id": group.id,
        "name": group.name,
        "description": group.description,
        "members": group.members,
        "associations": [{"id": lab_id, "permissions": granted} for lab_id, granted in shared.items()],
        "labs": [{"id": lab_id, "permission": "read_write"} for lab_id in shared],
        "created": views.stamp(group.created),
        "modified": views.stamp(group.modified),
        "directory_dn": group.directory_dn,
    }


def list_groups(call: Call) -> list[dict[str, Any]]:
    """Show all groups."""
    return [_group_json(call, group) for group in call.sim.accounts.groups.values()]


def add_group(call: Call) -> Created:
    """Add a group."""
    call.require_admin()
    given = call.read(GroupChange)
    if given.name is UNSET:
        raise invalid("Field required", ("body", "name"), "missing")
    if any(group.name == given.name for group in call.sim.accounts.groups.values()):
        raise CmlError(E.GROUP_EXISTS)
    group = Group(id=call.sim.new_id(), name=given.name, created=call.now, modified=call.now)
    call.sim.accounts.groups[group.id] = group
    _apply_group(call, group, given)
    return Created(_group_json(call, group))


def _apply_group(call: Call, group: Group, given: GroupChange) -> None:
    if given.name is not UNSET:
        group.name = given.name
    if given.description is not UNSET:
        group.description = given.description
    if given.members is not UNSET:
        group.members = [call.sim.accounts.user(member).id for member in given.members]
    if given.associations is not UNSET:
        _share(call, given.associations, group.id, lambda lab: lab.group_permissions)
    group.modified = call.now


def get_group(call: Call) -> dict[str, Any]:
    """Show a group."""
    return _group_json(call, call.sim.accounts.group(call.path["group"]))


def group_members(call: Call) -> list[str]:
    """List the ids of a group's members; deprecated, but still in CML 2.9."""
    return call.sim.accounts.group(call.path["group"]).members


def group_labs(call: Call) -> list[str]:
    """List the ids of the labs that are shared with a group; deprecated, but still in CML 2.9."""
    return [association["id"] for association in get_group(call)["associations"]]


def group_id(call: Call) -> str:
    """Find a group by name."""
    for group in call.sim.accounts.groups.values():
        if group.name == call.path["group"]:
            return group.id
    raise CmlError(E.GROUP_NOT_FOUND, id=call.path["group"])


def change_group(call: Call) -> dict[str, Any]:
    """Change a group."""
    call.require_admin()
    group = call.sim.accounts.group(call.path["group"])
    _apply_group(call, group, call.read(GroupChange))
    return _group_json(call, group)


def delete_group(call: Call) -> None:
    """Remove a group."""
    call.require_admin()
    group = call.sim.accounts.group(call.path["group"])
    del call.sim.accounts.groups[group.id]
    for lab in call.sim.world.labs.values():
        lab.group_permissions.pop(group.id, None)


ROUTES = (
    Route("GET", "/users", list_users),
    Route("POST", "/users", add_user),
    Route("GET", "/users/{user}", get_user),
    Route("PATCH", "/users/{user}", change_user),
    Route("DELETE", "/users/{user}", delete_user),
    Route("GET", "/users/{user}/id", user_id),
    Route("GET", "/users/{user}/groups", user_groups),
    Route("GET", "/groups", list_groups),
    Route("POST", "/groups", add_group),
    Route("GET", "/groups/{group}", get_group),
    Route("PATCH", "/groups/{group}", change_group),
    Route("DELETE", "/groups/{group}", delete_group),
    Route("GET", "/groups/{group}/id", group_id),
    Route("GET", "/groups/{group}/labs", group_labs),
    Route("GET", "/groups/{group}/members", group_members),
)

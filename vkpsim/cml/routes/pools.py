"""Resource pools: limits on what users may use."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from vkpsim.cml.accounts import Pool
from vkpsim.cml.calls import Call, Route
from vkpsim.cml.errors import invalid
from vkpsim.cml.routes.accounts import Name


class PoolChange(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a resource pool; `shared` false makes one pool per user."""

    label: Name | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    template: str | UnsetType | None = UNSET
    licenses: Annotated[int, msgspec.Meta(ge=0, le=320)] | UnsetType | None = UNSET
    ram: int | UnsetType | None = UNSET
    cpus: int | UnsetType | None = UNSET
    disk_space: int | UnsetType | None = UNSET
    external_connectors: list[str] | UnsetType | None = UNSET
    users: list[str] | UnsetType | None = UNSET
    shared: bool | UnsetType = UNSET


def _pool_json(call: Call, pool: Pool) -> dict[str, Any]:
    """Render a pool; Cisco's client breaks on any key that it does not know."""
    return {
        "id": pool.id,
        "label": pool.label,
        "description": pool.description,
        "template": pool.template,
        "licenses": pool.licenses,
        "ram": pool.ram,
        "cpus": pool.cpus,
        "disk_space": pool.disk_space,
        "external_connectors": pool.external_connectors,
        "users": pool.users,
        "user_pools": [other.id for other in call.sim.accounts.pools.values() if other.template == pool.id],
    }


def list_pools(call: Call) -> list[Any]:
    """List the ids of resource pools, or with `data` the pools themselves."""
    pools = call.sim.accounts.pools
    return [_pool_json(call, pool) for pool in pools.values()] if call.flag("data") else list(pools)


def add_pool(call: Call) -> Any:
    """Add a pool, or with `shared` false one for each user, as a list.

    The pools of users belong to a template: to the one given, or to a new one, which then comes first in the list and
    has the limits.
    """
    call.require_admin()
    given = call.read(PoolChange)
    if given.label is UNSET:
        raise invalid("Field required", ("body", "label"), "missing")
    users = given.users if isinstance(given.users, list) else []
    template = call.sim.accounts.pool(given.template).id if isinstance(given.template, str) else None
    if given.shared is not False:
        return _pool_json(call, _new_pool(call, given, template, users))
    made = []
    limits = given
    if template is None:
        made.append(_new_pool(call, given, None, []))
        template, limits = made[0].id, PoolChange(label=given.label)
    made += [_new_pool(call, limits, template, [user]) for user in users]
    return [_pool_json(call, pool) for pool in made]


def _new_pool(call: Call, given: PoolChange, template: str | None, users: list[str]) -> Pool:
    pool = Pool(id=call.sim.new_id(), label=str(given.label), template=template, users=users)
    _apply_pool(pool, given)
    for user in users:
        call.sim.accounts.user(user).resource_pool = pool.id
    call.sim.accounts.pools[pool.id] = pool
    return pool


def _apply_pool(pool: Pool, given: PoolChange) -> None:
    for name in ("label", "description", "licenses", "ram", "cpus", "disk_space", "external_connectors"):
        value = getattr(given, name)
        if value is not UNSET:
            setattr(pool, name, value)


def get_pool(call: Call) -> dict[str, Any]:
    """Show a resource pool."""
    return _pool_json(call, call.sim.accounts.pool(call.path["pool"]))


def change_pool(call: Call) -> dict[str, Any]:
    """Change a resource pool."""
    call.require_admin()
    pool = call.sim.accounts.pool(call.path["pool"])
    _apply_pool(pool, call.read(PoolChange))
    return _pool_json(call, pool)


def delete_pool(call: Call) -> None:
    """Remove a resource pool."""
    call.require_admin()
    pool = call.sim.accounts.pool(call.path["pool"])
    del call.sim.accounts.pools[pool.id]
    for user in call.sim.accounts.users.values():
        user.resource_pool = None if user.resource_pool == pool.id else user.resource_pool


def _usage_json(call: Call, pool: Pool) -> dict[str, Any]:
    used = call.sim.pool_usage(pool.id)
    return {
        "id": pool.id,
        "label": pool.label,
        "limit": {
            "licenses": pool.licenses,
            "cpus": pool.cpus,
            "ram": pool.ram,
            "disk_space": pool.disk_space,
            "external_connectors": pool.external_connectors,
        },
        "usage": {
            "licenses": used.licences,
            "cpus": -(-used.cpu_points // 100),
            "ram": used.ram_mib,
            "disk_space": 0,
            "external_connectors": [],
        },
    }


def pool_usage(call: Call) -> dict[str, Any]:
    """Show what a resource pool allows and what is used."""
    return _usage_json(call, call.sim.accounts.pool(call.path["pool"]))


def pool_usages(call: Call) -> list[dict[str, Any]]:
    """Show what all resource pools allow and what is used."""
    return [_usage_json(call, pool) for pool in call.sim.accounts.pools.values()]


ROUTES = (
    Route("GET", "/resource_pools", list_pools),
    Route("POST", "/resource_pools", add_pool),
    Route("GET", "/resource_pools/{pool}", get_pool),
    Route("PATCH", "/resource_pools/{pool}", change_pool),
    Route("DELETE", "/resource_pools/{pool}", delete_pool),
    Route("GET", "/resource_pool_usage", pool_usages),
    Route("GET", "/resource_pool_usage/{pool}", pool_usage),
)

"""Licensing: what is registered, how many nodes it allows, how many run."""

from typing import Any

import msgspec

from vkpsim.cml.calls import Call, Route, Text
from vkpsim.cml.errors import CmlError, E
from vkpsim.cml.simulation import LICENCES

BASE_NODES = 20
"""Nodes that the base licence includes; the rest of the quota is expansion."""
BASE_FEATURE = "regid.2019-10.com.cisco.CML_ENT_BASE,1.0_simulated"
NODE_FEATURE = "regid.2019-10.com.cisco.CML_NODE_COUNT,1.0_simulated"


class Registration(msgspec.Struct, forbid_unknown_fields=True):
    """A request to register."""

    token: str
    reregister: bool = False


class Transport(msgspec.Struct, forbid_unknown_fields=True):
    """The transport to the licence server."""

    ssms: str | None
    proxy: dict[str, Any]


def licensing(call: Call) -> dict[str, Any]:
    """Show the whole state of licensing."""
    world, system = call.sim.world, call.sim.system
    registered = world.registered
    expansion = max(0, world.host.total.licences - BASE_NODES)
    in_use = max(0, world.host.used.licences - BASE_NODES)
    status = "IN_COMPLIANCE" if registered else "INIT"
    features = [
        _feature(BASE_FEATURE, "CML - Enterprise License", int(registered), 1, status)
        | {"description": f"CML Enterprise with {BASE_NODES} nodes capacity included"},
        _feature(NODE_FEATURE, "CML - Expansion Node License", in_use, expansion, status)
        | {"description": "Expansion nodes"},
    ]
    return {
        "registration": {
            "status": "COMPLETED" if registered else "NOT_REGISTERED",
            "smart_account": "simulated" if registered else None,
            "virtual_account": "simulated" if registered else None,
            "expires": "2099-12-31 00:00:00" if registered else None,
            "register_time": _time(registered=registered),
            "renew_time": _time(registered=registered, scheduled="2099-06-30 00:00:00"),
        },
        "authorization": {
            "status": status,
            "expires": "2099-12-31 00:00:00" if registered else None,
            "renew_time": _time(registered=registered, scheduled="2099-06-30 00:00:00"),
        },
        "features": features,
        "reservation_mode": system.reservation_mode,
        "transport": {
            "ssms": system.ssms,
            "default_ssms": "https://smartreceiver.cisco.com/licservice/license",
            "proxy": system.proxy,
        },
        "udi": {"hostname": call.sim.settings.hostname, "product_uuid": system.product_uuid},
        "product_license": {
            "active": system.product_license,
            "is_enterprise": system.product_license == "CML_Enterprise",
        },
    }


def _feature(feature: str, name: str, in_use: int, most: int, status: str) -> dict[str, Any]:
    counts = {"in_use": in_use, "min": 0, "max": most, "minEndDate": None, "maxEndDate": None}
    return {"id": feature, "name": name, "status": status, "version": "1.0", **counts}


def _time(*, registered: bool, scheduled: str | None = None) -> dict[str, str | None]:
    """Render when a licensing request was made and will be made; the times are invented."""
    made = "2025-01-01 00:00:00" if registered else None
    result = "SUCCESS" if registered else None
    times = {"succeeded": None, "attempted": made, "scheduled": scheduled if registered else None}
    return {**times, "status": None, "failure": None, "success": result}


def features(call: Call) -> list[dict[str, Any]]:
    """Show the licensed features."""
    drawn: list[dict[str, Any]] = licensing(call)["features"]
    return drawn


def change_features(call: Call) -> None:
    """Set how many expansion nodes are licensed, in reservation mode."""
    call.require_admin()
    for feature in call.read(list[dict[str, Any]]):
        if feature.get("id") == NODE_FEATURE:
            call.sim.world.set_quota(call.now, BASE_NODES + int(feature.get("count", 0)))


def register(call: Call) -> None:
    """Register with a token."""
    call.require_admin()
    if not call.read(Registration).token:
        raise CmlError(E.LICENSING_REFUSED, reason="the token is empty.")
    call.sim.world.registered = True


def deregister(call: Call) -> None:
    """Deregister; running nodes keep running."""
    call.require_admin()
    if not call.sim.world.registered:
        raise CmlError(E.LICENSING_REFUSED, reason="the product is not registered.")
    call.sim.world.registered = False


def change_product_license(call: Call) -> None:
    """Choose the product."""
    call.require_admin()
    name = call.read(str)
    if name not in LICENCES:
        raise CmlError(E.LICENSING_REFUSED, reason=f"unknown product license {name}.")
    call.sim.system.product_license = name


def change_transport(call: Call) -> None:
    """Set the transport to the licence server."""
    call.require_admin()
    given = call.read(Transport)
    call.sim.system.ssms = given.ssms or ""
    call.sim.system.proxy = given.proxy


def renew(call: Call) -> None:
    """Renew registration or authorization."""
    call.require_admin()
    if not call.sim.world.registered:
        raise CmlError(E.LICENSING_REFUSED, reason="the product is not registered.")


def tech_support(_call: Call) -> Text:
    """Return the report for Cisco's support."""
    return Text("Smart Licensing Tech Support info (simulated)\n")


def set_reservation_mode(call: Call) -> None:
    """Switch the reservation mode."""
    call.require_admin()
    call.sim.system.reservation_mode = call.read(bool)


def reservation_code(call: Call) -> str:
    """Return a meaningless code of the reservation dialogue."""
    call.require_admin()
    if not call.sim.system.reservation_mode:
        raise CmlError(E.LICENSING_REFUSED, reason="the reservation mode is off.")
    return f"SIMULATED-{call.path['action'].upper()}"


def end_reservation_step(call: Call) -> None:
    """End a step of the reservation dialogue."""
    reservation_code(call)


ROUTES = (
    Route("GET", "/licensing", licensing),
    Route("GET", "/licensing/features", features),
    Route("PATCH", "/licensing/features", change_features),
    Route("GET", "/licensing/tech_support", tech_support),
    Route("POST", "/licensing/registration", register),
    Route("PUT", "/licensing/registration/renew", renew),
    Route("PUT", "/licensing/authorization/renew", renew),
    Route("DELETE", "/licensing/deregistration", deregister),
    Route("PUT", "/licensing/product_license", change_product_license),
    Route("PUT", "/licensing/transport", change_transport),
    Route("PUT", "/licensing/reservation/mode", set_reservation_mode),
    Route("GET", "/licensing/reservation/{action:confirmation_code|return_code}", reservation_code),
    Route("POST", "/licensing/reservation/{action:request|complete|discard}", reservation_code),
    Route("DELETE", "/licensing/reservation/{action:release}", reservation_code),
    Route("DELETE", "/licensing/reservation/{action:cancel|confirmation_code|return_code}", end_reservation_step),
)

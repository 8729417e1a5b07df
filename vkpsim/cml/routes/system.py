"""The controller itself: version, health, load, compute host, and logging in."""

from typing import Any

import msgspec

from vkpsim.cml.calls import Call, Route
from vkpsim.cml.errors import CmlError, E, invalid
from vkpsim.cml.world.host import ADMISSION_STATES
from vkpsim.cml.world.model import Node
from vkpsim.cml.world.states import RUNNING

MIB = 1024 * 1024


class Login(msgspec.Struct, forbid_unknown_fields=True):
    """Name and password."""

    username: str
    password: str


def system_information(call: Call) -> dict[str, Any]:
    """Return the version; needs no token."""
    sim = call.sim
    drawn: dict[str, Any] = {
        "version": sim.settings.version,
        "ready": sim.world.host.admission_state == "READY" and sim.world.host.connected,
        "allow_ssh_pubkey_auth": False,
        "oui": "52:54:00:00:00:00",
    }
    return drawn | ({"timeout": 10, "features": []} if sim.at_least(2, 10) else {})


def authenticate(call: Call) -> str:
    """Issue a token."""
    login = call.read(Login)
    return call.sim.accounts.login(call.now, login.username, login.password)[1]


def auth_extended(call: Call) -> dict[str, Any]:
    """Issue a token and return its user."""
    login = call.read(Login)
    user, token = call.sim.accounts.login(call.now, login.username, login.password)
    return {"username": user.username, "id": user.id, "token": token, "admin": user.admin, "error": None}


def authok(_call: Call) -> str:
    """Confirm a token."""
    return "OK"


def authentication(call: Call) -> dict[str, Any]:
    """Return the user of the token; new in CML 2.10."""
    if not call.sim.at_least(2, 10):
        raise CmlError(E.NO_SUCH_PATH)
    user = call.user
    return {"username": user.username, "id": user.id, "token": call.token, "admin": user.admin, "error": None}


def logout(call: Call) -> bool:
    """End this session, or all of the user."""
    if call.flag("clear_all_sessions"):
        call.sim.accounts.end_sessions(call.user)
    else:
        call.sim.accounts.revoked.add(call.token)
    return True


def session_timeout(call: Call) -> int:
    """Return the life of a token in seconds."""
    return call.sim.accounts.session_s


def change_session_timeout(call: Call) -> str:
    """Set the life of a token."""
    call.require_admin()
    seconds = call.path["seconds"]
    if not seconds.isdecimal():
        raise invalid("Input should be a valid integer", ("path", "seconds"), "int_parsing")
    call.sim.accounts.session_s = int(seconds)
    return seconds


def _running(call: Call) -> list[Node]:
    return [node for lab in call.sim.world.labs.values() for node in lab.nodes.values() if node.state in RUNNING]


def _total(call: Call) -> int:
    return sum(len(lab.nodes) for lab in call.sim.world.labs.values())


def system_stats(call: Call) -> dict[str, Any]:
    """Show the load; memory and disk in bytes, `allocated_memory` in KiB, CPU in percent."""
    world = call.sim.world
    cores, used = world.host.total.cpu_points // 100, world.host.used
    busy = round(100 * used.cpu_points / max(1, world.host.total.cpu_points), 2)
    memory = {
        "used": float(used.ram_mib * MIB),
        "free": float((world.host.total.ram_mib - used.ram_mib) * MIB),
        "total": float(world.host.total.ram_mib * MIB),
    }
    disk = {"used": 82798108672.0, "free": 917041123328.0, "total": 999839232000.0}
    running = _running(call)
    stats = {
        "cpu": {
            "count": cores,
            "percent": busy,
            "model": "Simulated CPU",
            "hyperthreading": False,
            "predicted": round(busy),
            "load": [round(used.cpu_points / 100, 2)] * 3,
        },
        "memory": memory,
        "disk": disk,
        "dominfo": {
            "total_nodes": _total(call),
            "total_orphans": 0,
            "running_nodes": len(running),
            "running_orphans": 0,
            "allocated_cpus": -(-used.cpu_points // 100),
            "allocated_memory": used.ram_mib * 1024,
        },
    }
    host = {"hostname": call.sim.settings.hostname, "is_controller": True, "stats": stats}
    return {
        "computes": {world.host.id: host},
        "all": {"cpu": {"count": cores, "percent": busy}, "memory": memory, "disk": disk},
        "controller": {"disk": disk},
    }


def system_health(call: Call) -> dict[str, Any]:
    """Show the health of the system."""
    world = call.sim.world
    good = world.host.connected
    compute: dict[str, Any] = {
        "kvm_vmx_enabled": True,
        "enough_cpus": True,
        "lld_connected": good,
        "lld_synced": good,
        "libvirt": good,
        "fabric": good,
        "device_mux": good,
        "refplat_images_available": True,
        "docker_shim": True,
        "valid": good,
        "admission_state": world.host.admission_state,
        "is_controller": True,
        "hostname": call.sim.settings.hostname,
    }
    if call.sim.at_least(2, 10):
        compute |= {"cpu_overload": False, "memory_overload": False, "disk_overload": False}
    return {
        "valid": good,
        "computes": {world.host.id: compute},
        "is_licensed": world.registered,
        "is_enterprise": call.sim.system.product_license == "CML_Enterprise",
        "controller": {"core_connected": True, "nodes_loaded": True, "images_loaded": True, "valid": True},
    }


def _compute(call: Call) -> dict[str, Any]:
    """Render the compute host; the client of each release breaks on any key that it does not know."""
    world = call.sim.world
    running = [node.id for node in _running(call)]
    drawn: dict[str, Any] = {
        "id": world.host.id,
        "hostname": call.sim.settings.hostname,
        "server_address": "::1",
        "is_connector": True,
        "is_simulator": True,
        "is_connected": world.host.connected,
        "is_synced": world.host.connected,
        "admission_state": world.host.admission_state,
    }
    if call.sim.at_least(2, 9):
        counts = {"total_nodes": _total(call), "running_nodes": len(running)}
        drawn["node_counts"] = {**counts, "total_orphans": 0, "running_orphans": 0}
    return drawn if call.sim.at_least(2, 10) else drawn | {"nodes": running}


def compute_hosts(call: Call) -> list[dict[str, Any]]:
    """List the compute hosts: the controller itself."""
    return [_compute(call)]


def compute_host(call: Call) -> dict[str, Any]:
    """Show a compute host."""
    if call.path["compute"] != call.sim.world.host.id:
        raise CmlError(E.COMPUTE_NOT_FOUND, id=call.path["compute"])
    return _compute(call)


class AdmissionState(msgspec.Struct, forbid_unknown_fields=True):
    """The admission state of a compute host; only a READY one runs nodes."""

    admission_state: str


def _admission(call: Call) -> str:
    call.require_admin()
    wanted = call.read(AdmissionState).admission_state
    if wanted not in ADMISSION_STATES:
        raise invalid(f"Input should be one of {', '.join(ADMISSION_STATES)}", ("body", "admission_state"), "enum")
    return wanted


def change_compute_host(call: Call) -> dict[str, Any]:
    """Change the admission state of a compute host."""
    compute_host(call)
    call.sim.world.set_admission(call.now, _admission(call))
    return _compute(call)


def delete_compute_host(call: Call) -> None:
    """Remove a compute host; the controller's own cannot be removed."""
    compute_host(call)
    raise CmlError(E.LAST_COMPUTE, id=call.path["compute"])


def host_configuration(call: Call) -> dict[str, str]:
    """Show the admission state of new compute hosts."""
    return {"admission_state": call.sim.system.new_host_state}


def change_host_configuration(call: Call) -> dict[str, str]:
    """Set the admission state of new compute hosts."""
    call.sim.system.new_host_state = _admission(call)
    return host_configuration(call)


def console_keys(call: Call) -> dict[str, Any]:
    """List the keys of all serial consoles."""
    return {
        key: {**_key(call, node), "line": line}
        for node in _visible_running(call)
        for line, key in enumerate(node.console_keys)
    }


def vnc_keys(call: Call) -> dict[str, Any]:
    """List the keys of all VNC servers."""
    address = {"compute_address": "::1"}
    return {node.vnc_key: {**_key(call, node), **address} for node in _visible_running(call) if node.vnc_key}


def _visible_running(call: Call) -> list[Node]:
    return [node for lab in call.visible_labs() for node in lab.nodes.values() if node.state in RUNNING]


def _key(call: Call, node: Node) -> dict[str, str]:
    driver = call.sim.world.definition(node.node_definition).driver
    compute = call.sim.world.host.id
    return {"lab_id": node.lab, "node_id": node.id, "compute_id": compute, "label": node.label, "driver": driver}


ROUTES = (
    Route("GET", "/system_information", system_information, open=True),
    Route("POST", "/authenticate", authenticate, open=True),
    Route("POST", "/auth_extended", auth_extended, open=True),
    Route("GET", "/authok", authok),
    Route("GET", "/authentication", authentication),
    Route("DELETE", "/logout", logout),
    Route("GET", "/web_session_timeout", session_timeout),
    Route("GET", "/web_session_timeout/", session_timeout),
    Route("PATCH", "/web_session_timeout/{seconds}", change_session_timeout),
    Route("GET", "/system_stats", system_stats),
    Route("GET", "/system_health", system_health),
    Route("GET", "/system/compute_hosts", compute_hosts),
    Route("GET", "/system/compute_hosts/configuration", host_configuration),
    Route("PATCH", "/system/compute_hosts/configuration", change_host_configuration),
    Route("GET", "/system/compute_hosts/{compute}", compute_host),
    Route("PATCH", "/system/compute_hosts/{compute}", change_compute_host),
    Route("DELETE", "/system/compute_hosts/{compute}", delete_compute_host),
    Route("GET", "/keys/console", console_keys),
    Route("GET", "/keys/vnc", vnc_keys),
)

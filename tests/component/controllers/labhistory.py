"""What was done to the labs of a simulator in the test's loop; and what befalls its devices, as if from outside."""

from typing import Final

from tests.support.cmlapi.simulator import CmlSimulator
from vkpsim.cml.world.model import Lab
from vkpsim.http.access_log import Entry

MADE: Final = ["import", "start"]
TAKEN_DOWN: Final = ["stop", "wipe", "DELETE"]


def history(simulator: CmlSimulator, pod_uid: str) -> list[str]:
    """List what was done to the labs of a Pod: `import`, `start`, `stop`, `wipe`, `DELETE`; not what failed."""
    done = [entry for entry in _changes(simulator) if 200 <= entry.status < 300]
    ids = {entry.lab for entry in done if entry.title.endswith(pod_uid)}
    return [_operation(entry) for entry in done if (entry.lab or _lab(entry)) in ids]


def refused(simulator: CmlSimulator) -> list[str]:
    """List what was attempted and not answered with success, on any lab."""
    return [_operation(entry) for entry in _changes(simulator) if not 200 <= entry.status < 300]


def lab_of(simulator: CmlSimulator, pod_uid: str) -> Lab | None:
    """Return the lab whose title ends with a Pod's UID; there must not be two."""
    found = [lab for lab in simulator.simulation.world.labs.values() if lab.title.endswith(pod_uid)]
    assert len(found) <= 1, found
    return found[0] if found else None


def existing_lab(simulator: CmlSimulator, pod_uid: str) -> Lab:
    """Return the one lab of a Pod."""
    lab = lab_of(simulator, pod_uid)
    assert lab is not None
    return lab


def crash(simulator: CmlSimulator, pod_uid: str, device: str) -> None:
    """Power a device of a Pod's lab off from inside."""
    world, now = simulator.simulation.world, simulator.now()
    world.advance(now)
    [node] = [node for node in existing_lab(simulator, pod_uid).nodes.values() if node.label == device]
    world.crash(now, node)


def take_away(simulator: CmlSimulator, lab: Lab, *, wipe: bool = False, delete: bool = False) -> None:
    """Stop a lab as someone does in CML's own page, and perhaps wipe and delete it."""
    world, now = simulator.simulation.world, simulator.now()
    world.advance(now)
    world.stop_lab(now, lab)
    world.advance(now)
    if wipe or delete:
        world.wipe_lab(now, lab)
    if delete:
        world.delete_lab(now, lab)


def _changes(simulator: CmlSimulator) -> list[Entry]:
    """List the requests that change what labs are, in the order of their arrival; not what only describes or reads."""
    entries = [
        e
        for e in simulator.log.entries
        if (e.method not in {"GET", "PATCH"} and "/labs/" in e.path) or e.path.endswith("/import")
    ]
    return sorted((e for e in entries if not e.path.endswith("/extract_configuration")), key=lambda e: e.number)


def _lab(entry: Entry) -> str:
    """Return the id of the lab in a path such as `/api/v0/labs/<id>/start`."""
    return entry.path.split("/")[4]


def _operation(entry: Entry) -> str:
    return entry.method if entry.method == "DELETE" else entry.path.rsplit("/", 1)[1]

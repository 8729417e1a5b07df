"""Pods and definitions of labs as people see them, for tests."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tests.unit.portal.pure.builders import NOW
from vkprovider.lablet import names
from vkprovider.lablet.models.status import DefinitionStatus, ShownDevice, ShownLink
from vkprovider.platform import wellknown
from vkprovider.platform.objects import Condition, Container, ContainerStatus, Pod
from vkprovider.platform.times import iso

DEFINITION = DefinitionStatus(
    version="1.0",
    devices=[
        ShownDevice("R 1", "r-1", "iosv", x=0, y=0),
        ShownDevice("sw", "sw", "unmanaged_switch", x=100, y=0),
        ShownDevice("r2", "r2", "iosv", x=200, y=0),
        ShownDevice("solution", "solution", "iosv", hidden=True, x=300, y=0),
    ],
    links=[ShownLink("R 1", "sw"), ShownLink("sw", "r2"), ShownLink("r2", "solution")],
)
BOOTED: Mapping[str, str] = {"lab": "", "r-1": "", "r2": ""}
PORTS = (
    '{"r2_serial":{"device_label":"r2","protocol":"serial","original_port":1,"allocated_port":10011,"transport":"tcp"},'
    '"r2_pat22":{"device_label":"r2","protocol":"pat","original_port":2,"allocated_port":10012,"internal_port":22}}'
)
VIA = '{"r2_serial":{"state":"live","address":"203.0.113.10","port":20000}}'


def imported(pod: Pod, waits: Mapping[str, str], *conditions: Condition, **notes: str) -> Pod:
    """Return a Pod whose lab is imported.

    Args:
        pod: What it was.
        waits: By container, the reason for which it waits; "" if it runs.
        conditions: Further conditions.
        notes: Further annotations.
    """
    meta, status = pod.metadata, pod.status
    states: list[tuple[str, dict[str, dict[str, Any]]]] = [
        (name, {"waiting": {"reason": reason, "message": f"about {name}"}} if reason else {"running": {}})
        for name, reason in waits.items()
    ]
    annotations = {
        **meta.annotations,
        **{f"{wellknown.GROUP}/{key.replace('_', '-')}": text for key, text in notes.items()},
    }
    done = Condition(names.CONDITION_LAB_IMPORTED, "True", last_transition_time=iso(NOW + 5))
    return msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(meta, annotations=annotations),
        spec=msgspec.structs.replace(pod.spec, containers=[Container(name) for name in waits], node_name="vnode.w1"),
        status=msgspec.structs.replace(
            status,
            conditions=[*status.conditions, done, *conditions],
            container_statuses=[ContainerStatus(name, not state.get("waiting"), state=state) for name, state in states],
            pod_ip="198.51.100.1",
        ),
    )

"""Cisco's client reads back what was rewritten for a lablet."""

from collections.abc import Mapping
from typing import Any

from tests.simulators.cml.cisco import drive, quick
from tests.support.topologies import TEST_LAB
from vkprovider.labs.pure.topology.topology import parse


async def test_two_lablets_of_one_topology_have_ports_of_their_own() -> None:
    """R000-046, R000-047, R000-055, C60."""
    topology = parse(TEST_LAB)
    slots = topology.template.slots

    def scenario(client: Any) -> None:
        for title, first in (("lablet-a", 10_011), ("lablet-b", 10_100)):
            ports = {slot.name: first + i for i, slot in enumerate(slots)}
            lab = client.import_lab(topology.render(title=title, notes="mark", ports=ports), title)
            assert_is_the_reference_lab(lab, title, ports)

    async with quick() as simulator:
        await drive(simulator, scenario)


def assert_is_the_reference_lab(lab: Any, title: str, ports: Mapping[str, int]) -> None:
    assert (lab.title, lab.notes) == (title, "mark\n\nWritten by its author.\n\n- not: a mapping\n")
    assert lab.description == "A desktop behind a router:\ntwo lines"
    nodes = {node.label: node for node in lab.nodes()}
    assert nodes["PC"].tags() == [f"serial:{ports['PC_serial']}", f"vnc:{ports['PC_vnc']}"]
    assert nodes["iosv-0"].tags() == [
        "core",
        f"serial:{ports['iosv-0_serial']}",
        f"serial:{ports['iosv-0_serial1']}:1",
        f"pat:{ports['iosv-0_pat22']}:22",
        f"pat:udp:{ports['iosv-0_patudp161']}:161",
        f"http:{ports['iosv-0_http']}",
    ]
    assert nodes["management server"].tags() == ["hidden", f"serial:{ports['management_server_serial']}", "core"]
    assert nodes["PC"].configuration == "# reached by serial:4567, café\nhostname PC\n"
    assert nodes["iosv-0"].configuration == "hostname iosv-0\r\n!\r\nend\r\n"
    assert len(lab.links()) == 2
    drawn = {found.tag: found for found in lab.smart_annotations()}
    assert drawn[f"vnc:{ports['PC_vnc']}"].label == "Screen of the PC"
    assert drawn[f"serial:{ports['PC_serial']}"].fill_color == "#3399FF80"
    assert not drawn["core"].is_on
    assert not {"serial:4567", "vnc:4568"} & drawn.keys()

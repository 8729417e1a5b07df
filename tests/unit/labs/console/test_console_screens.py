"""Where the screen of a device is: at the port of its own `vnc:` tag, and nowhere else."""

import pytest

from vkprovider.lablet.ports import PortTemplate
from vkprovider.labs.pure.console.ports import screen_of, way_to
from vkprovider.platform.errors import InputError

TEMPLATE = PortTemplate.of(
    [
        ("pc 1", "pc-1", ["serial:5000", "vnc:5001", "vnc:5002"]),
        ("pc2", "pc2", ["vnc:5003"]),
        ("r1", "r1", ["serial:5004", "pat:5005:5900"]),
    ]
)
PORTS = {slot.name: 10_000 + number for number, slot in enumerate(TEMPLATE.slots)}


@pytest.mark.parametrize(("device", "port"), [("pc 1", 10_001), ("pc2", 10_003)])
def test_a_screen_is_at_the_first_port_of_its_device(device: str, port: int) -> None:
    found = screen_of(TEMPLATE, PORTS, device, pod="p")
    assert (found.port, found.slot.kind, found.slot.device) == (port, "vnc", device)
    assert found == way_to(TEMPLATE, PORTS, port, pod="p"), "where port-forward leads, too"


@pytest.mark.parametrize("device", ["r1", "pc-1", "PC2"])
def test_a_device_without_a_tag_has_none_whatever_it_serves_inside(device: str) -> None:
    with pytest.raises(InputError, match=f"NoScreen: device {device} of pod p has no screen here"):
        screen_of(TEMPLATE, PORTS, device, pod="p")


def test_a_port_that_a_lablet_has_not_been_given_leads_nowhere() -> None:
    with pytest.raises(InputError, match="NoScreen"):
        screen_of(TEMPLATE, {name: port for name, port in PORTS.items() if name != "pc2_vnc"}, "pc2", pod="p")

"""Cisco's client builds and changes topologies on the simulator."""

import time
from typing import Any

import pytest
from virl2_client.exceptions import APIError, NodeNotFound

from tests.simulators.cml.cisco import drive, import_lab
from tests.support.cmlapi.simulator import CmlSimulator
from vkpsim.cml.simulation import Settings


def create_lab(client: Any) -> Any:
    lab = client.create_lab("built by hand", "a description", "some notes")
    lab.wait_time = 0.02
    return lab


async def test_a_lab_built_by_hand(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = create_lab(client)
        a = lab.create_node("a", "alpine", 10, 20, populate_interfaces=True, ram=1024)
        b = lab.create_node("b", "iosv", 30, 40)
        lab.sync()
        assert [port.label for port in a.interfaces()] == ["eth0"]
        assert b.interfaces() == []
        ports = [b.create_interface(slot=2), b.create_interface()]
        assert [port.label for port in ports] == ["GigabitEthernet0/2", "GigabitEthernet0/3"]
        lab.sync(topology_only=True)
        assert [port.slot for port in b.interfaces()] == [0, 1, 2, 3]
        link = lab.create_link(a.get_interface_by_slot(0), b.get_interface_by_slot(2))
        assert link.label == "a-eth0<->b-GigabitEthernet0/2"
        with pytest.raises(APIError, match="already in use"):
            lab.create_link(a.get_interface_by_slot(0), b.get_interface_by_slot(0))
        lab.connect_two_nodes(a, b)
        lab.start(wait=True)
        lab.sync_states()
        assert [link.state for link in lab.links()] == ["STARTED", "STARTED"]
        with pytest.raises(APIError, match="physical configuration locked"):
            a.create_interface()
        late = lab.create_node("late", "alpine", populate_interfaces=True)
        lab.sync()
        assert late.interfaces() != []
        late.start(wait=True)
        lab.remove_link(link)
        lab.stop()
        lab.wipe()
        lab.remove_node(b)
        assert lab.links() == []
        with pytest.raises(NodeNotFound):
            lab.get_node_by_label("b")
        lab.remove()

    await drive(simulator, scenario)


async def test_nodes_keep_their_interfaces_however_often_a_lab_is_synchronised(simulator: CmlSimulator) -> None:
    """A client before 2.10 takes the id of a node in a topology for the node, and then finds none of its interfaces."""

    def scenario(client: Any) -> None:
        lab = create_lab(client)
        a = lab.create_node("a", "alpine", populate_interfaces=True)
        b = lab.create_node("b", "csr1000v", populate_interfaces=True)
        for _ in range(3):
            lab.sync()
            assert [port.label for port in a.interfaces()] == ["eth0"]
            assert [port.label for port in b.physical_interfaces()] == [f"GigabitEthernet{n}" for n in (1, 2, 3, 4)]
            assert [(port.label, port.slot) for port in b.interfaces() if port.type == "loopback"] == [
                ("Loopback0", None)
            ]
        link = lab.connect_two_nodes(a, b)
        assert {link.interface_a.label, link.interface_b.label} == {"eth0", "GigabitEthernet1"}
        found = client.join_existing_lab(lab.id).get_node_by_label("b")
        assert [peer.label for peer in found.peer_nodes()] == ["a"]
        assert found.get_interface_by_label("GigabitEthernet1").connected

    await drive(simulator, scenario)


async def test_properties_of_labs_and_nodes(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        lab.title, lab.notes, lab.description = "new title", "new notes", "new description"
        node = lab.get_node_by_label("h0")
        node.label, node.x, node.y, node.hide_links = "renamed", -5, 7, True
        node.ram, node.cpus, node.cpu_limit = 2048, 2, 50
        node.configuration = "hostname renamed"
        node.image_definition = "alpine-sim"
        node.update_parameters({"key": "value"})
        node.add_tag("pat:8080:80")
        assert node.tags() == ["serial:4567", "pat:8080:80"]
        node.remove_tag("serial:4567")
        assert [one.tag for one in lab.smart_annotations()] == ["pat:8080:80"]
        again = client.join_existing_lab(lab.id)
        [found] = [one for one in again.nodes() if one.id == node.id]
        assert (again.title, again.notes, again.description) == ("new title", "new notes", "new description")
        assert (found.label, found.x, found.y, found.hide_links) == ("renamed", -5, 7, True)
        assert (found.ram, found.cpus, found.cpu_limit) == (2048, 2, 50)
        assert found.configuration == "hostname renamed"
        assert found.parameters == {"key": "value"}
        lab.start(wait=True)
        node.add_tag("serial:4568")
        with pytest.raises(APIError, match="cannot be changed"):
            node.ram = 4096

    await drive(simulator, scenario)


async def test_interfaces_and_links_alone(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        [link] = lab.links()
        port = lab.get_node_by_label("h0").get_interface_by_slot(0)
        port.mac_address = "52:54:00:11:22:33"
        lab.start(wait=True)
        link.stop()
        port.shutdown()
        lab.sync_states()
        assert (link.state, port.state) == ("STOPPED", "STOPPED")
        port.bring_up()
        link.start()
        lab.sync_states()
        assert (link.state, port.state, link.has_converged()) == ("STARTED", "STARTED", True)
        link.set_condition(bandwidth=2000, latency=50, jitter=0, loss=5.1)
        assert link.get_condition()["latency"] == 50
        link.remove_condition()
        assert link.get_condition() == {}
        lab.stop()
        lab.wipe()
        port.remove()
        assert lab.links() == []

    await drive(simulator, scenario)


@pytest.mark.client_since("2.10")
async def test_packet_captures(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        lab.start(wait=True)
        [link] = lab.links()
        assert link.start_capture(maxpackets=10, bpfilter="icmp")["maxpackets"] == 10
        while link.capture_status()["packetscaptured"] < 2:
            time.sleep(0.1)
        link.stop_capture()
        found = link.get_capture_packets()
        assert [each["info"] for each in found[:2]] == ["echo request", "echo reply"]
        assert len(link.download_capture()) == 24 + sum(16 + each["length"] for each in found)
        assert link.capture_status() == {}, "it is stopped"
        link.get_capture_packet(1)
        with pytest.raises(APIError):
            link.get_capture_packet(len(found) + 1)

    await drive(simulator, scenario)


async def test_annotations(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        note = lab.create_annotation("text", text_content="hello", x1=1, y1=2)
        note.text_content = "good bye"
        [smart] = lab.smart_annotations()
        smart.label = "console"
        again = client.join_existing_lab(lab.id)
        assert [one.text_content for one in again.annotations()] == ["good bye"]
        assert [one.label for one in again.smart_annotations()] == ["console"]
        lab.remove_annotations()
        lab.sync(topology_only=True)
        assert lab.annotations() == []

    await drive(simulator, scenario)


@pytest.mark.client_since("2.10")
async def test_what_came_with_cml_2_10() -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        lab.set_autostart(enabled=True, priority=5, delay=10)
        lab.set_node_staging(enabled=True)
        node = lab.get_node_by_label("h0")
        node.priority = 7
        node.set_pyats_credentials("user", "pass")
        again = client.join_existing_lab(lab.id)
        assert again.node_staging["enabled"]
        assert again.get_node_by_label("h0").priority == 7
        assert lab.details()["autostart"]["priority"] == 5
        assert "version: 0.3.1" in lab.download()

    settings = Settings(password="a-secret", version="2.10.0+build.13")
    async with CmlSimulator(settings) as simulator:
        await drive(simulator, scenario)

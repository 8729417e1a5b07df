"""Cisco's client runs labs on the simulator: the proof that it speaks CML (R000-036 to R000-042)."""

from typing import Any

import pytest
from virl2_client.exceptions import APIError, LabNotFound

from tests.simulators.cml.cisco import drive, import_lab
from tests.support.cmlapi.simulator import CmlSimulator


async def test_the_life_of_a_lab(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client, "the life of a lab")
        assert (lab.title, lab.notes, lab.description) == ("the life of a lab", "line 1", "smallest useful lab")
        assert lab.state() == "DEFINED_ON_CORE"
        assert lab.owner == "admin"
        lab.start(wait=True)
        assert lab.state() == "STARTED"
        assert lab.is_active()
        lab.sync_states()
        assert {node.label: node.state for node in lab.nodes()} == {"h0": "BOOTED", "r1": "BOOTED"}
        assert all(node.is_booted() for node in lab.nodes())
        assert {link.state for link in lab.links()} == {"STARTED"}
        assert {interface.state for interface in lab.interfaces()} == {"STARTED"}
        for node in lab.nodes():
            node.extract_configuration()
        lab.sync(topology_only=True)
        assert [node.configuration for node in lab.nodes()] == ["hostname h0", "hostname r1\n"]
        lab.stop()
        assert lab.state() == "STOPPED"
        lab.wipe()
        assert lab.state() == "DEFINED_ON_CORE"
        lab.remove()
        with pytest.raises(LabNotFound):
            client.join_existing_lab(lab.id)
        assert client.get_lab_list(show_all=True) == []

    await drive(simulator, scenario)


async def test_official_clean_up_works_on_any_lab(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        never_started, running = import_lab(client), import_lab(client)
        running.start(wait=False)
        for lab in (never_started, running):
            lab.stop()
            lab.wipe()
            lab.remove()
        assert client.get_lab_list(show_all=True) == []

    await drive(simulator, scenario)


async def test_refusals_reach_the_client(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        lab.start(wait=True)
        node = lab.get_node_by_label("h0")
        for refused in (lab.wipe, lab.remove, node.remove, node.wipe):
            with pytest.raises(APIError, match="must be stopped"):
                refused()
        lab.stop()
        with pytest.raises(APIError, match="must be stopped and wiped first"):
            lab.remove()
        lab.wipe()
        node.remove()
        lab.remove()
        for topology in ("lab: [", "lab: {version: '0.1', title: t}\nnodes: []\nlinks: []"):
            with pytest.raises(APIError) as caught:
                client.import_lab(topology)
            assert caught.value.response.status_code == 400

    await drive(simulator, scenario)


async def test_labs_are_found_by_title_and_titles_need_not_be_unique(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        twins = {import_lab(client, "twin").id, import_lab(client, "twin").id}
        other = import_lab(client, "other").id
        assert {lab.id for lab in client.find_labs_by_title("twin")} == twins
        assert {lab.id for lab in client.all_labs(show_all=True)} == {*twins, other}
        assert {lab.title for lab in client.all_labs()} == {"twin", "other"}

    await drive(simulator, scenario)
    imports = [entry for entry in simulator.log.entries if entry.path == "/api/v0/import"]
    assert [entry.title for entry in imports] == ["twin", "twin", "other"]
    assert {entry.lab for entry in imports} == set(simulator.simulation.world.labs)


async def test_states_are_read_in_one_call_each(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        node = lab.get_node_by_label("h0")
        node.start(wait=True)
        lab.sync_states()
        assert [node.state for node in lab.nodes()] == ["BOOTED", "DEFINED_ON_CORE"]
        assert node.has_converged()
        assert lab.has_converged()
        node.stop(wait=True)
        node.wipe(wait=True)
        lab.sync_states()
        assert [node.state for node in lab.nodes()] == ["DEFINED_ON_CORE", "DEFINED_ON_CORE"]

    await drive(simulator, scenario)


@pytest.mark.client_since("2.10")
async def test_consoles(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        host, router = lab.nodes()
        for key in (host.console_key, host.vnc_key):
            with pytest.raises(APIError, match="not found"):
                key()
        lab.start(wait=True)
        keys = {host.console_key(), router.console_key(0), router.console_key(1)}
        assert len(keys) == 3
        assert host.vnc_key()
        with pytest.raises(APIError):
            router.vnc_key()
        assert host.console_logs(0).splitlines()[-1].endswith("|Press RETURN to get started")
        assert len(router.console_logs(1, 5).splitlines()) == 5
        with pytest.raises(APIError, match="Serial port does not exist on node"):
            router.console_logs(2)
        listed = client._session.get("keys/console?show_all=true").json()
        assert set(listed) == keys
        assert {entry["label"] for entry in listed.values()} == {"h0", "r1"}
        assert [entry["label"] for entry in client._session.get("keys/vnc").json().values()] == ["h0"]

    await drive(simulator, scenario)


async def test_a_full_synchronisation(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        lab.start(wait=True)
        lab.sync(topology_only=False)
        lab.sync_statistics()
        lab.sync_layer3_addresses()
        lab.sync_operational()
        assert lab.get_node_by_label("r1").cpu_usage > 0
        lab.sync_events()
        assert lab.get_node_by_label("h0").get_interface_by_label("eth0").connected
        lab.get_node_by_label("h0").sync_interface_operational()
        assert lab.statistics["nodes"] == 2
        assert lab.details()["node_count"] == 2
        lab.build_configurations()
        assert "r1" in lab.get_pyats_testbed()
        assert lab.resource_pools == []

    await drive(simulator, scenario)


@pytest.mark.client_since("2.10")
async def test_discovered_addresses_can_be_forgotten(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        lab.start(wait=True)
        lab.sync_layer3_addresses()
        lab.clear_discovered_addresses()

    await drive(simulator, scenario)


async def test_addresses_show_where_a_nat_connector_is_linked(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        connector = lab.create_node("nat", "external_connector", configuration="NAT", populate_interfaces=True)
        lab.sync()
        host = lab.get_node_by_label("h0")
        port = host.create_interface()
        lab.create_link(port, connector.physical_interfaces()[0])
        lab.start(wait=True)
        host.sync_layer3_addresses()
        assert port.discovered_ipv4[0].startswith("192.168.255.")
        with pytest.raises(APIError, match="external_connector"):
            connector.sync_layer3_addresses()

    await drive(simulator, scenario)


async def test_a_download_can_be_imported_again(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        text = import_lab(client).download()
        again = client.import_lab(text)
        assert [node.label for node in again.nodes()] == ["h0", "r1"]
        assert again.download() == text
        sample = client.import_sample_lab("two-hosts")
        assert sample.title == client.get_sample_labs()["two-hosts"]["title"]

    await drive(simulator, scenario)


@pytest.mark.client_since("2.9")
async def test_who_shares_a_lab(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        ada = client.user_management.create_user("ada", "long-enough")
        lab.update_associations({"users": [{"id": ada["id"], "permissions": ["lab_view"]}], "groups": []})
        assert lab.associations["users"] == [{"id": ada["id"], "permissions": ["lab_view"]}]
        assert lab.connector_mappings == []

    def hers(client: Any) -> None:
        [lab] = client.all_labs()
        with pytest.raises(APIError, match="required access"):
            lab.start(wait=False)

    await drive(simulator, scenario)
    await drive(simulator, hers, username="ada", password="long-enough")

"""Cisco's client manages the simulated controller: definitions, users, groups, pools, hosts, licensing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from virl2_client.exceptions import APIError

from tests.simulators.cml.cisco import PASSWORD, drive, import_lab
from tests.support.cmlapi.simulator import CmlSimulator
from vkpsim.cml.simulation import Settings


async def test_system_statistics_follow_what_runs(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        before = client.get_system_stats()
        lab = import_lab(client)
        lab.start(wait=True)
        after = client.get_system_stats()
        [compute] = after["computes"].values()
        assert compute["stats"]["dominfo"]["running_nodes"] == 2
        assert compute["stats"]["dominfo"]["allocated_memory"] == 1024 * 1024
        assert before["all"]["memory"]["free"] - after["all"]["memory"]["free"] == 1024**3
        assert after["all"]["cpu"]["percent"] > before["all"]["cpu"]["percent"] == 0
        health = client.get_system_health()
        assert health["valid"]
        assert health["is_licensed"]
        assert client.is_system_ready()

    await drive(simulator, scenario)


async def test_compute_hosts(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        lab.start(wait=True)
        system = client.system_management
        [host] = system.compute_hosts.values()
        assert system.controller is host
        assert (host.is_connected, host.admission_state, host.hostname) == (True, "READY", "cml-controller")
        host.admission_state = "ONLINE"
        system.sync_compute_hosts()
        assert host.admission_state == "ONLINE"
        assert not client.is_system_ready(wait=False, sleep=0)
        assert system.set_new_compute_host_state("REGISTERED") == system.get_new_compute_host_state() == "REGISTERED"
        with pytest.raises(APIError) as caught:
            host.remove()
        assert caught.value.response.status_code == 409

    await drive(simulator, scenario)


@pytest.mark.client_since("2.9")
async def test_a_compute_host_counts_its_nodes(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        lab.start(wait=True)
        [host] = client.system_management.compute_hosts.values()
        assert host.node_counts["running_nodes"] == 2

    await drive(simulator, scenario)


async def test_notices_maintenance_connectors_and_sessions(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        system = client.system_management
        session = client._session
        made = session.post(
            "system/notices", json={"level": "INFO", "label": "hi", "content": "x", "enabled": True}
        ).json()
        system.sync_system_notices()
        notice = system.system_notices[made["id"]]
        notice.update({"label": "bye"})
        system.maintenance_notice = notice
        system.maintenance_mode = True
        system.sync_system_notices()
        assert (system.maintenance_mode, system.maintenance_notice.label) == (True, "bye")
        system.maintenance_mode = False
        notice.remove()
        assert {one["device_name"] for one in system.get_external_connectors()} == {"virbr0", "bridge0"}
        assert len(system.get_external_connectors(sync=False)) == 2
        system.set_web_session_timeout(3600)
        assert system.get_web_session_timeout() == 3600
        assert client.auth_management.method == "local"

    await drive(simulator, scenario)


@pytest.mark.client_since("2.10")
async def test_telemetry() -> None:
    def scenario(client: Any) -> None:
        from virl2_client.models.system import OptInStatus  # noqa: PLC0415 (came with 2.10)

        system = client.system_management
        system.telemetry_state = OptInStatus.ACCEPTED
        assert system.telemetry_state is OptInStatus.ACCEPTED
        assert system.get_telemetry_events() == []

    async with CmlSimulator(Settings(password=PASSWORD, version="2.10.0+build.13")) as simulator:
        await drive(simulator, scenario)


async def test_only_administrators_get_in_during_maintenance(simulator: CmlSimulator) -> None:
    await drive(simulator, lambda client: client.user_management.create_user("ada", "long-enough"))
    await drive(simulator, lambda client: setattr(client.system_management, "maintenance_mode", True))

    def hers(client: Any) -> None:
        with pytest.raises(APIError, match="maintenance"):
            client.all_labs()

    await drive(simulator, hers, username="ada", password="long-enough", raise_for_auth_failure=False)


async def test_diagnostics(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        lab.start(wait=True)
        diagnostics = client.get_diagnostics()
        assert diagnostics["licensing"] == {"quota": 500, "started": 2, "user_quota": None, "user_started": 2}
        assert diagnostics["node_launch_queue"] == []
        nodes = diagnostics["labs"][lab.id]["nodes"]
        assert {node["label"]: node["state"] for node in nodes.values()} == {"h0": "BOOTED", "r1": "BOOTED"}
        assert {event["element_type"] for event in diagnostics["lab_events"][lab.id]} >= {"Lab", "Node"}
        assert {"id": "alpine", "images": ["alpine-sim"]} in diagnostics["node_definitions"]
        assert diagnostics["startup_scheduler"]["system_ready"]
        assert [user["username"] for user in diagnostics["user_list"]] == ["admin"]

    await drive(simulator, scenario)


async def test_licensing(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        licensing = client.licensing
        licensing.wait_interval = 0.01
        status = licensing.status()
        assert status["registration"]["status"] == "COMPLETED"
        assert [feature["max"] for feature in status["features"]] == [1, 480]
        assert licensing.deregister() == 204
        assert licensing.status()["authorization"]["status"] != "IN_COMPLIANCE"
        lab = import_lab(client)
        with pytest.raises(APIError, match="Cannot start lab"):
            lab.start(wait=False)
        assert licensing.register_wait("a-token")
        lab.start(wait=True)
        assert licensing.set_product_license("CML_Personal")
        with pytest.raises(APIError):
            licensing.set_product_license("CML_Nothing")
        assert licensing.set_transport("https://ssms.example", "proxy.example", 8080)
        assert licensing.status()["transport"]["proxy"] == {"server": "proxy.example", "port": 8080}
        assert licensing.set_default_transport()
        assert licensing.renew_authorization()
        assert licensing.register_renew()
        assert "Licensing" in licensing.tech_support()
        licensing.update_features([{"id": status["features"][1]["id"], "count": 10}])
        assert client.get_diagnostics()["licensing"]["quota"] == 30
        with pytest.raises(APIError):
            licensing.request_reservation()
        licensing.enable_reservation_mode()
        assert licensing.request_reservation()
        assert licensing.cancel_reservation()
        licensing.disable_reservation_mode()

    await drive(simulator, scenario)


async def test_node_and_image_definitions(simulator: CmlSimulator, tmp_path: Path) -> None:
    def scenario(client: Any) -> None:
        definitions = client.definitions
        known = {one["id"]: one for one in definitions.node_definitions()}
        assert {"alpine", "iosv", "external_connector", "unmanaged_switch", "cat8000v"} <= set(known)
        assert known["iosv"]["device"]["interfaces"]["serial_ports"] == 2
        assert "id: iosv" in definitions.download_node_definition("iosv")
        mine = {**known["alpine"], "id": "mine", "general": {**known["alpine"]["general"], "read_only": False}}
        mine["sim"] = {"linux_native": {**mine["sim"]["linux_native"], "ram": 100}}
        assert definitions.upload_node_definition(mine) == "Success"
        assert definitions.upload_node_definition(mine, update=True) == "Success"
        with pytest.raises(APIError, match="already exists"):
            definitions.upload_node_definition(definitions.download_node_definition("mine"))
        assert definitions.set_node_definition_read_only("mine", read_only=True)["general"]["read_only"]
        with pytest.raises(APIError, match="read-only"):
            definitions.remove_node_definition("mine")
        definitions.set_node_definition_read_only("mine", read_only=False)
        image = {"id": "mine-1", "node_definition_id": "mine", "label": "Mine", "disk_image": "mine.qcow2"}
        assert definitions.upload_image_definition(image) == "Success"
        assert [one["id"] for one in definitions.image_definitions_for_node_definition("mine")] == ["mine-1"]
        assert "alpine-sim" in {one["id"] for one in definitions.image_definitions()}
        assert "Mine" in definitions.download_image_definition("mine-1")
        assert definitions.set_image_definition_read_only("mine-1", read_only=False)["read_only"] is False
        file = tmp_path / "mine.qcow2"
        file.write_bytes(b"nothing")
        definitions.upload_image_file(file)
        assert definitions.download_image_file_list() == ["mine.qcow2"]
        assert definitions.remove_dropfolder_image("mine.qcow2") == "Success"
        lab = import_lab(client)
        lab.create_node("m", "mine")
        lab.start(wait=True)
        [compute] = client.get_system_stats()["computes"].values()
        assert compute["stats"]["dominfo"]["allocated_memory"] == (1024 + 100) * 1024
        definitions.remove_image_definition("mine-1")
        definitions.remove_node_definition("mine")
        with pytest.raises(APIError):
            definitions.download_node_definition("mine")

    await drive(simulator, scenario)


@pytest.mark.client_since("2.9")
async def test_the_image_of_a_stopped_node_can_be_cloned(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        lab.start(wait=True)
        lab.stop()
        clone = lab.get_node_by_label("h0").clone_image()
        assert clone["id"] in {one["id"] for one in client.definitions.image_definitions()}

    await drive(simulator, scenario)


async def test_users_and_groups(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        users, groups = client.user_management, client.group_management
        ada = users.create_user("ada", "long-enough", fullname="Ada L.", email="ada@example.org")
        assert (ada["admin"], ada["fullname"]) == (False, "Ada L.")
        assert users.user_id("ada") == ada["id"]
        assert {user["username"] for user in users.users()} == {"admin", "ada"}
        wrong_old = {"old_password": "wrong", "new_password": "long-enough-too"}
        refusals: list[tuple[int, Callable[[], object]]] = [
            (422, lambda: users.create_user("ada", "long-enough")),
            (403, lambda: users.create_user("bob", "short")),
            (404, lambda: users.get_user("gone")),
            (403, lambda: users.update_user(ada["id"], password_dict=wrong_old)),
        ]
        for status, refused in refusals:
            with pytest.raises(APIError) as caught:
                refused()
            assert caught.value.response.status_code == status
        users.update_user(ada["id"], description="first", admin=True)
        users.update_user(ada["id"], password_dict={"old_password": "long-enough", "new_password": "even-longer"})
        group = groups.create_group("staff", description="us", members=[ada["id"]])
        assert groups.group_id("staff") == group["id"]
        assert users.user_groups(ada["id"]) == [group["id"]]
        with pytest.raises(APIError, match="Group already exists"):
            groups.create_group("staff")
        assert groups.group_members(group["id"]) == [ada["id"]]
        groups.update_group(group["id"], name="crew")
        assert [one["name"] for one in groups.groups()] == ["crew"]
        groups.delete_group(group["id"])
        users.delete_user(ada["id"])
        assert [user["username"] for user in users.users()] == ["admin"]

    await drive(simulator, scenario)


@pytest.mark.client_since("2.9")
async def test_labs_of_a_group(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        groups = client.group_management
        group = groups.create_group("staff")
        lab = import_lab(client)
        groups.update_associations(group["id"], [{"id": lab.id, "permissions": ["lab_view"]}])
        assert groups.associations(group["id"]) == [{"id": lab.id, "permissions": ["lab_view"]}]

    await drive(simulator, scenario)


async def test_resource_pools(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        pools = client.resource_pool_management
        ada = client.user_management.create_user("ada", "long-enough")
        pool = pools.create_resource_pool("small", licenses=5, ram=4096)
        pool.cpus = 4
        pools.sync_resource_pools()
        assert (pool.label, pool.licenses, pool.ram, pool.cpus) == ("small", 5, 4096, 4)
        usage = pool.get_usage()
        assert (usage.limit.licenses, usage.usage.licenses) == (5, 0)
        template, hers = pools.create_resource_pools("class", [ada["id"]], licenses=2)
        assert (template.is_template, template.licenses, hers.is_template, hers.users) == (True, 2, False, [ada["id"]])
        pools.sync_resource_pools()
        assert template.user_pools == [hers.id]
        for one in (hers, template, pool):
            one.remove()
        pools.sync_resource_pools()
        assert pools.resource_pools == {}

    await drive(simulator, scenario)


@pytest.mark.client_since("2.10")
async def test_lab_repositories(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        from virl2_client.models.lab_repository import LabRepositoryManagement  # noqa: PLC0415 (came with 2.10)

        repositories = LabRepositoryManagement(client.system_management, client._session)
        repositories.add_lab_repository("https://example.org/labs.git", "labs", "folder")
        repositories.sync_lab_repositories()
        assert [found.name for found in repositories.lab_repositories.values()] == ["labs"]
        repositories.refresh_lab_repositories()
        repositories.get_lab_repository_by_name("labs").remove()
        repositories.sync_lab_repositories()
        assert repositories.lab_repositories == {}

    await drive(simulator, scenario)

"""What other clients of CML rely on: gocmlclient, Cisco's Terraform provider and the command line `cml`.

Each test is a difference that one of them once met between the simulator and a real controller.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from virl2_client.exceptions import APIError

from tests.simulators.cml.cisco import PASSWORD, drive, import_lab
from tests.simulators.cml.plain import Plain, plain
from tests.support.cmlapi.simulator import CmlSimulator
from vkpsim.cml.simulation import Settings
from vkpsim.cml.world.platforms import LINUX_DAY0

QUERY = "data=true&operational=true&exclude_configurations=false"
CONSOLES = {"alpine": 1, "csr1000v": 2, "iosv": 2, "iosvl2": 2, "nxosv9000": 2, "iosxrv": 3, "iosxrv9000": 4}
INTERFACES = {"alpine": 1, "desktop": 1, "server": 1, "ubuntu": 1, "asav": 2, "iosvl2": 4, "nxosv9000": 4}
GENERATORS = {
    *("asav", "alpine", "cat9000v", "coreos", "csr1000v", "desktop", "fmcv", "ftdv", "iosv", "iosvl2", "iosxrv"),
    *("iosxrv9000", "ise", "lxc", "nxosv", "nxosv9000", "pagent", "sdwan", "sdwan_edge", "sdwan_manager", "server"),
    *("trex", "ubuntu", "wan_emulator", "wireless_ap", "wireless_client", "xrd", None),
}
"""What makes configurations, by the enumeration of CML 2.10 in Cisco's `cml-mcp` 0.32.2: containers have none there."""
DRIVERS = {
    *(
        "asav",
        "alpine",
        "cat9k",
        "coreos",
        "csr1000v",
        "external_connector",
        "iol",
        "iol_l2",
        "iosv",
        "iosvl2",
        "iosxrv",
    ),
    *("iosxrv9000", "lxc", "nxosv", "nxosv9000", "pagent", "server", "trex", "ubuntu", "unmanaged_switch"),
    "wan_emulator",
}
"""Simulation drivers, by the same source."""
CONTAINERS = {"chrome", "dnsmasq", "firefox", "frr", "net-tools", "nginx", "radius", "syslog", "tacplus"}


@pytest.fixture
async def client(simulator: CmlSimulator) -> AsyncIterator[Plain]:
    async with plain(simulator) as client:
        yield client


async def get(client: Plain, path: str) -> Any:
    status, answer = await client.api("GET", path)
    assert status == 200, answer
    return answer


async def add_node(client: Plain, lab: str, definition: str, **fields: Any) -> str:
    body = {"label": definition, "node_definition": definition, "x": 0, "y": 0, **fields}
    status, answer = await client.api("POST", f"/labs/{lab}/nodes?populate_interfaces=true", json=body)
    assert status == 200, answer
    return str(answer["id"])


def problem(answer: Any) -> dict[str, Any]:
    """Return the one violation that a 400 names."""
    [found] = json.loads(answer["description"])["Input validation failed"]
    return dict(found)


async def test_a_stopped_node_keeps_host_keys_and_addresses_until_it_is_wiped(client: Plain) -> None:
    def kept(node: dict[str, Any], ports: list[dict[str, Any]]) -> Any:
        own = {key: node[key] for key in ("compute_id", "vnc_key", "serial_consoles", "operational")}
        return own, [port["operational"] and port["operational"]["mac_address"] for port in ports]

    async def look() -> Any:
        nodes = await get(client, f"/labs/{lab}/nodes?{QUERY}")
        node = next(node for node in nodes if node["label"] == "h0")
        return kept(node, await get(client, f"/labs/{lab}/nodes/{node['id']}/interfaces?{QUERY}"))

    lab = await client.load()
    await client.api("PUT", f"/labs/{lab}/start")
    await client.until(lab, "BOOTED")
    running = await look()
    assert all(running[0].values())
    assert all(running[1])
    await client.api("PUT", f"/labs/{lab}/stop")
    await client.until(lab, "STOPPED")
    assert await look() == running
    await client.api("PUT", f"/labs/{lab}/start")
    await client.until(lab, "BOOTED")
    assert await look() == running
    await client.api("PUT", f"/labs/{lab}/stop")
    await client.api("PUT", f"/labs/{lab}/wipe")
    assert await look() == (
        {"compute_id": None, "vnc_key": None, "serial_consoles": [], "operational": None},
        [None],
    )


async def test_drivers_are_those_of_ciscos_enumerations(client: Plain) -> None:
    found = await get(client, "/node_definitions")
    generators = {one["id"]: one["configuration"]["generator"]["driver"] for one in found}
    assert {name: driver for name, driver in generators.items() if driver not in GENERATORS} == {}
    assert (generators["iosv"], generators["frr"]) == ("iosv", None)
    drivers = {one["id"]: one["sim"]["linux_native"]["driver"] for one in found}
    assert {name: driver for name, driver in drivers.items() if driver not in DRIVERS} == {}


async def test_a_stopped_node_has_no_open_console(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        lab.start(wait=True)
        node = lab.get_node_by_label("h0")
        assert node.console_key()
        lab.stop(wait=True)
        for key in (node.console_key, node.vnc_key):
            with pytest.raises(APIError, match="not found"):
                key()

    await drive(simulator, scenario)


async def test_a_user_can_be_renamed_in_the_change_that_sets_the_password(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        user = client.user_management.create_user("jane", "a-password")
        change = {"old_password": "a-password", "new_password": "another-one"}
        sent = {"username": "janet", "fullname": "Janet", "password": change}
        answer = client._session.patch(f"users/{user['id']}", json=sent).json()
        assert (answer["id"], answer["username"], answer["fullname"]) == (user["id"], "janet", "Janet")
        assert client.user_management.user_id("janet") == user["id"]
        with pytest.raises(APIError, match="already exists"):
            client._session.patch(f"users/{user['id']}", json={"username": "admin"})
        client._session.patch(f"users/{user['id']}", json={"username": "janet"})

    await drive(simulator, scenario)
    await drive(simulator, lambda client: client.user_management.users(), username="janet", password="another-one")


async def test_priority_and_credentials_of_a_running_node_can_be_set() -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        lab.start(wait=True)
        node = lab.get_node_by_label("h0")
        given = client._session.get(f"labs/{lab.id}/nodes/{node.id}").json()
        unchanged = {key: given[key] for key in ("label", "tags", "priority", "pyats")}
        client._session.patch(f"labs/{lab.id}/nodes/{node.id}", json=unchanged)
        node.priority = 9
        node.set_pyats_credentials("user", "pass")
        assert client.join_existing_lab(lab.id).get_node_by_label("h0").priority == 9

    async with CmlSimulator(Settings(password=PASSWORD, version="2.10.0+build.13", boot_seconds=(0, 0))) as simulator:
        await drive(simulator, scenario)


async def test_a_new_node_gets_the_configuration_of_its_definition(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = client.create_lab("defaults")
        assert lab.create_node("host", "alpine").configuration == LINUX_DAY0
        connector = lab.create_node("nat", "external_connector")
        assert connector.configuration_files == [{"name": "default", "content": "NAT"}]
        assert lab.create_node("switch", "unmanaged_switch").configuration is None
        assert lab.create_node("bare", "alpine", configuration="").configuration == ""
        definition = client.definitions.node_definitions()
        files = {one["id"]: one["configuration"].get("provisioning", {}).get("files") for one in definition}
        assert files["external_connector"] == [{"name": "default", "content": "NAT", "editable": True}]
        assert files["alpine"] == [{"name": "node.cfg", "content": LINUX_DAY0, "editable": True}]

    await drive(simulator, scenario)


async def test_a_new_node_gets_the_interfaces_and_consoles_of_a_real_one(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = client.create_lab("interfaces")
        for name in INTERFACES | CONSOLES:
            lab.create_node(name, name, populate_interfaces=True)
        lab.sync()
        ports = {node.label: len(node.physical_interfaces()) for node in lab.nodes()}
        assert {name: ports[name] for name in INTERFACES} == INTERFACES
        lab.wait_time = 0.02
        lab.start(wait=True)
        for name, consoles in CONSOLES.items():
            keys = f"labs/{lab.id}/nodes/{lab.get_node_by_label(name).id}/keys/console?line="
            assert client._session.get(f"{keys}{consoles - 1}").json()
            with pytest.raises(APIError, match="Console not found"):
                client._session.get(f"{keys}{consoles}")

    await drive(simulator, scenario)


async def test_one_external_connector_with_its_operational_state(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        connectors = client.system_management.get_external_connectors()
        assert {connector["device_name"] for connector in connectors} == {"virbr0", "bridge0"}
        for connector in connectors:
            assert client._session.get(f"system/external_connectors/{connector['id']}").json() == connector
            state = connector["operational"]
            assert (state["label"], state["mtu"], state["exists"]) == (connector["label"], 1500, True)
            assert state["forwarding"] == {"virbr0": "NAT", "bridge0": "BRIDGE"}[connector["device_name"]]
            flags = {"label", "interface", "forwarding", "mtu", "exists", "enabled", "stp", "ip_networks"}
            assert set(state) == flags | {"protected", "snooped"}
        with pytest.raises(APIError, match="External connector not found"):
            client._session.get("system/external_connectors/nonsense")

    await drive(simulator, scenario)


async def test_the_simplified_definitions_are_flat(client: Plain) -> None:
    found = {one["id"]: one for one in await get(client, "/simplified_node_definitions")}
    alpine, connector = found["alpine"], found["external_connector"]
    assert (alpine["sim"]["ram"], alpine["sim"]["cpus"], alpine["sim"]["cpu_limit"]) == (512, 1, 100)
    assert (alpine["sim"]["console"], alpine["sim"]["vnc"], alpine["sim"]["simulate"]) == (True, True, True)
    assert (connector["sim"]["console"], connector["sim"]["vnc"]) == (False, False)
    assert not found["iosv"]["sim"]["vnc"]
    assert {"ram", "cpus"}.isdisjoint(connector["sim"])
    assert connector["ui"]["icon"] == "cloud"
    assert (alpine["ui"]["has_configuration"], alpine["ui"]["has_config_extraction"]) == (True, True)
    assert (connector["ui"]["has_configuration"], connector["ui"]["has_config_extraction"]) == (True, False)
    assert not found["nginx"]["ui"]["has_configuration"]
    assert found["alpine"]["image_definitions"] == ["alpine-sim"]


async def test_the_simplified_definitions_name_the_interfaces(client: Plain) -> None:
    simplified = {one["id"]: one["device"]["interfaces"] for one in await get(client, "/simplified_node_definitions")}
    full = {one["id"]: one["device"]["interfaces"] for one in await get(client, "/node_definitions")}
    assert simplified == full
    assert simplified["ubuntu"]["physical"][:2] == ["ens2", "ens3"]
    assert simplified["iosvl2"]["loopback"] == ["Loopback0"]
    statics = {name: ports.get("iol_static_ethernets") for name, ports in simplified.items()}
    assert {name for name, count in statics.items() if count is not None} == {"iol-xe-serial-4eth"}
    serial = simplified["iol-xe-serial-4eth"]
    assert [port for port in serial["physical"][:8] if port.startswith("Ethernet")] == [
        f"Ethernet0/{n}" for n in range(serial["iol_static_ethernets"])
    ]


@pytest.mark.parametrize("missing", ["disk_driver", "nic_driver"])
async def test_a_virtual_machine_needs_its_drivers(client: Plain, missing: str) -> None:
    definition = await get(client, "/node_definitions/csr1000v?json=true")
    definition |= {"id": "mine", "general": {**definition["general"], "read_only": False}}
    native = definition["sim"]["linux_native"]
    without = {key: value for key, value in native.items() if key != missing}
    status, answer = await client.api(
        "POST", "/node_definitions", json={**definition, "sim": {"linux_native": without}}
    )
    assert (status, f"{missing} must be specified" in problem(answer)["message"]) == (400, True)
    assert (await client.api("GET", "/node_definitions/mine"))[0] == 404
    as_docker = {**without, "libvirt_domain_driver": "docker"}
    for sim in (native, as_docker):
        document = {**definition, "id": sim["libvirt_domain_driver"], "sim": {"linux_native": sim}}
        assert (await client.api("POST", "/node_definitions", json=document))[0] == 200


async def test_pyats_knows_each_kind_by_its_own_system(client: Plain) -> None:
    found = {one["id"]: one["pyats"]["os"] for one in await get(client, "/node_definitions") if "pyats" in one}
    expected = {
        "ios": {"iosv", "iosvl2", "pagent", "frr"},
        "nxos": {"nxosv", "nxosv9000"},
        "asa": {"asav"},
        "iosxr": {"iosxrv", "iosxrv9000", "ios-xrd-control-plane"},
    }
    assert {os: {name for name, its in found.items() if its == os} for os in expected} == expected
    assert {"csr1000v", "cat8000v", "iol-xe", "ioll2-xe"} <= {name for name, os in found.items() if os == "iosxe"}
    assert {"alpine", "ubuntu", "nginx"} <= {name for name, os in found.items() if os == "linux"}
    assert {"external_connector", "unmanaged_switch"}.isdisjoint(found)


async def test_licensing_names_the_times_of_registration_and_authorization(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        status = client.licensing.status()
        registration, authorization = status["registration"], status["authorization"]
        assert {"expires", "virtual_account", "register_time", "renew_time"} <= set(registration)
        assert {"expires", "renew_time"} <= set(authorization)
        times = {"succeeded", "attempted", "scheduled", "status", "failure", "success"}
        for time in (registration["register_time"], registration["renew_time"], authorization["renew_time"]):
            assert set(time) == times
        assert registration["expires"]
        client.licensing.deregister()
        assert client.licensing.status()["registration"]["expires"] is None

    await drive(simulator, scenario)


async def test_figures_that_an_image_inherits_are_null(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        images = client.definitions.image_definitions()
        assert "alpine-sim" in {image["id"] for image in images}
        for image in images:
            figures = [image[key] for key in ("ram", "cpus", "cpu_limit", "data_volume", "boot_disk_size")]
            assert figures == [None] * 5

    await drive(simulator, scenario)


async def test_the_old_lists_of_groups_members_and_labs(client: Plain) -> None:
    lab = await client.load()
    [admin] = [user["id"] for user in await get(client, "/users")]
    shared = [{"id": lab, "permissions": ["lab_view"]}]
    _, group = await client.api("POST", "/groups", json={"name": "g", "members": [admin], "associations": shared})
    assert await get(client, f"/users/{admin}/groups") == [group["id"]]
    assert await get(client, f"/groups/{group['id']}/members") == [admin]
    assert await get(client, f"/groups/{group['id']}/labs") == [lab]
    for path in ("/users/nonsense/groups", "/groups/nonsense/members", "/groups/nonsense/labs"):
        assert (await client.api("GET", path))[0] == 404


@pytest.mark.parametrize("field", ["autostart", "node_staging"])
async def test_a_field_of_2_10_is_refused_by_its_own_name(client: Plain, field: str) -> None:
    lab = await client.load()
    status, answer = await client.api("PATCH", f"/labs/{lab}", json={field: {"enabled": True}})
    assert (status, problem(answer)["location"]) == (400, ["body", field])


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [("latency", 10000, 10001), ("bandwidth", 10_000_000, 10_000_001), ("loss", 100, 100.1), ("jitter", 0, -1)],
)
async def test_the_condition_of_a_link_has_limits(client: Plain, field: str, good: float, bad: float) -> None:
    lab = await client.load()
    [link] = await get(client, f"/labs/{lab}/links")
    path = f"/labs/{lab}/links/{link}/condition"
    assert (await client.api("PATCH", path, json={field: good}))[0] == 200
    status, answer = await client.api("PATCH", path, json={field: bad})
    assert (status, problem(answer)["location"]) == (400, ["body", field])
    assert (await get(client, path))[field] == good


async def test_an_annotation_has_only_the_styles_of_cml(simulator: CmlSimulator) -> None:
    def scenario(client: Any) -> None:
        lab = import_lab(client)
        for kind in ("text", "rectangle", "ellipse", "line"):
            drawn = lab.create_annotation(kind, border_style="4,2")
            with pytest.raises(APIError, match="9,9"):
                drawn.border_style = "9,9"
            with pytest.raises(APIError, match="border_style"):
                lab.create_annotation(kind, border_style="9,9")
        [smart] = lab.smart_annotations()
        with pytest.raises(APIError, match="thickness"):
            smart.thickness = 33

    await drive(simulator, scenario)


async def test_addresses_of_the_nat_network_cross_unmanaged_switches(client: Plain) -> None:
    _, lab = await client.api("POST", "/labs", json={"title": "nat"})
    ids = {
        name: await add_node(client, lab["id"], name)
        for name in ("alpine", "unmanaged_switch", "external_connector", "iosv")
    }
    second = await add_node(client, lab["id"], "unmanaged_switch", label="second")
    ports = {node: await get(client, f"/labs/{lab['id']}/nodes/{node}/interfaces") for node in (*ids.values(), second)}
    switch = ports[ids["unmanaged_switch"]]
    wires = [
        (ports[ids["alpine"]][0], switch[0]),
        (switch[1], ports[second][0]),
        (ports[second][1], ports[ids["external_connector"]][0]),
    ]
    for a, b in wires:
        assert (await client.api("POST", f"/labs/{lab['id']}/links", json={"src_int": a, "dst_int": b}))[0] == 200
    await client.api("PUT", f"/labs/{lab['id']}/start")
    await client.until(lab["id"], "BOOTED")
    found = await get(client, f"/labs/{lab['id']}/nodes/{ids['alpine']}/layer3_addresses")
    [[address]] = [port["ip4"] for port in found["interfaces"].values()]
    assert address.startswith("192.168.255.")
    await client.api("PUT", f"/labs/{lab['id']}/nodes/{second}/state/stop")
    found = await get(client, f"/labs/{lab['id']}/nodes/{ids['alpine']}/layer3_addresses")
    assert [port["ip4"] for port in found["interfaces"].values()] == [[]]


async def test_the_definitions_are_those_of_a_2_9_1(client: Plain) -> None:
    found = {one["id"] for one in await get(client, "/node_definitions")}
    assert CONTAINERS | {"cat9000v-uadp", "cat9000v-q200"} <= found
    assert "cat9000v" not in found


async def test_a_connector_has_neither_memory_nor_cpus(client: Plain) -> None:
    native = (await get(client, "/node_definitions/external_connector?json=true"))["sim"]["linux_native"]
    assert {"ram", "cpus"}.isdisjoint(native)
    _, lab = await client.api("POST", "/labs", json={"title": "nat"})
    for name in ("external_connector", "unmanaged_switch"):
        await add_node(client, lab["id"], name)
    await client.api("PUT", f"/labs/{lab['id']}/start")
    await client.until(lab["id"], "BOOTED")
    nodes = await get(client, f"/labs/{lab['id']}/nodes?{QUERY}")
    assert [(node["operational"]["ram"], node["operational"]["cpus"]) for node in nodes] == [(None, None)] * 2


@pytest.mark.parametrize(
    ("path", "body", "location"),
    [
        ("", {"surprise": 1}, ["body", "surprise"]),
        ("/associations", {"users": [{"id": "u", "permissions": [], "why": 1}]}, ["body", "users", 0, "why"]),
    ],
)
async def test_an_unknown_field_is_an_extra_input(
    client: Plain, path: str, body: object, location: list[object]
) -> None:
    lab = await client.load()
    status, answer = await client.api("PATCH", f"/labs/{lab}{path}", json=body)
    found = problem(answer)
    assert (status, found["type"], found["message"]) == (400, "extra_forbidden", "Extra inputs are not permitted")
    assert found["location"] == location


@pytest.mark.parametrize(
    ("definition", "cpus", "mib"),
    [
        *(("cat-sdwan-edge", 2, 5120), ("cat-sdwan-manager", 8, 32768), ("cat9800", 2, 6144), ("vwlc", 1, 2048)),
        *(("frr", 1, 256), ("nginx", 1, 256), ("splunk", 1, 4096), ("thousandeyes-ea", 1, 2048), ("syslog", 1, 512)),
    ],
)
async def test_figures_are_those_of_the_definitions_that_cisco_publishes(
    client: Plain, definition: str, cpus: int, mib: int
) -> None:
    native = (await get(client, f"/node_definitions/{definition}?json=true"))["sim"]["linux_native"]
    assert (native["cpus"], native["ram"]) == (cpus, mib)


async def test_a_bridge_takes_no_address(client: Plain) -> None:
    _, lab = await client.api("POST", "/labs", json={"title": "bridges"})
    ids = [await add_node(client, lab["id"], name) for name in ("alpine", "unmanaged_switch", "external_connector")]
    ports = [await get(client, f"/labs/{lab['id']}/nodes/{node}/interfaces") for node in ids]
    for a, b in ((ports[0][0], ports[1][0]), (ports[1][1], ports[2][0])):
        await client.api("POST", f"/labs/{lab['id']}/links", json={"src_int": a, "dst_int": b})
    await client.api("PUT", f"/labs/{lab['id']}/start")
    await client.until(lab["id"], "BOOTED")
    assert set(await get(client, f"/labs/{lab['id']}/layer3_addresses")) == {ids[0]}
    assert (await get(client, f"/labs/{lab['id']}/nodes/{ids[1]}/layer3_addresses"))["interfaces"] == {}


@pytest.mark.parametrize("missing", ["label", "x", "y"])
async def test_a_new_node_needs_label_and_place_before_2_10(client: Plain, missing: str) -> None:
    _, lab = await client.api("POST", "/labs", json={"title": "t"})
    body = {"label": "a", "node_definition": "alpine", "x": 0, "y": 0}
    del body[missing]
    status, answer = await client.api("POST", f"/labs/{lab['id']}/nodes", json=body)
    found = problem(answer)
    assert (status, found["type"], found["location"]) == (400, "missing", ["body", missing])


async def test_a_new_node_of_2_10_needs_a_definition_alone() -> None:
    async with CmlSimulator(Settings(password=PASSWORD, version="2.10.0+build.13")) as simulator:
        async with plain(simulator) as client:
            _, lab = await client.api("POST", "/labs", json={"title": "t"})
            for _ in range(2):
                status, _ = await client.api("POST", f"/labs/{lab['id']}/nodes", json={"node_definition": "iosv"})
                assert status == 200
            nodes = await get(client, f"/labs/{lab['id']}/nodes?data=true")
        assert [(node["label"], node["x"], node["y"]) for node in nodes] == [("iosv-0", 0, 0), ("iosv-1", 0, 0)]


async def test_telemetry_before_2_10_is_allowed_or_not_or_undecided(client: Plain) -> None:
    assert await get(client, "/telemetry") == {"opt_in": None, "show_modal": True}
    for allowed in (True, False):
        assert await client.api("PUT", "/telemetry", json={"opt_in": allowed}) == (
            200,
            {"opt_in": allowed, "show_modal": False},
        )

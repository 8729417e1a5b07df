"""Which channel gets which number, and what the store says of it (R003-017, 020-038, 043-047)."""

import json
from typing import Any

import pytest

from tests.component.mux.harness import PREFIX, MuxWorld
from tests.component.mux.test_mux_store import config_map, document, row, store_path
from vkprovider.mux.pure.facts import Owner

_ADMIN_ONLY = [{"name": "admin", "port": 81, "protocol": "TCP"}]


async def test_ranges_are_used_in_their_order_and_numbers_that_are_asked_for_come_first(world: MuxWorld) -> None:
    """R003-023, 028, 030, 046: what is new at once is decided by name, and no automatic port takes an explicit one."""
    await world.mux(port_range="21000-21000,20000-20010")
    await world.channel("c", "http:auto")
    await world.channel("a", "http:auto")
    await world.channel("z", "http:21000")
    await world.channel("b", "http:auto")
    await world.replica()
    await world.until_ports(20000, 20001, 20002, 21000)
    team = world.team
    expected = {"a": 20000, "b": 20001, "c": 20002, "z": 21000}
    assert await world.rows() == {f"{team}/{name}/http": number for name, number in expected.items()}


async def test_of_two_new_channels_with_one_number_the_first_by_name_has_it(world: MuxWorld) -> None:
    """R003-046, 047: and it keeps it against a newcomer whose name comes before (R003-045)."""
    await world.mux()
    for name in ("c", "b"):
        await world.channel(name, "http:8443")
    await world.replica()
    await world.until_told("b", "http:80->8443")
    event = await world.until_event("MuxPortConflict", "c")
    assert event["message"] == f"TCP port 8443 belongs to {world.team}/b"
    await world.channel("a", "http:8443")
    await world.until_event("MuxPortConflict", "a")
    assert await world.rows() == {f"{world.team}/b/http": 8443}


async def test_a_number_twice_in_one_channel_is_a_conflict(world: MuxWorld) -> None:
    """R003-047."""
    await world.replica()
    await world.mux()
    await world.channel("api", "admin:80", ports={"http": 80, "admin": 81})
    event = await world.until_event("MuxPortConflict", "api")
    assert event["message"] == "TCP port 80 is asked for twice"
    assert await world.rows() == {}
    assert await world.told("api") is None


async def test_a_channel_gets_all_of_its_ports_or_none(world: MuxWorld) -> None:
    """R003-032."""
    await world.replica()
    await world.mux(port_range="20000-20001")
    await world.channel("a", "http:auto")
    await world.until_told("a", "http:80->20000")
    await world.channel("b", "http:auto,admin:auto", ports={"http": 80, "admin": 81})
    event = await world.until_event("InvalidPortMapping", "b")
    assert event["message"].startswith("no available port in 20000-20001 for all of 2 automatic ports")
    assert await world.rows() == {f"{world.team}/a/http": 20000}
    await world.until_ports(20000)


@pytest.mark.parametrize(
    ("external", "told"),
    [
        ("other:8080", "port 'other' is not in spec.ports, which has http"),
        ("http=8080", "entry 'http=8080' is not NAME:PORT or NAME:auto"),
        ("http:0", "'0' is no port within 1-65535"),
        ("http:65536", "'65536' is no port within 1-65535"),
        ("http:80.5", "'80.5' is no port within 1-65535"),
    ],
)
async def test_a_mapping_that_cannot_be_is_told_in_its_words(world: MuxWorld, external: str, told: str) -> None:
    """R003-024, 026."""
    await world.replica()
    await world.mux()
    await world.channel("api", external)
    event = await world.until_event("InvalidPortMapping", "api")
    assert event["message"] == f"annotation external-ports: {told}"
    assert event["involvedObject"]["namespace"] == world.team
    await world.until_ports(101)


async def test_a_port_that_leaves_a_channel_leaves_the_mux_and_rests(world: MuxWorld) -> None:
    """R003-031: the others stay, and so do their numbers (R003-029)."""
    await world.replica()
    await world.mux()
    await world.channel("api", "http:auto,admin:auto", ports={"http": 80, "admin": 81})
    await world.until_told("api", "http:80->20000, admin:81->20001")
    await world.admin.patch(world.path("api"), {**_asks("admin:auto"), "spec": {"ports": _ADMIN_ONLY}})
    await world.until_told("api", "admin:81->20001")
    await world.until_ports(20001)
    assert await world.rows() == {f"{world.team}/api/admin": 20001}
    assert await resting(world) == {(20000, "TCP", "api", "http")}


async def test_a_port_that_a_channel_asks_for_between_two_changes_rests_too(world: MuxWorld) -> None:
    """R003-021, 031: a port that `external-ports` names no more, and `spec.ports` still has, is the same outside."""
    await world.replica()
    await world.mux()
    await world.channel("api", "http:auto,admin:auto", ports={"http": 80, "admin": 81})
    await world.until_told("api", "http:80->20000, admin:81->20001")
    await world.admin.patch(world.path("api"), _asks("admin:auto"))
    await world.until_told("api", "http:80->80, admin:81->20001")
    await world.admin.patch(world.path("api"), {"spec": {"ports": _ADMIN_ONLY}})
    await world.until_told("api", "admin:81->20001")
    await world.until_ports(20001)
    assert await world.rows() == {f"{world.team}/api/admin": 20001}
    assert await resting(world) == {(20000, "TCP", "api", "http"), (80, "TCP", "api", "http")}


def _asks(external: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {f"{PREFIX}/external-ports": external}}}


async def resting(world: MuxWorld) -> set[tuple[int, str, str, str]]:
    """Return the numbers that rest: port, protocol, the Service that had it, and its port there."""
    store = await world.store()
    assert store is not None
    rests = json.loads(store["data"]["allocations.json"])["resting"]
    return {(rest["port"], rest["protocol"], rest["service"], rest["portName"]) for rest in rests}


async def test_the_store_is_that_of_the_design(world: MuxWorld) -> None:
    """R003-033-038, 042: its example, word for word."""
    await world.replica()
    await world.mux()
    await world.channel("api", "http:auto")
    await world.until_told("api", "http:80->20000")
    await world.channel("p2p", ports={"p2p": 30303})
    await world.channel("web", "http:8080")
    await world.until_ports(8080, 20000, 30303)
    store = await world.store()
    assert store is not None
    assert store["metadata"]["annotations"] == {f"{PREFIX}/mux": f"{world.edge}/mux"}

    def claim(service: str, name: str, inside: int, outside: int, source: str) -> dict[str, Any]:
        claimed = {**row(world, service, outside), "portName": name, "channelPort": inside}
        return {**claimed, "source": source}

    api = claim("api", "http", 80, 20000, "auto")
    written = json.loads(store["data"]["allocations.json"])
    assert written == {
        "schemaVersion": 1,
        "mux": {"namespace": world.edge, "name": "mux"},
        "portClaims": [api, claim("p2p", "p2p", 30303, 30303, "static"), claim("web", "http", 80, 8080, "static")],
        "allocations": [api],
    }


async def test_what_is_stored_counts_more_than_what_the_mux_shows(world: MuxWorld) -> None:
    """R003-044, 045: the Service of the mux says b, the store a."""
    await world.admin.create(
        store_path(world, ""), config_map(world, document(world, portClaims=[row(world, "a", 20000)]))
    )
    shown = {"name": Owner(world.team, "b").mux_port_name("http"), "port": 20000}
    await world.mux(spec={"ports": [shown]})
    await world.channel("b", "http:20000")
    await world.channel("a", "http:auto")
    await world.replica()
    await world.until_told("a", "http:80->20000")
    event = await world.until_event("MuxPortConflict", "b")
    assert event["message"] == f"TCP port 20000 belongs to {world.team}/a"


async def test_a_channel_shows_its_numbers_where_store_and_mux_are_lost(world: MuxWorld) -> None:
    """R003-044: by its annotation, when it is not ambiguous."""
    first = await world.replica()
    made = await world.mux()
    await world.channel("b", "http:auto", annotations={})
    await world.until_told("b", "http:80->20000")
    await first.stop()
    await world.admin.delete(store_path(world))
    await world.admin.patch(world.path("mux"), {"spec": {"ports": made["spec"]["ports"]}})
    for name in ("a", "c", "d"):
        forged = {f"{PREFIX}/ports": "http:80->20005"} if name != "a" else {}
        await world.channel(name, "http:auto", annotations=forged)
    await world.replica()
    await world.until_told("b", "http:80->20000")
    await world.until_ports(20000, 20001, 20002, 20003)


async def test_a_channel_keeps_its_own_ports_selector_and_gets_no_node_port(world: MuxWorld) -> None:
    """R003-017, 021, 022."""
    await world.replica()
    await world.mux()
    await world.address("203.0.113.10")
    made = await world.channel("api", "grpc:9090", ports={"http": 80, "grpc": 50051})
    found = await world.until_told("api", "http:80->80, grpc:50051->9090")
    assert found["spec"] == made["spec"]
    assert not any("nodePort" in port for port in found["spec"]["ports"])
    mux = await world.until_ports(80, 9090)
    assert not any("nodePort" in port for port in mux["spec"]["ports"])

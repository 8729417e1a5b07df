"""A mux and its channels, from the first port to the end of both (R003-001, 010-019, 053-063)."""

import pytest

from tests.component.controllers.looking import eventually
from tests.component.mux.harness import ENDPOINT_SLICES, PREFIX, MuxWorld
from tests.support.apiserver import MEMBERS


async def test_a_channel_gets_its_port_its_backends_and_the_address(world: MuxWorld) -> None:
    await world.replica()
    await world.mux()
    await world.address("203.0.113.10")
    await world.channel("api", "http:auto", backends=("10.1.0.1", "10.1.0.2"))
    await world.until_forwards({20000: {"10.1.0.1:8080", "10.1.0.2:8080"}})
    api = await world.until_told("api", "http:80->20000")
    assert await world.rows() == {f"{world.team}/api/http": 20000}
    shown = await world.admin.until(world.path("api"), lambda found: found["status"]["loadBalancer"])
    assert shown["status"]["loadBalancer"]["ingress"] == [{"ip": "203.0.113.10", "ipMode": "VIP"}]
    mux = await world.admin.until(
        world.path("mux"), lambda found: f"{PREFIX}/summary" in found["metadata"]["annotations"]
    )
    notes = mux["metadata"]["annotations"]
    assert notes[f"{PREFIX}/channels"] == f'["{world.team}/api"]'
    assert notes[f"{PREFIX}/summary"] == "1 channel(s) | 1 port(s) | 2 pod(s) | DNS: 203.0.113.10"
    assert "http:80->20000/TCP" in notes[f"{PREFIX}/topology"]
    assert mux["metadata"]["finalizers"] == [f"{PREFIX}/finalizer"]
    [own] = await world.own_slices()
    assert own["metadata"]["labels"] == {
        "kubernetes.io/service-name": "mux",
        "endpointslice.kubernetes.io/managed-by": "vkprovider-mux",
        "app.kubernetes.io/managed-by": "svc-lb-mux",
        "app.kubernetes.io/component": "mux-endpoints",
    }
    [owner] = own["metadata"]["ownerReferences"]
    assert owner["uid"] == mux["metadata"]["uid"]
    assert api["spec"]["selector"] == {"app": "api"}


async def test_a_refused_port_never_forwards_not_even_the_last_one(world: MuxWorld) -> None:
    await world.replica()
    await world.mux()
    await world.channel("api", "http:auto")
    await world.until_forwards({20000: {"10.1.0.10:8080"}})
    await world.annotate(world.path("api"), external_ports="http:no-number")
    await world.until_event("InvalidPortMapping", "api")
    await world.until_ports(101)
    await world.until_forwards({})
    assert await world.own_slices() == []
    await world.until_told("api", None)
    assert await world.rows() == {f"{world.team}/api/http": 20000}
    await world.annotate(world.path("api"), external_ports="http:auto")
    await world.until_forwards({20000: {"10.1.0.10:8080"}})


async def test_modes_of_ports_and_their_conflicts(world: MuxWorld) -> None:
    # R003-021-024, 043, 046, 047
    await world.replica()
    await world.mux()
    await world.channel("dns-tcp", ports={"dns": 53})
    await world.channel("dns-udp", ports={"dns": 53}, protocol="UDP")
    await world.channel("web", "http:8080,admin:auto", ports={"http": 80, "admin": 81, "plain": 82})
    await world.until_ports(53, 53, 82, 8080, 20000)
    await world.channel("a-thief", "http:8080")
    event = await world.until_event("MuxPortConflict", "a-thief")
    assert f"{world.team}/web" in event["message"]
    assert event["type"] == "Warning"
    assert await world.told("a-thief") is None
    assert set(await world.ports()) == {(53, "TCP"), (53, "UDP"), (82, "TCP"), (8080, "TCP"), (20000, "TCP")}


async def test_a_deleted_channel_leaves_nothing_and_its_number_rests(world: MuxWorld) -> None:
    # R003-016, 031
    await world.replica()
    await world.mux()
    await world.address("203.0.113.10")
    await world.channel("old", "http:auto")
    await world.until_forwards({20000: {"10.1.0.10:8080"}})
    await world.admin.delete(world.path("old"))
    await world.until_ports(101)
    assert await world.own_slices() == []
    await world.channel("new", "http:auto", backends=("10.1.0.11",))
    await world.until_forwards({20001: {"10.1.0.11:8080"}})


@pytest.mark.parametrize("end", ["delete", "unmark", "retype"])
async def test_the_end_of_a_mux_clears_its_channels_and_keeps_its_store(world: MuxWorld, end: str) -> None:
    # R003-074
    await world.replica(RECONCILE_INTERVAL="0.5")
    await world.mux()
    await world.address("203.0.113.10")
    await world.channel("api", "http:auto")
    await world.until_told("api", "http:80->20000")
    await world.admin.until(world.path("api"), lambda found: found["status"]["loadBalancer"])
    if end == "delete":
        await world.admin.delete(world.path("mux"))
        await world.admin.until_gone(world.path("mux"))
    elif end == "unmark":
        await world.annotate(world.path("mux"), multiplexer=None)
    else:
        await world.admin.patch(
            world.path("mux"), {"spec": {"type": "ClusterIP", "allocateLoadBalancerNodePorts": None}}
        )
        await world.until_event("NotLoadBalancer", "mux")
    api = await world.until_told("api", None)
    await world.admin.until(world.path("api"), lambda found: not found["status"]["loadBalancer"])
    assert await world.own_slices() == []
    if end != "delete":
        mux = await world.admin.until(world.path("mux"), lambda found: not found["metadata"].get("finalizers"))
        assert f"{PREFIX}/summary" not in mux["metadata"]["annotations"]
    await world.until_event("MuxNotFound", "api")
    assert await world.rows() == {f"{world.team}/api/http": 20000}
    await eventually(lambda: gone(world), "the Lease of the mux goes")
    assert api["spec"]["ports"][0]["port"] == 80


async def test_channels_of_a_mux_that_was_removed_by_force_are_cleared_by_the_next_replica(world: MuxWorld) -> None:
    """R003-074: the wrong order of uninstalling, as docs/mux.md has it."""
    first = await world.replica()
    await world.mux()
    await world.address("203.0.113.10")
    await world.channel("api", "http:auto")
    await world.admin.until(world.path("api"), lambda found: found["status"]["loadBalancer"])
    await first.stop()
    await world.admin.patch(world.path("mux"), {"metadata": {"finalizers": None}})
    await world.admin.delete(world.path("mux"))
    await world.replica(RECONCILE_INTERVAL="0.5")
    await world.until_told("api", None)
    await world.admin.until(world.path("api"), lambda found: not found["status"]["loadBalancer"])
    await world.until_event("MuxNotFound", "api")


async def gone(world: MuxWorld) -> bool:
    return not [each for each in await world.admin.items(MEMBERS) if "vkprovider-mux.mux." in each["metadata"]["name"]]


async def test_what_cannot_be_a_mux_or_a_channel_is_told_so(world: MuxWorld) -> None:
    # R003-011, 014, 015, 050; C49
    await world.replica(RECONCILE_INTERVAL="0.5")
    await world.mux("mux-a", spec={"selector": {"app": "x"}})
    await world.until_event("NotSupported", "mux-a")
    await world.mux("mux-b", spec={"type": "ClusterIP", "allocateLoadBalancerNodePorts": None})
    await world.until_event("NotLoadBalancer", "mux-b")
    await world.channel("odd", mux=f"{PREFIX}/a.b.c")
    await world.until_event("InvalidLoadBalancerClass", "odd")
    await world.channel("lost", mux=f"{PREFIX}/nowhere.{world.edge}")
    await world.until_event("MuxNotFound", "lost")
    await world.mux("mux")
    await world.channel("api", "http:auto")
    await world.until_forwards({20000: {"10.1.0.10:8080"}})
    await world.annotate(world.path("mux"), max_ports="many")
    await world.until_event("InvalidMaxPorts", "mux")
    await world.channel("late", "http:auto")
    await world.until_event("InvalidMaxPorts", "late")
    await world.until_forwards({20000: {"10.1.0.10:8080"}})
    for name in ("mux-a", "mux-b"):
        found = await world.admin.get(world.path(name))
        assert found is not None
        assert "finalizers" not in found["metadata"]


async def test_a_mux_of_gke_has_a_hundred_ports_at_most(world: MuxWorld) -> None:
    # R003-048-051
    await world.replica()
    await world.mux(port_range="20000-20999", spec={"loadBalancerClass": "networking.gke.io/l4-regional-external"})
    await world.until_event("GkePortLimitApplied", "mux")
    await world.channel("big", ports={f"p{n}": 3000 + n for n in range(100)})
    await world.until_ports(*range(3000, 3100))
    await world.channel("more", "http:auto")
    await world.until_event("MuxPortLimitExceeded", "more")
    assert len(await world.ports()) == 100


async def test_a_mux_serves_the_namespaces_that_it_names(world: MuxWorld) -> None:
    await world.replica()
    await world.mux(allowed_namespaces="")
    await world.channel("api", "http:auto")
    event = await world.until_event("MuxNotAllowed", "api")
    assert f"{PREFIX}/allowed-namespaces" in event["message"]
    await world.channel("own", "http:auto", namespace=world.edge)
    await world.until_ports(20000)
    await world.annotate(world.path("mux"), allowed_namespaces=f"other, {world.team}")
    await world.until_ports(20000, 20001)
    await world.annotate(world.path("mux"), allowed_namespaces=None)
    await world.until_ports(20000)
    await world.until_told("api", None)


async def test_an_explicit_request_for_a_resting_number_waits_and_then_gets_it_by_itself(world: MuxWorld) -> None:
    first = await world.replica()
    await world.mux()
    await world.channel("old", "http:auto")
    await world.until_told("old", "http:80->20000")
    await world.admin.delete(world.path("old"))
    await world.until_ports(101)
    await world.channel("new", "http:20000", backends=("10.1.0.11",))
    event = await world.until_event("MuxPortResting", "new")
    assert "rests until" in event["message"]
    await first.stop()
    await world.replica(wall_ahead_s=290)  # which looks at nothing again but when it must
    await world.until_forwards({20000: {"10.1.0.11:8080"}})


async def test_what_the_api_server_refuses_is_told(world: MuxWorld) -> None:
    await world.replica()
    await world.mux(allocation_configmap="No Name")
    event = await world.until_event("MuxWriteRefused", "mux")
    assert "No Name" in event["message"]
    await world.channel("api", "http:auto")
    await world.annotate(world.path("mux"), allocation_configmap="a-name")
    await world.until_told("api", "http:80->20000")
    assert await world.rows("a-name") == {f"{world.team}/api/http": 20000}


async def test_a_service_that_cannot_be_released_holds_up_nothing_of_others(world: MuxWorld) -> None:
    """Its tenant has given it the finalizer of a mux, and a slice that no policy lets the mux delete."""
    await world.replica(RECONCILE_INTERVAL="0.5")
    labels = {"kubernetes.io/service-name": "held", "endpointslice.kubernetes.io/managed-by": "vkprovider-mux"}
    theirs = {"metadata": {"name": "held-1", "labels": labels}, "addressType": "IPv4", "endpoints": [], "ports": []}
    await world.admin.create(f"{ENDPOINT_SLICES}/namespaces/{world.team}/endpointslices", theirs)
    meta = {"name": "held", "finalizers": [f"{PREFIX}/finalizer"]}
    await world.admin.create(world.services(world.team), {"metadata": meta, "spec": {"ports": [{"port": 80}]}})
    await world.until_event("MuxWriteRefused", "held")
    await world.channel("lost", mux=f"{PREFIX}/nowhere.{world.edge}")
    await world.until_event("MuxNotFound", "lost")

"""What is told about muxes and channels: by Events, annotations and the log (R003-006, 014, 015, 048-051, 058-074)."""

import asyncio
import base64
from functools import partial

import aiohttp
import pytest
import structlog

from tests.component.controllers.looking import eventually, when
from tests.component.mux.harness import PREFIX, Json, MuxWorld

PASSWORD = "a-password-of-the-page"


async def events(world: MuxWorld, about: str, namespace: str) -> list[Json]:
    """Return the Events about a Service, the oldest first."""
    path = f"/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name={about}"
    return sorted(await world.admin.items(path), key=lambda event: event["metadata"]["creationTimestamp"])


async def test_what_is_done_is_told_by_normal_events(world: MuxWorld) -> None:
    """R003-059, 062, 064: each says what changed."""
    await world.mux()
    await world.address("203.0.113.10")
    await world.channel("api", "http:auto", backends=("10.1.0.1",))
    await world.replica(DAEMON_QUEUE_TIMEOUT="0.5")  # it tells nothing of a mux that has no channel yet
    told = {reason: (await world.until_event(reason, "mux")) for reason in ("MuxPortsChanged", "MuxEndpointsCreated")}
    assert told["MuxPortsChanged"]["message"] == "added 20000/TCP; removed 101/TCP"
    [own] = await world.own_slices()
    assert told["MuxEndpointsCreated"]["message"] == "backends in 1 EndpointSlice"
    await world.slice("api", ("10.1.0.2",))
    told["MuxEndpointsChanged"] = await world.until_event("MuxEndpointsChanged", "mux")
    told["MuxAnnotationsUpdated"] = await world.until_event("MuxAnnotationsUpdated", "mux")
    assert told["MuxAnnotationsUpdated"]["message"].startswith("1 channel(s) | 1 port(s) | ")
    assert {event["type"] for event in told.values()} == {"Normal"}
    assert {event["involvedObject"]["kind"] for event in told.values()} == {"Service"}
    assert own["metadata"]["namespace"] == world.edge


async def test_a_placeholder_without_a_name_is_only_renamed(world: MuxWorld) -> None:
    await world.replica()
    await world.mux(spec={"ports": [{"port": 101}]})
    event = await world.until_event("MuxPortsChanged", "mux")
    assert event["message"] == "renamed 101/TCP"


async def test_a_port_without_a_name_is_told_and_its_channel_gets_none(world: MuxWorld) -> None:
    """R003-015, on creation, on a change, and at a start: the API server lets a single port have no name."""
    first = await world.replica()
    await world.mux()
    spec: Json = {
        "type": "LoadBalancer",
        "loadBalancerClass": f"{PREFIX}/mux.{world.edge}",
        "allocateLoadBalancerNodePorts": False,
        "ports": [{"port": 80}],
    }
    await world.admin.create(world.services(world.team), {"metadata": {"name": "api"}, "spec": spec})
    event = await world.until_event("InvalidPort", "api")
    assert event["message"] == f"port 80 of {world.team}/api has no name"
    assert event["type"] == "Warning"
    await world.until_ports(101)
    await world.admin.patch(world.path("api"), {"spec": {"ports": [{"port": 80, "name": "http"}]}})
    await world.until_told("api", "http:80->80")
    await first.stop()
    await world.admin.patch(world.path("api"), {"spec": {"ports": [{"port": 80, "name": None}]}})
    await world.replica()
    await world.until_ports(101)
    await world.until_told("api", None)


@pytest.mark.parametrize(
    ("asked", "reason", "told"),
    [
        (
            {"port_range": "20099-20000"},
            "InvalidPortRange",
            "annotation port-range: '20099-20000' is neither a port nor a range START-END",
        ),
        ({"port_range": "web"}, "InvalidPortRange", "annotation port-range: 'web' is neither a port nor a range"),
        ({"max_ports": "0"}, "InvalidMaxPorts", "annotation max-ports: '0' is no whole number from 1"),
    ],
)
async def test_an_annotation_of_a_mux_that_cannot_be_read(world: MuxWorld, asked: Json, reason: str, told: str) -> None:
    """R003-050, C49: new channels wait with the same reason, and get their ports when it is corrected."""
    await world.replica()
    await world.mux(**asked)
    await world.channel("api", "http:auto")
    for about in ("mux", "api"):
        event = await world.until_event(reason, about)
        assert event["message"].startswith(told)
        assert event["type"] == "Warning"
    await world.until_ports(101)
    await world.annotate(world.path("mux"), port_range="20000-20099", max_ports=None)
    await world.until_told("api", "http:80->20000")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "annotation max-ports is missing; a load balancer of GKE has 100 ports at most"),
        ({"max_ports": "500"}, "annotation max-ports is 500; a load balancer of GKE has 100 ports at most"),
    ],
)
async def test_a_mux_of_gke_by_its_annotation(world: MuxWorld, asked: Json, told: str) -> None:
    """R003-048, 049."""
    await world.replica()
    await world.mux(**asked)
    notes = {"metadata": {"annotations": {"cloud.google.com/l4-rbs": "enabled"}}}
    await world.admin.patch(world.path("mux"), notes)
    event = await world.until_event("GkePortLimitApplied", "mux")
    assert event["message"] == told
    await world.channel("big", ports={f"p{n}": 3000 + n for n in range(101)}, backends=())
    event = await world.until_event("MuxPortLimitExceeded", "big")
    assert event["message"] == f"{world.team}/big needs 101 ports; mux {world.edge}/mux has 100 at most"
    await world.until_ports(101)


async def test_a_limit_counts_who_has_ports_already_first(world: MuxWorld) -> None:
    """R003-051, C50."""
    await world.replica()
    await world.mux(max_ports="1")
    await world.channel("z", "http:auto")
    await world.until_told("z", "http:80->20000")
    await world.channel("a", "http:auto")
    await world.until_event("MuxPortLimitExceeded", "a")
    await world.until_ports(20000)
    assert await world.told("z") == "http:80->20000"


async def test_what_a_mux_shows_of_its_channels(world: MuxWorld) -> None:
    """R003-062, 063."""
    await world.replica(DAEMON_QUEUE_TIMEOUT="0.5")
    await world.mux()
    await world.channel("api", "http:auto,grpc:9090", ports={"http": 80, "grpc": 50051}, backends=())
    ports = [{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "grpc", "port": 9090, "protocol": "TCP"}]
    await world.slice("api", ("10.1.0.1", "10.1.0.2"), not_ready=("10.1.0.3",), ports=ports)
    mux = await world.admin.until(
        world.path("mux"), lambda found: "2 pod(s)" in found["metadata"]["annotations"].get(f"{PREFIX}/summary", "")
    )
    notes = mux["metadata"]["annotations"]
    assert notes[f"{PREFIX}/summary"] == "1 channel(s) | 2 port(s) | 2 pod(s) | DNS: pending"
    team, edge = world.team, world.edge
    assert notes[f"{PREFIX}/topology"].splitlines() == [
        f"{edge}/mux | DNS: pending",
        f"  {team}/api | DNS: api.{team}.svc | 2 pod(s)",
        "    http:80->20000/TCP",
        "    grpc:50051->9090/TCP",
    ]
    await world.address("203.0.113.10")
    await world.admin.until(
        world.path("mux"),
        lambda found: found["metadata"]["annotations"][f"{PREFIX}/topology"].startswith(
            f"{edge}/mux | DNS: 203.0.113.10\n"
        ),
    )
    outside = {"metadata": {"annotations": {"external-dns.alpha.kubernetes.io/hostname": "labs.example.com"}}}
    await world.admin.patch(world.path("mux"), outside)
    outside["metadata"]["annotations"]["external-dns.alpha.kubernetes.io/hostname"] = "api.example.com,b.example.com"
    await world.admin.patch(world.path("api"), outside)
    await world.admin.until(
        world.path("mux"),
        lambda found: found["metadata"]["annotations"][f"{PREFIX}/topology"].startswith(
            f"{edge}/mux | DNS: labs.example.com, 203.0.113.10\n"
            f"  {team}/api | DNS: api.example.com, b.example.com | 2 pod(s)\n"
        ),
    )


async def test_the_address_of_a_channel_follows_that_of_the_mux(world: MuxWorld) -> None:
    """R003-061: by name or by number, when it changes and when it is gone."""
    await world.replica()
    await world.mux()
    await world.channel("api", "http:auto")
    await world.until_told("api", "http:80->20000")
    for ingress in ([{"ip": "203.0.113.10", "ipMode": "VIP"}], [{"hostname": "labs.example.com"}], None):
        await world.admin.patch(f"{world.path('mux')}/status", {"status": {"loadBalancer": {"ingress": ingress}}})
        await world.admin.until(world.path("api"), partial(shows, ingress))


def shows(ingress: list[Json] | None, found: Json) -> bool:
    """Return whether a Service has these addresses."""
    shown: list[Json] | None = found["status"]["loadBalancer"].get("ingress")
    return shown == ingress


async def test_nothing_is_told_twice(world: MuxWorld) -> None:
    """R003-066: what is wrong is found with every look, and told once."""
    running = await world.replica(DAEMON_QUEUE_TIMEOUT="0.2")
    await world.mux()
    await world.channel("api", "http:none")
    await world.until_event("InvalidPortMapping", "api")
    runs = running.replica.queue.runs_total
    await when(lambda: running.replica.queue.runs_total > runs + 10, "it has looked ten times")
    found = [event for event in await events(world, "api", world.team) if event["reason"] == "InvalidPortMapping"]
    assert [event.get("count", 1) for event in found] == [1]
    kept = [event for event in running.replica.events.recent if event["reason"] == "InvalidPortMapping"]
    assert len(kept) == 1


async def test_a_dry_run_says_each_write_that_it_does_not_make(world: MuxWorld) -> None:
    """R003-072, 073: the store; ports, backends and annotations of the mux; both reports of a channel."""
    with structlog.testing.capture_logs() as logs:
        dry = await world.replica(DRYRUN_MODE="true", DAEMON_QUEUE_TIMEOUT="0.3")
        await world.mux()
        await world.address("203.0.113.10")
        await world.channel("a", "http:auto")
        await world.channel("b", "http:none")
        seen = dry.replica.memory.seen
        await when(
            lambda: [1 for each in seen.values() if each.plan.mapped and each.plan.refused and each.sources], "decided"
        )
        runs = dry.replica.queue.runs_total
        await when(lambda: dry.replica.queue.runs_total > runs + 5, "it looks again")
    edge, team = world.edge, world.team
    said = [entry["what"] for entry in logs if entry["event"] == "dry run: would write"]
    for wanted in (
        f"patch the finalizer of mux {edge}/mux",
        f"the ports of mux {edge}/mux into ConfigMap mux-port-allocations",
        f"create EndpointSlice {edge}/mux-",
        f"patch the ports of mux {edge}/mux",
        f"patch the annotations of mux {edge}/mux",
        f"patch the ports of channel {team}/a",
        f"patch the status of channel {team}/a",
    ):
        assert any(what.startswith(wanted) for what in said), (wanted, said)
    told = [entry for entry in logs if entry["event"] == "dry run: would emit an Event"]
    assert [(entry["object"], entry["reason"]) for entry in told] == [(f"Service/{team}/b", "InvalidPortMapping")]
    assert dry.writes == []
    assert await events(world, "b", team) == []
    assert len(said) < 20, "the same write is logged once"


async def test_requests_of_the_page_are_logged_and_a_mux_that_is_gone_is_not_shown(world: MuxWorld) -> None:
    """R003-070, 074."""
    running = await world.replica(DEBUG_WEB_AUTH_TOKEN=PASSWORD)
    await world.mux()
    await world.channel("api", "http:auto")
    await when(lambda: running.replica.memory.seen, "it has looked")
    headers = {"Authorization": f"Basic {base64.b64encode(f'me:{PASSWORD}'.encode()).decode()}"}
    url = f"http://127.0.0.1:{running.page.port}"
    async with aiohttp.ClientSession(url, headers=headers) as http:

        async def shown() -> list[str]:
            async with http.get("/api/state") as answer:
                return [mux["mux"] for mux in (await answer.json())["muxes"]]

        with structlog.testing.capture_logs() as logs:
            assert await shown() == [f"{world.edge}/mux"]
            async with http.get("/api/test-tcp?host=10.1.0.1&port=80") as answer:
                assert answer.status == 403
        asked = [(entry["method"], entry["path"], entry["status"]) for entry in logs if entry["event"] == "request"]
        assert asked == [("GET", "/api/state", 200), ("GET", "/api/test-tcp", 403)]
        await world.admin.delete(world.path("mux"))
        await world.admin.until_gone(world.path("mux"))

        async def none() -> bool:
            return not await shown()

        await eventually(none, "it is not shown")
    await when(lambda: not running.replica.memory.seen and not running.replica.ownership.epochs, "it is forgotten")


async def test_the_namespace_of_the_design_names_that_of_muxes(world: MuxWorld) -> None:
    """R003-006: `NAMESPACE` counts where `DEFAULT_MUX_NAMESPACE` is not set."""
    await world.replica(NAMESPACE=world.edge)
    await world.mux()
    await world.channel("api", "http:auto", mux=f"{PREFIX}/mux")
    await world.until_told("api", "http:80->20000")


async def test_a_mux_that_hangs_keeps_no_other_from_its_ports(world: MuxWorld) -> None:
    """R003-012: each has a turn of its own."""
    running = await world.replica()
    held = running.api.fault("^GET .*/configmaps/mux-a-port", count=None, first=lambda _: asyncio.Event().wait())
    for name in ("mux-a", "mux-b"):
        await world.mux(name)
        await world.channel(f"of-{name}", "http:auto", mux=f"{PREFIX}/{name}.{world.edge}")
    await world.until_told("of-mux-b", "http:80->20000")
    assert await world.told("of-mux-a") is None
    assert held.met == 1

"""Which backends a mux leads to, and which it refuses (R003-053-057; C29)."""

import asyncio

from tests.component.controllers.looking import eventually, when
from tests.component.mux.harness import LEAVING, PREFIX, RBAC, Json, MuxWorld
from tests.support.apiserver import GROUP

PORTS = [{"name": "http", "port": 8080, "protocol": "TCP"}]
WORKER = "198.51.100.7"


async def worker(world: MuxWorld) -> None:
    """Create a CML worker that has an address."""
    spec = {"url": "null://w", "address": WORKER, "credentialsSecretName": "w"}
    meta = {"name": f"w-{world.run}"}
    body = {"apiVersion": "vkprovider.io/v1alpha1", "kind": "CMLWorker", "metadata": meta, "spec": spec}
    await world.admin.create(f"{GROUP}/cmlworkers", body)


async def pod(world: MuxWorld, name: str, namespace: str, ip: str) -> Json:
    """Create a Pod that has an address; return the reference of an endpoint to it."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    account = {"metadata": {"name": "default"}}
    if not await world.admin.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"):
        await world.admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    spec = {"containers": [{"name": "c", "image": "none"}], "automountServiceAccountToken": False, "nodeName": "n1"}
    made = await world.admin.create(pods, {"metadata": {"name": name}, "spec": spec})
    status = {"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}}
    await world.admin.patch(f"{pods}/{name}/status", status)
    return {"kind": "Pod", "namespace": namespace, "name": name, "uid": made["metadata"]["uid"]}


async def test_addresses_of_others_are_no_backends_unless_a_pod_of_the_namespace_has_them(world: MuxWorld) -> None:
    running = await world.replica(DAEMON_QUEUE_TIMEOUT="0.5")
    await worker(world)
    await world.mux()
    kubernetes = await world.own_slices("kubernetes", "default")
    [api_server] = kubernetes[0]["endpoints"][0]["addresses"]
    await world.channel("api", "http:auto", backends=())
    await world.slice("api", ("10.1.0.1", WORKER, api_server), ports=PORTS)
    await world.until_forwards({20000: {"10.1.0.1:8080"}})
    messages = dict.fromkeys((WORKER, api_server), "")

    async def told() -> bool:
        selector = "fieldSelector=reason=MuxBackendRefused,involvedObject.name=api"
        events = await world.admin.items(f"/api/v1/namespaces/{world.team}/events?{selector}")
        return all(any(address in event["message"] for event in events) for address in messages)

    await eventually(told, "both are refused by Events")
    theirs = await pod(world, "theirs", world.edge, WORKER)
    forged = await world.slice("api", (WORKER,), ports=PORTS, target=theirs)
    for name in ("..", "other/log", "x" * 300):
        await world.slice("api", (WORKER,), ports=PORTS, target={"kind": "Pod", "name": name, "uid": "x"})
    other = await pod(world, "other", world.team, "10.1.0.77")
    await world.slice("api", (WORKER,), ports=PORTS, target=other)
    ours = await pod(world, "ours", world.team, WORKER)
    await world.slice("api", (WORKER,), ports=PORTS, target={**ours, "uid": "another"})
    await world.until_forwards({20000: {"10.1.0.1:8080"}})
    await world.admin.delete(forged)
    await world.slice("api", (WORKER,), ports=[{**PORTS[0], "port": 9001}], target=ours)
    await world.until_forwards({20000: {"10.1.0.1:8080", f"{WORKER}:9001"}})
    assert running.replica.queue.failures_total == 0


async def test_many_refused_addresses_are_one_event_of_their_channel(world: MuxWorld) -> None:
    running = await world.replica(DAEMON_QUEUE_TIMEOUT="0.5")
    await world.mux()
    await world.channel("api", "http:auto", backends=())
    await world.slice("api", ("10.1.0.1", *(f"240.0.0.{n}" for n in range(1, 100))), ports=PORTS)
    await world.until_forwards({20000: {"10.1.0.1:8080"}})
    selector = "fieldSelector=reason=MuxBackendRefused,involvedObject.name=api"

    async def told() -> list[str]:
        events = await world.admin.items(f"/api/v1/namespaces/{world.team}/events?{selector}")
        return [event["message"] for event in events]

    [message] = await eventually(told, "they are refused by an Event")
    assert message.startswith("backends 240.0.0.1 is ")
    assert f" and 96 more, and no Pod of namespace {world.team} has them: nothing leads there" in message
    await world.channel("web", "web:auto", ports={"web": 80})
    await world.until_ports(20000, 20001)
    assert await told() == [message]
    assert running.replica.queue.failures_total == 0


async def test_a_slice_that_lost_its_labels_is_told(world: MuxWorld) -> None:
    """The mux does not follow it any more, and cannot create another one of its name: an Event says which to delete."""
    await world.replica(DAEMON_QUEUE_TIMEOUT="0.5")
    await world.mux()
    await world.channel("api", "http:auto")
    await world.until_ports(20000)

    async def own() -> list[Json]:
        return await world.own_slices()

    [slice_] = await eventually(own, "a slice is written")
    name = slice_["metadata"]["name"]
    path = f"/apis/discovery.k8s.io/v1/namespaces/{world.edge}/endpointslices/{name}"
    taken = {"metadata": {"labels": {"endpointslice.kubernetes.io/managed-by": None}}}
    await world.admin.patch(path, taken)
    event = await world.until_event("MuxWriteRefused", "mux")
    assert f"EndpointSlice {world.edge}/{name} lacks the labels of mux {world.edge}/mux" in event["message"]
    await world.admin.delete(path)
    await eventually(own, "it is written again")


async def test_no_service_and_no_metadata_of_a_cloud_is_a_backend(world: MuxWorld) -> None:
    """A Service's address leads wherever that does, past the policies of the channel's namespace."""
    running = await world.replica(DAEMON_QUEUE_TIMEOUT="0.5", VKPROVIDER_MUX_REFUSED_ADDRESSES="10.77.0.0/30")
    await world.mux()
    await world.channel("api", "http:auto", backends=())
    later = f"{world.services(world.edge)}"
    found = {}
    for name, namespace in (("kubernetes", "default"), ("mux", world.edge), ("api", world.team)):
        service = await world.admin.get(f"{world.services(namespace)}/{name}")
        assert service is not None
        found[name] = service["spec"]["clusterIP"]
    refused = (*found.values(), "10.77.0.2", "255.255.255.255")
    await world.slice("api", ("10.1.0.1", *refused), ports=PORTS)
    await world.until_forwards({20000: {"10.1.0.1:8080"}})
    made = await world.admin.create(later, {"metadata": {"name": "late"}, "spec": {"ports": [{"port": 80}]}})
    late = made["spec"]["clusterIP"]
    await when(lambda: running.replica.index.cluster_ips[late] == 1, "the Service is known")
    await world.slice("api", ("10.1.0.2", late), ports=PORTS)
    await world.until_forwards({20000: {"10.1.0.1:8080", "10.1.0.2:8080"}})
    await world.admin.delete(f"{later}/late")
    await world.until_forwards({20000: {"10.1.0.1:8080", "10.1.0.2:8080", f"{late}:8080"}})
    assert late not in running.replica.index.cluster_ips


async def test_backends_that_are_not_ready_take_no_connections(world: MuxWorld) -> None:
    await world.replica()
    await world.mux()
    await world.channel("api", "http:auto", backends=())
    await world.slice("api", (), ports=PORTS, not_ready=("10.1.0.2",))
    await world.until_ports(20000)

    async def carried() -> list[Json]:
        return await world.own_slices()

    [own] = await eventually(carried, "a slice is written")
    assert own["endpoints"] == [{"addresses": ["10.1.0.2"], "conditions": {"ready": False}}]
    await world.until_forwards({})


async def test_a_backend_that_is_terminating_serves_until_it_has_gone(world: MuxWorld) -> None:
    """As kube-proxy does at the Service of the channel: the last Pod of a rolling update refuses no connection."""
    await world.replica()
    await world.mux()
    await world.channel("dns", "dns:auto", ports={"dns": 53}, protocol="UDP", backends=())
    udp = [{"name": "dns", "port": 5353, "protocol": "UDP"}]
    path = await world.slice("dns", (), ports=udp, not_ready=("10.1.0.1",), leaving=("10.1.0.2",))
    await world.until_ports(20000)

    async def carried() -> list[Json]:
        return [endpoint for each in await world.own_slices() for endpoint in each["endpoints"]]

    async def as_it_is() -> bool:
        return await carried() == [
            {"addresses": ["10.1.0.1"], "conditions": {"ready": False}},
            {"addresses": ["10.1.0.2"], "conditions": LEAVING},
        ]

    await eventually(as_it_is, "no flow ends, and both conditions are told")
    gone = {"endpoints": [{"addresses": ["10.1.0.2"], "conditions": {**LEAVING, "serving": False}}]}
    await world.admin.patch(path, gone)

    async def ends_flows() -> bool:
        return {"192.0.2.254"} == {
            each["addresses"][0] for each in await carried() if each["conditions"].get("ready") is not False
        }

    await eventually(ends_flows, "it serves no more")


async def test_number_and_protocol_of_a_backend_are_its_own(world: MuxWorld) -> None:
    # R003-055: a named targetPort may be another number in each slice
    await world.replica()
    await world.mux()
    await world.channel("dns", "dns:auto", ports={"dns": 53}, protocol="UDP", backends=())
    await world.slice("dns", ("10.1.0.1",), ports=[{"name": "dns", "port": 5353, "protocol": "UDP"}])
    await world.slice("dns", ("10.1.0.2",), ports=[{"name": "dns", "port": 53, "protocol": "UDP"}])
    await world.slice("dns", ("10.1.0.3",), ports=[{"name": "other", "port": 1, "protocol": "UDP"}])
    await world.until_forwards({20000: {"10.1.0.1:5353", "10.1.0.2:53"}})
    assert set(await world.ports()) == {(20000, "UDP")}


async def test_endpoints_instead_of_slices_by_a_setting(world: MuxWorld) -> None:
    binding = {
        "metadata": {"name": "vkprovider-mux-endpoints"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "vkprovider-mux-endpoints",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "vkprovider-mux", "namespace": "vkprovider-system"}],
    }
    await world.admin.create(f"{RBAC}/clusterrolebindings", binding)
    slices = await world.replica()
    await world.mux()
    await world.channel("a", "http:auto", backends=("10.1.0.1", "10.1.0.2"))
    await world.until_forwards({20000: {"10.1.0.1:8080", "10.1.0.2:8080"}})
    await slices.stop()
    running = await world.replica(VKPROVIDER_MUX_ENDPOINTS="endpoints", DAEMON_QUEUE_TIMEOUT="0.5")
    path = f"/api/v1/namespaces/{world.edge}/endpoints/mux"
    found = await world.admin.until(path, bool)
    [(_, name)] = (await world.ports()).items()
    [subset] = found["subsets"]
    assert [each["ip"] for each in subset["addresses"]] == ["10.1.0.1", "10.1.0.2"]
    assert subset["ports"] == [{"name": name, "port": 8080, "protocol": "TCP"}]
    assert found["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "svc-lb-mux",
        "app.kubernetes.io/component": "mux-endpoints",
    }
    assert found["metadata"]["annotations"] == {
        f"{PREFIX}/managed": "true",
        f"{PREFIX}/mux": f"{world.edge}/mux",
        f"{PREFIX}/channels": f'["{world.team}/a"]',
    }

    async def withdrawn() -> bool:
        return not await world.own_slices()

    await eventually(withdrawn, "the slices are gone")
    await world.slice("a", (), name="a-later", ports=PORTS, not_ready=("10.1.0.9",))
    await world.slice("a", (), name="a-none", ports=PORTS)
    found = await world.admin.until(path, lambda each: "10.1.0.9" in str(each))
    # R003-054: one is not ready, and a slice without addresses has no subset
    assert sorted(list(each) for each in found["subsets"]) == [["addresses", "ports"], ["notReadyAddresses", "ports"]]
    await world.admin.patch(path, {"subsets": None})
    await world.admin.until(path, lambda each: each.get("subsets"))
    await asyncio.sleep(1)  # the Event about it is written by then
    runs, before = running.replica.queue.runs_total, len(running.writes)
    await when(lambda: running.replica.queue.runs_total > runs + 5, "it looks again")
    assert running.writes[before:] == []
    await world.admin.delete(world.path("a"))
    await world.admin.until(path, lambda each: not each.get("subsets"))
    await world.admin.delete(world.path("mux"))
    await world.admin.until_gone(path)
    await world.admin.delete(f"{RBAC}/clusterrolebindings/vkprovider-mux-endpoints")

"""Who may call the kubelet API: certificates, tokens, verbs; and what a Node declares of it."""

import asyncio
import json
from datetime import timedelta

import aiohttp
import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import is_ready
from tests.component.kubelet.credentials import Credentials, base_of, client

PATHS = (
    "/pods",
    "/runningpods/",
    "/healthz",
    "/healthz/ping",
    "/configz",
    "/metrics",
    "/metrics/resource",
    "/stats/summary",
    "/containerLogs/default/p/c",
    "/exec/default/p/c?command=x&output=1",
    "/attach/default/p/c?output=1",
    "/portForward/default/p",
    "/run/default/p/c",
    "/logs/",
    "/debug/pprof/",
    "/nothing/of/the/kind",
    "/",
)
STREAMS = ("/exec/default/p/c?command=x&output=1", "/attach/default/p/c?output=1", "/portForward/default/p")


def kubelet_of(node: dict[str, object]) -> object:
    return node.get("status", {}).get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port")  # type: ignore[attr-defined]


async def test_a_node_declares_its_kubelet_api_and_withdraws_it_with_its_owner(world: World) -> None:
    running = await world.replica()
    first, second = await world.worker(), await world.worker()
    nodes = [await world.node(name, is_ready) for name in (first, second)]
    for node in nodes:
        assert {"type": "InternalIP", "address": "127.0.0.1"} in node["status"]["addresses"]
        assert node["status"]["declaredFeatures"] == ["ExtendWebSocketsToKubelet"]
    ports = [kubelet_of(node) for node in nodes]
    assert len(set(ports)) == 2
    await running.stop()
    for name, port in zip((first, second), ports, strict=True):
        node = await world.node(name, lambda found: not kubelet_of(found))
        assert "InternalIP" not in {a["type"] for a in node["status"]["addresses"]}
        assert "declaredFeatures" not in node["status"]
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)  # type: ignore[arg-type]


async def test_a_node_that_changes_hands_declares_its_new_owner(world: World) -> None:
    one = await world.replica()
    worker = await world.worker()
    before = kubelet_of(await world.node(worker, is_ready))
    two = await world.replica()
    await one.stop()
    await world.node(worker, lambda node: kubelet_of(node) not in {before, 0, None})
    assert len(two.replica.kubelet.listeners) == 1
    assert len(one.replica.kubelet.listeners) == 0


async def test_a_replica_without_the_kubelet_api_declares_nothing(world: World) -> None:
    await world.replica(VKPROVIDER_KUBELET="false", intervals={"workers": {"probe_s": 0.4}})
    node = await world.node(await world.worker(), is_ready)
    assert not kubelet_of(node)
    assert "InternalIP" not in {a["type"] for a in node["status"]["addresses"]}


async def test_whoever_the_cluster_does_not_know_is_refused_on_every_path(
    world: World, credentials: Credentials
) -> None:
    await world.replica()
    node = await world.node(await world.worker(), is_ready)
    for token in ("", "made-up", "eyJhbGciOiJub25lIn0.e30."):
        async with client(node, credentials.nobody(), token) as call:
            for path in PATHS:
                for method in ("GET", "POST"):
                    answer = await call(path, method)
                    assert (answer.status, answer.text) == (401, "Unauthorized\n"), (path, method, token)


async def test_whoever_has_no_rights_is_refused_on_every_path(world: World, credentials: Credentials) -> None:
    await world.replica()
    node = await world.node(await world.worker(), is_ready)
    token = await credentials.token("nobody")
    for tls, bearer in ((credentials.nobody(), token), (credentials.certificate("eve", "tenants"), "")):
        async with client(node, tls, bearer) as call:
            for path in PATHS:
                answer = await call(path)
                assert answer.status == 403, path
            streams = [(await call(path)).text for path in STREAMS]
            metrics, pods = (await call("/metrics/resource")).text, (await call("/pods")).text
            user = "eve" if not bearer else f"system:serviceaccount:{world.namespace}:nobody"
            refusal = f"Forbidden (user={user}, verb=create, resource=nodes, subresource(s)=[proxy])\n"
            assert streams == [refusal] * 3
            assert metrics == f"Forbidden (user={user}, verb=get, resource=nodes, subresource(s)=[metrics])\n"
            assert pods == f"Forbidden (user={user}, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"


async def test_a_foreign_or_expired_certificate_ends_the_handshake(world: World, credentials: Credentials) -> None:
    await world.replica()
    node = await world.node(await world.worker(), is_ready)
    group = "system:masters"
    for tls in (
        credentials.certificate("admin", group, foreign=True),
        credentials.certificate("admin", group, ends=-timedelta(seconds=1)),
        credentials.certificate("admin", group, begins=timedelta(minutes=10)),
    ):
        async with client(node, tls) as call:
            for path in PATHS:
                with pytest.raises(aiohttp.ClientError):
                    await call(path)
    async with client(node, credentials.certificate("admin", group)) as call:
        assert (await call("/healthz")).status == 200


async def test_a_certificate_that_expires_on_an_open_connection_counts_no_more(
    world: World, credentials: Credentials
) -> None:
    await world.replica()
    node = await world.node(await world.worker(), is_ready)
    async with client(node, credentials.apiserver()) as call:
        assert (await call("/healthz")).status == 200
        world.ahead_s = 400 * 86400.0
        assert (await call("/healthz")).status == 401


async def test_to_read_the_proxy_opens_no_console(world: World, credentials: Credentials) -> None:
    """A stock kubelet grants exec by WebSocket to whoever may get nodes/proxy."""
    await world.replica()
    worker = await world.worker()
    node = await world.node(worker, is_ready)
    pod = await world.pod(await world.define(), worker)
    await credentials.grant("reader", ["nodes/proxy"], ["get"])
    async with client(node, credentials.certificate("reader")) as call:
        assert (await call("/pods")).status == 200
        for stream in ("exec", "attach"):
            upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
            answer = await call(f"/{stream}/{world.namespace}/{pod.name}/lab?output=1&command=x", **upgrade)
            assert answer.status == 403
        assert (await call(f"/portForward/{world.namespace}/{pod.name}")).status == 403


@pytest.mark.parametrize(
    ("right", "allowed", "refused"),
    [
        ("nodes/pods", ["/pods", "/runningpods"], ["/healthz", "/configz", "/metrics/resource", "/stats/summary"]),
        ("nodes/healthz", ["/healthz"], ["/pods", "/configz", "/metrics/resource"]),
        ("nodes/configz", ["/configz"], ["/pods", "/healthz", "/metrics/resource"]),
        ("nodes/metrics", ["/metrics/resource", "/metrics"], ["/pods", "/stats/summary", "/healthz"]),
        ("nodes/stats", ["/stats/summary"], ["/metrics/resource", "/pods"]),
        ("nodes/proxy", ["/pods", "/healthz", "/configz"], ["/metrics/resource", "/stats/summary"]),
    ],
)
async def test_fine_grained_rights(
    world: World, credentials: Credentials, right: str, allowed: list[str], refused: list[str]
) -> None:
    await world.replica()
    node = await world.node(await world.worker(), is_ready)
    token = await credentials.token("agent", [right], ["get"])
    async with client(node, credentials.nobody(), token) as call:
        assert [(await call(path)).status for path in allowed] == [200] * len(allowed)
        assert [(await call(path)).status for path in refused] == [403] * len(refused)


async def test_the_pods_of_a_node_are_its_own(world: World, credentials: Credentials) -> None:
    await world.replica()
    here, there = await world.worker(), await world.worker()
    definition = await world.define()
    mine, other = await world.pod(definition, here), await world.pod(definition, there)
    await mine.ready()
    await other.ready()
    node = await world.node(here, is_ready)
    async with client(node, credentials.apiserver()) as call:
        whole = json.loads((await call("/pods")).text)
        assert (whole["kind"], [p["metadata"]["name"] for p in whole["items"]]) == ("PodList", [mine.name])
        assert whole["items"][0]["spec"]["tolerations"], "all of the Pod, not what a replica needs of it"
        running = json.loads((await call("/runningpods/")).text)
        assert [p["metadata"]["uid"] for p in running["items"]] == [mine.uid]
        for path in ("/nothing", "/run/a/b/c"):
            assert (await call(path)).status == 404
    assert base_of(node) != base_of(await world.node(there))

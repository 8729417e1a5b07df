"""The client: what it sends byte by byte, and what it makes of every kind of answer."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.client_proto import ResponseHandler

from tests.component.kube.conftest import until
from tests.component.kube.pods import Pods
from tests.support.scripted import ScriptedServer, kubeconfig_of, refuse
from vkprovider.platform import errors
from vkprovider.platform.kube.client import KubeClient, resource_of
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.kube.http import transport
from vkprovider.platform.settings import KubeSettings

PODS = "/api/v1/pods"
POD = "/api/v1/namespaces/default/pods/a"


@pytest.fixture
def client(kube: KubeClient) -> KubeClient:
    """A client of the scripted server; `real` names one of the real API server."""
    return kube


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        (POD, "pods"),
        (PODS, "pods"),
        (f"{POD}/status", "pods/status"),
        ("/api/v1/nodes/a/status", "nodes/status"),
        ("/api/v1/namespaces", "namespaces"),
        ("/api/v1/namespaces/a", "namespaces"),
        ("/apis/coordination.k8s.io/v1/namespaces/a/leases/b", "leases"),
        ("/apis/vkprovider.io/v1alpha1/cmlworkers/a/status", "cmlworkers/status"),
        ("/version", "other"),
        ("nonsense", "other"),
    ],
)
def test_resource_of_a_path(path: str, resource: str) -> None:
    assert resource_of(path) == resource


async def test_writes_are_counted_by_resource_and_verb(server: ScriptedServer, client: KubeClient) -> None:
    await client.get(POD)
    await client.create(PODS, b"{}")
    await client.merge_patch(f"{POD}/status", b"{}")
    server.next(refuse(409, "no"))
    with pytest.raises(errors.Conflict):
        await client.strategic_patch(f"{POD}/status", b"{}")
    await client.delete(POD)
    assert client.writes == {("pods", "create"): 1, ("pods/status", "patch"): 2, ("pods", "delete"): 1}


async def test_what_is_sent(server: ScriptedServer, client: KubeClient) -> None:
    await client.get(PODS, {"labelSelector": "a in (b,c)"})
    await client.create(PODS, b'{"a":1}')
    await client.replace(POD, b'{"a":2}')
    await client.merge_patch(POD, b'{"a":3}')
    await client.strategic_patch(f"{POD}/status", b'{"a":4}', params={"dryRun": "All"})
    sent = [(s.method, s.path, s.query, s.headers.get("Content-Type"), s.body) for s in server.seen]
    assert sent == [
        ("GET", PODS, {"labelSelector": "a in (b,c)"}, None, b""),
        ("POST", PODS, {}, "application/json", b'{"a":1}'),
        ("PUT", POD, {}, "application/json", b'{"a":2}'),
        ("PATCH", POD, {}, "application/merge-patch+json", b'{"a":3}'),
        ("PATCH", f"{POD}/status", {"dryRun": "All"}, "application/strategic-merge-patch+json", b'{"a":4}'),
    ]
    for seen in server.seen:
        assert seen.headers["Authorization"] == "Bearer abc"
        assert seen.headers["User-Agent"].startswith("vkprovider/")
        assert seen.headers["Accept"] == "application/json"
        assert seen.headers["Accept-Encoding"] == "identity"


async def test_brief_answers_are_asked_for(server: ScriptedServer, client: KubeClient) -> None:
    await client.replace(POD, b"{}", brief=True)
    await client.delete(POD, brief=True)
    accepted = [seen.headers.getall("Accept") for seen in server.seen]
    assert accepted == [["application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"]] * 2


async def test_deletion_options(server: ScriptedServer, client: KubeClient) -> None:
    await client.delete(POD)
    await client.delete(POD, uid="u1", grace_s=0, propagation="Background", resource_version="7")
    kind = {"apiVersion": "v1", "kind": "DeleteOptions"}
    assert [s.json for s in server.seen] == [
        kind,
        {
            **kind,
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Background",
            "preconditions": {"uid": "u1", "resourceVersion": "7"},
        },
    ]


async def test_version_and_namespace(server: ScriptedServer, client: KubeClient, real: KubeClient, pods: Pods) -> None:
    version = (await pods.admin.request("GET", "/version"))["gitVersion"]
    assert await real.version() == version
    assert client.namespace == "labs"
    assert client.server == server.url
    assert client.context == "test"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, errors.Invalid),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Gone),
        (413, errors.Invalid),
        (422, errors.Invalid),
        (429, errors.Throttled),
        (500, errors.Unavailable),
        (503, errors.Unavailable),
        (504, errors.Unavailable),
    ],
)
async def test_refusals_become_our_errors_with_the_servers_words(
    server: ScriptedServer, client: KubeClient, status: int, error: type[errors.OutsideError]
) -> None:
    server.next(refuse(status, 'pods "a" said no'), times=2)
    with pytest.raises(error) as caught:
        await client.get(POD)
    assert type(caught.value) is error
    assert (caught.value.message, caught.value.status) == ('pods "a" said no', status)
    assert client.errors == {str(status): 1}


@pytest.mark.parametrize(("header", "after_s"), [("7", 7), ("0", 0), ("soon", 1), ("-5", 0), ("9999999", 300)])
async def test_retry_after_is_told(server: ScriptedServer, client: KubeClient, header: str, after_s: float) -> None:
    server.next(refuse(429, "busy", Retry_After=header))
    with pytest.raises(errors.Throttled) as caught:
        await client.get(POD)
    assert caught.value.after_s == after_s


@pytest.mark.parametrize("body", [b"<html>Bad Gateway</html>", b"", b"\xff\x00", b'{"message": 7}', b"[]"])
async def test_a_refusal_that_is_no_status_names_the_request(
    server: ScriptedServer, client: KubeClient, body: bytes
) -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(status=502, body=body)

    server.next(page)
    with pytest.raises(errors.Unavailable, match=f"GET {POD}: HTTP 502"):
        await client.get(POD)


async def hang(_: web.Request) -> web.Response:
    await asyncio.sleep(3600)
    return web.Response()


async def reset(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def half_a_body(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"kind":')
    assert request.transport is not None
    request.transport.close()
    return response


async def moved(_: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": "http://198.51.100.1/"}, body=b"elsewhere")


async def test_no_answer_in_time(server: ScriptedServer, client: KubeClient) -> None:
    server.next(hang)
    with pytest.raises(errors.DeadlineExceeded, match=r"within 0\.05 s"):
        await client.request("PATCH", POD, body=b"{}", timeout_s=0.05)
    await client.get(POD)


async def test_half_a_body_is_no_answer_in_time(server: ScriptedServer, client: KubeClient) -> None:
    async def slow_body(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"kind":')
        await asyncio.sleep(3600)
        return response

    server.next(slow_body)
    with pytest.raises(errors.DeadlineExceeded):
        await client.request("GET", POD, timeout_s=0.05)


@pytest.mark.parametrize("fault", [reset, half_a_body])
async def test_a_broken_connection_is_unavailable(
    server: ScriptedServer, client: KubeClient, fault: Callable[[web.Request], Awaitable[web.Response]]
) -> None:
    server.next(fault)
    with pytest.raises(errors.Unavailable, match=f"PATCH {POD}: .*is the API server at http://127"):
        await client.merge_patch(POD, b"{}")
    await client.merge_patch(POD, b"{}")


async def test_nobody_listens(client: KubeClient, server: ScriptedServer) -> None:
    await server.stop()
    with pytest.raises(errors.Unavailable, match="up and reachable"):
        await client.get(POD)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_redirect_is_not_followed_and_nothing_was_done(
    server: ScriptedServer, client: KubeClient, method: str
) -> None:
    server.next(moved)
    with pytest.raises(errors.Invalid, match=f"{method} {POD}: redirected to http://198.51.100.1/; the kubeconfig"):
        await client.request(method, POD)
    assert len(server.seen) == 1


async def test_a_redirected_watch_is_refused(server: ScriptedServer, client: KubeClient) -> None:
    server.next(moved)
    with pytest.raises(errors.Invalid, match="redirected"):
        async with client.stream(PODS) as batches:
            assert [batch async for batch in batches] == []


async def test_requests_that_give_up_before_their_turn_do_not_use_up_the_rate(
    server: ScriptedServer, kubeconfig: str
) -> None:
    client = await KubeClient.connect(KubeSettings(kubeconfig=kubeconfig, qps=20, burst=2), timeout_s=0.5)
    try:
        found = await asyncio.gather(*(client.get(POD) for _ in range(200)), return_exceptions=True)
        refused = [error for error in found if isinstance(error, errors.Throttled)]
        assert len(refused) > 150
        assert any("raise VKPROVIDER_API_QPS" in str(error) for error in refused)
        waiting = [asyncio.create_task(client.get(POD)) for _ in range(5)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.sleep(0.1)
        assert await client.get(POD) == b"{}"
        burst = 2  # so many of the five may have been sent before they were cancelled
        assert len(server.seen) <= 200 - len(refused) + burst + 1
    finally:
        await client.close()


async def test_requests_in_flight_are_bounded_but_for_leases(server: ScriptedServer, kubeconfig: str) -> None:
    client = await KubeClient.connect(KubeSettings(kubeconfig=kubeconfig, in_flight_max=3))
    held, free = 0, asyncio.Event()

    async def hold(_: web.Request) -> web.Response:
        nonlocal held
        held += 1
        await free.wait()
        return web.Response(body=b"{}")

    server.next(hold, times=6, when="PATCH")
    tasks = [asyncio.create_task(client.merge_patch(POD, b"{}")) for _ in range(5)]
    await until(lambda: held == 3)
    await asyncio.wait_for(client.request("PUT", POD, body=b"{}", lane=Lane.AT_ONCE), 5)
    assert held == 3
    free.set()
    await asyncio.gather(*tasks)
    assert held == 5
    await client.close()


async def test_requests_are_paced(kubeconfig: str, server: ScriptedServer) -> None:
    client = await KubeClient.connect(KubeSettings(kubeconfig=kubeconfig, qps=50, burst=5))
    began_s = asyncio.get_running_loop().time()
    await asyncio.gather(*(client.get(POD) for _ in range(15)))
    assert asyncio.get_running_loop().time() - began_s >= 0.19
    await client.request("GET", POD, lane=Lane.AT_ONCE, timeout_s=5)
    assert len(server.seen) == 16
    await client.close()


async def test_waiting_for_a_turn_counts_towards_the_deadline(kubeconfig: str, server: ScriptedServer) -> None:
    client = await KubeClient.connect(KubeSettings(kubeconfig=kubeconfig, qps=0.1, burst=1))
    await client.get(POD)
    with pytest.raises(errors.Throttled):
        await client.request("GET", POD, timeout_s=0.05)
    assert len(server.seen) == 1
    await client.close()


async def test_a_request_that_waits_for_the_end_of_a_pause_does_not_say_that_nobody_answered(
    client: KubeClient, server: ScriptedServer
) -> None:
    server.next(refuse(429, "too many requests", **{"Retry-After": "60"}))
    with pytest.raises(errors.Throttled):
        await client.get(POD)
    with pytest.raises(errors.Throttled, match=r"not sent within 0\.05 s.* asked for a pause"):
        await client.request("GET", POD, timeout_s=0.05)
    assert len(server.seen) == 1
    assert client.errors == {"429": 1}


async def test_the_guard_is_asked_after_the_wait_for_a_turn(server: ScriptedServer, kubeconfig: str) -> None:
    client = await KubeClient.connect(KubeSettings(kubeconfig=kubeconfig, in_flight_max=1))
    fenced = False

    def guard() -> None:
        if fenced:
            raise errors.Fenced("not ours any more")

    server.next(hang)
    first = asyncio.create_task(client.merge_patch(POD, b"{}", guard=guard))
    await until(lambda: len(server.seen) == 1)
    second = asyncio.create_task(client.merge_patch(POD, b"{}", guard=guard))
    await asyncio.sleep(0)
    fenced = True
    first.cancel()
    with pytest.raises(errors.Fenced):
        await second
    assert len(server.seen) == 1
    await client.close()


async def test_connections_are_used_again(server: ScriptedServer, client: KubeClient) -> None:
    ports: set[object] = set()

    async def note(request: web.Request) -> web.Response:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername"))
        return web.Response(body=b"{}")

    server.next(note, times=20)
    for _ in range(20):
        await client.merge_patch(POD, b"{}")
    assert len(ports) == 1


def idle(client: KubeClient) -> list[ResponseHandler]:
    """Return the connections that no request is on."""
    session = client._transport._session
    assert session is not None
    assert session.connector is not None
    return [connection for connections in session.connector._conns.values() for connection, _ in connections]


async def test_dead_peers_are_noticed(client: KubeClient) -> None:
    await client.get(POD)
    (connection,) = idle(client)
    assert connection.transport is not None
    sock = connection.transport.get_extra_info("socket")
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_a_stream_gives_whole_lines(server: ScriptedServer, client: KubeClient) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in (b"on", b"e\ntwo\nth", b"r", b"ee\n", b"\n", b"unfinished"):
            await response.write(piece)
            await asyncio.sleep(0.01)
        return response

    server.next(drip)
    async with client.stream("/log") as batches:
        lines = [line async for batch in batches for line in batch]
    assert lines == [b"one", b"two", b"three", b""]


async def test_a_stream_that_is_refused(server: ScriptedServer, client: KubeClient) -> None:
    server.next(refuse(410, "too old"))
    with pytest.raises(errors.Gone, match="too old"):
        async with client.stream("/log"):
            pytest.fail("it was opened")


@pytest.mark.parametrize("answers", [True, False])
async def test_a_silent_stream_is_given_up(server: ScriptedServer, client: KubeClient, *, answers: bool) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if answers:
            await response.prepare(request)
        await asyncio.sleep(3600)
        return response

    server.next(silent)
    with pytest.raises(errors.DeadlineExceeded, match="nothing heard"):
        async with client.stream("/log", inactivity_s=0.05) as batches:
            await anext(batches)


async def test_a_stream_left_early_is_closed(pods: Pods, real: KubeClient) -> None:
    await pods.add("a")
    async with real.stream(pods.path, {"watch": "1", "resourceVersion": "0"}) as batches:
        (line,) = await anext(batches)
        assert json.loads(line)["type"] == "ADDED"
        assert pods.api.watching == 1
    await until(lambda: pods.api.watching == 0)


async def test_large_bodies_pass(server: ScriptedServer, client: KubeClient) -> None:
    body = b'{"data":"' + b"x" * 3_000_000 + b'"}'
    assert await client.replace(POD, body) == body
    assert server.seen[0].body == body


async def test_a_stream_that_nobody_reads_is_held_back(server: ScriptedServer, client: KubeClient) -> None:
    sent = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(64):
            await response.write(b"x" * (1 << 20) + b"\n")
            sent += 1
        return response

    server.next(flood)
    async with client.stream("/log") as batches:
        lines = len(await anext(batches))
        still = -1
        while still != sent:
            still = sent
            await asyncio.sleep(0.1)
        assert sent < 40
        lines += sum([len(batch) async for batch in batches])
    assert lines == 64


async def test_silence_is_not_the_servers_while_nobody_reads(server: ScriptedServer, client: KubeClient) -> None:
    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(32):
            await response.write(b"x" * (1 << 20) + b"\n")
        return response

    server.next(flood)
    async with client.stream("/log", inactivity_s=0.5) as batches:
        lines = len(await anext(batches))
        await asyncio.sleep(1.5)
        lines += sum([len(batch) async for batch in batches])
    assert lines == 32


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "junk",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        OK + b"Content-Length: many\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nabc",
        OK + b"X: " + b"x" * 100_000,
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        OK + b"Content-Length: 5\r\n\r\nabc",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PATCH"])
async def test_what_is_no_answer_is_told_apart(junk: bytes, method: str, tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(junk)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(kubeconfig_of(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"))
    client = await KubeClient.connect(KubeSettings(kubeconfig=str(kubeconfig)))
    with pytest.raises(errors.Unavailable, match=f"{method} {POD}: .*is the API server at http://127"):
        await client.request(method, POD)
    await client.close()
    listening.close()


async def test_a_connection_closed_while_idle_is_not_used_again(server: ScriptedServer, client: KubeClient) -> None:
    async def closing(request: web.Request) -> web.Response:
        assert request.transport is not None
        asyncio.get_running_loop().call_later(0.01, request.transport.close)
        return web.Response(body=b"{}")

    for _ in range(3):
        server.next(closing)
        await client.merge_patch(POD, b"{}")
        await until(lambda: not any(connection.is_connected() for connection in idle(client)))
    await client.merge_patch(POD, b"{}")
    assert not client.errors


@pytest.mark.parametrize(
    ("method", "repeated"), [("GET", True), ("PUT", False), ("DELETE", False), ("PATCH", False), ("POST", False)]
)
async def test_a_connection_closed_just_as_it_is_used(
    server: ScriptedServer, client: KubeClient, method: str, *, repeated: bool
) -> None:
    await client.get(POD)
    server.next(reset)
    if repeated:
        await client.request(method, POD)
        assert len(server.seen) == 3
    else:
        with pytest.raises(errors.Unavailable):
            await client.request(method, POD)
        assert len(server.seen) == 2


async def test_idle_connections_are_closed(
    server: ScriptedServer, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "_IDLE_S_MAX", 0.1)
    client = await KubeClient.connect(KubeSettings(kubeconfig=kubeconfig))
    free = asyncio.Event()

    async def hold(_: web.Request) -> web.Response:
        await free.wait()
        return web.Response(body=b"{}")

    server.next(hold, times=5)
    tasks = [asyncio.create_task(client.get(POD)) for _ in range(5)]
    await until(lambda: len(server.seen) == 5)
    free.set()
    await asyncio.gather(*tasks)
    assert len(idle(client)) == 5
    await until(lambda: not idle(client))
    await client.get(POD)
    await client.close()


@pytest.mark.parametrize("path", ["/api/v1/pods?a=b c", "/api/v1/pods\r\nX-Evil: 1", "/api/v1/p\u00f6ds"])
async def test_a_path_cannot_smuggle_a_header(server: ScriptedServer, client: KubeClient, path: str) -> None:
    with pytest.raises(errors.Invalid, match="is not a valid path"):
        await client.get(path)
    assert not server.seen


async def test_a_closed_client_sends_nothing(server: ScriptedServer, client: KubeClient) -> None:
    server.next(hang)
    running = asyncio.create_task(client.get(POD))
    await until(lambda: server.seen)
    await client.close()
    with pytest.raises(errors.Unavailable):
        await running
    with pytest.raises(errors.Unavailable, match="has been closed"):
        await client.get(POD)
    assert len(server.seen) == 1

"""The debug page of muxes, in process, on the real API server (R003-007, 008, 068-071; C47)."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.component.controllers.looking import when
from tests.component.mux.harness import MuxWorld, Running

PASSWORD = "a-password-of-the-page"
PATHS = ("/", "/api/state", "/api/topology", "/api/config", "/api/test-tcp")


@contextlib.asynccontextmanager
async def client(running: Running, **how: object) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{running.page.port}", **how) as http:  # type: ignore[arg-type]
        yield http


def basic(password: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'anyone:{password}'.encode()).decode()}"}


async def served(world: MuxWorld) -> Running:
    running = await world.replica(DEBUG_WEB_AUTH_TOKEN=PASSWORD)
    await world.mux()
    await world.address("203.0.113.10")
    await world.channel("api", "http:auto", backends=("10.1.0.1",))
    await world.until_told("api", "http:80->20000")
    await world.channel("odd", "http:many")
    await world.until_event("InvalidPortMapping", "odd")
    return running


async def test_nobody_unknown_sees_anything_and_every_answer_has_the_headers(world: MuxWorld) -> None:
    running = await served(world)
    async with client(running) as http:
        async with http.get("/healthz") as answer:
            assert (answer.status, await answer.json()) == (200, {"status": "ok"})
            assert answer.headers["X-Frame-Options"] == "DENY"
        for path in PATHS:
            for headers in ({}, {"Authorization": "Bearer made-up"}, {"Authorization": "Basic !!"}):
                async with http.get(path, headers=headers) as answer:
                    assert answer.status == 401, path
                    assert answer.headers["X-Content-Type-Options"] == "nosniff"
                    assert answer.headers["Cache-Control"] == "no-store"
                    assert "api" not in await answer.text()
        async with http.get("/api/state") as answer:
            assert answer.headers["WWW-Authenticate"].startswith("Basic ")
        async with http.get("/api/state", headers=basic("wrong-password-here")) as answer:
            assert answer.status == 401
        async with http.post("/api/state", headers=basic(PASSWORD)) as answer:
            assert answer.status == 405


async def test_the_password_shows_all_muxes(world: MuxWorld) -> None:
    running = await served(world)
    async with client(running, headers=basic(PASSWORD)) as http:
        async with http.get("/api/state") as answer:
            state = await answer.json()
        [mux] = state["muxes"]
        assert mux["mux"] == f"{world.edge}/mux"
        assert (mux["channels"], mux["ports"], mux["backends"]) == (1, 1, {"ready": 1, "not_ready": 0})
        [refused] = mux["refused"]
        assert (refused["channel"], refused["reason"]) == (f"{world.team}/odd", "InvalidPortMapping")
        reasons = [event["reason"] for event in state["events"]]
        assert "MuxPortsChanged" in reasons
        assert reasons.index("InvalidPortMapping") < reasons.index("MuxPortsChanged"), "the newest first"
        async with http.get("/api/topology") as answer:
            [mux] = (await answer.json())["muxes"]
        [channel] = mux["channels"]
        [port] = channel["ports"]
        assert port["outside_port"] == 20000
        assert port["backends"] == [{"address": "10.1.0.1", "port": 8080, "ready": True}]
        async with http.get("/api/config") as answer:
            config = await answer.json()
        assert (config["actions_enabled"], config["dry_run"], config["endpoints"]) == (False, False, "slices")
        async with http.get("/") as answer:
            text = await answer.text()
            assert answer.content_type == "text/html"
            assert "script" not in answer.headers["Content-Security-Policy"]
        assert f"<td>{world.team}/api</td><td>http:80</td><td>20000/TCP</td><td>10.1.0.1:8080</td>" in text
        assert PASSWORD not in text


async def test_a_token_of_the_cluster_shows_the_muxes_that_its_user_may_read(world: MuxWorld) -> None:
    running = await served(world)
    accounts = f"/api/v1/namespaces/{world.team}/serviceaccounts"
    tokens = {}
    for name in ("reader", "stranger"):
        await world.admin.create(accounts, {"metadata": {"name": name}})
        asked = {"spec": {"audiences": ["mux.vkprovider.io"], "expirationSeconds": 3600}}
        made = await world.admin.create(f"{accounts}/{name}/token", asked)
        tokens[name] = made["status"]["token"]
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{world.edge}"
    rules = [{"apiGroups": [""], "resources": ["services"], "verbs": ["get"]}]
    await world.admin.create(f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": rules})
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": world.team}],
    }
    await world.admin.create(f"{rbac}/rolebindings", binding)
    shown = {}
    async with client(running) as http:
        for name, token in tokens.items():
            async with http.get("/api/state", headers={"Authorization": f"Bearer {token}"}) as answer:
                assert answer.status == 200
                shown[name] = await answer.json()
    assert [mux["mux"] for mux in shown["reader"]["muxes"]] == [f"{world.edge}/mux"]
    assert {event["mux"] for event in shown["reader"]["events"]} == {f"{world.edge}/mux"}
    assert shown["stranger"] == {"muxes": [], "events": []}


async def test_a_token_for_the_page_of_the_provider_is_none_for_this_one(world: MuxWorld) -> None:
    """Each page reads the tokens that are sent to it: one that is stolen here opens nothing there."""
    running = await world.replica()
    token = world.server.token("vkprovider", "--audience=vkprovider.io")
    async with client(running, headers={"Authorization": f"Bearer {token}"}) as http, http.get("/api/state") as answer:
        assert answer.status == 401
        assert "it must be meant for mux.vkprovider.io" in await answer.text()
    other = await world.replica(VKPROVIDER_MUX_AUDIENCES="vkprovider.io elsewhere")
    async with client(other, headers={"Authorization": f"Bearer {token}"}) as http, http.get("/api/state") as answer:
        assert answer.status == 200


async def test_a_probe_goes_to_backends_of_visible_muxes_only_and_only_when_actions_are_on(world: MuxWorld) -> None:
    off = await served(world)
    query = "host=10.1.0.1&port=8080"
    async with client(off, headers=basic(PASSWORD)) as http, http.get(f"/api/test-tcp?{query}") as answer:
        assert answer.status == 403
    await off.stop()
    listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    on = await world.replica(DEBUG_WEB_AUTH_TOKEN=PASSWORD, DEBUG_WEB_ACTIONS_ENABLED="true")
    await world.address("127.0.0.1")  # as the address of the load balancer: no channel may have it as a backend
    await world.channel("listening", f"http:{port}")
    await world.until_ports(20000, port)
    seen = on.replica.memory.seen
    await when(lambda: [each for each in seen.values() if len(each.plan.mapped) == 2], "the page knows it")
    async with client(on, headers=basic(PASSWORD)) as http:
        for query, status in (
            (f"host=127.0.0.1&port={port}", 200),
            (f"host=127.0.0.1&port={port}&resource={world.edge}/mux", 200),
            (f"host=127.0.0.1&port={port}&resource={world.edge}/other", 403),
            ("host=127.0.0.1&port=22", 403),
            ("host=127.0.0.1&port=0", 400),
            ("host=127.0.0.1&port=x", 400),
            ("host=127.0.0.1&port=70000", 400),
            ("port=80", 400),
        ):
            async with http.get(f"/api/test-tcp?{query}") as answer:
                assert answer.status == status, query
                found = await answer.json()
                if status == 200:
                    assert found["success"] is True
        listener.close()
        await listener.wait_closed()
        async with http.get(f"/api/test-tcp?host=127.0.0.1&port={port}") as answer:
            assert (await answer.json())["success"] is False


@pytest.mark.parametrize("path", PATHS)
async def test_the_page_can_be_off(world: MuxWorld, path: str) -> None:
    running = await world.replica(DEBUG_WEB_ENABLED="false", DEBUG_WEB_AUTH_TOKEN=PASSWORD)
    async with client(running, headers=basic(PASSWORD)) as http:
        async with http.get(path) as answer:
            assert answer.status == 404
        async with http.get("/healthz") as answer:
            assert answer.status == 200

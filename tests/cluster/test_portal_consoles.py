"""Consoles in a browser through the stock kubelet API: a learner's lab, a noisy device, an instructor."""

import asyncio
import http.client
import json
import os
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.consolebench import Screen
from tests.support.cluster import Cluster
from tests.support.page import Page, visiting
from tests.support.sandboxes import started
from tests.support.topologies import definition, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox

pytestmark = pytest.mark.timeout(600)

ROUTES = "/nublado/spawner/v1"
NOISE_BYTES = 50_000_000
TAB_BYTES_MAX = 300_000_000
FAMILY = {"vkprovider.io/family": "consoles", "vkprovider.io/size": "small"}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One worker and two replicas of the portal."""
    folder = tmp_path_factory.mktemp("sandbox")
    with started("consoles", folder, workers=1, portals=2, worker_args=[["--boot-seconds=0.3-0.6"]]) as made:
        yield made


def ask(cluster: Cluster, method: str, path: str, token: str, body: object = None) -> tuple[int, Any]:
    """Send a request of a hub or a script to the portal."""
    connection = http.client.HTTPConnection(cluster.sandbox.process("portal-1").url.removeprefix("http://"), timeout=60)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request(method, ROUTES + path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    return answer.status, json.loads(text) if text.startswith("{") else text


def person(cluster: Cluster, name: str) -> str:
    """Make a user of the portal; return their token."""
    cluster.kubectl("create", "serviceaccount", name, "--namespace=learners")
    cluster.delete_later("serviceaccount", name, "--namespace=learners")
    return cluster.kubectl("create", "token", name, "--namespace=learners").stdout.strip()


@pytest.fixture
def alice(cluster: Cluster, namespace: str) -> Iterator[str]:
    """The token of a learner, whose lab of the class runs; the class is the test's namespace."""
    made = definition("consoles-lab", topology({"r1": "iosv", "h0": "alpine", "h1": "alpine"}))
    made["metadata"]["labels"] = FAMILY
    cluster.define(made)
    token = person(cluster, "alice")
    account = "--serviceaccount=learners:alice"
    role = "vkprovider-class-learner"
    cluster.kubectl("create", "rolebinding", "attends", f"--namespace={namespace}", f"--clusterrole={role}", account)
    body = {"options": {"image_list": ["consoles:1.0.0"], "size": ["small"], "class": [namespace]}}

    def asked() -> bool:
        status, answer = ask(cluster, "POST", "/labs/alice/create", token, body)
        assert status in {303, 400, 403, 404, 422}, (status, answer)
        return status == 303

    until(asked, 60, "the lab is not made")
    until(lambda: ask(cluster, "GET", "/user-status", token)[1]["status"] == "running", 90, "the lab does not run")
    yield token
    cluster.kubectl("delete", "namespace", "nublado-alice", "--wait=false")
    until(lambda: cluster.get("/api/v1/namespaces/nublado-alice") is None, 90, "the namespace stays")


def rows(driver: Chrome) -> str:
    return driver.find_element(By.CSS_SELECTOR, ".xterm-rows").text


async def screen(page: Page, text: str) -> None:
    await page.until(lambda driver: text in rows(driver), f"the terminal shows {text!r}")


async def state(page: Page, word: str) -> None:
    await page.until(
        lambda driver: driver.find_element(By.ID, "console").get_attribute("data-state") == word, f"it is {word}"
    )


def renderers(driver: Chrome) -> list[int]:
    """Return the resident memory of the processes that render pages, in bytes, without what they share."""
    found, parents = [], {driver.service.process.pid}
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda each: int(each.name)):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words = (folder / "cmdline").read_bytes()
            if parent not in parents:
                continue
            parents.add(int(folder.name))
            if b"--type=renderer" in words:
                rollup = (folder / "smaps_rollup").read_text()
                found.append(
                    1024 * sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
                )
        except (OSError, IndexError, ValueError):
            continue
    return found


@asynccontextmanager
async def console(url: str, token: str, device: str, **headers: str) -> AsyncIterator[Screen]:
    """Open a console of alice's lab without a browser."""
    async with Browsing(url) as browsing, aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http_:
        sent = {"Origin": url, **headers}
        if token:
            answer = await browsing.log_in({"Authorization": f"Bearer {token}"})
            assert answer.status_code == 303
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in browsing.cookies.items())
        socket = await http_.ws_connect(f"{url}/labs/alice/consoles/{device}/stream", headers=sent)
        async with Screen(socket) as shown:
            yield shown


async def latencies(shown: Screen, count: int) -> list[float]:
    """Type some lines, one after the other; return how long each took until its output was there."""
    took = []
    for number in range(count):
        mark = f"{count}x{number}"
        began = time.monotonic()
        await shown.type(f"echo {mark}.\r")
        await shown.shows(f"\r\n{mark}.\r\n")
        took.append(time.monotonic() - began)
    return took


def told(name: str, **figures: object) -> None:
    """Print figures, which `-rP` of pytest shows, with the load at the time."""
    shown = [f"{key}={value}" for key, value in figures.items()]
    print(name, *shown, f"load={os.getloadavg()[0]:.1f}")  # noqa: T201 (the figures are the point)


async def test_from_the_login_to_a_prompt_in_three_clicks(cluster: Cluster) -> None:
    url, carol = cluster.sandbox.process("portal-1").url, person(cluster, "carol")
    made = definition("consoles-open", topology({"r1": "iosv", "h0": "alpine"}))
    made["metadata"]["labels"] = {**FAMILY, "vkprovider.io/family": "open"}
    cluster.define(made)

    def offered() -> bool:
        return "open" in str(ask(cluster, "GET", "/lab-form/carol", carol)[1])

    until(offered, 60, "the lab is not on the menu")
    async with visiting(url) as page:
        await page.log_in(carol)  # the first click
        await page.press("#lab-start form button")
        await page.shows("r1", "#lab-devices")
        await page.until(lambda driver: driver.find_elements(By.LINK_TEXT, "r1"), "r1 can be clicked")
        await page.run(lambda driver: driver.find_element(By.LINK_TEXT, "r1").click())
        await page.run(lambda driver: driver.switch_to.frame("console-frame"))
        await screen(page, "Escape character")
        await page.keys(Keys.ENTER, "show version", Keys.ENTER)
        await screen(page, "Cisco IOS Software")
        await screen(page, "r1>")
        await page.judge(html=False)

        await page.run(lambda driver: driver.switch_to.default_content())
        took = await page.run(_click_to_prompt)
        told("from click to prompt", s=round(took, 2))
        await page.keys("ls", Keys.ENTER)
        await screen(page, "backup.tgz")
        await page.run(lambda driver: driver.switch_to.default_content())
        await page.press("#console-close")
        assert await page.run(lambda driver: driver.switch_to.active_element.text) == "h0"
        await page.judge(html=False)
    cluster.kubectl("delete", "namespace", "nublado-carol", "--wait=false")
    until(lambda: cluster.get("/api/v1/namespaces/nublado-carol") is None, 90, "the namespace stays")


async def test_fifty_megabytes_on_one_console(cluster: Cluster, alice: str) -> None:
    url = cluster.sandbox.process("portal-1").url
    async with visiting(url) as page, console(url, alice, "h1") as neighbour:
        await neighbour.shows("h1:~# ")
        await latencies(neighbour, 5)
        quiet = await latencies(neighbour, 50)
        await page.log_in(alice, "/labs/alice/consoles/h0")
        await screen(page, "h0:~#")
        began = time.monotonic()
        await page.keys("yes", Keys.ENTER)
        busy: list[float] = []
        while (shown := await page.run(_shown)) < NOISE_BYTES:
            busy += await latencies(neighbour, 10)
            assert time.monotonic() - began < 400, shown
        took = time.monotonic() - began
        tab = max(await page.run(renderers))
        assert tab <= TAB_BYTES_MAX, f"{tab:,} bytes"
        stopped = await page.run(_interrupt)
        told(
            "50 MB",
            shown_MB=round(shown / 1e6),
            took_s=round(took),
            tab_MB=round(tab / 1e6),
            ctrl_c_s=round(stopped, 2),
            neighbour_ms_quiet=_milliseconds(quiet),
            neighbour_ms_busy=_milliseconds(busy),
        )
        await page.keys("echo and on", Keys.ENTER)
        await screen(page, "and on")


async def test_an_instructor_takes_over_and_leaves(cluster: Cluster, namespace: str, alice: str) -> None:
    ann = person(cluster, "ann")
    words = (f"--namespace={namespace}", "--clusterrole=vkprovider-instructor", "--serviceaccount=learners:ann")
    cluster.kubectl("create", "rolebinding", "teaches", *words)
    first, second = (cluster.sandbox.process(f"portal-{number}").url for number in (1, 2))
    user = "--as=system:serviceaccount:learners:ann"
    may = ("auth", "can-i", "create", "pods", "--subresource=exec", "--namespace=nublado-alice", user)
    until(lambda: cluster.kubectl(*may, check=False).stdout.strip() == "yes", 90, "the instructor has no right")
    async with visiting(first) as page, visiting(second) as other:
        await page.log_in(alice, "/labs/alice/consoles/r1")
        await screen(page, "Escape character")
        await other.log_in(ann, "/labs/alice/consoles/r1")
        await state(other, "watching")
        await other.press("#console-take-over")
        await state(other, "typing")
        await screen(page, "another session has taken over")
        await other.keys(Keys.ENTER, "show version", Keys.ENTER)
        await screen(page, "Cisco IOS Software")

        cluster.kubectl("delete", "rolebinding", "teaches", f"--namespace={namespace}")
        began = time.monotonic()
        await asyncio.to_thread(until, lambda: cluster.kubectl(*may, check=False).stdout.strip() == "no", 60, "still")
        revoked = time.monotonic()
        while await other.run(_state) != "withdrawn":
            assert time.monotonic() - revoked < 62, "a right that is withdrawn ends the console within a minute"
            await asyncio.sleep(0.2)
        told("withdrawn", role_s=round(revoked - began, 1), console_s=round(time.monotonic() - revoked, 1))
        await screen(page, "you type again")


async def test_who_may_not_and_a_replica_that_is_killed(cluster: Cluster, alice: str) -> None:
    url, bob = cluster.sandbox.process("portal-1").url, person(cluster, "bob")
    for token, headers, status in (
        ("", {}, 401),
        (bob, {}, 404),
        (alice, {"Origin": "https://evil.example"}, 403),
    ):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with console(url, token, "r1", **headers):
                pass
        assert refused.value.status == status
    async with visiting(url) as page:
        page.expects(r"WebSocket connection to .* failed")
        page.expects(r"net::ERR_")  # of whatever else was under way with the replica that is killed
        await page.log_in(alice, "/labs/alice/consoles/h0")
        await screen(page, "h0:~#")
        await page.keys("echo before", Keys.ENTER)
        await screen(page, "before")
        await asyncio.to_thread(cluster.sandbox.kill, "portal-1")
        await state(page, "lost")
        await page.shows("your lab goes on", "#console-status")
        await asyncio.to_thread(cluster.sandbox.start, "portal-1")
        await state(page, "typing")
        await page.keys("echo after", Keys.ENTER)
        await screen(page, "after")


def _click_to_prompt(driver: Chrome) -> float:
    """Click on h0; return after how many seconds its prompt is there."""
    driver.find_element(By.LINK_TEXT, "h0").click()
    began = time.monotonic()
    driver.switch_to.frame("console-frame")
    while not any("h0:~#" in each.text for each in driver.find_elements(By.CSS_SELECTOR, ".xterm-rows")):
        assert time.monotonic() - began < 60
        time.sleep(0.02)
    return time.monotonic() - began


def _shown(driver: Chrome) -> int:
    return int(driver.find_element(By.ID, "console").get_attribute("data-shown") or 0)


def _state(driver: Chrome) -> str:
    return str(driver.find_element(By.ID, "console").get_attribute("data-state"))


def _interrupt(driver: Chrome) -> float:
    """Press Ctrl-C; return after how many seconds the prompt is there."""
    began = time.monotonic()
    driver.switch_to.active_element.send_keys(Keys.CONTROL + "c")
    while not rows(driver).rstrip().endswith("h0:~#"):
        assert time.monotonic() - began < 60, rows(driver)[-500:]
        time.sleep(0.02)
    return time.monotonic() - began


def _milliseconds(took: list[float]) -> str:
    return f"{statistics.median(took) * 1000:.0f}/{sorted(took)[int(len(took) * 0.95)] * 1000:.0f} (median/p95)"

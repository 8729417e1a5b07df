"""The portal where scheduler, controllers and the kubelet API are real: labs, the page of one, consoles (C43, C46)."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import yaml
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

from tests.component.portal.site.browsing import Browsing
from tests.support.cluster import Cluster, is_ready
from tests.support.consoles import (
    ask,
    create,
    forget,
    on_menu,
    person,
    rows,
    running_lab,
    screen,
    state,
    state_of,
    told,
)
from tests.support.page import visiting
from tests.support.sandboxes import started
from tests.support.topologies import definition, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox

pytestmark = pytest.mark.timeout(600)

ACCOUNT: Final = "system:serviceaccount:vkprovider-system:vkprovider-portal"
WRITES: Final = {"create", "update", "patch", "delete"}
RSS_KB_MAX: Final = 150_000
WARM: Final = "warm"
"""The family of which one lab is kept warm; it is on the menu during one test."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One worker and two replicas of the portal."""
    folder, config = tmp_path_factory.mktemp("sandbox"), tmp_path_factory.mktemp("config") / "portal.yaml"
    config.write_text(yaml.safe_dump({"warm": {WARM: 1}}))
    env, boots = {"VKPROVIDER_PORTAL_CONFIG": str(config)}, [["--boot-seconds=0.3-0.6"]]
    with started("portal", folder, audit=True, workers=1, portals=2, portal_env=env, worker_args=boots) as made:
        yield made


@pytest.fixture
def alice(cluster: Cluster, namespace: str) -> Iterator[str]:
    """The token of a learner, whose lab of the class runs; the class is the test's namespace."""
    with running_lab(cluster, namespace, "alice") as token:
        yield token


def written(cluster: Cluster, since: int) -> list[str]:
    """Return what the account of the portal wrote, as `VERB path`, from a byte of the audit log on."""
    lines = cluster.sandbox.layout.audit_log.read_bytes()[since:].splitlines()
    found = []
    for event in map(json.loads, filter(None, lines)):
        path = event["requestURI"].partition("?")[0]
        of_member = "-replica-" in path or "reviews" in path
        is_write = event["verb"] in WRITES and event["stage"] == "ResponseComplete"
        if event["user"]["username"] == ACCOUNT and is_write and not of_member:
            found.append(f"{event['verb']} {path}")
    return found


def rss_kb(cluster: Cluster, process: str) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{cluster.sandbox.process(process).pid}/status").read_text())
    assert found
    return int(found[1])


def test_a_lab_is_asked_for_booted_and_deleted(cluster: Cluster) -> None:
    user = "system:serviceaccount:learners:dora"
    image, dora = on_menu(cluster, "plain", {"h0": "alpine"}), person(cluster, "dora")
    hub = cluster.kubectl("create", "token", "hub", "--namespace=vkprovider-system").stdout.strip()
    until(lambda: "plain" in str(ask(cluster, "GET", "/lab-form/dora", dora)[1]), 60, "the lab is not on the menu")
    before = cluster.sandbox.layout.audit_log.stat().st_size
    [worker] = cluster.workers
    since = worker.last_request()
    create(cluster, "dora", dora, image)
    [pod] = cluster.pods("nublado-dora")
    assert is_ready(pod)
    lab = cluster.lab_of(pod)
    assert lab is not None
    assert lab["state"] == "STARTED"

    def after_of(made: list[str]) -> list[str]:
        """Give the record of the end, and the lock, which are written when the lab is ready, maybe a little later."""
        return [line for line in made if line.startswith(("patch /api/v1/namespaces/", "delete "))]

    until(lambda: len(after_of(written(cluster, before))) >= 2)
    made = written(cluster, before)
    after = after_of(made)
    assert len(after) == 2, made
    assert len(made) - len(after) <= 8, made
    assert ask(cluster, "GET", "/labs", hub) == (200, ["dora"])
    assert cluster.kubectl("get", "pods", "-n", "nublado-dora", f"--as={user}").returncode == 0
    refused = cluster.kubectl("delete", "pod", "nb-dora", "-n", "nublado-dora", f"--as={user}", check=False)
    assert "cannot delete" in refused.stderr
    other = cluster.kubectl("get", "pods", "-n", "vkprovider-system", f"--as={user}", check=False)
    assert "cannot list" in other.stderr
    assert max(rss_kb(cluster, "portal-1"), rss_kb(cluster, "portal-2")) <= RSS_KB_MAX

    assert ask(cluster, "DELETE", "/labs/dora", hub)[0] == 202
    until(lambda: cluster.get("/api/v1/namespaces/nublado-dora") is None, 60, "the namespace stays")
    assert ask(cluster, "GET", "/labs/dora", hub)[0] == 404
    assert cluster.lab_of(pod) is None
    imports = [entry for entry in worker.access_log(since) if entry["method"] == "POST" and "/import" in entry["path"]]
    assert len(imports) == 1, imports


def put_warm_lab_on_menu(cluster: Cluster) -> None:
    """Put a lab of a router and two hosts on the menu, and wait until one is warm."""
    text = yaml.safe_load(topology({"r1": "iosv", "h0": "alpine", "h1": "alpine"}))
    text["nodes"][0]["interfaces"].append({"id": "i9", "label": "eth1", "slot": 1, "type": "physical"})
    text["links"] = [
        {"id": "l0", "n1": "n0", "i1": "i0", "n2": "n1", "i2": "i1"},
        {"id": "l1", "n1": "n0", "i1": "i9", "n2": "n2", "i2": "i2"},
    ]
    made = definition("warm-lab", yaml.safe_dump(text))
    made["metadata"]["labels"] = {"vkprovider.io/family": WARM, "vkprovider.io/size": "small"}
    cluster.define(made)
    words = ("get", "pods", "--all-namespaces", f"--selector=vkprovider.io/warm={WARM}", "--no-headers")
    until(lambda: "4/4" in cluster.kubectl(*words).stdout, 90, "no lab is warm")


async def test_from_the_login_to_a_prompt_in_three_clicks_and_to_the_end(cluster: Cluster) -> None:
    """The lab is a warm one; its devices are typed at, then it is reset, then ended."""
    put_warm_lab_on_menu(cluster)
    carol = person(cluster, "carol")
    try:
        async with visiting(cluster.sandbox.process("portal-1").url) as page:
            await page.log_in(carol)  # the first click
            await page.shows("You have no lab")
            began = time.monotonic()
            await page.press("#lab-start form button")
            await page.shows("Your lab is ready", "h1")
            ready = time.monotonic()
            assert (await page.texts(".topology text")).count("running") == 3
            await page.until(lambda driver: driver.find_elements(By.LINK_TEXT, "r1"), "r1 can be clicked")
            await page.run(lambda driver: driver.find_element(By.LINK_TEXT, "r1").click())
            await page.run(
                lambda driver: driver.switch_to.frame(
                    driver.find_element("css selector", "#console-frames iframe:not([hidden])")
                )
            )
            await screen(page, "Escape character")
            told("warm lab", ready_s=round(ready - began, 2), prompt_s=round(time.monotonic() - began, 2))
            await page.keys(Keys.ENTER, "show version", Keys.ENTER)
            await screen(page, "Cisco IOS Software")
            await screen(page, "r1>")
            await page.judge(html=False)

            await page.run(lambda driver: driver.switch_to.default_content())
            told("from click to prompt", s=round(await page.run(click_to_prompt), 2))
            await page.keys("ls", Keys.ENTER)
            await screen(page, "backup.tgz")
            await page.run(lambda driver: driver.switch_to.default_content())
            await page.press("#console-close")
            assert await page.run(lambda driver: driver.switch_to.active_element.text) == "h0"
            await page.judge(html=False)

            await page.press("#lab-acts details:nth-of-type(1) summary")
            await page.press("#lab-acts details[open] button.danger")
            await page.shows("Your lab is being reset", "h1")
            await page.shows("Your lab is ready", "h1")

            await page.press("#lab-acts details:nth-of-type(2) summary")
            await page.press("#lab-acts details[open] button.danger")
            await page.shows("You have no lab", "h1")
    finally:
        forget(cluster, "carol")


def click_to_prompt(driver: Chrome) -> float:
    """Click on h0; return after how many seconds its prompt is there."""
    driver.find_element(By.LINK_TEXT, "h0").click()
    began = time.monotonic()
    driver.switch_to.frame(driver.find_element("css selector", "#console-frames iframe:not([hidden])"))
    while not any("h0:~#" in each.text for each in driver.find_elements(By.CSS_SELECTOR, ".xterm-rows")):
        assert time.monotonic() - began < 60, rows(driver)
        time.sleep(0.02)
    return time.monotonic() - began


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
        while await other.run(state_of) != "withdrawn":
            assert time.monotonic() - revoked < 62, "a right that is withdrawn ends the console within a minute"
            await asyncio.sleep(0.2)
        told("withdrawn", role_s=round(revoked - began, 1), console_s=round(time.monotonic() - revoked, 1))
        await screen(page, "you type again")


async def test_who_may_not_and_a_replica_that_is_killed(cluster: Cluster, alice: str) -> None:
    url, bob = cluster.sandbox.process("portal-1").url, person(cluster, "bob")
    for token, origin, status in (("", url, 401), (bob, url, 404), (alice, "https://evil.example", 403)):
        assert await refused(url, token, origin) == status
    async with visiting(url) as page:
        page.expects(r"WebSocket connection to .* failed")
        page.expects(r"net::ERR_")  # of whatever else was under way with the replica that is killed
        page.expects(r"/stream .* (400|503) ")  # of the question why a console did not open, if the replica is back
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


async def refused(url: str, token: str, origin: str) -> int:
    """Ask for a console of alice's lab; return the status that says no."""
    async with Browsing(url) as browsing, aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http_:
        sent = {"Origin": origin}
        if token:
            answer = await browsing.log_in({"Authorization": f"Bearer {token}"})
            assert answer.status_code == 303
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in browsing.cookies.items())
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http_.ws_connect(f"{url}/labs/alice/consoles/r1/stream", headers=sent)
        return refused.value.status

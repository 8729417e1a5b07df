"""The learner's page where scheduler and controllers run: from login to prompt, a device that is off, a reset."""

import time
from collections.abc import Iterator

import pytest
import yaml
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.support.cluster import Cluster
from tests.support.page import Page, visiting
from tests.support.sandboxes import started
from tests.support.topologies import definition, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox

pytestmark = pytest.mark.timeout(600)

FAMILY = "labpage"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One worker, and a portal that keeps one lab warm."""
    folder, config = tmp_path_factory.mktemp("sandbox"), tmp_path_factory.mktemp("config") / "portal.yaml"
    config.write_text(yaml.safe_dump({"images": {"family": FAMILY}, "warm": {FAMILY: 1}}))
    env = {"VKPROVIDER_PORTAL_CONFIG": str(config)}
    boots = [["--boot-seconds=0.5-1.5"]]
    with started("labpage", folder, workers=1, portals=1, portal_env=env, worker_args=boots) as made:
        yield made


def learner(cluster: Cluster, name: str) -> str:
    """Make a user of the portal; return their token."""
    cluster.kubectl("create", "serviceaccount", name, "--namespace=learners")
    cluster.delete_later("serviceaccount", name, "--namespace=learners")
    return cluster.kubectl("create", "token", name, "--namespace=learners").stdout.strip()


def define(cluster: Cluster) -> None:
    """Put a lab of a router and two hosts on the menu, and wait until one is warm."""
    text = yaml.safe_load(topology({"r1": "iosv", "h0": "alpine", "h1": "alpine"}))
    text["nodes"][0]["interfaces"].append({"id": "i9", "label": "eth1", "slot": 1, "type": "physical"})
    text["links"] = [
        {"id": "l0", "n1": "n0", "i1": "i0", "n2": "n1", "i2": "i1"},
        {"id": "l1", "n1": "n0", "i1": "i9", "n2": "n2", "i2": "i2"},
    ]
    made = definition("labpage", yaml.safe_dump(text))
    made["metadata"]["labels"] = {"vkprovider.io/family": FAMILY, "vkprovider.io/size": "small"}
    cluster.define(made)
    until(lambda: warm(cluster), 90, "no lab is warm")


def warm(cluster: Cluster) -> bool:
    words = ("get", "pods", "--all-namespaces", f"--selector=vkprovider.io/warm={FAMILY}", "--no-headers")
    return any("4/4" in line for line in cluster.kubectl(*words).stdout.splitlines())


async def test_from_the_login_to_a_prompt_in_three_clicks(cluster: Cluster) -> None:
    define(cluster)
    token = learner(cluster, "alice")
    try:
        async with visiting(cluster.sandbox.process("portal-1").url) as page:
            await page.log_in(token)  # the first click
            await page.shows("You have no lab")
            began = time.monotonic()
            await page.press("#lab-start button")
            await page.shows("Your lab is ready", "h1")
            ready = time.monotonic()
            assert (await page.texts(".topology text")).count("running") == 3
            await page.press("#lab-devices tbody tr:nth-child(2) a")
            await prompt(page, "h0:~#")
            took = time.monotonic() - began
            print(f"warm lab: ready after {ready - began:.2f} s, prompt after {took:.2f} s")  # noqa: T201 (figures)
            await page.press("#console-close")

            await page.press("#lab-acts details:nth-of-type(1) summary")
            await page.press("#lab-acts details[open] button")
            await page.shows("Your lab is being reset", "h1")
            await page.shows("Your lab is ready", "h1")

            await page.press("#lab-acts details:nth-of-type(2) summary")
            await page.press("#lab-acts details[open] button")
            await page.shows("You have no lab", "h1")
    finally:
        cluster.kubectl("delete", "namespaces", "--selector=vkprovider.io/user=alice", "--wait=false")


async def prompt(page: Page, text: str) -> None:
    """Wait until the console in the page shows a prompt."""

    def shown(driver: Chrome) -> bool:
        driver.switch_to.frame("console-frame")
        try:
            return text in driver.find_element(By.CSS_SELECTOR, ".xterm-rows").text
        finally:
            driver.switch_to.default_content()

    await page.until(shown, f"the terminal shows {text!r}")

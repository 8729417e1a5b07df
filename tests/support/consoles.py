"""A portal of a sandbox as hubs, scripts and people use it: requests, a running lab, consoles in a browser."""

import http.client
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.support.cluster import Cluster
from tests.support.page import Page
from tests.support.topologies import definition, topology
from tests.support.waiting import until

ROUTES: Final = "/nublado/spawner/v1"


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
    return answer.status, json.loads(text) if text.startswith(("{", "[")) else text


def person(cluster: Cluster, name: str) -> str:
    """Make a user of the portal; return their token."""
    cluster.kubectl("create", "serviceaccount", name, "--namespace=learners")
    cluster.delete_later("serviceaccount", name, "--namespace=learners")
    return cluster.kubectl("create", "token", name, "--namespace=learners").stdout.strip()


def on_menu(cluster: Cluster, family: str, nodes: dict[str, str]) -> str:
    """Put a lab on the menu, without links; return its image."""
    made = definition(f"{family}-lab", topology(nodes))
    made["metadata"]["labels"] = {"vkprovider.io/family": family, "vkprovider.io/size": "small"}
    cluster.define(made)
    return f"{family}:1.0.0"


def create(cluster: Cluster, user: str, token: str, image: str, **options: list[str]) -> None:
    """Ask for a lab, until what that needs is known: roles and menus take a moment."""
    body = {"options": {"image_list": [image], "size": ["small"], **options}, "env": {"HUB_TOKEN": "hush"}}

    def asked() -> bool:
        status, answer = ask(cluster, "POST", f"/labs/{user}/create", token, body)
        assert status in {303, 400, 403, 404, 422}, (status, answer)
        return status == 303

    until(asked, 60, "the lab is not made")
    until(lambda: ask(cluster, "GET", "/user-status", token)[1]["status"] == "running", 90, "the lab does not run")


def forget(cluster: Cluster, user: str) -> None:
    """Delete a user's lab, and wait until it is gone."""
    cluster.kubectl("delete", "namespaces", f"--selector=vkprovider.io/user={user}", "--wait=false")
    words = ("get", "namespaces", f"--selector=vkprovider.io/user={user}", "--output=name")
    until(lambda: not cluster.kubectl(*words).stdout, 90, "the namespace stays")


@contextmanager
def running_lab(cluster: Cluster, class_: str, user: str) -> Iterator[str]:
    """Have a learner whose lab of a class runs, with devices r1, h0 and h1; yield the token."""
    image, token = on_menu(cluster, "consoles", {"r1": "iosv", "h0": "alpine", "h1": "alpine"}), person(cluster, user)
    words = (f"--namespace={class_}", "--clusterrole=vkprovider-class-learner", f"--serviceaccount=learners:{user}")
    cluster.kubectl("create", "rolebinding", f"attends-{user}", *words)
    create(cluster, user, token, image, **{"class": [class_]})
    try:
        yield token
    finally:
        forget(cluster, user)


def rows(driver: Chrome) -> str:
    """Return the text on the screen of a terminal."""
    return driver.find_element(By.CSS_SELECTOR, ".xterm-rows").text


async def screen(page: Page, text: str) -> None:
    """Wait until the terminal shows a text."""
    await page.until(lambda driver: text in rows(driver), f"the terminal shows {text!r}")


async def state(page: Page, word: str) -> None:
    """Wait until the page of the console says in what state it is."""
    await page.until(lambda driver: state_of(driver) == word, f"it is {word}")


def state_of(driver: Chrome) -> str:
    """Return in what state the page of a console is."""
    return str(driver.find_element(By.ID, "console").get_attribute("data-state"))


def told(name: str, **figures: object) -> None:
    """Print figures, which `-rP` of pytest shows, with the load at the time."""
    shown = [f"{key}={value}" for key, value in figures.items()]
    print(name, *shown, f"load={os.getloadavg()[0]:.1f}")  # noqa: T201 (the figures are the point)

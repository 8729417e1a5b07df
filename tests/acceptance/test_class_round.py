"""From an empty namespace to 24 learners typing: by the page, by links, by `kubectl lablet`; with clicks and seconds.

`pytest -rP` prints the figures; docs/class.md has those of one run. An admin has made the namespace and its instructor
before the clock starts, and nothing after it. Learners are browsers without a screen, all at once: each logs in, opens
the first console of the lab, and reads what it types.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import yaml
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.component.controllers.looking import eventually
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.consolebench import Screen
from tests.support.cluster import Cluster
from tests.support.consoles import told
from tests.support.page import Page, visiting
from tests.support.plugin import lablet
from tests.support.sandboxes import started
from tests.support.topologies import topology
from vkpsandbox import Sandbox

pytestmark = pytest.mark.timeout(600)

LEARNERS: Final = tuple(f"learner{number:02}" for number in range(24))
PREFIX: Final = "system:serviceaccount:learners:"
COMMANDS_MAX: Final = 10


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Three workers that boot devices at once, and a portal."""
    boots = [["--boot-seconds=0.3-0.6"]] * 3
    with started("round", tmp_path_factory.mktemp("sandbox"), workers=3, portals=1, worker_args=boots) as made:
        yield made


class Teacher(Page):
    """The browser of an instructor, who counts what is done with the hands.

    Attributes:
        clicks: Buttons and links that were pressed, and boxes that were ticked.
        fields: Fields that were filled, by typing or pasting, and files that were chosen.
    """

    def __init__(self, driver: Chrome, url: str) -> None:
        super().__init__(driver, url)
        self.clicks = self.fields = 0

    async def press(self, css: str) -> None:
        self.clicks += 1
        await super().press(css)

    async def fill(self, css: str, text: str) -> None:
        self.fields += 1
        await super().fill(css, text)

    async def choose(self, css: str, file: Path) -> None:
        """Choose a file."""
        self.fields += 1
        await self.run(lambda driver: driver.find_element(By.CSS_SELECTOR, css).send_keys(str(file)))


@asynccontextmanager
async def teaching(url: str) -> AsyncIterator[Teacher]:
    async with visiting(url) as page:
        yield Teacher(page.driver, url)


def account(cluster: Cluster, name: str) -> str:
    """Make a user of the cluster; return the token."""
    cluster.kubectl("create", "serviceaccount", name, "--namespace=learners")
    return cluster.kubectl("create", "token", name, "--namespace=learners").stdout.strip()


def of_class(cluster: Cluster, namespace: str) -> str:
    """Make the empty namespace of a class and its instructor, as an admin does; return the instructor's token."""
    teacher = f"teacher-{namespace}"
    token = account(cluster, teacher)
    cluster.kubectl("create", "namespace", namespace)
    words = ("grant", f"{PREFIX}{teacher}", "-n", namespace, "--links", "--username-prefix", PREFIX)
    granted = lablet(cluster, *words, "--page-url", cluster.provider_url)
    assert granted.returncode == 0, granted.stderr
    return token


def file_of_cml(folder: Path, name: str) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(topology({"h0": "alpine"}))
    return path


async def types(browser: Browsing, page: str, word: str) -> None:
    """Open the first console of a lab, type, and read it on the screen."""

    async def console() -> str:
        found = re.search(r'href="([^"]+/consoles/[^"]+)"', (await browser.get(page)).text)
        return found[1] if found is not None else ""

    first = await eventually(console, "a device has a console")
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http,
        http.ws_connect(
            f"{browser.url}{first}/stream?as=type", headers={"Origin": browser.url, "Cookie": cookie}
        ) as socket,
        Screen(socket) as screen,
    ):
        await screen.shows(":~# ")
        await screen.type(f"echo {word}\r")
        await screen.shows(word)
        await screen.shows(word)


async def by_login(url: str, token: str, word: str) -> None:
    """Work as a learner with an account: paste the token, log in, open the console: two clicks, and one field."""
    async with Browsing(url) as browser:
        answer = await browser.log_in({"Authorization": f"Bearer {token}"})
        assert answer.status_code == 303, answer.text

        async def place() -> str:
            path = (await browser.get("/")).headers["location"]
            return path if path.startswith("/lablets/") else ""

        await types(browser, await eventually(place, "the learner is led to the lab"), word)


async def by_link(address: str, word: str) -> None:
    """Work as a learner with a link: open the address, press the button, open the console: two clicks."""
    url, _, code = address.partition("/link#")
    async with Browsing(url) as browser:

        async def place() -> str:
            await browser.get("/link")
            return str((await browser.post("/link", code=code)).headers.get("location", ""))

        await types(browser, await eventually(place, "the link opens"), word)


async def prepared(page: Teacher, token: str, namespace: str, cml: Path) -> None:
    """Log in, make a definition of a file and a pool of 24, and wait until all are free."""
    await page.log_in(token)
    path = f"/classes/{namespace}"
    await page.until(lambda driver: driver.current_url.endswith(path), "the instructor lands in the class")
    await page.press(f'a[href="{path}/pools"]')
    await page.press(f'a[href="{path}/definitions"]')
    await page.choose("#file", cml)
    await page.press("form.card button")
    await page.shows("ready", "table")
    await page.press(f'a[href="{path}/pools"]')
    await page.fill("#replicas", str(len(LEARNERS)))
    await page.press("form.card button")
    async with asyncio.timeout(180):
        while f"{len(LEARNERS)} of {len(LEARNERS)}" not in await page.text():
            await asyncio.sleep(1)
            await page.open(f"{path}/pools")


async def given(page: Teacher, namespace: str, *, links: bool) -> str:
    """Give the lablets to a list; return what the page says then."""
    await page.press(f'a[href="/classes/{namespace}/assign"]')
    await page.fill("#names", "\n".join(LEARNERS))
    if links:
        await page.press("input[name=links]")
    await page.press("form.card button")
    await page.shows(f"{len(LEARNERS)}", "h1")
    await page.press("form.card button")
    await page.shows(f"Have a lab: {len(LEARNERS)} of {len(LEARNERS)}", "h1")
    return await page.run(lambda driver: driver.page_source)


def portal_of(cluster: Cluster) -> str:
    return cluster.sandbox.process("portal-1").url


def told_of(page: Teacher, way: str, ready_s: float, given_s: float, typing_s: float) -> None:
    """Tell what an instructor did, and when all was ready, given, and in use."""
    seconds = {"booted_s": ready_s, "given_s": given_s, "typing_s": typing_s}
    told(way, clicks=page.clicks, fields=page.fields, **{name: round(each, 1) for name, each in seconds.items()})


async def test_by_the_page_alone(cluster: Cluster, tmp_path: Path) -> None:
    """Learners have accounts of the cluster; the instructor has a browser, and nothing else."""
    tokens = [account(cluster, name) for name in LEARNERS]
    teacher, url = of_class(cluster, "monday"), portal_of(cluster)
    began = time.monotonic()
    async with teaching(url) as page:
        await prepared(page, teacher, "monday", file_of_cml(tmp_path, "intro"))
        ready_s = time.monotonic() - began
        await given(page, "monday", links=False)
        given_s = time.monotonic() - began
        await asyncio.gather(*(by_login(url, *each) for each in zip(tokens, LEARNERS, strict=True)))
        told_of(page, "by the page", ready_s, given_s, time.monotonic() - began)
    assert page.clicks <= 10


async def test_by_links_alone(cluster: Cluster, tmp_path: Path) -> None:
    """Learners have nothing but an address."""
    teacher, url = of_class(cluster, "tuesday"), portal_of(cluster)
    began = time.monotonic()
    async with teaching(url) as page:
        await prepared(page, teacher, "tuesday", file_of_cml(tmp_path, "links"))
        ready_s = time.monotonic() - began
        addresses = sorted(set(re.findall(rf"{url}/link#[a-z0-9.-]+", await given(page, "tuesday", links=True))))
        assert len(addresses) == len(LEARNERS)
        given_s = time.monotonic() - began
        await asyncio.gather(*(by_link(*each) for each in zip(addresses, LEARNERS, strict=True)))
        told_of(page, "by links", ready_s, given_s, time.monotonic() - began)
    assert page.clicks <= 11


def config_of(cluster: Cluster, token: str, namespace: str, folder: Path) -> Path:
    """Write the kubeconfig of an instructor."""
    whole = yaml.safe_load(Path(cluster.sandbox.kubeconfig).read_text())
    whole["users"] = [{"name": whole["users"][0]["name"], "user": {"token": token}}]
    whole["contexts"][0]["context"]["namespace"] = namespace
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(whole))
    return path


async def test_by_commands(cluster: Cluster, tmp_path: Path) -> None:
    """The instructor's commands, at most ten, with those of the admin."""
    url = portal_of(cluster)
    file_of_cml(tmp_path, "cli")
    (tmp_path / "names.csv").write_text("\n".join(LEARNERS))
    pool = yaml.safe_load((Path(__file__).parents[2] / "manifests" / "examples" / "pool.yaml").read_text())
    spec = pool["spec"]["template"]["spec"]
    spec["runtimeClassName"] = "cli"
    spec["containers"] = [{**each, "image": "cli"} for each in spec["containers"] if each["name"] in {"lab", "h0"}]
    (tmp_path / "pool.yaml").write_text(yaml.safe_dump(pool))
    token = account(cluster, "teacher-cli")
    config = config_of(cluster, token, "wednesday", tmp_path)
    began, commands = time.monotonic(), 0

    async def kubectl(*words: str, admin: bool = False) -> str:
        nonlocal commands
        commands += 1
        if words[0] == "lablet":
            done = await asyncio.to_thread(
                lablet, cluster, *words[1:], kubeconfig=None if admin else config, directory=tmp_path
            )
            assert done.returncode == 0, done.stderr
            return done.stdout
        extra: Sequence[str] = () if admin else (f"--kubeconfig={config}",)
        return str((await asyncio.to_thread(cluster.kubectl, *words, *extra)).stdout)

    await kubectl("create", "namespace", "wednesday", admin=True)
    grant = ("grant", f"{PREFIX}teacher-cli", "-n", "wednesday", "--links", "--username-prefix", PREFIX)
    await kubectl("lablet", *grant, "--page-url", cluster.provider_url, admin=True)
    await kubectl("lablet", "define", "cli.yaml")
    await kubectl("apply", "-f", str(tmp_path / "pool.yaml"))
    await kubectl("rollout", "status", "deployment/warm", "--timeout=3m")
    ready_s = time.monotonic() - began
    given = await kubectl(
        "lablet", "assign", "deployment/warm", "--from-file", "names.csv", "--until", "2h", "--links", "--portal", url
    )
    given_s = time.monotonic() - began
    addresses = re.findall(rf"{url}/link#[a-z0-9.-]+", given)
    assert len(addresses) == len(LEARNERS), given
    await asyncio.gather(*(by_link(*each) for each in zip(addresses, LEARNERS, strict=True)))
    told(
        "by commands",
        commands=commands,
        booted_s=round(ready_s, 1),
        given_s=round(given_s, 1),
        typing_s=round(time.monotonic() - began, 1),
    )
    assert commands <= COMMANDS_MAX

"""Fifty megabytes of output on one console of a browser, and a neighbour that types meanwhile."""

import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.consolebench import Screen
from tests.support.cluster import Cluster
from tests.support.consoles import rows, running_lab, screen, told
from tests.support.page import visiting
from tests.support.sandboxes import started
from vkpsandbox import Sandbox

pytestmark = pytest.mark.timeout(600)

NOISE_BYTES = 50_000_000
TAB_BYTES_MAX = 300_000_000


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One worker and one replica of the portal."""
    folder, boots = tmp_path_factory.mktemp("sandbox"), [["--boot-seconds=0.3-0.6"]]
    with started("noise", folder, workers=1, portals=1, worker_args=boots) as made:
        yield made


async def test_fifty_megabytes_on_one_console(cluster: Cluster, namespace: str) -> None:
    with running_lab(cluster, namespace, "alice") as alice:
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
async def console(url: str, token: str, device: str) -> AsyncIterator[Screen]:
    """Open a console of alice's lab without a browser."""
    async with Browsing(url) as browsing, aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http_:
        sent = {"Origin": url}
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


def _shown(driver: Chrome) -> int:
    return int(driver.find_element(By.ID, "console").get_attribute("data-shown") or 0)


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

"""A class of 200 and of 2,000 lablets in a browser: first view, changes, and fifty instructors who look at it.

The Pods are lablets by their RuntimeClass; nobody places them or runs their labs, and this program writes what the
provider would report. The portal runs as in a Pod, which takes root; the browser is Chromium without a window.
"""

import asyncio
import json
import re
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import aiohttp
from selenium.webdriver import Chrome

from bench.controlplane import COMPONENT_ARGS, COMPONENT_ENV, changes
from bench.figures import Figures, percentile, show
from bench.outside import access, cpu_s, resident_peak_mb
from bench.portal import Replica, replicas_of
from tests.component.portal.site.browsing import Browsing
from tests.support.browser import browser
from vkprovider.lablet import names
from vkprovider.platform.shipped import find_manifests
from vkprovider.portal.pure import portalnames
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.content import NAMESPACE, apply_manifests
from vkpsandbox.controlplane.kubectl import Kubectl

_NAME: Final = "bench-page"
SIZES: Final = (200, 2000)
VIEWERS: Final = 50
_DEFINITION: Final = "bench"
_PEOPLE: Final = "teachers"
_DEVICES: Final = 6
_LOADS: Final = 5
_CHANGES: Final = 100
_PAUSE_S: Final = 0.3
_QUIET_S: Final = 120.0
_SETTLE_S: Final = 5.0
_AT_ONCE: Final = 16
_END: Final = "2099-01-01T00:00:00Z"
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_PORTAL: Final = f"system:serviceaccount:{NAMESPACE}:{portalnames.PORTAL_PROGRAM}"
_OWN: Final = frozenset({"leases", "events"})
"""What the portal writes and renews without anybody who looks."""
_TOKEN: Final = re.compile(r"change-[0-9]+")
_WATCH: Final = """
window.seen = {};
const note = (node) => {
  for (const [token] of (node.textContent ?? "").matchAll(/change-[0-9]+/g)) window.seen[token] ??= Date.now();
};
new MutationObserver((all) => all.forEach(({ target, addedNodes }) => {
  if (target.nodeType === Node.TEXT_NODE) note(target);
  addedNodes.forEach(note);
})).observe(document.querySelector("main"), { subtree: true, childList: true, characterData: true });
"""
_TIMES: Final = """
const done = arguments[arguments.length - 1];
const page = performance.getEntriesByType("navigation")[0];
const all = [page, ...performance.getEntriesByType("resource").filter((each) => !each.name.includes("/live?"))];
new PerformanceObserver((found) => done([
  found.getEntries().at(-1).startTime,
  page.domContentLoadedEventEnd,
  page.responseEnd,
  all.reduce((sum, each) => sum + each.transferSize, 0),
  document.querySelectorAll("tbody tr").length,
])).observe({ type: "largest-contentful-paint", buffered: true });
"""


class _Load(NamedTuple):
    """A page that a browser has loaded: times from the request, in ms.

    Attributes:
        shown: When the browser had painted the largest part of what is seen first.
        complete: When all rows were there, and the scripts had begun.
        received: When the last byte had come.
    """

    shown: float
    complete: float
    received: float
    transferred: float
    rows: int


async def run(rounds: int) -> Sequence[Figures]:
    """Measure rounds on one sandbox."""
    print(changes(), flush=True)
    sandbox = await asyncio.to_thread(
        Sandbox.up,
        _NAME,
        workers=0,
        provider=False,
        controllers=False,
        audit=True,
        tied=True,
        component_args=COMPONENT_ARGS,
        component_env=COMPONENT_ENV,
        on_progress=print,
    )
    try:
        apply_manifests(Kubectl(sandbox.programs / "kubectl", sandbox.layout), find_manifests())
        with replicas_of(sandbox, 1, {}) as portals:
            async with _school(sandbox, portals[0]) as school:
                await school.open()
                found = []
                for number in range(1, rounds + 1):
                    found.append(await school.round())
                    show(f"round {number}", found[-1])
                return found
    finally:
        await asyncio.to_thread(sandbox.down)


@asynccontextmanager
async def _school(sandbox: Sandbox, portal: Replica) -> AsyncIterator["_School"]:
    server, context = access(sandbox.kubeconfig)
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(server, connector=aiohttp.TCPConnector(ssl=context), timeout=timeout) as api,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as http,
    ):
        yield _School(sandbox, portal, api, http)


class _School:
    """Two classes, and those who teach them."""

    def __init__(
        self, sandbox: Sandbox, portal: Replica, api: aiohttp.ClientSession, http: aiohttp.ClientSession
    ) -> None:
        assert sandbox.audit_log is not None
        self._log: Path = sandbox.audit_log
        self._portal, self._api, self._http = portal, api, http
        self._tokens: list[str] = []
        self._numbers = 0

    async def open(self) -> None:
        """Make classes, lablets and instructors."""
        await self._send(
            "POST",
            "/apis/node.k8s.io/v1/runtimeclasses",
            {
                "metadata": {"name": _DEFINITION, "labels": {names.LABEL_COMPONENT: names.COMPONENT_RUNTIME_CLASS}},
                "handler": "vkprovider",
                "scheduling": {"nodeSelector": {names.LABEL_COMPONENT: names.COMPONENT_VNODE}},
            },
        )
        await self._send("POST", "/api/v1/namespaces", {"metadata": {"name": _PEOPLE}})
        for size in SIZES:
            class_ = _class(size)
            await self._send("POST", "/api/v1/namespaces", {"metadata": {"name": class_}})
            await self._send("POST", f"/api/v1/namespaces/{class_}/serviceaccounts", {"metadata": {"name": "default"}})
            await self._send(
                "POST",
                f"/apis/rbac.authorization.k8s.io/v1/namespaces/{class_}/rolebindings",
                {
                    "metadata": {"name": "instructors"},
                    "roleRef": {
                        "apiGroup": "rbac.authorization.k8s.io",
                        "kind": "ClusterRole",
                        "name": "vkprovider-instructor",
                    },
                    "subjects": [
                        {
                            "apiGroup": "rbac.authorization.k8s.io",
                            "kind": "Group",
                            "name": f"system:serviceaccounts:{_PEOPLE}",
                        }
                    ],
                },
            )
            await _all(size, lambda number, class_=class_: self._make(class_, number))  # type: ignore[misc]  # (mypy#15459)
        await _all(VIEWERS, self._enrol)

    async def _enrol(self, number: int) -> None:
        accounts = f"/api/v1/namespaces/{_PEOPLE}/serviceaccounts"
        await self._send("POST", accounts, {"metadata": {"name": f"teacher-{number}"}})
        made = await self._send("POST", f"{accounts}/teacher-{number}/token", {"spec": {"expirationSeconds": 36000}})
        self._tokens.append(made["status"]["token"])

    async def _make(self, class_: str, number: int) -> None:
        """Make a lablet whose lab runs."""
        pods, name = f"/api/v1/namespaces/{class_}/pods", f"lab-{number:04}"
        containers = ["lab", *(f"r{device}" for device in range(_DEVICES))]
        notes = {
            names.ANNOTATION_USERNAME: f"learner-{number:04}",
            names.ANNOTATION_TIMESLOT_END: _END,
            names.ANNOTATION_STATE: "running",
            names.ANNOTATION_DEVICES: f"{_DEVICES}/{_DEVICES}",
        }
        await self._send(
            "POST",
            pods,
            {
                "metadata": {"name": name, "annotations": notes},
                "spec": {
                    "runtimeClassName": _DEFINITION,
                    "schedulerName": "none",
                    "containers": [{"name": each, "image": f"{_DEFINITION}:1"} for each in containers],
                },
            },
        )
        ready = [{"type": each, "status": "True", "lastTransitionTime": _END} for each in ("Ready", "ContainersReady")]
        running = {"running": {"startedAt": _END}}
        statuses = [
            {"name": each, "ready": True, "restartCount": 0, "image": "", "imageID": "", "state": running}
            for each in containers
        ]
        status = {"phase": "Running", "conditions": ready, "containerStatuses": statuses}
        await self._send("PATCH", f"{pods}/{name}/status", {"status": status})

    async def round(self) -> Figures:
        """Measure each class, and then those who look and see nothing change."""
        figures: Figures = {}
        started = browser()
        driver = await asyncio.to_thread(started.__enter__)
        try:
            await asyncio.to_thread(self._log_in, driver)
            for size in SIZES:
                for measure in (self._view, self._changes):
                    found = await measure(driver, size)
                    show(f"class of {size}", found)
                    figures |= found
        finally:
            await asyncio.to_thread(started.__exit__, None, None, None)
        figures |= await self._quiet()
        return figures | {"resident at its peak": (resident_peak_mb(self._portal.pid), "MB")}

    # ------------------------------------------------------------------------------------------ one browser

    def _log_in(self, driver: Chrome) -> None:
        driver.get(f"{self._portal.url}/login")
        driver.find_element("css selector", "#token").send_keys(self._tokens[0])
        driver.find_element("css selector", "main form button").click()

    async def _view(self, driver: Chrome, size: int) -> Figures:
        """Load a class some times, each time with nothing in the browser's cache."""

        def load() -> _Load:
            driver.get("about:blank")
            driver.execute_cdp_cmd("Network.clearBrowserCache", {})
            driver.get(f"{self._portal.url}/classes/{_class(size)}")
            return _Load(*driver.execute_async_script(_TIMES))

        loads = [await asyncio.to_thread(load) for _ in range(_LOADS)]
        assert all(each.rows == size for each in loads), f"{[each.rows for each in loads]} rows of {size}"

        def middle(values: Sequence[float]) -> float:
            return statistics.median(values)

        return {
            f"first view of {size}": (middle([each.shown for each in loads]) / 1000, "s"),
            f"all rows of {size}": (middle([each.complete for each in loads]) / 1000, "s"),
            f"page received, {size}": (middle([each.received for each in loads]) / 1000, "s"),
            f"transferred for {size}": (middle([each.transferred for each in loads]) / 1000, "kB"),
        }

    async def _changes(self, driver: Chrome, size: int) -> Figures:
        """Change lablets one after the other, and note when the page shows each."""
        await asyncio.to_thread(driver.execute_script, _WATCH)
        await asyncio.sleep(_SETTLE_S)
        written: dict[str, float] = {}
        async with await self._look(self._tokens[-1], size) as looking:
            for _ in range(_CHANGES):
                self._numbers += 1
                token, number = f"change-{self._numbers}", self._numbers * 7919 % size
                written[token] = time.time()
                notes = {"metadata": {"annotations": {names.ANNOTATION_USERNAME: f"learner-{number:04}-{token}"}}}
                await self._send("PATCH", f"/api/v1/namespaces/{_class(size)}/pods/lab-{number:04}", notes)
                await asyncio.sleep(_PAUSE_S)
            await asyncio.sleep(_SETTLE_S)
        seen: dict[str, float] = await asyncio.to_thread(driver.execute_script, "return window.seen")
        assert seen.keys() >= written.keys(), f"{len(seen)} of {len(written)} changes were seen"
        shown = [seen[token] / 1000 - at for token, at in written.items()]
        sent = [looking.seen[token] - at for token, at in written.items()]
        return {
            f"change sent p50, {size}": (percentile(sent, 0.5), "s"),
            f"change sent p99, {size}": (percentile(sent, 0.99), "s"),
            f"change visible p50, {size}": (percentile(shown, 0.5), "s"),
            f"change visible p99, {size}": (percentile(shown, 0.99), "s"),
        }

    # ------------------------------------------------------------------------------------------ fifty who look

    async def _quiet(self) -> Figures:
        """Have all look at the larger class while nothing changes; count CPU and requests."""
        async with AsyncExitStack() as stack:
            for token in self._tokens:
                await stack.enter_async_context(await self._look(token, SIZES[-1]))
            await asyncio.sleep(_SETTLE_S)
            since, before, began = self._log.stat().st_size, cpu_s(self._portal.pid), time.monotonic()
            await asyncio.sleep(_QUIET_S)
            took = time.monotonic() - began
            cpu = cpu_s(self._portal.pid) - before
        asked: Counter[tuple[str, str]] = Counter()
        with self._log.open("rb") as log:
            log.seek(since)
            for entry in map(json.loads, log):
                if (user := entry["user"]["username"]) == _PORTAL or _PEOPLE in user:
                    about = entry.get("objectRef", {}).get("resource", entry["requestURI"])
                    if entry["verb"] != "watch" and about not in _OWN:
                        asked[user if _PEOPLE in user else "portal", about] += 1
        print(f"asked within {took:.0f} s: {Counter(what for _, what in asked.elements())}", flush=True)
        of_viewers = [number for (user, _), number in asked.items() if user != "portal"]
        reviews = sum(number for (_, what), number in asked.items() if what.endswith("accessreviews"))
        return {
            f"CPU with {VIEWERS} who look": (100 * cpu / took, "%"),
            "requests but reviews": (asked.total() - reviews, "requests"),
            "reviews of a viewer and minute, most": (max(of_viewers, default=0) / (took / 60), "requests"),
        }

    async def _look(self, token: str, size: int) -> "_Looking":
        """Log in and open the stream of a class, as a browser does."""
        url = self._portal.url
        async with Browsing(url) as visitor:
            answer = await visitor.log_in({"Authorization": f"Bearer {token}"})
            assert answer.status_code == 303, f"{answer.status_code} {answer.text}"
            cookie = "; ".join(f"{name}={text}" for name, text in visitor.cookies.items())
        headers = {"Cookie": cookie, "Accept": "text/event-stream", "Sec-Fetch-Site": "same-origin"}
        query = {"topic": f"class:{_class(size)}", "version": ""}
        stream = await self._http.get(f"{url}/live", params=query, headers=headers)
        assert stream.status == 200, f"{stream.status} {await stream.text()}"
        return _Looking(stream)

    async def _send(self, method: str, path: str, body: object) -> Any:
        headers = _MERGE if method == "PATCH" else {"Content-Type": "application/json"}
        async with self._api.request(method, path, json=body, headers=headers) as answer:
            assert answer.status < 300, f"{method} {path}: {answer.status} {await answer.text()}"
            return await answer.json()


class _Looking:
    """A stream that is read.

    Attributes:
        seen: When each change came first (Unix seconds).
    """

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.seen: dict[str, float] = {}
        self._answer = answer
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        rest = b""
        async for part in self._answer.content.iter_any():
            *lines, rest = (rest + part).split(b"\n")
            for token in _TOKEN.findall(b"\n".join(lines).decode()):
                self.seen.setdefault(token, time.time())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reading.cancel()
        self._answer.close()


def _class(size: int) -> str:
    return f"class-{size}"


async def _all(number: int, each: Callable[[int], Awaitable[None]]) -> None:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(index: int) -> None:
        async with slots:
            await each(index)

    await asyncio.gather(*map(one, range(number)))

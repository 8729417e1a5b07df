"""200 users who ask for a lab at once, beside the same Pods made by a plain client: `vkprovider portal`, two replicas.

Times of Pods are those of one watch for both sides, writes and the times of what streams tell are those of the audit
log. The plain client is an admin, which no FlowSchema limits, and has all its namespaces and ServiceAccounts before it
begins; the portal makes them. Neither side waits in a queue: `STARTS_MAX` is the number of users. The replicas run
as in Pods, which takes root.
"""

import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.request import urlopen

import aiohttp

from bench.controlplane import COMPONENT_ARGS, COMPONENT_ENV, changes
from bench.figures import Figures, percentile, show
from bench.inpod import in_pod
from bench.main_job import TOPOLOGY, WORKERS
from bench.outside import Watcher, access, cpu_of, cpu_s, cpu_since, resident_peak_mb
from bench.updown import prepare
from vkprovider.lablet import names
from vkprovider.platform.shipped import find_manifests
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.portalnames import lease_name, namespace_of
from vkprovider.portal.service.records import pod_body
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.content import NAMESPACE
from vkpsandbox.controlplane.kubeconfig import read_cluster
from vkpsandbox.controlplane.kubectl import Kubectl
from vkpsandbox.controlplane.portal import HUB, LEARNERS, portal_processes
from vkpsandbox.processes.process import environment

_NAME: Final = "bench-portal"
USERS: Final = [f"u{number:03}" for number in range(200)]
REPLICAS: Final = 2
BOOT_S: Final = 10
_IMAGE: Final = "bench:1"
_WISH: Final = {"options": {"image_list": [_IMAGE], "size": "small"}, "env": {"KEY": "value"}}
_BASE: Final = "/nublado/spawner/v1/labs"
_USER: Final = f"system:serviceaccount:{NAMESPACE}:{portalnames.PORTAL_PROGRAM}"
_READS: Final = frozenset({"get", "list", "watch"})
_REVIEWS: Final = frozenset({"tokenreviews", "subjectaccessreviews"})
_WITHIN_S: Final = 300.0
_SETTLE_S: Final = 15.0
_POLLS_EACH: Final = 3
_CONNECTIONS: Final = 32
_BOUND: Final = "A worker has room for the lab"


async def run(rounds: int) -> Sequence[Figures]:
    """Measure rounds on one sandbox; who is first changes from round to round."""
    print(changes(), flush=True)
    sandbox = await asyncio.to_thread(
        Sandbox.up,
        _NAME,
        workers=WORKERS,
        audit=True,
        tied=True,
        component_args=COMPONENT_ARGS,
        component_env=COMPONENT_ENV,
        worker_args=[["--boot-seconds", str(BOOT_S), "--seed", str(number)] for number in range(WORKERS)],
        on_progress=print,
    )
    try:
        prepare(sandbox, TOPOLOGY)
        sandbox.kubectl(
            "label", "labletdefinition/bench", f"{names.LABEL_FAMILY}=bench", f"{portalnames.LABEL_SIZE}=small"
        )
        with replicas_of(sandbox, REPLICAS, {"VKPROVIDER_PORTAL_STARTS_MAX": str(len(USERS))}) as portals:
            return await _measure(sandbox, portals, rounds)
    finally:
        await asyncio.to_thread(sandbox.down)


async def _measure(sandbox: Sandbox, portals: Sequence["Replica"], rounds: int) -> list[Figures]:
    async with _class(sandbox, portals) as school:
        found = []
        for number in range(1, rounds + 1):
            found.append(await school.round(number))
            show(f"round {number}", found[-1])
        return found


class Replica(NamedTuple):
    """A replica of the portal."""

    url: str
    pid: int


@contextmanager
def replicas_of(sandbox: Sandbox, number: int, settings: Mapping[str, str]) -> Iterator[list[Replica]]:
    """Run replicas of the portal as Pods do; yield them when they are ready."""
    kubectl = Kubectl(sandbox.programs / "kubectl", sandbox.layout)
    specs = portal_processes(sandbox.layout, kubectl, find_manifests(), number, settings)
    server = str(read_cluster(sandbox.kubeconfig)["server"])
    token = kubectl("create", "token", portalnames.PORTAL_PROGRAM, f"--namespace={NAMESPACE}", "--duration=10h").stdout
    with tempfile.TemporaryDirectory(prefix="bench-portal-") as folder, ExitStack() as stack:
        found = []
        for spec in specs:
            own = Path(folder) / spec.name
            own.mkdir()
            argv, changed = in_pod(spec.argv, own, server, sandbox.layout.pki / "server-ca.crt", token.strip())
            log = stack.enter_context((own / "log").open("wb"))
            env = environment(os.environ, {**spec.env, **changed}, own)
            process = subprocess.Popen(argv, env=env, stdout=log, stderr=log)  # noqa: S603 (our own program)
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
            found.append(Replica(spec.url, process.pid))
        for replica in found:
            _until_ready(replica.url)
        yield found


def _until_ready(url: str) -> None:
    deadline = time.monotonic() + _WITHIN_S
    while True:
        with suppress(OSError), urlopen(f"{url}/ready", timeout=5):  # noqa: S310 (our own page)
            return
        assert time.monotonic() < deadline, f"{url} is not ready"
        time.sleep(0.2)


class _Pods(NamedTuple):
    """When each user's lab was asked for and Ready, in Unix seconds."""

    asked: dict[str, float]
    ready: dict[str, float]

    def took_s(self) -> list[float]:
        return [self.ready[user] - asked for user, asked in self.asked.items()]


class _Told(NamedTuple):
    """A stream as its listener got it.

    Attributes:
        replica: Which one told it.
        asked, opened: When it was asked for, and began (Unix seconds).
        lines: When each text first came, and each kind of event but `info`.
    """

    replica: int
    asked: float
    opened: float
    lines: dict[str, float]


@asynccontextmanager
async def _class(sandbox: Sandbox, portals: Sequence[Replica]) -> "AsyncIterator[_School]":
    """Make the users and the namespaces of the plain client, and watch all Pods."""
    server, context = access(sandbox.kubeconfig)
    timeout = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(ssl=context, limit=_CONNECTIONS)
    watcher = Watcher(sandbox.kubeconfig, namespace="")
    async with (
        aiohttp.ClientSession(server, connector=connector, timeout=timeout) as api,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as http,
    ):
        school = _School(sandbox, portals, api, http, watcher)
        await school.open()
        watching = asyncio.create_task(watcher.run())
        try:
            yield school
        finally:
            watching.cancel()


class _School:
    """The users of the portal, a hub, and the plain client."""

    def __init__(
        self,
        sandbox: Sandbox,
        portals: Sequence[Replica],
        api: aiohttp.ClientSession,
        http: aiohttp.ClientSession,
        watcher: Watcher,
    ) -> None:
        assert sandbox.audit_log is not None
        self._sandbox, self._api, self._http, self._watcher = sandbox, api, http, watcher
        self._log: Path = sandbox.audit_log
        self._portals = portals
        self._tokens: dict[str, str] = {}
        self._hub = ""

    async def open(self) -> None:
        """Make what is there before anybody asks."""

        async def enrol(user: str) -> None:
            accounts = f"/api/v1/namespaces/{LEARNERS}/serviceaccounts"
            await self._send("POST", accounts, {"metadata": {"name": user}})
            self._tokens[user] = await self._token(f"{accounts}/{user}")
            await self._send("POST", "/api/v1/namespaces", {"metadata": {"name": _plain(user)}})

        await _all(enrol)
        self._hub = await self._token(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{HUB}")
        deadline = time.monotonic() + _WITHIN_S
        for user in USERS:  # a Pod needs the ServiceAccount, which a controller makes
            while not await self._is_there(f"/api/v1/namespaces/{_plain(user)}/serviceaccounts/default"):
                assert time.monotonic() < deadline, f"no ServiceAccount in {_plain(user)}"
                await asyncio.sleep(0.2)

    async def round(self, number: int) -> Figures:
        """Measure both sides, and a quiet portal."""
        figures: Figures = {}
        load = os.getloadavg()[0]
        sides = [self._of_plain, self._of_portal]
        for side in sides if number % 2 else reversed(sides):
            figures |= await side()
        for share in ("p50", "p99"):
            ours, plain = (figures[f"request to Ready {share}, {side}"][0] for side in ("portal", "plain"))
            figures[f"request to Ready {share}, portal / plain"] = (ours / plain, "ratio")
        return figures | {"load of the machine before": (load, "")}

    # ------------------------------------------------------------------------------------------ the plain client

    async def _of_plain(self) -> Figures:
        pods, before = _Pods({}, {}), cpu_of(self._sandbox)

        async def make(user: str) -> None:
            notes = {names.ANNOTATION_USERNAME: user}
            body = pod_body("default", {}, notes, _IMAGE)  # as the portal's, but with the ServiceAccount that is there
            body["metadata"]["name"] = f"nb-{user}"
            pods.asked[user] = time.time()
            await self._send("POST", f"/api/v1/namespaces/{_plain(user)}/pods", body)

        await _all(make)
        await self._ready(pods, _plain)
        cpu = _cpu(cpu_since(before, self._sandbox), "plain")

        async def remove(user: str) -> None:
            await self._send("DELETE", f"/api/v1/namespaces/{_plain(user)}/pods/nb-{user}")

        await _all(remove)
        await self._gone("/api/v1/pods")
        return _shares(pods, "plain") | cpu

    # ------------------------------------------------------------------------------------------ the portal

    async def _of_portal(self) -> Figures:
        pods, told, answered_s = _Pods({}, {}), {}, {}
        since, before = self._log.stat().st_size, cpu_of(self._sandbox)
        ours = self._cpu_s()

        async def ask(user: str) -> None:
            number = USERS.index(user)
            pods.asked[user] = time.time()
            await self._portal("POST", number % REPLICAS, f"/{user}/create", self._tokens[user], 303, _WISH)
            answered_s[user] = time.time() - pods.asked[user]
            told[user] = await self._listen(user, number // REPLICAS % REPLICAS)

        await _all(ask)
        await self._ready(pods, _of_portal)
        cpu = {**cpu_since(before, self._sandbox), "portal": self._cpu_s() - ours}
        await asyncio.sleep(_SETTLE_S)
        writes = _writes(self._log, since)
        until_ready = [_before_end(writes[user]) for user in USERS]
        lags_s = _lags(told, self._log, since)
        first_s = [min(stream.lines.values()) - stream.asked for stream in told.values()]
        figures = _shares(pods, "portal") | {
            **_cpu(cpu, "portal"),
            "CPU until Ready, both replicas": (cpu["portal"], "s"),
            "request to answer p50": (percentile(list(answered_s.values()), 0.5), "s"),
            "request to answer p99": (percentile(list(answered_s.values()), 0.99), "s"),
            "writes from request to Ready, most": (max(until_ready), "writes"),
            "writes per lab, in all": (sum(map(len, writes.values())) / len(USERS), "writes"),
            "event to listener p50": (percentile([each for lags in lags_s for each in lags], 0.5), "s"),
            "event to listener p99, worse replica": (max(percentile(lags, 0.99) for lags in lags_s), "s"),
            "first line p99": (percentile(first_s, 0.99), "s"),
            **await self._polled(),
            "resident at its peak, larger replica": (
                max(resident_peak_mb(each.pid) for each in self._portals),
                "MB",
            ),
        }

        async def remove(user: str) -> None:
            await self._portal("DELETE", 0, f"/{user}", self._hub, 202)

        await _all(remove)
        await self._gone(f"/api/v1/namespaces?labelSelector={portalnames.LABEL_PORTAL}")
        return figures

    def _cpu_s(self) -> float:
        return sum(cpu_s(each.pid) for each in self._portals)

    async def _listen(self, user: str, replica: int) -> _Told:
        """Follow a stream to its end."""
        lines: dict[str, float] = {}
        asked, kind = time.time(), ""
        headers = {"Authorization": f"Bearer {self._tokens[user]}"}
        async with self._http.get(f"{self._portals[replica].url}{_BASE}/{user}/events", headers=headers) as answer:
            answer.raise_for_status()
            opened = time.time()
            async for raw in answer.content:
                field, _, value = raw.decode().strip().partition(": ")
                kind = value if field == "event" else kind
                if field == "data" and kind != "progress":
                    lines.setdefault(value if kind == "info" else kind, time.time())
        assert kind == "complete", f"the stream of {user} ends with {kind}: {lines}"
        return _Told(replica, asked, opened, lines)

    async def _polled(self) -> Figures:
        """Ask for each lab as a hub does; count what the replicas ask the API server meanwhile."""
        since, polls = self._log.stat().st_size, 0
        for _ in range(_POLLS_EACH):
            for replica in range(REPLICAS):
                for user in USERS:
                    await self._portal("GET", replica, f"/{user}", self._hub, 200)
                    polls += 1
        asked = Counter(entry["objectRef"]["resource"] for entry in _entries(self._log, since) if _is_ours(entry))
        print(f"portal: requests during {polls} polls: {dict(asked)}", flush=True)
        reviews = sum(asked[each] for each in _REVIEWS)
        return {
            "API requests per poll, reviews and memberships apart": (
                (asked.total() - reviews - asked["leases"]) / polls,
                "requests",
            ),
            "reviews per poll": (reviews / polls, "requests"),
        }

    async def _portal(self, method: str, replica: int, path: str, token: str, status: int, body: object = None) -> None:
        url, headers = f"{self._portals[replica].url}{_BASE}{path}", {"Authorization": f"Bearer {token}"}
        async with self._http.request(method, url, json=body, headers=headers, allow_redirects=False) as answer:
            assert answer.status == status, f"{method} {path}: {answer.status} {await answer.text()}"

    # ------------------------------------------------------------------------------------------ both

    async def _ready(self, pods: _Pods, namespace: Callable[[str], str]) -> None:
        """Wait until the Pods of all users are Ready, and note when."""
        listed: list[dict[str, Any]] = []
        deadline = time.monotonic() + _WITHIN_S
        wanted = {namespace(user): user for user in USERS}
        while len(pods.ready) < len(USERS):
            assert time.monotonic() < deadline, f"{len(pods.ready)} of {len(USERS)} Pods Ready"
            await asyncio.sleep(1)
            if sum(1 for life in self._watcher.lives.values() if life.ready and not life.gone) < len(USERS):
                continue
            listed = (await self._send("GET", "/api/v1/pods"))["items"]
            for each in listed:
                life = self._watcher.lives.get(each["metadata"]["uid"])
                if each["metadata"]["namespace"] in wanted and life is not None and life.ready:
                    pods.ready[wanted[each["metadata"]["namespace"]]] = life.ready

    async def _gone(self, path: str) -> None:
        deadline = time.monotonic() + _WITHIN_S
        while (await self._send("GET", path))["items"]:
            assert time.monotonic() < deadline, f"{path} is not empty"
            await asyncio.sleep(1)

    async def _token(self, account: str) -> str:
        made = await self._send("POST", f"{account}/token", {"spec": {"expirationSeconds": 7200}})
        return str(made["status"]["token"])

    async def _is_there(self, path: str) -> bool:
        async with self._api.get(path) as answer:
            return answer.status == 200

    async def _send(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        async with self._api.request(method, path, json=body) as answer:
            answered: dict[str, Any] = await answer.json()
            assert answer.ok, f"{method} {path}: {answered}"
            return answered


def _plain(user: str) -> str:
    return f"plain-{user}"


def _of_portal(user: str) -> str:
    return namespace_of("nublado", user)


async def _all(do: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    """Do something for all users at once."""
    async with asyncio.TaskGroup() as tasks:
        for user in USERS:
            tasks.create_task(do(user))


def _shares(pods: _Pods, side: str) -> Figures:
    took_s = pods.took_s()
    return {f"request to Ready p{share}, {side}": (percentile(took_s, share / 100), "s") for share in (50, 99)}


def _cpu(used_s: Mapping[str, float], side: str) -> Figures:
    ours, etcd = used_s["kube-apiserver"], used_s["etcd"]
    return {
        f"CPU until Ready, API server and etcd, {side}": (ours + etcd, "s"),
        f"CPU until Ready, sandbox, {side}": (sum(used_s.values()), "s"),
    }


def _entries(log: Path, since: int) -> Iterator[dict[str, Any]]:
    with log.open("rb") as stream:
        stream.seek(since)
        for raw in stream:
            yield json.loads(raw)


def _is_ours(entry: Mapping[str, Any]) -> bool:
    return bool(entry["user"]["username"] == _USER and "objectRef" in entry)


def _ended_at(entry: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(entry["stageTimestamp"]).timestamp()


def _writes(log: Path, since: int) -> dict[str, list[str]]:
    """Return what the portal wrote for each user, as `VERB resource` in the order of the log, whatever came of it."""
    users = {_of_portal(user): user for user in USERS} | {lease_name(user): user for user in USERS}
    found: dict[str, list[str]] = defaultdict(list)
    for entry in _entries(log, since):
        if _is_ours(entry) and entry["verb"] not in _READS and entry["objectRef"]["resource"] not in _REVIEWS:
            about = entry["objectRef"]
            user = users.get(about.get("namespace", "")) or users.get(about.get("name", ""))
            if user is not None:
                found[user].append(f"{entry['verb']} {about['resource']}")
    print(f"portal: writes {dict(Counter(write for writes in found.values() for write in writes))}", flush=True)
    return found


def _before_end(writes: Sequence[str]) -> int:
    """Return how many writes came before that of the operation's end, which follows Ready at once."""
    return writes.index("patch namespaces")


def _lags(told: Mapping[str, _Told], log: Path, since: int) -> list[list[float]]:
    """Return, for each replica, from what the API server had written to the line of a stream that was open by then."""
    users = {_of_portal(user): user for user in USERS}
    lags_s: list[list[float]] = [[] for _ in range(REPLICAS)]
    for entry in _entries(log, since):
        about = entry.get("objectRef", {})
        user = users.get(about.get("namespace", ""))
        if user is None or entry["responseStatus"]["code"] >= 400:
            continue
        stream, line = told[user], ""
        if about.get("subresource") == "binding":
            line = _BOUND
        elif about["resource"] == "namespaces" and entry["verb"] == "patch" and _is_ours(entry):
            line = "complete"
        if line and _ended_at(entry) > stream.opened:
            lags_s[stream.replica].append(stream.lines[line] - _ended_at(entry))
    print(f"portal: {[len(each) for each in lags_s]} lines of open streams", flush=True)
    return lags_s

"""R002-039…049 with the portal itself: a real JupyterHub, whose learners have tokens of the cluster."""

import asyncio
import json
import os
import secrets
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hub.tests.realhub import Learner, RealHub, free_ports
from tests.support.cluster import Cluster
from tests.support.sandboxes import started
from tests.support.topologies import definition, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.content import NAMESPACE

pytestmark = pytest.mark.timeout(400)

VENV = Path(sys.prefix) / "hub"
PORTS = free_ports(3)
SERVICE = secrets.token_hex(16)
BASE = "/services/vkprovider"
FAMILY = {"vkprovider.io/family": "ospf", "vkprovider.io/size": "small"}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """One worker, and a portal; its dialect is the parameter."""
    if not (VENV / ".wanted").exists():
        why = "JupyterHub is not installed in .venv/hub; get it: make hub, or `make test`, which does so first"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    with started(
        "hub",
        tmp_path_factory.mktemp("sandbox"),
        workers=1,
        portals=1,
        portal_env={
            "VKPROVIDER_PORTAL_COOKIE_KEY": b64encode(os.urandom(32)).decode(),
            "VKPROVIDER_PORTAL_HUB_API_URL": f"http://127.0.0.1:{PORTS[1]}/hub/api",
            "VKPROVIDER_PORTAL_HUB_TOKEN": SERVICE,
            "VKPROVIDER_PORTAL_DIALECT": getattr(request, "param", "sqr066"),
        },
        worker_args=[["--boot-seconds=0.5-1"]],
    ) as made:
        yield made


@pytest.fixture
def offered(cluster: Cluster) -> Iterator[None]:
    """Offer one lab to the learners."""
    made = definition("hub-ospf", topology({"r1": "alpine", "r2": "alpine"}))
    made["metadata"]["labels"] = FAMILY
    cluster.define(made)
    yield
    for found in cluster.items("/api/v1/namespaces"):
        if found["metadata"]["name"].startswith("nublado-"):
            cluster.kubectl("delete", "namespace", found["metadata"]["name"], "--wait=false")


def token(cluster: Cluster, namespace: str, name: str) -> str:
    return cluster.kubectl("create", "token", name, f"--namespace={namespace}").stdout.strip()


@asynccontextmanager
async def hub_of(cluster: Cluster, folder: Path, *learners: str, dialect: str = "sqr066") -> AsyncIterator[RealHub]:
    """Run a hub whose learners log in with tokens of ServiceAccounts."""
    (folder / "tokens").mkdir()
    for name in learners:
        cluster.kubectl("create", "serviceaccount", name, "--namespace=learners")
        (folder / "tokens" / name).write_text(token(cluster, "learners", name))
    portal = cluster.sandbox.process("portal-1").url
    made = RealHub(
        folder, portal, token(cluster, NAMESPACE, "hub"), venv=VENV, ports=PORTS, service=SERVICE, dialect=dialect
    )
    async with made.running() as hub:
        yield hub


def namespaces(cluster: Cluster) -> list[str]:
    found = (item["metadata"]["name"] for item in cluster.items("/api/v1/namespaces"))
    return [name for name in found if name.startswith("nublado-")]


async def eventually(condition: Any, within_s: float = 180) -> None:
    async with asyncio.timeout(within_s):
        while not await condition():  # noqa: ASYNC110 (another process has to change)
            await asyncio.sleep(0.2)


async def start_and_stop(cluster: Cluster, tmp_path: Path, dialect: str) -> None:
    """Start a lab as a learner, look at its page, and stop it."""
    async with hub_of(cluster, tmp_path, "anna", dialect=dialect) as hub, Learner.of(hub, "anna") as anna:
        code, _, form = await anna.get("/hub/spawn")
        assert code == 200
        assert "hub-ospf" in form or "ospf" in form
        code, path, page = await anna.post("/hub/spawn", {"image_list": "ospf:1.0.0", "size": "small"})
        assert (code, path) == (200, "/hub/spawn-pending/anna"), page
        async with anna.session.get(f"{hub.url}/hub/api/users/anna/server/progress") as stream:
            events = [json.loads(line[6:]) async for line in stream.content if line.startswith(b"data:")]
        assert events[-1].get("ready") is True, (events, hub.log()[-3000:])
        said = [event["message"] for event in events]
        assert "The lab is imported" in said
        assert "The lab is ready." in said
        numbers = [event["progress"] for event in events]
        assert numbers == sorted(numbers)
        assert namespaces(cluster) == ["nublado-anna"]
        headers = {"Authorization": f"Bearer {hub.hub_token}"}
        async with anna.session.get(f"{hub.portal_url}/nublado/spawner/v1/labs/anna", headers=headers) as shown:
            assert ("internal_url" in await shown.json()) == (dialect == "nublado")
        code, path, page = await anna.get("/user/anna/")
        assert (code, path) == (200, f"{BASE}/oauth_callback"), page
        assert f'content="0; url={BASE}/labs/anna"' in page
        code, path, page = await anna.get(f"{BASE}/labs/anna")
        assert "anna" in page
        assert (await anna.get(f"{BASE}/labs/carl"))[0] == 404
        seen = "".join([page, *map(str, anna.session.cookie_jar)])
        assert (tmp_path / "tokens" / "anna").read_text() not in seen
        await anna.stop()

        async def stopped() -> bool:
            return not (await hub.user("anna"))["servers"]

        await eventually(stopped)
        until(lambda: namespaces(cluster) == [], 30, "the lab of a stopped server stays")
        await anna.get("/hub/logout")
        assert (await anna.get(f"{BASE}/labs/anna"))[1] == "/hub/login"


@pytest.mark.usefixtures("offered")
async def test_a_learner_of_a_hub_starts_and_stops_a_lab(cluster: Cluster, tmp_path: Path) -> None:
    await start_and_stop(cluster, tmp_path, "sqr066")


@pytest.mark.usefixtures("offered")
async def test_labs_that_are_stopped_and_started_at_once_are_imported_once(cluster: Cluster, tmp_path: Path) -> None:
    names = [f"quick{number}" for number in range(12)]
    wish = {"image_list": "ospf:1.0.0", "size": "small"}
    [worker] = cluster.workers

    def uids() -> dict[str, str]:
        pods = (pod for name in names for pod in cluster.pods(f"nublado-{name}"))
        return {pod["metadata"]["namespace"]: pod["metadata"]["uid"] for pod in pods}

    async with hub_of(cluster, tmp_path, *names) as hub, AsyncExitStack() as stack:
        learners = [await stack.enter_async_context(Learner.of(hub, name)) for name in names]

        async def all_ready() -> bool:
            return all([await hub.ready(name) for name in names])

        async def again(learner: Learner) -> str:
            """Stop the lab, and start it 100 ms later, as often as the hub says to wait; return what it said first."""
            stopping = asyncio.create_task(learner.server("DELETE"))
            await asyncio.sleep(0.1)
            first = status, text = await learner.server("POST", wish)
            while status == 400:
                assert "is pending stop" in text or "is already running" in text  # the hub has not begun to stop it yet
                if stopping.done() and stopping.result()[0] == 500:
                    # JupyterHub refuses to stop a server while another request to start it asks whether it runs.
                    stopping = asyncio.create_task(learner.server("DELETE"))
                await asyncio.sleep(0.1)
                status, text = await learner.server("POST", wish)
            assert status in (201, 202), text
            assert (await stopping)[0] in (202, 204)
            return first[1]

        for status, text in await asyncio.gather(*(learner.server("POST", wish) for learner in learners)):
            assert status in (201, 202), text
        await eventually(all_ready)
        before, since = uids(), worker.last_request()
        said = await asyncio.gather(*map(again, learners))
        await eventually(all_ready)
        after = uids()
        assert before.keys() == after.keys() == {f"nublado-{name}" for name in names}
        assert not set(before.values()) & set(after.values())
        imports = [
            entry for entry in worker.access_log(since) if entry["method"] == "POST" and "/import" in entry["path"]
        ]
        assert len(imports) == len(names)
        assert len(worker.labs()) == len(names)
        print(sum("is pending stop" in text for text in said), "of", len(said), "were told to wait")  # noqa: T201 (a figure)


@pytest.mark.usefixtures("offered")
async def test_a_hub_and_a_portal_that_are_killed_stop_no_lab(cluster: Cluster, tmp_path: Path) -> None:
    async with hub_of(cluster, tmp_path, "carl", "dora") as hub, Learner.of(hub, "carl") as carl:
        await carl.post("/hub/spawn", {"image_list": "ospf:1.0.0", "size": "small"})

        async def ready() -> bool:
            return await hub.ready("carl")

        await eventually(ready)
        async with Learner.of(hub, "dora") as dora:
            await dora.post("/hub/spawn", {"image_list": "ospf:1.0.0", "size": "small"})
            cluster.sandbox.kill("portal-1")
            await hub.kill()
            await hub.start()
            await asyncio.sleep(8)
            assert set(namespaces(cluster)) >= {"nublado-carl"}
            cluster.sandbox.start("portal-1")
            await eventually(ready, 40)
            await asyncio.sleep(1)
            assert "nublado-carl" in namespaces(cluster)

            async def dora_too() -> bool:
                """Start the lab again if the first request never came to the portal."""
                server = (await hub.user("dora"))["servers"].get("")
                if server is None:
                    await dora.post("/hub/spawn", {"image_list": "ospf:1.0.0", "size": "small"})
                return await hub.ready("dora")

            await eventually(dora_too)
            assert sorted(namespaces(cluster)) == ["nublado-carl", "nublado-dora"]


@pytest.mark.usefixtures("offered")
async def test_what_the_portal_refuses_a_learner_reads(cluster: Cluster, tmp_path: Path) -> None:
    async with hub_of(cluster, tmp_path, "emil") as hub, Learner.of(hub, "emil") as emil:
        await emil.post("/hub/spawn", {"image_list": "ospf:9.9.9", "size": "small"})

        async def told() -> bool:
            page = (await emil.get("/hub/spawn-pending/emil"))[2]
            return "ospf:9.9.9" in page

        await eventually(told, 20)
        assert namespaces(cluster) == []


@pytest.mark.parametrize("sandbox", ["nublado"], indirect=True)
@pytest.mark.usefixtures("offered")
async def test_a_learner_starts_and_stops_a_lab_in_the_dialect_of_nublado(cluster: Cluster, tmp_path: Path) -> None:
    await start_and_stop(cluster, tmp_path, "nublado")

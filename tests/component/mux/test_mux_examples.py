"""The examples of muxes are served as they stand (R003-052)."""

import contextlib
from collections.abc import AsyncIterator

import pytest
import yaml

from tests.component.controllers.looking import eventually
from tests.component.mux.harness import PREFIX, Json, MuxWorld
from vkprovider.platform.shipped import find_manifests

EXAMPLES = find_manifests() / "examples"
SERVICES = "/api/v1/namespaces/edge/services"


@pytest.fixture
async def edge(world: MuxWorld) -> AsyncIterator[MuxWorld]:
    """A world with the namespace of the examples."""
    await world.admin.create("/api/v1/namespaces", {"metadata": {"name": "edge"}})
    yield world
    for service in await world.admin.items(SERVICES):
        path = f"{SERVICES}/{service['metadata']['name']}"
        with contextlib.suppress(Exception):
            await world.admin.patch(path, {"metadata": {"finalizers": None}})
        await world.admin.delete(path)


async def shown(world: MuxWorld, name: str, annotation: str) -> str:
    """Wait for an annotation of a Service."""

    async def look() -> str:
        found = await world.admin.get(f"{SERVICES}/{name}") or {"metadata": {}}
        text: str = found["metadata"].get("annotations", {}).get(f"{PREFIX}/{annotation}", "")
        return text

    return await eventually(look, f"{annotation} of {name}")


async def test_both_muxes_have_the_range_and_the_limit_of_the_design(edge: MuxWorld) -> None:
    running = await edge.replica()
    for name in ("mux", "mux-gke"):
        edge.server.kubectl("apply", "-f", str(EXAMPLES / f"{name}.yaml"))
    assert await shown(edge, "web", "ports") == "http:80->8080, grpc:9090->20000"
    channel: Json = next(
        each for each in yaml.safe_load_all((EXAMPLES / "mux.yaml").read_text()) if each["metadata"]["name"] == "web"
    )
    channel["metadata"] = {"name": "more", "annotations": {f"{PREFIX}/external-ports": "p1:auto"}}
    channel["spec"]["ports"] = [{"name": f"p{number}", "port": number} for number in range(1, 101)]
    for mux in ("labs", "labs-gke"):
        channel["metadata"]["name"] = f"more-{mux}"
        channel["spec"]["loadBalancerClass"] = f"{PREFIX}/{mux}.edge"
        await edge.admin.create(SERVICES, channel)
    assert "p1:1->20000, p2:2->2, " in await shown(edge, "more-labs-gke", "ports")

    async def refused() -> list[Json]:
        selector = "fieldSelector=reason=MuxPortLimitExceeded"
        return await edge.admin.items(f"/api/v1/namespaces/edge/events?{selector}")

    [event] = await eventually(refused, "the limit of the other one")
    assert event["message"] == "edge/more-labs needs 100 ports; mux edge/labs has 100 at most"
    told = [each["reason"] for each in running.replica.events.recent]
    assert "GkePortLimitApplied" not in told, "the example says the limit itself"

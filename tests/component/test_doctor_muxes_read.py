"""The muxes to which definitions lend ports, on a real API server, as the doctor finds them."""

from collections.abc import AsyncIterator

import pytest

from tests.support.apiserver import GROUP, Admin, ApiServer
from tests.support.doctor import examined
from tests.support.topologies import definition
from vkprovider.doctor.findings import Finding

SERVICES = "/api/v1/namespaces/default/services"


@pytest.fixture
async def admin(apiserver: ApiServer) -> AsyncIterator[Admin]:
    async with Admin(apiserver) as admin:
        for name, mux in (("here", "labs.default"), ("unsaid", "labs")):
            await admin.create(f"{GROUP}/labletdefinitions", definition(name, expose={"mux": mux}))
        yield admin
        await admin.delete(f"{SERVICES}/labs")
        await admin.wipe()


async def findings(server: ApiServer) -> list[Finding]:
    report = await examined(server.kubeconfig)
    return [finding for finding in report.findings if finding.reason.startswith("Mux")]


async def test_a_mux_that_is_missing_or_open_is_found(apiserver: ApiServer, admin: Admin) -> None:
    [found] = await findings(apiserver)
    assert (found.object, found.reason) == ("LabletDefinition/here", "MuxMissing")
    spec = {"type": "LoadBalancer", "ports": [{"port": 101}], "allocateLoadBalancerNodePorts": False}
    await admin.create(SERVICES, {"metadata": {"name": "labs"}, "spec": spec})
    [found] = await findings(apiserver)
    assert (found.object, found.reason) == ("Service/default/labs", "MuxOpenToAll")
    await admin.patch(f"{SERVICES}/labs", {"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}})
    assert await findings(apiserver) == []

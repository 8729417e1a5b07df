"""The muxes to which definitions lend ports, on a real API server, as the doctor finds them."""

from collections.abc import AsyncIterator

import pytest

from tests.support.apiserver import GROUP, SYSTEM, Admin, ApiServer
from tests.support.topologies import definition
from vkprovider.doctor.findings import Finding
from vkprovider.doctor.gather import Doctor
from vkprovider.kube.client import KubeClient
from vkprovider.settings.cluster import KubeSettings
from vkprovider.shipped import find_manifests

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
    kube = await KubeClient.connect(KubeSettings(kubeconfig=str(server.kubeconfig)))
    try:
        manifest = (find_manifests() / "base" / "rbac.yaml").read_text()
        report = await Doctor(kube, context="test", namespace=SYSTEM, manifest=manifest, probe=False).examine()
    finally:
        await kube.close()
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

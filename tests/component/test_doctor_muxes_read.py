"""Muxes on a real API server, as the doctor finds them."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.component.mux.harness import install
from tests.support.apiserver import GROUP, MEMBERS, Admin, ApiServer
from tests.support.doctor import examined
from tests.support.topologies import definition
from vkprovider.doctor.findings import Finding, Level
from vkprovider.platform.shipped import find_manifests

APPS = "/apis/apps/v1"
SERVICES = "/api/v1/namespaces/default/services"


@pytest.fixture
async def admin(apiserver: ApiServer) -> AsyncIterator[Admin]:
    async with Admin(apiserver) as admin:
        for name, mux in (("here", "labs.default"), ("unsaid", "labs")):
            await admin.create(f"{GROUP}/labletdefinitions", definition(name, expose={"mux": mux}))
        yield admin
        await admin.delete(f"{SERVICES}/labs")
        await admin.wipe()


async def findings(server: ApiServer, *, about_program: bool = False) -> list[Finding]:
    """Return what is said of muxes, and, if that is asked for, whether a program serves them and may."""
    report = await examined(server.kubeconfig)
    program = {"MuxNotServed", "MuxStoreUnbound"}
    found = [finding for finding in report.findings if finding.reason.startswith("Mux")]
    return [finding for finding in found if (finding.reason in program) is about_program]


async def test_a_mux_that_is_missing_or_open_is_found(apiserver: ApiServer, admin: Admin) -> None:
    [found] = await findings(apiserver)
    assert (found.object, found.reason) == ("LabletDefinition/here", "MuxMissing")
    spec = {"type": "LoadBalancer", "ports": [{"port": 101}], "allocateLoadBalancerNodePorts": False}
    await admin.create(SERVICES, {"metadata": {"name": "labs"}, "spec": spec})
    [found] = await findings(apiserver)
    assert (found.object, found.reason) == ("Service/default/labs", "MuxOpenToAll")
    await admin.patch(f"{SERVICES}/labs", {"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}})
    assert await findings(apiserver) == []


async def test_a_mux_without_lablets_is_checked_where_muxes_are_served(apiserver: ApiServer) -> None:
    """With its channels, the load balancer of k3s, and the settings of the program."""
    prefix = "mux.example.com"
    async with Admin(apiserver) as admin:
        marked = {"metadata": {"name": "web", "annotations": {f"{prefix}/multiplexer": "true"}}}
        spec = {"type": "LoadBalancer", "ports": [{"port": 101}]}
        mux = await admin.create(SERVICES, {**marked, "spec": spec})
        assert await findings(apiserver) == [], "nothing serves muxes here"
        install(apiserver)
        assert await findings(apiserver, about_program=True) == [], "that is no mux by the prefix of the settings"
        config = "/api/v1/namespaces/vkprovider-system/configmaps"
        own = {"metadata": {"name": "vkprovider-mux-settings"}, "data": {"API_PREFIX": prefix, "NAMESPACE": "default"}}
        await admin.create(config, own)
        [found] = await findings(apiserver)
        assert (found.object, found.reason) == ("Service/default/web", "MuxNodePorts")
        assert found.message.startswith("default/web take 1 node port,")
        [store] = await findings(apiserver, about_program=True)
        assert (store.object, store.reason) == ("Service/default/web", "MuxStoreUnbound")
        apiserver.kubectl(*store.remedy.split()[1:])
        assert await findings(apiserver, about_program=True) == [], "the command mends it"
        apiserver.kubectl("delete", "-n", "default", "rolebinding", "vkprovider-mux-store")
        allocate = {"spec": {"allocateLoadBalancerNodePorts": False}}
        await admin.patch(f"{SERVICES}/web", allocate)
        assert [found.reason for found in await findings(apiserver)] == ["MuxNodePorts"], "it keeps what it has"
        await admin.patch(f"{SERVICES}/web", {"spec": {"ports": [{"name": "a", "port": 102}]}})
        assert await findings(apiserver) == []
        channel = {"type": "LoadBalancer", "loadBalancerClass": f"{prefix}/web", "ports": [{"name": "a", "port": 80}]}
        await admin.create(SERVICES, {"metadata": {"name": "api"}, "spec": channel})
        [found] = await findings(apiserver)
        assert found.message.startswith("default/api take 1 node port,")
        await admin.delete(f"{SERVICES}/api")
        await admin.create(f"{APPS}/namespaces/kube-system/daemonsets", klipper(mux))
        [found] = await findings(apiserver)
        assert (found.object, found.reason) == ("Service/default/web", "MuxServiceLB")
        assert "kube-system/svclb-web-" in found.message
        await admin.delete(f"{APPS}/namespaces/kube-system/daemonsets")
        await admin.delete(f"{SERVICES}/web")
        await admin.delete(f"{config}/vkprovider-mux-settings")
        await admin.patch(
            f"{APPS}/namespaces/vkprovider-system/deployments/vkprovider-mux", {"spec": by_variables(prefix)}
        )
        await admin.create(SERVICES, {**marked, "spec": spec})
        [found] = await findings(apiserver)
        assert (found.object, found.reason) == ("Service/default/web", "MuxNodePorts"), "as the chart says it"
        await admin.delete(f"{SERVICES}/web")
        apiserver.kubectl("delete", "-k", str(find_manifests() / "components" / "mux"), "--wait=false")


async def test_a_mux_is_served_or_that_is_said(apiserver: ApiServer) -> None:
    """By a program that is not installed, is installed and does not run, or runs anywhere and renews its Lease."""
    async with Admin(apiserver) as admin:
        spec = {"type": "LoadBalancer", "ports": [{"port": 101}], "allocateLoadBalancerNodePorts": False}
        mark = {"annotations": {"svc-mux.nowake.ai/multiplexer": "true"}}
        await admin.create(SERVICES, {"metadata": {"name": "web", **mark}, "spec": spec})
        [found] = await findings(apiserver, about_program=True)
        assert (found.level, found.object, found.reason) == (Level.NOTE, "Service/default/web", "MuxNotServed")
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        labels = {"app.kubernetes.io/managed-by": "vkprovider", "vkprovider.io/mux-replica": "true"}
        lease = {"holderIdentity": "a", "leaseDurationSeconds": 40, "renewTime": now}
        await admin.create(MEMBERS, {"metadata": {"name": "vkprovider-mux-replica-a", "labels": labels}, "spec": lease})
        found_then = await findings(apiserver, about_program=True)
        assert [each.reason for each in found_then] == ["MuxStoreUnbound"], "a replica serves it"
        await admin.delete(MEMBERS)
        install(apiserver)
        report = await examined(apiserver.kubeconfig)
        unavailable = [each for each in report.findings if each.reason == "ProgramUnavailable"]
        [down] = [each for each in unavailable if "mux" in each.object]
        assert (down.level, down.object) == (Level.FAULT, "Deployment/vkprovider-system/vkprovider-mux")
        assert down.message.startswith("0 of 2 Pods are available: muxes stay as they are")
        path = f"{APPS}/namespaces/vkprovider-system/deployments/vkprovider-mux/status"
        await admin.patch(path, {"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}})
        report = await examined(apiserver.kubeconfig)
        unavailable = [each for each in report.findings if each.reason == "ProgramUnavailable"]
        assert [each for each in unavailable if "mux" in each.object] == []
        await admin.delete(f"{SERVICES}/web")
        apiserver.kubectl("delete", "-k", str(find_manifests() / "components" / "mux"), "--wait=false")


def by_variables(prefix: str) -> dict[str, Any]:
    """Return a change of a Deployment that has its settings as variables."""
    own = {"name": "vkprovider-mux", "env": [{"name": "API_PREFIX", "value": prefix}]}
    return {"template": {"spec": {"containers": [{**own, "image": "vkprovider"}]}}}


def klipper(service: dict[str, Any]) -> dict[str, Any]:
    """Return the DaemonSet that k3s makes for a Service, as its pkg/cloudprovider/servicelb.go does."""
    name = f"svclb-web-{service['metadata']['uid'][:8]}"
    group = "svccontroller.k3s.cattle.io"
    labels = {f"{group}/nodeselector": "false", f"{group}/svcname": "web", f"{group}/svcnamespace": "default"}
    pod = {"containers": [{"name": "lb-tcp-102", "image": "rancher/klipper-lb:v0.4.9"}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}

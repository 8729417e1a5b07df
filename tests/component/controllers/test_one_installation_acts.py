"""Two installations whose providers both have rights: the second one does nothing until the first is gone."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import structlog

from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually, is_ready, when
from tests.component.controllers.running import MORTAL, Running
from tests.support.apiserver import NODE_LEASES, SYSTEM, Admin
from tests.support.doctor import examined
from vkprovider.doctor.findings import Finding, Level
from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.wiring.main import main
from vkprovider.platform.objects import Lease, Metadata
from vkprovider.platform.runtime.home import named_by
from vkpsandbox.controlplane.kubeconfig import read_cluster, write_kubeconfig

RBAC = "/apis/rbac.authorization.k8s.io/v1"
BINDING = f"{RBAC}/clusterrolebindings/vkprovider"
LABEL = "vkprovider.io/installed-in"


def binding(name: str, namespace: str, role: str = "vkprovider", kind: str = "ClusterRole") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "vkprovider", "namespace": namespace}],
    }


class Elsewhere:
    """A second installation whose ServiceAccount has all rights by bindings of other names."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.namespace = f"elsewhere-{world.run}"

    async def install(self) -> None:
        admin, name = self.world.admin, self.namespace
        await admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
        await admin.create(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "vkprovider"}})
        await admin.create(f"{RBAC}/clusterrolebindings", binding(name, name))
        for where, role in (
            (name, "admin-of-leases"),
            ("kube-node-lease", "vkprovider"),
            ("kube-system", "vkprovider"),
        ):
            if where == name:
                everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
                await admin.create(f"{RBAC}/namespaces/{name}/roles", {"metadata": {"name": role}, "rules": everything})
            await admin.create(f"{RBAC}/namespaces/{where}/rolebindings", binding(name, name, role, "Role"))

    async def remove(self) -> None:
        admin, name = self.world.admin, self.namespace
        await admin.request("DELETE", f"{RBAC}/clusterrolebindings/{name}")
        for where in (name, "kube-node-lease", "kube-system"):
            await admin.request("DELETE", f"{RBAC}/namespaces/{where}/rolebindings/{name}")

    async def replica(self) -> Running:
        return await self.world.replica(MORTAL, VKPROVIDER_NAMESPACE=self.namespace, KUBECONFIG=await self.login())

    async def login(self) -> str:
        """Return a kubeconfig of the ServiceAccount."""
        server, name = self.world.server, self.namespace
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        made = await self.world.admin.request(
            "POST", f"/api/v1/namespaces/{name}/serviceaccounts/vkprovider/token", asked
        )
        path = self.world._directory / "elsewhere.kubeconfig"
        write_kubeconfig(
            path, name="elsewhere", cluster=read_cluster(server.kubeconfig), user={"token": made["status"]["token"]}
        )
        return str(path)


@pytest.fixture
async def elsewhere(world: World) -> AsyncIterator[Elsewhere]:
    made = Elsewhere(world)
    await made.install()
    yield made
    await made.remove()


@pytest.fixture
async def bound(world: World) -> AsyncIterator[Admin]:
    """The first installation's binding is there again afterwards."""
    yield world.admin
    if await world.admin.get(BINDING) is None:
        await world.admin.create(f"{RBAC}/clusterrolebindings", binding("vkprovider", SYSTEM))


async def lease(world: World, worker: str) -> dict[str, Any]:
    return await world.admin.request("GET", f"{NODE_LEASES}/vnode.{worker}")


async def test_a_second_one_does_nothing_until_the_first_is_gone(
    world: World, elsewhere: Elsewhere, bound: Admin
) -> None:
    first = await world.replica(MORTAL)
    worker = await world.worker()
    assert (await lease(world, worker))["metadata"]["labels"][LABEL] == SYSTEM
    with structlog.testing.capture_logs() as logs:
        second = await elsewhere.replica()
        await when(lambda: second.replica.process.unready() == [f"installed in the namespace {SYSTEM}"], "it says so")
    said = next(entry["event"] for entry in logs if entry["log_level"] == "error")
    assert f"vkprovider is installed in the namespace {SYSTEM}" in said
    assert f"kubectl delete namespace {elsewhere.namespace}" in said

    await first.crash()  # nobody renews: a Lease that is old gives the cluster to no other installation
    definition = await world.define(ready=False)
    later = await world.replica(MORTAL)
    await world.lease(worker, lambda spec: spec.get("holderIdentity") == later.name)
    await world.admin.until(f"/apis/node.k8s.io/v1/runtimeclasses/{definition}", bool)
    assert second.replica.ownership.epochs == {}
    assert second.replica.process.membership.is_fenced
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{elsewhere.namespace}/leases"
    assert await world.admin.items(leases) == []
    await later.crash()

    await bound.request("DELETE", BINDING)
    await world.lease(worker, lambda spec: spec.get("holderIdentity") == second.name)
    await when(lambda: not second.replica.process.unready(), "it acts")
    assert (await lease(world, worker))["metadata"]["labels"][LABEL] == elsewhere.namespace
    await world.node(worker, is_ready)


async def test_a_second_one_without_rights_says_whose_they_are(world: World, unused_tcp_port: int) -> None:
    """What the admission policy leaves of it: a ServiceAccount that no binding names."""
    second = Elsewhere(world)
    await world.admin.create("/api/v1/namespaces", {"metadata": {"name": second.namespace}})
    account = {"metadata": {"name": "vkprovider"}}
    await world.admin.create(f"/api/v1/namespaces/{second.namespace}/serviceaccounts", account)
    environment = {
        "KUBECONFIG": await second.login(),
        "VKPROVIDER_NAMESPACE": second.namespace,
        "VKPROVIDER_HTTP_HOST": "127.0.0.1",
        "VKPROVIDER_HTTP_PORT": str(unused_tcp_port),
    }
    async with aiohttp.ClientSession(f"http://127.0.0.1:{unused_tcp_port}") as session:

        async def waits_for_rights() -> bool:
            try:
                async with session.get("/ready") as answer:
                    return bool((await answer.json())["missing"] == ["rights"])
            except aiohttp.ClientError:
                return False

        with structlog.testing.capture_logs() as logs:
            running = asyncio.create_task(main(Settings.from_environment(environment)))
            await eventually(waits_for_rights, "it waits for rights")
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    said = next(entry["error"] for entry in logs if "cannot be asked yet" in entry["event"])
    assert "kubectl get clusterrolebinding vkprovider -o wide" in said
    assert "docs/install.md, Another namespace" in said


async def test_the_doctor_names_the_namespace_that_has_it(world: World) -> None:
    async def examine(namespace: str) -> list[Finding]:
        report = await examined(world.server.kubeconfig, namespace=namespace)
        return [finding for finding in report.findings if finding.level is Level.FAULT]

    [finding] = await examine("team-vkp")
    assert (finding.object, finding.reason) == ("ClusterRoleBinding/vkprovider", "InstalledElsewhere")
    assert finding.message.startswith(f"vkprovider is installed in the namespace {SYSTEM}, and a cluster has one")
    assert finding.remedy.startswith(f"vkprovider doctor --namespace {SYSTEM}; ")
    assert "InstalledElsewhere" not in [each.reason for each in await examine(SYSTEM)]


async def test_a_lease_of_an_earlier_version_is_taken_and_marked(world: World) -> None:
    first = await world.replica(MORTAL)
    worker = await world.worker()
    await first.stop()
    await world.admin.patch(f"{NODE_LEASES}/vnode.{worker}", {"metadata": {"labels": {LABEL: None}}})
    second = await world.replica(MORTAL)
    await world.lease(worker, lambda spec: spec.get("holderIdentity") == second.name)
    assert (await lease(world, worker))["metadata"]["labels"][LABEL] == SYSTEM


def test_the_oldest_lease_comes_first() -> None:
    def made(name: str, created: str, namespace: str = "") -> Lease:
        labels = {LABEL: namespace} if namespace else {}
        return Lease(metadata=Metadata(name=name, creation_timestamp=created, labels=labels))

    leases = [
        made("c", "2026-01-01T00:00:03Z", "two"),
        made("b", "2026-01-01T00:00:01Z", "one"),
        made("d", "2026-01-01T00:00:04Z", "one"),
        made("a", "2026-01-01T00:00:00Z"),
    ]
    assert named_by(leases) == ["one", "two"]
    assert named_by([]) == []

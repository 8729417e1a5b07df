"""A replica that does not lead adopts what the leader has written of a definition; it writes nothing until it leads."""

from typing import Any

import msgspec
import pytest

from tests.component.controllers.parts import context
from tests.support.scripted import ScriptedServer, refuse
from tests.support.topologies import topology
from vkprovider.api import names
from vkprovider.api.objects import ConfigMap, CustomResource
from vkprovider.content.objects import open_store
from vkprovider.controllers.definition.impediments import Impediments
from vkprovider.controllers.definition.packages import Packages
from vkprovider.controllers.definition.reconciler import Definitions
from vkprovider.domain.definition import content as contents
from vkprovider.domain.definition.package import Package
from vkprovider.domain.topology.resources import SHIPPED
from vkprovider.kube.client import KubeClient
from vkprovider.kube.queue import KeyedQueue
from vkprovider.settings.services import ContentSettings, PackageSettings

TEXT = topology({"h0": "alpine"})
READY = {"conditions": [{"type": "Ready", "status": "True", "reason": "ContentReady", "message": "versions kept: 1.0"}]}
REFUSED = {"conditions": [{"type": "Ready", "status": "False", "reason": "TopologyInvalid", "message": "line 3"}]}


class Follower:
    """The definitions of a replica that does not lead, with what its informers know."""

    def __init__(self, kube: KubeClient) -> None:
        ctx = context(kube)
        self.resource: CustomResource | None = None
        self.leads = False
        self.changes = 0
        stored = contents.build(definition="netlab", uid="u1", namespace="n", package=Package("1.0", TEXT), sequence=1)
        self.stored = [msgspec.convert(stored, ConfigMap)]
        queue = KeyedQueue[str](name="packages", workers=1)
        store = open_store(ContentSettings())
        packages = Packages(store, ctx.parser, PackageSettings(), queue, lambda _: None)
        self.definitions = Definitions(
            ctx,
            lambda _: self.resource,
            lambda _: None,
            lambda: self.stored,
            lambda: self.leads,
            packages,
            Impediments(ctx, list, (10000, 20000)),
            node_definitions=SHIPPED,
            ports_max=50,
            reconcile_s=30.0,
            form_stored=lambda _: None,
            changed=self.change,
        )

    def change(self) -> None:
        self.changes += 1

    async def see(self, status: dict[str, Any], **metadata: Any) -> tuple[list[str], str]:
        """Reconcile the definition as it is now; return its usable versions and its fault."""
        spec = {"version": "1.0", "source": {"inline": TEXT}}
        meta = {"name": "netlab", "uid": "u1", **metadata}
        self.resource = msgspec.convert({"metadata": meta, "spec": spec, "status": status}, CustomResource)
        await self.definitions.reconcile("netlab")
        found = self.definitions.items["netlab"]
        return [content.version for content in found.versions], found.fault.reason if found.fault else ""


@pytest.fixture
def follower(kube: KubeClient) -> Follower:
    return Follower(kube)


async def test_versions_and_faults_are_those_of_the_leader(follower: Follower, server: ScriptedServer) -> None:
    assert await follower.see(READY) == (["1.0"], "")
    assert await follower.see(REFUSED) == (["1.0"], "TopologyInvalid")
    assert follower.changes == 2
    assert await follower.see(REFUSED) == (["1.0"], "TopologyInvalid")
    assert not server.seen


async def test_a_deleted_definition_accepts_no_pods_before_its_leader_says_so(follower: Follower) -> None:
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert await follower.see(READY, **deleted) == ([], "Deleting")
    assert await follower.see(REFUSED, **deleted) == ([], "TopologyInvalid")


async def test_a_definition_that_is_gone_is_forgotten(follower: Follower) -> None:
    await follower.see(READY)
    follower.resource = None
    await follower.definitions.reconcile("netlab")
    assert (follower.definitions.items, follower.definitions.contents, follower.changes) == ({}, {}, 2)


async def test_content_that_was_deleted_while_no_replica_led_is_stored_by_the_next_leader(
    follower: Follower, server: ScriptedServer
) -> None:
    await follower.see(READY)
    follower.definitions.content_changed(follower.stored.pop(), None)
    assert await follower.see(READY) == (["1.0"], "")
    assert not server.seen
    follower.leads = True
    server.next(refuse(404, "not found"), when="GET /apis/node.k8s.io/v1/runtimeclasses/netlab", times=2)
    server.next(refuse(404, "not found"), when="labletdefinitions/netlab/status", times=2)
    for _ in range(2):
        await follower.see(READY, finalizers=[names.FINALIZER])
    [stored] = [seen for seen in server.seen if seen.method == "POST" and seen.path.endswith("/configmaps")]
    assert stored.json["metadata"]["annotations"]["vkprovider.io/version"] == "1.0"

"""A replica that does not lead adopts what the leader has written of a definition; it writes nothing until it leads."""

from typing import Any

import msgspec
import pytest

from tests.component.controllers.parts import Clock, context
from tests.support.apiserver import SYSTEM
from tests.support.scripted import ScriptedServer, Seen, answer, refuse
from tests.support.topologies import topology
from vkprovider.lablet import names
from vkprovider.labs.content.objects import open_store
from vkprovider.labs.content.parsing import shared_parser
from vkprovider.labs.controllers.definition.impediments import Impediments
from vkprovider.labs.controllers.definition.packages import Packages
from vkprovider.labs.controllers.definition.reconciler import Definitions
from vkprovider.labs.pure.definition import content as contents
from vkprovider.labs.pure.definition import refresh
from vkprovider.labs.pure.definition.package import Package
from vkprovider.labs.pure.topology.resources import SHIPPED
from vkprovider.labs.settings.services import ContentSettings, PackageSettings
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.queue import KeyedQueue
from vkprovider.platform.objects import ConfigMap, CustomResource

TEXT, OTHER = topology({"h0": "alpine"}), topology({"h1": "alpine"})
READY = {"conditions": [{"type": "Ready", "status": "True", "reason": "ContentReady", "message": "versions kept: 1.0"}]}
REFUSED = {"conditions": [{"type": "Ready", "status": "False", "reason": "TopologyInvalid", "message": "line 3"}]}


def version(name: str, text: str, sequence: int) -> ConfigMap:
    body = contents.build(definition="netlab", uid="u1", namespace="n", package=Package(name, text), sequence=sequence)
    return msgspec.convert(body, ConfigMap)


def created(server: ScriptedServer) -> list[Seen]:
    """Return the requests that create a ConfigMap."""
    return [seen for seen in server.seen if seen.method == "POST" and seen.path.endswith("/configmaps")]


class Follower:
    """The definitions of a replica that does not lead, with what its informers know."""

    def __init__(self, kube: KubeClient) -> None:
        self.clock = Clock()
        ctx = context(kube, now=self.clock)
        self.resource: CustomResource | None = None
        self.leads = False
        self.changes = 0
        self.stored = [version("1.0", TEXT, 1)]
        queue = KeyedQueue[str](name="packages", workers=1)
        parser = shared_parser()
        store = open_store(ContentSettings())
        packages = Packages(store, parser, PackageSettings(), queue, lambda _: None)
        self.definitions = Definitions(
            ctx,
            lambda _: self.resource,
            lambda _: None,
            lambda: self.stored,
            lambda: self.leads,
            packages,
            Impediments(ctx, list, (10000, 20000)),
            parser=parser,
            node_definitions=SHIPPED,
            boot_timeouts={},
            start_timeout_s=None,
            ports_max=50,
            reconcile_s=30.0,
            form_stored=lambda _: None,
            changed=self.change,
        )

    def change(self) -> None:
        self.changes += 1

    async def see(
        self, status: dict[str, Any], *, wrong: dict[str, Any] | None = None, **metadata: Any
    ) -> tuple[list[str], str]:
        """Reconcile the definition as it is now; return its usable versions and its fault."""
        spec = {"version": "1.0", "source": {"inline": TEXT}} | (wrong or {})
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


TWICE = [{"name": "SITE"}, {"name": "SITE"}]


@pytest.mark.parametrize("leads", [False, True], ids=["follows", "leads"])
@pytest.mark.parametrize(
    ("wrong", "cpu"),
    [
        ({"parameters": TWICE, "resources": {"cpu": "4"}}, 4000),
        ({"resources": {"cpu": "2 cores"}}, 1000),
        ({"keepVersions": 99, "bootTimeoutSeconds": 1}, 1000),
    ],
)
async def test_after_a_restart_a_wrong_spec_has_the_versions_of_the_one_before(
    follower: Follower, server: ScriptedServer, wrong: dict[str, Any], cpu: int, *, leads: bool
) -> None:
    """Lablets run them: what these need is charged, and their devices are known."""
    server.next(refuse(404, "not found"), when="labletdefinitions/netlab/status", times=9)
    follower.leads = leads
    assert await follower.see(READY, wrong=wrong) == (["1.0"], "SpecInvalid")
    [content] = follower.definitions.contents.values()
    assert content.need is not None
    assert content.need.cpu_m == cpu
    assert {seen.path.rpartition("/")[2] for seen in server.seen} == ({"status"} if leads else set())


async def test_a_deleted_definition_accepts_no_pods_before_its_leader_says_so(follower: Follower) -> None:
    deleted: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert await follower.see(READY, **deleted) == ([], "Deleting")
    assert await follower.see(REFUSED, **deleted) == ([], "TopologyInvalid")


async def test_a_definition_that_is_gone_is_forgotten(follower: Follower) -> None:
    await follower.see(READY)
    follower.resource = None
    await follower.definitions.reconcile("netlab")
    assert (follower.definitions.items, follower.definitions.contents, follower.changes) == ({}, {}, 2)


@pytest.fixture
def leader(follower: Follower, server: ScriptedServer) -> Follower:
    """Return the follower, which leads from now on."""
    server.next(refuse(404, "not found"), when="GET /apis/node.k8s.io/v1/runtimeclasses/netlab", times=9)
    server.next(refuse(404, "not found"), when="labletdefinitions/netlab/status", times=9)
    follower.leads = True
    return follower


async def test_content_that_was_deleted_while_no_replica_led_is_stored_by_the_next_leader(
    leader: Follower, server: ScriptedServer
) -> None:
    leader.leads = False
    await leader.see(READY)
    leader.definitions.content_changed(leader.stored.pop(), None)
    assert await leader.see(READY) == (["1.0"], "")
    assert not server.seen
    leader.leads = True
    for _ in range(2):
        await leader.see(READY, finalizers=[names.FINALIZER])
    [stored] = created(server)
    assert stored.json["metadata"]["annotations"]["vkprovider.io/version"] == "1.0"


async def test_content_that_another_replica_stored_again_is_not_missing(
    leader: Follower, server: ScriptedServer
) -> None:
    await leader.see(READY, finalizers=[names.FINALIZER])
    [stored] = leader.stored
    leader.definitions.content_changed(stored, None)
    leader.definitions.content_changed(None, stored)
    await leader.see(READY, finalizers=[names.FINALIZER])
    assert not created(server)


async def test_content_that_the_leader_deleted_is_not_missing_when_the_watch_shows_it_late(
    leader: Follower, server: ScriptedServer
) -> None:
    old = version("1.0", OTHER, 0)
    leader.stored.append(old)
    await leader.see(READY, finalizers=[names.FINALIZER])
    leader.clock.now += 61.0
    server.next(answer({"metadata": {}, "items": []}), when="GET ", times=2)  # the claims of all workers
    await leader.see(READY, finalizers=[names.FINALIZER])
    assert next(seen.path for seen in server.seen if seen.method == "DELETE").endswith(old.metadata.name)
    await leader.see(READY, finalizers=[names.FINALIZER])
    leader.stored.remove(old)
    leader.definitions.content_changed(old, None)
    await leader.see(READY, finalizers=[names.FINALIZER])
    assert not created(server)
    assert len(leader.definitions.contents) == 1


async def test_request_that_makes_an_older_version_current_has_one_answer(
    leader: Follower, server: ScriptedServer
) -> None:
    """Also if the definition is looked at again before its watch shows the answer."""
    [stored] = leader.stored
    leader.stored.append(version("2.0", OTHER, 2))
    path = f"GET /api/v1/namespaces/{SYSTEM}/configmaps/{stored.metadata.name}"
    server.next(answer(msgspec.to_builtins(stored)), when=path)
    request = {names.ANNOTATION_REFRESH: refresh.write("jane", "2026-01-01T00:00:00Z", force=False)}
    for _ in range(2):
        await leader.see(READY, finalizers=[names.FINALIZER], annotations=request)
    answers = [seen.json["status"]["lastRefresh"]["result"] for seen in server.seen if seen.path.endswith("/status")]
    assert answers == ["Stored", "Stored"]


async def test_an_older_version_that_the_last_leader_deleted_is_stored_again_when_it_is_asked_for(
    leader: Follower, server: ScriptedServer
) -> None:
    """The replica followed, and had it in memory."""
    [stored] = leader.stored
    leader.stored.append(version("2.0", OTHER, 2))
    leader.leads = False
    await leader.see(READY)
    leader.stored.remove(stored)
    leader.definitions.content_changed(stored, None)
    leader.definitions.content_changed(None, stored)
    leader.leads = True
    server.next(refuse(404, "not found"), when=f"GET /api/v1/namespaces/{SYSTEM}/configmaps/{stored.metadata.name}")
    request = {names.ANNOTATION_REFRESH: refresh.write("jane", "2026-01-01T00:00:00Z", force=False)}
    versions, fault = await leader.see(READY, finalizers=[names.FINALIZER], annotations=request)
    assert (versions[0], fault) == ("1.0", "")
    [again] = created(server)
    assert again.json["metadata"]["annotations"][contents.ANNOTATION_SEQUENCE] == "3"

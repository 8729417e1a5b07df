"""What the shipped admission policies refuse, what they let through, and what they say (C08, C46)."""

import copy
import re
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.component.controllers.harness import World, open_world
from tests.component.controllers.looking import eventually, is_ready
from tests.support.apiserver import GROUP, RUNTIME_CLASSES, ApiServer, Refused
from tests.support.installation import EVERYBODY, MANIFESTS
from tests.support.topologies import definition, pod
from vkprovider.lablet import names
from vkprovider.labs.pure.definition import refresh

pytestmark = pytest.mark.asyncio(loop_scope="module")

REQUIRE_USE: Final = str(MANIFESTS / "components" / "require-use" / "policy.yaml")
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
MERGE_PATCH = "application/merge-patch+json"
NETLAB = f"{GROUP}/labletdefinitions/netlab"
TOLERATION = {"key": names.TAINT_VIRTUAL_NODE, "operator": "Exists"}
EVERYTHING = {"operator": "Exists"}


class Installation:
    """The overlay's policies in force, with a worker, a replica, and the namespaces `default` and `elsewhere`."""

    def __init__(self, server: ApiServer, world: World, worker: str) -> None:
        self.server = server
        self.world = world
        self.admin = world.admin
        self.worker = worker
        self.namespace = world.namespace
        self.pods = f"/api/v1/namespaces/{world.namespace}/pods"

    async def refused(
        self, method: str, path: str, body: object, content_type: str = "application/json", *, user: str = ""
    ) -> str:
        """Return what the API server says against a request; empty if it carried it out."""
        try:
            await self.admin.request(method, path, body, content_type, user=user)
        except Refused as error:
            return str(error)
        return ""

    async def refusal(self, item: dict[str, Any], namespace: str = "") -> str:
        """Return what the API server says against a new object; empty if it would take it."""
        where = f"/api/v1/namespaces/{namespace or self.namespace}/pods"
        path = where if item["kind"] == "Pod" else f"{GROUP}/labletdefinitions"
        return await self.refused("POST", f"{path}?dryRun=All&fieldValidation=Strict", item)

    async def annotated(self, name: str, **annotations: str | None) -> str:
        """Return what the API server says against annotations of our group on a Pod; empty if it set them."""
        notes = {f"vkprovider.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        return await self.refused("PATCH", f"{self.pods}/{name}", {"metadata": {"annotations": notes}}, MERGE_PATCH)

    async def label(self, path: str) -> None:
        await self.admin.patch(path, {"metadata": {"labels": {"still": "changes"}}})

    async def until_refused(self, item: dict[str, Any], namespace: str = "") -> str:
        """Wait until the API server would refuse a new object; return what it says."""
        return await eventually(lambda: self.refusal(item, namespace), "a refusal")

    async def until_taken(self, item: dict[str, Any], namespace: str = "") -> None:
        """Wait until the API server would take a new object."""

        async def taken() -> bool:
            return not await self.refusal(item, namespace)

        await eventually(taken, "no refusal")

    async def ask(self, request: str, *, dry: bool = True, user: str = "") -> str:
        """Return what the API server says against a refresh request; empty if it takes it."""
        body = {"metadata": {"annotations": {names.ANNOTATION_REFRESH: request}}}
        return await self.refused("PATCH", NETLAB + ("?dryRun=All" if dry else ""), body, MERGE_PATCH, user=user)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installation(apiserver: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    """`netlab` charges licences, `free` neither licences nor ports; `other` is somebody else's RuntimeClass."""
    async with open_world(apiserver, tmp_path_factory.mktemp("policies")) as world:
        await world.replica()
        made = Installation(apiserver, world, await world.worker())
        await world.define(name="netlab")
        await world.define(name="free", resources={"cpu": "100m", "memory": "64Mi", "labNodes": 0, "ports": 0})
        other = {"metadata": {"name": "other"}, "handler": "runc", "overhead": {"podFixed": {"cpu": "10m"}}}
        await world.admin.create(RUNTIME_CLASSES, other)
        # The API server learns of policies and RuntimeClasses a moment after they were made.
        apiserver.kubectl("apply", "--server-side", "-f", REQUIRE_USE)
        await made.until_refused(pod("first", "netlab"))
        apiserver.kubectl(*EVERYBODY)
        try:
            await made.until_taken(pod("first", "netlab"))
            await made.until_refused(plain("first", tolerations=[TOLERATION]))
            await made.until_refused(plain("first", tolerations=[TOLERATION], runtimeClassName="other"))
            await made.until_refused(annotated("first", names.ANNOTATION_STATE))
            await eventually(lambda: made.ask("by hand"), "a refusal")
            yield made
        finally:
            apiserver.kubectl("delete", "clusterrolebinding", "lablets")
            apiserver.kubectl("delete", "-f", REQUIRE_USE)
            await made.until_taken(pod("last", "netlab"))


def plain(name: str, **spec: Any) -> dict[str, Any]:
    """Make a Pod that is no lablet, and bound to no node: no kubelet would let it go."""
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "main:1"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def annotated(name: str, key: str) -> dict[str, Any]:
    made = pod(name, "netlab")
    made["metadata"]["annotations"] = {key: "made up"}
    return made


# ------------------------------------------------------------------------------------------- tolerations
@pytest.mark.parametrize("key", [names.TAINT_VIRTUAL_NODE, names.TAINT_ENV, "vkprovider.io/anything"])
async def test_toleration_needs_the_runtime_class_of_a_definition(installation: Installation, key: str) -> None:
    tolerations = [{"key": "some/taint", "operator": "Exists"}, {"key": key, "operator": "Exists"}]
    said = await installation.refusal(plain("stray", tolerations=tolerations))
    assert "Only lablets may tolerate vkprovider.io/ taints or ask for a virtual node." in said
    assert "Set spec.runtimeClassName to a LabletDefinition" in said
    said = await installation.refusal(plain("stray", tolerations=tolerations, runtimeClassName="other"))
    assert "RuntimeClass other is not that of a LabletDefinition" in said
    assert "remove tolerations and nodeSelector with keys that begin with vkprovider.io/" in said


@pytest.mark.parametrize(
    "wish_of",
    [
        lambda worker: {"nodeName": f"vnode.{worker}"},
        lambda _: {"nodeName": "vnode.not-there"},
        lambda _: {"nodeSelector": {"vkprovider.io/component": "vnode"}},
        lambda worker: {"nodeSelector": {"kubernetes.io/hostname": f"vnode.{worker}"}},
    ],
    ids=["a node", "a node that is not there", "any", "a node's label"],
)
async def test_virtual_node_is_asked_for_by_lablets_only(
    installation: Installation, wish_of: Callable[[str], dict[str, Any]]
) -> None:
    """A squatter with a toleration of everything would take the room of lablets."""
    wish = wish_of(installation.worker)
    for more in ({}, {"tolerations": [EVERYTHING]}):
        said = await installation.refusal(plain("squatter", **wish, **more))
        assert "Only lablets may tolerate vkprovider.io/ taints or ask for a virtual node." in said
        said = await installation.refusal(plain("squatter", runtimeClassName="other", **wish, **more))
        assert "RuntimeClass other is not that of a LabletDefinition" in said
    lablet = pod("lablet", "netlab")
    lablet["spec"] |= wish if "nodeName" in wish else {}
    assert await installation.refusal(lablet) == ""


@pytest.mark.parametrize("name", ["netlab", "free"])
async def test_lablets_pass(installation: Installation, name: str) -> None:
    """With the tolerations that the RuntimeClass adds, and with their own, as a DaemonSet of lablets has them."""
    assert await installation.refusal(pod("lablet", name)) == ""
    assert await installation.refusal(pod("lablet", name, tolerations=[TOLERATION])) == ""


async def test_others_pass(installation: Installation) -> None:
    assert await installation.refusal(plain("other")) == ""
    assert await installation.refusal(plain("other", runtimeClassName="other")) == ""
    assert await installation.refusal(plain("other", tolerations=[EVERYTHING])) == ""
    assert await installation.refusal(plain("other", nodeName="plain")) == ""
    assert await installation.refusal(plain("other", nodeSelector={"kubernetes.io/hostname": "plain"})) == ""
    assert await installation.refusal(plain("other", tolerations=[{"key": "some/taint", "operator": "Exists"}])) == ""


async def test_toleration_added_later_is_refused(installation: Installation) -> None:
    path = f"{installation.pods}/late"
    late = plain("late", tolerations=[{"key": "some/taint", "operator": "Exists"}])
    await installation.admin.create(installation.pods, late)
    patch = [{"op": "add", "path": "/spec/tolerations/-", "value": TOLERATION}]
    said = await installation.refused("PATCH", path, patch, "application/json-patch+json")
    assert "Only lablets may tolerate" in said
    await installation.label(path)
    await installation.admin.delete(path, grace_s=0)


async def test_pod_from_before_the_policies_can_be_changed_and_removed(installation: Installation) -> None:
    before, path = plain("before", tolerations=[TOLERATION]), f"{installation.pods}/before"
    installation.server.kubectl("delete", "validatingadmissionpolicybinding", "vkprovider-tolerations")
    try:
        await installation.until_taken(before)
        await installation.admin.create(installation.pods, before)
    finally:
        installation.server.kubectl("apply", "--server-side", "-k", str(MANIFESTS / "policies"))
        await installation.until_refused(before | {"metadata": {"name": "after"}})
    await installation.label(path)
    await installation.admin.delete(path, grace_s=0)


# ------------------------------------------------------------------------------------------- reports
@pytest.mark.parametrize("key", sorted(names.REPORTS - {names.ANNOTATION_LEARNER}))
async def test_reports_come_from_the_provider_only(installation: Installation, key: str) -> None:
    said = await installation.refusal(annotated("forged", key))
    assert f"Only the provider writes {key}. Remove it from the annotations of the manifest" in said


@pytest.mark.parametrize("key", ["vkprovider.io/username", "vkprovider.io/desired-state", "example.com/state"])
async def test_input_passes(installation: Installation, key: str) -> None:
    assert await installation.refusal(annotated("asks", key)) == ""


async def test_reports_of_a_lablet_are_carried_along_and_not_changed(installation: Installation) -> None:
    lablet = await installation.world.pod("netlab", installation.worker)
    wanted = {names.ANNOTATION_STATE, names.ANNOTATION_LAB_ID, names.ANNOTATION_CONTENT}
    found = await lablet.until(lambda pod: is_ready(pod) and wanted <= pod["metadata"]["annotations"].keys())

    carried = copy.deepcopy(found)
    carried["metadata"]["labels"]["carried"] = "along"
    carried["metadata"].pop("resourceVersion")
    await installation.admin.replace(lablet.path, carried)
    await lablet.annotate(username="ada")
    heard = {"status": {"conditions": [{"type": "example.com/Seen", "status": "True"}]}}
    await installation.admin.request("PATCH", f"{lablet.path}/status", heard, STRATEGIC_PATCH)

    said = await installation.annotated(lablet.name, lab_id="somebody-elses")
    assert f"Only the provider writes {names.ANNOTATION_LAB_ID}." in said
    patch = {"metadata": {"annotations": {names.ANNOTATION_LAB_ID: "somebody-elses"}}}
    said = await installation.refused("PATCH", f"{lablet.path}/status", patch, STRATEGIC_PATCH)
    assert "Only the provider writes" in said

    await lablet.annotate(state=None)
    await lablet.until(
        lambda pod: pod["metadata"]["annotations"].get(names.ANNOTATION_STATE) == "READY",
        "the provider does not write its report again",
    )
    await lablet.delete()
    await lablet.gone()


async def test_reports_do_not_come_with_a_binding(installation: Installation) -> None:
    path = f"{installation.pods}/unbound"
    await installation.admin.create(installation.pods, plain("unbound"))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "unbound", "annotations": {names.ANNOTATION_STATE: "READY"}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": f"vnode.{installation.worker}"},
    }
    said = await installation.refused("POST", f"{path}/binding", binding)
    assert f"Only the provider writes {names.ANNOTATION_STATE}" in said
    await installation.admin.delete(path, grace_s=0)


# ------------------------------------------------------------------------------------------- learners
async def test_username_is_neither_changed_nor_removed_while_the_lablet_has_a_learner(
    installation: Installation,
) -> None:
    """Everything else may change; the provider itself ends the learner's time."""
    username, learner = names.ANNOTATION_USERNAME, names.ANNOTATION_LEARNER
    lablet = await installation.world.pod(
        "netlab",
        installation.worker,
        annotations={username: "mallory"},
        labels={names.LABEL_POOL: "evening"},
    )

    def notes(pod: dict[str, Any]) -> dict[str, str]:
        found: dict[str, str] = pod["metadata"].get("annotations", {})
        return found

    await lablet.until(lambda pod: notes(pod).get(learner) == "mallory")
    for name in ("eve", None):
        said = await installation.annotated(lablet.name, username=name)
        assert "The lablet, its session and its lab are those of mallory." in said
        assert f"kubectl lablet release {lablet.name}" in said
        said = await installation.annotated(lablet.name, learner=name)
        assert f"Only the provider writes and removes {learner}." in said
    patch = {"metadata": {"annotations": {username: "eve"}}}
    said = await installation.refused("PATCH", f"{lablet.path}/status", patch, STRATEGIC_PATCH)
    assert "are those of mallory" in said
    await installation.label(lablet.path)
    await lablet.ready()
    await lablet.annotate(lent_by="evening", desired_state="COLLECTING")
    await lablet.until(lambda pod: not {username, learner, names.ANNOTATION_LENT_BY} & notes(pod).keys())
    await lablet.annotate(username="eve")
    await lablet.until(lambda pod: notes(pod).get(learner) == "eve")
    await lablet.delete()
    await lablet.gone()


async def test_learner_comes_from_the_provider_only(installation: Installation) -> None:
    said = await installation.refusal(annotated("forged", names.ANNOTATION_LEARNER))
    assert "Only the provider writes and removes vkprovider.io/learner." in said


# ------------------------------------------------------------------------------------------- refresh requests
AT = "2026-01-01T00:00:00Z"


async def test_refresh_is_asked_for_in_ones_own_name(installation: Installation) -> None:
    """R000-076."""
    review = await installation.admin.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    me = review["status"]["userInfo"]["username"]
    for force in (False, True):
        assert await installation.ask(refresh.write(me, AT, force=force)) == ""
    own = refresh.write(me, AT, force=False)
    for request in (
        refresh.write("somebody-else", AT, force=False),
        refresh.write("", AT, force=False),
        refresh.write(me + "x", AT, force=True),
        own + " ",
        own.replace('"force":false', f'"force":false,"requestedBy":"{me}"'),
        own.replace('"force":false', '"force":0'),
        own.replace('"}', '","requestedBy":"somebody-else"}'),
        f'{me}"}}',
        AT,
        "now",
    ):
        said = await installation.ask(request, dry=False)
        assert f"A refresh is asked for in your own name, {me}, by: kubectl lablet refresh netlab" in said, request
    made = definition("copied")
    made["metadata"]["annotations"] = {names.ANNOTATION_REFRESH: refresh.write("somebody-else", AT, force=False)}
    assert "A refresh is asked for in your own name" in await installation.refusal(made)


@pytest.mark.parametrize("user", ["jane@example.com", "system:serviceaccount:team:bot", 'a "b" \\c', "jürgen by jane"])
async def test_name_of_any_caller_fits(installation: Installation, user: str) -> None:
    assert await installation.ask(refresh.write(user, AT, force=False), user=user) == ""
    assert "in your own name" in await installation.ask(refresh.write("system:admin", AT, force=False), user=user)


async def test_request_of_somebody_else_is_carried_along(installation: Installation) -> None:
    assert await installation.ask(refresh.write("jane", AT, force=False), dry=False, user="jane") == ""
    await installation.label(NETLAB)
    await installation.admin.until(
        NETLAB, lambda found: found["status"].get("lastRefresh", {}).get("requestedBy") == "jane"
    )
    await installation.admin.patch(NETLAB, {"metadata": {"annotations": {names.ANNOTATION_REFRESH: None}}})


# ------------------------------------------------------------------------------------------- use of definitions
@pytest_asyncio.fixture(loop_scope="module")
async def nobody_may(installation: Installation) -> AsyncIterator[str]:
    """The rights as the overlay leaves them, and another namespace; at the end everybody may run lablets again."""
    elsewhere = installation.world.name("elsewhere")
    await installation.admin.create("/api/v1/namespaces", {"metadata": {"name": elsewhere}})
    accounts = f"/api/v1/namespaces/{elsewhere}/serviceaccounts"
    await installation.admin.create(accounts, {"metadata": {"name": "default"}})
    installation.server.kubectl("delete", "clusterrolebinding", "lablets")
    yield elsewhere
    installation.server.kubectl(*EVERYBODY)
    await installation.until_taken(pod("lablet", "netlab"), elsewhere)


async def test_definition_must_be_granted_to_the_service_account(installation: Installation, nobody_may: str) -> None:
    """In its namespace, by the command that the refusal names; a toleration of everything is no way around."""
    said = await installation.until_refused(pod("lablet", "netlab"))
    assert f"ServiceAccount {installation.namespace}/default may not use LabletDefinition netlab" in said
    assert "may not use" in await installation.refusal(pod("lablet", "netlab", tolerations=[EVERYTHING]))
    other = plain("other", runtimeClassName="other", tolerations=[EVERYTHING])
    assert await installation.refusal(other) == ""
    command = re.search(rf"kubectl (-n {installation.namespace} create rolebinding .*)", said)
    assert command
    installation.server.kubectl(*command[1].split())
    await installation.until_taken(pod("lablet", "netlab"))
    said = await installation.until_refused(pod("lablet", "netlab"), nobody_may)
    assert f"ServiceAccount {nobody_may}/default may not use" in said

"""What `assign` lets a learner into, by the tokens of instructor, learner and provider, on the real API server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from tests.component.controllers.looking import eventually
from tests.component.manifests.test_instructors_pods import bind
from tests.support.apiserver import SYSTEM, Admin, ApiServer
from vkprovider.classroom import access
from vkprovider.classroom.pods import LabletPod, change, pods_in
from vkprovider.lablet import names
from vkprovider.platform.errors import Conflict, Forbidden
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.settings import KubeSettings

CLASS, OTHER = "class-assigned", "class-foreign"
NAMESPACES: Final = "/api/v1/namespaces"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
POLICY: Final = "ValidatingAdmissionPolicy 'vkprovider-assignments'"
CONFINED: Final = "ValidatingAdmissionPolicy 'vkprovider-confine'"
ALICE, BOB, TEACHER = (f"system:serviceaccount:{SYSTEM}:{name}" for name in ("alice", "bob", "assigner"))
Json = dict[str, Any]
SPEC: Final = {"containers": [{"name": "lab", "image": "lab:1"}]}
OWNER: Final = {"apiVersion": "v1", "kind": "Pod", "name": "one", "uid": "1"}


@pytest.fixture
async def places(admin: Admin) -> AsyncIterator[Admin]:
    """Two classes with three free lablets each, and an instructor of the first; namespaces and users stay."""
    async with made_places(admin):
        yield admin


@asynccontextmanager
async def made_places(admin: Admin) -> AsyncIterator[None]:
    """See `places`."""
    try:
        await _made(admin)
        yield
    finally:
        for name in (CLASS, OTHER):
            for kind in ("rolebindings", "roles"):
                await admin.delete(f"{RBAC}/namespaces/{name}/{kind}")
            for pod in ("one", "two", "three"):
                await admin.delete(f"{NAMESPACES}/{name}/pods/{pod}", grace_s=0)


async def _made(admin: Admin) -> None:
    for name in (CLASS, OTHER):
        for path, body in ((NAMESPACES, name), (f"{NAMESPACES}/{name}/serviceaccounts", "default")):
            if await admin.get(f"{path}/{body}") is None:
                await admin.create(path, {"metadata": {"name": body}})
        for pod in ("one", "two", "three"):
            meta = {"name": pod, "labels": {"vkprovider.io/pool": "warm"}}
            await admin.create(f"{NAMESPACES}/{name}/pods", {"metadata": meta, "spec": SPEC})
    for user in (ALICE, BOB, TEACHER):
        accounts, name = f"{NAMESPACES}/{SYSTEM}/serviceaccounts", user.rpartition(":")[2]
        if await admin.get(f"{accounts}/{name}") is None:  # it stays, as its token does
            await admin.create(accounts, {"metadata": {"name": name}})
    await bind(admin, "assigner", "vkprovider-instructor", CLASS)


async def client(apiserver: ApiServer, account: str) -> KubeClient:
    """Return a client with the token of an account."""
    path = apiserver.pki / f"kubeconfig-{account}"
    apiserver.write_provider_kubeconfig(path, account=account)
    return await KubeClient.connect(KubeSettings(kubeconfig=str(path)))


@pytest.fixture
async def teacher(apiserver: ApiServer, places: Admin) -> AsyncIterator[KubeClient]:
    """The instructor's client, when role and policy are in force: it takes the API server a moment."""
    async with assigner(apiserver, places) as kube:
        yield kube


@asynccontextmanager
async def assigner(apiserver: ApiServer, places: Admin) -> AsyncIterator[KubeClient]:
    """See `teacher`."""
    kube = await client(apiserver, "assigner")
    try:
        await _is_limited(kube, places)
        yield kube
    finally:
        await kube.close()


async def _is_limited(kube: KubeClient, places: Admin) -> None:
    async def limited() -> bool:
        try:
            await Resource(kube, access.ROLES, CLASS).create({"metadata": {"name": "x"}, "rules": []})
        except Forbidden as refused:
            return "vkprovider-assignments" in refused.message
        await places.delete(f"{RBAC}/namespaces/{CLASS}/roles/x")
        return False

    await eventually(limited, "the policy")


def binding(pod: str, *, name: str = "", **changed: Any) -> Json:
    """Return a binding, as a thief of the token may try it."""
    made = name or names.assignment_name(pod)
    owner = {**OWNER, "name": pod}
    body: Json = {
        "metadata": {"name": made, "ownerReferences": [owner]},
        "roleRef": {"apiGroup": access.GROUP, "kind": "Role", "name": made},
        "subjects": [{"apiGroup": access.GROUP, "kind": "User", "name": ALICE}],
    }
    return {**body, **changed}


def role(pod: str, *rules: Json, **meta: Any) -> Json:
    owner = {**OWNER, "name": pod}
    return {"metadata": {"name": names.assignment_name(pod), "ownerReferences": [owner], **meta}, "rules": list(rules)}


async def assign(kube: KubeClient, pod: str, user: str | None) -> LabletPod:
    """Name a learner on a Pod, as the provider and `give` do, and nothing else."""
    found = await pods_in(kube, CLASS).get(pod)
    assert found is not None
    return await change(kube, found, annotations={names.ANNOTATION_USERNAME: user})


async def may(admin: Admin, user: str, verb: str, resource: str, pod: str, namespace: str = CLASS) -> bool:
    kind, _, part = resource.partition("/")
    asked = {"verb": verb, "resource": kind, "subresource": part, "namespace": namespace, "name": pod}
    made = await admin.create(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": user, "resourceAttributes": asked}}
    )
    return bool(made["status"]["allowed"])


async def opens(admin: Admin, user: str, pod: str) -> bool:
    return await may(admin, user, "create", "pods/exec", pod)


async def test_a_learner_is_let_into_the_own_lablet_and_into_nothing_else(teacher: KubeClient, places: Admin) -> None:
    """The table of security.md, for who has an assigned lablet."""
    given = [await assign(teacher, "one", ALICE), await assign(teacher, "two", BOB)]
    assert await access.open_access(teacher, CLASS, given) == ()
    await eventually(lambda: opens(places, ALICE, "one"), "the role counts")
    await eventually(lambda: opens(places, BOB, "two"), "the role counts")
    allowed = {
        (verb, resource, pod)
        for pod in ("one", "two", "three")
        for resource in ("pods", "pods/log", "pods/exec", "pods/attach", "pods/portforward", "pods/status", "secrets")
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete")
        if await may(places, ALICE, verb, resource, pod)
    }
    reading = {("get", resource, "one") for resource in ("pods", "pods/log", "pods/exec", "pods/attach")}
    assert allowed == reading | {("create", resource, "one") for resource in ("pods/exec", "pods/attach")}
    assert not await may(places, ALICE, "get", "pods", "one", OTHER)
    before = [await places.items(f"{RBAC}/namespaces/{CLASS}/{kind}") for kind in ("roles", "rolebindings")]
    assert await access.open_access(teacher, CLASS, given) == (), "again"
    assert [await places.items(f"{RBAC}/namespaces/{CLASS}/{kind}") for kind in ("roles", "rolebindings")] == before
    for found in (each for kind in before for each in kind if "assigned" in each["metadata"]["name"]):
        [owner] = found["metadata"]["ownerReferences"]
        assert owner["uid"] in {pod.metadata.uid for pod in given}


async def test_the_next_learner_and_the_next_pod_shut_the_last_one_out(teacher: KubeClient, places: Admin) -> None:
    assert await access.open_access(teacher, CLASS, [await assign(teacher, "one", ALICE)]) == ()
    await eventually(lambda: opens(places, ALICE, "one"), "alice is in")
    late = await assign(teacher, "one", BOB)
    await access.open_access(teacher, CLASS, [late])
    await eventually(lambda: opens(places, BOB, "one"), "bob is in")
    assert not await opens(places, ALICE, "one")
    await places.delete(f"{NAMESPACES}/{CLASS}/pods/one", grace_s=0)
    meta = {"name": "one", "annotations": {names.ANNOTATION_USERNAME: ALICE}}
    made = await places.create(f"{NAMESPACES}/{CLASS}/pods", {"metadata": meta, "spec": SPEC})
    await access.open_access(teacher, CLASS, [msgspec.convert(made, LabletPod)])
    await eventually(lambda: opens(places, ALICE, "one"), "alice is in the new one")
    assert not await opens(places, BOB, "one")
    for kind in ("roles", "rolebindings"):
        found = await places.get(f"{RBAC}/namespaces/{CLASS}/{kind}/vkprovider-assigned:one")
        assert found is not None
        assert found["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]


async def test_what_comes_too_late_lets_nobody_in(teacher: KubeClient, places: Admin) -> None:
    """An instructor was held up between the Pod and the Role, while the lablet became another learner's."""
    early = await assign(teacher, "one", ALICE)
    now = await assign(teacher, "one", BOB)
    await access.open_access(teacher, CLASS, [now])
    await eventually(lambda: opens(places, BOB, "one"), "bob is in")
    await access.open_access(teacher, CLASS, [early])
    assert await opens(places, BOB, "one")
    assert not await opens(places, ALICE, "one")
    # And before the next one's is there: the writer itself takes it back.
    early = await assign(teacher, "two", ALICE)
    await assign(teacher, "two", None)
    await access.open_access(teacher, CLASS, [early])
    assert await places.get(f"{RBAC}/namespaces/{CLASS}/rolebindings/vkprovider-assigned:two") is None
    # Killed in between, it is the next who assigns anything.
    await places.create(f"{RBAC}/namespaces/{CLASS}/rolebindings", access.binding_for(early, ""))
    await access.open_access(teacher, CLASS, [now])
    assert await places.get(f"{RBAC}/namespaces/{CLASS}/rolebindings/vkprovider-assigned:two") is None


READS: Final = {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get"], "resourceNames": ["one"]}
WIDER: Final[Sequence[tuple[str, str, Json]]] = (
    (
        "a role with another name",
        "roles",
        {**role("one", READS), "metadata": {**role("one")["metadata"], "name": "mine"}},
    ),
    ("no owner", "roles", role("one", READS, ownerReferences=[])),
    (
        "an owner besides",
        "roles",
        role("one", READS, ownerReferences=[OWNER, {**OWNER, "uid": "2"}]),
    ),
    ("another Pod", "roles", role("one", {**READS, "resourceNames": ["two"]})),
    ("all Pods", "roles", role("one", {key: each for key, each in READS.items() if key != "resourceNames"})),
    ("patch", "roles", role("one", {**READS, "resources": ["pods"], "verbs": ["get", "patch"]})),
    ("list", "roles", role("one", {**READS, "resources": ["pods"], "verbs": ["list"]})),
    ("create of Pods", "roles", role("one", {**READS, "resources": ["pods"], "verbs": ["create"]})),
    ("ports", "roles", role("one", {**READS, "resources": ["pods/portforward"], "verbs": ["create"]})),
    ("ConfigMaps", "roles", role("one", {**READS, "resources": ["configmaps"]})),
    ("another group", "roles", role("one", {**READS, "apiGroups": ["apps"], "resources": ["daemonsets"]})),
    ("the own role", "rolebindings", binding("one", roleRef={**binding("one")["roleRef"], "kind": "ClusterRole"})),
    (
        "all that an instructor has",
        "rolebindings",
        binding("one", roleRef={"apiGroup": access.GROUP, "kind": "ClusterRole", "name": "vkprovider-instructor"}),
    ),
    (
        "everybody",
        "rolebindings",
        binding("one", subjects=[{"apiGroup": access.GROUP, "kind": "Group", "name": "system:authenticated"}]),
    ),
    (
        "nobody in particular",
        "rolebindings",
        binding("one", subjects=[{"apiGroup": access.GROUP, "kind": "User", "name": "system:anonymous"}]),
    ),
    ("five", "rolebindings", binding("one", subjects=binding("one")["subjects"] * 5)),
    ("an instructor more", "rolebindings", binding("one", name="vkprovider-instructor:mallory")),
)


BEYOND: Final = ("another group",)
"""What RBAC refuses before the policy: an instructor does not have it."""


async def test_an_instructor_gives_nothing_wider(teacher: KubeClient, places: Admin) -> None:
    """What the own role holds, too: without the policy, RBAC would let it pass."""
    roles, bindings = Resource(teacher, access.ROLES, CLASS), Resource(teacher, access.BINDINGS, CLASS)
    await roles.create(role("one", READS))
    path = f"{RBAC}/namespaces/{CLASS}/roles"
    await places.create(path, {"metadata": {"name": "vkprovider-instructor:mallory"}, "rules": []})
    wide = f"{RBAC}/clusterroles/{names.assignment_name('one')}"
    await places.create(f"{RBAC}/clusterroles", {"metadata": {"name": names.assignment_name("one")}, "rules": []})
    for what, kind, body in WIDER:
        with pytest.raises(Forbidden) as refused:
            await (roles if kind == "roles" else bindings).create(body)
        said = refused.value.message
        assert "vkprovider-assignments" in said or (what in BEYOND and "attempting to grant" in said), (what, said)
    await places.delete(wide)
    await places.create(f"{RBAC}/namespaces/{CLASS}/rolebindings", binding("x", name="of-an-admin"))
    with pytest.raises(Forbidden, match="vkprovider-assignments"):
        await bindings.delete("of-an-admin")
    for method in (roles.patch, bindings.patch):
        with pytest.raises(Forbidden, match="cannot patch resource"):
            await method("vkprovider-assigned:one", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(Forbidden, match="is forbidden"):
        await Resource(teacher, access.ROLES, OTHER).create(role("one", READS))
    assert await roles.delete("vkprovider-assigned:one")


async def test_an_admin_of_the_namespace_who_teaches_too_is_not_limited(teacher: KubeClient, places: Admin) -> None:
    verbs = ["create", "deletecollection"]  # of the ClusterRole `admin`, among others
    rules = [{"apiGroups": [access.GROUP], "resources": ["roles", "rolebindings"], "verbs": verbs}]
    await places.create(f"{RBAC}/namespaces/{CLASS}/roles", {"metadata": {"name": "admin"}, "rules": rules})
    ref = {"apiGroup": access.GROUP, "kind": "Role", "name": "admin"}
    user = {"apiGroup": access.GROUP, "kind": "User", "name": TEACHER}
    body = {"metadata": {"name": "admin"}, "roleRef": ref, "subjects": [user]}
    await places.create(f"{RBAC}/namespaces/{CLASS}/rolebindings", body)
    roles = Resource(teacher, access.ROLES, CLASS)

    async def written() -> bool:
        try:
            await roles.create({"metadata": {"name": "theirs"}, "rules": []})
        except Forbidden:
            return False
        except Conflict:
            pass
        return True

    await eventually(written, "the role admin counts")


async def test_without_the_right_it_is_said_whom_it_concerns(apiserver: ApiServer, places: Admin) -> None:
    """Whoever may patch Pods by an older role, or by `edit`."""
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "patch"]}]
    await places.create(f"{RBAC}/namespaces/{CLASS}/roles", {"metadata": {"name": "of-bob"}, "rules": rules})
    ref = {"apiGroup": access.GROUP, "kind": "Role", "name": "of-bob"}
    user = {"apiGroup": access.GROUP, "kind": "User", "name": BOB}
    body = {"metadata": {"name": "of-bob"}, "roleRef": ref, "subjects": [user]}
    await places.create(f"{RBAC}/namespaces/{CLASS}/rolebindings", body)
    kube = await client(apiserver, "bob")
    try:
        await eventually(lambda: may(places, BOB, "patch", "pods", "one"), "the role counts")
        [said] = await access.open_access(kube, CLASS, [await assign(kube, "one", ALICE)])
    finally:
        await kube.close()
    assert said.startswith(f"{ALICE} has the lablet and no right to open it")
    assert f"ClusterRole vkprovider-instructor of this version in namespace {CLASS}" in said


async def test_the_provider_takes_back_assignments_alone(places: Admin, provider: aiohttp.ClientSession) -> None:
    """A thief of its token ends what learners were given, and no other binding; and gives nothing."""
    path = f"{RBAC}/namespaces/{CLASS}/rolebindings"
    await places.create(path, binding("one"))

    async def refused() -> bool:
        async with provider.delete(f"{path}/assigner-vkprovider-instructor") as answer:
            return answer.status == 403 and CONFINED in await answer.text()

    await eventually(refused, "the policy")
    async with provider.delete(f"{path}/{names.assignment_name('one')}") as answer:
        assert answer.status == 200
    async with provider.post(path, json=binding("two")) as answer:
        assert (answer.status, "cannot create resource" in await answer.text()) == (403, True)

"""What an instructor may change of a learner's Pod, by that person's real token; and that all others go on."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import pytest
from multidict import CIMultiDict

from tests.component.controllers.looking import eventually
from tests.component.portal.harness import install
from tests.support.apiserver import SYSTEM, Admin, ApiServer, Refused

NAMESPACES: Final = "/api/v1/namespaces"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
LAB, CLASS = "nublado-held", "class-held"
MARK: Final = "vkprovider.io/portal"
LABS: Final = "ValidatingAdmissionPolicy 'vkprovider-lab-instructors'"
LABLETS: Final = "ValidatingAdmissionPolicy 'vkprovider-class-lablets'"
OWNER: Final = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "pool", "uid": "1", "controller": True}
CONTROLLER: Final = "system:serviceaccount:kube-system:"
Json = dict[str, Any]


def notes(**changed: str | None) -> Json:
    return {
        "metadata": {"annotations": {f"vkprovider.io/{key.replace('_', '-')}": text for key, text in changed.items()}}
    }


class Somebody:
    """A client with the token of an account."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def patch(self, path: str, body: Json) -> Json:
        """Patch one object.

        Raises:
            Refused: By the API server.
        """
        headers = {"Content-Type": "application/merge-patch+json"}
        async with self._http.patch(path, data=json.dumps(body), headers=headers) as answer:
            found: Json = await answer.json()
            if answer.status >= 400:
                raise Refused(answer.status, found)
            return found

    async def refused(self, policy: str, path: str, body: Json) -> None:
        """Patch one object, which a policy refuses."""
        with pytest.raises(Refused, match="403") as refused:
            await self.patch(path, body)
        assert policy in str(refused.value), body


@asynccontextmanager
async def acting(apiserver: ApiServer, user: str) -> AsyncIterator[Somebody]:
    """Yield a client that is a ServiceAccount, with the rights that it has and no others."""
    namespace = user.split(":")[2]
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    headers = CIMultiDict([("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)])
    connector = aiohttp.TCPConnector(ssl=apiserver.admin_tls())
    async with aiohttp.ClientSession(apiserver.url, headers=headers, connector=connector) as http:
        yield Somebody(http)


async def bind(admin: Admin, name: str, role: str, namespace: str) -> None:
    subject = {"kind": "ServiceAccount", "name": name, "namespace": SYSTEM}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    body = {"metadata": {"name": f"{name}-{role}"}, "roleRef": ref, "subjects": [subject]}
    await admin.create(f"{RBAC}/namespaces/{namespace}/rolebindings", body)


@pytest.fixture
async def places(apiserver: ApiServer, admin: Admin) -> AsyncIterator[Admin]:
    """A user lab with its Pod, and a class with one that a learner has."""
    install(apiserver)
    marked = {MARK: SYSTEM, "vkprovider.io/user": "held"}
    for name, labels in ((LAB, marked), (CLASS, {})):
        await admin.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
        accounts = f"{NAMESPACES}/{name}/serviceaccounts"
        if await admin.get(f"{accounts}/default") is None:
            await admin.create(accounts, {"metadata": {"name": "default"}})
    spec = {"containers": [{"name": "lab", "image": "lab:1"}]}
    end = {"vkprovider.io/timeslot-end": "2026-11-27T12:00:00Z"}
    meta = {"name": "nb", "labels": {MARK: SYSTEM, "vkprovider.io/request": "r1"}, "annotations": end}
    await admin.create(f"{NAMESPACES}/{LAB}/pods", {"metadata": meta, "spec": spec})
    pool = {"name": "warm", "labels": {"vkprovider.io/pool": "warm"}, "ownerReferences": [OWNER]}
    await admin.create(f"{NAMESPACES}/{CLASS}/pods", {"metadata": pool, "spec": spec})
    yield admin
    for name in (LAB, CLASS):
        for pod in await admin.items(f"{NAMESPACES}/{name}/pods"):
            path = f"{NAMESPACES}/{name}/pods/{pod['metadata']['name']}"
            await admin.patch(path, {"metadata": {"finalizers": None}})
            await admin.delete(path, grace_s=0)
        await admin.delete(f"{RBAC}/namespaces/{name}/rolebindings")
        await admin.delete(f"{NAMESPACES}/{name}")
        if (found := await admin.get(f"{NAMESPACES}/{name}")) is not None:
            await admin.replace(f"{NAMESPACES}/{name}/finalize", {**found, "spec": {"finalizers": []}})
        await admin.until_gone(f"{NAMESPACES}/{name}")


@pytest.fixture
async def friday(apiserver: ApiServer, places: Admin) -> AsyncIterator[Somebody]:
    """The instructor of the class, as the portal binds one in its user labs."""
    accounts = f"{NAMESPACES}/{SYSTEM}/serviceaccounts"
    await places.create(accounts, {"metadata": {"name": "friday"}})
    await bind(places, "friday", "vkprovider-lab-instructor", LAB)
    await bind(places, "friday", "vkprovider-instructor", CLASS)
    token = apiserver.kubectl("create", "token", "friday", f"--namespace={SYSTEM}").strip()
    connector = aiohttp.TCPConnector(ssl=apiserver.client_tls())
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(apiserver.url, headers=headers, connector=connector) as http:
        somebody = Somebody(http)

        async def limited() -> bool:
            """Whether roles and policies are in force yet: it takes the API server a moment."""
            try:
                await somebody.patch(f"{NAMESPACES}/{LAB}/pods/nb?dryRun=All", {"metadata": {"labels": {"a": "b"}}})
            except Refused as refused:
                return LABS in str(refused)
            return False

        await eventually(limited, "the policy")
        yield somebody
    await places.delete(f"{accounts}/friday")


NB: Final = f"{NAMESPACES}/{LAB}/pods/nb"
WARM: Final = f"{NAMESPACES}/{CLASS}/pods/warm"


async def test_an_instructor_asks_a_user_lab_and_changes_nothing_else(friday: Somebody, places: Admin) -> None:
    before = await places.get(NB)
    for changed in (
        {"metadata": {"finalizers": ["x.example/stuck"]}},
        {"metadata": {"ownerReferences": [{**OWNER, "controller": False}]}},
        {"metadata": {"labels": {MARK: "elsewhere"}}},
        {"metadata": {"labels": {"vkprovider.io/request": None}}},
        {"spec": {"activeDeadlineSeconds": 1}},
        notes(timeslot_end=None),
        notes(timeslot_end="never"),
        notes(timeslot_end="2036-01-01"),
        notes(desired_state="IMMORTAL"),
        notes(reset="x" * 129),
        notes(message="x" * 601),
        notes(username="mallory"),
        notes(lent_by="pool"),
        {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}},
    ):
        await friday.refused(LABS, NB, changed)
    assert await places.get(NB) == before
    for asked in (
        notes(timeslot_end="2026-11-27T13:00:00Z"),
        notes(timeslot_end="2026-11-27T13:00:00.5+01:00"),
        notes(desired_state="STOPPED"),
        notes(desired_state=None, reset="2026-11-27T12:00:00Z 0a1b"),
        notes(desired_state="collecting"),
        notes(message="2026-11-27T12:00:00Z We go on at 14:00."),
        notes(message=None),
    ):
        await friday.patch(NB, asked)


async def test_of_a_lablet_that_a_learner_has_an_instructor_changes_neither_finalizers_nor_owners(
    friday: Somebody, places: Admin
) -> None:
    """While nobody has it, it is the class's own."""
    await friday.patch(WARM, {"metadata": {"finalizers": ["x.example/a"]}})
    await friday.patch(WARM, {"metadata": {"finalizers": None}})
    given = {"labels": {"vkprovider.io/pool": None}, "annotations": {"vkprovider.io/username": "ann"}}
    await friday.patch(WARM, {"metadata": given})  # as `kubectl lablet assign` does
    for changed in (
        {"finalizers": ["x.example/stuck"]},
        {"ownerReferences": None},
        {"ownerReferences": [{**OWNER, "uid": "2"}]},
        {"finalizers": ["x.example/stuck"], "annotations": {"vkprovider.io/username": None}},
    ):
        await friday.refused(LABLETS, WARM, {"metadata": changed})
    await friday.patch(WARM, notes(timeslot_end="2026-11-27T13:00:00Z", desired_state="STOPPED"))
    await places.patch(WARM, {"metadata": {"finalizers": ["x.example/of-an-admin"]}})
    await friday.refused(LABLETS, WARM, {"metadata": {"finalizers": None}})
    free = {"labels": {"vkprovider.io/pool": "warm"}, "annotations": {"vkprovider.io/username": None}}
    await friday.patch(WARM, {"metadata": free})  # as `kubectl lablet release` does


@pytest.mark.usefixtures("friday")
async def test_administrators_and_the_portal_go_on(apiserver: ApiServer, places: Admin) -> None:
    for path in (NB, WARM):
        await places.patch(path, {"metadata": {"finalizers": ["x.example/a"], "labels": {"a": "b"}}})
        await places.patch(path, {"metadata": {"finalizers": None, "ownerReferences": None}})
    await places.patch(NB, notes(timeslot_end=None))
    connector = aiohttp.TCPConnector(ssl=apiserver.client_tls())
    headers = {"Authorization": f"Bearer {apiserver.token('vkprovider-portal')}"}
    async with aiohttp.ClientSession(apiserver.url, headers=headers, connector=connector) as http:
        with pytest.raises(Refused) as refused:  # its Pods are lablets, which this one is not; no instructor's policy
            await Somebody(http).patch(NB, {"metadata": {"labels": {"vkprovider.io/user": "held"}}})
    assert LABS not in str(refused.value)


@pytest.mark.parametrize(
    ("account", "changed"),
    [
        ("generic-garbage-collector", {"ownerReferences": None}),
        ("generic-garbage-collector", {"finalizers": ["foregroundDeletion"]}),
        ("replicaset-controller", {"ownerReferences": [OWNER]}),
        ("job-controller", {"finalizers": None}),
        ("statefulset-controller", {"ownerReferences": [OWNER], "labels": {"a": "b"}}),
    ],
)
@pytest.mark.usefixtures("friday")
async def test_stock_controllers_go_on(apiserver: ApiServer, places: Admin, account: str, changed: Json) -> None:
    """With the rights that they have in each cluster, in a class and in a user lab."""
    await places.patch(WARM, {"metadata": {"annotations": {"vkprovider.io/username": "ann"}}})
    for path in (WARM, NB):
        await places.patch(path, {"metadata": {"finalizers": ["batch.kubernetes.io/job-tracking"]}})
        async with acting(apiserver, f"{CONTROLLER}{account}") as controller:
            await controller.patch(path, {"metadata": changed})


@pytest.mark.usefixtures("friday")
async def test_kueue_goes_on(apiserver: ApiServer, places: Admin) -> None:
    """It gates, labels and holds Pods by a finalizer of its own, with such a role."""
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch", "update", "delete"]}]
    await places.create(f"{RBAC}/clusterroles", {"metadata": {"name": "kueue-manager"}, "rules": rules})
    user = f"system:serviceaccount:{SYSTEM}:kueue"
    try:
        for place in (CLASS, LAB):
            await bind(places, "kueue", "kueue-manager", place)
            await eventually(lambda place=place: places.may(user, "patch", "pods", place), "the role counts")  # type: ignore[misc]
        await places.patch(WARM, {"metadata": {"annotations": {"vkprovider.io/username": "ann"}}})
        for path in (WARM, NB):
            held = {"finalizers": ["kueue.x-k8s.io/managed"], "labels": {"kueue.x-k8s.io/managed": "true"}}
            for changed in (held, {"finalizers": None}):
                async with acting(apiserver, user) as kueue:
                    await kueue.patch(path, {"metadata": changed})
    finally:
        await places.delete(f"{RBAC}/clusterroles/kueue-manager")

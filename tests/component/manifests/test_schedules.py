"""What a schedule's account may do, and what an instructor may not make of such names, on the real API server."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from tests.component.controllers.looking import eventually
from tests.component.manifests.test_assignments import CLASS, NAMESPACES, OTHER, places, teacher
from tests.support.apiserver import Admin
from vkprovider.classroom import access, schedules
from vkprovider.classroom.deployments import DEPLOYMENTS, Deployment
from vkprovider.classroom.schedules import BootSource, BootTime, Schedule
from vkprovider.classroom.timetable import Timetable, Window
from vkprovider.lablet import names
from vkprovider.platform.errors import Forbidden
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import PartialObject, Resource, kind

APPS: Final = f"/apis/apps/v1/namespaces/{CLASS}/deployments"
ACCOUNT: Final = "vkprovider-schedule-warm"
ROLE: Final = "vkprovider-schedule:warm"
TABLE: Final = Timetable("Europe/Berlin", (0, 2), (Window(540, 1020),), 24, 0, 20)
WARM: Final = Schedule("warm", "netlab", "warm", TABLE, BootTime(600, BootSource.GIVEN), "vkprovider:1")
OWNER: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "warm", "uid": "1"}
META: Final[dict[str, Any]] = {"name": ROLE, "ownerReferences": [OWNER]}
RULE: Final = {
    "apiGroups": ["apps"],
    "resources": ["deployments/scale"],
    "resourceNames": ["warm"],
    "verbs": ["patch"],
}
REF: Final = {"apiGroup": access.GROUP, "kind": "Role", "name": ROLE}
SUBJECT: Final = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": CLASS}
PLAIN: Final[dict[str, Any]] = {
    "metadata": {
        "name": ACCOUNT,
        "labels": {names.LABEL_COMPONENT: names.COMPONENT_SCHEDULE},
        "ownerReferences": [OWNER],
    },
    "automountServiceAccountToken": False,
}
Json = dict[str, Any]
__all__ = ["places", "teacher"]


ACCOUNTS: Final = kind("/api/v1", "serviceaccounts", PartialObject)


@pytest.fixture
async def pool(places: Admin) -> AsyncIterator[str]:
    """A pool of the class, and another Deployment; the UID of the first. Nobody collects what is owned."""
    for name in ("warm", "cold"):
        labels = {names.LABEL_POOL: name}
        spec = {"runtimeClassName": "netlab", "containers": [{"name": "lab", "image": "netlab"}]}
        template = {"metadata": {"labels": labels}, "spec": spec}
        body = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        if name == "cold":
            del spec["runtimeClassName"]
        await places.create(APPS, {"metadata": {"name": name}, "spec": body})
    found = await places.get(f"{APPS}/warm")
    assert found is not None
    yield str(found["metadata"]["uid"])
    for path in (
        f"{APPS}/warm",
        f"{APPS}/cold",
        f"{NAMESPACES}/{CLASS}/serviceaccounts/{ACCOUNT}",
        *(f"/apis/batch/v1/namespaces/{CLASS}/cronjobs/{each}" for each in ("warm-begin", "warm-end")),
    ):
        await places.delete(path)


async def read(kube: KubeClient) -> Deployment:
    found = await Resource(kube, DEPLOYMENTS, CLASS).get("warm")
    assert found is not None
    return found


async def test_an_instructor_keeps_a_schedule_and_ends_it(teacher: KubeClient, pool: str, places: Admin) -> None:
    found = await read(teacher)
    made = await schedules.keep(teacher, WARM, found, dry_run=False)
    assert len(made.made) == 5
    again = await schedules.keep(teacher, WARM, found, dry_run=False)
    assert (again.made, again.again, again.deleted, len(again.kept)) == ((), (), (), 5)
    account = await places.get(f"{NAMESPACES}/{CLASS}/serviceaccounts/{ACCOUNT}")
    assert account is not None
    assert account["metadata"]["ownerReferences"][0]["uid"] == pool
    user = f"system:serviceaccount:{CLASS}:{ACCOUNT}"

    async def may(verb: str, name: str, part: str = "scale", namespace: str = CLASS) -> bool:
        asked = {"verb": verb, "group": "apps", "resource": "deployments", "subresource": part, "name": name}
        spec = {"user": user, "resourceAttributes": {**asked, "namespace": namespace}}
        answer = await places.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
        return bool(answer["status"]["allowed"])

    await eventually(lambda: may("patch", "warm"), "the Role counts")
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete")
    allowed = [
        (verb, name, part)
        for verb in verbs
        for name in ("warm", "cold", "")
        for part in ("scale", "", "status")
        if await may(verb, name, part)
    ]
    assert allowed == [("patch", "warm", "scale")]
    assert not await may("patch", "warm", namespace=OTHER)
    assert len((await schedules.end(teacher, CLASS, "warm", dry_run=False)).deleted) == 5
    assert (await schedules.end(teacher, CLASS, "warm", dry_run=False)).deleted == ()


WIDER: Final[tuple[tuple[str, str, Json], ...]] = (
    ("another Deployment", "roles", {"metadata": META, "rules": [{**RULE, "resourceNames": ["cold"]}]}),
    ("every Deployment", "roles", {"metadata": META, "rules": [{**RULE, "resourceNames": []}]}),
    ("the whole Deployment", "roles", {"metadata": META, "rules": [{**RULE, "resources": ["deployments"]}]}),
    ("more verbs", "roles", {"metadata": META, "rules": [{**RULE, "verbs": ["patch", "update"]}]}),
    ("a second rule", "roles", {"metadata": META, "rules": [RULE, RULE]}),
    ("no owner", "roles", {"metadata": {"name": ROLE}, "rules": [RULE]}),
    (
        "a Pod as owner",
        "roles",
        {"metadata": {**META, "ownerReferences": [{**OWNER, "apiVersion": "v1", "kind": "Pod"}]}},
    ),
    ("the own role", "rolebindings", {"roleRef": {**REF, "kind": "ClusterRole", "name": "vkprovider-instructor"}}),
    ("a person", "rolebindings", {"subjects": [{"apiGroup": access.GROUP, "kind": "User", "name": "mallory"}]}),
    ("a foreign account", "rolebindings", {"subjects": [{**SUBJECT, "namespace": OTHER}]}),
    ("the default account", "rolebindings", {"subjects": [{**SUBJECT, "name": "default"}]}),
    ("two accounts", "rolebindings", {"subjects": [SUBJECT, {**SUBJECT, "name": "default"}]}),
    ("another name", "rolebindings", {"metadata": {**META, "name": "schedule"}}),
    ("an account of another name", "serviceaccounts", {"metadata": {**PLAIN["metadata"], "name": "mine"}}),
    ("an account without owner", "serviceaccounts", {"metadata": {**PLAIN["metadata"], "ownerReferences": []}}),
    ("an account with a note", "serviceaccounts", {"metadata": {**PLAIN["metadata"], "annotations": {"a": "b"}}}),
    ("an account that mounts its token", "serviceaccounts", {"automountServiceAccountToken": True}),
    ("an account with a Secret", "serviceaccounts", {"secrets": [{"name": "x"}]}),
)


async def test_an_instructor_makes_nothing_wider_of_such_names(teacher: KubeClient, pool: str) -> None:
    assert pool
    handles: dict[str, Resource[Any]] = {
        "roles": Resource(teacher, access.ROLES, CLASS),
        "rolebindings": Resource(teacher, access.BINDINGS, CLASS),
        "serviceaccounts": Resource(teacher, ACCOUNTS, CLASS),
    }
    whole: dict[str, Json] = {
        "roles": {"metadata": META, "rules": [RULE]},
        "rolebindings": {"metadata": META, "roleRef": REF, "subjects": [SUBJECT]},
        "serviceaccounts": PLAIN,
    }
    await handles["roles"].create(whole.pop("roles"))  # RBAC looks for it before the policy is asked
    for what, resource, part in WIDER:
        with pytest.raises(Forbidden) as refused:
            await handles[resource].create({**whole.get(resource, {}), **part})
        said = refused.value.message
        assert "vkprovider-assignments" in said or "vkprovider-links" in said, (what, said)
    for resource, body in whole.items():
        await handles[resource].create(body)
    with pytest.raises(Forbidden):
        await Resource(teacher, access.ROLES, OTHER).create({"metadata": META, "rules": [RULE]})
    with pytest.raises(Forbidden, match="vkprovider-links"):
        await handles["serviceaccounts"].patch(
            ACCOUNT, {"metadata": {"annotations": {"vkprovider.io/link-pod": "a/b"}}}
        )
    for resource, name in (("rolebindings", ROLE), ("roles", ROLE), ("serviceaccounts", ACCOUNT)):
        assert await handles[resource].delete(name)

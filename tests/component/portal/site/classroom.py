"""A class with lablets and user labs; the test writes what the provider would."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from tests.component.controllers.looking import eventually, when
from tests.component.portal.asking import Setting
from tests.component.portal.people import INSTRUCTOR_ROLE, RBAC
from tests.support.apiserver import SYSTEM
from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.times import iso

EVIL: Final = "<script>alert(1)</script>"
_PROVIDER: Final = f"system:serviceaccount:{SYSTEM}:vkprovider"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
Json = dict[str, Any]


def token_of(person: dict[str, str]) -> str:
    """Return the token in the header of somebody's requests."""
    return person["Authorization"].removeprefix("Bearer ")


class ClassRoom:
    """The namespace of a class.

    Attributes:
        namespace: Its name.
        path: Of its page.
        teacher: The header of the requests of its instructor.
    """

    def __init__(self, made: Setting, namespace: str, teacher: dict[str, str]) -> None:
        self.made = made
        self.namespace = namespace
        self.path = f"/classes/{namespace}"
        self.teacher = teacher
        self._admin = made.world.admin

    async def lablet(
        self,
        name: str,
        learner: str = "",
        *,
        ready: bool = True,
        reason: str = "",
        message: str = "",
        off: str = "",
        phase: str = "Running",
        **notes: str,
    ) -> str:
        """Make a lablet that stands in a certain way; return its path.

        Args:
            name: Of its Pod.
            learner: Who has it.
            ready: Whether it is Ready.
            reason: Why not.
            message: The same as a sentence.
            off: A device that is off.
            phase: Of its Pod.
            notes: What the provider reports, as annotations.
        """
        base = f"/api/v1/namespaces/{self.namespace}/pods"
        inputs = {
            f"{wellknown.GROUP}/{key.replace('_', '-')}": notes.pop(key) for key in ("timeslot_end",) if key in notes
        }
        body = {
            "metadata": {
                "name": name,
                "annotations": {**inputs, **({names.ANNOTATION_USERNAME: learner} if learner else {})},
                "labels": {} if learner else {names.LABEL_POOL: "warm"},
            },
            "spec": {
                "runtimeClassName": f"{self.made.definition}-small",
                "containers": [
                    {"name": each, "image": f"{self.made.definition}-small:1.0.0"} for each in ("lab", "r1", "r2")
                ],
                "automountServiceAccountToken": False,
            },
        }
        await self._admin.create(base, body)
        path = f"{base}/{name}"
        target = {"apiVersion": "v1", "kind": "Node", "name": "vnode.portal-test"}
        await self._admin.create(f"{path}/binding", {"metadata": {"name": name}, "target": target})
        await self.stands(path, ready=ready, reason=reason, message=message, off=off, phase=phase, **notes)
        return path

    async def stands(
        self,
        path: str,
        *,
        ready: bool = True,
        reason: str = "",
        message: str = "",
        off: str = "",
        phase: str = "Running",
        **notes: str,
    ) -> None:
        """Write how a lablet stands, as the provider does; for the arguments see `lablet`."""
        now = iso(int(self.made.running.replica.ctx.wall()))
        waits = {"lab": reason, "r1": "", "r2": ""} | ({off: "DeviceStopped"} if off else {})
        statuses = [
            {
                "name": name,
                "image": "x",
                "imageID": "",
                "ready": not why,
                "restartCount": 0,
                "state": {"waiting": {"reason": why, "message": message}} if why else {"running": {"startedAt": now}},
            }
            for name, why in waits.items()
        ]
        conditions = [
            {"type": "Ready", "status": str(ready), "reason": reason, "message": message, "lastTransitionTime": now},
            {"type": names.CONDITION_LAB_IMPORTED, "status": "True", "lastTransitionTime": now},
        ]
        annotations = {f"{wellknown.GROUP}/{key.replace('_', '-')}": text for key, text in notes.items()}
        body = {
            "metadata": {"annotations": annotations},
            "status": {"phase": phase, "conditions": conditions, "containerStatuses": statuses},
        }
        await self._admin.request("PATCH", f"{path}/status", body, _STRATEGIC, user=_PROVIDER)

    async def notes(self, name: str) -> Json:
        """Return the annotations of a lablet, without their prefix."""
        found = await self._admin.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}")
        assert found is not None
        given = found["metadata"].get("annotations", {})
        return {key.removeprefix(f"{wellknown.GROUP}/"): text for key, text in given.items()}

    async def known(self, number: int) -> None:
        """Wait until the portal knows so many lablets of the class."""
        lablets = self.made.running.replica.lablets
        await when(
            lambda: sum(bool(pod.status.container_statuses) for pod in lablets.of(self.namespace)) == number,
            f"{number} lablets are known",
        )

    async def close(self) -> None:
        """Remove what is in it."""
        await self._admin.delete(f"/api/v1/namespaces/{self.namespace}/pods", grace_s=0)
        await self._admin.delete(f"{RBAC}/namespaces/{self.namespace}/rolebindings")
        await self._admin.delete(f"{RBAC}/clusterrolebindings/{self.namespace}")


@asynccontextmanager
async def classroom(made: Setting, name: str = "friday") -> AsyncIterator[ClassRoom]:
    """Make a class with an instructor."""
    namespace = f"{name}-of-{made.people.namespace}"
    await made.world.admin.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await made.world.admin.create(account, {"metadata": {"name": "default"}})
    teacher = await made.people.person(f"teacher-of-{name}")
    await made.people.allow(f"teacher-of-{name}", INSTRUCTOR_ROLE, namespace)
    found = ClassRoom(made, namespace, teacher)
    subject = {"kind": "ServiceAccount", "name": f"teacher-of-{name}", "namespace": made.people.namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{INSTRUCTOR_ROLE}-definitions"}
    whole = {"metadata": {"name": namespace}, "roleRef": ref, "subjects": [subject]}
    await made.world.admin.create(f"{RBAC}/clusterrolebindings", whole)

    async def may() -> bool:
        user = f"{made.people.prefix}teacher-of-{name}"
        reads = await made.world.admin.may(user, "list", "labletdefinitions", "", group=wellknown.GROUP)
        return reads and await made.world.admin.may(user, "patch", "pods", namespace)

    await eventually(may, "the instructor may write Pods")
    try:
        yield found
    finally:
        await found.close()


async def fill(room: ClassRoom, number: int = 24) -> None:
    """Make lablets of learners that stand in many ways, one that is free, and one with a script in every text."""
    soon = iso(int(room.made.running.replica.ctx.wall()) + 1800)
    for at in range(number - 4):
        learner = f"learner{at:02}"
        how: Json = {"state": "RUNNING", "devices": "2/2", "timeslot_end": soon}
        if at % 5 == 1:
            how = {"ready": False, "reason": "StartingNodes", "message": "1 of 2 devices", "phase": "Pending"}
        await room.lablet(f"warm-{at:02}", learner, **how)
    await room.lablet("warm-off", "dora", off="r2", devices="1/2")
    await room.lablet("warm-help", "emil", ready=False, reason="NeedsAttention", message="r1 does not boot")
    await room.lablet("warm-free")
    await room.lablet("warm-evil", f"={EVIL}", ready=False, reason="NeedsAttention", message=f"=1+1 {EVIL}")
    await room.known(number)
    await asyncio.sleep(0)


@asynccontextmanager
async def pool(room: ClassRoom, number: int) -> AsyncIterator[str]:
    """Make a pool of lablets that are free; a task of the test acts as the controllers of its Deployment."""
    admin = room.made.world.admin
    apps, pods = f"/apis/apps/v1/namespaces/{room.namespace}", f"/api/v1/namespaces/{room.namespace}/pods"
    deployment = f"{apps}/deployments/warm"
    labels = {names.LABEL_POOL: "warm"}
    image = f"{room.made.definition}-small"
    template = {
        "metadata": {"labels": labels},
        "spec": {"runtimeClassName": image, "containers": [{"name": "lab", "image": image}]},
    }
    spec = {"replicas": number, "selector": {"matchLabels": labels}, "template": template}
    await admin.create(f"{apps}/deployments", {"metadata": {"name": "warm"}, "spec": spec})
    made = await admin.create(f"{apps}/replicasets", {"metadata": {"name": "warm-1"}, "spec": spec})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "warm-1", "controller": True}
    owner["uid"] = made["metadata"]["uid"]
    for at in range(number):
        path = await room.lablet(f"warm-{at}")
        await admin.patch(path, {"metadata": {"ownerReferences": [owner]}})

    async def act() -> None:
        """Release Pods that have left the pool, and report."""
        while True:
            mine = 0
            for pod in await admin.items(pods):
                meta = pod["metadata"]
                if not meta.get("ownerReferences"):
                    continue
                if names.LABEL_POOL in meta.get("labels", {}):
                    mine += 1
                else:
                    await admin.patch(f"{pods}/{meta['name']}", {"metadata": {"ownerReferences": None}})
            found = await admin.get(deployment)
            assert found is not None
            status = {"observedGeneration": found["metadata"]["generation"], "replicas": mine}
            await admin.patch(f"{deployment}/status", {"status": status})
            await asyncio.sleep(0.1)

    acting = asyncio.create_task(act())
    try:
        yield deployment
    finally:
        acting.cancel()
        await asyncio.gather(acting, return_exceptions=True)
        for path in (deployment, f"{apps}/replicasets/warm-1"):
            await admin.delete(path)

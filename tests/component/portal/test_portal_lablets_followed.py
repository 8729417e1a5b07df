"""Lablets of a class as a replica of the portal sees them: of all Pods of the cluster it keeps these alone."""

from typing import Any

from tests.component.controllers.looking import eventually
from tests.component.portal.harness import PortalWorld, Running
from tests.component.portal.wishes import ask


def pod(name: str, image: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "lab", "image": image}], **spec}}


async def until_known(running: Running, namespace: str, *names: str) -> None:
    async def look() -> bool:
        return [each.metadata.name for each in running.replica.lablets.of(namespace)] == list(names)

    await eventually(look, f"the portal knows the lablets {names} of {namespace}")


async def test_lablets_of_a_class_are_known_and_other_pods_are_not_kept(world: PortalWorld) -> None:
    early = await world.replica()
    family = await world.define()
    namespace = f"class-{world.run}"
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await world.stranger(namespace)
    await world.admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    class_ = f"{family}-small"
    await world.admin.create(pods, pod("web", "nginx"))
    await world.admin.create(pods, pod("lab-2", f"{class_}:1.0.0", runtimeClassName=class_))
    await world.admin.create(pods, pod("lab-1", f"{class_}:1.0.0", runtimeClassName=class_))
    await ask(world, early, "alice", family)
    await world.until_phase("alice", "complete")
    await until_known(early, namespace, "lab-1", "lab-2")
    late = await world.replica()  # it lists, and the other one has watched
    await until_known(late, namespace, "lab-1", "lab-2")
    for running in (early, late):
        kept = running.replica.objects.lablets.items
        assert set(kept) == {f"{namespace}/lab-1", f"{namespace}/lab-2"}
        assert running.replica.lablets.namespaces() == [namespace]
        shown = running.replica.lablets.pod(namespace, "lab-1")
        assert shown is not None
        assert shown.spec.runtime_class_name == class_
        assert running.replica.index.lab("alice") is not None
    await world.admin.delete(f"{pods}/lab-1", grace_s=0)
    await until_known(early, namespace, "lab-2")
    await until_known(late, namespace, "lab-2")

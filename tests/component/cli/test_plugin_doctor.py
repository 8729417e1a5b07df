"""`kubectl lablet doctor` of an instructor, on a real API server: what is wrong, what to do, and nothing is changed."""

from typing import Any

from tests.component.cli.desk import Desk
from tests.component.cli.instructor import Instructor
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.support.apiserver import GROUP
from tests.support.topologies import pod, topology
from vkprovider.platform.shipped import find_manifests

OWNER = "vkprovider.io/owner-namespace"


async def lines(instructor: Instructor, *words: str) -> list[str]:
    """Run the doctor; return the lines after the first."""
    said = await instructor.kubectl("lablet", "doctor", *words)
    assert said.startswith("context "), said
    return said.splitlines()[1:]


async def hand_over(world: World, name: str) -> None:
    await world.admin.patch(f"{GROUP}/labletdefinitions/{name}", {"metadata": {"labels": {OWNER: world.namespace}}})


async def test_before_the_grant_it_names_rights_and_the_command(world: World, instructor: Instructor) -> None:
    found = await lines(instructor)
    grant = f"An admin grants it: kubectl lablet grant {instructor.user} -n {world.namespace}"
    faults = [line for line in found if ": InstructorRightsMissing: " in line]
    assert [line.partition(":")[0] for line in faults] == [
        "ClusterRole/vkprovider-instructor",
        "ClusterRole/vkprovider-instructor-definitions",
    ]
    assert all(line.endswith(grant) for line in faults)
    assert "get lablets.vkprovider.io/login" in faults[0]


async def test_a_class_that_is_ready_has_no_faults(world: World, instructor: Instructor) -> None:
    await instructor.grant()
    await world.replica()
    worker = await world.worker()
    name = await world.define(topology({"r1": "alpine"}))
    await hand_over(world, name)
    await world.define("lab: [", ready=False)  # of an admin, which this class does not run
    await (await world.pod(name, worker)).ready()
    assert await lines(instructor) == ["no faults"]
    pods = await world.admin.items(f"/api/v1/namespaces/{world.namespace}/pods")
    assert len(pods) == 1, "the trial was none"


async def test_what_an_instructor_can_mend_or_tell_an_admin(world: World, instructor: Instructor) -> None:
    await instructor.grant()
    await world.replica()
    worker = await world.worker()
    broken = await world.define("lab: [", ready=False)
    large = await world.define(topology({"r1": "alpine"}), resources={"cpu": "500"})
    exam = await world.define(topology({"r1": "alpine"}), environment="exam")
    for name in (broken, large, exam):
        await hand_over(world, name)
    pods, waiting = f"/api/v1/namespaces/{world.namespace}/pods", world.name("p")
    await world.admin.create(pods, pod(waiting, large))
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes: cpu"}
    await world.admin.patch(f"{pods}/{waiting}/status", {"status": {"conditions": [unscheduled]}})
    quota: dict[str, Any] = {"metadata": {"name": "labs"}, "spec": {"hard": {"pods": "1"}}}
    quotas = f"/api/v1/namespaces/{world.namespace}/resourcequotas"
    await world.admin.create(quotas, quota)
    try:
        await world.admin.patch(f"{quotas}/labs/status", {"status": {"hard": {"pods": "1"}, "used": {"pods": "1"}}})
        found = await lines(instructor)
    finally:
        await world.admin.delete(f"{quotas}/labs")
    text = "\n".join(found)
    assert f"LabletDefinition/{broken}: TopologyInvalid: " in text
    assert f"LabletDefinition/{large}: TooLarge: " in text
    assert f"LabletDefinition/{exam}: NoWorkerReady: no worker of its environment exam is Ready" in text
    assert f"Pod/{world.namespace}/{waiting}: Unschedulable: " in text
    assert f"(note) ResourceQuota/{world.namespace}/labs: QuotaFull: 1 of 1 pods is used" in text
    assert worker not in text
    assert found[-1].startswith("4 faults")


async def test_it_says_when_the_namespace_may_not_run_a_definition(
    world: World, desk: Desk, instructor: Instructor
) -> None:
    """The grant includes the right; without it, the doctor sees what the API server would say to a lablet."""
    policy = find_manifests() / "components" / "require-use" / "policy.yaml"
    await instructor.grant()
    await world.replica()
    await world.worker()
    name = await world.define(topology({"r1": "alpine"}))
    await hand_over(world, name)
    await desk.kubectl("delete", "rolebinding", "lablets")
    assert (await desk.kubectl("apply", "-f", str(policy))).code == 0
    try:

        async def said() -> str:
            return next((line for line in await lines(instructor) if ": UseMissing: " in line), "")

        line = await eventually(said, "the doctor misses the right")
        assert f"ServiceAccount {world.namespace}/default may not use LabletDefinition {name}" in line
        assert f"kubectl lablet grant {instructor.user} -n {world.namespace}" in line
        await instructor.grant()

        async def fine() -> bool:
            return await lines(instructor) == ["no faults"]

        await eventually(fine, "the doctor is content")
    finally:
        await desk.kubectl("delete", "-f", str(policy))


async def test_what_cannot_be_asked_is_no_fault(desk: Desk) -> None:
    api, kubeconfig = await desk.proxied()
    words = ("doctor", "-o", "json", f"--kubeconfig={kubeconfig}")
    api.fault("^POST .*/selfsubjectaccessreviews$", count=None, status=429)
    busy = await desk.lablet(*words)
    assert (busy.code, busy.json["exitCode"]) == (2, 2)
    found = {each["object"]: each["reason"] for each in busy.json["findings"] if each["level"] == "unchecked"}
    assert found["ClusterRole/vkprovider-instructor"] == "NotReadable"
    await api.refuse()
    away = await desk.lablet(*words)
    assert (away.code, [each["reason"] for each in away.json["findings"]]) == (2, ["ApiUnavailable"])


async def test_a_namespace_that_does_not_exist_is_a_fault(desk: Desk) -> None:
    answer = await desk.lablet("doctor", "-n", "nowhere", "-o", "json")
    assert (answer.code, answer.json["exitCode"]) == (1, 1)
    assert answer.json["findings"][0]["reason"] == "NamespaceMissing"

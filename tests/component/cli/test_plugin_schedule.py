"""`kubectl lablet schedule` by the real kubectl and an instructor's rights, and what its Jobs do by their account."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from tests.component.cli.desk import Desk
from tests.component.cli.instructor import Instructor
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.support.apiserver import SYSTEM
from vkprovider.lablet import names
from vkprovider.platform import wellknown

IMAGE = "registry.example.com/vkprovider:1.2.3"
LABELS = {names.LABEL_POOL: "warm"}
WHEN = ("--at", "09:00", "--until", "17:00", "--days", "mon,wed", "--tz", "Europe/Berlin", "--ready", "24")
POOL = "deployment/warm"


def deployment(name: str, definition: str, labels: dict[str, str], image: str = "") -> dict[str, Any]:
    containers = [{"name": "lab", "image": image or definition}]
    spec = {"runtimeClassName": definition, "containers": containers} if definition else {"containers": containers}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template},
    }


@pytest.fixture
async def installed(world: World) -> AsyncIterator[None]:
    """The Deployment of the provider, whose image `grant` names to the class."""
    path = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments"
    await world.admin.create(path, deployment(wellknown.SERVICE_ACCOUNT, "", {"a": "b"}, IMAGE))
    yield
    await world.admin.delete(f"{path}/{wellknown.SERVICE_ACCOUNT}")


@pytest.fixture
async def pool(world: World) -> tuple[str, str]:
    """A definition and a worker, and a Deployment of three."""
    await world.replica()
    worker = await world.worker()
    definition = await world.define()
    path = f"/apis/apps/v1/namespaces/{world.namespace}/deployments"
    await world.admin.create(path, deployment("warm", definition, LABELS))
    await world.admin.create(path, deployment("plain", definition, {"app": "plain"}))
    return definition, worker


async def cron_jobs(world: World) -> dict[str, dict[str, Any]]:
    found = await world.admin.items(f"/apis/batch/v1/namespaces/{world.namespace}/cronjobs")
    return {each["metadata"]["name"]: each for each in found}


@pytest.mark.usefixtures("installed")
async def test_a_pool_is_full_at_nine(world: World, desk: Desk, instructor: Instructor, pool: tuple[str, str]) -> None:
    here = f"--kubeconfig={instructor.kubeconfig}"
    said = await instructor.grant()
    assert f"Jobs of schedules in {world.namespace} run the image {IMAGE}" in said

    async def rights() -> bool:
        return await instructor.may("create", "cronjobs", world.namespace, "batch")

    await eventually(rights, "the role counts")
    dry = await desk.succeeds("schedule", POOL, *WHEN, "--dry-run", "-o", "yaml", here)
    kinds = ["ServiceAccount", "Role", "RoleBinding", "CronJob", "CronJob"]
    assert [each["kind"] for each in yaml.safe_load_all(dry)] == kinds
    assert "created (dry run)" in await desk.succeeds("schedule", POOL, *WHEN, "--dry-run", here)
    assert await cron_jobs(world) == {}

    done = await desk.lablet("schedule", POOL, *WHEN, here)
    assert done.code == 0, done.err
    assert done.out.count(" created\n") == 5
    assert "deployment/warm has 24 free lablets mon, wed 09:00-17:00 Europe/Berlin; boots begin at " in done.out
    assert "no free lablet is there to tell how long it booted" in done.err
    found = await cron_jobs(world)
    assert sorted(found) == ["warm-begin", "warm-end"]
    end = found["warm-end"]["spec"]
    assert (end["schedule"], end["timeZone"], end["concurrencyPolicy"]) == ("0 17 * * 1,3", "Europe/Berlin", "Replace")
    pod = found["warm-begin"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert (pod["serviceAccountName"], pod["containers"][0]["image"]) == ("vkprovider-schedule-warm", IMAGE)
    assert pod["containers"][0]["command"] == ["kubectl-lablet", "__scale", "warm", "24"]
    assert "nodeSelector" not in pod
    assert "tolerations" not in pod

    again = await desk.lablet("schedule", POOL, *WHEN, here)
    assert "the schedule of deployment/warm is unchanged" in again.out
    assert await cron_jobs(world) == found, "not even a resourceVersion"
    one = await world.pod(*pool, labels=LABELS)
    await one.ready()
    known = await desk.lablet("schedule", POOL, *WHEN, here)
    assert "cronjob/warm-begin made again" in known.out
    assert "the slowest free lablet booted" in known.err
    await one.delete()
    still = await desk.lablet("schedule", POOL, *WHEN, here)
    assert "unchanged" in still.out, "what was measured is kept"
    assert "the slowest free lablet booted" in still.err

    twice = ("--at", "09:00,14:15", "--until", "12:00,17:00", *WHEN[4:], "--boots", "30m")
    await desk.succeeds("schedule", POOL, *twice, here)
    assert {name: each["spec"]["schedule"] for name, each in (await cron_jobs(world)).items()} == {
        "warm-begin": "30 8 * * 1,3",
        "warm-begin-2": "45 13 * * 1,3",
        "warm-end": "0 12,17 * * 1,3",
    }
    await desk.succeeds("schedule", POOL, *WHEN, "--boots", "20m", here)
    assert sorted(await cron_jobs(world)) == ["warm-begin", "warm-end"]
    listed = await desk.lablet("schedule", "--list", here)
    when = "mon, wed 09:00-17:00 Europe/Berlin"
    assert listed.rows == [["POOL", "READY", "WHEN", "BOOTS", "LAST"], ["warm", "24", when, "20 min before", "<none>"]]

    assert (await desk.succeeds("schedule", POOL, "--delete", here)).count(" deleted\n") == 5
    assert await cron_jobs(world) == {}
    gone = await desk.lablet("schedule", POOL, "--delete", here)
    assert (gone.code, "deployment/warm has no schedule" in gone.err) == (1, True)


@pytest.mark.usefixtures("pool")
async def test_mistakes_are_a_sentence(world: World, desk: Desk) -> None:
    for words, code, said in (
        ((POOL, *WHEN), 1, "nobody has named the image of the installation"),
        (("deployment/none", *WHEN, "--image", IMAGE), 1, "deployment/none not found in namespace"),
        (("deployment/plain", *WHEN, "--image", IMAGE), 1, "does not select by matchLabels with vkprovider.io/pool"),
    ):
        done = await desk.lablet("schedule", *words)
        assert (done.code, said in " ".join(done.err.split())) == (code, True), done
    assert await cron_jobs(world) == {}


@pytest.mark.usefixtures("pool")
async def test_a_job_sets_the_size_of_its_pool_and_nothing_else(world: World, desk: Desk) -> None:
    await desk.succeeds("schedule", POOL, *WHEN, "--image", IMAGE)
    token = await desk.kubectl("create", "token", "vkprovider-schedule-warm")
    config = yaml.safe_load(desk.kubeconfig.read_text())
    config["users"] = [{**user, "user": {"token": token.out.strip()}} for user in config["users"]]
    path = desk.folder / "kubeconfig-job"
    path.write_text(yaml.safe_dump(config))

    async def scaled() -> bool:
        return (await desk.lablet("__scale", "warm", "24", f"--kubeconfig={path}")).code == 0

    await eventually(scaled, "the Role counts")
    at = f"/apis/apps/v1/namespaces/{world.namespace}/deployments"
    found = await world.admin.get(f"{at}/warm")
    assert found is not None
    assert found["spec"]["replicas"] == 24
    refused = await desk.lablet("__scale", "plain", "0", f"--kubeconfig={path}")
    assert (refused.code, "may not" in refused.err or "cannot" in refused.err) == (1, True), refused
    user = f"system:serviceaccount:{world.namespace}:vkprovider-schedule-warm"
    allowed = [
        (verb, resource)
        for group, resource in (("apps", "deployments"), ("", "pods"), ("", "secrets"), ("batch", "cronjobs"))
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete")
        if await world.admin.may(user, verb, resource, world.namespace, group=group)
    ]
    assert allowed == []

"""Commands that ask the page: they find it by themselves, with the rights of an instructor and with no others."""

from pathlib import Path

import yaml

from tests.component.cli.desk import Desk, with_page
from tests.component.cli.instructor import Instructor
from tests.component.controllers.harness import World
from tests.support.topologies import topology


async def test_an_instructor_reads_what_learners_left(world: World, desk: Desk, instructor: Instructor) -> None:
    """The ServiceAccount has what `grant` gives: nothing where the provider is, and nothing in other namespaces."""
    await with_page(world)
    worker, definition = await world.worker((await world.simulator()).url), await world.define(topology({"r1": "iosv"}))
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    await lablet.ready()
    await desk.succeeds("stop", "-u", "alice", "--wait", "--timeout", "80s")
    before = await instructor.kubectl("lablet", "configs", "-u", "alice", "-n", world.namespace)
    assert "the address of the provider's page is not known" in before, "without a right on CMLWorkers"
    grant = f"an admin grants it: kubectl lablet grant {instructor.user} -n {world.namespace}"
    assert f"it takes the ClusterRole vkprovider-instructor-definitions; {grant}" in before
    await instructor.grant()
    assert "hostname" in await instructor.kubectl("lablet", "configs", "-u", "alice", "-n", world.namespace)
    assert "--provider-namespace" in await instructor.kubectl("lablet", "configs", "--help")
    direct = ("configs", "-u", "alice", "--provider-namespace", "vkprovider-system", "-n", world.namespace)
    assert 'cannot list resource "configmaps"' in await instructor.kubectl("lablet", *direct)
    elsewhere = await instructor.kubectl("lablet", "configs", "-u", "alice", "-n", "default")
    assert "may not get lablets.vkprovider.io/archive of the namespace" in elsewhere
    assert "for all that a class takes: kubectl lablet grant USER -n default" in elsewhere
    for words in (["logs", "-u", "alice"], ["list"], ["stop", lablet.name], ["console", lablet.name, "r1"]):
        said = await instructor.kubectl("lablet", *words, "-n", "default")
        assert "it takes the ClusterRole vkprovider-instructor in namespace default" in said, words
    login = await instructor.kubectl("lablet", "login", "-u", "alice", "-n", world.namespace)
    assert "has no session to log in to" in login


async def test_what_is_in_the_way_is_told(world: World, desk: Desk, tmp_path: Path) -> None:
    running = await world.replica()
    worker = await world.worker()
    nowhere = await desk.lablet("configs", "-u", "alice")
    assert nowhere.code == 1
    assert "an admin has not set VKPROVIDER_PAGE_URL" in nowhere.err
    assert "port-forward svc/vkprovider 8082" in nowhere.err
    assert "pageURL" not in (await world.cmlworker(worker))["status"]
    async with running.page() as url:
        audience = await desk.lablet("configs", "-u", "alice", f"--url={url}")
        assert "must be meant for vkprovider.io" in audience.err
        assert "--service-account" in audience.err
        config = yaml.safe_load(desk.kubeconfig.read_text())
        del config["users"][0]["user"]["token"]
        path = tmp_path / "certificate"
        path.write_text(yaml.safe_dump(config))
        certificate = await desk.lablet("configs", "-u", "alice", f"--url={url}", f"--kubeconfig={path}")
        assert "the kubeconfig has no token, only a certificate" in certificate.err
        assert f"ServiceAccount of namespace {world.namespace}" in certificate.err
        account = (f"--url={url}", f"--kubeconfig={path}", "--service-account=default")
        refused = await desk.lablet("configs", "-u", "alice", *account)
        assert "--clusterrole=vkprovider-archive" in refused.err


async def test_the_address_is_shown_and_goes_with_the_setting(world: World) -> None:
    running = await with_page(world)
    worker = await world.worker()
    shown = await world.cmlworker(worker, lambda found: found.get("status", {}).get("pageURL"))
    assert shown["status"]["pageURL"].startswith("http://127.0.0.1:")
    await running.stop()
    await world.replica()
    await world.cmlworker(worker, lambda found: not found["status"].get("pageURL"))

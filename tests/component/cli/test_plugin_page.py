"""Commands that ask the page: they find it by themselves, with the rights of an instructor and with no others."""

import asyncio
from pathlib import Path

import yaml

from tests.component.cli.desk import Desk, with_page
from tests.component.cli.instructor import RBAC, Instructor
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.component.controllers.podhandle import Lablet
from tests.support.apiserver import GROUP
from tests.support.topologies import topology
from vkpsim.cml.world.model import ConfigFile


async def test_an_instructor_reads_what_learners_left(world: World, desk: Desk, instructor: Instructor) -> None:
    """The ServiceAccount has what `grant` gives: nothing where the provider is, and nothing in other namespaces."""
    await with_page(world)
    worker, definition = await world.worker((await world.simulator()).url), await world.define(topology({"r1": "iosv"}))
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    await lablet.ready()
    await desk.succeeds("stop", "-u", "alice", "--wait", "--timeout", "80s")
    before = await instructor.kubectl("lablet", "configs", "-u", "alice", "-n", world.namespace)
    assert "the address of the provider's page is not known" in before, "without the right to read it"
    grant = f"an admin grants it: kubectl lablet grant {instructor.user} -n {world.namespace}"
    assert f"it takes the ClusterRole vkprovider-instructor in namespace {world.namespace}; {grant}" in before
    granted = await instructor.grant()
    assert "send their tokens to the provider's page at http://127.0.0.1:" in granted
    url = granted.split(" page at ")[1].split()[0]
    assert "hostname" in await instructor.kubectl("lablet", "configs", "-u", "alice", "-n", world.namespace)
    assert "--provider-namespace" in await instructor.kubectl("lablet", "configs", "--help")
    direct = ("configs", "-u", "alice", "--provider-namespace", "vkprovider-system", "-n", world.namespace)
    assert 'cannot list resource "configmaps"' in await instructor.kubectl("lablet", *direct)
    nowhere = await instructor.kubectl("lablet", "configs", "-u", "alice", "-n", "default")
    assert "it takes the ClusterRole vkprovider-instructor in namespace default" in nowhere
    assert f"which only you can trust: VKPROVIDER_URL={url}" in nowhere
    elsewhere = await instructor.kubectl("lablet", "configs", "-u", "alice", "-n", "default", f"--url={url}")
    assert "may not get lablets.vkprovider.io/archive of the namespace" in elsewhere
    assert "default is the namespace of a context that names none, and no class: name yours with -n" in elsewhere
    for words in (["logs", "-u", "alice"], ["list"], ["stop", lablet.name], ["console", lablet.name, "r1"]):
        said = await instructor.kubectl("lablet", *words, "-n", "default")
        assert "it takes the ClusterRole vkprovider-instructor in namespace default" in said, words
    login = await instructor.kubectl("lablet", "login", "-u", "alice", "-n", world.namespace)
    assert "has no session to log in to" in login


async def test_a_class_begins_from_what_each_learner_left(world: World, instructor: Instructor) -> None:
    """Next Friday alice has another lablet; cara is new."""
    await with_page(world)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(topology({"r1": "iosv"}))
    await instructor.grant()

    async def given(user: str) -> Lablet:
        lablet = await world.pod(
            definition, worker, annotations={"vkprovider.io/username": user}, labels={"class": "friday"}
        )
        await lablet.ready()
        return lablet

    def config_of(lablet: Lablet) -> ConfigFile:
        [lab] = [lab for lab in simulator.simulation.world.labs.values() if lablet.uid in lab.title]
        [node] = lab.nodes.values()
        return node.configuration[0]

    past = await given("alice")
    config_of(past).content = "hostname worked"
    await past.delete()
    await past.gone()
    kept = await instructor.kubectl("lablet", "configs", "-u", "alice")
    alice, cara = await given("alice"), await given("cara")
    assert config_of(alice).content not in kept
    asked = ["lablet", "reset", "-l", "class=friday", "--saved"]
    assert "there is no terminal to confirm that: add --yes" in await instructor.kubectl(*asked)
    said = await instructor.kubectl(*asked, "--yes", "--wait", "--timeout", "85s")
    assert f"pod/{alice.name} was wiped and started again; it begins from what alice left" in said
    assert f"pod/{cara.name}: nothing of cara is kept of {definition}; the lab is left" in said
    assert config_of(alice).content in kept
    notes = (await alice.ready())["metadata"]["annotations"]
    assert notes["vkprovider.io/begin-from"].startswith(past.uid)
    await instructor.kubectl(*asked, "--yes", "--wait", "--timeout", "85s")
    assert (await alice.ready())["metadata"]["annotations"]["vkprovider.io/begin-from"] == (
        notes["vkprovider.io/begin-from"]
    ), "not from what the lab had before it was wiped for that"
    alone = await instructor.kubectl("lablet", "reset", cara.name, "--saved", "--yes")
    assert f"pod/{cara.name}: nothing of cara is kept" in alone
    assert "reset" not in (await cara.ready())["metadata"]["annotations"]


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


async def test_a_token_goes_nowhere_that_no_admin_has_named(world: World, desk: Desk, instructor: Instructor) -> None:
    """Neither where the status of a worker says, nor where a binding does that gives another role."""
    bindings = f"{RBAC}/namespaces/{world.namespace}/rolebindings"
    carrier = f"{bindings}/vkprovider-instructor"
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(4096))
        writer.close()

    thief = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with thief:
        url = f"http://127.0.0.1:{thief.sockets[0].getsockname()[1]}"
        granted = await desk.lablet("grant", instructor.user, "-n", world.namespace)
        assert "no CMLWorker shows the address of the provider's page" in granted.err
        assert await world.admin.get(carrier) is None
        worker = await world.worker(ready=False)
        await world.admin.patch(f"{GROUP}/cmlworkers/{worker}/status", {"status": {"pageURL": url}})
        ask = ("lablet", "configs", "-u", "alice", "-n", world.namespace)

        said = await instructor.kubectl(*ask)
        assert heard == []
        assert f"an admin names it to namespace {world.namespace}: kubectl lablet grant USER" in said
        assert f"which only you can trust: VKPROVIDER_URL={url}" in said

        notes = {"name": "vkprovider-instructor", "annotations": {"vkprovider.io/page-url": url}}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
        await world.admin.create(bindings, {"metadata": notes, "roleRef": role})
        assert f"VKPROVIDER_URL={url}" in await instructor.kubectl(*ask)
        assert heard == []
        refused = await desk.lablet("grant", instructor.user, "-n", world.namespace)
        assert (refused.code, "rolebinding/vkprovider-instructor binds ClusterRole view" in refused.err) == (1, True)
        await world.admin.delete(carrier)

        assert f"provider's page at {url}" in await instructor.grant()
        assert "cannot be asked" in await instructor.kubectl(*ask)
        assert any(b"Bearer" in each for each in heard), "what an admin names is asked"
        await instructor.grant("--page-url", "https://127.0.0.1:1")
        assert f"page at {url}, until now at https://127.0.0.1:1" in await instructor.grant()


async def test_who_may_not_give_the_role_writes_no_address(desk: Desk, instructor: Instructor) -> None:
    """An administrator of a namespace does not have the instructors' role.

    With an address of their own they would collect the instructors' tokens, and so have it.
    """
    await instructor.grant("--page-url", "https://labs.example.com")
    rights = ("--verb=get,update,patch,create,delete", "--resource=rolebindings.rbac.authorization.k8s.io")
    await desk.kubectl("create", "role", "binds", *rights)
    await desk.kubectl("create", "rolebinding", "binds", "--role=binds", "--user=head")
    change = ("annotate", "rolebinding", "vkprovider-instructor", "--overwrite", "--as=head")

    async def refused() -> bool:
        said = await desk.kubectl(*change, "vkprovider.io/page-url=https://example.com")
        assert said.code == 1
        return "attempting to grant RBAC permissions not currently held" in said.err

    await eventually(refused, "the API server knows the role")
    assert "vkprovider-instructor unchanged" in await instructor.grant()


async def test_the_address_is_shown_and_goes_with_the_setting(world: World) -> None:
    running = await with_page(world)
    worker = await world.worker()
    shown = await world.cmlworker(worker, lambda found: found.get("status", {}).get("pageURL"))
    assert shown["status"]["pageURL"].startswith("http://127.0.0.1:")
    await running.stop()
    await world.replica()
    await world.cmlworker(worker, lambda found: not found["status"].get("pageURL"))

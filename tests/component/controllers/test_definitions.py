"""A LabletDefinition: stored, changed, refused, refreshed, deleted while in use."""

import base64
import io
import random
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import structlog
import yaml

from tests.component.controllers.harness import World
from tests.component.controllers.labhistory import existing_lab
from tests.component.controllers.looking import condition, is_ready, when
from tests.component.controllers.running import WITH_PASSES
from tests.support.apiserver import CONFIG_MAPS, GROUP, RUNTIME_CLASSES, SYSTEM
from tests.support.topologies import topology
from vkprovider.labs.pure.definition import refresh
from vkprovider.labs.pure.definition.content import build
from vkprovider.labs.pure.definition.package import Package

TWO = topology({"h0": "alpine", "h1": "alpine"})
CONTENT = CONFIG_MAPS + "?labelSelector=vkprovider.io%2Fcomponent%3Dcontent"


def reason(found: dict[str, Any]) -> str:
    return str(condition(found, "Ready")["reason"])


def says(found: dict[str, Any], text: str) -> bool:
    return text in str(condition(found, "Ready")["message"])


async def test_changed_topology_becomes_a_further_version_and_the_runtime_class_charges_for_both(world: World) -> None:
    await world.replica()
    name = await world.define()
    before = await world.admin.get(f"{RUNTIME_CLASSES}/{name}")
    assert before is not None
    await world.change_definition(name, version="2.0.0", source={"inline": TWO})
    found = await world.definition(name, lambda found: len(found["status"]["versions"]) == 2)
    assert [version["version"] for version in found["status"]["versions"]] == ["2.0.0", "1.0.0"]
    charged = await world.admin.until(
        f"{RUNTIME_CLASSES}/{name}", lambda after: after["overhead"] != before["overhead"]
    )
    assert charged["overhead"]["podFixed"]["cpu"] != before["overhead"]["podFixed"]["cpu"]
    await world.change_definition(name, version="1.0.0", source={"inline": topology({"h0": "alpine"})})
    await world.definition(name, lambda found: found["status"]["versions"][0]["version"] == "1.0.0")
    assert len(await world.admin.items(CONTENT)) == 2


async def test_log_names_the_tags_that_request_no_port(world: World) -> None:
    """R001-007, R001-008: they are skipped, and an author can find out which."""
    tags = {"h0": ["serial:4000", "serial:x", "my own"], "h1": ["vnc:4001"]}
    with structlog.testing.capture_logs() as entries:
        await world.replica()
        name = await world.define(topology({"h0": "alpine", "h1": "alpine"}, tags))
    [entry] = [entry for entry in entries if entry["event"] == "tags request no port"]
    assert (entry["log_level"], entry["definition"], entry["tags"]) == ("debug", name, {"h0": ["serial:x", "my own"]})
    found = await world.definition(name)
    assert [slot["name"] for slot in found["status"]["portTemplate"]] == ["h0_serial", "h1_vnc"]


async def test_picture_of_the_lab_is_in_the_status_also_after_an_earlier_release_wrote_that(world: World) -> None:
    """Places and links of the devices; and nothing is written while nothing changes."""
    text = yaml.safe_load(TWO)
    for node in text["nodes"]:
        node["interfaces"][0]["id"] = "i0"
    text["links"] = [{"id": "l0", "n1": "n0", "i1": "i0", "n2": "n1", "i2": "i0"}]
    await world.replica()
    name = await world.define(yaml.safe_dump(text))
    status = (await world.definition(name))["status"]
    assert [(each["label"], each["x"], each["y"]) for each in status["devices"]] == [("h0", 0, 0), ("h1", 100, 0)]
    assert status["links"] == [{"n1": "h0", "n2": "h1"}]
    earlier = [{key: value for key, value in each.items() if key not in {"x", "y"}} for each in status["devices"]]
    path = f"{GROUP}/labletdefinitions/{name}"
    await world.admin.patch(f"{path}/status", {"status": {"devices": earlier, "links": None}})
    again = await world.definition(name, lambda found: "links" in found["status"])
    assert again["status"]["devices"] == status["devices"]
    touched = await world.admin.patch(path, {"metadata": {"labels": {"course": "routing"}}})
    await world.definition(await world.define())  # handled after that change
    after = await world.definition(name)
    assert after["metadata"]["resourceVersion"] == touched["metadata"]["resourceVersion"]


async def test_running_lablet_keeps_its_version_and_new_ones_take_the_changed_one(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, name = await world.worker(simulator.url), await world.define()
    old = await world.pod(name, worker)
    await old.ready()
    await world.change_definition(name, version="2.0.0", source={"inline": TWO})
    await world.definition(name, lambda found: len(found["status"]["versions"]) == 2)
    new = await world.pod(name, worker)
    await new.ready()
    sizes = sorted(len(lab.nodes) for lab in simulator.simulation.world.labs.values())
    assert sizes == [1, 2]
    assert (await old.claim())["version"] == "1.0.0"


async def test_definition_edited_while_lablets_start_changes_only_new_ones(world: World) -> None:
    """Also where one version is kept: a lablet that boots goes on with the one that it was charged for."""
    await world.replica()
    simulator = await world.simulator(boot_seconds_by_definition={"iosv": (7.0, 7.0)})
    worker, name = await world.worker(simulator.url), await world.define(topology({"old": "iosv"}), keepVersions=1)
    old = [await world.pod(name, worker) for _ in range(3)]
    await old[0].waits("StartingNodes")
    await world.change_definition(name, source={"inline": topology({"new": "alpine"})})
    await world.definition(name, lambda found: "new" in str(found["status"]["devices"]))
    new = [await world.pod(name, worker) for _ in range(2)]
    for lablet in (*old, *new):
        await lablet.ready()
    devices = [node.label for one in old for node in existing_lab(simulator, one.uid).nodes.values()]
    assert devices == ["old"] * 3
    devices = [node.label for one in new for node in existing_lab(simulator, one.uid).nodes.values()]
    assert devices == ["new"] * 2


async def test_bad_edit_leaves_what_was_good(world: World) -> None:
    await world.replica()
    worker, name = await world.worker(), await world.define()
    await world.change_definition(name, source={"inline": "lab: ["})
    await world.definition(name, lambda found: reason(found) == "TopologyInvalid")
    await (await world.pod(name, worker)).ready()


async def test_override_that_is_removed_is_missed(world: World) -> None:
    await world.replica()
    worker, override = await world.worker(), {"cpu": "1", "memory": "1Gi"}
    name = await world.define(topology({"h0": "mine"}), resources=override)
    await world.change_definition(name, resources=None)
    await world.definition(name, lambda found: reason(found) == "ResourcesUnknown")
    late = await world.pod(name, worker)
    await late.waits("DefinitionNotReady")
    await world.change_definition(name, resources=override)
    await world.definition(name, is_ready)
    await late.ready()


async def test_wrong_topology_is_refused_and_a_corrected_one_heals(world: World) -> None:
    await world.replica()
    name = await world.define("nodes: [what", ready=False)
    found = await world.definition(name, lambda found: condition(found, "Ready")["status"] == "False")
    await world.until_event(reason(found), name)
    assert await world.admin.get(f"{RUNTIME_CLASSES}/{name}") is None
    await world.change_definition(name, source={"inline": topology({"x0": "nobody-knows-this"})})
    await world.definition(name, lambda found: reason(found) == "ResourcesUnknown")
    await world.change_definition(name, source={"inline": TWO})
    await world.definition(name, is_ready)
    assert await world.admin.get(f"{RUNTIME_CLASSES}/{name}")


async def test_definition_in_use_waits_and_refuses_new_lablets(world: World) -> None:
    await world.replica()
    worker, name = await world.worker(), await world.define()
    first = await world.pod(name, worker)
    await first.ready()
    await first.claim()
    path = f"{GROUP}/labletdefinitions/{name}"
    await world.admin.delete(path)
    found = await world.definition(name, lambda found: reason(found) == "InUse")
    assert says(found, "1 lablet; delete their pods, or annotate vkprovider.io/abandon=true")
    second = await world.pod(name, worker)
    assert "InUse" in (await second.waits("DefinitionNotReady"))["message"]
    await first.delete()
    await first.gone()
    await world.admin.until_gone(path)
    await world.admin.until_gone(f"{RUNTIME_CLASSES}/{name}")
    await second.waits("NotALablet")


async def test_abandoned_definition_goes_though_it_is_in_use(world: World) -> None:
    await world.replica()
    worker, name = await world.worker(), await world.define()
    lablet = await world.pod(name, worker)
    await lablet.ready()
    path = f"{GROUP}/labletdefinitions/{name}"
    await world.admin.patch(path, {"metadata": {"annotations": {"vkprovider.io/abandon": "true"}}})
    await world.admin.delete(path)
    await world.admin.until_gone(path)
    assert is_ready(await lablet.ready())


async def test_runtime_class_of_others_is_never_touched(world: World) -> None:
    await world.replica(WITH_PASSES)  # objects of others are not followed: a pass looks whether they are gone
    name = world.name("lab")
    foreign = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "runc"}
    made = await world.admin.create(RUNTIME_CLASSES, foreign)
    await world.define(name=name, ready=False)
    conflict = await world.definition(name, lambda found: reason(found) == "RuntimeClassConflict")
    assert "rename the LabletDefinition, or delete it" in condition(conflict, "Ready")["message"]
    found = await world.admin.get(f"{RUNTIME_CLASSES}/{name}")
    assert found is not None
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    await world.admin.delete(f"{RUNTIME_CLASSES}/{name}")
    await world.definition(name, is_ready)
    await world.admin.until(f"{RUNTIME_CLASSES}/{name}", lambda found: found["handler"] == "vkprovider")


async def test_runtime_class_that_others_change_is_repaired(world: World) -> None:
    await world.replica()
    name = await world.define()
    path = f"{RUNTIME_CLASSES}/{name}"
    whole = await world.admin.get(path)
    assert whole is not None
    await world.admin.patch(path, {"scheduling": {"nodeSelector": {"whose": "others"}, "tolerations": []}})
    await world.admin.until(path, lambda found: found["scheduling"] == whole["scheduling"])
    await world.admin.delete(path)
    await world.admin.until(path, lambda found: found["overhead"] == whole["overhead"])


async def test_config_map_is_read_when_a_refresh_asks_for_it(world: World) -> None:
    await world.replica(WITH_PASSES)  # a source that is missing is looked for again and again
    where = {"namespace": world.namespace, "name": "topology", "key": "lab.yaml"}
    maps = f"/api/v1/namespaces/{world.namespace}/configmaps"
    name = world.name("lab")
    spec = {"version": "1.0.0", "source": {"configMap": where}}
    body = {"apiVersion": "vkprovider.io/v1alpha1", "kind": "LabletDefinition", "metadata": {"name": name}}
    await world.admin.create(f"{GROUP}/labletdefinitions", {**body, "spec": spec})
    await world.definition(name, lambda found: reason(found) == "SourceForbidden")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "vkprovider-topology-reader"}
    account = {"kind": "ServiceAccount", "namespace": "vkprovider-system", "name": "vkprovider"}
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{world.namespace}/rolebindings"
    await world.admin.create(bindings, {"metadata": {"name": "r"}, "roleRef": role, "subjects": [account]})
    missing = await world.definition(name, lambda found: reason(found) == "SourceNotFound")
    assert condition(missing, "Ready")["message"] == f"ConfigMap {world.namespace}/topology does not exist"
    await world.admin.create(maps, {"metadata": {"name": "topology"}, "data": {"other.yaml": TWO}})
    await world.definition(name, lambda found: says(found, "has no key 'lab.yaml'; it has other.yaml"))
    for encoding, told in (("utf-16", "UTF-16"), ("latin-1", "ISO-8859-1")):  # kubectl puts such files there
        data = base64.b64encode(f"# Übung\n{TWO}".encode(encoding)).decode()
        await world.admin.patch(f"{maps}/topology", {"binaryData": {"lab.yaml": data}})
        found = await world.definition(name, partial(says, text=f"(iconv -f {told} -t UTF-8"))
        assert says(found, f"'lab.yaml' of ConfigMap {world.namespace}/topology is not UTF-8, probably {told}")
    await world.admin.patch(f"{maps}/topology", {"binaryData": None})
    noise = base64.b64encode(random.Random(1).randbytes(765_000)).decode()
    large = yaml.safe_dump({**yaml.safe_load(TWO), "annotations": [{"text_content": noise}]})
    await world.admin.patch(f"{maps}/topology", {"data": {"lab.yaml": large}})
    large_one = await world.definition(name, lambda found: reason(found) == "ContentTooLarge")
    assert says(large_one, "at most 1000 KiB fit into one object")
    await world.admin.patch(f"{maps}/topology", {"data": {"lab.yaml": TWO}})
    await world.definition(name, is_ready)
    three = topology({"h0": "alpine", "h1": "alpine", "h2": "alpine"})
    await world.admin.patch(f"{maps}/topology", {"data": {"lab.yaml": three}})
    await world.change_definition(name, version="1.1.0")
    await world.definition(name, lambda found: found["status"]["versions"][0]["version"] == "1.1.0")
    await world.admin.patch(f"{maps}/topology", {"data": {"other.yaml": three, "lab.yaml": None}})
    await world.change_definition(name, version="1.2.0")
    await world.definition(name, lambda found: "other.yaml" in str(found["status"]))


def package(text: str, version: str = "") -> bytes:
    """Make a content package as the content system does."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("cml.yaml", text)
        if version:
            archive.writestr("mosaic_meta.json", f'{{"version": "{version}"}}')
    return buffer.getvalue()


async def ask_for_refresh(world: World, name: str, at: str) -> None:
    """Do what `kubectl lablet refresh` does."""
    notes = {"vkprovider.io/refresh": refresh.write("kubernetes-admin", at, force=False)}
    await world.admin.patch(f"{GROUP}/labletdefinitions/{name}", {"metadata": {"annotations": notes}})


async def test_package_is_fetched_from_the_object_store_on_request(world: World, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    await world.replica(VKPROVIDER_CONTENT_STORE=f"file://{store}")
    name = world.name("lab")
    spec = {"source": {"objectStore": {"key": "lab.zip"}}, "formQualifiedName": "exams/basics", "version": "1.0.0"}
    body = {"apiVersion": "vkprovider.io/v1alpha1", "kind": "LabletDefinition", "metadata": {"name": name}}
    await world.admin.create(f"{GROUP}/labletdefinitions", {**body, "spec": spec})
    await world.definition(name, lambda found: reason(found) == "PackageNotFound")
    (store / "lab.zip").write_bytes(package(TWO))
    await ask_for_refresh(world, name, "2026-01-01T10:00:00Z")
    await world.definition(name, is_ready)
    await world.until_event("ContentStored", name)
    await ask_for_refresh(world, name, "2026-01-01T11:00:00Z")
    await world.until_event("VersionUnchanged", name)
    (store / "lab.zip").write_bytes(b"no zip")
    await ask_for_refresh(world, name, "2026-01-01T12:00:00Z")
    await world.definition(name, lambda found: "Refused" in str(found["status"]))
    assert is_ready(await world.definition(name)), "a refused package took the stored version away"


async def test_replica_that_does_not_lead_takes_in_what_the_leader_wrote(world: World) -> None:
    leader = await world.replica(name=f"a-{world.name('leader')}")
    await when(leader.replica.membership.leads, "the first one leads")
    follower = await world.replica(name=f"b-{world.name('follower')}")
    name = await world.define()
    await world.admin.until(f"{RUNTIME_CLASSES}/{name}", bool)
    workers = [await world.worker(), await world.worker()]
    lablets = [await world.pod(name, worker) for worker in workers]
    for lablet in lablets:
        await lablet.ready()
    assert follower.api.matching(r"^(PATCH|POST|PUT) .*(labletdefinitions|runtimeclasses)") == []


async def test_leader_takes_in_what_its_predecessor_stored_last(world: World) -> None:
    """The watch of contents may show it when that of definitions has long shown the status it was written with."""
    await world.replica()
    name = await world.define()
    found = await world.definition(name)
    body = build(
        definition=name,
        uid=found["metadata"]["uid"],
        namespace=SYSTEM,
        package=Package("2.0.0", TWO),
        sequence=2,
        request="",
        stored_at="2026-01-01T10:00:00Z",
    )
    await world.admin.create(CONFIG_MAPS, body)
    await world.definition(name, lambda found: len(found["status"]["versions"]) == 2)


async def test_content_that_another_client_deletes_is_stored_again(world: World) -> None:
    """Before a change of the definition makes another version current, and makes this one current again."""
    await world.replica()
    name, worker = await world.define(), await world.worker()
    running = await world.pod(name, worker)
    await running.ready()
    [stored] = await world.admin.items(CONTENT)
    await world.admin.delete(f"{CONFIG_MAPS}/{stored['metadata']['name']}")
    again = await world.admin.until(
        f"{CONFIG_MAPS}/{stored['metadata']['name']}", lambda now: now["metadata"]["uid"] != stored["metadata"]["uid"]
    )
    assert again["binaryData"] == stored["binaryData"]
    assert again["metadata"]["annotations"] == stored["metadata"]["annotations"]
    await world.change_definition(name, version="2.0.0", source={"inline": TWO})
    await world.definition(name, lambda found: found["status"]["versions"][0]["version"] == "2.0.0")
    await world.change_definition(name, version="1.0.0", source={"inline": topology({"h0": "alpine"})})
    await world.definition(name, lambda found: found["status"]["versions"][0]["version"] == "1.0.0")

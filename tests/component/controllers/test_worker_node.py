"""A CMLWorker and its Node: made, repaired, silent and back, refused, deleted."""

import asyncio
import base64
import os
import re
from collections.abc import Callable
from typing import Any, Final

import pytest
import structlog

from tests.component.cml.conftest import Secret
from tests.component.controllers.harness import PASSWORD, World
from tests.component.controllers.looking import condition, eventually, imports, is_ready, labs, waiting, when
from tests.component.controllers.running import MORTAL, SHORT, WITH_PASSES, Groups
from tests.support.apiserver import CONFIG_MAPS, GROUP, LOGINS, NODE_LEASES, NODES, SECRETS, SYSTEM
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.faultyapi import Asked
from tests.support.topologies import topology
from vkprovider.cml.factory import open_labs
from vkpsim.cml.world.model import Lab
from vkpsim.http.faults import Fault, Kind

EAGER: Final[Groups] = {**SHORT, "workers": {**SHORT["workers"], "login_check_s": 0.3}}
PORT = topology({"r1": "iosv"}, {"r1": ["serial:4000"]})
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


async def test_node_shows_what_the_worker_is(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, nodeLabels={"topology.kubernetes.io/zone": "a"})
    node = await world.node(worker)
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "a"
    assert node["spec"]["providerID"] == f"vkprovider://{worker}"
    assert {taint["key"] for taint in node["spec"]["taints"]} >= {"vkprovider.io/virtual-node", "vkprovider.io/env"}
    assert node["status"]["capacity"]["vkprovider.io/ports"] == "1k"
    found = await world.cmlworker(worker, is_ready)
    assert found["status"]["cmlVersion"] == "2.9.1+build.7"
    assert found["status"]["epoch"] == (await world.lease(worker))["leaseTransitions"]


async def test_label_that_is_removed_from_the_worker_leaves_its_node(world: World) -> None:
    await world.replica()
    worker = await world.worker(nodeLabels={"topology.kubernetes.io/zone": "zone-b"})
    path = f"{GROUP}/cmlworkers/{worker}"
    await world.admin.patch(path, {"spec": {"nodeLabels": {"rack": "r7"}}})
    await world.node(worker, lambda node: node["metadata"]["labels"].get("rack") == "r7")
    await world.admin.patch(path, {"spec": {"nodeLabels": {"rack": None}}})
    node = await world.node(worker, lambda node: "rack" not in node["metadata"]["labels"])
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-b"


async def test_node_claims_the_version_of_the_api_server(world: World) -> None:
    """It is upgraded while the provider runs; a version that cannot be read now is the one that was read last."""
    served = (await world.admin.request("GET", "/version"))["gitVersion"]
    running = await world.replica(WITH_PASSES)
    worker = await world.worker()
    assert kubelet_of(await world.node(worker)) == f"{served}-vkprovider"
    asked = len(running.api.matching("^GET /version"))
    assert asked == 1
    running.api.fault("^GET /version", status=503)
    world.slept_s += 400.0
    await when(lambda: len(running.api.matching("^GET /version")) == asked + 1, "asked again")
    running.api.fault("^GET /version", answer=b'{"gitVersion": "v1.99.4+k3s1"}')
    assert kubelet_of(await world.node(worker, is_ready)) == f"{served}-vkprovider"
    world.slept_s += 400.0
    await world.node(worker, lambda node: kubelet_of(node) == "v1.99.4-vkprovider")


async def test_node_of_an_api_server_that_keeps_its_version_to_itself(world: World) -> None:
    running = await world.replica()
    running.api.fault("^GET /version", count=None, status=403)
    worker = await world.worker()
    assert kubelet_of(await world.node(worker)) == "v1.30.0-vkprovider"


def kubelet_of(node: dict[str, Any]) -> str:
    """Return the version of a kubelet that a Node claims."""
    return str(node["status"]["nodeInfo"]["kubeletVersion"])


async def test_node_that_others_change_is_repaired(world: World) -> None:
    await world.replica()
    worker = await world.worker()
    path, before = f"{NODES}/vnode.{worker}", await world.node(worker, is_ready)
    wrong = {
        "vkprovider.io/worker": "other",
        "vkprovider.io/env": "other",
        "vkprovider.io/tunnel": "mqtt",
        "vkprovider.io/component": None,
        "kubernetes.io/hostname": None,
    }
    await world.admin.patch(path, {"metadata": {"labels": wrong, "annotations": {"vkprovider.io/installation": None}}})
    await world.admin.patch(
        path, {"spec": {"taints": None}}
    )  # the API server's own, too, which no controller takes off
    kinds = ("labels", "annotations")
    await world.node(
        worker,
        lambda node: (
            all(node["metadata"][kind] == before["metadata"][kind] for kind in kinds)
            and taints_of(node) == ours_of(before)
        ),
    )
    await world.admin.delete(path)
    await world.node(worker, is_ready)


async def test_what_others_put_on_a_node_stays(world: World) -> None:
    await world.replica()
    worker = await world.worker()
    path, before = f"{NODES}/vnode.{worker}", await world.node(worker, is_ready)
    others = {"key": "example.com/others", "value": "x", "effect": "NoSchedule"}
    await world.admin.patch(path, {"spec": {"taints": [others]}})
    await world.node(worker, lambda node: taints_of(node) == ours_of(before) | {tuple(others.values())})
    rack = {
        "type": "example.com/Rack",
        "status": "True",
        "reason": "RackFound",
        "message": "rack 7",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    await world.admin.request("PATCH", f"{path}/status", {"status": {"conditions": [rack, unknown]}}, STRATEGIC_PATCH)
    await world.admin.patch(path, {"metadata": {"labels": {"vkprovider.io/worker": "other", "mine": "kept"}}})
    node = await world.node(
        worker, lambda node: is_ready(node) and node["metadata"]["labels"]["vkprovider.io/worker"] == worker
    )
    assert condition(node, "Ready")["reason"] == "WorkerReady"
    assert condition(node, "example.com/Rack") == rack
    assert node["metadata"]["labels"]["mine"] == "kept"
    assert tuple(others.values()) in taints_of(node)


def taints_of(node: dict[str, Any]) -> set[tuple[str, str | None, str]]:
    """Return key, value and effect of the taints of a Node."""
    return {(taint["key"], taint.get("value"), taint["effect"]) for taint in node["spec"].get("taints", [])}


def ours_of(node: dict[str, Any]) -> set[tuple[str, str | None, str]]:
    """Return those of the taints of a Node that are the provider's."""
    return {taint for taint in taints_of(node) if taint[0].startswith("vkprovider.io/")}


@pytest.mark.parametrize(("fault", "words"), [("drop", "the connection ended"), ("status", "500")])
async def test_silent_worker_makes_node_and_lablets_unready_until_it_answers(
    world: World, fault: Kind, words: str
) -> None:
    """R004-047, R004-049: each says why; nothing is lost, and another worker's lablets stay as they are."""
    await world.replica()
    simulator = await world.simulator()
    worker, other, definition = await world.worker(simulator.url), await world.worker(), await world.define()
    lablet, elsewhere = await world.pod(definition, worker), await world.pod(definition, other)
    before = await lablet.ready()
    calm = condition(await elsewhere.ready(), "Ready")
    asked = simulator.log.entries[-1].number
    simulator.faults.add(Fault(kind=fault), simulator.now())
    node = await world.node(worker, lambda node: condition(node, "Ready")["status"] == "False")
    assert condition(node, "Ready")["reason"] == "WorkerUnreachable"
    assert words in condition(node, "Ready")["message"]
    await world.cmlworker(worker, lambda found: login_of(found) == ("False", "WorkerUnreachable"))
    pod = await lablet.until(lambda pod: not is_ready(pod))
    assert pod["status"]["phase"] == "Running"
    assert condition(pod, "Ready")["reason"] == "WorkerUnreachable"
    assert worker in condition(pod, "Ready")["message"]
    assert condition(pod, "ContainersReady")["status"] == "False"
    for about in (lablet.name, f"vnode.{worker}"):
        await world.until_event("WorkerUnreachable", about)
    simulator.faults.clear()
    await world.node(worker, is_ready)
    pod = await lablet.ready()
    assert "reason" not in condition(pod, "Ready")
    assert container_id(pod) == container_id(before)
    assert writes(simulator, asked) == []
    assert is_ready(await world.node(other))
    assert condition(await elsewhere.ready(), "Ready") == calm


async def test_next_owner_whose_first_look_fails_turns_nothing_not_ready(world: World) -> None:
    """As the owner before would not have: a worker is silent after several probes."""
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    since = condition(await lablet.ready(), "Ready")
    await world.cmlworker(worker, is_ready)
    node = condition(await world.node(worker, is_ready), "Ready")
    await first.crash()
    asked = simulator.log.entries[-1].number
    simulator.faults.add(Fault(kind="status", status=503, route="^GET .*/labs$", count=1), simulator.now())
    await world.replica(MORTAL)

    def looks() -> list[int]:
        entries = [entry for entry in simulator.log.entries if entry.number > asked]
        return [entry.status for entry in entries if entry.path.endswith("/api/v0/labs")]

    await when(lambda: looks().count(200) >= 3, "the next owner looks")
    assert looks()[0] == 503
    for about in (lablet.name, f"vnode.{worker}", worker):
        assert await world.events("WorkerUnreachable", about) == []
    found = condition(await world.node(worker, is_ready), "Ready")
    assert found["lastTransitionTime"] == node["lastTransitionTime"]
    assert condition(await lablet.ready(), "Ready") == since


def writes(simulator: CmlSimulator, since: int) -> list[str]:
    """List what was done on a worker after a request of this number, besides reading and logging in."""
    entries = [entry for entry in simulator.log.entries if entry.number > since and entry.method != "GET"]
    return [f"{entry.method} {entry.path}" for entry in entries if "authenticate" not in entry.path]


async def test_password_that_changes_in_cml_is_said_and_a_new_secret_needs_no_restart(world: World) -> None:
    """No lablet is touched, CML is not asked with every probe, and nobody is told the password."""
    password = "an-0ther-secret"
    with structlog.testing.capture_logs() as logged:
        running = await world.replica()
        simulator = await world.simulator()
        worker, definition = await world.worker(simulator.url), await world.define()
        lablet = await world.pod(definition, worker)
        before, asked = await lablet.ready(), simulator.log.entries[-1].number
        set_password(simulator, password)
        node = await world.node(worker, lambda node: condition(node, "Ready")["reason"] == "CredentialsInvalid")
        assert not is_ready(node)
        assert "Secret" in condition(node, "Ready")["message"]
        await world.admin.patch(f"{SECRETS}/{worker}", {"stringData": {"password": password}})
        await world.node(worker, is_ready)
        after = await lablet.ready()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert writes(simulator, asked) == []
    assert not running.task.done()
    refused = [entry for entry in simulator.log.entries if entry.number > asked and entry.status == 403]
    assert len(refused) <= 8, "a wrong password is tried again and again"
    assert password not in f"{logged} {await world.admin.items('/api/v1/events')}"


async def test_wrong_password_is_said_and_a_corrected_secret_heals(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, ready=False, credentialsSecretName="missing")
    reason = "CredentialsInvalid"
    await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == reason)
    for data, complaint in (
        ({"username": "admin"}, "lacks the key password"),
        ({"username": "admin", "password": f"{PASSWORD}\n"}, "line break"),
        ({"username": "admin", "password": "wrong"}, "refused the login: check username and password"),
    ):
        await world.admin.delete(f"{SECRETS}/missing")
        labels, annotations = {"vkprovider.io/used-for": "worker"}, {"vkprovider.io/host": simulator.url}
        metadata = {"name": "missing", "labels": labels, "annotations": annotations}
        await world.admin.create(SECRETS, {"metadata": metadata, "stringData": data})
        await world.cmlworker(worker, lambda found, text=complaint: text in condition(found, "Ready")["message"])  # type: ignore[misc]
    await world.admin.patch(f"{SECRETS}/missing", {"stringData": {"password": PASSWORD}})
    await world.node(worker, is_ready)


RBAC: Final = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{LOGINS}"
ROLES, BINDINGS = f"{RBAC}/roles", f"{RBAC}/rolebindings"


def login_of(found: dict[str, Any]) -> tuple[str, str]:
    """Return status and reason of a CMLWorker's condition Ready."""
    ready = condition(found, "Ready")
    return ready["status"], ready["reason"]


def set_password(simulator: CmlSimulator, password: str) -> None:
    """Change the password in CML, which ends the user's logins."""
    user = simulator.simulation.accounts.by_name("admin")
    assert user is not None
    simulator.simulation.accounts.set_password(user, password)


async def test_password_is_rotated_in_the_secret_first_and_nothing_turns_not_ready(world: World) -> None:
    await world.replica(EAGER)
    simulator = await world.simulator()
    worker = await world.worker(simulator.url)
    definition = await world.define()
    lablet = await world.pod(definition, worker)
    ready_since = condition(await lablet.ready(), "Ready")["lastTransitionTime"]
    since = condition(await world.node(worker), "Ready")["lastTransitionTime"]
    body = {"stringData": {"password": "of-tomorrow"}}
    await world.admin.request("PATCH", f"{SECRETS}/{worker}", body, STRATEGIC_PATCH)  # as kubectl does
    found = await world.cmlworker(worker, lambda found: login_of(found) == ("True", "CredentialsInvalid"))
    said = condition(found, "Ready")["message"]
    assert "as long as its present login lasts" in said
    assert f"kubectl -n {LOGINS} patch secret {worker}" in said
    assert await world.until_event("CredentialsInvalid", worker)
    set_password(simulator, "of-tomorrow")
    await world.cmlworker(worker, lambda found: login_of(found) == ("True", "WorkerReady"))
    assert condition(await world.node(worker), "Ready")["lastTransitionTime"] == since
    assert [event["count"] for event in await world.events("CredentialsInvalid", worker)] == [1]
    pod = await lablet.ready()
    assert condition(pod, "Ready")["lastTransitionTime"] == ready_since


async def test_secret_that_goes_is_said_while_the_login_of_before_lasts(world: World) -> None:
    await world.replica(EAGER)
    simulator = await world.simulator()
    worker = await world.worker(simulator.url)
    secret = await world.admin.get(f"{SECRETS}/{worker}")
    assert secret is not None
    await world.admin.delete(f"{SECRETS}/{worker}")
    found = await world.cmlworker(worker, lambda found: login_of(found) == ("True", "CredentialsInvalid"))
    assert f"Secret {LOGINS}/{worker} does not exist; create it" in condition(found, "Ready")["message"]
    labels = secret["metadata"]["labels"]
    meta = {"name": worker, "labels": {}, "annotations": secret["metadata"]["annotations"]}
    await world.admin.create(SECRETS, {"metadata": meta, "data": secret["data"]})
    await world.cmlworker(worker, lambda found: login_of(found) == ("True", "SecretNotAllowed"))
    await world.admin.patch(f"{SECRETS}/{worker}", {"metadata": {"labels": labels}})
    await world.cmlworker(worker, lambda found: login_of(found) == ("True", "WorkerReady"))
    await world.node(worker, is_ready)


async def test_logins_stand_in_the_namespace_of_the_setting(world: World) -> None:
    """With a Role and a RoleBinding there (docs/connect-cml.md); until then it says what it cannot read."""
    place = world.namespace
    running = await world.replica(EAGER, VKPROVIDER_LOGINS_NAMESPACE=place)
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, ready=False)
    found = await world.cmlworker(worker, lambda found: login_of(found) == ("False", "CredentialsInvalid"))
    assert f"Secret {place}/{worker} cannot be read" in condition(found, "Ready")["message"]
    made = []
    for path, body in (
        (SECRETS, await world.admin.get(f"{SECRETS}/{worker}")),
        (ROLES, await world.admin.get(f"{ROLES}/vkprovider")),
        (BINDINGS, await world.admin.get(f"{BINDINGS}/vkprovider")),
    ):
        assert body is not None
        meta = {name: body["metadata"].get(name, {}) for name in ("name", "labels", "annotations")}
        there = path.replace(LOGINS, place)
        await world.admin.create(there, {**body, "metadata": meta})
        made.append(f"{there}/{meta['name']}")
    try:
        await world.node(worker, is_ready)
        assert {each.path for each in running.api.asked if "/secrets/" in each.path} == {
            f"{SECRETS.replace(LOGINS, place)}/{worker}"
        }
    finally:
        for path in made:
            await world.admin.delete(path)


async def test_logins_of_an_earlier_version_move_by_the_command_that_the_worker_says(world: World) -> None:
    """Where the provider reads no Secret they are not found; the lab runs on, and nothing of ours copies one."""
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    worker = await world.worker(simulator.url)
    lablet = await world.pod(await world.define(), worker)
    before = await lablet.ready()
    await lablet.claim(lambda row: row.get("readyAt"))
    await first.crash()
    secret = await world.admin.get(f"{SECRETS}/{worker}")
    assert secret is not None
    meta = {name: secret["metadata"][name] for name in ("name", "labels", "annotations")}
    old = f"/api/v1/namespaces/{SYSTEM}/secrets"
    await world.admin.create(old, {"metadata": meta, "data": secret["data"]})
    await world.admin.delete(f"{SECRETS}/{worker}")
    asked = simulator.log.entries[-1].number
    running = await world.replica()
    found = await world.cmlworker(worker, lambda found: login_of(found) == ("False", "CredentialsInvalid"))
    said = condition(found, "Ready")["message"]
    command = re.search(rf"kubectl -n {SYSTEM} get secrets .* delete secrets -l \S+", said)
    assert command is not None, said
    assert writes(simulator, asked) == []
    assert not [each for each in running.api.asked if "/secrets/" in each.path and f"/{LOGINS}/" not in each.path]
    server = world.server
    home = str(server.kubeconfig.parent)  # where kubectl keeps what it has discovered
    env = {"PATH": f"{server.programs}:{os.environ['PATH']}", "KUBECONFIG": str(server.kubeconfig), "HOME": home}
    moved = await asyncio.create_subprocess_exec("bash", "-ec", command[0], env=env)
    assert await moved.wait() == 0
    await world.node(worker, is_ready)
    after = await lablet.ready()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert writes(simulator, asked) == []
    assert await world.admin.get(f"{old}/{worker}") is None


async def test_node_without_provider_id_is_known_again(world: World) -> None:
    """Somebody strips it of all that marks it, while the provider is away; the id that it has later stays."""
    first = await world.replica(MORTAL, VKPROVIDER_PROVIDER_ID="false")
    worker = await world.worker()
    path, made = f"{NODES}/vnode.{worker}", await world.node(worker, is_ready)
    assert "providerID" not in made["spec"]
    await first.crash()
    nothing: dict[str, None] = dict.fromkeys(made["metadata"]["annotations"])
    await world.admin.patch(path, {"metadata": {"annotations": nothing, "labels": {"vkprovider.io/worker": None}}})
    second = await world.replica(MORTAL)
    now = await world.node(worker, lambda node: node["spec"].get("providerID"))
    assert now["spec"]["providerID"] == f"vkprovider://{worker}"
    assert now["metadata"]["uid"] == made["metadata"]["uid"]
    assert now["metadata"]["annotations"].items() >= made["metadata"]["annotations"].items()
    await second.stop()
    await world.replica(MORTAL, VKPROVIDER_PROVIDER_ID="false")
    await world.cmlworker(worker, is_ready)
    node = await world.node(worker, is_ready)
    assert node["spec"]["providerID"] == f"vkprovider://{worker}", "the API server lets nobody change it"


async def test_node_of_others_is_never_touched(world: World) -> None:
    """R004-004: a real node keeps its name, its Lease and its status; when it goes, the name is free."""
    await world.replica(WITH_PASSES)  # objects of others are not followed: a pass looks whether they are gone
    name = world.name("w")
    path = f"{GROUP}/cmlworkers/{name}"
    foreign = {"metadata": {"name": f"vnode.{name}", "labels": {"whose": "others"}}}
    await world.admin.create(NODES, foreign)
    spec = {"url": f"null://{name}", "address": "198.51.100.7"}
    worker = {"apiVersion": "vkprovider.io/v1alpha1", "kind": "CMLWorker", "metadata": {"name": name}, "spec": spec}

    async def refused() -> None:
        """Have the CMLWorker be refused, and find the Node as it was."""
        await world.admin.create(f"{GROUP}/cmlworkers", worker)
        found = await world.cmlworker(name, lambda found: login_of(found) == ("False", "NodeConflict"))
        assert f"vnode.{name}" in condition(found, "Ready")["message"]
        await world.until_event("NodeConflict", name)
        node = await world.node(name)
        assert node["metadata"]["labels"] == {"whose": "others"}
        assert "providerID" not in node["spec"]
        assert "addresses" not in node["status"]
        assert not any("vkprovider" in entry["manager"] for entry in node["metadata"]["managedFields"])
        assert await world.admin.get(f"{NODE_LEASES}/vnode.{name}") is None

    await refused()
    await world.admin.delete(path)
    await world.admin.until_gone(path)
    assert await world.admin.get(f"{NODES}/vnode.{name}")
    await refused()
    await world.admin.delete(f"{NODES}/vnode.{name}")
    await world.node(name, lambda node: condition(node, "Ready")["status"])
    await world.lease(name)
    await world.admin.delete(path)
    await world.admin.until_gone(f"{NODES}/vnode.{name}")


async def test_lease_of_others_is_never_taken(world: World) -> None:
    await world.replica()
    name = world.name("w")
    lease = {"metadata": {"name": f"vnode.{name}"}, "spec": {"holderIdentity": "kubelet"}}
    made = await world.admin.create(NODE_LEASES, lease)
    spec = {"url": f"null://{name}", "address": "198.51.100.7"}
    worker = {"apiVersion": "vkprovider.io/v1alpha1", "kind": "CMLWorker", "metadata": {"name": name}, "spec": spec}
    await world.admin.create(f"{GROUP}/cmlworkers", worker)
    await world.cmlworker(name, lambda found: condition(found, "Ready")["reason"] == "NodeConflict")
    found = await world.admin.get(f"{NODE_LEASES}/vnode.{name}") or {}
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert await world.admin.get(f"{NODES}/vnode.{name}") is None


async def test_worker_that_never_worked_has_one_event_that_says_why(world: World) -> None:
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, ready=False)
    await world.admin.patch(f"{SECRETS}/{worker}", {"data": {"password": base64.b64encode(b"wrong").decode()}})
    await world.replica(SHORT)
    found = await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == "CredentialsInvalid")
    event = await world.until_event("CredentialsInvalid", worker)
    assert (event["type"], event["message"]) == ("Warning", condition(found, "Ready")["message"])
    assert event["involvedObject"]["kind"] == "CMLWorker"
    asked = simulator.log.entries[-1].number
    await when(lambda: simulator.log.entries[-1].number > asked + 3, "the worker is asked again")
    assert [event["count"] for event in await world.events("CredentialsInvalid", worker)] == [1]


async def test_worker_that_is_created_again_while_its_node_is_deleted_has_a_new_one(world: World) -> None:
    """The plan made meanwhile still shows the node as owned; no garbage collector deletes the Lease here."""
    running = await world.replica()
    worker = await world.worker()
    path, first = f"{GROUP}/cmlworkers/{worker}", await world.node(worker, is_ready)
    found = await world.cmlworker(worker)
    slow = running.api.fault("^DELETE .*/nodes/vnode", delay_s=1.0)
    await world.admin.delete(path)
    await when(lambda: slow.met, "the Node is being deleted")
    again = {"metadata": {"name": worker}, "spec": found["spec"]}
    await world.admin.create(f"{GROUP}/cmlworkers", {key: found[key] for key in ("apiVersion", "kind")} | again)
    await world.node(worker, lambda node: is_ready(node) and node["metadata"]["uid"] != first["metadata"]["uid"])


async def test_worker_that_is_created_again_during_a_turn_has_a_lease_of_its_own(world: World) -> None:
    """The next turn sees only the new CMLWorker; what the old one owns, the garbage collector deletes."""
    await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url)
    found = await world.cmlworker(worker)
    simulator.faults.add(Fault(kind="delay", route="^GET .*/labs", delay_s=3.0, count=1), simulator.now())
    await when(lambda: not simulator.faults.list(simulator.now()), "a turn asks the worker")
    await world.admin.delete(f"{GROUP}/cmlworkers/{worker}")
    again = {"metadata": {"name": worker}, "spec": found["spec"]}
    new = await world.admin.create(f"{GROUP}/cmlworkers", {key: found[key] for key in ("apiVersion", "kind")} | again)
    await world.admin.until(
        f"{NODE_LEASES}/vnode.{worker}",
        lambda lease: lease["metadata"]["ownerReferences"][0]["uid"] == new["metadata"]["uid"],
    )


async def test_deleted_worker_waits_for_its_lablets_and_takes_its_node_along(world: World) -> None:
    await world.replica()
    worker, definition = await world.worker(), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    path = f"{GROUP}/cmlworkers/{worker}"
    await world.cmlworker(worker, lambda found: found["metadata"].get("finalizers") == ["vkprovider.io/claims"])
    await world.admin.delete(path)
    held = await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == "InUse")
    message = condition(held, "Ready")["message"]
    assert message.startswith(f"1 lablet: {lablet.namespace}/{lablet.name}; delete the Pods (kubectl get pods -A ")
    assert f"--field-selector spec.nodeName=vnode.{worker})" in message
    assert "leaves the labs behind in CML, and cannot be undone" in message
    await world.node(worker, lambda node: node["spec"].get("unschedulable"))
    assert is_ready(await lablet.ready())
    await lablet.delete()
    await world.admin.until_gone(path)
    await world.admin.until_gone(f"{NODES}/vnode.{worker}")
    assert await world.admin.get(f"{CONFIG_MAPS}/{worker}-port-allocations") is None, "no garbage collector runs"


@pytest.mark.parametrize("moment", ["claimed", "unclaimed"])
async def test_worker_deleted_as_its_first_lablet_begins_leaves_no_lab_behind(world: World, moment: str) -> None:
    """It waits from the moment in which a claim is written; before it, nothing begins."""
    running, simulator = await world.replica(), await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(topology({"r1": "iosv"}))
    first_claim = f"POST .*/configmaps|PUT .*/{worker}-port-allocations"
    first_hold = f"PATCH .*/cmlworkers/{worker}$"
    fault = running.api.fault(
        first_claim if moment == "claimed" else first_hold,
        first=lambda _: world.admin.delete(f"{GROUP}/cmlworkers/{worker}"),
    )
    lablet = await world.pod(definition, worker)
    await when(lambda: fault.met > 0, "it was deleted")
    if moment == "claimed":
        await lablet.ready()
        await world.cmlworker(worker, lambda found: condition(found, "Ready").get("reason") == "InUse")
    await lablet.delete(grace_s=0)
    await world.admin.until_gone(f"{GROUP}/cmlworkers/{worker}")
    assert simulator.simulation.world.labs == {}
    imports = [entry for entry in simulator.log.entries if entry.path.endswith("/import")]
    assert len(imports) == (moment == "claimed")


async def test_worker_that_retires_as_another_lablet_begins_leaves_no_lab_behind(world: World) -> None:
    """It still has the finalizer of a lablet that has just ended; the row of the next one is not deleted unseen."""
    running, simulator, beside = await world.replica(), await world.simulator(), await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(topology({"r1": "iosv"}))
    other, path = await world.worker(beside.url), f"{GROUP}/cmlworkers/{worker}"
    lablet = await world.pod(definition, worker)
    await lablet.ready()

    async def begin(_: Asked) -> None:
        await world.pod(definition, worker)
        await (await world.pod(definition, other)).ready()  # the one before it is as far, if it may begin

    fault = running.api.fault(f"DELETE .*/{worker}-port-allocations", first=begin)
    await world.admin.delete(path)
    await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == "InUse")
    await lablet.delete()
    await world.admin.until_gone(path)
    assert fault.met == 1
    assert labs(simulator) == {}


async def test_claims_that_others_wrote_as_their_worker_retires_are_read_before_they_go(world: World) -> None:
    """As the next owner does, while this one has not noticed yet; a note of somebody else holds nothing up."""
    running, worker = await world.replica(), await world.worker()
    lablet = await world.pod(await world.define(), worker)
    await lablet.ready()
    claims, path = f"{CONFIG_MAPS}/{worker}-port-allocations", f"{GROUP}/cmlworkers/{worker}"
    note = {"metadata": {"annotations": {"example.com/backup": "done"}}}
    running.api.fault(f"DELETE .*/{worker}-port-allocations", first=lambda _: world.admin.patch(claims, note))
    await world.admin.delete(path)
    await lablet.delete()
    await world.admin.until_gone(path)
    asked = running.api.matching(f"^(DELETE|GET) .*/{worker}-port-allocations")[-3:]
    assert [(each.method, each.status) for each in asked] == [("DELETE", 409), ("GET", 200), ("DELETE", 200)]
    assert await world.admin.get(claims) is None


async def test_abandoned_worker_goes_with_its_labs_left_behind(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    path = f"{GROUP}/cmlworkers/{worker}"
    await world.cmlworker(worker, lambda found: found["metadata"].get("finalizers"))
    await world.admin.delete(path)
    await world.admin.patch(path, {"metadata": {"annotations": {"vkprovider.io/abandon": "true"}}})
    await world.admin.until_gone(path)
    await world.admin.until_gone(f"{NODES}/vnode.{worker}")
    [title] = labs(simulator)
    assert title.endswith(lablet.uid)
    assert title in (await world.until_event("Abandoned", worker))["message"]


async def test_worker_that_cannot_be_opened_can_be_abandoned(world: World) -> None:
    running = await world.replica()
    worker, definition = await world.worker(), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    path = f"{GROUP}/cmlworkers/{worker}"
    await world.cmlworker(worker, lambda found: found["metadata"].get("finalizers"))
    await world.admin.patch(path, {"spec": {"tunnel": "mqtt"}})
    await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == "TunnelNotConfigured")
    await world.node(worker, lambda node: condition(node, "Ready")["reason"] == "TunnelNotConfigured")
    await lablet.until(lambda pod: not is_ready(pod))
    await world.admin.delete(path)
    await world.admin.patch(path, {"metadata": {"annotations": {"vkprovider.io/abandon": "true"}}})
    await world.admin.until_gone(path)
    await world.until_event("Abandoned", worker)
    assert not running.task.done()


def all_labs(simulator: CmlSimulator) -> list[Lab]:
    return list(simulator.simulation.world.labs.values())


def container_id(pod: dict[str, Any]) -> str:
    return str(pod["status"]["containerStatuses"][0]["containerID"])


async def test_worker_made_wrong_keeps_its_lablets(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    before = await lablet.ready()
    path = f"{GROUP}/cmlworkers/{worker}"
    await world.admin.patch(path, {"spec": {"url": "nonsense"}})
    pod = await lablet.until(lambda pod: not is_ready(pod))
    said = condition(pod, "Ready")
    assert said["reason"] == "WorkerUnreachable"
    assert "WorkerUrlInvalid: 'nonsense': the scheme is not https or http" in said["message"]
    await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == "WorkerUrlInvalid")
    await world.admin.patch(path, {"spec": {"url": simulator.url}})
    assert container_id(await lablet.ready()) == container_id(before)
    assert len(labs(simulator)) == 1
    await lablet.delete()
    await lablet.gone()
    assert labs(simulator) == {}


async def test_changed_url_moves_the_connection_and_keeps_the_claims(world: World) -> None:
    await world.replica()
    first, second = await world.simulator(), await world.simulator()
    worker, definition = await world.worker(first.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    both = {"vkprovider.io/host": f"{first.url},{second.url}"}
    await world.admin.patch(f"{SECRETS}/{worker}", {"metadata": {"annotations": both}})
    await world.admin.patch(f"{GROUP}/cmlworkers/{worker}", {"spec": {"url": second.url}})
    await when(lambda: any(e.path.endswith("/authenticate") for e in second.log.entries), "the new URL is asked")
    assert lablet.uid in await world.claims(worker)


async def use(world: World, worker: str, username: str) -> None:
    """Put another user into the Secret of a worker."""
    body = {"stringData": {"username": username}}
    await world.admin.request("PATCH", f"{SECRETS}/{worker}", body, STRATEGIC_PATCH)


async def test_user_that_sees_none_of_the_labs_takes_none_for_lost(world: World) -> None:
    """Nothing is imported again or released, not even by the next owner, until a user who sees the labs is back."""
    mortal: Groups = {**EAGER, "replica": {"lease_ttl_s": 6.0}}
    first = await world.replica(mortal)
    simulator = await world.simulator()
    simulator.simulation.accounts.put_user(0.0, "b" * 36, "bert", PASSWORD)
    worker, definition = await world.worker(simulator.url), await world.define(PORT)
    lablets = [await world.pod(definition, worker), await world.pod(definition, worker)]
    before = [container_id(await lablet.ready()) for lablet in lablets]
    claims = {lablet.uid: (await lablet.claim(lambda row: row.get("readyAt")))["labId"] for lablet in lablets}
    await world.cmlworker(worker, lambda found: found["status"].get("user") == "admin")
    await use(world, worker, "bert")
    late = await world.pod(definition, worker)  # its lab would say nothing of those that bert does not see
    found = await world.cmlworker(worker, lambda found: login_of(found) == ("False", "LabsNotSeen"))
    said = condition(found, "Ready")["message"]
    assert "user bert sees no lab of the worker's" in said
    assert "which user admin saw" in said
    assert found["status"]["user"] == "admin"
    await world.node(worker, lambda node: condition(node, "Ready")["reason"] == "LabsNotSeen")
    pod = await lablets[0].until(lambda pod: not is_ready(pod))
    assert "bert" not in str(pod["status"]), "who reads Pods need not learn CML's account"
    await lablets[1].delete()
    await first.crash()
    asked = simulator.log.entries[-1].number
    await world.replica(mortal)
    await when(
        lambda: [e.status for e in simulator.log.entries if e.number > asked and e.path.endswith("/api/v0/labs")][2:],
        "the next owner looks",
    )
    rows = await world.claims(worker)
    assert {uid: row.get("labId") for uid, row in rows.items() if uid != late.uid} == claims
    assert "b" * 36 not in {lab.owner for lab in simulator.simulation.world.labs.values()}, "bert imported none"
    assert set(claims.values()) <= set(simulator.simulation.world.labs)
    assert writes(simulator, asked) == []
    await use(world, worker, "admin")
    assert container_id(await lablets[0].ready()) == before[0]
    await lablets[1].unclaimed()
    await late.ready()
    third = (await late.claim(lambda row: row.get("readyAt")))["labId"]
    assert set(simulator.simulation.world.labs) == {claims[lablets[0].uid], third}
    await world.admin.patch(f"{SECRETS}/{worker}", {"data": {"username": base64.b64encode(b"bert").decode()}})
    bert = simulator.simulation.accounts.by_name("bert")
    assert bert is not None
    bert.admin = True
    await world.cmlworker(worker, lambda found: found["status"].get("user") == "bert")
    assert container_id(await lablets[0].ready()) == before[0]


async def test_user_that_sees_some_of_the_labs_takes_none_of_the_others_for_lost(world: World) -> None:
    await world.replica(EAGER)
    simulator = await world.simulator()
    bert = simulator.simulation.accounts.put_user(0.0, "b" * 36, "bert", PASSWORD)
    worker, definition = await world.worker(simulator.url), await world.define(PORT)
    await use(world, worker, "bert")
    await world.cmlworker(worker, lambda found: found["status"].get("user") == "bert")
    mine = await world.pod(definition, worker)
    await mine.ready()
    await use(world, worker, "admin")
    await world.cmlworker(worker, lambda found: found["status"].get("user") == "admin")
    other = await world.pod(definition, worker)
    before = container_id(await other.ready())
    await use(world, worker, "bert")
    found = await world.cmlworker(worker, lambda found: login_of(found) == ("False", "LabsNotSeen"))
    said = condition(found, "Ready")["message"]
    assert "user bert sees 1 of 2 labs that the worker's claims name, and user admin saw" in said
    assert len(simulator.simulation.world.labs) == len(imports(simulator)) == 2
    bert.admin = True
    await world.cmlworker(worker, lambda found: found["status"].get("user") == "bert")
    assert container_id(await other.ready()) == before


async def test_work_is_kept_though_a_user_who_does_not_see_the_lab_was_to_extract_it(world: World) -> None:
    running = await world.replica(EAGER)
    simulator = await world.simulator()
    simulator.simulation.accounts.put_user(0.0, "b" * 36, "bert", PASSWORD)
    worker, definition = await world.worker(simulator.url), await world.define(PORT)
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    await world.cmlworker(worker, lambda found: found["status"].get("user") == "admin")
    simulator.faults.add(Fault(kind="delay", delay_s=2.5, route="^GET .*/labs$"), simulator.now())
    asked = simulator.log.entries[-1].number
    await use(world, worker, "bert")
    await when(
        lambda: any(e.number > asked and e.path.endswith("/authenticate") for e in simulator.log.entries), "bert is in"
    )
    await lablet.delete()
    await when(lambda: any(e.path.endswith("/extract_configuration") for e in simulator.log.entries), "bert is refused")
    await world.cmlworker(worker, lambda found: login_of(found) == ("False", "LabsNotSeen"))
    simulator.faults.clear()
    await use(world, worker, "admin")
    await lablet.unclaimed()
    left = await running.replica.archive.find(lablet.uid)
    assert left is not None
    assert set(left.configs) == {"r1"}


async def test_url_of_a_worker_without_the_labs_takes_none_for_lost_until_it_is_abandoned(world: World) -> None:
    await world.replica()
    first, second = await world.simulator(), await world.simulator()
    worker, definition = await world.worker(first.url), await world.define()
    lablet = await world.pod(definition, worker)
    before = container_id(await lablet.ready())
    path = f"{GROUP}/cmlworkers/{worker}"
    both = {"vkprovider.io/host": f"{first.url},{second.url}"}
    await world.admin.patch(f"{SECRETS}/{worker}", {"metadata": {"annotations": both}})
    await world.admin.patch(path, {"spec": {"url": second.url}})
    found = await world.cmlworker(worker, lambda found: login_of(found) == ("False", "LabsNotSeen"))
    assert "put spec.url back to what it was" in condition(found, "Ready")["message"]
    assert labs(second) == {}
    await world.admin.patch(path, {"spec": {"url": first.url}})
    assert container_id(await lablet.ready()) == before
    await world.admin.patch(path, {"spec": {"url": second.url}})
    await world.cmlworker(worker, lambda found: login_of(found) == ("False", "LabsNotSeen"))
    await world.admin.patch(path, {"metadata": {"annotations": {"vkprovider.io/abandon": "true"}}})
    await world.admin.delete(path)
    await world.admin.until_gone(path)
    assert len(labs(first)) == 1


async def test_password_and_token_of_a_worker_go_to_no_host_that_its_secret_does_not_name(world: World) -> None:
    await world.replica()
    first, second = await world.simulator(), await world.simulator()
    worker = await world.worker(first.url)
    path = f"{GROUP}/cmlworkers/{worker}"
    await world.admin.patch(path, {"spec": {"url": second.url}})
    found = await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == "SecretNotAllowed")
    message = condition(found, "Ready")["message"]
    command = f"annotate --overwrite secret {worker} vkprovider.io/host={first.url},{second.url}"
    assert message.endswith(f"kubectl -n {LOGINS} {command}")
    await when(lambda: len(second.log.entries) > 2, "the new URL is asked")
    assert {entry.path for entry in second.log.entries} == {"/api/v0/system_information"}
    key, _, value = command.rsplit(maxsplit=1)[-1].partition("=")
    await world.admin.patch(f"{SECRETS}/{worker}", {"metadata": {"annotations": {key: value}}})
    await world.node(worker, is_ready)


@pytest.mark.parametrize("label", [None, "devices", "anything"])
async def test_secret_that_is_not_labelled_for_workers_is_sent_nowhere(world: World, label: str | None) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, ready=False, credentialsSecretName="unlabelled")
    metadata = {"name": "unlabelled", "annotations": {"vkprovider.io/host": simulator.url}}
    data = {"username": "admin", "password": PASSWORD}
    await world.admin.create(SECRETS, {"metadata": metadata, "stringData": data})
    path = f"{SECRETS}/unlabelled"
    try:
        await world.admin.patch(path, {"metadata": {"labels": {"vkprovider.io/used-for": label}}})
        await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == "SecretNotAllowed")
        assert {entry.path for entry in simulator.log.entries} == {"/api/v0/system_information"}
        await world.admin.patch(path, {"metadata": {"labels": {"vkprovider.io/used-for": "worker"}}})
        await world.node(worker, is_ready)
    finally:
        await world.admin.delete(path)


@pytest.mark.parametrize("stats", ["On", "Off"])
async def test_two_workers_of_one_controller_are_never_both_ready(world: World, stats: str) -> None:
    """Learners of both would get the same console ports."""
    await world.replica()
    await world.replica()
    simulator = await world.simulator()
    definition = await world.define(PORT)
    first = await world.worker(simulator.url, stats=stats)
    lablet = await world.pod(definition, first)
    await lablet.ready()
    other_address = simulator.url.replace("127.0.0.1", "localhost")
    later = [
        await world.worker(simulator.url, ready=False, stats=stats),
        await world.worker(other_address, ready=False, stats=stats),
    ]
    for number, name in enumerate(later):
        found = await world.cmlworker(name, lambda found: condition(found, "Ready")["reason"] == "SameController")
        message = condition(found, "Ready")["message"]
        assert any(f"CMLWorker {earlier} " in message for earlier in (first, *later[:number]))
        node = await world.node(name, lambda node: condition(node, "Ready")["reason"] == "SameController")
        assert not is_ready(node)
        pinned = await world.pod(definition, name)
        await pinned.until(lambda pod: "SameController" in str(pod["status"]))
        assert not await world.claims(name)
        await pinned.delete()
    assert is_ready(await world.node(first))
    await lablet.delete()
    await world.admin.delete(f"{GROUP}/cmlworkers/{first}")
    await world.admin.until_gone(f"{GROUP}/cmlworkers/{first}")
    await world.node(later[0], is_ready)
    if stats == "On":  # else two urls of a controller without labs have nothing in common
        assert not is_ready(await world.node(later[1]))


async def test_port_of_a_lab_that_runs_on_is_not_opened_for_another_cmlworker(world: World) -> None:
    """Its Pod was deleted at once, by hand, and its CMLWorker too, so that nobody knows whether it is a copy."""
    simulator = await world.simulator()
    first = await world.replica()
    definition = await world.define(PORT)
    urls = (simulator.url, simulator.url.replace("127.0.0.1", "localhost"))
    left, other = [await world.worker(url, stats="Off") for url in urls]
    early = await world.pod(definition, other)  # so that it has claims, and need not rebuild them from the labs
    await early.ready()
    await early.delete()
    await early.unclaimed()
    gone = await world.pod(definition, left)
    await gone.ready()
    await first.crash()
    await gone.delete(grace_s=0)
    await world.admin.patch(f"{GROUP}/cmlworkers/{left}", {"metadata": {"finalizers": None}})
    await world.admin.delete(f"{GROUP}/cmlworkers/{left}")
    await world.admin.until_gone(f"{GROUP}/cmlworkers/{left}")
    await world.worker(ready=False)  # of which nothing but a url is known
    lablet = await world.pod(definition, other)
    await world.replica()
    await lablet.ready()
    opened = {lab.title[-36:]: [t for node in lab.nodes.values() for t in node.tags] for lab in all_labs(simulator)}
    assert opened == {gone.uid: ["serial:2000"], lablet.uid: ["serial:2001"]}
    assert await world.until_event("UnclaimedLab", other)


async def test_lab_of_others_that_cannot_be_read_blocks_neither_a_new_worker_nor_a_start(world: World) -> None:
    """Nor where two CMLWorkers may be one controller, and each start looks for ports of the other's labs."""
    await world.replica()
    simulator = await world.simulator()
    client = open_labs(simulator.url, Secret(password=PASSWORD).read)
    foreign = (await client.import_lab(topology({"r1": "iosv"}, title="broken"), "broken")).id
    await client.close()
    simulator.faults.add(Fault(kind="status", status=403, route=f"^GET .*/labs/{foreign}"), simulator.now())
    await world.worker(ready=False)  # of which nothing but a url is known
    worker, definition = await world.worker(simulator.url, stats="Off"), await world.define(PORT)
    for _ in range(2):
        lablet = await world.pod(definition, worker)
        await lablet.ready()
    await world.cmlworker(worker, lambda found: found["status"]["labs"] == {"ours": 2, "foreign": 1})


async def test_cmlworker_whose_wrong_url_was_corrected_refuses_no_other(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    first = await world.worker(simulator.url)
    later = await world.worker(simulator.url, ready=False)
    await world.cmlworker(later, lambda found: condition(found, "Ready")["reason"] == "SameController")
    away = "http://127.0.0.1:9"
    both = {"vkprovider.io/host": f"{simulator.url},{away}"}
    await world.admin.patch(f"{SECRETS}/{first}", {"metadata": {"annotations": both}})
    await world.admin.patch(f"{GROUP}/cmlworkers/{first}", {"spec": {"url": away}})
    await world.cmlworker(first, lambda found: found["status"]["identity"] == ["url:http://127.0.0.1:9"])
    await world.node(later, is_ready)


async def test_two_urls_of_an_empty_controller_never_open_one_port_twice(world: World) -> None:
    """Nothing tells the two CMLWorkers apart until the first labs are there."""
    await world.replica()
    await world.replica()
    simulator = await world.simulator()
    definition = await world.define(PORT)
    urls = (simulator.url, simulator.url.replace("127.0.0.1", "localhost"))
    twins = [await world.worker(url, stats="Off") for url in urls]
    lablets = [await world.pod(definition, twin) for twin in twins]

    async def settled() -> bool:
        """One of the two, or neither, is Ready; the other has a reason."""
        found = [await world.admin.get(lablet.path) or {} for lablet in lablets]
        return all(is_ready(pod) or waiting(pod).get("reason") == "PortConflict" for pod in found)

    await eventually(settled, "each lablet is Ready or has a reason")
    labs = simulator.simulation.world.labs.values()
    started = [lab for lab in labs if any(node.state.value != "DEFINED_ON_CORE" for node in lab.nodes.values())]
    assert len(started) <= 1
    await world.cmlworker(twins[1], lambda found: condition(found, "Ready")["reason"] == "SameController")
    await lablets[1].delete()
    await world.admin.delete(f"{GROUP}/cmlworkers/{twins[1]}")
    await lablets[0].ready()


async def test_controllers_of_their_own_are_all_ready(world: World) -> None:
    await world.replica()
    definition = await world.define(PORT)
    for stats in ("On", "Off"):
        for worker in [await world.worker((await world.simulator()).url, stats=stats) for _ in range(2)]:
            await (await world.pod(definition, worker)).ready()
    listed = await world.admin.get(f"{GROUP}/cmlworkers") or {}
    identities = [[e for e in item["status"]["identity"] if not e.startswith("user:")] for item in listed["items"]]
    assert len(identities) >= 4
    assert len({entry for entries in identities for entry in entries}) == sum(map(len, identities))


async def test_statistics_fill_in_the_capacity(world: World) -> None:
    """R004-047: `stats: On`; foreign labs are taken off. What the spec names comes first."""
    running = await world.replica(WITH_PASSES)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url, stats="On", capacity=None), await world.define()
    path = f"{GROUP}/cmlworkers/{worker}"

    def shows(kind: str, **amounts: str) -> Callable[[dict[str, Any]], bool]:
        return lambda node: node["status"][kind].items() >= amounts.items()

    licences = "vkprovider.io/lab-nodes"
    node = await world.node(worker, shows("capacity", cpu="256", memory="1Ti", **{licences: "500"}))
    assert node["status"]["allocatable"] == node["status"]["capacity"]
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    two = topology({"r1": "iosv", "r2": "iosv"}, title="somebody else's")
    foreign = (await running.replica.fleet.items[worker].labs.import_lab(two, "somebody else's")).id
    cml = simulator.simulation.world
    cml.start_lab(simulator.now(), cml.lab(foreign))
    node = await world.node(worker, shows("allocatable", cpu="254", memory="1023Gi", **{licences: "498"}))
    assert node["status"]["capacity"]["cpu"] == "256"
    await world.cmlworker(worker, lambda found: found["status"]["labs"] == {"ours": 1, "foreign": 1})

    await world.admin.patch(path, {"spec": {"stats": "Off"}})
    node = await world.node(worker, lambda node: condition(node, "Ready")["reason"] == "CapacityUnknown")
    assert not is_ready(node)
    assert "labNodes" in condition(node, "Ready")["message"]
    await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == "CapacityUnknown")
    own = {"cpu": 8, "memory": "8Gi", "labNodes": 10, "labs": 3}
    await world.admin.patch(path, {"spec": {"capacity": own}})
    await world.node(worker, is_ready)
    await world.node(worker, shows("allocatable", cpu="8", memory="8Gi", pods="3"))
    assert (await lablet.ready())["status"]["containerStatuses"][0]["restartCount"] == 0


async def test_memory_without_its_unit_is_said_until_it_is_corrected(world: World) -> None:
    await world.replica()
    capacity = {"cpu": "64", "memory": 256, "labs": 200, "labNodes": 400}
    worker = await world.worker(ready=False, capacity=capacity)
    found = await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == "CapacityTooSmall")
    assert "is 256 bytes: write its unit" in condition(found, "Ready")["message"]
    await world.admin.patch(f"{GROUP}/cmlworkers/{worker}", {"spec": {"capacity": {"memory": "256Gi"}}})
    await world.node(worker, is_ready)


async def test_name_that_cannot_be_resolved_is_said(world: World) -> None:
    await world.replica()
    worker = await world.worker(address="no-such-host.invalid", ready=False)
    await world.until_event("AddressUnresolved", worker)
    await world.admin.patch(f"{GROUP}/cmlworkers/{worker}", {"spec": {"address": "localhost"}})
    await world.node(
        worker,
        lambda node: ("ExternalIP", "127.0.0.1") in {(a["type"], a["address"]) for a in node["status"]["addresses"]},
    )


async def test_foreign_labs_are_counted_and_left_alone(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    found = await running.replica.exports.find(lablet.uid)
    assert found is not None
    exported = await running.replica.exports.fetch(found)
    handle = running.replica.fleet.items[worker].labs
    other = exported.replace(b"vkprovider installation=", b"other=").decode()
    foreign = (await handle.import_lab(other, "stranger")).id
    copy = (await handle.import_lab(exported.decode(), "a-saved-copy")).id
    await world.until_event("UnclaimedLab", worker)
    await world.cmlworker(worker, lambda found: found["status"]["labs"] == {"ours": 1, "foreign": 1})
    assert {foreign, copy} <= simulator.simulation.world.labs.keys()


async def test_damaged_claims_stop_a_worker_and_mended_ones_start_it(world: World) -> None:
    await world.replica()
    worker, definition = await world.worker(), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    path = f"{CONFIG_MAPS}/{worker}-port-allocations"
    good = await lablet.claim(lambda row: row.get("labId"))
    whole = (await world.admin.get(path) or {})["data"]
    await world.admin.patch(path, {"data": {"allocations.json": "{not json"}})
    second = await world.pod(definition, worker)
    await second.waits("ClaimStoreInvalid")
    found = await world.cmlworker(worker, lambda found: condition(found, "Ready")["reason"] == "ClaimStoreInvalid")
    assert condition(found, "Ready")["message"].startswith(f"ConfigMap {worker}-port-allocations ")
    before = await lablet.ready()
    await world.admin.patch(path, {"data": whole})
    await second.ready()
    await world.cmlworker(worker, is_ready)
    assert container_id(await lablet.ready()) == container_id(before)
    assert (await lablet.claim())["labId"] == good["labId"]


async def test_of_two_workers_at_one_address_and_port_the_later_is_not_ready_and_nobodys_lab_is_harmed(
    world: World,
) -> None:
    """Two CMLs behind one NAT address: nobody is given the port of another learner."""
    await world.replica()
    first, second = await world.simulator(), await world.simulator()
    early = await world.worker(first.url, address="198.51.100.99", portRange={"start": 2000, "end": 2999})
    late = await world.worker(second.url, portRange={"start": 2900, "end": 3999})
    definition = await world.define(topology({"h0": "alpine"}, {"h0": ["serial:4001"]}))
    lablets = [await world.pod(definition, early), await world.pod(definition, late)]
    before = [container_id(await lablet.ready()) for lablet in lablets]
    path = f"{GROUP}/cmlworkers/{late}"
    await world.admin.patch(path, {"spec": {"address": "198.51.100.99"}})
    found = await world.cmlworker(late, lambda found: condition(found, "Ready")["reason"] == "SameAddress")
    message = condition(found, "Ready")["message"]
    for words in ("198.51.100.99", f"CMLWorker {early},", "2900-2999", "spec.portRange"):
        assert words in message
    assert await world.until_event("SameAddress", late)
    await world.node(late, lambda node: condition(node, "Ready")["reason"] == "SameAddress")
    await world.node(early, is_ready)
    refused = await world.pod(definition, late)
    await refused.until(lambda pod: "SameAddress" in str(pod["status"]))
    assert [container_id(await lablet.until(is_ready)) for lablet in lablets] == before
    assert [len(labs(simulator)) for simulator in (first, second)] == [1, 1]
    await world.admin.patch(path, {"spec": {"portRange": {"start": 3000, "end": 3999}}})
    await world.node(late, is_ready)
    await refused.ready()
    await world.admin.patch(f"{GROUP}/cmlworkers/{early}", {"spec": {"portRange": {"start": 2000, "end": 3000}}})
    await world.cmlworker(late, lambda found: condition(found, "Ready")["reason"] == "SameAddress")
    await world.admin.patch(f"{GROUP}/cmlworkers/{late}", {"spec": {"address": "localhost"}})
    await world.cmlworker(late, lambda found: is_ready(found) and found["status"]["address"] in {"127.0.0.1", "::1"})

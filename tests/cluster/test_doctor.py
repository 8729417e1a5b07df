"""`vkprovider doctor` as a process: of a healthy cluster, of a broken installation, and when it cannot tell."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster
from tests.support.doctor import diagnosed, examine, faults_of, healthy
from tests.support.extra import SYSTEM, extra_worker, secret
from tests.support.topologies import definition, deployment
from tests.support.waiting import until
from vkprovider import __version__
from vkprovider.platform.shipped import find_manifests

CLUSTER_ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/vkprovider"
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cmlworkers.vkprovider.io"


def doctor(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user would."""
    command = [sys.executable, "-P", "-m", "vkprovider", "doctor", f"--kubeconfig={kubeconfig}", *arguments]
    environ = {**os.environ, "PYTHONPATH": str(find_manifests().parent)}
    return subprocess.run(command, capture_output=True, text=True, env=environ, timeout=60, check=False)  # noqa: S603 (ours)


def test_healthy_cluster_is_found_healthy(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("fine"))
    cluster.apply(deployment("fine", "fine", 2), namespace=namespace)
    cluster.wait_ready(namespace, 2)
    healthy(cluster, "", within_s=45)  # what earlier tests left is being deleted

    def told() -> bool:
        """Run the command, until each worker answers it within the 3 s of its probe: a busy one may not at first."""
        result = doctor(cluster.sandbox.kubeconfig)
        assert (result.returncode, result.stderr) == (0, ""), result.stdout
        first, *notes, last = result.stdout.splitlines()
        assert first.startswith("context vkprovider-sandbox-tests, API server https://127.0.0.1:")
        assert first.endswith(f"Kubernetes {cluster.kubernetes}, vkprovider {__version__}, CML 2.8.1, 2.9.1")
        assert [note.split(": ")[1] for note in notes] == ["TransportInsecure"] * 3, (
            "the simulators' certificates are their own"
        )
        assert last == "no faults, 3 notes"
        return True

    until(told)


def test_faults_are_one_line_each_and_one_object_in_json(cluster: Cluster) -> None:
    healthy(cluster, "", within_s=45)
    cluster.delete_later("labletdefinition", "broken")
    cluster.apply(definition("broken", "lab: ["))
    diagnosed(cluster, "LabletDefinition/broken", "TopologyInvalid")

    def printed() -> bool:
        result = doctor(cluster.sandbox.kubeconfig)
        lines = result.stdout.splitlines()
        assert (result.returncode, lines[-1]) == (1, "1 fault, 3 notes"), result.stdout
        _, line, *notes, _ = lines
        assert line.startswith("LabletDefinition/broken: TopologyInvalid: invalid YAML at line ")
        assert line.endswith("→ Correct that place, and apply it with a new version.")
        assert all(": TransportInsecure: " in note for note in notes)
        return True

    def encoded() -> bool:
        answer = json.loads(doctor(cluster.sandbox.kubeconfig, "-o", "json").stdout)
        assert set(answer) == {"context", "server", "kubernetes", "vkprovider", "cml", "findings", "exitCode"}
        assert (answer["context"], answer["kubernetes"]) == ("vkprovider-sandbox-tests", cluster.kubernetes)
        assert answer["cml"].get(cluster.workers[2].name) == "2.8.1+build.14"
        assert answer["exitCode"] == 1
        assert set(answer["findings"][0]) == {"level", "object", "reason", "message", "remedy"}
        faults = [finding for finding in answer["findings"] if finding["level"] != "note"]
        assert [(fault["level"], fault["object"], fault["reason"]) for fault in faults] == [
            ("fault", "LabletDefinition/broken", "TopologyInvalid")
        ]
        return True

    until(printed)  # once each worker answers within the 3 s of the doctor's probe
    until(encoded)


def test_help_tells_the_exit_codes_and_the_shape(cluster: Cluster) -> None:
    said = " ".join(doctor(cluster.sandbox.kubeconfig, "--help").stdout.split())
    assert "Exit code 0: healthy; 1: faults; 2: not everything could be checked" in said
    assert "level (fault, unchecked, note), object, reason, message and remedy" in said


# ------------------------------------------------------------------------------------------------ workers


def test_lost_licence_is_a_fault(cluster: Cluster) -> None:
    with extra_worker(cluster, "unlicensed") as extra:
        extra.wait_ready()
        healthy(cluster, "CMLWorker/unlicensed")
        extra.simulator.cml("DELETE", "/licensing/deregistration")
        finding = diagnosed(cluster, "CMLWorker/unlicensed", "LicenceInvalid")
        assert finding.message == "registration NOT_REGISTERED, authorization INIT: CML starts no devices"


def notes_of(cluster: Cluster, about: str) -> dict[str, str]:
    return {f.reason: f.message for f in examine(cluster).findings if f.object == about and f.level == "note"}


def test_what_a_worker_grants_and_promises_is_noted(cluster: Cluster) -> None:
    with extra_worker(cluster, "modest", "--licence-nodes=20") as extra:
        extra.wait_ready()

        def noted() -> dict[str, str]:
            """What the doctor notes, once the worker answers it in time: a busy one may not at first."""
            notes = notes_of(cluster, "CMLWorker/modest")
            assert set(notes) == {"LicencesFew", "PortsNotOpened", "TransportInsecure"}
            return notes

        notes = until(noted)
        assert notes["LicencesFew"] == "spec.capacity.labNodes is 100, its licence allows 20 running devices"
        assert notes["PortsNotOpened"].startswith("the provider's default range is 10000-20000, PATty opens 2000-7999")
        extra.simulator.cml("POST", "/users", {"username": "learner", "password": "learner-Pa55"})
        learner = {"username": "learner", "password": "learner-Pa55"}
        cluster.apply(secret("modest", learner, extra.url))
        until(lambda: "NotAdministrator" in notes_of(cluster, "CMLWorker/modest"))
        assert not faults_of(cluster, "CMLWorker/modest")


def test_lease_that_is_not_renewed_is_a_fault(cluster: Cluster) -> None:
    with extra_worker(cluster, "late") as extra:
        extra.wait_ready()
        healthy(cluster, "Lease/")
        hour_ago = (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

        def expired() -> bool:
            cluster.patch(f"{NODE_LEASES}/vnode.late", {"spec": {"renewTime": hour_ago}})  # the provider renews it
            found = faults_of(cluster, "Lease/")
            assert [(f.object, f.reason) for f in found] == [("Lease/kube-node-lease/vnode.late", "LeaseExpired")]
            return bool(found[0].remedy)

        until(expired, 60)
        healthy(cluster, "Lease/", within_s=60)


def test_the_api_server_tells_its_time(cluster: Cluster) -> None:
    """Otherwise no clock would ever be found to differ."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    said = cluster.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    stamp = datetime.fromisoformat(said["metadata"]["creationTimestamp"])
    assert abs(datetime.now(UTC) - stamp) < timedelta(seconds=5)


# ------------------------------------------------------------------------------------------------ it cannot tell


def test_unreachable_api_server(cluster: Cluster, tmp_path: Path) -> None:
    text = cluster.sandbox.kubeconfig.read_text()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(text.replace(cluster.sandbox.process("kube-apiserver").url, "https://127.0.0.1:1"))
    result = doctor(kubeconfig)
    assert result.returncode == 2
    first, line, _ = result.stdout.splitlines()
    assert first == "context vkprovider-sandbox-tests, API server https://127.0.0.1:1"
    assert "Cluster: ApiUnavailable: the API server cannot be asked" in line


def test_unknown_context_lists_those_there_are(cluster: Cluster) -> None:
    result = doctor(cluster.sandbox.kubeconfig, "--context=nowhere")
    assert result.returncode == 2
    assert "there are: vkprovider-sandbox-tests" in result.stdout


@pytest.fixture
def reader(cluster: Cluster, tmp_path: Path) -> Path:
    """A kubeconfig of somebody who may look at workers and pods, and at nothing else."""
    cluster.kubectl("create", "serviceaccount", "reader", "--namespace=default")
    cluster.delete_later("serviceaccount", "reader", "--namespace=default")
    cluster.kubectl(
        "create", "clusterrole", "reader", "--verb=get,list", "--resource=cmlworkers.vkprovider.io,nodes,pods"
    )
    cluster.delete_later("clusterrole", "reader")
    cluster.kubectl("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--serviceaccount=default:reader")
    cluster.delete_later("clusterrolebinding", "reader")
    token = cluster.kubectl("create", "token", "reader", "--namespace=default").stdout.strip()
    kubeconfig = tmp_path / "reader"
    kubeconfig.write_text(cluster.sandbox.kubeconfig.read_text())
    for change in (("set-credentials", "reader", f"--token={token}"), ("set-context", "--current", "--user=reader")):
        cluster.kubectl("config", f"--kubeconfig={kubeconfig}", *change)
    return kubeconfig


def test_what_the_user_may_not_see_is_no_fault(reader: Path) -> None:
    result = doctor(reader)
    lines = result.stdout.splitlines()[1:-1]
    assert result.returncode == 2, result.stdout
    assert lines
    assert all(line.startswith(("(unchecked) ", "(note) ")) for line in lines), result.stdout
    assert any("SecretForbidden" in line for line in lines)


def test_provider_can_examine_itself(cluster: Cluster) -> None:
    """Its ServiceAccount may ask for its own rights, and for little else that it does not need."""
    result = doctor(cluster.sandbox.provider_kubeconfig, "--no-probe")
    assert "the others found no faults" in result.stdout.splitlines()[-1], result.stdout + result.stderr
    assert "RightsMissing" not in result.stdout
    assert "RightsUnknown" not in result.stdout


# ------------------------------------------------------------------------------------------------ the installation


@pytest.fixture
def role(cluster: Cluster) -> Iterator[list[dict[str, Any]]]:
    """The provider's ClusterRole; restored at the end."""
    rules: list[dict[str, Any]] = (cluster.get(CLUSTER_ROLE) or {})["rules"]
    yield json.loads(json.dumps(rules))
    cluster.patch(CLUSTER_ROLE, {"rules": rules})


def test_missing_rights_are_named(cluster: Cluster, role: list[dict[str, Any]]) -> None:
    classes = next(rule for rule in role if "runtimeclasses" in rule["resources"])
    classes["verbs"] = [verb for verb in classes["verbs"] if verb not in {"create", "delete"}]
    cluster.patch(CLUSTER_ROLE, {"rules": role})
    finding = diagnosed(cluster, "ServiceAccount/", "RightsMissing")
    assert finding.object == f"ServiceAccount/{SYSTEM}/vkprovider"
    assert finding.message == "may not create, delete runtimeclasses.node.k8s.io"
    cluster.delete_later("labletdefinition", "powerless")
    cluster.apply(definition("powerless"))
    said = diagnosed(cluster, "LabletDefinition/powerless", "ApiRefused")
    assert "cannot create resource" in said.message


def test_changed_custom_resource_definition_is_noticed(cluster: Cluster) -> None:
    found = cluster.get(CRD)
    assert found
    versions = found["spec"]["versions"]
    changed = json.loads(json.dumps(versions))
    del changed[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["portRange"]
    try:
        cluster.patch(CRD, {"spec": {"versions": changed}})
        finding = diagnosed(cluster, "CustomResourceDefinition/", "CrdDiffers")
        assert "properties.spec.properties.portRange differs from this version of vkprovider" in finding.message
    finally:
        cluster.patch(CRD, {"spec": {"versions": versions}})
        pod_range = {"start": 2000, "end": 7999}  # what was stored meanwhile lost the field
        for worker in cluster.workers:
            cluster.patch(f"/apis/vkprovider.io/v1alpha1/cmlworkers/{worker.name}", {"spec": {"portRange": pod_range}})
    healthy(cluster, "CustomResourceDefinition/")


def test_replica_that_died_and_clock_that_differs_are_notes(cluster: Cluster) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases"

    def write(name: str, renewed: datetime, duration_s: int, **annotations: str) -> None:
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": f"vkprovider-replica-{name}",
                "labels": {"vkprovider.io/replica": "true", "app.kubernetes.io/managed-by": "vkprovider"},
                "annotations": {"vkprovider.io/version": "0.0.9", **annotations},
            },
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": duration_s,
                "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            },
        }
        path = f"{leases}/vkprovider-replica-{name}?fieldManager=tests&force=true"
        cluster.request("PATCH", path, lease, "application/apply-patch+yaml")

    def noted() -> bool:
        """Write both again before each look: the provider deletes what has been silent for 10 s."""
        now = datetime.now(UTC)
        write("ghost", now - timedelta(hours=1), 3)
        write("ahead", now, 60, **{"vkprovider.io/clock-skew": "300"})
        notes = {str(f.reason): (f.level, f.object, f.message) for f in examine(cluster).findings}
        level, about, _ = notes.get("ReplicaSilent", ("", "", ""))
        assert (level, about) == ("note", f"Lease/{SYSTEM}/vkprovider-replica-ghost")
        _, _, message = notes.get("VersionsDiffer", ("", "", ""))
        assert "ahead is 0.0.9; " in message
        assert message.endswith(f" is {__version__}")
        _, about, message = notes.get("ClockSkew", ("", "", ""))
        assert about == f"Lease/{SYSTEM}/vkprovider-replica-ahead"
        assert "the clock of the machine of vkprovider-replica-ahead is 300 s ahead" in message
        return True

    for name in ("ghost", "ahead"):
        cluster.delete_later("lease", f"vkprovider-replica-{name}", f"--namespace={SYSTEM}")
    until(noted)


def test_dead_provider_is_noticed(cluster: Cluster) -> None:
    cluster.sandbox.stop("provider-1")
    finding = diagnosed(cluster, "Namespace/", "NoReplica")
    assert finding.message.startswith("no replica of the provider runs, so nothing happens")
    cluster.delete_later("labletdefinition", "unseen")
    cluster.apply(definition("unseen"))
    diagnosed(cluster, "LabletDefinition/unseen", "NotObserved")
    cluster.sandbox.start("provider-1")
    until(lambda: not faults_of(cluster, ""), 60, "faults remain")

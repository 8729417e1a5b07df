"""An instructor where controllers aggregate roles and collect garbage: stock roles, and a definition to its end."""

from pathlib import Path

import pytest
import yaml

from tests.support.cluster import Cluster
from tests.support.plugin import lablet, succeeded
from tests.support.topologies import topology
from tests.support.waiting import until

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
RIGHTS = (("get", "lablets", "login"), ("get", "lablets", "archive"), ("teach", "lablets", ""))


def may(cluster: Cluster, user: str, namespace: str, verb: str, resource: str, part: str = "") -> bool:
    """Ask the API server."""
    asked = {"verb": verb, "group": "vkprovider.io", "resource": resource, "subresource": part, "namespace": namespace}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    answer = cluster.request("POST", REVIEWS, {**review, "spec": {"user": user, "resourceAttributes": asked}})
    return bool(answer["status"]["allowed"])


@pytest.mark.parametrize("role", ["view", "edit", "admin"])
def test_stock_roles_neither_log_in_nor_read_what_learners_left(cluster: Cluster, namespace: str, role: str) -> None:
    """Neither in a namespace nor in the cluster, after Kubernetes has aggregated what an installation adds to them."""
    place = f"--namespace={namespace}"
    cluster.kubectl("create", "rolebinding", "own", f"--clusterrole={role}", "--user=own", place)
    cluster.kubectl("create", "rolebinding", "class", "--clusterrole=vkprovider-instructor", "--user=teacher", place)
    cluster.kubectl("create", "clusterrolebinding", f"own-{namespace}", f"--clusterrole={role}", "--user=everywhere")
    cluster.delete_later("clusterrolebinding", f"own-{namespace}")
    until(lambda: may(cluster, "teacher", namespace, *RIGHTS[0]), 30)
    aggregated = {"view": "get", "edit": "get", "admin": "author"}[role]
    until(lambda: may(cluster, "everywhere", "", aggregated, "labletdefinitions"), 30)
    for right in RIGHTS:
        assert may(cluster, "teacher", namespace, *right)
        assert not may(cluster, "teacher", "default", *right)
        assert not may(cluster, "own", namespace, *right)
        assert not may(cluster, "everywhere", namespace, *right)
    assert not may(cluster, "everywhere", "", "teach", "labletdefinitions")


def test_a_definition_of_a_class_from_begin_to_end(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """Made, booted and deleted by an instructor; its topology is deleted with it."""
    cluster.kubectl("create", "serviceaccount", "teacher", f"--namespace={namespace}")
    user = f"system:serviceaccount:{namespace}:teacher"
    assert succeeded(cluster, "grant", user, "-n", namespace).count(" created: ") == 5
    cluster.delete_later("clusterrolebinding", f"vkprovider-instructor-definitions:{user}")
    token = cluster.kubectl("create", "token", "teacher", f"--namespace={namespace}").stdout.strip()
    config = yaml.safe_load(cluster.sandbox.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    config["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig, file, name = tmp_path / "kubeconfig", tmp_path / "cml.yaml", f"own-{namespace}"[:50].rstrip("-")
    kubeconfig.write_text(yaml.safe_dump(config))
    file.write_text(topology({"h0": "alpine"}))
    cluster.delete_later("labletdefinition", name)

    tried = lablet(cluster, "define", str(file), "--name", name, "--try", kubeconfig=kubeconfig)
    assert (tried.returncode, f"a trial of {name}:1.0.0 booted in" in tried.stdout) == (0, True), tried
    checked = lablet(cluster, "doctor", kubeconfig=kubeconfig)
    assert (checked.returncode, checked.stdout.splitlines()[-1]) == (0, "no faults"), checked
    path = f"/apis/vkprovider.io/v1alpha1/labletdefinitions/{name}"
    made = cluster.get(path)
    assert made
    kept = f"/api/v1/namespaces/{namespace}/configmaps/{made['spec']['source']['configMap']['name']}"
    assert cluster.get(kept)
    cluster.kubectl("delete", "labletdefinition", name, f"--kubeconfig={kubeconfig}")
    until(lambda: cluster.get(path) is None and cluster.get(kept) is None, 60, "the topology stays")

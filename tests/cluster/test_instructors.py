"""An instructor where controllers aggregate roles and collect garbage: stock roles, and a definition to its end."""

from pathlib import Path

import pytest
import yaml

from tests.support.cluster import Cluster
from tests.support.plugin import lablet, succeeded
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until

RBAC = "/apis/rbac.authorization.k8s.io/v1"
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


def account(cluster: Cluster, namespace: str, name: str, folder: Path) -> tuple[str, Path]:
    """Make a ServiceAccount; return its username and its kubeconfig."""
    cluster.kubectl("create", "serviceaccount", name, f"--namespace={namespace}")
    token = cluster.kubectl("create", "token", name, f"--namespace={namespace}").stdout.strip()
    config = yaml.safe_load(cluster.sandbox.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    config["contexts"][0]["context"]["namespace"] = namespace
    path = folder / f"kubeconfig-{name}"
    path.write_text(yaml.safe_dump(config))
    return f"system:serviceaccount:{namespace}:{name}", path


def test_a_learner_works_in_the_given_lablet_resets_it_and_hands_it_in(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """With the own token, in the lablet that an instructor gave, and in no other, until it is somebody else's."""
    name = f"given-{namespace[-5:]}"
    cluster.define(definition(name))
    for each in ("one", "two"):
        cluster.apply(pod(each, name), namespace=namespace)
    cluster.wait_ready(namespace, 2)
    teacher, desk = account(cluster, namespace, "teacher", tmp_path)
    alice, hers = account(cluster, namespace, "alice", tmp_path)
    succeeded(cluster, "grant", teacher, "-n", namespace)
    cluster.delete_later("clusterrolebinding", f"vkprovider-instructor-definitions:{teacher}")
    given = lablet(cluster, "assign", "one", alice, kubeconfig=desk)
    assert (given.returncode, given.stderr) == (0, ""), given
    said = lablet(cluster, "message", "-u", alice, "-m", "Begin with r1.", kubeconfig=desk)
    assert said.stdout == f"pod/one: {alice} has the message\n", said

    def lablet_of(*words: str) -> str:
        done = cluster.kubectl(f"--kubeconfig={hers}", f"--namespace={namespace}", *words, check=False)
        return done.stdout + done.stderr

    def lets_in() -> bool:
        said = lablet_of("exec", "one", "-c", "lab", "--", "reset")
        assert "Nobody was there to confirm that" in said, said
        return True

    until(lets_in, 30)
    for words in (
        ("exec", "two", "-c", "lab", "--", "reset", "--yes"),
        ("get", "pods"),
        ("delete", "pod", "one"),
        ("annotate", "pod", "one", "vkprovider.io/timeslot-end=2036-01-01T00:00:00Z"),
    ):
        assert "forbidden" in lablet_of(*words).lower(), words
    reset = lablet(cluster, "reset", "one", "--yes", "--wait", kubeconfig=hers)
    assert (reset.returncode, reset.stdout) == (0, "pod/one was wiped and started again\n"), reset
    ended = lablet(cluster, "hand-in", "pod/one", "--yes", "--wait", kubeconfig=hers)
    assert (ended.returncode, "pod/one Succeeded: collected" in ended.stdout) == (0, True), ended
    assert "forbidden" in lablet_of("get", "pod", "two").lower()
    cluster.kubectl("delete", "pod", "one", f"--namespace={namespace}")
    kinds = [f"{RBAC}/namespaces/{namespace}/{kind}/vkprovider-assigned:one" for kind in ("roles", "rolebindings")]
    until(lambda: not any(cluster.get(path) for path in kinds), 60, "they end with the Pod")

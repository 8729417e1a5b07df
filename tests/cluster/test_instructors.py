"""Stock roles give nothing of an instructor's, after Kubernetes has aggregated what the installation adds to them."""

import pytest

from tests.support.cluster import Cluster
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
    """Neither in a namespace nor in the cluster; the role itself does."""
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

"""One installation for each cluster: a second one, by each way of installing, takes nothing from the first.

On a real API server without controllers: what is applied, what is refused, and who has which right afterwards.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.helm import CHART, HELM, MISSING, Helm
from tests.support.waiting import until
from vkprovider.doctor.rights import CheckedRight, rights_of
from vkprovider.platform.shipped import find_manifests
from vkpsandbox import Sandbox

MANIFESTS = find_manifests()
FIRST, SECOND = "vkprovider-system", "team-vkp"
LABEL = "vkprovider.io/installed-in"
SHARED = "crd,clusterrole,clusterrolebinding,flowschema,priorityclass"
"""Kinds without a namespace of which every installation has the same objects."""
ALL = set(rights_of((MANIFESTS / "base" / "rbac.yaml").read_text(), FIRST))
SAYS = (
    f"vkprovider is installed in the namespace {FIRST}, and a cluster has one installation",
    f"kubectl delete namespace {SECOND}",
    f"kubectl -n {FIRST} delete deployment vkprovider --cascade=foreground; ",
    "kubectl delete clusterrolebinding vkprovider; ",
)


@dataclass(frozen=True)
class Cluster:
    """An API server, and what a person does to it with kubectl or Helm."""

    sandbox: Sandbox
    home: Path

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        return self.sandbox.kubectl(*arguments, input=text).stdout

    def fails(self, *arguments: str, text: str | None = None) -> str:
        """Run a kubectl; give what it said on its standard error, empty if it succeeded."""
        result = self.sandbox.kubectl(*arguments, input=text, check=False)
        return result.stderr if result.returncode else ""

    def objects(self, kinds: str = SHARED) -> dict[str, dict[str, Any]]:
        """The objects of the installation, without what the API server counts and who wrote them."""
        found = json.loads(
            self.kubectl("get", kinds, "-A", "--selector=app.kubernetes.io/part-of=vkprovider", "-o", "json")
        )
        objects = {}
        for item in found["items"]:
            meta = item["metadata"]
            for key in ("resourceVersion", "managedFields", "generation"):
                meta.pop(key, None)
            item.pop("status", None)
            objects[f"{item['kind']} {meta.get('namespace', '')}/{meta['name']}"] = item
        return objects

    def rights(self, namespace: str) -> set[CheckedRight]:
        """What the ServiceAccount of an installation there may do of what a provider needs."""
        wanted = rights_of((MANIFESTS / "base" / "rbac.yaml").read_text(), namespace)
        user = f"system:serviceaccount:{namespace}:vkprovider"
        groups = ["system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
        asked = [
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "metadata": {},
                "spec": {"user": user, "groups": groups, **right.attributes()},
            }
            for right in wanted
        ]
        answers = self.kubectl("create", "-f", "-", "-o", "jsonpath={.status.allowed} ", text=yaml.safe_dump_all(asked))
        return {right for right, allowed in zip(wanted, answers.split(), strict=True) if allowed == "true"}

    def install(self, namespace: str) -> None:
        self.kubectl("apply", "-f", "-", text=install_yaml(namespace))

    def is_guarded(self) -> bool:
        """Whether the policy is in force: the API server follows what is applied after a moment."""
        binding = "clusterrolebinding", "vkprovider", "--type=json", "--dry-run=server"
        patch = '[{"op": "replace", "path": "/subjects/0/namespace", "value": "elsewhere"}]'
        return "one installation" in self.fails("patch", *binding, "-p", patch)


def install_yaml(namespace: str) -> str:
    return (MANIFESTS / "install.yaml").read_text().replace(FIRST, namespace)


def by_kustomization(cluster: Cluster, namespace: str) -> str:
    """Apply a checkout in which somebody has replaced the namespace."""
    checkout = cluster.home / "checkout"
    shutil.copytree(MANIFESTS, checkout / "manifests")
    for path in checkout.rglob("*.yaml"):
        path.write_text(path.read_text().replace(FIRST, namespace))
    return cluster.fails("apply", "-k", str(checkout / "manifests" / "overlays" / "default"))


def by_install_yaml(cluster: Cluster, namespace: str) -> str:
    return cluster.fails("apply", "-f", "-", text=install_yaml(namespace))


def by_server_side_apply(cluster: Cluster, namespace: str) -> str:
    return cluster.fails("apply", "--server-side", "--force-conflicts", "-f", "-", text=install_yaml(namespace))


def by_helm(cluster: Cluster, namespace: str) -> str:
    where = ("vkprovider", str(CHART), f"--namespace={namespace}", "--create-namespace", "--timeout=60s")
    return Helm(cluster.home, cluster.sandbox.kubeconfig).refused("install", *where)


def by_helm_with_force(cluster: Cluster, namespace: str) -> str:
    where = ("vkprovider", str(CHART), f"--namespace={namespace}", "--create-namespace", "--timeout=60s")
    return Helm(cluster.home, cluster.sandbox.kubeconfig).refused(
        "install", *where, "--take-ownership", "--force-conflicts"
    )


needs_helm = pytest.mark.skipif(HELM is None, reason=MISSING)
WAYS = [
    by_kustomization,
    by_install_yaml,
    by_server_side_apply,
    pytest.param(by_helm, marks=needs_helm),
    pytest.param(by_helm_with_force, marks=needs_helm),
]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    directory = tmp_path_factory.mktemp("sandbox")
    with Sandbox.up("one", directory=directory, workers=0, provider=False, controllers=False, tied=True) as made:
        yield made


@pytest.fixture
def cluster(sandbox: Sandbox, tmp_path: Path) -> Iterator[Cluster]:
    """An empty cluster, and empty again; without controllers a deleted namespace would stay Terminating."""
    made = Cluster(sandbox, tmp_path)
    yield made
    uninstall(made, FIRST, SECOND)
    made.kubectl("delete", "secrets", "--all-namespaces", "--selector=owner=helm")


def uninstall(cluster: Cluster, *namespaces: str) -> None:
    """Delete what is in the manifests, but for the namespace."""
    documents = [each for name in namespaces for each in yaml.safe_load_all(install_yaml(name))]
    kept = yaml.safe_dump_all(each for each in documents if each["kind"] != "Namespace")
    cluster.kubectl("delete", "--ignore-not-found", "-f", "-", text=kept)


@pytest.fixture
def first(cluster: Cluster) -> Cluster:
    """A cluster with an installation."""
    cluster.kubectl("apply", "-k", str(MANIFESTS / "overlays" / "default"))
    until(cluster.is_guarded, 30, "the policy is not in force")
    return cluster


@pytest.mark.parametrize("way", WAYS)
def test_a_second_one_takes_nothing(first: Cluster, way: Callable[[Cluster, str], str]) -> None:
    before = first.objects()
    said = way(first, SECOND)
    if way is by_helm:  # says so by itself, before it changes anything
        assert "invalid ownership metadata" in said
    else:
        assert all(text in said for text in SAYS), said
    assert first.objects() == before
    assert first.rights(FIRST) == ALL
    assert first.rights(SECOND) == set()
    assert not json.loads(first.kubectl("get", "deployment", f"--namespace={SECOND}", "-o", "json"))["items"]
    first.kubectl("apply", "-k", str(MANIFESTS / "overlays" / "default"))  # the first goes on, upgraded by its owner
    assert first.objects() == before


def is_installed_in(cluster: Cluster, namespace: str) -> bool:
    return (cluster.rights(FIRST) == ALL, cluster.rights(SECOND) == in_second()) == (
        namespace == FIRST,
        namespace == SECOND,
    )


def in_second() -> set[CheckedRight]:
    return set(rights_of((MANIFESTS / "base" / "rbac.yaml").read_text(), SECOND))


def test_an_upgrade_from_manifests_without_the_policy(cluster: Cluster) -> None:
    documents = list(yaml.safe_load_all(install_yaml(FIRST)))
    for each in documents:
        each["metadata"].get("labels", {}).pop(LABEL, None)
    older = [each for each in documents if each["metadata"]["name"] != "vkprovider-installation"]
    cluster.kubectl("apply", "-f", "-", text=yaml.safe_dump_all(older))
    cluster.install(FIRST)
    until(cluster.is_guarded, 30, "the policy is not in force")
    before = cluster.objects()
    assert {each["metadata"]["labels"][LABEL] for each in before.values()} == {FIRST}
    assert SAYS[0] in by_install_yaml(cluster, SECOND)
    assert cluster.objects() == before
    older[0]["metadata"]["name"] = SECOND
    text = yaml.safe_dump_all(older).replace(FIRST, SECOND)  # nor do manifests without the label take anything
    assert SAYS[0] in cluster.fails("apply", "-f", "-", text=text)
    assert cluster.rights(FIRST) == ALL


def test_removed_and_installed_elsewhere(first: Cluster) -> None:
    uninstall(first, FIRST)
    assert not first.objects()
    first.install(SECOND)
    assert is_installed_in(first, SECOND)
    until(first.is_guarded, 30, "the policy is not in force")
    assert f"installed in the namespace {SECOND}" in by_install_yaml(first, FIRST)
    assert is_installed_in(first, SECOND)


def test_moved_as_the_message_says(first: Cluster) -> None:
    """Definitions of CMLWorkers and lablets stay all the time, and with them Nodes and Pods."""
    crds = first.objects("crd")
    by_install_yaml(first, SECOND)
    first.kubectl("delete", f"--namespace={FIRST}", "deployment", "vkprovider")
    first.kubectl("delete", "clusterrolebinding", "vkprovider")
    until(lambda: not by_install_yaml(first, SECOND), 30, "installing elsewhere is refused")
    assert is_installed_in(first, SECOND)
    after = first.objects()
    assert {each["metadata"]["labels"][LABEL] for each in after.values()} == {SECOND}
    assert {each["metadata"]["uid"] for each in first.objects("crd").values()} == {
        each["metadata"]["uid"] for each in crds.values()
    }
    until(first.is_guarded, 30, "the policy is not in force")


@needs_helm
def test_a_release_is_kept_moved_and_removed(cluster: Cluster) -> None:
    helm = Helm(cluster.home, cluster.sandbox.kubeconfig)
    release = ("vkprovider", str(CHART), f"--namespace={FIRST}", "--timeout=60s")
    helm("install", *release, "--create-namespace", "--take-ownership")  # others have left namespaces
    until(cluster.is_guarded, 30, "the policy is not in force")
    before = cluster.objects()
    assert SAYS[0] in by_install_yaml(cluster, SECOND)
    assert SAYS[0] in by_helm_with_force(cluster, SECOND)
    assert cluster.rights(FIRST) == ALL
    helm("upgrade", *release, "--set=settings.RECONCILE_INTERVAL=5")
    assert cluster.objects() == before
    prepull = "--set=prepull.enabled=true"
    helm("upgrade", *release, prepull)  # the policy lets it give rights in the namespace of prepull
    helm("upgrade", *release, prepull, "--set=prepull.schedule=0 4 * * *")
    assert cluster.objects().keys() - before.keys() == {
        f"{kind} /vkprovider-prepull" for kind in ("ClusterRole", "ClusterRoleBinding")
    }
    helm("uninstall", "vkprovider", f"--namespace={FIRST}")
    cluster.kubectl("delete", "secrets", f"--namespace={SECOND}", "--selector=owner=helm")  # as with its namespace
    assert not by_helm_with_force(cluster, SECOND)
    assert is_installed_in(cluster, SECOND)


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "forged", "annotations": {"vkprovider.io/lab-id": "x", "vkprovider.io/learner": "ann"}},
    "spec": {"containers": [{"name": "x", "image": "x"}]},
}


def test_a_second_one_changes_nothing_of_who_may_report(first: Cluster) -> None:
    """The policies are overwritten, since no policy protects policies; they say the same of the first's provider."""

    def reports(namespace: str) -> str:
        """Say in a Pod's name, as an administrator who poses as a ServiceAccount `vkprovider`, what a provider says."""
        posing = f"--as=system:serviceaccount:{namespace}:vkprovider", f"--as-group=system:serviceaccounts:{namespace}"
        arguments = ("create", "--dry-run=server", "--namespace=default", "-f", "-")
        return first.fails(*arguments, *posing, text=json.dumps(POD))

    groups = [f"--group=system:serviceaccounts:{namespace}" for namespace in (FIRST, "default")]
    first.kubectl("create", "clusterrole", "makes-pods", "--verb=create", "--resource=pods")
    first.kubectl("create", "clusterrolebinding", "makes-pods", "--clusterrole=makes-pods", *groups)
    first.kubectl("create", "serviceaccount", "default", "--namespace=default")
    try:
        until(lambda: "Only the provider writes" in reports("default"), 30, "reports are not guarded")
        assert not reports(FIRST)
        assert by_install_yaml(first, SECOND)
        for _ in range(3):
            assert not reports(FIRST)
            assert "Only the provider writes" in reports("default")
    finally:
        first.kubectl("delete", "clusterrole,clusterrolebinding", "makes-pods")
        first.kubectl("delete", "serviceaccount", "default", "--namespace=default")

"""Installed by its own manifests on an empty cluster, the provider runs as its Deployment says (R004-003, C46)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.cluster import condition
from tests.support.extra import SYSTEM
from tests.support.installation import MANIFESTS, WORKER, Installation, installed
from tests.support.waiting import until

EXAMPLES = MANIFESTS / "examples"
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all((MANIFESTS / "install.yaml").read_text()))
RESTRICTED = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "restricted", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
}
PLAIN_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "plain", "labels": {"kubernetes.io/os": "linux"}},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
NETWORK = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "network", "namespace": "kube-system"},
    "spec": {
        "selector": {"matchLabels": {"app": "network"}},
        "template": {
            "metadata": {"labels": {"app": "network"}},
            "spec": {
                "tolerations": [{"operator": "Exists"}],
                "nodeSelector": {"kubernetes.io/os": "linux"},
                "containers": [{"name": "network", "image": "network:1"}],
            },
        },
    },
}


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installed("install", tmp_path_factory.mktemp("installation")) as made:
        for name, definition in (("netlab", "netlab"), ("parameters", "seat"), ("consoles", "routers")):
            documents = yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text())
            made.apply(*(each for each in documents if each["kind"] == "LabletDefinition"))
            until(lambda definition=definition: made.get("runtimeclass", definition), 30, definition)  # type: ignore[misc]
        made.apply(RESTRICTED)
        yield made


def templates() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every pod template of the examples."""
    for path in sorted(EXAMPLES.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if "template" in document.get("spec", {}):
                yield path.stem, document["spec"]["template"]


def versions(installation: Installation) -> dict[str, Any]:
    """Every object that is installed, found by the label that all have: what changes when somebody changes it."""
    kinds = ",".join(sorted({kind_of(item) for item in OBJECTS}))
    found = installation.items(kinds, "--all-namespaces", "--selector=app.kubernetes.io/part-of=vkprovider")
    versions = {}
    for item in found:
        meta = item["metadata"]
        name = f"{item['kind']} {meta.get('namespace', '')}/{meta['name']}"
        versions[name] = meta.get("generation", meta["resourceVersion"])  # the latter also counts statuses
    return versions


def kind_of(item: dict[str, Any]) -> str:
    """Name a kind as kubectl takes it: `Deployment.v1.apps`."""
    group, _, version = item["apiVersion"].rpartition("/")
    return f"{item['kind']}.{version}.{group}" if group else item["kind"]


def test_install_yaml_is_the_rendered_overlay(installation: Installation) -> None:
    rendered = installation.kubectl("kustomize", str(MANIFESTS / "overlays" / "default"))
    assert (MANIFESTS / "install.yaml").read_text() == rendered, "run `make generate`"


def test_applying_again_changes_nothing(installation: Installation) -> None:
    """Controllers may still write to what was installed a moment ago: that it is applied once more shows it then."""

    def unchanged() -> bool:
        before = versions(installation)
        installation.kubectl("apply", "-f", str(MANIFESTS / "install.yaml"))
        return len(before) == len(OBJECTS) and versions(installation) == before

    until(unchanged, 60, "nothing changes when it is applied again")


def test_lablets_of_the_examples_become_ready(installation: Installation) -> None:
    installation.kubectl("apply", "-f", str(EXAMPLES / "deployment.yaml"), "--namespace=restricted")
    pods = installation.wait_lablets("restricted", 4)
    assert {pod["spec"]["nodeName"] for pod in pods} == {f"vnode.{WORKER}"}
    installation.kubectl("delete", "-f", str(EXAMPLES / "deployment.yaml"), "--namespace=restricted")
    until(lambda: not installation.items("pods", "--namespace=restricted"), 60)


def test_every_probe_of_every_replica_answers(installation: Installation) -> None:
    assert len(installation.replicas) == 2
    for replica in installation.replicas:
        for kind in ("startup", "liveness", "readiness"):
            until(lambda kind=kind, replica=replica: replica.probe(kind) == 200, 45, kind)  # type: ignore[misc]


def test_settings_reach_the_replicas(installation: Installation) -> None:
    """Their names are those of their Pods; one of them acts for the worker."""
    installation.kubectl("create", "serviceaccount", "asking")
    installation.kubectl(
        "create", "clusterrolebinding", "asking", "--clusterrole=view", "--serviceaccount=default:asking"
    )
    token = installation.kubectl("create", "token", "asking", "--audience=vkprovider.io").strip()
    for replica in installation.replicas:
        until(lambda replica=replica: replica.get("/info", token)[0] == 200, 30)  # type: ignore[misc]
        info = replica.get("/info", token)[1]
        assert (info["instance_id"], info["namespace"]) == (replica.name, SYSTEM)
    owner = installation.get("cmlworker", WORKER)["status"]["owner"]
    assert owner in {replica.name for replica in installation.replicas}
    addresses = installation.get("node", f"vnode.{WORKER}")["status"]["addresses"]
    assert {"type": "InternalIP", "address": "192.0.2.2"} in addresses


def test_provider_is_protected_and_never_runs_on_its_own_nodes(installation: Installation) -> None:
    """Its Pods pass Pod Security `restricted`, and the only Nodes there are must not have them."""
    namespace = installation.get("namespace", SYSTEM)
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    where = (f"--namespace={SYSTEM}", "--selector=app.kubernetes.io/name=vkprovider")
    for pod in installation.items("pods", *where):
        assert pod["spec"]["priority"] == 1_000_000
        said = condition(pod, "PodScheduled")
        assert (said["status"], said["reason"]) == ("False", "Unschedulable")
    budget = "poddisruptionbudget", "vkprovider", f"--namespace={SYSTEM}"
    until(lambda: installation.get(*budget).get("status", {}).get("expectedPods") == 2, 30)
    assert installation.get("networkpolicy", "vkprovider", f"--namespace={SYSTEM}")


def test_provider_stays_away_from_a_virtual_node_without_taints(installation: Installation) -> None:
    """Taints may be `NoSchedule` by a setting, or removed by hand; the affinity holds without."""
    pod = installation.items("pods", f"--namespace={SYSTEM}", "--selector=app.kubernetes.io/name=vkprovider")[0]
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    [term] = terms["nodeSelectorTerms"]
    [expression] = term["matchExpressions"]
    labels = installation.get("node", f"vnode.{WORKER}")["metadata"]["labels"]
    assert expression["operator"] == "NotIn"
    assert labels[expression["key"]] in expression["values"]
    assert "kubernetes.io/os" in pod["spec"]["nodeSelector"]
    assert "kubernetes.io/os" not in labels


@pytest.mark.parametrize(("name", "template"), list(templates()))
def test_examples_pass_pod_security_restricted(installation: Installation, name: str, template: dict[str, Any]) -> None:
    spec = {"restartPolicy": "Always"} | template["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **template["metadata"]}, "spec": spec}
    arguments = ("create", "--dry-run=server", "-f", "-", "--namespace=restricted")
    assert "created" in installation.kubectl(*arguments, input=yaml.safe_dump(pod))
    del pod["spec"]["securityContext"]
    assert 'violates PodSecurity "restricted' in installation.refused(*arguments, input=yaml.safe_dump(pod))


def test_stock_roles_show_workers_and_definitions(installation: Installation) -> None:
    """`view` and `admin` know our kinds when bound in the cluster; `use` comes from neither."""
    for role in ("view", "admin"):
        installation.kubectl("create", "clusterrolebinding", f"{role}er", f"--clusterrole={role}", f"--user={role}er")

    def may(user: str, verb: str, kind: str) -> bool:
        asked = ("auth", "can-i", verb, f"{kind}.vkprovider.io", f"--as={user}", "--quiet")
        return installation.sandbox.kubectl(*asked, check=False).returncode == 0

    for kind in ("cmlworkers", "labletdefinitions"):
        until(lambda kind=kind: may("viewer", "list", kind) and may("adminer", "create", kind), 30, kind)  # type: ignore[misc]
        assert not may("viewer", "create", kind)
        assert not may("adminer", "use", kind)


def test_network_of_a_plain_node_starts_there_and_nowhere_else(installation: Installation) -> None:
    """A DaemonSet that tolerates everything, as CNI plugins do. The last test here: the Node would take other Pods."""
    installation.kubectl("create", "-f", "-", input=json.dumps(PLAIN_NODE))
    installation.apply(NETWORK)
    where = ("pods", "--namespace=kube-system", "--selector=app=network")
    bound = until(lambda: [p for p in installation.items(*where) if p["spec"].get("nodeName")], 45)
    assert [p["spec"]["nodeName"] for p in bound] == ["plain"]
    assert installation.get("daemonset", "network", "--namespace=kube-system")["status"]["desiredNumberScheduled"] == 1

"""`kubectl lablet list` through the real kubectl, with the plugin found on PATH."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster, waiting_reason
from tests.support.plugin import lablet as kubectl
from tests.support.topologies import definition, pod
from tests.support.waiting import until

HEADINGS = ["LEARNER", "STATE", "SINCE", "LEFT", "DEVICES", "REASON", "NAME"]


def table(text: str) -> list[dict[str, str]]:
    """Read a table of columns that two spaces or more part."""
    first, *rest = text.splitlines()
    starts = [match.start() for match in re.finditer(r"\S+", first)]
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    return [{first[a:b].strip(): line[a:b].strip() for a, b in spans} for line in rest]


@pytest.fixture
def lablets(cluster: Cluster, namespace: str) -> dict[str, dict[str, Any]]:
    """One lablet that is Ready and somebody's, one that is refused, and a pod that is none."""
    cluster.define(definition("listed"))
    mine = pod("mine", "listed", version="1.0.0")
    mine["metadata"]["annotations"] = {"vkprovider.io/username": "alice"}
    other = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}}
    other["spec"] = {"containers": [{"name": "a", "image": "nginx"}]}
    cluster.apply(mine, pod("refused", "listed", version="9"), other, namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "refused")) == "UnknownVersion", 30)
    cluster.kubectl("wait", "--for=condition=Ready", "pod/mine", f"--namespace={namespace}", "--timeout=60s")
    return {name: cluster.pod(namespace, name) or {} for name in ("mine", "refused")}


def test_lablets_are_listed(cluster: Cluster, namespace: str, lablets: dict[str, dict[str, Any]]) -> None:
    result = kubectl(cluster, "list", "-n", namespace)
    assert (result.returncode, result.stderr) == (0, "2 lablets: 1 needs help, 1 ready\n")
    assert result.stdout.splitlines()[0].split() == HEADINGS
    mine, refused = table(result.stdout)
    assert re.fullmatch(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d", mine.pop("SINCE")), "with the date from midnight on"
    assert mine == {
        "LEARNER": "alice",
        "STATE": "ready",
        "LEFT": "<none>",
        "DEVICES": "1/1",
        "REASON": "<none>",
        "NAME": "mine",
    }
    assert (refused["LEARNER"], refused["STATE"], refused["REASON"]) == ("<none>", "needs help", "UnknownVersion")
    wide, _ = table(kubectl(cluster, "list", "-n", namespace, "-o", "wide").stdout)
    assert wide["AGE"].endswith("s")
    assert (wide["DEFINITION"], wide["VERSION"]) == ("listed", "1.0.0")
    assert wide["WORKER"] == cluster.simulator_of(lablets["mine"]).name
    assert wide["LAB"] == (cluster.lab_of(lablets["mine"]) or {})["id"]


def test_other_forms_of_the_list(cluster: Cluster, namespace: str, lablets: dict[str, dict[str, Any]]) -> None:
    wide = table(kubectl(cluster, "list", "-n", namespace, "-o", "wide").stdout)
    assert [row["REASON"] for row in wide] == ["<none>", "UnknownVersion"]
    assert wide[0]["ADDRESS"] == lablets["mine"]["status"]["podIP"]
    rows = json.loads(kubectl(cluster, "list", "-n", namespace, "-o", "json").stdout)["items"]
    assert [(row["name"], row["ready"], row["reason"]) for row in rows] == [
        ("mine", True, ""),
        ("refused", False, "UnknownVersion"),
    ]
    assert rows[1]["message"] == "definition listed has no version '9'; it keeps 1.0.0"
    assert kubectl(cluster, "list", "-n", namespace, "-o", "name").stdout == "pod/mine\npod/refused\n"
    everywhere = table(kubectl(cluster, "list", "-A").stdout)
    assert [row["NAME"] for row in everywhere if row["NAMESPACE"] == namespace] == ["mine", "refused"]


def test_namespace_of_the_context_counts(
    cluster: Cluster, namespace: str, lablets: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    assert lablets
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(cluster.sandbox.kubeconfig.read_text())
    cluster.kubectl("config", f"--kubeconfig={kubeconfig}", "set-context", "--current", f"--namespace={namespace}")
    assert kubectl(cluster, "list", "-o", "name", kubeconfig=kubeconfig).stdout == "pod/mine\npod/refused\n"
    elsewhere = kubectl(cluster, "list", f"--kubeconfig={kubeconfig}", "-n", "kube-public")
    assert (elsewhere.returncode, elsewhere.stdout) == (0, "")
    assert elsewhere.stderr == "No lablets found in kube-public namespace.\n"


def test_user_of_one_namespace_may_list_it(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    cluster.define(definition("users"))
    cluster.apply(pod("a", "users"), namespace=namespace)
    cluster.kubectl("create", "serviceaccount", "learner", f"--namespace={namespace}")
    account = f"--serviceaccount={namespace}:learner"
    cluster.kubectl("create", "rolebinding", "learner", "--clusterrole=view", account, f"--namespace={namespace}")
    token = cluster.kubectl("create", "token", "learner", f"--namespace={namespace}").stdout.strip()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(cluster.sandbox.kubeconfig.read_text())
    for change in (("set-credentials", "learner", f"--token={token}"), ("set-context", "--current", "--user=learner")):
        cluster.kubectl("config", f"--kubeconfig={kubeconfig}", *change)
    assert kubectl(cluster, "list", "-n", namespace, "-o", "name", kubeconfig=kubeconfig).stdout == "pod/a\n"
    refused = kubectl(cluster, "list", "-A", kubeconfig=kubeconfig)
    assert refused.returncode == 1
    assert "cannot list resource" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "--kubeconfig=/nowhere"), "KubeconfigMissing: no kubeconfig at /nowhere"),
        (("list", "--context=nowhere"), "no context 'nowhere'; there are:"),
        (("list", "-o", "xml"), "'xml' is not one of"),
    ],
)
def test_wrong_calls_are_explained(cluster: Cluster, arguments: tuple[str, ...], message: str) -> None:
    result = kubectl(cluster, *arguments)
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr

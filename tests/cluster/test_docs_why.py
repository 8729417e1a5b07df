"""What docs/why.md quotes of the stock scheduler, of controllers and of admission is what these say."""

from typing import Any

import pytest
import yaml

from tests.support import docs
from tests.support.cluster import Cluster, condition
from tests.support.topologies import definition, deployment, pod
from tests.support.waiting import until
from vkprovider.lablet.reasons import conditions
from vkpsandbox import SandboxError

POLICIES = docs.ROOT / "manifests"
QUOTA = {"requests.cpu": "100", "limits.cpu": "100"}
UNPLACED: dict[str, dict[str, Any]] = {
    "Insufficient vkprovider.io/lab-nodes": {"resources": {"labNodes": 100_000}},
    "Insufficient vkprovider.io/ports": {"resources": {"ports": 60_000}},
    "Insufficient cpu": {"resources": {"cpu": "100000"}},
    "Insufficient memory": {"resources": {"memory": "1000Ti"}},
    "untolerated taint": {"environment": "nowhere"},
}
"""Part of the scheduler's message: the definition whose lablets have no Node."""


def message(cluster: Cluster, namespace: str, name: str) -> str:
    """Wait for the scheduler's message about a Pod."""
    told = until(lambda: condition(cluster.pod(namespace, name), "PodScheduled").get("message"), 45, name)
    return str(told)


def test_scheduler_says_what_the_page_quotes(cluster: Cluster, namespace: str) -> None:
    definitions = {f"why-{number}": spec for number, spec in enumerate(UNPLACED.values())}
    cluster.define(*(definition(name, **spec) for name, spec in definitions.items()))
    plain = pod("plain", "why-0")
    del plain["spec"]["runtimeClassName"]
    picky = pod("picky", "why-0", nodeSelector={"topology.kubernetes.io/zone": "nowhere"})
    cluster.apply(plain, picky, *(pod(name, name) for name in definitions), namespace=namespace)
    said = {name: message(cluster, namespace, name) for name in ("plain", "picky", *definitions)}
    for name, word in zip(definitions, UNPLACED, strict=True):
        assert word in said[name]
    assert "untolerated taint" in said["plain"]
    assert "didn't match Pod's node affinity/selector" in said["picky"]
    assert "Preemption is not helpful" in " ".join(said.values())
    assert UNPLACED.keys() < conditions.SCHEDULER.keys()


def test_full_workers_are_told_by_what_they_lack(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("why-full", resources={"cpu": "60"}))
    cluster.apply(deployment("full", "why-full", len(cluster.workers) + 1), namespace=namespace)

    def unplaced() -> list[str]:
        told = [condition(item, "PodScheduled") for item in cluster.pods(namespace)]
        return [str(said["message"]) for said in told if said.get("status") == "False"]

    [said] = until(unplaced, 45)
    assert "Insufficient cpu" in said
    assert "No preemption victims found" in said


def test_cordoned_nodes_are_called_unschedulable(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("why-cordoned"))
    for worker in cluster.workers:
        cluster.kubectl("cordon", worker.node)
    try:
        cluster.apply(pod("a", "why-cordoned"), namespace=namespace)
        assert "were unschedulable" in message(cluster, namespace, "a")
    finally:
        for worker in cluster.workers:
            cluster.kubectl("uncordon", worker.node)
    cluster.wait_ready(namespace, 1)


def test_admission_says_what_the_page_quotes(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("why-admitted", resources={"cpu": "200"}))
    with pytest.raises(SandboxError, match="pod rejected: RuntimeClass"):
        cluster.apply(pod("a", "why-nobody"), namespace=namespace)
    meta = {"name": "why", "namespace": namespace}
    cluster.apply(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": QUOTA}}, namespace=namespace
    )
    until(lambda: cluster.get(f"/api/v1/namespaces/{namespace}/resourcequotas/why")["status"].get("hard"), 30)  # type: ignore[index]
    item = pod("a", "why-admitted")
    with pytest.raises(SandboxError, match="must specify"):
        cluster.apply(item, namespace=namespace)
    item["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "1m"}
    with pytest.raises(SandboxError, match="exceeded quota"):
        cluster.apply(item, namespace=namespace)
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    with pytest.raises(SandboxError, match="violates PodSecurity"):
        cluster.apply(item, namespace=namespace)


def test_policies_say_what_the_page_quotes() -> None:
    """What a policy says is in its manifest; that it says it is tested with the policies."""
    manifests = [*(POLICIES / "policies").glob("*.yaml"), *(POLICIES / "components").glob("*/*.yaml")]
    policies = [item for path in manifests for item in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    texts = " ".join(str(item.get("spec", {}).get("validations", "")) for item in policies)
    for word in ("Only lablets may tolerate", "Only the provider writes", "may not use LabletDefinition"):
        assert word in conditions.ADMISSION
        assert word in " ".join(texts.split())

"""LabletDefinitions that are wrong, as kubectl shows them: the reason, the doctor's remedy, a correction that heals."""

from typing import Any, NamedTuple

import pytest
import yaml

from tests.support.cluster import Cluster, condition, container, is_ready, waiting_reason
from tests.support.doctor import diagnosed, examine
from tests.support.extra import SYSTEM
from tests.support.topologies import definition, deployment, pod, topology
from tests.support.waiting import until
from vkprovider.doctor.findings import Finding
from vkpsandbox import Sandbox, SandboxError

DEFINITIONS = "/apis/vkprovider.io/v1alpha1/labletdefinitions"
RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
CONFIG_MAPS = f"/api/v1/namespaces/{SYSTEM}/configmaps"


def changed(**top: Any) -> str:
    """Make a good topology and change its top level; None removes a key."""
    document = {**yaml.safe_load(topology({"h0": "alpine"})), **top}
    return yaml.safe_dump({key: value for key, value in document.items() if value is not None})


def node(label: Any = "h0", **fields: Any) -> dict[str, Any]:
    return {"id": "n0", "label": label, "node_definition": "alpine", "x": 0, "y": 0, "interfaces": []} | fields


BAD = {
    "malformed-yaml": ("lab: [\nnodes: {", "TopologyInvalid", "invalid YAML at line 3, column 1"),
    "no-mapping": ("just a text", "TopologyInvalid", "not a CML topology: expected lab, nodes and links"),
    "no-version": (changed(lab={"title": "x"}), "TopologyInvalid", "lab.version is missing; CML 2.9 writes '0.3.0'"),
    "unknown-version": (changed(lab={"version": "9.9"}), "TopologyInvalid", "lab.version '9.9' is unknown, known are"),
    "version-is-a-number": (changed(lab={"version": 0.1}), "TopologyInvalid", "put it in quotes"),
    "version-is-a-list": (changed(lab={"version": [1]}), "TopologyInvalid", "lab.version"),
    "nodes-is-a-text": (changed(nodes="h0"), "TopologyInvalid", "nodes is missing or not a list"),
    "no-links": (changed(links=None), "TopologyInvalid", "links is missing or not a list"),
    "cpus-is-a-text": (changed(nodes=[node(cpus="two")]), "TopologyInvalid", "nodes[0].cpus of 'h0'"),
    "label-is-a-number": (changed(nodes=[node(2001)]), "TopologyInvalid", "nodes[0].label must be a text"),
    "duplicate-labels": (changed(nodes=[node(), node()]), "TopologyInvalid", "'h0' is nodes[0]'s already"),
    "unknown-device": (
        changed(nodes=[node(node_definition="mine")]),
        "ResourcesUnknown",
        "definition 'mine' is unknown",
    ),
}
"""Name: topology, reason, part of the message."""


class Observed(NamedTuple):
    """What was seen of a bad definition, and after its correction."""

    ready: dict[str, Any]
    runtime_class: dict[str, Any] | None
    events: list[dict[str, Any]]
    findings: list[Finding]
    ready_then: dict[str, Any]
    runtime_class_then: dict[str, Any] | None
    findings_then: list[Finding]


@pytest.fixture(scope="module")
def observed(sandbox: Sandbox) -> dict[str, Observed]:
    """Apply all bad topologies, look, correct them all, and look again."""
    cluster = Cluster(sandbox)

    def ready(name: str) -> dict[str, Any]:
        return condition(cluster.get(f"{DEFINITIONS}/{name}"), "Ready")

    def look() -> tuple[dict[str, Any], ...]:
        conditions = {name: ready(name) for name in BAD}
        classes = {name: cluster.get(f"{RUNTIME_CLASSES}/{name}") for name in BAD}
        report = examine(cluster, probe=False).findings
        return (
            conditions,
            classes,
            {name: [f for f in report if f.object == f"LabletDefinition/{name}"] for name in BAD},
        )

    try:
        cluster.apply(*(definition(name, bad[0]) for name, bad in BAD.items()))
        until(lambda: all(ready(name).get("status") == "False" for name in BAD), 60, "a bad definition has no reason")
        until(lambda: all(cluster.events("default", name) for name in BAD), 60, "a bad definition has no Event")
        first = look()
        events = {name: cluster.events("default", name) for name in BAD}
        cluster.apply(*(definition(name) for name in BAD))
        until(
            lambda: all(ready(name).get("status") == "True" for name in BAD), 60, "a corrected definition is not Ready"
        )
        second = look()
    finally:
        cluster.kubectl("delete", "labletdefinition", *BAD, "--ignore-not-found", "--timeout=30s")
    return {
        name: Observed(first[0][name], first[1][name], events[name], first[2][name], *(part[name] for part in second))
        for name in BAD
    }


@pytest.mark.parametrize("name", BAD)
def test_topology_is_refused_with_its_reason_until_it_is_corrected(observed: dict[str, Observed], name: str) -> None:
    _, reason, message = BAD[name]
    seen = observed[name]
    assert (seen.ready["status"], seen.ready["reason"]) == ("False", reason)
    assert message in seen.ready["message"]
    assert seen.runtime_class is None, "without content there is nothing to schedule"
    [event] = seen.events
    assert (event["type"], event["reason"], event["message"]) == ("Warning", reason, seen.ready["message"])
    [finding] = seen.findings
    assert (finding.reason, finding.message) == (reason, seen.ready["message"])
    assert finding.remedy
    assert seen.ready_then["status"] == "True"
    assert seen.runtime_class_then
    assert seen.findings_then == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"version": 5}, "spec.version"),
        ({"version": "not a tag!"}, "spec.version"),
        ({"source": {}}, "set exactly one of source.inline, source.configMap and source.objectStore"),
        ({"source": {"objectStore": {}}}, "set source.objectStore.key or formQualifiedName"),
        ({"source": {"objectStore": {"key": "../a"}}}, "spec.source.objectStore.key"),
        ({"version": None}, "spec.version: Required value"),
        ({"source": {"configMap": {"namespace": "a", "name": "../secrets/b"}}}, "spec.source.configMap.name"),
        ({"resources": {"labNodes": -1}}, "spec.resources.labNodes"),
        ({"unreachableTolerationSeconds": 5}, "spec.unreachableTolerationSeconds"),
    ],
)
def test_spec_is_refused_by_the_api_server(cluster: Cluster, spec: dict[str, Any], message: str) -> None:
    item = definition("refused")
    item["spec"] |= spec
    with pytest.raises(SandboxError, match=message):
        cluster.apply(item)


def test_negative_amounts_are_refused(cluster: Cluster) -> None:
    cluster.delete_later("labletdefinition", "negative")
    cluster.apply(definition("negative", resources={"cpu": "-5"}))
    until(lambda: condition(cluster.get(f"{DEFINITIONS}/negative"), "Ready").get("reason") == "SpecInvalid", 15)
    finding = diagnosed(cluster, "LabletDefinition/negative", "SpecInvalid")
    assert finding.message == "spec.resources.cpu: '-5' is negative"


def test_definition_can_be_deleted_whatever_is_wrong_with_it(cluster: Cluster) -> None:
    cluster.define(definition("doomed"))
    cluster.patch(f"{DEFINITIONS}/doomed", {"spec": {"resources": {"cpu": "-5"}}})
    diagnosed(cluster, "LabletDefinition/doomed", "SpecInvalid")
    cluster.kubectl("delete", "labletdefinition", "doomed", "--timeout=60s")
    until(lambda: cluster.get(f"{RUNTIME_CLASSES}/doomed") is None, 15)


def test_labels_that_are_no_container_names_are_allowed(cluster: Cluster, namespace: str) -> None:
    labels = ["R 1", "r_1", "***", "lab", "x" * 100]
    cluster.define(definition("odd-labels", topology(dict.fromkeys(labels, "alpine"))))
    found = cluster.get(f"{DEFINITIONS}/odd-labels")
    assert found
    names = {device["label"]: device["container"] for device in found["status"]["devices"]}
    assert names == {"R 1": "r-1", "r_1": "r-1-2", "***": "device", "lab": "lab-2", "x" * 100: "x" * 63}
    cluster.apply(pod("odd", "odd-labels", devices=list(names.values())), namespace=namespace)
    [found_pod] = cluster.wait_ready(namespace, 1)
    assert all(container(found_pod, name)["state"].get("running") for name in ("lab", *names.values()))


# ------------------------------------------------------------------------------------------------ a ConfigMap


def in_config_map(name: str, namespace: str, key: str = "cml.yaml") -> dict[str, Any]:
    item = definition(name)
    item["spec"]["source"] = {"configMap": {"namespace": namespace, "name": "topology", "key": key}}
    return item


def config_map(text: str, key: str = "cml.yaml") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "topology"}, "data": {key: text}}


def test_forbidden_config_map_is_read_once_the_command_in_the_message_was_run(cluster: Cluster, namespace: str) -> None:
    cluster.apply(config_map(topology({"h0": "alpine"})), namespace=namespace)
    cluster.delete_later("labletdefinition", "forbidden")
    cluster.apply(in_config_map("forbidden", namespace))
    finding = diagnosed(cluster, "LabletDefinition/forbidden", "SourceForbidden")
    command = finding.message.partition("bind it: kubectl ")[2].split()
    cluster.kubectl(*command)
    until(lambda: is_ready(cluster.get(f"{DEFINITIONS}/forbidden")), 30)


def test_very_many_devices_are_taken_in(cluster: Cluster) -> None:
    nodes = [{"id": f"n{i}", "label": f"d{i}", "node_definition": "alpine", "x": 0, "y": 0} for i in range(3000)]
    cluster.delete_later("labletdefinition", "many")
    item = definition("many", yaml.safe_dump(yaml.safe_load(changed()) | {"nodes": nodes}, default_flow_style=True))
    cluster.request("POST", DEFINITIONS, item)
    until(lambda: condition(cluster.get(f"{DEFINITIONS}/many"), "Ready"), 60)
    found = cluster.get(f"{DEFINITIONS}/many")
    assert found
    assert is_ready(found), condition(found, "Ready")
    assert len(found["status"]["devices"]) == 500
    assert found["status"]["resources"]["vkprovider.io/lab-nodes"] in {"3000", "3k"}


# ------------------------------------------------------------------------------------------------ conflicts


def test_two_definitions_of_one_topology_are_charged_each_its_own(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("cheap"), definition("dear", resources={"cpu": "1000"}))
    cluster.apply(deployment("cheap", "cheap", 2), namespace=namespace)
    cluster.wait_ready(namespace, 2)
    overhead = {
        name: (cluster.get(f"{RUNTIME_CLASSES}/{name}") or {})["overhead"]["podFixed"]["cpu"]
        for name in ("cheap", "dear")
    }
    assert overhead == {"cheap": "1", "dear": "1k"}


# ------------------------------------------------------------------------------------------------ while in use


def test_definition_deleted_while_in_use_waits_for_its_lablets(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("leaving"))
    cluster.apply(pod("a", "leaving"), namespace=namespace)
    [running] = cluster.wait_ready(namespace, 1)
    cluster.kubectl("delete", "labletdefinition", "leaving", "--wait=false")
    finding = diagnosed(cluster, "LabletDefinition/leaving", "InUse")
    assert finding.message.startswith("1 lablet; delete their pods, or annotate vkprovider.io/abandon=true")
    cluster.apply(pod("late", "leaving"), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "late")) == "DefinitionNotReady", 30)
    assert "InUse" in container(cluster.pod(namespace, "late"))["state"]["waiting"]["message"]
    assert is_ready(cluster.pod(namespace, "a"))
    assert (cluster.lab_of(running) or {})["state"] == "STARTED"
    cluster.kubectl("delete", "pod", "a", "late", f"--namespace={namespace}")
    until(lambda: cluster.get(f"{DEFINITIONS}/leaving") is None, 30)
    until(lambda: cluster.get(f"{RUNTIME_CLASSES}/leaving") is None, 30)
    until(lambda: not contents(cluster, "leaving"), 30)
    assert cluster.lab_of(running) is None


def contents(cluster: Cluster, name: str) -> list[str]:
    """Name the content ConfigMaps of a definition."""
    found = cluster.items(f"{CONFIG_MAPS}?labelSelector=vkprovider.io/component=content")
    return [item["metadata"]["name"] for item in found if item["metadata"]["name"].startswith(f"{name}-")]


@pytest.fixture
def recreated(cluster: Cluster) -> str:
    cluster.define(definition("again"))
    cluster.kubectl("delete", "labletdefinition", "again")
    cluster.define(definition("again"))
    return "again"


def test_definition_made_anew_keeps_nothing_of_its_predecessor(
    cluster: Cluster, namespace: str, recreated: str
) -> None:
    cluster.apply(pod("a", recreated), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    uid = (cluster.get(f"{DEFINITIONS}/{recreated}") or {})["metadata"]["uid"]

    def owners() -> bool:
        found = [cluster.get(f"{CONFIG_MAPS}/{name}") or {} for name in contents(cluster, recreated)]
        return [item["metadata"]["ownerReferences"][0]["uid"] for item in found] == [uid]

    until(owners, 30, "the content is not that of the new definition alone")

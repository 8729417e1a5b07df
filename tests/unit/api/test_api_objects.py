"""Slim structs read what an API server sends: whole objects, and objects that say next to nothing."""

from typing import Any

import msgspec
import pytest

from vkprovider.api import objects

BARE: dict[str, Any] = {"metadata": {"name": "x"}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "team",
        "uid": "u",
        "resourceVersion": "12",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T00:01:00Z",
        "deletionGracePeriodSeconds": 30,
        "labels": {"a": "b"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "v", "controller": True}],
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:metadata": {}}}],
    },
    "spec": {
        "containers": [{"name": "lab", "image": "netlab:1", "resources": {"requests": {"cpu": "1m"}}, "stdin": True}],
        "nodeName": "vnode.w1",
        "runtimeClassName": "netlab",
        "restartPolicy": "Never",
        "activeDeadlineSeconds": 60,
        "overhead": {"cpu": "2", "vkprovider.io/ports": "4"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
    },
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}],
        "containerStatuses": [
            {
                "name": "lab",
                "ready": True,
                "restartCount": 2,
                "state": {"running": {"startedAt": "2026-01-01T00:00:30Z"}},
                "lastState": {},
                "started": True,
            }
        ],
        "hostIP": "198.51.100.1",
        "podIP": "198.51.100.1",
        "podIPs": [{"ip": "198.51.100.1"}],
        "startTime": "2026-01-01T00:00:01Z",
        "qosClass": "Burstable",
    },
}


def test_a_pod_is_read() -> None:
    pod = msgspec.json.decode(msgspec.json.encode(POD), type=objects.Pod)
    assert pod.key == "team/p"
    assert not pod.terminal
    assert (pod.metadata.uid, pod.metadata.resource_version, pod.metadata.deletion_timestamp) == (
        "u",
        "12",
        "2026-01-01T00:01:00Z",
    )
    assert (pod.spec.runtime_class_name, pod.spec.restart_policy, pod.spec.active_deadline_seconds) == (
        "netlab",
        "Never",
        60,
    )
    assert pod.spec.overhead == {"cpu": "2", "vkprovider.io/ports": "4"}
    assert (pod.status.pod_ip, pod.status.host_ip) == ("198.51.100.1", "198.51.100.1")
    assert pod.status.container_statuses[0].restart_count == 2


@pytest.mark.parametrize(
    ("phase", "terminal"), [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True)]
)
def test_which_phases_are_final(phase: str, *, terminal: bool) -> None:
    pod = msgspec.convert({**POD, "status": {"phase": phase}}, objects.Pod)
    assert pod.terminal is terminal


@pytest.mark.parametrize(
    "kind",
    [
        objects.Node,
        objects.ConfigMap,
        objects.RuntimeClass,
        objects.Lease,
        objects.CustomResource,
    ],
)
def test_an_object_that_says_next_to_nothing_is_read(kind: type[objects.Node]) -> None:
    found = msgspec.json.decode(msgspec.json.encode(BARE), type=kind)
    assert found.metadata.name == "x"


def test_a_custom_resource_is_read() -> None:
    raw = {"metadata": {"name": "x"}, "spec": {"url": "u", "nested": {"a": [1]}}, "status": {"phase": "ok"}}
    found = msgspec.json.decode(msgspec.json.encode(raw), type=objects.CustomResource)
    assert (found.spec, found.status) == (raw["spec"], raw["status"])
    bare = msgspec.json.decode(msgspec.json.encode(BARE), type=objects.CustomResource)
    assert (bare.spec, bare.status) == ({}, {})


def test_a_lease_is_read() -> None:
    raw = {
        **BARE,
        "spec": {"holderIdentity": "a", "leaseTransitions": 3, "renewTime": "2026-01-01T00:00:00.000000Z"},
    }
    lease = msgspec.convert(raw, objects.Lease)
    assert (lease.spec.holder_identity, lease.spec.lease_transitions, lease.spec.acquire_time) == ("a", 3, None)


def test_a_node_is_read() -> None:
    raw = {
        **BARE,
        "spec": {
            "providerID": "vkprovider://w1",
            "unschedulable": True,
            "taints": [{"key": "k", "effect": "NoSchedule"}],
        },
        "status": {"capacity": {"cpu": "4"}, "nodeInfo": {"kernelVersion": "x"}},
    }
    node = msgspec.convert(raw, objects.Node)
    assert (node.spec.provider_id, node.spec.unschedulable) == ("vkprovider://w1", True)
    assert node.spec.taints == [objects.Taint(key="k", effect="NoSchedule")]

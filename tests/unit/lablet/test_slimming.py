"""What stays in memory of a Pod."""

import gc
import sys
from typing import Any

import msgspec
import pytest

from vkprovider.lablet import names
from vkprovider.lablet.slimming import WholePod, slim_pod
from vkprovider.platform.objects import ENV, Container, Metadata, Pod, PodSpec

TOKEN: dict[str, list[dict[str, Any]]] = {
    "volumes": [{"name": "kube-api-access-x7k2p", "projected": {"sources": []}}],
    "volumeMounts": [{"name": "kube-api-access-x7k2p", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
}
"""What the admission plugin ServiceAccount adds to every Pod that does not refuse it."""


def pod(labels: dict[str, str], notes: dict[str, str]) -> Pod:
    return Pod(Metadata("p", labels=labels, annotations=notes), PodSpec([Container("lab")]))


def test_only_labels_and_annotations_of_vkprovider_stay() -> None:
    ours = {names.ANNOTATION_USERNAME: "ann", names.ANNOTATION_PORT_MAPPINGS: "{}"}
    found = slim_pod(pod({names.LABEL_POOL: "a", "app": "x"}, {**ours, "kubectl.kubernetes.io/last-applied": "x" * 99}))
    assert found.metadata.annotations == ours
    assert found.metadata.labels == {names.LABEL_POOL: "a"}
    assert slim_pod(found) is found


def test_too_much_is_cut() -> None:
    notes = {names.ANNOTATION_RESET: "r" * 200_000, names.ANNOTATION_USERNAME: "ann", "vkprovider.io/other": "x" * 9}
    found = slim_pod(pod({}, notes)).metadata.annotations
    assert found == {names.ANNOTATION_RESET: "r" * 1024, names.ANNOTATION_USERNAME: "ann"}


def decoded(container: dict[str, Any], **spec: Any) -> Pod:
    """Decode and slim a Pod with two containers as the API server sends it, and as an informer does."""
    containers = [{"name": "lab", "image": "netlab"}, {"name": "r1", "image": "netlab", **container}]
    body = {
        "metadata": {"name": "p"},
        "spec": {"containers": containers, "nodeName": "vnode.w1", "overhead": {"cpu": "1"}, **spec},
        "status": {"phase": "Running"},
    }
    return slim_pod(msgspec.json.decode(msgspec.json.encode(body), type=WholePod))


def test_a_decoded_pod_is_a_plain_one() -> None:
    containers = [Container("lab", "netlab"), Container("r1", "netlab")]
    found = decoded({})
    assert (type(found), type(found.spec), type(found.spec.containers[0])) == (Pod, PodSpec, Container)
    assert found.spec == PodSpec(containers, node_name="vnode.w1", overhead={"cpu": "1"})
    assert found.status.phase == "Running"


@pytest.mark.parametrize(
    ("container", "spec", "fields"),
    [
        ({"volumeMounts": TOKEN["volumeMounts"]}, {"volumes": TOKEN["volumes"]}, ()),
        ({"env": [{"name": "A"}]}, {}, (ENV,)),
        ({"envFrom": [{"secretRef": {"name": "a"}}]}, {}, (ENV,)),
        ({"env": [], "ports": None, "command": [], "workingDir": ""}, {"volumes": []}, ()),
        ({"volumeMounts": [{"name": "a", "mountPath": "/a"}]}, {}, ("volumeMounts",)),
        ({}, {"volumes": [*TOKEN["volumes"], {"name": "a", "emptyDir": {}}]}, ("volumes",)),
        ({"command": ["a"], "args": ["b"], "workingDir": "/"}, {}, ("args", "command", "workingDir")),
        ({"ports": [{"containerPort": 80}], "volumeDevices": [{"name": "d"}]}, {}, ("ports", "volumeDevices")),
        (
            {f"{kind}Probe": {"exec": {}} for kind in ("liveness", "readiness", "startup")},
            {},
            ("livenessProbe", "readinessProbe", "startupProbe"),
        ),
        ({"lifecycle": {"preStop": {}}, "resources": {}, "tty": True, "securityContext": {}}, {}, ("lifecycle",)),
        ({}, {"terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "hostNetwork": False, "os": None}, ()),
        ({}, {"terminationGracePeriodSeconds": 0}, ("terminationGracePeriodSeconds",)),
        ({}, {"hostPID": True, "hostIPC": True, "dnsPolicy": "None"}, ("dnsPolicy", "hostIPC", "hostPID")),
        ({"resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "1"}}}, ()),
        ({"resources": {"limits": {"cpu": "1"}}}, {}, ("resources.limits",)),
        ({}, {"resources": {"limits": {"cpu": "1"}}}, ("resources.limits",)),
        ({"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}, {}, ()),
        ({"restartPolicy": "Never", "stdinOnce": True}, {}, ("restartPolicy", "stdinOnce")),
    ],
)
def test_of_fields_that_are_not_kept_their_names_are(
    container: dict[str, Any], spec: dict[str, Any], fields: tuple[str, ...]
) -> None:
    assert decoded(container, **spec).spec.other_fields == fields


def test_readiness_gates_are_kept_once_for_all_pods_of_a_template() -> None:
    gates = [{"conditionType": "example.com/a"}, {"conditionType": "example.com/b"}]
    first, second = decoded({}, readinessGates=gates), decoded({}, readinessGates=gates)
    assert [gate.condition_type for gate in first.spec.readiness_gates] == ["example.com/a", "example.com/b"]
    assert first.spec.readiness_gates is second.spec.readiness_gates
    assert first.spec.other_fields == ()


def test_pods_share_the_names_of_their_fields() -> None:
    first, second = decoded({"env": [{"name": "A"}]}), decoded({"env": [{"name": "B", "value": "b"}]})
    assert first.spec.other_fields is second.spec.other_fields


def test_nothing_of_the_variables_stays_in_memory() -> None:
    """The bytes that a Pod was decoded from are freed, however many of its fields were left in them."""
    gc.collect()
    before = sys.getallocatedblocks()
    kept = [decoded({"env": [{"name": f"A{i}", "value": "x" * 1000} for i in range(100)]}) for _ in range(50)]
    plain = [decoded({}) for _ in range(50)]
    gc.collect()
    assert sys.getallocatedblocks() - before < 60 * (len(kept) + len(plain))
